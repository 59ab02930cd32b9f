"""From members to nodes: `pod_sets.py` (what is to be placed) ──▶ `request.py` (the question to the
placement core) ──▶ `assignment.py` (who gets which node); `planner.py` decides whose turn it is.

`verdict.py` is what comes out, `exclusions.py` why nodes are closed, `starvation.py` keeps domains
free for gangs that have waited too long.
"""
