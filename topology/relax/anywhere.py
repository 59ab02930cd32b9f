"""The same pods without anything that holds them together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from topology.model.request import Constraint, Gang, Group, PodSet


def anywhere(gang: Gang) -> Gang:
    """The gang as pods that may each run on any node: no levels, no slices, no leaders."""
    return replace(gang, root=_group(gang.root))


def part_anywhere(gang: Gang, pods: Mapping[str, int]) -> Gang:
    """So many pods of each of these pod sets and leaders, and all needed. Raises: InvalidRequest.

    `pods`: by name; of those that are not named there are none.
    """
    found = list[PodSet]()
    for pod_set in gang.pod_sets():
        for each in (pod_set, pod_set.leader):
            if each is not None and (number := pods.get(each.name)):
                found.append(
                    PodSet(each.name, number, each.request, each.shape, lacking=each.lacking)
                )
    return replace(gang, root=Group(gang.root.name, tuple(found)))


def _group(group: Group) -> Group:
    members = tuple(
        _group(each) if isinstance(each, Group) else _apart(each) for each in group.members
    )
    return replace(group, constraint=Constraint(), members=members)


def _apart(pod_set: PodSet) -> Group | PodSet:
    """The pod set; with its leader beside it, if it has one."""
    alone = replace(pod_set, constraint=Constraint(), slices=(), leader=None)
    leader = pod_set.leader
    if leader is None:
        return alone
    beside = PodSet(leader.name, 1, leader.request, leader.shape, lacking=leader.lacking)
    return Group(f"{pod_set.name} and {leader.name}", (beside, alone))
