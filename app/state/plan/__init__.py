"""From members to nodes: `pod_sets.py` (what is to be placed) ──▶ `request.py` (the question to the
placement core) ──▶ `assignment.py` (which member gets which node); `planner.py` runs the search.
`group_tree.py` has the groups of that question. `single_nodes.py` judges one node at a time, for
members that get one without a search.

A search that takes the loop too long goes on in a thread: `search_on.py` says whose,
`long_search.py` what is searched, and what the answer holds for.

`unfit.py` says which requests need no search; `verdict.py` is what comes out, `exclusions.py` why
nodes are closed.
"""
