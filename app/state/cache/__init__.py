"""The books: what every node has, what runs there, what is reserved, and what objects say.

`books.py` is the only writer of capacity; `eligibility.py` says whether a pod may go to a node,
`node_table.py` to which. `objects.py` and `topologies.py` hold what vocabularies read,
`named_pods.py` the pods that objects name or may name, `kept_keys.py` the label keys that they
name. `assumed_pods.py` and `rejected_pods.py` remember ordinary pods that are being bound or were
rejected at /filter, `node_refusals.py` the nodes that kube-scheduler does not offer.
"""
