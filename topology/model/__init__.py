"""The nouns: a cluster, what is requested of it, and what a search answers.

A `Tree` is the shape of a cluster and never changes: nodes are slots, sorted so that every domain
of every level is one range of them. A `Capacity` is what those nodes have and what is taken, and
the only thing in this package that changes. A `Gang` is what is requested; a `Placement` or a
`NoFit` is the answer. Nothing here searches.

Read in this order: `resources` (rows of amounts, `device_rows` among them), `levels`, `tree`,
`capacity`, `request`, `answer`; `explicit_tree` builds trees from domains that list their members,
`changed/` a tree from the one before, and books as they would be.
"""
