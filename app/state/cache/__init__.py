"""The books: what every node has, what runs there, what is reserved, and what objects say.

`books.py` is the only writer of capacity; `eligibility.py` says whether a pod may go to a node,
`node_table.py` to which. `objects.py` holds what vocabularies read, `kept_keys.py` the label keys
that they name, `budgets.py` how many pods may be evicted, `pools.py` what gangs may have together.
`counting.py` adds up what many pods request at once. `part_counted.py` has the pods with more
resources than are counted, and `pod_lists.py` says when pods are read again. `device_parts.py` has
what is left of devices that pods share. `node_refusals.py` remembers the nodes that kube-scheduler
does not offer.
"""
