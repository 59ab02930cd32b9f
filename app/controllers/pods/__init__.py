"""What is written to pods, in the order of a pod's life.

`ungate.py` takes our scheduling gate off and narrows the pod to its nodes; `wake.py` makes
kube-scheduler look at it again; `bind.py` binds it; `annotate.py` notes on it what its gang must
remember; `mark.py` says to node autoscalers that it needs a node; `evict.py` evicts or deletes it.
Every write names the pod's uid: a pod that is gone, or recreated under the same name, is an outcome
and no error.
"""
