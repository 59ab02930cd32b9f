"""From chosen domains down to nodes, and from pods to nodes.

domains of a level ──down──▶ pods per slot ──assignment──▶ slot of each rank
"""

from __future__ import annotations

import numpy as np

from topology import fit, order
from topology.answer import PodSetPlacement
from topology.resources import Counts, Rows
from topology.tree import Tree


def down(
    tree: Tree, pods_per_node: Counts, level: int, domains: Rows, pods: int
) -> tuple[Rows, Counts]:
    """Spreads pods over nodes inside domains that together take them.

    One level at a time, over all children of all chosen domains together: how many pods a
    domain was chosen for does not bind its children.
    Shapes: pods_per_node (N,), domains ascending -> slots ascending, pods on each.
    Source: kueue.md 2.7, step A.
    """
    while level < tree.node_level - 1:
        domains = tree.children(level, domains)
        level += 1
        taken = order.most_free_first(fit.sum_over(tree, pods_per_node, level, domains), pods)
        domains = domains[taken > 0]
    slots = domains if level == tree.node_level else tree.children(level, domains)
    taken = order.most_free_first(pods_per_node[slots], pods)
    is_used = taken > 0
    return slots[is_used], taken[is_used]


def assignment(placement: PodSetPlacement) -> Rows:
    """The slot of each rank: ranks fill the slots in slot order, so neighbours stay together.

    Shapes: (pods,).
    """
    slots = np.array([slot for slot, _ in placement.slots], dtype=np.intp)
    return np.repeat(slots, [pods for _, pods in placement.slots])
