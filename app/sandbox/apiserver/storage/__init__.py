"""Objects and their versions: what etcd and the watch cache are together, and the API's formats.

Every write of any kind gets the next resourceVersion and one entry in the log of its resource; a
list at an older version and a watch that resumes are both read from that log. Objects are plain
JSON and never changed once they are stored. Patches and selectors are pure functions over them.

Read in this order: `kinds.py` (what is served), `store.py` (versions, log and subscribers),
`failures.py` (refusals as Status objects), then `patch.py`, `json_patch.py` and `selectors.py`.
"""
