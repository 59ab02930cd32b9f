"""A recording of what a running Corral knows, with its journal, in place of the API server's lists.

`downloading.py` asks for the dump, `dumped.py` makes a recording and a journal of it, and
`manifests.py` writes what Corral remembers of pods and nodes as kubectl would.
"""
