"""One kind of objects, mirrored: a list page by page, then each change as it comes.

Read in this order: `events.py` (what the sink is told), `resource.py` (where objects of a kind are,
and how they are read), `versions.py` (which of two is newer), `pages.py` (the list), `reflector.py`
(list, watch, and list again when the watch is lost).
"""
