"""Who belongs to a gang: `membership.py` sorts its pods out, `gang.py` is its memory and phases."""
