"""A simulated node autoscaler: what a waiting gang needs nodes from, where there is no cloud.

objects: what nodes are asked for by, and a short definition of ProvisioningRequests.
"""
