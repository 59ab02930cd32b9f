"""What pods leave on a node that no usual pod can use.

Read in this order: `growth` (how much more a pod would leave), `devices` (the same where pods share
devices), `known` (that growth on every node, found anew only where a node has changed).
"""
