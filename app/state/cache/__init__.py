"""The books: what every node has, what runs there, and what is reserved.

`books.py` is the only writer of capacity, `room.py` says what fits there. The books have a tree for
each topology (`topology_books.py`) and a row for each resource (`resource_rows.py`). `counting.py`
adds up what many pods request at once, `totals.py` what they request by namespace.
`part_counted.py` has the pods with more resources than are counted, `device_parts.py` what is left
of devices that pods share. `eligibility/` says to which nodes a pod may go, whatever is free there.
"""
