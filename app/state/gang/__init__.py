"""Who belongs to a gang, and what is known of it.

`membership.py` sorts a gang's pods out, `gang.py` is the record of one gang with its phases, and
`gangs.py` the store of all of them.
"""
