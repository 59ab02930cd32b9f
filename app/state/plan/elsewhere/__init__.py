"""A search that takes the loop too long goes on in a thread.

`search_on.py` says whose, `long_search.py` what is searched, and what the answer holds for.
"""
