"""What gates pods: `webhook.py`; `members.py` whom it is sent; `policies.py`, which take its place;
`canary.py` a pod that is never made.
"""
