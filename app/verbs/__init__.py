"""The four verbs in our own words: no JSON, no HTTP, no node lists decoded needlessly.

`filter.py`, `prioritize.py` and `preempt.py` answer from memory at once; `bind.py` holds a
request until its whole gang may start.
"""
