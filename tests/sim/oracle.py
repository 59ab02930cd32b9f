"""Is there a place for a gang? Searched in the API server's truth with the placement core.

Holds do not count, but for those that are meant to last: of pods that a gang expects, and spares.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Set
from dataclasses import dataclass, replace
from typing import Any, Protocol

import msgspec
import numpy as np

from app.dialects import corral as own
from app.dialects.spec import ANYWHERE, Claim, GangKey
from app.kube.core.objects import Amounts, NodeRecord, PodRecord
from app.kube.watch.events import Kind
from app.state.plan.searches import MOST_TRIES
from tests.records import BLOCK, RACK
from tests.sim.api import ApiServer
from tests.sim.node_filters import (
    Totals,
    counts,
    is_open,
    lacks,
    may_be_on,
    totals_by_node,
)
from tests.sim.told import claim_of, domain
from topology.errors import InvalidRequest
from topology.fit.view import Options
from topology.model import tree as trees
from topology.model.answer import Placement
from topology.model.capacity import Capacity
from topology.model.levels import NODE_LEVEL
from topology.model.request import Constraint, Gang, Group, Leader, PodSet, Slice
from topology.model.resources import Mask, ResourceAxis
from topology.model.tree import Tree
from topology.nested.walk import find

LEVELS = (BLOCK, RACK, NODE_LEVEL)


class Cluster(Protocol):
    """Nodes and pods: the API server's, or those that somebody knows of."""

    @property
    def nodes(self) -> dict[str, NodeRecord]: ...

    def list(self, kind: Kind) -> tuple[Any, ...]: ...


@dataclass(frozen=True, slots=True)
class Remaining:
    """A cluster of which some pods are gone."""

    nodes: dict[str, NodeRecord]
    pods: dict[str, PodRecord]

    def list(self, kind: Kind) -> tuple[Any, ...]:
        objects: dict[str, Any] = self.nodes if kind == "Node" else self.pods
        return tuple(record for _, record in sorted(objects.items()))


@dataclass(frozen=True, slots=True)
class Taken:
    """What nobody else may have: nodes, and amounts (node, amounts) on others."""

    nodes: frozenset[str]
    amounts: tuple[tuple[str, Amounts], ...] = ()


@dataclass(frozen=True, slots=True)
class Wanted:
    """A pod that waits for a place, or one that is to come."""

    pod: PodRecord
    constraint: Constraint
    slices: tuple[Slice, ...] = ()
    pod_set: str = ""
    group: str = ""

    @property
    def role(self) -> tuple[object, ...]:
        return (self.pod_set, self.pod.request, own.own_shape(self.pod)[0])

    @property
    def together(self) -> tuple[object, ...]:
        """Equal for those with one constraint between them, but for a leader and its workers."""
        return (self.pod_set, self.constraint) if self.pod_set else self.role


def wanted(pod: PodRecord) -> Wanted:
    """A member that is there."""
    claim = claim_of(pod)
    assert claim is not None
    said = claim.said
    return Wanted(pod, said.constraint, said.slices, claim.leaf, said.pod_set_group)


def to_come(claims: Iterable[Claim], there: list[PodRecord], missing: int) -> list[Wanted]:
    """The pods that a gang may start without: those a driver declares, or more of the first."""
    leaves = next((claim.said.leaves for claim in claims if claim.said.leaves), ())
    if not leaves:
        first = min(there, key=lambda pod: (pod.created, pod.name))
        like = msgspec.structs.replace(first, shape=own.own_shape(first)[0])
        return [wanted(like)] * missing
    known = [claim.leaf for pod in there if (claim := claim_of(pod)) is not None]
    return [
        Wanted(leaf.like.pod, leaf.constraint or ANYWHERE, leaf.slices, leaf.name)
        for leaf in leaves
        if leaf.like is not None
        for _ in range(leaf.pods - known.count(leaf.name))
    ]


def first_fit(api: ApiServer, pod: PodRecord, taken: Taken) -> str:
    """The first node that could take an ordinary pod, or ""."""
    pods = [(each.node, each.request) for each in api.pods.values() if counts(each)]
    totals = totals_by_node([*pods, *taken.amounts])
    for node in api.list("Node"):
        of_node: Totals = totals.get(node.name, {})
        may = node.name not in taken.nodes and may_be_on(node, pod.shape)
        if may and not lacks(node, of_node, pod.request):
            return str(node.name)
    return ""


def is_each_led(waiting: Iterable[Wanted]) -> bool:
    """Whether each pod set group is a leader and its workers: a gang does not start otherwise.

    Another webhook may change some of the workers, and then there is a pod set more.
    """
    roles: dict[str, Counter[tuple[object, ...]]] = {}
    for each in waiting:
        if each.group:
            roles.setdefault(each.group, Counter())[each.role] += 1
    return all(len(pods) == 2 and min(pods.values()) == 1 for pods in roles.values())


