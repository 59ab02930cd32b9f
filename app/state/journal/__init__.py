"""Every input of the engine written down (`record.py`), played again (`replay.py`); `lines.py`.

`checking` judges a journal without the engine.
"""
