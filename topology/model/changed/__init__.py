"""A tree, or a capacity, made from another one that stays as it is.

`tree.py` makes one of which a few nodes came, went or moved, at less cost than from all nodes.
`capacity.py` makes the books of a question: as they would be without some pods, with pods to come,
or with some nodes back.
"""
