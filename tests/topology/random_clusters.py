"""Small random clusters, for the tests that try all there is."""

from __future__ import annotations

import random
from collections.abc import Sequence

from tests.text import BLOCK, RACK
from topology import NODE_LEVEL, Capacity, ResourceAxis, Tree, build

LEVELS = (BLOCK, RACK, NODE_LEVEL)


def random_cluster(
    chance: random.Random,
    *,
    nodes_max: int,
    pods: Sequence[int],
    amount_max: int,
    open_share: float,
) -> tuple[Tree, Capacity]:
    """Up to two blocks of three racks; two resources, the first of which offers one of `pods`."""
    nodes = {
        f"n{node}": (chance.choice("ab"), chance.choice("xyz"), f"n{node}")
        for node in range(chance.randint(1, nodes_max))
    }
    tree = build(LEVELS, nodes, 1)
    capacity = Capacity(ResourceAxis(), tree)
    for slot in range(len(nodes)):
        offered = (chance.choice(pods), chance.randint(0, amount_max))
        capacity.set_node(slot, offered, is_open=chance.random() < open_share)
    return tree, capacity
