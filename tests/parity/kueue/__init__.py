"""Kueue: what its topology-aware scheduling decides, as its tests and a random driver record it.

`cases.py` is the format. `core/` asks the placement core in Kueue's way, `product/` writes the
objects; each has its own table of differences, `core/deviations.py` and `product/changes.py`.
"""
