"""What a PodGang declares, as a gang's spec.

    PodGang, topologyConstraint ─┬─ group, topologyConstraint ─┬─ pod group, topologyConstraint
                                 │                             └─ pod group
                                 └─ pod group, topologyConstraint: minReplicas of its pods

A PodGang says how many pods it takes to start and not how many there are: its pods are those that
exist, and those beyond what it takes follow as they fit, where the required levels keep them. Of a
pod group that takes none, whichever fit are placed.

The PodGangs of one replica of a PodCliqueSet are a family: that PodCliqueSet's level is on the
first of them alone, and holds for all.
Source: grove scheduler/api/core/v1alpha1/podgang.go, MinReplicas (v0.1.0-alpha.8).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from app.dialects.grove import keys
from app.dialects.grove.pod_gangs import PodGangRecord, PodGroup
from app.dialects.grove.topology import topology_name
from app.dialects.spec import (
    ANYWHERE,
    Family,
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

POLICY = SearchPolicy(order=DomainOrder.FEWEST, floor_first=True)
_NO_GROUP = ""  # the leaf of pods whose pod group is none of the PodGang, or no longer

Member = GroupSpec | LeafSpec


def spec_of(
    key: GangKey,
    gang: PodGangRecord,
    said: Sequence[Said],
    pods: Mapping[str, LeafPods],
    *,
    priority: int | None = None,
) -> GangSpec:
    """The spec of a PodGang of which there are these pods, by pod group.

    `priority`: that of its PriorityClass; None: it names none, or one that is not there.
    """
    return GangSpec(
        key,
        GroupSpec(key.name, _members(gang, pods), gang.constraint),
        f"PodGang {key}",
        parts_are="spec.podgroups",
        topology=topology_name(gang.topology) if gang.topology else None,
        drops_wider_preferred=True,  # Grove only warns of that
        family=_family(gang, said),
        successor_of=GangKey(key.namespace, gang.reuses, key.source) if gang.reuses else None,
        has_successors=True,
        priority=priority,
        policy=POLICY,
        lifecycle=Lifecycle(counts_succeeded=True, ends_together=ends_together(said)),
    )


def _family(gang: PodGangRecord, said: Sequence[Said]) -> Family | None:
    """The PodGangs of the same replica of a PodCliqueSet, whose level the first of them has."""
    found = next((each.family for each in said if each.family is not None), None)
    if found is None or not gang.role:
        return found
    return Family(found.name, is_leader=gang.role == keys.ANCHOR)


def _members(gang: PodGangRecord, pods: Mapping[str, LeafPods]) -> tuple[Member, ...]:
    """The groups, each where its first pod group is written, and the pod groups that are in none.

    Pod groups have names: `""` is no key of theirs.
    """
    group_of = {name: each for each in gang.together for name in each.pod_groups}
    its = {each.name: _member(each, pods) for each in gang.pod_groups}
    found: dict[str, Member] = {}
    for each in gang.pod_groups:
        group = group_of.get(each.name)
        if group is None:
            found[each.name] = its[each.name]
            continue
        members = tuple(its[name] for name in group.pod_groups)
        # Under the name of the first of them: a group may be called like a pod group.
        found[group.pod_groups[0]] = GroupSpec(group.name, members, group.constraint)
    if _NO_GROUP in pods:
        # Those that run stay; they take no place of pods that the PodGang has.
        found[_NO_GROUP] = LeafSpec(_NO_GROUP, pods[_NO_GROUP].pods, needed=0)
    return tuple(found.values())


def _member(each: PodGroup, pods: Mapping[str, LeafPods]) -> Member:
    there = pods[each.name].pods if each.name in pods else 0
    leaf = LeafSpec(each.name, max(there, each.least), needed=each.least)
    # The pods of a pod group may differ, and are in one domain all the same: as members of a group.
    return leaf if each.constraint == ANYWHERE else GroupSpec(each.name, (leaf,), each.constraint)
