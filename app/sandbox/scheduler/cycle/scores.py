"""A modest part of the in-tree scores: LeastAllocated and BalancedAllocation, 0..100 each.

Left out: taints, preferred affinity, spreading and images, which score alike on plain nodes.
"""

from __future__ import annotations

import numpy as np

from app.sandbox.scheduler.facts.node_table import Columns, Counts, NodeTable
from app.sandbox.scheduler.facts.pod_facts import PodFacts

_MAX = 100  # MaxNodeScore


def in_tree_scores(table: NodeTable, facts: PodFacts, columns: Columns) -> Counts:
    """The sum of both scores per node.

    Shapes: columns (C,) -> (C,).
    Source: noderesources/least_allocated.go, balanced_allocation.go.
    """
    rows = np.array([table.rows["cpu"], table.rows["memory"]], np.intp)
    total = table.allocatable[np.ix_(rows, columns)]
    asked = table.scored[:, columns] + np.array(facts.scored, np.int64)[:, None]
    safe = np.maximum(total, 1)
    free = np.where((total > 0) & (asked <= total), (total - asked) * _MAX // safe, 0)
    least = free.sum(axis=0) // 2
    share = np.minimum(asked / safe, 1.0)
    # The standard deviation of two numbers is half their distance.
    balanced = ((1.0 - np.abs(share[0] - share[1]) / 2.0) * _MAX).astype(np.int64)
    scores: Counts = least + balanced
    return scores
