"""What is to be placed, as the placement core is asked it.

`pod_sets.py` sorts a gang's unplanned members into pod sets, `group_tree.py` has the groups around
them, `request.py` makes one question of both, with the nodes that are open to them.
"""
