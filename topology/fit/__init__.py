"""How much of one unit fits where, and which domain comes first.

A search divides the free amounts of every node by the request once, and adds up level by level:
that is the fit of each domain. One module breaks all ties, so that equal inputs give equal
answers, and one fills domains in the order it gives.

Read in this order: `unit` (what is placed in one go), `view` (the capacity as one search sees
it), `fit` (the counts), `order` (the ties), `fill` (how much each domain gets). For ordinary pods
alone are `use` and `utilization` (how full the domains around each node are); `seen` finds the
nodes that have changed.
"""
