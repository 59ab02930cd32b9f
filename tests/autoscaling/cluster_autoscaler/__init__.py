"""cluster-autoscaler: its loop, and what it asks in it.

Order to read: loop, scale_up, requests, scale_down.
"""
