"""The API server, seen from here: slim records in, a handful of writes out.

    transport ──lines──▶ reflector ──▶ decode ──Event──▶ the sink (app/state)
        ▲
    writes: bind, annotate, read back, record an event

Read in this order: `core/` (what we keep), `decoding/` (how it is read), `watch/` with `events.py`
and `reflector.py`, then of `client/` `transport.py` over `credentials.py` (the only importer of
kubernetes_asyncio), `writes.py`, and what its callers need: `work_queue.py` with `backoff.py`,
`deadline.py`, `lease.py`; `token.py`, where the credentials of a container are those of another
account than its pod's.
"""
