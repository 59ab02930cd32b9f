"""What follows for gangs when nodes change or fail; `events.py` takes what the watch shows.

`invalidation.py` gives up plans that a node no longer allows, `repair.py` finds other nodes for
the members that run on a node that has failed.
"""
