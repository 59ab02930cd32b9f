"""The API server, seen from here: slim records in, a handful of writes out.

    transport ──lines──▶ reflector ──▶ decode ──Event──▶ the sink (app/state)
        ▲
    writes: bind, annotate, read back, record an event

Read in this order: `core/` (what we keep), `decoding/` (how it is read), `watch/` with `events.py`
and `reflector.py`, `client/` (credentials, transport, writes and the queues before them), and
`leading/` (which replica writes).
"""
