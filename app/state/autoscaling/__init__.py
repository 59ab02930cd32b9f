"""Nodes that do not exist yet: what waiting gangs ask node autoscalers for, in their own words.

May see gang/, plan/, preempt/ and report/. Who gets the nodes is decided by the planner, as ever.
"""
