"""The API server, seen from here: slim records in, a handful of writes out.

    transport ──lines──▶ reflector ──▶ decode ──Event──▶ the sink (app/state)
        ▲
    writes: bind, annotate, read back, record an event

Read in this order: `objects.py` (what we keep), `events.py`, `decode.py` (how it is read: `wire.py`
holds the JSON shapes, `large.py` what is left out of a large object, `requests.py` and
`quantity.py` the amounts, `cached.py` bounds what is kept of them), `reflector.py`, `transport.py`
over `credentials.py` (the only importer of kubernetes_asyncio), `writes.py`, and what its callers
need: `work_queue.py` with `backoff.py`, `deadline.py`, `lease.py`; `token.py`, where the
credentials of a container are those of another account than its pod's.
"""
