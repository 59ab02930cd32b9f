"""Karpenter: nodes of any size the pods pack into, each launched on its own; and consolidation.

    pending pods ─▶ nodes there or on their way ─▶ claims, each the cheapest size for its pods
    nodes ─▶ empty, or all their pods fit elsewhere ─▶ karpenter.sh/disrupted ─▶ evict ─▶ deleted

What it cannot read it leaves out: a pod with matchFields or a hostname is no demand, one
with a label that no pool has a value for gets no new node, and a running pod's affinity
counts as far as the first term's expressions.
Left out: prices, replacement by a cheaper node, relaxed terms, budgets, drift, expiry, and static
pools.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product

from tests.autoscaling.machines.actions import Action, DeleteNode, EmitEvent, EvictPod, SetTaint
from tests.autoscaling.machines.cloud import Cloud, Machine, has_devices, is_ready
from tests.autoscaling.machines.groups import NodeGroup
from tests.autoscaling.reading.pods import (
    amounts_of,
    annotations_of,
    by_size,
    is_of_node,
    is_unschedulable,
    key_of,
    nominated_of,
    required_terms,
)
from tests.autoscaling.reading.rooms import STARTUP_PREFIXES, Room, template_room
from tests.autoscaling.reading.seen import Seen, filled
from tests.cluster import HOSTNAME, Object, Objects

BATCH_SECONDS = 10.0  # at most; a second of silence ends one sooner there
NOMINATED_SECONDS = 20.0  # a node that a pending pod is meant for is left alone
DO_NOT_DISRUPT = "karpenter.sh/do-not-disrupt"
DISRUPTED = {"key": "karpenter.sh/disrupted", "effect": "NoSchedule"}
NO_FIELDS = "node selector term with matchFields is not supported"


@dataclass
class Claim:
    """A node that is to be: all that its pods leave of the sizes and labels it may have."""

    pool: NodeGroup
    options: list[Room]
    pods: Objects = field(default_factory=list)

    def takes(self, pod: Object) -> bool:
        """Whether the pod is in it now, too."""
        left = [each for each in self.options if not each.lacks(pod, reads_fields=False)]
        if left:
            self.options = left
            self.pods.append(pod)
            for each in left:
                each.put(pod)
        return bool(left)


class Karpenter:
    """One that leads, its cloud and that cloud's kubelets."""

    def __init__(
        self,
        pools: Sequence[NodeGroup],
        *,
        consolidate_after: float = 30.0,
        register_within: float = 900.0,  # seconds until what has not come is given up
    ) -> None:
        self.cloud = Cloud(pools)
        self._consolidate_after, self._register_within = consolidate_after, register_within
        self._begin()

    def _begin(self) -> None:
        self._loop_at = 0.0
        self._nominated: dict[str, float] = {}  # node -> until
        self._settled: dict[str, tuple[frozenset[str], float]] = {}  # node -> its pods, since when
        self._disrupted: set[str] = set()
        self._told: set[tuple[str, str]] = set()

    def restart(self, seen: Seen) -> list[Action]:
        """Forget all but the cloud, as another replica that leads; no node is disrupted any more.

        Source: pkg/controllers/disruption/controller.go, Reconcile: "un-taint outdated nodes".
        """
        self._begin()
        return [
            SetTaint(node["metadata"]["name"], DISRUPTED, is_set=False)
            for node in seen.nodes
            for taint in node["spec"].get("taints") or []
            if taint["key"] == DISRUPTED["key"]
        ]

    @property
    def next_at(self) -> float:
        """When `step` has something to do."""
        return min(self._loop_at, self.cloud.next_at)

    def step(self, seen: Seen, now: float) -> list[Action]:
        """What is to be done by now."""
        self.cloud.see(seen.nodes)
        actions: list[Action] = self.cloud.step(now)
        if not actions and now >= self._loop_at:
            self._loop_at = now + BATCH_SECONDS
            actions += self._loop(seen, now)
        return actions

    def _loop(self, seen: Seen, now: float) -> list[Action]:
        nodes = {each["metadata"]["name"]: each for each in seen.nodes}
        pods = seen.by_node()
        self._note_whole(nodes)
        self._give_up(now)
        actions = self._finish(nodes, pods)
        rooms = self._rooms(nodes, pods)
        demand = self._demand(seen, actions)
        claims = self._schedule(demand, rooms, actions, now)
        for each in claims:
            self._launch(each, now)
        if not claims:
            actions += self._consolidate(nodes, pods, rooms, now)
        return actions

    # -- provisioning --------------------------------------------------------------------------

    def _demand(self, seen: Seen, actions: list[Action]) -> Objects:
        """The pods it will hear of; the others are told why not."""
        found: Objects = []
        for pod in seen.pods:
            if not is_unschedulable(pod) or nominated_of(pod) or is_of_node(pod):
                continue
            if why := refusal(pod):
                self._tell(pod, why, actions)
            else:
                found.append(pod)
        return by_size(found)

    def _schedule(
        self, demand: Objects, rooms: Mapping[str, Room], actions: list[Action], now: float
    ) -> list[Claim]:
        claims: list[Claim] = []
        counts = {name: len(self.cloud.of(name)) for name in self.cloud.groups}
        for pod in demand:
            room = next((each for each in rooms.values() if not _lacks(each, pod)), None)
            if room is not None:
                room.put(pod)
                self._nominated[room.name] = now + NOMINATED_SECONDS
            elif unknown := self._unknown_label(pod):
                self._tell(pod, f'label "{unknown}" does not have known values', actions)
            elif not any(each.takes(pod) for each in claims):
                claims += self._new_claim(pod, counts)
        return claims

    def _new_claim(self, pod: Object, counts: dict[str, int]) -> Iterator[Claim]:
        for name, pool in self.cloud.groups.items():
            claim = Claim(pool, list(_options(pool)))
            if counts[name] < pool.max and claim.takes(pod):
                counts[name] += 1
                yield claim
                return

    def _launch(self, claim: Claim, now: float) -> None:
        """The first of what is left is the cheapest."""
        chosen = claim.options[0]
        sizes = {each: amounts for each, amounts in enumerate(_sizes(claim.pool))}
        labels = {key: value for key, value in chosen.labels.items() if key != HOSTNAME}
        size = sizes[int(chosen.name.rpartition("/")[2])]
        machine = self.cloud.order(claim.pool, now, labels=labels, allocatable=size)
        self._nominated[machine.name] = now + NOMINATED_SECONDS

    def _unknown_label(self, pod: Object) -> str:
        """A label that the pod needs and that no pool has a value for, or ""."""
        known = {HOSTNAME}
        for pool in self.cloud.groups.values():
            known |= {*pool.labels, *pool.values}
        return next(
            (key for key, operator in _wanted(pod) if needs(operator) and key not in known), ""
        )

    def _tell(self, pod: Object, why: str, actions: list[Action]) -> None:
        if (key_of(pod), why) not in self._told:
            self._told.add((key_of(pod), why))
            text = f"Failed to schedule pod, {why}"
            actions.append(EmitEvent(pod, "Warning", "FailedScheduling", text))

    # -- what it knows of nodes ----------------------------------------------------------------

    def _note_whole(self, nodes: Mapping[str, Object]) -> None:
        for name, machine in self.cloud.machines.items():
            node = nodes.get(name)
            if node is not None and _is_initialized(node, machine):
                machine.is_whole = True

    def _give_up(self, now: float) -> None:
        for each in list(self.cloud.machines.values()):
            if not each.is_registered and now - each.ordered_at >= self._register_within:
                self.cloud.release(each.name)

    def _rooms(self, nodes: Mapping[str, Object], pods: Mapping[str, Objects]) -> dict[str, Room]:
        rooms: dict[str, Room] = {}
        for name, node in nodes.items():
            machine = self.cloud.machines.get(name)
            is_coming = machine is not None and not machine.is_whole
            if not is_coming and is_ready(node) and name not in self._disrupted:
                rooms[name] = filled(node, pods.get(name, []))
        for name, machine in self.cloud.machines.items():
            if not machine.is_whole:
                free = amounts_of(machine.allocatable)
                rooms[name] = template_room(name, machine.labels, machine.group.taints, free)
                rooms[name].take(pods.get(name, []))
        return rooms

    # -- disruption ----------------------------------------------------------------------------

    def _finish(self, nodes: Mapping[str, Object], pods: Mapping[str, Objects]) -> list[Action]:
        """Evict what runs on nodes that are being disrupted; delete those that are empty."""
        actions: list[Action] = []
        for name in sorted(self._disrupted):
            here = [each for each in pods.get(name, []) if not is_of_node(each)]
            if name not in nodes or not here:
                self._disrupted.discard(name)
                self.cloud.release(name)
                actions += [DeleteNode(name)] if name in nodes else []
            for each in here:
                metadata = each["metadata"]
                actions.append(EvictPod(metadata["namespace"], metadata["name"], metadata["uid"]))
        return actions

    def _consolidate(
        self,
        nodes: Mapping[str, Object],
        pods: Mapping[str, Objects],
        rooms: Mapping[str, Room],
        now: float,
    ) -> list[Action]:
        """Disrupt one node that nobody needs, empty ones before others."""
        candidates: list[tuple[int, str]] = []
        for name, machine in self.cloud.machines.items():
            if name not in rooms or name not in nodes or not machine.is_whole:
                continue
            here = [each for each in pods.get(name, []) if not is_of_node(each)]
            names = frozenset(key_of(each) for each in here)
            before, since = self._settled.get(name, (frozenset(), now))
            if name not in self._settled or before != names:
                since = now
            self._settled[name] = (names, since)
            is_left_alone = self._nominated.get(name, 0.0) > now or rooms[name].packed
            is_kept = any(map(_may_not_be_disrupted, [nodes[name], *here]))
            if now - since >= self._consolidate_after and not is_left_alone and not is_kept:
                candidates.append((len(here), name))
        for _, name in sorted(candidates):
            if _fit_elsewhere(pods.get(name, []), name, rooms):
                self._disrupted.add(name)
                return [SetTaint(name, DISRUPTED)]
        return []


