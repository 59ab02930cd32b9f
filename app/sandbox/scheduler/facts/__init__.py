"""What the scheduler knows: one record per pod, arrays over all nodes, and its configuration.

A pod is read once per version of it (`PodFacts`); a node is a column of the `NodeTable`, which also
keeps the sums of what bound and assumed pods use. `node_match.py` alone decides whether labels,
names and taints match.

Read in this order: `pod_facts.py`, `node_table.py`, `node_match.py`, `scheduler_config.py`.
"""
