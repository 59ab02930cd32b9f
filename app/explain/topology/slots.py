"""How many pods of a named shape fit, and in how large pieces: what operators watch over time.

    shape ──▶ pods each node takes ──▶ in all · in the best domain · in domains wholly free

Shapes ignore labels and taints: it is the cluster's room that is told, not one workload's. The
levels are those of the first topology that has any.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from app.explain.topology.usage import Wanted, vector_of
from app.state.cache.topology_books import TopologyBooks
from app.state.engine import Engine
from topology.fit.fit import pods_per_node


@dataclass(frozen=True, slots=True)
class LevelSlots:
    """One level's domains. Units: pods of the shape."""

    level: str
    most_free: int
    """In the domain that takes most of them."""
    fragmentation: float
    """Of those that fit anywhere, the share in domains that are not wholly free: 0 to 1."""


@dataclass(frozen=True, slots=True)
class Slots:
    """Units: pods of the shape."""

    shape: str
    free: int
    reserved: int
    """That would fit if nothing were reserved, and do not."""
    levels: tuple[LevelSlots, ...]


def slots_of(engine: Engine, shapes: Sequence[Wanted]) -> Iterator[Slots]:
    """The room for each shape now."""
    if not shapes:
        return
    engine.planner.refresh()
    books = engine.books
    named = (each for name, each in books.topologies.items() if name)
    topology = next(named, None) or next(iter(books.topologies.values()))
    for shape in shapes:
        yield _of_shape(shape, topology)


def _of_shape(shape: Wanted, topology: TopologyBooks) -> Slots:
    capacity, tree = topology.capacity, topology.tree
    request = vector_of(shape.request, capacity)
    if request is None:
        nothing = (LevelSlots(level, 0, 0.0) for level in tree.levels[:-1] if len(tree.nodes))
        return Slots(shape.name, 0, 0, tuple(nothing))
    unreserved = [
        free + held if amount else free
        for free, held, amount in zip(capacity.free_now, capacity.held, request, strict=True)
    ]
    free, without, empty = (
        np.where(capacity.is_open, pods_per_node(rows, request), 0)
        for rows in (capacity.free_now, unreserved, capacity.allocatable)
    )
    total = int(free.sum())
    levels = []
    for depth, level in enumerate(tree.levels[:-1] if len(tree.nodes) else ()):
        by_domain = np.add.reduceat(free, tree.starts[depth])
        is_whole = by_domain == np.add.reduceat(empty, tree.starts[depth])
        in_whole = int(by_domain[is_whole].sum())
        fragmentation = 1.0 - in_whole / total if total else 0.0
        levels.append(LevelSlots(level, int(by_domain.max()), fragmentation))
    return Slots(shape.name, total, int(without.sum()) - total, tuple(levels))
