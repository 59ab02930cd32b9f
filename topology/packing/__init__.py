"""Pods of several shapes on the same nodes, exactly: a packing, or a proof that there is none.

One shape alone is a division. Several shapes that compete for the same nodes are a hard problem,
so that cheap attempts come first: bounds that refute, a greedy that usually finds, a relaxation,
and a table that decides within a budget of array cells.

Read in this order: `pack` (the order of attempts), `patterns` (the reduced problem), `greedy`,
`table`, `solver` (optional, for what the tables are too small for).
"""
