"""From members to nodes: `pod_sets.py` (what is to be placed) ──▶ `request.py` (the question to the
placement core) ──▶ `assignment.py` (which member gets which node); `planner.py` runs the search.
`group_tree.py` has the groups of that question.

`queue.py` is whose turn it is, `budget.py` how much a tick may do, `unfit.py` which requests need
no search; `verdict.py` is what comes out, `exclusions.py` why nodes are closed. `starvation.py`
keeps domains free for gangs that have waited too long; `absent_pods.py` bounds what is held for
pods that do not exist.
"""
