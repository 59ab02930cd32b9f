"""Carry out Effects: the only place where Corral writes to the cluster.

`dispatch.py` sorts effects by kind; `ungate.py`, `bind.py`, `wake.py`, `evict.py` and `report.py`
each own one kind: a handler of one item, and the bounds of the queue before it (order, pace and
tries are `app/kube/client/work_queue.py`). `audit.py` checks the books now and then. A failure here
is an outcome or a metric, never an exception that reaches the engine.
"""
