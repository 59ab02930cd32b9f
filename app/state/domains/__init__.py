"""Domains that objects declare: who is in them, what is wrong with them, what is written back.

`topologies.py` has every named topology, `explicit.py` those whose domains name their members,
`node_claims.py` who names a node. `split_levels.py` tells which plans a change of levels ends.
`statuses.py` keeps the status of such objects.
"""
