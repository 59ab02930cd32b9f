"""What is said to the API server: who says it, how it gets there, and how long it may take.

Read in this order: `transport.py` over `credentials.py` (the only importer of kubernetes_asyncio;
`kubeconfig.py` has what its loader does otherwise than kubectl),
`writes.py` (what Corral changes) and `reviews.py` (what a user may do), then what their callers
need: `deadline.py`, `backoff.py`, `queue/` (the order of writes). `token.py` is for a container
whose credentials are those of another account than its pod's.
"""
