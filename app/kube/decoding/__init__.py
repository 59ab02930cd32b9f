"""JSON of the API server in, slim records out.

`decode.py` reads one object by the partial structs of `wire.py`, what a pod asks for by
`requests.py`, and to which nodes it may go by `shapes.py`. `template.py` reads a template as a pod
that is made from it. `large/` is for what tenants make large.
`label_keys.py` has the label keys that records keep, `named_labels.py` labels that a pod names for
itself, and `texts.py` what is kept of their texts.
"""
