"""Who belongs to a gang.

A pod and its claim are a `member.py`; `membership.py` sorts a gang's members out, `minimum.py` says
which of them it cannot start without, `contradictions.py` why it is invalid, and `bounds.py` how
much one search looks at. `succeeded.py` remembers those that have ended well.
"""
