"""Whom to place next, and where: from a gang's members to nodes, one search per gang.

    members ──roles──▶ request, masks, scores ──topology──▶ placement ──seating──▶ nodes

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
from collections.abc import Collection, Hashable, Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np

from app.dialects.membership import GangKey
from app.state.cluster import ALL_NODES, Cluster, Topology, is_open
from app.state.eligibility import Eligibility, may_stay, why_not
from app.state.gangs import Gang, Member, Spot
from app.state.roles import (
    Block,
    Role,
    Shaped,
    blocks_of,
    kept_slots,
    mistake_in_groups,
    pins,
    roles_of,
)
from app.state.seating import Plan, place, plan_of
from topology.answer import NoFit, Placement
from topology.errors import InvalidRequest
from topology.fit import NOT_ALLOWED, OUTSIDE
from topology.groups import find
from topology.levels import NODE_LEVEL
from topology.replace import Kept, complete
from topology.request import Constraint, Group, Leader, PodSet
from topology.request import Gang as GangRequest
from topology.resources import Counts, Mask
from topology.room import Options

__all__ = ["NoPlan", "Offer", "Plan", "Planner", "Refusals", "Role", "in_order"]

OPTIONS = Options(tries=32)
# ^ places tried in vain for a gang of several roles; few, for this runs in the loop that answers
# kube-scheduler. Three roles that ask for more than 5,000 nodes have: 18 ms until the answer is no.
REFUSED = "refused by kube-scheduler"
EARMARKED = "kept for a gang that has waited longer"
ELSEWHERE = "not among the nodes the pod was narrowed to"

Signature = tuple[object, ...]
Rank = tuple[bool, int, float, str]
_ANYWHERE = Constraint()


@dataclass(frozen=True, slots=True)
class NoPlan:
    """Why there is none now. `is_mistake`: no cluster state would help."""

    sentence: str
    is_mistake: bool = False
    kind: str = ""
    """The same for verdicts that differ in numbers and reasons only: those follow the cluster."""


@dataclass(frozen=True, slots=True)
class Offer:
    """The nodes kube-scheduler offers to pods of one request and shape, as it says itself."""

    shaped: Shaped
    nodes: frozenset[str]
    asked: frozenset[str] | None = None
    """Nodes the pod was narrowed to: nothing is said of others. None: it was not."""

    def leaves_out(self, node: str) -> bool:
        """Whether it says no to a node."""
        return node not in self.nodes and (self.asked is None or node in self.asked)


@dataclass(slots=True)
class Refusals:
    """Nodes that kube-scheduler did not offer to a planned shape, remembered for a while."""

    _until: dict[Shaped, dict[str, float]] = field(default_factory=dict)

    def add(self, shaped: Shaped, node: str, until: float) -> None:
        """Leave this node out of plans for this shape until then."""
        self._until.setdefault(shaped, {})[node] = until

    def of(self, shaped: Shaped) -> Collection[str]:
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
    honours_preferred: bool = True  # preferred node affinity decides before capacity does
    refusals: Refusals = field(default_factory=Refusals)
    earmarked: dict[GangKey, tuple[frozenset[str], Rank]] = field(default_factory=dict)
    """Nodes kept for a gang from those that come after it (`earmarks.py`)."""
    _unfit: dict[Signature, NoPlan] = field(default_factory=dict)

    def begin_pass(self) -> None:
        """Capacity may have grown since: what did not fit is worth a search again."""
        self._unfit.clear()

    def view(self, gang: Gang) -> tuple[tuple[Role, ...], Topology] | None:
        """The roles of what is to be placed and the topology it is placed on, if there is one."""
        roles = roles_of(gang, gang.unplanned())
        topology = self._topology_for({level for role in roles for level in role.levels})
        return (roles, topology) if roles and topology is not None else None

    def place(self, member: Member, node: str) -> tuple[str, Spot] | None:
        """The domain of a node that a member is to have without a search; None if it has none."""
        level = member.constraint.required or member.constraint.preferred
        topology = self._topology_for({level} if level else set())
        slot = topology.tree.slot_of.get(node) if topology else None
        if topology is None or slot is None:
            return None
        depth = topology.levels.index(level or NODE_LEVEL)
        return place(topology, depth, int(topology.tree.domain_of[depth][slot]))

    def is_beside(self, member: Member, node: str, running: Iterable[str]) -> bool:
        """Whether a node is in the domain that a member's required level asks for."""
        level = member.constraint.required
        topology = self._topology_for({level}) if level else None
        if level is None or topology is None:
            return True
        domains = topology.tree.domain_of[topology.levels.index(level)]
        slots = [topology.tree.slot_of.get(name) for name in (node, *running)]
        first, *others = [None if slot is None else int(domains[slot]) for slot in slots]
        return not others or (first is not None and first in others)

    def may_have(self, member: Member, node: str) -> bool:
        """Whether a node takes a member now, as the books and its own shape say."""
        record = self.cluster.nodes.get(node)
        return (
            record is not None
            and is_open(record)
            and may_stay(record, member.shape)
            and (member.allowed is None or node in member.allowed)
            and self.cluster.fits(node, self.cluster.vector(member.pod.request))
        )

    def plan(
        self, gang: Gang, offer: Offer | None = None, who: tuple[Member, ...] | None = None
    ) -> Plan | NoPlan:
        """A node for every member that is not planned yet, or for those named, or why not."""
        if mistake := mistake_in_groups(gang):
            return NoPlan(mistake, is_mistake=True)
        roles = roles_of(gang, gang.unplanned() if who is None else who)
        levels = {level for role in roles for level in role.levels}
        topology = self._topology_for(levels)
        if topology is None:
            unknown = ", ".join(sorted(levels - set(self.cluster.known_levels()))) or "together"
            known = ", ".join(self.cluster.known_levels())
            return NoPlan(
                f"topology level not known: {unknown}; known levels: {known}", is_mistake=True
            )
        blocks = blocks_of(roles)
        closed = self._closed_to(gang)
        signature = (topology.name, closed, gang.has_started, blocks, *map(_signature, roles))
        if offer is None and who is None:
            gang.asked = signature
        if offer is None and signature in self._unfit:
            return self._unfit[signature]
        try:
            answer = _Search(self, gang, roles, blocks, topology, offer, closed).run()
        except InvalidRequest as error:
            # Pods that were narrowed to different domains are no mistake of whoever made them.
            return NoPlan(str(error), is_mistake=not any(role.is_split for role in roles))
        if isinstance(answer, Placement):
            return plan_of(gang, answer, roles, topology)
        verdict = NoPlan(str(answer), kind=f"{answer.level} {answer.unit}")
        if offer is None:
            self._unfit[signature] = verdict
        return verdict

    def is_unfit(self, gang: Gang) -> bool:
        """Whether what this gang asked for last, and asks for still, has no place in this pass."""
        asked = gang.asked
        return asked is not None and asked[1] == self._closed_to(gang) and asked in self._unfit

    def _closed_to(self, gang: Gang) -> frozenset[str]:
        """Nodes that are kept for gangs which come before this one."""
        if not self.earmarked:
            return frozenset()
        rank = rank_in_queue(gang)
        others = (
            nodes for key, (nodes, its) in self.earmarked.items() if key != gang.key and its < rank
        )
        return frozenset().union(*others)

    def _topology_for(self, levels: set[str]) -> Topology | None:
        if not levels:
            return self.cluster.topologies[ALL_NODES]
        return self.cluster.topology_with(levels)


