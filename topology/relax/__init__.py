"""What would fit instead of a gang that does not.

Each relaxation changes one thing: a wider level, fewer pods or groups, nodes that return. Every one
that is reported was placed by the search itself. The number of searches has a bound.

Read in this order: `relax` (the kinds of relaxations), `feasibility` (the search within a budget),
`fewest` (as few nodes as will do), `anywhere` (nothing holds the pods together).
"""
