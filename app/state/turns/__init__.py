"""Whose turn it is to be planned (`queue.py`), and how much a tick may do (`budget.py`)."""
