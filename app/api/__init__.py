"""/v1, for people: what gangs there are, and why one of them waits.

Read `routes` (what is answered) and `access` (to whom); then `following` (what changes), `topology`
and `map` (nodes, in sums and one by one), `decisions` (what was decided last), `leader` (which
Corral to ask), `refusals` (what one says that cannot answer), `turns` (how many questions wait),
`tagged` (what is not sent twice), `description` and `examples` (what /v1 says of itself). `page`
shows all that in a browser. All of it reads, none of it changes anything.
"""
