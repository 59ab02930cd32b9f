"""Every input of the engine written down (`record.py`), played again (`replay.py`); `lines.py`.

A journal begins with what the engine knew (`dump.py`). `mirror.py` has the objects that one tells
of, and `rehearse.py` what an engine would decide of them. `checking` judges a journal without the
engine.
"""
