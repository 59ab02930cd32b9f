"""What kube-scheduler's requests about pods are answered with.

`filtering.py` is /filter for members of gangs, `ordinary.py` for other pods; `scoring.py` is
/prioritize, `bind_requests.py` /bind.
"""
