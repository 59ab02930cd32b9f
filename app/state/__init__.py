"""All memory that changes: plain functions over plain objects, no I/O, no clock, no await.

Read in this order: `engine.py` (what happens when), `gangs.py` (who waits for whom),
`planner.py` (whom to try next) between `roles.py` (what is asked for) and `seating.py` (who gets
which node), `cluster.py` (the books), `reservations.py`, `eligibility.py`.
"""