def place(
    api: Cluster, key: GangKey, waiting: list[Wanted], bound: list[PodRecord], taken: Taken
) -> Placement | None:
    """A place for all of these beside those that run, if there is one."""
    levels = LEVELS if any(map(_names_levels, waiting)) else (NODE_LEVEL,)
    axis = ResourceAxis()
    for each in waiting:
        axis.vector(each.pod.request)
    tree, capacity = _books(api, axis, levels, taken)
    roles: dict[tuple[object, ...], list[Wanted]] = {}
    for each in waiting:
        roles.setdefault(each.role, []).append(each)
    ordered = sorted(roles.values(), key=lambda role: _demand(role[0].pod), reverse=True)
    is_free = np.array([name not in taken.nodes for name in tree.nodes], dtype=np.bool_)
    masks: dict[Hashable, Mask] = {
        str(index): _mask(api, tree, role, _pinned(api, role[0], bound)) & is_free
        for index, role in enumerate(ordered)
    }
    try:
        pod_sets = _pod_sets(ordered, axis, is_led=not bound)
        units = _together(pod_sets, ordered, bound)
        gang = Gang(str(key), Group("gang", units))
        found = find(tree, capacity, gang, masks, Options(tries=MOST_TRIES))
    except InvalidRequest:
        return None
    return found if isinstance(found, Placement) else None


def _pod_sets(roles: list[list[Wanted]], axis: ResourceAxis, *, is_led: bool) -> tuple[PodSet, ...]:
    """One for each role; of a pod set group the single pod leads the others."""
    grouped = [index for index, role in enumerate(roles) if role[0].group]
    leader = -1
    if is_led and len(grouped) == 2:
        leader = min(reversed(grouped), key=lambda index: len(roles[index]))
    return tuple(
        PodSet(
            name=str(index),
            pods=len(role),
            request=axis.vector(role[0].pod.request),
            shape=str(index),
            constraint=role[0].constraint,
            slices=role[0].slices,
            leader=Leader(str(leader), axis.vector(roles[leader][0].pod.request), str(leader))
            if leader >= 0 and index in grouped
            else None,
        )
        for index, role in enumerate(roles)
        if index != leader
    )


def _together(
    pod_sets: Iterable[PodSet], roles: list[list[Wanted]], bound: list[PodRecord]
) -> tuple[PodSet | Group, ...]:
    """Those of one leaf in one group: its pods are not alike where another webhook changed some.

    Where some run, the masks keep the others there.
    """
    units: dict[tuple[object, ...], list[PodSet]] = {}
    for each in pod_sets:
        first = roles[int(each.name)][0]
        key = each.name if each.leader is not None else first.together
        units.setdefault((key,), []).append(each)
    ran = {each.together for each in map(wanted, bound)}
    found: list[PodSet | Group] = []
    for (key,), its in units.items():
        if len(its) == 1 or key in ran:
            found += its
        else:
            free = tuple(replace(each, constraint=ANYWHERE) for each in its)
            found.append(Group(f"unit {its[0].name}", free, its[0].constraint))
    return tuple(found)


def _names_levels(each: Wanted) -> bool:
    return bool(each.slices or each.constraint.required or each.constraint.preferred)


def _books(
    api: Cluster, axis: ResourceAxis, levels: tuple[str, ...], taken: Taken
) -> tuple[Tree, Capacity]:
    paths = {}
    for node in api.list("Node"):
        above = [node.labels.get(level, "") for level in levels[:-1]]
        if all(above):
            paths[node.name] = (*above, node.name)
    for record in (*api.list("Node"), *api.list("Pod")):
        axis.vector(record.allocatable if isinstance(record, NodeRecord) else record.request)
    tree = trees.build(levels, paths, generation=1)
    capacity = Capacity(axis, tree)
    for name, slot in tree.slot_of.items():
        node = api.nodes[name]
        capacity.set_node(slot, axis.vector(node.allocatable), is_open=is_open(node))
    used = [(pod.node, pod.request) for pod in api.list("Pod") if counts(pod)]
    for on, amounts in (*used, *taken.amounts):
        if on in tree.slot_of:
            capacity.use(tree.slot_of[on], axis.vector(amounts))
    return tree, capacity


def _pinned(api: Cluster, like: Wanted, bound: list[PodRecord]) -> set[str] | None:
    """The domains its leaf, or its group, runs in where one is required; None: anywhere."""
    required = like.constraint.required
    same = [
        pod
        for pod in map(wanted, bound)
        if (pod.group == like.group if like.group else pod.together == like.together)
    ]
    if not required or not same:
        return None
    nodes: Mapping[str, NodeRecord] = api.nodes
    domains = {domain(nodes[each.pod.node], required) for each in same if each.pod.node in nodes}
    # In several domains (a node was moved), which one counts is the engine's choice.
    return domains if len(domains) == 1 else set()


def _mask(api: Cluster, tree: Tree, role: list[Wanted], pinned: Set[str] | None) -> Mask:
    """Where each pod of the role may be; those that were narrowed may differ."""
    level = next((level for level in (RACK, BLOCK) if level in tree.levels), "")
    may = []
    for name in tree.nodes:
        node = api.nodes[name]
        inside = pinned is None or bool(
            level and pinned & {domain(node, BLOCK), domain(node, RACK)}
        )
        may.append(inside and all(may_be_on(node, each.pod.shape) for each in role))
    return np.array(may, dtype=np.bool_)


def _demand(pod: PodRecord) -> list[tuple[str, int]]:
    return sorted(pod.request, key=lambda row: ("/" in row[0], row[0], row[1]), reverse=True)
