"""What must have come about when all faults are over: L1 to L4, and empty books at the very end.

The oracle searches the API server's truth with the placement core: a gang that has a place there,
beside all that runs, and still waits has been forgotten. Holds do not count: in a world that is
quiet again nothing may be held for long without being bound.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Set
from typing import Any

import numpy as np

from app import dialects
from app.dialects import corral as own
from app.dialects.membership import GangKey, Membership
from app.kube.objects import PodRecord
from app.state.cluster import is_open
from app.state.planner import OPTIONS
from tests.records import BLOCK, RACK
from tests.sim.api import ApiServer
from tests.sim.corral import Corral
from tests.sim.kube_scheduler import SCHEDULER
from tests.sim.node_filters import Totals, counts, lacks, may_be_on, totals_by_node
from tests.sim.shadow import shadow
from tests.sim.told import domain
from tests.sim.violation import Violation, require
from topology import tree as trees
from topology.answer import Placement
from topology.capacity import Capacity
from topology.errors import InvalidRequest
from topology.groups import find
from topology.levels import NODE_LEVEL
from topology.request import Gang, Group, PodSet
from topology.resources import Mask, ResourceAxis
from topology.tree import Tree

LEVELS = (BLOCK, RACK, NODE_LEVEL)


def check_nobody_is_forgotten(
    api: ApiServer, corrals: Iterable[Corral], lacks_volume: Callable[[PodRecord], bool]
) -> None:
    """L1, L2, I3: no gang and no pod waits that has a place.

    What is earmarked for a gang that starves is not for others; a gang that waits for what
    kube-scheduler alone knows of has no place, but now and then a hold on one.
    Raises: Violation.
    """
    corrals = list(corrals)
    marks = [mark for corral in corrals for mark in corral.engine.earmarks.of.items()]
    in_vain = _held_in_vain(corrals, lacks_volume)
    for key, members in gangs(api).items():
        if any(map(lacks_volume, members)):
            continue
        closed = in_vain.union(*(mark.nodes for of, mark in marks if of != key))
        why = waits_in_vain(api, key, members, closed)
        require(not why, f"L1: gang {key} waits and fits: {why}")
    for pod in ordinary(api):
        node = _first_fit(api, pod, in_vain.union(*(mark.nodes for _, mark in marks)))
        require(not node, f"L1: pod {pod.name} waits and fits on {node}")


def _held_in_vain(
    corrals: Iterable[Corral], lacks_volume: Callable[[PodRecord], bool]
) -> frozenset[str]:
    return frozenset(
        node
        for corral in corrals
        for gang in corral.engine.ledger.gangs.values()
        if any(lacks_volume(member.pod) for member in gang.members.values())
        for node in gang.plan.values()
    )


def check_books(api: ApiServer, corrals: Iterable[Corral]) -> None:
    """L4: every Corral knows what the API server has."""
    bound = {pod.uid: pod.node for pod in api.pods.values() if counts(pod)}
    for corral in corrals:
        if corral.life is None:
            raise Violation(f"L4: {corral.name} is not up")
        ours = {uid: each.node for uid, each in corral.engine.cluster.bound.items()}
        require(ours == bound, f"L4: {corral.name} has {ours} on its books, not {bound}")
        shadow(corral.life, corral.now)


def check_empty(corrals: Iterable[Corral]) -> None:
    """I7: with every pod gone nothing is left of any of them."""
    for corral in corrals:
        engine = corral.engine
        left = {
            "held": engine.cluster.held,
            "bound": engine.cluster.bound,
            "gangs": engine.ledger.gangs,
            "members": engine.ledger.gang_of,
            "jobs": engine.ledger.jobs_of,
            "refusals": engine.planner.refusals._until,
        }
        for name, rest in left.items():
            require(not rest, f"I7: {corral.name} still has {name}: {rest}")
        for topology in engine.cluster.topologies.values():
            for books in (topology.capacity.used, topology.capacity.held):
                require(not books.any(), f"I7: {corral.name}: books are not empty: {books}")


# -- who waits ---------------------------------------------------------------------------------


def gangs(api: ApiServer) -> dict[GangKey, list[PodRecord]]:
    """Every gang's pods, ended ones too."""
    found: dict[GangKey, list[PodRecord]] = {}
    for pod in api.list("Pod"):
        claim = dialects.read(pod) if pod.scheduler == SCHEDULER else None
        if isinstance(claim, Membership):
            found.setdefault(claim.gang, []).append(pod)
    return found


def ordinary(api: ApiServer) -> list[PodRecord]:
    """Pods of no gang that wait for a node."""
    return [
        pod
        for pod in api.list("Pod")
        if pod.scheduler == SCHEDULER
        and dialects.read(pod) is None
        and not pod.node
        and not pod.is_terminating
    ]


def _first_fit(api: ApiServer, pod: PodRecord, closed: Set[str]) -> str:
    taken = totals_by_node(
        [(each.node, each.request) for each in api.pods.values() if counts(each)]
    )
    for node in api.list("Node"):
        totals: Totals = taken.get(node.name, {})
        may = node.name not in closed and may_be_on(node, pod.shape)
        if may and not lacks(node, totals, pod.request):
            return str(node.name)
    return ""


