"""The HTTP surface: one route for all paths, lists in pages, watches as chunked answers.

A path is resolved to an `Address` and the method to a verb; then one of four answers: a list, a
watch, a single object, or a write that passes admission. `faults.py` is for tests: it delays,
refuses or drops requests and cuts watches on demand.

Read in this order: `api.py` (from request to answer), `addresses.py`, `listing.py`, `watching.py`,
`writing.py`, then `discovery.py`, `event_versions.py`, `faults.py` and `server.py` (the port).
"""
