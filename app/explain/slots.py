"""How many pods of a named shape fit, and in how large pieces: what operators watch over time.

    shape ──▶ pods each node takes ──▶ in all · in the best domain · in domains wholly free

Shapes ignore labels and taints: it is the cluster's room that is told, not one workload's. The
levels are those of the first topology that has any.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from app.explain.usage import Wanted
from app.kube.core.objects import Amounts
from app.state.cache.books import TopologyBooks
from app.state.engine import Engine
from topology.fit.fit import pods_per_node
from topology.model.capacity import Capacity
from topology.model.resources import Counts


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
        yield _of_shape(shape, topology, books.axis.names)


def _of_shape(shape: Wanted, topology: TopologyBooks, resources: Sequence[str]) -> Slots:
    capacity, tree = topology.capacity, topology.tree
    asked = _asked(shape.request, resources[: len(capacity.free_now)])
    free = _fitting(capacity, capacity.free_now[asked.rows], asked)
    without = _fitting(capacity, capacity.free_now[asked.rows] + capacity.held[asked.rows], asked)
    empty = _fitting(capacity, capacity.allocatable[asked.rows], asked)
    total = int(free.sum())
    levels = []
    for depth, level in enumerate(tree.levels[:-1] if len(tree.nodes) else ()):
        by_domain = np.add.reduceat(free, tree.starts[depth])
        is_whole = by_domain == np.add.reduceat(empty, tree.starts[depth])
        in_whole = int(by_domain[is_whole].sum())
        fragmentation = 1.0 - in_whole / total if total else 0.0
        levels.append(LevelSlots(level, int(by_domain.max()), fragmentation))
    return Slots(shape.name, total, int(without.sum()) - total, tuple(levels))


@dataclass(frozen=True, slots=True)
class _Asked:
    """A request: the rows of its resources, and how much of each."""

    rows: list[int]
    amounts: list[int]
    is_known: bool
    """Some node has each of them."""


def _asked(request: Amounts, resources: Sequence[str]) -> _Asked:
    row_of = {name: row for row, name in enumerate(resources)}
    asked = [(name, amount) for name, amount in request if amount]
    known = [(row_of[name], amount) for name, amount in asked if name in row_of]
    rows, amounts = [row for row, _ in known], [amount for _, amount in known]
    return _Asked(rows, amounts, len(known) == len(asked))


def _fitting(capacity: Capacity, available: Counts, asked: _Asked) -> Counts:
    """How many such pods each open node takes if so much of it is available."""
    if not (asked.is_known and asked.rows):
        return np.zeros(capacity.is_open.shape, dtype=np.int64)
    return np.where(capacity.is_open, pods_per_node(available, asked.amounts), 0)
