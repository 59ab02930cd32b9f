"""What autoscalers read in pods and nodes, and whether a pod may stand on a node.

Order to read: pods, rooms, seen.
"""
