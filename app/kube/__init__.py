"""The API server, seen from here: slim records in, a handful of writes out.

    transport ──lines──▶ reflector ──▶ decode ──Event──▶ the sink (app/state)
        ▲
    client: bind, annotate, read back, record an event

Read in this order: `objects.py` (what we keep), `events.py`, `decode.py` (how it is read:
`wire.py` holds the JSON shapes, `requests.py` and `quantity.py` the amounts), `reflector.py`,
`transport.py` over `credentials.py` (the only importer of kubernetes_asyncio), `client.py`.
"""
