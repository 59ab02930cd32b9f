"""Parity: the peers' own recorded cases, and what Corral makes of them. Two figures for each file:

    core       the case in the placement core's words ─▶ its answer in the peer's
    product    the objects a user writes ─▶ watch, dialects, engine ─▶ what kube-scheduler is told

`tally.py` counts; `product.py` is the way through the app, for every peer alike; each peer has a
folder, of which `cases.py` reads its format and `peer.py` judges one case in either way. A case is
equal, or cannot be reached by any user, or differs on purpose (tables with a reason for each
entry), or is unexplained, which fails the tests.

The cases are not in this repository: without ../shared/conformance beside it, the tests that need
them are skipped. Any other file of the same format: `python -m benchmarks.conformance`.
"""
