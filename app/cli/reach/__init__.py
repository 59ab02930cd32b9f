"""How a command reaches a running Corral, without setup where kubectl reaches the cluster.

    --server URL         that address; over https with a token, if one is named
    nothing              the cluster of kubectl's current context, through `kubectl port-forward`
    no kubeconfig        127.0.0.1:8888: in Corral's own pod, or beside `corral serve`

`options.py` gives a command the options, `way.py` chooses, `forward.py` runs kubectl, `identity.py`
finds a token and an authority. A token goes to the address of --server alone: not to a port that
was forwarded, not over plain HTTP, not where an answer redirects to.
"""
