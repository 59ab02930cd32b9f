"""A place for one pod set, with its leader and slices, as Kueue places it.

The narrowest level is tried first: does one domain take all? If none does, the next wider level is
tried, up to the widest that is allowed. Inside the chosen domains the pods go down to nodes, and
from nodes to ranks.

Read in this order: `search` (which level and domains), `assign` (down to nodes), `balanced` with
`knapsack` (the same number in every domain), `fewest` (where a pod set needs the fewest domains;
the one choice that is not Kueue's), `unplaced` (pods that are missing beside pods that stay),
`ranks` with `gaps` (which pod goes to which node).
"""
