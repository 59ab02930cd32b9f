"""What Corral remembers of Kubernetes objects, and how what is large is read without a long pause.

`objects.py` has the records, `quantity.py` the numbers in them, `node_terms.py` what narrows a pod,
and `node_requirements.py` how much pods require of nodes.
`cached.py` bounds what is remembered of texts, `turns.py` and `aside.py` let others go on.
"""
