"""How near the pods of a gang are to one another, measured by the levels that it prefers.

A part of a gang is its root, a group or a leaf that has a constraint. It is as near as it may be
when all of its pods are in one domain of the level that it prefers.

    level        below `required`, down to `preferred`; of a part that prefers none: `required`
    of a level   the share of the part's pods that are in the domain where most of them are
    of a part    the mean over its levels
    of a gang    the mean over the parts that prefer a level, each as often as it has pods; over
                 all that require one, if none prefers any

1.0 is the best placement there may be, as Grove defines its score; wider levels count as the
fallback that GREP-244 describes, from `preferred` up to `required`, one level at a time.
Source: grove scheduler/api/core/v1alpha1/podgang.go, PlacementScore and TopologyPackConstraint
(v0.1.0-alpha.8).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import numpy as np

from app.dialects.spec import GangSpec, GroupSpec, LeafSpec
from app.state.cache.topology_books import TopologyBooks
from app.state.gang.members import minimum
from app.state.gang.members.member import Member
from topology.model.request import Constraint

NodesByLeaf = Mapping[str, Sequence[str]]
"""The node of each pod, by leaf."""
TopologyOf = Callable[[str], TopologyBooks]
"""The topology of a leaf; it has its levels."""


def everywhere(topology: TopologyBooks) -> TopologyOf:
    """Of a gang that is on one topology."""
    return lambda _: topology


def pods_by_leaf(spec: GangSpec, members: Iterable[Member]) -> NodesByLeaf:
    """Where members that have a node are."""
    names = minimum.names_of(spec)
    found: dict[str, list[str]] = {}
    for each in members:
        found.setdefault(minimum.leaf_of(names, each.leaf), []).append(each.pod.node)
    return found


def planned_by_leaf(
    spec: GangSpec, members: Mapping[str, Member], nodes: Mapping[str, str]
) -> NodesByLeaf:
    """Where members are planned, by their uids."""
    names = minimum.names_of(spec)
    found: dict[str, list[str]] = {}
    for uid, node in nodes.items():
        if uid in members:
            found.setdefault(minimum.leaf_of(names, members[uid].leaf), []).append(node)
    return found


def places_of(
    nodes: Sequence[str], spec: GangSpec, topology: TopologyBooks
) -> Iterator[Sequence[str]]:
    """These nodes, then all in the same domains of the level that the gang as a whole has."""
    yield nodes
    level = spec.root.constraint.preferred or spec.root.constraint.required
    if level not in topology.levels:
        return
    domain_of, slot_of = (
        topology.tree.domain_of[topology.levels.index(level)],
        topology.tree.slot_of,
    )
    domains = {int(domain_of[slot_of[node]]) for node in nodes if node in slot_of}
    is_near = np.isin(domain_of, sorted(domains))
    yield [topology.tree.nodes[slot] for slot in np.flatnonzero(is_near)]


def nearness(spec: GangSpec, nodes: NodesByLeaf, topology_of: TopologyOf) -> float:
    """Of pods on these nodes, 0 to 1; 1 for a gang without levels."""
    parts = [part for part in _parts(spec, nodes, topology_of) if part[1].size]
    preferring = [part for part in parts if part[0].preferred]
    found = [(_of_part(*part), part[1].size) for part in preferring or parts]
    pods = sum(size for _, size in found)
    return sum(near * size for near, size in found) / pods if pods else 1.0


def _of_part(constraint: Constraint, slots: np.typing.NDArray[np.intp], on: TopologyBooks) -> float:
    """The mean over its levels of the share of its pods in the fullest domain."""
    required = -1 if constraint.required is None else on.levels.index(constraint.required)
    preferred = -1 if constraint.preferred is None else on.levels.index(constraint.preferred)
    levels = range(required + 1, preferred + 1) or range(required, required + 1)
    placed = slots[slots >= 0]
    shares = [
        np.bincount(on.tree.domain_of[level][placed]).max(initial=0) / slots.size
        for level in levels
    ]
    return float(sum(shares) / len(shares))


def _parts(
    spec: GangSpec, nodes: NodesByLeaf, topology_of: TopologyOf
) -> Iterator[tuple[Constraint, np.typing.NDArray[np.intp], TopologyBooks]]:
    """The constraint of each part that has one, the slots of its pods, -1: it has none, and where.

    Of a part that is on several topologies, the pods are looked for on that of its first leaf.
    """
    waiting: list[GroupSpec | LeafSpec] = [spec.root]
    while waiting:
        part = waiting.pop()
        if isinstance(part, GroupSpec):
            waiting.extend(part.members)
        if part.constraint and (part.constraint.required or part.constraint.preferred):
            its = [leaf for leaf in _leaves(part) if leaf in nodes]
            if its:
                on = topology_of(its[0])
                slot_of = on.tree.slot_of
                found = [slot_of.get(node, -1) for leaf in its for node in nodes[leaf]]
                yield part.constraint, np.array(found, dtype=np.intp), on


def _leaves(part: GroupSpec | LeafSpec) -> Iterator[str]:
    waiting = [part]
    while waiting:
        each = waiting.pop()
        if isinstance(each, LeafSpec):
            yield each.name
        else:
            waiting.extend(each.members)