@dataclass(frozen=True, slots=True)
class _Search:
    """One gang's way through the placement core."""

    planner: Planner
    gang: Gang
    roles: tuple[Role, ...]
    blocks: tuple[Block, ...]
    topology: Topology
    offer: Offer | None
    closed: frozenset[str]
    """Nodes that are kept for other gangs."""

    def run(self) -> Placement | NoFit:
        """Try the narrowest place around those that are settled first, then wider ones."""
        tree, capacity = self.topology.tree, self.topology.capacity
        kept = {
            str(index): kept_slots(role, self.topology)
            for index, role in enumerate(self.roles)
            if role.slices
        }
        request = GangRequest(str(self.gang.key), self._root(kept), self.gang.priority)
        options = dataclasses.replace(OPTIONS, scores=self._scores())
        answer: Placement | NoFit | None = None
        masks: dict[Hashable, Mask] = {}
        for pinned in pins(self.roles, self.topology):
            masks = {
                str(index): self._mask(role, pin)
                for index, (role, pin) in enumerate(zip(self.roles, pinned, strict=True))
            }
            if any(kept.values()):
                answer = complete(tree, capacity, request, masks, kept, options)
            else:
                answer = find(tree, capacity, request, masks, options)
            if isinstance(answer, Placement):
                return answer
        assert isinstance(answer, NoFit)  # `pins` yields at least once
        role = int(answer.pod_set)
        return self._explained(answer, self.roles[role], masks[str(role)])

    # What is asked for

    def _root(self, kept: Mapping[str, Kept]) -> Group:
        has_kept = any(kept.values())
        members: list[Group | PodSet] = []
        for block in self.blocks:
            constraint = self.roles[block.roles[0]].constraint
            is_settled = any(self.roles[index].around for index in block.roles)
            if len(block.roles) == 1 or is_settled or has_kept or constraint == _ANYWHERE:
                # Where members are settled already, the masks keep the rest together.
                members += [
                    self._pod_set(index, kept, block.leader if not place else None)
                    for place, index in enumerate(block.roles)
                ]
                continue
            together = tuple(
                dataclasses.replace(pod_set, constraint=_ANYWHERE)
                for place, index in enumerate(block.roles)
                for pod_set in [self._pod_set(index, kept, block.leader if not place else None)]
            )
            members.append(Group(f"block {block.roles[0]}", together, constraint))
        return Group(name="gang", members=tuple(members))

    def _pod_set(self, index: int, kept: Mapping[str, Kept], leader: int | None) -> PodSet:
        """One role. Where it has slices, the settled members count too: they fill slices."""
        role = self.roles[index]
        return PodSet(
            name=str(index),
            pods=len(role.unplanned) + sum(pods for _, pods in kept.get(str(index), ())),
            request=self._vector(role),
            shape=str(index),
            constraint=role.constraint,
            slices=role.slices,
            leader=None
            if leader is None
            else Leader(str(leader), self._vector(self.roles[leader]), shape=str(leader)),
            # Of a gang that runs, members may have ended: its last slice is what is left. Of one
            # narrowed to several places nobody knows which slices those were.
            partial_last_slice=self.gang.has_started or role.is_split,
        )

    def _vector(self, role: Role) -> tuple[int, ...]:
        return self.planner.cluster.vector(role.unplanned[0].pod.request)

    def _scores(self) -> dict[Hashable, Counts]:
        """What preferred node affinity says, of the roles that have any."""
        if not self.planner.honours_preferred:
            return {}
        tree, nodes = self.topology.tree, self.planner.cluster.nodes
        return {
            str(index): self.planner.eligibility.scores(role.shaped[1], tree, nodes)
            for index, role in enumerate(self.roles)
            if role.shaped[1].preferred
        }

    # Where it may go

    def _mask(self, role: Role, pin: slice | None) -> Mask:
        tree = self.topology.tree
        eligibility = self.planner.eligibility
        # A replacement is not sent to where its predecessor has been evicted.
        mask_of = eligibility.lasting if self.gang.roll.bound else eligibility.mask
        mask = mask_of(role.shaped[1], tree, self.planner.cluster.nodes)
        refused = self._refused(role)
        if pin is None and refused is None and role.allowed is None and not self.closed:
            return mask
        narrowed = mask.copy() if refused is None else mask & ~refused
        if self.closed:
            narrowed &= ~_among(self.closed, self.topology)
        if role.allowed is not None:
            narrowed &= _among(role.allowed, self.topology)
        if pin is not None:
            narrowed[: pin.start] = False
            narrowed[pin.stop :] = False
        return narrowed

    def _refused(self, role: Role) -> Mask | None:
        """Nodes kube-scheduler does not offer to this role; None: it has refused none."""
        remembered, offer = self.planner.refusals.of(role.shaped), self.offer
        is_refused = _among(remembered, self.topology) if remembered else None
        if offer is None or offer.shaped != role.shaped:
            return is_refused
        left_out = ~_among(offer.nodes, self.topology)
        if offer.asked is not None:
            left_out &= _among(offer.asked, self.topology)
        return left_out if is_refused is None else left_out | is_refused

    # Why not

    def _explained(self, answer: NoFit, role: Role, mask: Mask) -> NoFit:
        """The answer with the reasons why nodes are closed to the role that found no place."""
        excluded = dict(answer.excluded)
        reasons = self._reasons(role, mask)
        if excluded.get(NOT_ALLOWED) == reasons.total():
            del excluded[NOT_ALLOWED]
            excluded = dict(Counter(excluded) + reasons)
        # Nodes that are not in the tree at all lack a level's label.
        unlabelled = len(self.planner.cluster.nodes) - len(self.topology.tree.nodes)
        if unlabelled:
            excluded["without a label of every level"] = unlabelled
        ordered = sorted(excluded.items(), key=lambda reason: (-reason[1], reason[0]))
        return dataclasses.replace(answer, excluded=tuple(ordered))

    def _reasons(self, role: Role, mask: Mask) -> Counter[str]:
        """Open nodes that the mask closes, by the first reason that holds."""
        tree, nodes = self.topology.tree, self.planner.cluster.nodes
        is_refused, reasons = self._refused(role), Counter[str]()
        for slot in (self.topology.capacity.is_open & ~mask).nonzero()[0].tolist():
            name = tree.nodes[slot]
            why = why_not(nodes[name], role.shaped[1])
            if not why and role.allowed is not None and name not in role.allowed:
                why = ELSEWHERE
            elif not why and is_refused is not None and is_refused[slot]:
                why = REFUSED
            elif not why and name in self.closed:
                why = EARMARKED
            reasons[why or OUTSIDE] += 1
        return reasons


def _signature(role: Role) -> Signature:
    """What of a role decides whether it fits."""
    return (
        role.shaped, role.allowed, role.constraint, role.slices,
        len(role.unplanned), role.kept, role.around,
    )  # fmt: skip


def _among(nodes: Collection[str], topology: Topology) -> Mask:
    slot_of = topology.tree.slot_of
    among = np.zeros(len(topology.tree.nodes), dtype=np.bool_)
    among[[slot_of[node] for node in nodes if node in slot_of]] = True
    return among


def in_order(gangs: Iterable[Gang]) -> list[Gang]:
    """Whom to try next."""
    return sorted(gangs, key=rank_in_queue)


def rank_in_queue(gang: Gang) -> Rank:
    """Gangs that run in part come first, then the important ones, then the old ones."""
    return (not gang.has_started, -gang.priority, gang.complete_at, str(gang.key))
