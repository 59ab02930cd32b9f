"""Whom to place next, and where: from a gang's members to nodes, one search per gang.

Order: gangs that already run in part first, then priority, then the time of becoming complete.
A gang that does not fit does not block smaller ones behind it. Within one pass capacity only
shrinks, so a request that did not fit is not searched again for the next gang that asks the same.

Members that run, or whose binding is under way, are never moved: they pin the others to their
domain. For a required level that is a condition; for a preferred one it is tried first, then one
level wider, as the search itself would.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np

from app.kube.objects import Shape
from app.state.cluster import ALL_NODES, Cluster, Topology
from app.state.eligibility import Eligibility
from app.state.gangs import Gang, Member
from topology.answer import NoFit, Placement
from topology.errors import InvalidRequest
from topology.groups import find
from topology.replace import Kept, complete
from topology.request import Constraint, Group, PodSet, Slice
from topology.request import Gang as GangRequest
from topology.resources import Mask
from topology.room import Options

OPTIONS = Options(tries=32)
# ^ places tried in vain for a gang of several roles; few, for this runs in the loop that answers
# kube-scheduler. Three roles that ask for more than 5,000 nodes have: 18 ms until the answer is no.

Shaped = tuple[tuple[tuple[str, int], ...], Shape]  # what a node may refuse: request and shape
Signature = tuple[object, ...]


@dataclass(frozen=True, slots=True)
class Plan:
    """A node for each unplanned member of a gang, by uid, and its domain in words."""

    nodes: dict[str, str]
    domains: dict[str, str]


@dataclass(frozen=True, slots=True)
class NoPlan:
    """Why there is none now. `is_mistake`: no cluster state would help."""

    sentence: str
    is_mistake: bool = False


@dataclass(frozen=True, slots=True)
class Role:
    """Members that are identical to the placement, the unplanned and the settled ones apart."""

    unplanned: tuple[Member, ...]
    settled_nodes: tuple[str, ...]  # of members of this role that no plan may move

    @property
    def constraint(self) -> Constraint:
        return self.unplanned[0].constraint

    @property
    def slices(self) -> tuple[Slice, ...]:
        return self.unplanned[0].slices

    @property
    def shaped(self) -> Shaped:
        return (self.unplanned[0].pod.request, self.unplanned[0].shape)


@dataclass(frozen=True, slots=True)
class Offer:
    """The nodes kube-scheduler offers to pods of one request and shape, as it says itself."""

    shaped: Shaped
    nodes: frozenset[str]


@dataclass(slots=True)
class Refusals:
    """Nodes that kube-scheduler did not offer to a planned shape, remembered for a while."""

    _until: dict[Shaped, dict[str, float]] = field(default_factory=dict)

    def add(self, shaped: Shaped, node: str, until: float) -> None:
        """Leave this node out of plans for this shape until then."""
        self._until.setdefault(shaped, {})[node] = until

    def of(self, shaped: Shaped) -> Iterable[str]:
        """The nodes that refuse this shape now."""
        return self._until.get(shaped, {})

    def expire(self, now: float) -> bool:
        """Forget refusals that are over; True if there were any."""
        over = [
            (shaped, node)
            for shaped, nodes in self._until.items()
            for node, until in nodes.items()
            if until <= now
        ]
        for shaped, node in over:
            del self._until[shaped][node]
            if not self._until[shaped]:
                del self._until[shaped]
        return bool(over)


@dataclass(slots=True)
class Planner:
    """Places gangs on the books as they are; changes nothing itself."""

    cluster: Cluster
    eligibility: Eligibility
    refusals: Refusals = field(default_factory=Refusals)
    _unfit: dict[Signature, NoPlan] = field(default_factory=dict)

    def begin_pass(self) -> None:
        """Capacity may have grown since: what did not fit is worth a search again."""
        self._unfit.clear()

    def plan(self, gang: Gang, offer: Offer | None = None) -> Plan | NoPlan:
        """A node for every member that is not planned yet, or why not."""
        roles = roles_of(gang)
        levels = {level for role in roles for level in _levels(role)}
        topology = self._topology_for(levels)
        if topology is None:
            unknown = ", ".join(sorted(levels - set(self.cluster.known_levels()))) or "together"
            known = ", ".join(self.cluster.known_levels())
            return NoPlan(
                f"topology level not known: {unknown}; known levels: {known}", is_mistake=True
            )
        signature = (
            topology.name,
            *((role.shaped, role.constraint, role.slices, len(role.unplanned), role.settled_nodes)
              for role in roles),
        )  # fmt: skip
        if offer is None and signature in self._unfit:
            return self._unfit[signature]
        try:
            answer = self._search(gang, roles, topology, offer)
        except InvalidRequest as error:
            return NoPlan(str(error), is_mistake=True)
        if isinstance(answer, Placement):
            return _plan_of(answer, roles, topology)
        verdict = NoPlan(str(answer))
        if offer is None:
            self._unfit[signature] = verdict
        return verdict

    def _topology_for(self, levels: set[str]) -> Topology | None:
        if not levels:
            return self.cluster.topologies[ALL_NODES]
        return self.cluster.topology_with(levels)

    def _search(
        self, gang: Gang, roles: tuple[Role, ...], topology: Topology, offer: Offer | None
    ) -> Placement | NoFit:
        kept = {
            str(index): _kept(role, topology) for index, role in enumerate(roles) if role.slices
        }
        root = self._root(roles, kept, may_be_incomplete=gang.has_started)
        request = GangRequest(str(gang.key), root, gang.priority)
        answer: Placement | NoFit | None = None
        for pins in _pins(roles, topology):
            masks: dict[Hashable, Mask] = {
                str(index): self._mask(role, topology, pin, offer)
                for index, (role, pin) in enumerate(zip(roles, pins, strict=True))
            }
            tree, capacity = topology.tree, topology.capacity
            if any(kept.values()):
                answer = complete(tree, capacity, request, masks, kept)
            else:
                answer = find(tree, capacity, request, masks, OPTIONS)
            if isinstance(answer, Placement):
                break
        assert answer is not None  # `_pins` yields at least once
        if isinstance(answer, NoFit):
            return self._with_unlabelled(answer, topology)
        return answer

    def _with_unlabelled(self, answer: NoFit, topology: Topology) -> NoFit:
        """Count the nodes that are not in the tree at all: they lack a level's label."""
        nodes = len(self.cluster.nodes) - len(topology.tree.nodes)
        if not nodes:
            return answer
        excluded = (*answer.excluded, ("without a label of every level", nodes))
        ordered = sorted(excluded, key=lambda reason: (-reason[1], reason[0]))
        return dataclasses.replace(answer, excluded=tuple(ordered))

    def _root(
        self, roles: tuple[Role, ...], kept: Mapping[str, Kept], *, may_be_incomplete: bool
    ) -> Group:
        """The request. Of a role with slices the settled members count too: they fill slices."""
        return Group(
            name="gang",
            members=tuple(
                PodSet(
                    name=str(index),
                    pods=len(role.unplanned) + sum(pods for _, pods in kept.get(str(index), ())),
                    request=self.cluster.vector(role.unplanned[0].pod.request),
                    shape=str(index),
                    constraint=role.constraint,
                    slices=role.slices,
                    # Of a gang that runs, members may have ended: its last slice is what is left.
                    partial_last_slice=may_be_incomplete,
                )
                for index, role in enumerate(roles)
            ),
        )

    def _mask(self, role: Role, topology: Topology, pin: slice | None, offer: Offer | None) -> Mask:
        tree = topology.tree
        mask = self.eligibility.mask(role.shaped[1], tree, self.cluster.nodes)
        if offer is not None and offer.shaped == role.shaped:
            offered = map(offer.nodes.__contains__, tree.nodes)
            mask = mask & np.fromiter(offered, np.bool_, len(tree.nodes))
        refused = [
            slot
            for node in self.refusals.of(role.shaped)
            if (slot := tree.slot_of.get(node)) is not None
        ]
        if pin is None and not refused:
            return mask
        narrowed = mask.copy()
        narrowed[refused] = False
        if pin is not None:
            narrowed[: pin.start] = False
            narrowed[pin.stop :] = False
        return narrowed


