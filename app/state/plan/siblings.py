"""The domains nearest to one: where a gang may find another home that loses its own."""

from __future__ import annotations

from collections.abc import Iterator

from app.state.cache.topology_books import TopologyBooks

MOST_LOOKED_AT = 16  # domains on either side, in the order of the tree


def nodes_beside(topology: TopologyBooks, level: str, node: str, room: int) -> tuple[str, ...]:
    """The nodes of whole domains of a level beside that of a node, the nearest first.

    The nearer two domains are, the narrower is the domain that both are in. `room`: so many nodes
    at most.
    """
    tree = topology.tree
    slot, depth = tree.slot_of.get(node), topology.levels.index(level)
    if slot is None:
        return ()
    own = int(tree.domain_of[depth][slot])
    found: list[str] = []
    for domain in _nearest(topology, depth, own):
        nodes = tree.nodes[tree.slots(depth, domain)]
        if len(nodes) <= room - len(found):
            found.extend(nodes)
    return tuple(found)


def _nearest(topology: TopologyBooks, depth: int, own: int) -> Iterator[int]:
    tree = topology.tree
    last = len(tree.starts[depth]) - 1
    here = tree.path(depth, own)
    others = [
        domain
        for domain in range(max(own - MOST_LOOKED_AT, 0), min(own + MOST_LOOKED_AT, last) + 1)
        if domain != own
    ]

    def farness(domain: int) -> tuple[int, int, int]:
        there = tree.path(depth, domain)
        shared = next(
            (at for at, (a, b) in enumerate(zip(here, there, strict=True)) if a != b), depth
        )
        return -shared, abs(domain - own), domain

    yield from sorted(others, key=farness)
