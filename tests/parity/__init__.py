"""Parity: the peers' own recorded cases, asked of the placement core.

One folder per peer: `cases.py` reads its format, the rest translates. Each case is equal, or
differs on purpose (one table per peer, each entry with its reason), or is unexplained, which
fails the tests. The cases are not in this repository: without ../shared/conformance beside it,
the tests that need them are skipped.
"""