def roles_of(gang: Gang) -> tuple[Role, ...]:
    """The gang's unplanned members by role, the most demanding role first."""
    by_role: dict[tuple[object, ...], list[Member]] = {}
    for member in gang.unplanned():
        by_role.setdefault(member.role, []).append(member)
    settled: dict[tuple[object, ...], list[str]] = {}
    for member in gang.roll.bound:
        settled.setdefault(member.role, []).append(member.pod.node)
    for member in gang.roll.unbound:
        if member.pod.uid in gang.plan:
            settled.setdefault(member.role, []).append(gang.plan[member.pod.uid])
    roles = [
        Role(tuple(members), tuple(sorted(settled.get(key, ()))))
        for key, members in by_role.items()
    ]
    return tuple(sorted(roles, key=_demand, reverse=True))


def _demand(role: Role) -> list[tuple[str, int]]:
    # Devices before cpu and memory before the pod itself: scarce resources decide first.
    amounts = dict(role.shaped[0])
    return sorted(amounts.items(), key=lambda row: ("/" in row[0], row[0], row[1]), reverse=True)


def in_order(gangs: Iterable[Gang]) -> list[Gang]:
    """Whom to try next."""
    return sorted(
        gangs,
        key=lambda gang: (not gang.has_started, -gang.priority, gang.complete_at, str(gang.key)),
    )


