"""Carry out Effects: the only place where Corral writes to the cluster.

`dispatch.py` sorts effects by kind; `bind.py`, `wake.py` and `report.py` each own one kind, a
bounded queue, and the clock that paces it. A failure here is an outcome or a metric, never an
exception that reaches the engine.
"""
