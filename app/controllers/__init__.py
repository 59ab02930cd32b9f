"""Carry out Effects: the only place where Corral writes to the cluster.

`dispatch.py` sorts effects by kind. `pods/` writes to pods, `objects/` to other objects, and
`report.py` writes Events; `questions.py` searches in a thread. Each controller owns one kind of
effect: it carries out one item, and bounds the queue before it (`app/kube/client/queue/` has order,
pace and tries). `writers.py` wires all of them. `audit.py` checks the books now and then. A failure
here is an outcome or a metric, never an exception that reaches the engine.
"""
