"""Every input of the engine written down (`record.py`), played again (`replay.py`); `lines.py`.

`check.py` judges a journal without the engine: from what it says of gangs (`belonging.py`), of
where their pods are (`places.py`) and of domains (`tiers.py`), whether they are `together.py`.
"""
