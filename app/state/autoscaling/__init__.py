"""Nodes that do not exist yet: what waiting gangs ask node autoscalers for, in their own words.

Who gets the nodes is decided by the planner, as ever.

Read in this order: `otherwise` (what would fit, if), `marks` (which gangs ask, by conditions of
their pods), `requests` with `shown_requests`, `request_turns`, `asking` and `useless_nodes` (those
that ask by an object instead), `new_nodes` (for whom nodes that come are kept), `held_nodes` (which
nodes are not to go).
"""
