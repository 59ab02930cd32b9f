"""JSON of the API server in, slim records out.

`decode.py` reads one object by the partial structs of `wire.py`, and what a pod asks for by
`requests.py`. What tenants make large is read by `large.py` and `containers.py` in pieces, and
`escapes.py` shortens it as it comes in. `label_keys.py` has the label keys that records keep.
"""