def _levels(role: Role) -> Iterator[str]:
    for level in (role.constraint.required, role.constraint.preferred):
        if level:
            yield level
    for part in role.slices:
        yield part.level


def _pins(roles: tuple[Role, ...], topology: Topology) -> Iterator[tuple[slice | None, ...]]:
    """The slot ranges each role may use, narrowest first; None is everywhere."""
    ranges = [_ranges(role, topology) for role in roles]
    for attempt in range(max(map(len, ranges))):
        yield tuple(of_role[min(attempt, len(of_role) - 1)] for of_role in ranges)


def _ranges(role: Role, topology: Topology) -> list[slice | None]:
    tree, constraint = topology.tree, role.constraint
    slots = [slot for node in role.settled_nodes if (slot := tree.slot_of.get(node)) is not None]
    if not slots or not (constraint.required or constraint.preferred):
        return [None]
    narrowest = topology.levels.index(constraint.preferred or constraint.required or "")
    widest = topology.levels.index(constraint.required) if constraint.required else 0
    ranges: list[slice | None] = []
    for level in range(narrowest, widest - 1, -1):
        # Where members run in several domains, the one with most of them; ties: the first.
        domain = int(np.bincount(tree.domain_of[level][slots]).argmax())
        ranges.append(tree.slots(level, domain))
    return ranges if constraint.required else [*ranges, None]


def _kept(role: Role, topology: Topology) -> tuple[tuple[int, int], ...]:
    """(slot, pods) of the settled members, as far as their nodes are in this topology."""
    slot_of = topology.tree.slot_of
    slots = Counter(slot_of[node] for node in role.settled_nodes if node in slot_of)
    return tuple(sorted(slots.items()))


def _plan_of(placement: Placement, roles: tuple[Role, ...], topology: Topology) -> Plan:
    """Nodes in slot order to members in order of seniority."""
    tree = topology.tree
    nodes: dict[str, str] = {}
    domains: dict[str, str] = {}
    for placed in placement.pod_sets:
        role = roles[int(placed.pod_set)]
        members = iter(role.unplanned)
        level = placed.level
        found = Counter(dict(placed.slots))
        if role.slices:
            found.subtract(dict(_kept(role, topology)))
        for slot, pods in sorted(found.items()):
            path = tree.path(level, int(tree.domain_of[level][slot]))
            for _ in range(pods):
                uid = next(members).pod.uid
                nodes[uid] = tree.nodes[slot]
                domains[uid] = f"{topology.levels[level]}={'/'.join(path)}"
    return Plan(nodes, domains)
