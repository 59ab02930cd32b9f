"""Which of several Corrals acts: Leases, and the address behind which the one that holds one is.

`lease.py` reads the one of the kube-scheduler beside us, `own_lease.py` takes one of our own, and
`endpoint.py` has the Service lead to the Corral that leads.
"""
