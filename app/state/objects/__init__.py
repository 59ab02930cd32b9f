"""What the objects of the vocabularies say, as the watch shows them.

`declared.py` has the gangs that they declare, `budgets.py` how many pods may be evicted, `pools.py`
what gangs may have together, `device_classes.py` which resources no node counts. `kept_keys.py` has
the label keys of pods that objects name, and `pod_lists.py` says when pods are read again for their
sake. `kept_objects.py` stands beside the engine: which objects that follow from the labels of nodes
are to be written, and when.
"""
