"""What /filter is answered: the planned node for a member of a gang, all free ones for other pods.

`members.py` is for members of gangs, `ordinary.py` for other pods; `sampling.py` says whether a
node that is missing was excluded, or not looked at.
"""
