"""Domains that objects declare: who is in them, what is wrong with them, what is written back.

`topologies.py` has every named topology, `explicit.py` those whose domains name their members with
`tiers.py` in place of levels, `joined.py` those that gangs name together. `node_claims.py` says who
names a node, `named_levels.py` which levels objects name. `split_levels.py` tells which plans a
change of levels ends. `statuses.py` keeps the status of such objects.
"""
