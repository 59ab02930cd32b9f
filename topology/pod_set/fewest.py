"""The domain in which a pod set needs the fewest domains of its preferred level.

    preferred switch, 12 pods:   r1 takes 12: 4 + 3 + 3 + 2      the tightest: four switches
                                 r2 takes 15: 10 + 5             two switches

Kueue takes the tightest domain. What is free in it may be in broken pieces, and then a pod set
that needs several domains of the preferred level needs more of them than elsewhere. Here each is
filled as it would be, and the one with the fewest pieces is taken.
"""

from __future__ import annotations

import numpy as np

from topology.fit import order
from topology.fit.fit import LevelFit
from topology.fit.unit import Unit
from topology.model.tree import Tree
from topology.pod_set import assign

MOST_TRIED = 64  # domains, the tightest first: each costs the way down


def domain(
    tree: Tree, fits: dict[int, LevelFit], unit: Unit, level: int, *, is_last_chance: bool
) -> int | None:
    """The best domain of a level, wider than the first one tried, that takes a whole unit.

    Order: fewest domains of the unit's first level; of equal ones those whose domains of it keep
    least free beside the unit; then the tightest, as `order.one_domain`.
    """
    best: tuple[int, int] | None = None
    chosen = None
    found = order.tightest_domains(
        fits[level], unit.slices, MOST_TRIED, is_last_chance=is_last_chance
    )
    for each in found.tolist():
        share = assign.down(tree, fits, unit, level, np.array([each], dtype=np.intp))
        if share is None:
            continue
        used = np.unique(tree.domain_of[unit.first][share.domains[share.pods > 0]])
        rank = (used.size, int(fits[unit.first].pods[used].sum()))
        if best is None or rank < best:
            best, chosen = rank, each
    return chosen
