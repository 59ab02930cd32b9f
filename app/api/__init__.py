"""/v1, for people: what gangs there are, and why one of them waits.

Read `routes` (what is answered), then `callers` (who is answered). All of it reads, none of it
changes anything.
"""
