"""From members to nodes: `pod_sets.py` (what is to be placed) ──▶ `request.py` (the question to the
placement core) ──▶ `assignment.py` (which member gets which node); `planner.py` runs the search.

`queue.py` is whose turn it is, `verdict.py` what comes out, `exclusions.py` why nodes are closed;
`starvation.py` keeps domains free for gangs that have waited too long.
"""
