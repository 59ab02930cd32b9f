"""One gang's way through the placement core: request, masks, search, and why not.

    roles ──▶ Gang of groups and pod sets ─┐
    who may go where ──▶ a mask per role ──┴─▶ find or complete ──▶ Placement or NoFit, explained

Members that run, or whose binding is under way, are never moved: they pin the others to their
domain. For a required level that is a condition; for a preferred one it is tried first, then one
level wider, as the search itself would.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Collection, Hashable, Mapping
from dataclasses import dataclass

import numpy as np

from app.state.cache.books import Books, TopologyBooks
from app.state.cache.eligibility import Eligibility, why_not
from app.state.cache.node_refusals import Offer, Refusals
from app.state.gang.gang import Gang
from app.state.plan.pod_sets import Block, Role, kept_slots, pins
from topology.fit.fit import NOT_ALLOWED, OUTSIDE
from topology.fit.view import Options
from topology.model.answer import NoFit, Placement
from topology.model.request import Constraint, Group, Leader, PodSet
from topology.model.request import Gang as GangRequest
from topology.model.resources import Mask
from topology.nested.complete import Kept, complete
from topology.nested.walk import find

REFUSED = "refused by kube-scheduler"
EARMARKED = "kept for a gang that has waited longer"
ELSEWHERE = "not among the nodes the pod was narrowed to"

Signature = tuple[object, ...]
_ANYWHERE = Constraint()


@dataclass(frozen=True, slots=True)
class Query:
    """What is to be placed, on what."""

    gang: Gang
    roles: tuple[Role, ...]
    blocks: tuple[Block, ...]
    topology: TopologyBooks
    closed: frozenset[str] = frozenset()
    """Nodes that are kept for other gangs."""
    offer: Offer | None = None

    @property
    def signature(self) -> Signature:
        """What decides, but for the books and the offer, whether there is a place."""
        roles = map(_signature, self.roles)
        return (self.topology.name, self.closed, self.gang.has_started, self.blocks, *roles)


def closed_in(signature: Signature) -> object:
    """The nodes that were kept for other gangs when this was asked."""
    return signature[1]


@dataclass(frozen=True, slots=True)
class Placing:
    """One query against the books as they are; changes nothing."""

    books: Books
    eligibility: Eligibility
    refusals: Refusals
    options: Options
    query: Query

    def run(self) -> Placement | NoFit:
        """Try the narrowest place around those that are settled first, then wider ones."""
        roles, topology, gang = self.query.roles, self.query.topology, self.query.gang
        tree, capacity = topology.tree, topology.capacity
        kept = {
            str(index): kept_slots(role, topology)
            for index, role in enumerate(roles)
            if role.slices
        }
        request = GangRequest(str(gang.key), self._root(kept), gang.priority)
        answer: Placement | NoFit | None = None
        masks: dict[Hashable, Mask] = {}
        for pinned in pins(roles, topology):
            masks = {
                str(index): self._mask(role, pin)
                for index, (role, pin) in enumerate(zip(roles, pinned, strict=True))
            }
            if any(kept.values()):
                answer = complete(tree, capacity, request, masks, kept, self.options)
            else:
                answer = find(tree, capacity, request, masks, self.options)
            if isinstance(answer, Placement):
                return answer
        assert isinstance(answer, NoFit)  # `pins` yields at least once
        role = int(answer.pod_set)
        return self._explained(answer, roles[role], masks[str(role)])

    # -- what is asked for ---------------------------------------------------------------------

    def _root(self, kept: Mapping[str, Kept]) -> Group:
        members: list[Group | PodSet] = []
        for block in self.query.blocks:
            constraint = self.query.roles[block.roles[0]].constraint
            pod_sets = [
                self._pod_set(index, kept, block.leader if not place else None)
                for place, index in enumerate(block.roles)
            ]
            is_pinned = any(map(self._is_pinned, block.roles))
            if len(pod_sets) == 1 or is_pinned or constraint == _ANYWHERE:
                # Where members are settled already, the masks keep the rest together.
                members += pod_sets
                continue
            together = tuple(dataclasses.replace(each, constraint=_ANYWHERE) for each in pod_sets)
            members.append(Group(f"block {block.roles[0]}", together, constraint))
        return Group(name="gang", members=tuple(members))

    def _is_pinned(self, index: int) -> bool:
        # Members that run on a node that has gone hold nobody anywhere.
        slot_of = self.query.topology.tree.slot_of
        return any(node in slot_of for node in self.query.roles[index].around)

    def _pod_set(self, index: int, kept: Mapping[str, Kept], leader: int | None) -> PodSet:
        """One role. Where it has slices, the settled members count too: they fill slices."""
        role = self.query.roles[index]
        return PodSet(
            name=str(index),
            pods=len(role.unplanned) + sum(pods for _, pods in kept.get(str(index), ())),
            request=self._vector(role),
            shape=str(index),
            constraint=role.constraint,
            slices=role.slices,
            leader=None
            if leader is None
            else Leader(str(leader), self._vector(self.query.roles[leader]), shape=str(leader)),
            # Of a gang that runs, members may have ended: its last slice is what is left. Of one
            # narrowed to several places nobody knows which slices those were.
            partial_last_slice=self.query.gang.has_started or role.is_split,
        )

    def _vector(self, role: Role) -> tuple[int, ...]:
        return self.books.vector(role.unplanned[0].pod.request)

    # -- where it may go -----------------------------------------------------------------------

    def _mask(self, role: Role, pin: slice | None) -> Mask:
        tree = self.query.topology.tree
        eligibility = self.eligibility
        # A replacement is not sent to where its predecessor has been evicted.
        mask_of = eligibility.lasting if self.query.gang.membership.bound else eligibility.mask
        mask = mask_of(role.shaped[1], tree, self.books.nodes)
        refused = self._refused(role)
        if pin is None and refused is None and role.allowed is None and not self.query.closed:
            return mask
        narrowed = mask.copy() if refused is None else mask & ~refused
        if self.query.closed:
            narrowed &= ~_among(self.query.closed, self.query.topology)
        if role.allowed is not None:
            narrowed &= _among(role.allowed, self.query.topology)
        if pin is not None:
            narrowed[: pin.start] = False
            narrowed[pin.stop :] = False
        return narrowed

    def _refused(self, role: Role) -> Mask | None:
        """Nodes kube-scheduler does not offer to this role; None: it has refused none."""
        remembered, offer = self.refusals.of(role.shaped), self.query.offer
        is_refused = _among(remembered, self.query.topology) if remembered else None
        if offer is None or offer.shaped != role.shaped:
            return is_refused
        left_out = ~_among(offer.nodes, self.query.topology)
        if offer.asked is not None:
            left_out &= _among(offer.asked, self.query.topology)
        return left_out if is_refused is None else left_out | is_refused

    # -- why not -------------------------------------------------------------------------------

    def _explained(self, answer: NoFit, role: Role, mask: Mask) -> NoFit:
        """The answer with the reasons why nodes are closed to the role that found no place."""
        excluded = dict(answer.excluded)
        reasons = self._reasons(role, mask)
        if excluded.get(NOT_ALLOWED) == reasons.total():
            del excluded[NOT_ALLOWED]
            excluded = dict(Counter(excluded) + reasons)
        # Nodes that are not in the tree at all lack a level's label.
        unlabelled = len(self.books.nodes) - len(self.query.topology.tree.nodes)
        if unlabelled:
            excluded["without a label of every level"] = unlabelled
        ordered = sorted(excluded.items(), key=lambda reason: (-reason[1], reason[0]))
        return dataclasses.replace(answer, excluded=tuple(ordered))

    def _reasons(self, role: Role, mask: Mask) -> Counter[str]:
        """Open nodes that the mask closes, by the first reason that holds."""
        tree, nodes = self.query.topology.tree, self.books.nodes
        is_refused, reasons = self._refused(role), Counter[str]()
        for slot in (self.query.topology.capacity.is_open & ~mask).nonzero()[0].tolist():
            name = tree.nodes[slot]
            why = why_not(nodes[name], role.shaped[1])
            if not why and role.allowed is not None and name not in role.allowed:
                why = ELSEWHERE
            elif not why and is_refused is not None and is_refused[slot]:
                why = REFUSED
            elif not why and name in self.query.closed:
                why = EARMARKED
            reasons[why or OUTSIDE] += 1
        return reasons


def _signature(role: Role) -> Signature:
    """What of a role decides whether it fits."""
    return (
        role.shaped, role.allowed, role.constraint, role.slices,
        len(role.unplanned), role.kept, role.around,
    )  # fmt: skip


def _among(nodes: Collection[str], topology: TopologyBooks) -> Mask:
    slot_of = topology.tree.slot_of
    among = np.zeros(len(topology.tree.nodes), dtype=np.bool_)
    among[[slot_of[node] for node in nodes if node in slot_of]] = True
    return among
