"""Whose turn it is to be planned (`queue.py`), and how much a tick may do (`budget.py`).

`later.py` has what is looked at at a time of its own, `pieces.py` long lists a piece at a time.
"""
