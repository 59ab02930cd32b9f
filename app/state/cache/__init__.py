"""The books: what every node has, what runs there, what is reserved, and what objects say.

`books.py` is the only writer of capacity; `eligibility.py` says which nodes a pod may go to.
`objects.py` and `topologies.py` hold what vocabularies read; `assumed_pods.py`, `rejected_pods.py`
and `node_refusals.py` remember what kube-scheduler was told, or said itself, for a while.
"""
