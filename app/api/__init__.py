"""/v1, for people: what gangs there are, and why one of them waits.

Read `routes` (what is answered), `callers` (who is answered, and the dependencies that say what a
route takes) and `permissions` (what the API server says of him); then `events` and `stream` (what
changes, for those who follow) and `leader` (which Corral to ask). All of it reads, none of it
changes anything.
"""
