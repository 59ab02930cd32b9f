"""Who belongs to a gang.

`membership.py` sorts a gang's pods out, `minimum.py` says which of them it cannot start without,
`succeeded.py` remembers those that have ended well.
"""
