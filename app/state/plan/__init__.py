"""From members to nodes: `question` (what is to be placed, for the placement core) ──▶
`assignment.py` (which member gets which node); `planner.py` runs the search, and leaves it to a
thread, in `elsewhere`, where it takes the loop too long. `single_nodes.py` judges one node at a
time, for members that get one without a search.

`unfit.py` says which requests need no search; `verdict.py` is what comes out, `exclusions.py` why
nodes are closed.
"""
