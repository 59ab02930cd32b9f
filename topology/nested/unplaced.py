"""What is still to be placed of a gang with groups in groups, beside pods of it that stay.

A pod set needs at least the pods that stay; only those that are missing need a place.
Members with pods that stay come before those without, since their pods are placed whatever
becomes of the others.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

from topology.fit.unit import Unit
from topology.model.tree import Tree
from topology.nested.parts import Kind, Part, grown, kind_of, least
from topology.pod_set.unplaced import Kept, by_domain, staying


def remaining(tree: Tree, part: Part, kept: Mapping[str, Kept]) -> Part:
    """The part as it is to be placed beside the kept pods."""
    if part.unit is None:
        members = [remaining(tree, member, kept) for member in part.members]
        members.sort(key=lambda member: not has_kept(member, kept))
        return replace(part, members=tuple(members), demand=least(tuple(members), part.needed))
    assert part.floor is not None, "a leaf has a floor"
    stays = staying(part.unit, kept)
    pods = max(part.floor.workers.pods, _whole(tree, part.unit, stays[part.unit.workers.name]))
    floor = part.unit
    if pods < part.unit.workers.pods:
        floor = grown(part.unit, pods)
    return replace(part, floor=floor, demand=_missing(floor, kept))


def has_kept(part: Part, kept: Mapping[str, Kept]) -> bool:
    """Whether any pod of a part stays where it is."""
    return bool(kept) and any(
        slots for leaf in part.leaves() if leaf.unit for slots in staying(leaf.unit, kept).values()
    )


def _whole(tree: Tree, unit: Unit, stays: Kept) -> int:
    """The fewest pods that make whole slices of those that stay."""
    size = unit.layers.size
    return sum(
        -(-pods // size) * size for pods in by_domain(tree, unit.layers.level, stays).values()
    )


def _missing(unit: Unit, kept: Mapping[str, Kept]) -> tuple[tuple[Kind, int], ...]:
    """Pods of each kind that have no place yet."""
    stays = staying(unit, kept)
    missing: Counter[Kind] = Counter()
    for one in unit.pod_sets:
        missing[kind_of(one)] += one.pods - sum(pods for _, pods in stays[one.name])
    return tuple((kind, pods) for kind, pods in missing.items() if pods)
