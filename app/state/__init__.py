"""All memory that changes: plain functions over plain objects, no I/O, no clock, no await.

Read in this order: `engine.py` (what happens when), `gangs.py` (who waits for whom),
`planner.py` (whom to try next), `cluster.py` (the books), `reservations.py`, `eligibility.py`.
"""
