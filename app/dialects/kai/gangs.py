"""What a PodGroup declares, as a gang's spec.

    PodGroup, topologyConstraint ─┬─ sub-group with sub-groups, topologyConstraint ─┬─ leaf
                                  │   minSubGroup of its members                    └─ leaf
                                  └─ leaf, topologyConstraint: minMember of its pods

A PodGroup says how many pods it takes to start and not how many there are: its pods are those that
exist, and those beyond what it takes are placed one by one, as far as they fit where the others
are. Of a leaf that takes none, whichever fit are placed.
Source: KAI-Scheduler pkg/scheduler/api/podgroup_info/allocation_info.go (v0.13).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from app.dialects.kai.pod_groups import PodGroupRecord
from app.dialects.kai.segments import SEPARATOR
from app.dialects.kai.sub_groups import SubGroup
from app.dialects.kai.topology import topology_name
from app.dialects.rules import whole_number
from app.dialects.spec import (
    ANYWHERE,
    GangKey,
    GangSpec,
    GroupSpec,
    LeafPods,
    LeafSpec,
    Lifecycle,
    Said,
    SearchPolicy,
    ends_together,
)
from topology.model.request import DomainOrder

POLICY = SearchPolicy(order=DomainOrder.TOPMOST, floor_first=True)
MOST_SEGMENTS = 256  # that have pods; no gang is placed that has pods of so many kinds

Member = GroupSpec | LeafSpec


def spec_of(
    key: GangKey, group: PodGroupRecord, said: Sequence[Said], pods: Mapping[str, LeafPods]
) -> GangSpec:
    """The spec of a PodGroup of which there are these pods, by leaf."""
    if group.sub_groups:
        members = _members("", _by_parent(group.sub_groups), pods)
        needed = group.least
    else:
        members, needed = _segments(group.least or 0, said, pods), None
    return GangSpec(
        key,
        GroupSpec(key.name, members, group.constraint, needed=needed),
        f"PodGroup {key}",
        parts_are="spec.subGroups" if group.sub_groups else "",
        topology=_topology(group),
        join=group.join,
        parts=group.parts,
        policy=POLICY,
        lifecycle=Lifecycle(
            counts_succeeded=True,
            ends_together=ends_together(said),
            repairs_together=True,  # a leaf that lacks pods is tried with all of them
        ),
    )


def _topology(group: PodGroupRecord) -> str | None:
    if group.parts:
        return None
    if group.join is not None:
        return group.join.name
    return topology_name(group.topology) if group.topology else None


def _by_parent(sub_groups: Iterable[SubGroup]) -> dict[str, list[SubGroup]]:
    found: dict[str, list[SubGroup]] = {}
    for each in sub_groups:
        found.setdefault(each.parent, []).append(each)
    return found


def _members(
    parent: str, inside: Mapping[str, Sequence[SubGroup]], pods: Mapping[str, LeafPods]
) -> tuple[Member, ...]:
    """What is in a sub-group, in the order in which it is written; "": in the PodGroup."""
    return tuple(_member(each, inside, pods) for each in inside[parent])


def _member(
    each: SubGroup, inside: Mapping[str, Sequence[SubGroup]], pods: Mapping[str, LeafPods]
) -> Member:
    if not each.is_leaf:
        return GroupSpec(
            each.name, _members(each.name, inside, pods), each.constraint, needed=each.least
        )
    leaf = _leaf(each.name, each.least or 0, pods)
    # The pods of a leaf may differ, and are in one domain all the same: as the members of a group.
    return leaf if each.constraint == ANYWHERE else GroupSpec(each.name, (leaf,), each.constraint)


def _leaf(name: str, least: int, pods: Mapping[str, LeafPods]) -> LeafSpec:
    there = pods[name].pods if name in pods else 0
    return LeafSpec(name, max(there, least), needed=least)


def _segments(least: int, said: Sequence[Said], pods: Mapping[str, LeafPods]) -> tuple[Member, ...]:
    """The segments that have pods, and a leaf for all other pods, if it takes or has any."""
    segments = {leaf.name: leaf for each in said for leaf in each.leaves if leaf.name in pods}
    if not segments or len(segments) > MOST_SEGMENTS:
        # Too many are one: its pods are in a domain of the level of the first.
        constraint = next((each.constraint for each in segments.values()), None)
        there = sum(each.pods for each in pods.values())
        leaf = LeafSpec("", max(there, least), needed=least)
        return (leaf,) if constraint is None else (GroupSpec("", (leaf,), constraint),)
    others = sum(its.pods for name, its in pods.items() if name not in segments)
    left = least - min(others, least)
    members: list[Member] = []
    for name in sorted(segments, key=_number):
        segment = segments[name]
        needed = min(segment.pods, left)
        left -= needed
        leaf = LeafSpec(name, max(pods[name].pods, needed), needed=needed)
        members.append(GroupSpec(name, (leaf,), segment.constraint or ANYWHERE))
    needed = min(others, least) + left
    if others or needed:
        members.insert(0, LeafSpec("", max(others, needed), needed=needed))
    return tuple(members)


def _number(segment: str) -> tuple[int, str]:
    return whole_number(segment.rpartition(SEPARATOR)[2]) or 0, segment
