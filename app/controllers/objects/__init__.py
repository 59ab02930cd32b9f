"""What is written to objects that are no pods.

`status.py` writes back what a vocabulary says of its gangs, `protect.py` annotates nodes that gangs
have places on, and `provisioning.py` makes the requests by which gangs ask for nodes. Two follow no
effects: `prerequisites.py` makes objects where they are absent, and `keep.py` keeps objects as the
labels of nodes are.
"""
