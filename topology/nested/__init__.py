"""A place for a gang whose groups lie inside groups.

A group with a level takes one domain of it inside the domain of its own group, and its members
are placed inside that one. Where a member finds no place, the walk takes back what it placed and
tries the next domain, within a counted budget. What a domain certainly cannot take is never tried.

Read in this order: `parts` (the gang as levels of one tree), `subtree` (one domain as a cluster of
its own), `estimates` (what each domain still takes, and which is best), `state` (what is placed
where), `repack` (the pod sets of one domain, packed anew for one more), `walk` (the search),
`surplus` (what is not needed, after it), `unplaced` and `complete` (the same for a gang of which
some pods stay), `recheck` (whether a place is still there).
"""
