"""The books: what every node has, what runs there, and what is reserved.

`books.py` is the only writer of capacity, `room.py` says what fits there. The books have a tree for
each topology (`topology_books.py`) and a row for each resource (`resource_rows.py`).
`eligibility.py` says whether a pod may go to a node, `node_table.py` to which. `counting.py` adds
up what many pods request at once, `totals.py` what they request by namespace. `part_counted.py` has
the pods with more resources than are counted, `device_parts.py` what is left of devices that pods
share. `node_refusals.py` remembers the nodes that kube-scheduler does not offer.
"""
