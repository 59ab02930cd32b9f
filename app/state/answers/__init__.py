"""What kube-scheduler is answered.

`filtering.py` is /filter for members of gangs, `ordinary.py` for other pods; `scoring.py` is
/prioritize, with `room_for_usual.py`; `bind_requests.py` is /bind. `hypothetical.py` answers who is
not kube-scheduler.
"""
