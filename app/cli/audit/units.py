"""Which pods of a gang share which constraint.

    groups_of   each group of its spec, the root first, with the pods in it
    units_of    pod sets that have a constraint of their own; a leader and its workers share one

Pods of one leaf that differ in request or shape are two pod sets, as Kueue tells them apart. They
are one unit if their leaf has a name: to its owner they are one pod set, whatever webhooks have
made of some of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from app.cli.audit.gathering import RunningGang, Seen
from app.dialects.spec import ANYWHERE, GroupSpec, LeafSpec
from topology.model.request import Constraint, Slice

GANG = "gang"


@dataclass(frozen=True, slots=True)
class Unit:
    """Pods that share a constraint of their own: a pod set, or a leader and its workers."""

    name: str
    constraint: Constraint
    sets: tuple[tuple[Seen, ...], ...]
    """The pods of each pod set in it."""
    slices: tuple[tuple[Slice, ...], ...]
    """Of each pod set."""
    leader: int | None = None
    """Which of the pod sets is the leader."""

    @property
    def workers(self) -> tuple[Seen, ...]:
        """All pods but the leader."""
        return tuple(
            each for at, pods in enumerate(self.sets) if at != self.leader for each in pods
        )


def running(pods: Iterable[Seen]) -> list[Seen]:
    """Those that have a node and are not being deleted."""
    return [each for each in pods if each.state == "runs"]


def levels_of(constraint: Constraint) -> Iterator[str]:
    """The levels that a constraint names."""
    return (each for each in (constraint.required, constraint.preferred) if each)


def groups_of(gang: RunningGang) -> Iterator[tuple[str, Constraint, list[Seen]]]:
    """Each group with a constraint, the root first, and the pods in it that run."""
    if gang.spec is None:
        return
    inside: dict[int, list[Seen]] = {}
    paths: dict[str, tuple[GroupSpec, ...]] = {}
    for each in running(gang.pods):
        if each.flaw:
            continue
        path = paths.get(each.leaf)
        if path is None:
            path = paths[each.leaf] = gang.spec.path_to(each.leaf)
        for group in path:
            inside.setdefault(id(group), []).append(each)
    waiting: list[tuple[GroupSpec, str]] = [(gang.spec.root, GANG)]
    while waiting:
        group, name = waiting.pop(0)
        pods = inside.get(id(group), [])
        if pods and group.constraint != ANYWHERE:
            yield name, group.constraint, pods
        waiting.extend(
            (each, f"group {each.name}") for each in group.members if isinstance(each, GroupSpec)
        )


def units_of(gang: RunningGang) -> list[Unit]:
    """The pods that run as pod sets, and those of one pod set group as a leader and its workers."""
    declared: dict[str, LeafSpec] = {}
    if gang.spec is not None and not gang.spec.is_said:
        declared = {each.name: each for each in gang.spec.leaves() if each.constraint is not None}
    found: dict[object, dict[object, list[Seen]]] = {}
    for each in running(gang.pods):
        if not each.flaw:
            unit = each.said.pod_set_group or _together(each)
            found.setdefault(unit, {}).setdefault(each.role, []).append(each)
    return [_unit(key, tuple(sets.values()), declared) for key, sets in found.items()]


def _together(one: Seen) -> object:
    """Equal for pods with one constraint between them, as the engine has it in `pod_sets.py`."""
    return (one.leaf, one.said.constraint) if one.leaf else one.role


def _unit(key: object, sets: Sequence[list[Seen]], declared: Mapping[str, LeafSpec]) -> Unit:
    first = sets[0][0]
    leaf = declared.get(first.leaf)
    constraint = leaf.constraint if leaf is not None and leaf.constraint else first.said.constraint
    slices = []
    for pods in sets:
        its = declared.get(pods[0].leaf)
        slices.append(pods[0].said.slices if its is None else its.slices)
    leader = None
    if isinstance(key, str) and len(sets) > 1:
        name = f"pod set group {key}"
        # Of two single pods the second is the leader, as in Kueue.
        leader = min(reversed(range(len(sets))), key=lambda at: len(sets[at]))
    else:
        name = f"pod set {first.leaf}" if first.leaf else "pod set"
    return Unit(name, constraint, tuple(map(tuple, sets)), tuple(slices), leader)