def refusal(pod: Object) -> str:
    """Why the pod is no demand at all, or ""."""
    terms = required_terms(pod)
    if any(each.get("matchFields") for each in terms):
        return NO_FIELDS
    if any(key == HOSTNAME for key, _ in _wanted(pod)):
        return f'label "{HOSTNAME}" is restricted'
    return ""


def needs(operator: str) -> bool:
    """Whether a node without the label fails the requirement."""
    return operator not in ("NotIn", "DoesNotExist")


def _wanted(pod: Object) -> list[tuple[str, str]]:
    """(label, operator) of the selector and of the first term."""
    found = [(key, "In") for key in pod["spec"].get("nodeSelector") or {}]
    for term in required_terms(pod)[:1]:
        found += [(each["key"], each["operator"]) for each in term.get("matchExpressions") or []]
    return found


def _lacks(room: Room, pod: Object) -> str:
    return room.lacks(pod, reads_fields=False)


def _sizes(pool: NodeGroup) -> tuple[Mapping[str, str], ...]:
    return pool.sizes or (pool.allocatable,)


def _options(pool: NodeGroup) -> Iterator[Room]:
    """Every size with every choice of labels, the cheapest size first."""
    for number, size in enumerate(_sizes(pool)):
        for values in product(*pool.values.values()):
            labels = {**pool.labels, **dict(zip(pool.values, values, strict=True))}
            yield template_room(f"{pool.name}/{number}", labels, pool.taints, amounts_of(size))


def _is_initialized(node: Object, machine: Machine) -> bool:
    taints = (node.get("spec") or {}).get("taints") or []
    starts = any(each["key"].startswith(STARTUP_PREFIXES) for each in taints)
    return is_ready(node) and not starts and has_devices(node, machine)


def _may_not_be_disrupted(thing: Object) -> bool:
    return annotations_of(thing).get(DO_NOT_DISRUPT) == "true"


def _fit_elsewhere(pods: Iterable[Object], node: str, rooms: Mapping[str, Room]) -> bool:
    others = [each.copy() for name, each in rooms.items() if name != node]
    for pod in by_size([each for each in pods if not is_of_node(each)]):
        room = next((each for each in others if not _lacks(each, pod)), None)
        if room is None:
            return False
        room.put(pod)
    return True
