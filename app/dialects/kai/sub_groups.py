"""The tree of a PodGroup's sub-groups: which is inside which, and what each takes to start.

    PodGroup ─┬─ prefill            a sub-group with sub-groups says minSubGroup, or all of them
              │    ├─ prefill-0     a leaf says minMember
              │    └─ prefill-1
              └─ router

Pods are in leaves. A tree that is none is not read at all: the gang waits, and the pods say why.
Source: KAI-Scheduler pkg/apis/scheduling/v2alpha2/podgroup_webhook.go, pkg/scheduler/api/
podgroup_info/subgroup_info/factory.go (v0.13); minSubGroup as of v0.17.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from app.dialects.flaw import Flaw
from app.dialects.kai import constraints
from app.dialects.kai.constraints import TopologyConstraint
from app.dialects.rules import duplicate, forbidden, invalid, required, too_many, too_small
from app.dialects.spec import ANYWHERE, MOST_KINDS
from app.kube.decoding import wire
from topology.model.request import Constraint
from topology.nested.parts import DEPTH_MAX

# Inside one another. With the gang, the PodGroup and the leaf they are as deep as is searched.
MOST_DEPTH = DEPTH_MAX - 2
LONGEST_SUB_GROUP = 63  # characters: pods name it in a label
_NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?", re.ASCII)


@dataclass(frozen=True, slots=True)
class SubGroup:
    """One sub-group. `least` is pods of a leaf, and members of one that has some."""

    name: str
    parent: str = ""
    """"": the PodGroup itself."""
    least: int | None = None
    """None: all members."""
    constraint: Constraint = ANYWHERE
    is_leaf: bool = True


class WireSubGroup(wire.Wire):
    """One as the API server sends it."""

    name: wire.Text = None
    parent: wire.Text = None
    min_member: int | None = None
    min_sub_group: int | None = None
    topology_constraint: TopologyConstraint | None = None


def sub_groups_of(said: Sequence[WireSubGroup]) -> tuple[SubGroup, ...]:
    """The sub-groups, none of whose flaws is fatal."""
    parents = {_parent(each) for each in said}
    found = []
    for each in said:
        is_leaf = each.name not in parents
        # A leaf that says nothing needs one pod, as KAI reads it.
        least = (1 if each.min_member is None else each.min_member) if is_leaf else None
        found.append(
            SubGroup(
                each.name or "",
                _parent(each),
                least if is_leaf else each.min_sub_group,
                constraints.constraint_of(each.topology_constraint),
                is_leaf,
            )
        )
    return tuple(found)


def flaws_of(said: Sequence[WireSubGroup]) -> Iterator[Flaw]:
    """Every rule that the sub-groups break, each and together."""
    names = {each.name or "" for each in said}
    members = Counter(map(_parent, said))
    seen: set[str] = set()
    for at, each in enumerate(said):
        where, name = f"subGroups[{at}]", each.name or ""
        if name in seen:
            yield duplicate(f"{where}.name", name)
        elif len(name) > LONGEST_SUB_GROUP or not _NAME.fullmatch(name):
            yield invalid(f"{where}.name", name, "must be a lowercase DNS label of 63 characters")
        seen.add(name)
        if _parent(each) and _parent(each) not in names:
            yield invalid(f"{where}.parent", each.parent or "", "no sub-group has this name")
        yield from _least_flaws(each, members[name], where)
        yield from constraints.flaws_of(each.topology_constraint, f"{where}.topologyConstraint")
    yield from _cycles(said)
    yield from _depth_flaws(said)


def minimum_flaws(
    min_member: int | None, min_sub_group: int | None, members: int, where: str
) -> Iterator[Flaw]:
    """Every rule that the two minima break, of one that has so many sub-groups.

    `where`: the path of what says them, with "." at its end.
    """
    if min_member is not None and min_sub_group is not None:
        yield forbidden(f"{where}minSubGroup", "may not be set together with minMember")
    if min_member is not None and min_member < 0:
        yield too_small(f"{where}minMember", min_member, 0)
    if min_sub_group is None:
        return
    if min_sub_group < 1:
        yield too_small(f"{where}minSubGroup", min_sub_group, 1)
    elif not members and min_member is None:
        yield forbidden(f"{where}minSubGroup", "it has no sub-groups, minMember counts its pods")
    elif min_sub_group > members > 0:
        text = f"must not be greater than the number of its sub-groups, which is {members}"
        yield invalid(f"{where}minSubGroup", min_sub_group, text)


def leaf_flaws(said: Sequence[WireSubGroup], least: int | None) -> Iterator[Flaw]:
    """A flaw where more leaves have to have pods than one gang may have kinds of pods.

    `least`: the PodGroup's minSubGroup. It is read all the same: what runs is counted by it.
    """
    inside: dict[str, list[WireSubGroup]] = {}
    for each in said:
        inside.setdefault(_parent(each), []).append(each)

    def needed(name: str, least: int | None) -> int:
        """Leaves in a sub-group that have pods at least; each name is taken once."""
        members = inside.pop(name, ())
        counts = sorted(
            needed(each.name or "", each.min_sub_group)
            if each.name in inside
            else int(each.min_member != 0)
            for each in members
        )
        return sum(counts if least is None else counts[:least])

    leaves = needed("", least)
    if leaves > MOST_KINDS:
        what = "sub-groups that have to have pods"
        yield too_many("subGroups", leaves, MOST_KINDS, what, is_fatal=False)


def _least_flaws(each: WireSubGroup, members: int, where: str) -> Iterator[Flaw]:
    yield from minimum_flaws(each.min_member, each.min_sub_group, members, f"{where}.")
    is_alone = each.min_member is not None and each.min_sub_group is None
    if members and is_alone:
        text = "it has sub-groups, which its pods are in: minSubGroup counts those"
        yield forbidden(f"{where}.minMember", text)
    if not members and each.min_member is None and each.min_sub_group is None:
        yield required(f"{where}.minMember", "how many of its pods start together", is_fatal=False)


def _cycles(said: Sequence[WireSubGroup]) -> Iterator[Flaw]:
    """One flaw for each circle of parents, at its first sub-group."""
    parent_of = {each.name or "": _parent(each) for each in said}
    at_of = {each.name or "": at for at, each in reversed(list(enumerate(said)))}
    ends: set[str] = {""}  # from here one comes to the PodGroup, or to a circle that is told
    for first in parent_of:
        path: dict[str, None] = {}
        name = first
        while name not in ends and name not in path and name in parent_of:
            path[name] = None
            name = parent_of[name]
        if name in path:
            circle = list(path)[list(path).index(name) :]
            at = min(at_of[each] for each in circle)
            text = "it is inside itself: " + " in ".join([*circle[:4], *["…"] * (len(circle) > 4)])
            yield invalid(f"subGroups[{at}].parent", said[at].parent or "", text)
        ends.update(path)


def _depth_flaws(said: Sequence[WireSubGroup]) -> Iterator[Flaw]:
    """One flaw where sub-groups are inside more of them than are searched; circles are no depth."""
    parent_of = {each.name or "": _parent(each) for each in said}
    for at, each in enumerate(said):
        depth, name = 0, each.name or ""
        while name in parent_of and depth <= MOST_DEPTH:
            depth, name = depth + 1, parent_of[name]
        if depth > MOST_DEPTH and not name:
            text = f"sub-groups are inside one another {depth} deep, and {MOST_DEPTH} are read"
            yield invalid(f"subGroups[{at}].parent", each.parent or "", text)
            return


def _parent(each: WireSubGroup) -> str:
    return (each.parent or "").lower()  # as KAI looks it up
