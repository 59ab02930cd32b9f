"""Single pods, beside the books: those that wait, run in the way of others, or were told something.

`arrivals.py` says which pods /bind may be about, `assumed_pods.py` which ordinary ones are being
bound, `rejected_pods.py` which were rejected at /filter and have to be woken, `samples.py` how
often for another sample of the nodes. `nominations.py` are the nodes that kube-scheduler frees for
pods, `grants.py` the room that a preemption frees, `occupants.py` who runs where, and
`usual_requests.py` what running pods request of devices.
"""
