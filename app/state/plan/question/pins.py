"""Which nodes settled members leave to those that are to be placed: a range of slots each.

A constraint that they share (`Around`) holds for both, so the rest has to be in the domain where
the settled ones are: of the narrowest level that they prefer first, of the required one at last.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Mapping

import numpy as np

from app.dialects.nvlink import level_value
from app.kube.core.objects import NodeRecord
from app.state.cache.topology_books import TopologyBooks
from app.state.plan.question.pod_sets import Around, PodSetMembers
from topology.model.tree import Tree

Nodes = Mapping[str, NodeRecord]


def pins(
    pod_sets: tuple[PodSetMembers, ...], topology: TopologyBooks, nodes: Nodes
) -> Iterator[tuple[slice | None, ...]]:
    """The slot ranges each pod set may use, narrowest first; None is everywhere."""
    # Pod sets of one kind share what is around them, and that may be thousands of nodes.
    around = {id(each): each for pod_set in pod_sets for each in pod_set.around}
    known = {key: _ranges(each, topology, nodes) for key, each in around.items()}
    ranges = [
        [found for each in pod_set.around if (found := known[id(each)])] for pod_set in pod_sets
    ]
    attempts = max((len(found) for each in ranges for found in each), default=1)
    for attempt in range(attempts):
        yield tuple(_narrowest(each, attempt) for each in ranges)


def _narrowest(ranges: list[list[slice | None]], attempt: int) -> slice | None:
    """Where all constraints hold that settled members share, at this attempt."""
    chosen: slice | None = None
    for found in ranges:
        pin = found[min(attempt, len(found) - 1)]
        if pin is None:
            continue
        if chosen is None:
            chosen = pin
        else:  # domains of one tree: nested, or apart, and then nothing is in both
            start = max(chosen.start, pin.start)
            chosen = slice(start, max(min(chosen.stop, pin.stop), start))
    return chosen


def range_of(around: Around, topology: TopologyBooks) -> slice | None:
    """The slots of the domain that a required level leaves; None: it is everywhere."""
    return next(iter(_ranges(around, topology, {})), None)


def is_held(around: Around, topology: TopologyBooks, nodes: Nodes) -> bool:
    """Whether members that share it are in a domain; on a node that has gone they are in none."""
    if around.is_across:
        return any(_paths(around, topology, nodes, around.constraint.required))
    return any(node in topology.tree.slot_of for node in around.nodes)


def _paths(
    around: Around, topology: TopologyBooks, nodes: Nodes, level: str | None
) -> Iterator[tuple[str, ...]]:
    """The domain of each of its nodes, down to a level, by the labels that it has."""
    above = topology.levels[: topology.levels.index(level) + 1] if level else ()
    for name in around.nodes:
        path = tuple(level_value(nodes[name].labels, key) for key in above if name in nodes)
        if path and all(path):
            yield path


def _across(around: Around, topology: TopologyBooks, nodes: Nodes) -> list[slice | None]:
    """The slots of the domain that most of its nodes are in, of the level that is required."""
    paths = Counter(_paths(around, topology, nodes, around.constraint.required))
    if not paths:
        return []
    chosen = min(paths, key=lambda path: (-paths[path], path))
    return [slots_of(topology.tree, chosen)]


def slots_of(tree: Tree, path: tuple[str, ...]) -> slice:
    """The slots of a domain by its path, none if it has no node there."""
    depth = len(path) - 1
    domains = range(len(tree.starts[depth]))  # in the order of their paths
    at = bisect_left(domains, path, key=lambda domain: tree.path(depth, domain))
    is_there = at < len(domains) and tree.path(depth, at) == path
    return tree.slots(depth, at) if is_there else slice(0, 0)


def _ranges(around: Around, topology: TopologyBooks, nodes: Nodes) -> list[slice | None]:
    if around.is_across:
        return _across(around, topology, nodes)
    tree, constraint = topology.tree, around.constraint
    slots = [slot for node in around.nodes if (slot := tree.slot_of.get(node)) is not None]
    if not slots or not (constraint.required or constraint.preferred):
        return []
    narrowest = topology.levels.index(constraint.preferred or constraint.required or "")
    widest = topology.levels.index(constraint.required) if constraint.required else 0
    ranges: list[slice | None] = []
    for level in range(narrowest, widest - 1, -1):
        # Where members run in several domains, the one with most of them; ties: the first.
        domain = int(np.bincount(tree.domain_of[level][slots]).argmax())
        ranges.append(tree.slots(level, domain))
    return ranges if constraint.required else [*ranges, None]


def kept_slots(pod_set: PodSetMembers, topology: TopologyBooks) -> tuple[tuple[int, int], ...]:
    """(slot, pods) of the members that fill the set's slices, if they are in this topology."""
    slot_of = topology.tree.slot_of
    slots = Counter(slot_of[node] for node in pod_set.kept if node in slot_of)
    return tuple(sorted(slots.items()))
