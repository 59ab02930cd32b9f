"""Carry out Effects: the only place where Corral writes to the cluster.

`dispatch.py` sorts effects by kind; `ungate.py`, `bind.py`, `wake.py`, `evict.py` and `report.py`
each own one kind, a bounded queue, and the clock that paces it. `audit.py` checks the books now and
then. A failure here is an outcome or a metric, never an exception that reaches the engine.
"""
