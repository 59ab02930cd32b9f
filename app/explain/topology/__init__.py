"""Domains and nodes for people: what they have, what is taken of it, and by whom.

`map.py` draws every node and its gangs, `usage.py` adds domains up, `slots.py` counts the pods of a
named shape that would fit, and `node.py` tells of one node. `map_view.py` and `usage_view.py` are
what /v1 answers.
"""
