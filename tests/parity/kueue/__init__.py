"""Kueue: what its topology-aware scheduling decides, as its tests and a random driver record it."""
