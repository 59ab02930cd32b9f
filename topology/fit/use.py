"""How much of each domain is used: a share, of its scarcest resource.

what open nodes have, less what is free of it ──▶ share[D] per level
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from topology.fit.seen import Seen
from topology.model.capacity import Capacity
from topology.model.resources import Counts
from topology.model.tree import Tree

WHOLE = 1000  # shares are in thousandths: finer than a score, and exact in integers


def used_by_domain(tree: Tree, capacity: Capacity) -> list[Counts]:
    """The share of each domain that is used or held: of its scarcest resource, open nodes only.

    Shapes: per level (D,), of a tree with nodes.
    Units: thousandths, 0 to WHOLE.
    """
    return list(map(_shares, *_offered(tree, capacity), capacity.free_by_domain))


def _offered(tree: Tree, capacity: Capacity) -> tuple[list[Counts], list[list[int]]]:
    """What the open nodes of each domain have, and the most that one has of each resource.

    Rows of devices count for none: they are no resource beside that which they are of.
    Shapes: per level (R, D), and (R,).
    """
    nodes = np.clip(capacity.allocatable, 0, capacity.counted_max)
    nodes[:, ~capacity.is_open] = 0
    offered = [
        nodes if starts.size == nodes.shape[1] else np.add.reduceat(nodes, starts, axis=1)
        for starts in tree.starts
    ]
    most = [has.max(axis=1) for has in offered]
    for largest in most:
        largest[[row for row in capacity.axis.of_devices if row < largest.size]] = 0
    return offered, [largest.tolist() for largest in most]


def _shares(offered: Counts, most: Sequence[int], free: Counts) -> Counts:
    """The shares of some domains of a level, of which `offered` and `most` are as of `_offered`."""
    shares = np.zeros(offered.shape[1], dtype=np.int64)
    for row, largest in enumerate(most):
        if largest:
            # Large amounts lose low bits, or a thousand times them would leave an int64.
            shift = max(0, largest.bit_length() - 52)
            used = (offered[row] - free[row]) >> shift
            np.maximum(shares, used * WHOLE // np.maximum(offered[row] >> shift, 1), out=shares)
    return np.minimum(shares, WHOLE)


@dataclass(slots=True)
class KnownUse:
    """`used_by_domain` of the same nodes again and again; keeps what it would find again."""

    _capacity: Capacity | None = None
    _offers: int = 0  # of that capacity
    _offered: list[Counts] = field(default_factory=list)
    _most: list[list[int]] = field(default_factory=list)
    _seen: Seen = field(default_factory=Seen)
    _at: int = 0
    _found: list[Counts] = field(default_factory=list)

    def by_domain(self, tree: Tree, capacity: Capacity) -> list[Counts]:
        """The shares, of domains anew in which something has changed; only to be read."""
        self._seen.look([capacity.free_by_domain[tree.node_level]])
        if capacity is not self._capacity or capacity.offers != self._offers:
            self._capacity, self._offers = capacity, capacity.offers
            self._offered, self._most = _offered(tree, capacity)
            self._found = list(map(_shares, self._offered, self._most, capacity.free_by_domain))
        elif self._seen.now != self._at:
            slots = self._seen.since(self._at)
            for level, found in enumerate(self._found):
                domains = np.unique(tree.domain_of[level][slots])
                has, free = self._offered[level], capacity.free_by_domain[level]
                found[domains] = _shares(has[:, domains], self._most[level], free[:, domains])
        self._at = self._seen.now
        return self._found
