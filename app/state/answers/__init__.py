"""What kube-scheduler is answered.

`filtering/` is /filter; `scoring.py` is /prioritize, with `room_for_usual.py`; `preempting.py` is
/preempt, with `victim_cost.py`; `bind_requests.py` is /bind. `kept_nodes.py` has the nodes that
ordinary pods do not get. `hypothetical.py` answers who is not kube-scheduler.
"""