def waits_in_vain(api: ApiServer, key: GangKey, members: list[PodRecord], closed: Set[str]) -> str:
    """Where the gang's waiting members would fit; "" if they do not, or must not start."""
    live = [pod for pod in members if not pod.is_finished and not pod.is_terminating]
    bound = [pod for pod in live if pod.node]
    waiting = [pod for pod in live if not pod.node and _is_ready(pod)]
    places = _declared(api, key, members) - len(bound)
    if places <= 0 or not waiting or (not bound and len(waiting) < places):
        return ""
    if len(waiting) > places or _disagree(live):
        return ""  # which of them are in excess is the engine's own choice
    if bound and any(_claim(pod).slices for pod in waiting):
        return ""  # how slices are filled up is the core's business
    placement = _place(api, key, waiting, bound, closed)
    return str([(one.pod_set, one.domains) for one in placement.pod_sets]) if placement else ""


def _is_ready(pod: PodRecord) -> bool:
    """Nothing but us keeps it back."""
    return all(gate == own.GATE for gate in pod.gates)


def _claim(pod: PodRecord) -> Membership:
    claim = dialects.read(pod)
    assert isinstance(claim, Membership)
    return claim


def _disagree(live: list[PodRecord]) -> bool:
    totals = {_claim(pod).declared for pod in live}
    return len(totals) > 1


def _declared(api: ApiServer, key: GangKey, members: list[PodRecord]) -> int:
    if key.source == "job":
        job: Any = api.objects["Job"].get(key.name)
        if job is None or job.uid != key.epoch:
            return 0
        return int(min(job.parallelism, max(job.completions - job.succeeded, 0)))
    declared = _claim(members[-1]).declared
    assert declared is not None
    return declared.members - sum(pod.phase == "Succeeded" for pod in members)


# -- the oracle --------------------------------------------------------------------------------


def _place(
    api: ApiServer,
    key: GangKey,
    waiting: list[PodRecord],
    bound: list[PodRecord],
    closed: Set[str],
) -> Placement | None:
    levels = (NODE_LEVEL,) if not _names_levels(waiting) else LEVELS
    axis = ResourceAxis()
    tree, capacity = _books(api, axis, levels)
    roles: dict[tuple[object, ...], list[PodRecord]] = {}
    for pod in waiting:
        roles.setdefault((pod.request, own.own_shape(pod)[0]), []).append(pod)
    ordered = sorted(roles.values(), key=lambda role: _demand(role[0]), reverse=True)
    masks: dict[Hashable, Mask] = {}
    pod_sets = []
    for index, role in enumerate(ordered):
        claim = _claim(role[0])
        masks[str(index)] = _mask(api, tree, role, _pinned(api, role[0], bound)) & _free_of(
            tree, closed
        )
        try:
            pod_sets.append(
                PodSet(
                    name=str(index),
                    pods=len(role),
                    request=axis.vector(role[0].request),
                    shape=str(index),
                    constraint=claim.constraint,
                    slices=claim.slices,
                )
            )
        except InvalidRequest:
            return None
    try:
        found = find(tree, capacity, Gang(str(key), Group("gang", tuple(pod_sets))), masks, OPTIONS)
    except InvalidRequest:
        return None
    return found if isinstance(found, Placement) else None


def _names_levels(waiting: list[PodRecord]) -> bool:
    claims = [_claim(pod) for pod in waiting]
    return any(
        claim.slices or claim.constraint.required or claim.constraint.preferred for claim in claims
    )


def _books(api: ApiServer, axis: ResourceAxis, levels: tuple[str, ...]) -> tuple[Tree, Capacity]:
    paths = {}
    for node in api.list("Node"):
        above = [node.labels.get(level, "") for level in levels[:-1]]
        if all(above):
            paths[node.name] = (*above, node.name)
    for record in (*api.list("Node"), *api.list("Pod")):
        axis.vector(record.allocatable if hasattr(record, "allocatable") else record.request)
    tree = trees.build(levels, paths, generation=1)
    capacity = Capacity(axis, tree)
    for name, slot in tree.slot_of.items():
        node = api.nodes[name]
        capacity.set_node(slot, axis.vector(node.allocatable), is_open=is_open(node))
    for pod in api.list("Pod"):
        if counts(pod) and pod.node in tree.slot_of:
            capacity.use(tree.slot_of[pod.node], axis.vector(pod.request))
    return tree, capacity


def _pinned(api: ApiServer, like: PodRecord, bound: list[PodRecord]) -> set[str] | None:
    """The domains its role runs in, where one is required; None: anywhere."""
    required = _claim(like).constraint.required
    same = [
        pod
        for pod in bound
        if (pod.request, own.own_shape(pod)[0]) == (like.request, own.own_shape(like)[0])
    ]
    if not required or not same:
        return None
    domains = {domain(api.nodes[pod.node], required) for pod in same if pod.node in api.nodes}
    # In several domains (a node was moved), which one counts is the engine's choice.
    return domains if len(domains) == 1 else set()


def _free_of(tree: Tree, closed: Set[str]) -> Mask:
    return np.array([name not in closed for name in tree.nodes], dtype=np.bool_)


def _mask(api: ApiServer, tree: Tree, role: list[PodRecord], pinned: set[str] | None) -> Mask:
    """Where each pod of the role may be; those that were narrowed may differ."""
    level = next((level for level in (RACK, BLOCK) if level in tree.levels), "")
    may = []
    for name in tree.nodes:
        node = api.nodes[name]
        inside = pinned is None or bool(
            level and pinned & {domain(node, BLOCK), domain(node, RACK)}
        )
        may.append(inside and all(may_be_on(node, pod.shape) for pod in role))
    return np.array(may, dtype=np.bool_)


def _demand(pod: PodRecord) -> list[tuple[str, int]]:
    return sorted(pod.request, key=lambda row: ("/" in row[0], row[0], row[1]), reverse=True)
