"""The same pods without anything that holds them together."""

from __future__ import annotations

from dataclasses import replace

from topology.model.request import Constraint, Gang, Group, PodSet


def anywhere(gang: Gang) -> Gang:
    """The gang as pods that may each run on any node: no levels, no slices, no leaders."""
    return replace(gang, root=_group(gang.root))


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
