"""To which nodes a pod may go, by what it and the nodes say, whatever is free there.

`one_node.py` judges one node and has the reason, `node_table.py` over `columns.py` all nodes at
once. `node_refusals.py` remembers the nodes that kube-scheduler does not offer: it knows more.
"""
