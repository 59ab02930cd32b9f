"""The books: what every node has, what runs there, what is reserved, and what objects say.

`books.py` is the only writer of capacity; `eligibility.py` says which nodes a pod may go to.
`objects.py` and `topologies.py` hold what vocabularies read. `assumed_pods.py` and
`rejected_pods.py` remember ordinary pods that passed /filter or were rejected there,
`node_refusals.py` the nodes that kube-scheduler does not offer.
"""
