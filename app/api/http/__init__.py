"""What every route of /v1 needs.

`refusals` says why there is no answer, `leader` which Corral to ask instead, `turns` how many
questions wait; `tagged` sends nothing twice; `description` and `examples` are what /v1 says of
itself.
"""
