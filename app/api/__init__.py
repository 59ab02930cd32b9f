"""/v1, for people: what gangs there are, and why one of them waits.

Read `routes` (what is answered) and `access` (to whom); then `following` (what changes), `leader`
(which Corral to ask), `turns` (how many questions wait), `description` and `examples` (what /v1
says of itself). All of it reads, none of it changes anything.
"""
