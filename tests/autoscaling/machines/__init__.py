"""Where nodes come from: groups of like machines, how a machine becomes a node, and what is done.

Order to read: groups, actions, cloud.
"""
