"""Judges a journal without the engine (`check.py`): from what it says of gangs (`belonging.py`), of
where their pods are (`places.py`) and of domains (`tiers.py`), whether they are `together.py`; what
is found is in `findings.py`.
"""
