"""What kube-scheduler is answered.

`filtering.py` is /filter for members of gangs, `ordinary.py` for other pods; `scoring.py` is
/prioritize, `bind_requests.py` /bind. `hypothetical.py` answers who is not kube-scheduler.
"""
