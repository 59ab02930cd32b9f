"""/v1, for people: what gangs there are, and why one of them waits.

Read `routes` (what is answered), `standing` (what each route is given) and `access` (to whom); then
`gangs` and `explanation`, which find gangs by `named`, `following` (what changes), `cluster` (the
nodes, in sums and one by one), `decisions` (what was decided last), `simulating` (what would
be), `dump` (all that is known) and `others` (pods that Corral keeps no record of). `http` has what
every route needs, and `page` shows all that in a browser. All of it reads, none of it changes
anything.
"""
