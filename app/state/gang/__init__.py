"""Which pods belong to a gang, and what is known of it.

`members` sorts a gang's pods out, `lost_nodes.py` remembers what it had when a node of it failed.
`gang.py` is the record of one gang with its phases, `parts.py` has the parts of that record with
the file that writes each, and `gangs.py` is the store of all gangs. `reasons.py` has the word for
why a gang is where it is. `families.py` has gangs that are in one domain together, `last_places.py`
where gangs were for those that come in their place, and `owners.py` how many pods their controllers
may lose.
"""
