"""/v1, for people: what gangs there are, and why one of them waits.

Read `routes` (what is answered) and `access` (to whom); then `events` and `stream` (what changes,
for those who follow), `leader` (which Corral to ask), `description` and `examples` (what /v1 says
of itself). All of it reads, none of it changes anything.
"""
