"""One gang's question to the placement core: what is to be placed, on what, where it may go.

    pod sets, units ──▶ Gang of groups and pod sets ─┐
    allowed nodes ────▶ a mask per pod set ──────────┴─▶ SearchRequest ──search──▶ Placement | NoFit

Members that run, or whose binding is under way, are never moved: they pin the others to their
domain. For a required level that is a condition; for a preferred one it is tried first, then one
level wider, as the search itself would. A request holds all that its answer depends on, so that it
can be searched on a copy of the books as well.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from app.dialects.spec import SearchPolicy
from app.kube.core.objects import Amounts
from app.state.cache.books import Books
from app.state.cache.eligibility.node_refusals import Offer, Refusals
from app.state.cache.eligibility.node_table import NodeTable
from app.state.cache.topology_books import TopologyBooks
from app.state.gang.families import NOTHING, Shared
from app.state.gang.gang import Gang as GangRecord
from app.state.plan.question.group_tree import GroupTree
from app.state.plan.question.pins import kept_slots, pins
from app.state.plan.question.pod_sets import PodSetMembers, Unit, units_of
from app.state.pods.nominations import Together
from topology.fit.view import Options
from topology.model.answer import NoFit, Pairs, Placement
from topology.model.capacity import Capacity
from topology.model.request import DomainOrder, Gang
from topology.model.resources import Mask
from topology.model.tree import Tree
from topology.nested.complete import Kept, complete
from topology.nested.estimates.bounds import together
from topology.nested.walk import find

Masks = Mapping[Hashable, Mask]

NONE_NOMINATED = Together()


@dataclass(frozen=True, slots=True)
class SearchRequest:
    """A question to the placement core; pod sets are named by their index."""

    tree: Tree
    capacity: Capacity
    gang: Gang
    attempts: tuple[Masks, ...]
    """Where each pod set may go: around settled members first, then in wider domains."""
    roomy: Masks | None
    """The first of these, in domains that have room for the gangs that follow; tried before it."""
    kept: Mapping[str, Kept]
    """(slot, pods) of settled members that fill slices, by pod set."""
    options: Options


def search(request: SearchRequest) -> Placement | NoFit:
    """The placement of the first attempt that succeeds, else the verdict of the last one.

    One that has used up its allowance is the last one: it might have had a place.
    """
    answer: Placement | NoFit | None = None
    tree, capacity, gang = request.tree, request.capacity, request.gang
    roomy = () if request.roomy is None else (request.roomy,)
    for masks in (*roomy, *request.attempts):
        if any(request.kept.values()):
            answer = complete(tree, capacity, gang, masks, request.kept, request.options)
        else:
            answer = find(tree, capacity, gang, masks, request.options)
        if isinstance(answer, Placement) or answer.is_unfinished:
            return answer
    assert answer is not None  # there is at least one attempt
    return answer


def inside(request: SearchRequest, nodes: Mask) -> SearchRequest:
    """The same on these nodes alone. Shapes: (N,)."""
    attempts = tuple(
        {pod_set: mask & nodes for pod_set, mask in masks.items()} for masks in request.attempts
    )
    return replace(request, attempts=attempts, roomy=None)


def copied(request: SearchRequest) -> SearchRequest:
    """The same request on books of its own; trees and masks never change once they are made."""
    return replace(request, capacity=request.capacity.copy())


@dataclass(frozen=True, slots=True)
class Question:
    """What is to be placed, before it is known on which topology."""

    gang: GangRecord
    pod_sets: tuple[PodSetMembers, ...]
    units: tuple[Unit, ...]
    closed: frozenset[str] = frozenset()
    """Nodes that are kept for other gangs."""
    offer: Offer | None = None
    nominated: Together = NONE_NOMINATED
    """Other pods that count as being on their nodes already."""
    shared: Shared = NOTHING
    """What holds because of other gangs of its family."""
    to_follow: tuple[tuple[Amounts, int], ...] = ()
    """(request, pods) of those of them that come after it."""
    is_balanced: bool = False
    """Pods with a preferred level are spread evenly over the domains they need."""

    @classmethod
    def of(
        cls,
        gang: GangRecord,
        pod_sets: tuple[PodSetMembers, ...],
        closed: frozenset[str],
        offer: Offer | None,
        nominated: Together = NONE_NOMINATED,
        shared: Shared = NOTHING,
        to_follow: tuple[tuple[Amounts, int], ...] = (),
        *,
        is_balanced: bool = False,
    ) -> Question:
        """The question of where these members go."""
        units = units_of(pod_sets)
        others = (nominated, shared, to_follow)
        return cls(gang, pod_sets, units, closed, offer, *others, is_balanced)

    def part(self, pod_sets: tuple[PodSetMembers, ...]) -> Question:
        """The question of where some of these members go."""
        return replace(self, pod_sets=pod_sets, units=units_of(pod_sets))

    @property
    def pods(self) -> tuple[object, ...]:
        """What decides of the pods where they fit: equal for those that the same places serve."""
        membership, policy = self.gang.membership, _policy(self.gang)
        leaves = (each.unplanned[0].leaf for each in self.pod_sets)
        topologies = tuple(map(membership.topology_of, leaves))
        # Which pod sets share a group: two groups may have one name.
        numbers: dict[int, int] = {}
        for pod_set in self.pod_sets:
            for group in pod_set.groups:
                numbers.setdefault(id(group), len(numbers))
        signatures = (_signature(each, numbers) for each in self.pod_sets)
        return (topologies, policy, self.units, *signatures)

    @property
    def signature(self) -> tuple[object, ...]:
        """What decides, but for the books and the offer, whether there is a place."""
        started, settled = self.gang.has_started, _settled(self.gang)
        return (started, self.closed, self.nominated, self.shared, settled, *self.pods)


def _policy(gang: GangRecord) -> SearchPolicy:
    spec = gang.membership.spec
    return SearchPolicy() if spec is None else spec.policy


def _settled(gang: GangRecord) -> tuple[object, ...]:
    """What else decides of a gang that may start without some of its pods: no other is like it."""
    return () if gang.elastic_spec is None else (gang.key, gang.version)


def depends_on(signature: tuple[object, ...]) -> tuple[object, ...]:
    """What of a signature changes without the gang.

    Nodes that are kept for others, nominated pods, and where gangs of its family are.
    """
    return signature[1:4]


def _signature(pod_set: PodSetMembers, numbers: Mapping[int, int]) -> tuple[object, ...]:
    """What decides whether a pod set fits; `numbers`: of groups, by `id`."""
    return (
        pod_set.shaped, pod_set.allowed, pod_set.constraint, pod_set.slices,
        len(pod_set.unplanned), pod_set.needed, pod_set.kept, pod_set.around,
        tuple((numbers[id(each)], each.name, each.constraint) for each in pod_set.groups),
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Builder:
    """Builds requests on the books as they are; changes nothing."""

    books: Books
    node_table: NodeTable
    refusals: Refusals
    options: Options
    honours_preferred: bool

    def request(self, question: Question, topology: TopologyBooks) -> SearchRequest:
        """The question as the placement core takes it.

        Raises: topology.errors.InvalidRequest.
        """
        pod_sets, tree = question.pod_sets, self.tree(question, topology)
        policy = _policy(question.gang)
        is_kueues = policy.order is DomainOrder.TIGHTEST
        attempts: tuple[Masks, ...] = tuple(
            {
                str(index): self._mask(question, topology, pod_set, pin)
                for index, (pod_set, pin) in enumerate(zip(pod_sets, pinned, strict=True))
            }
            for pinned in pins(pod_sets, topology, self.books.nodes)
        )
        return SearchRequest(
            topology.tree,
            topology.capacity,
            Gang(str(question.gang.key), tree.root(), question.gang.priority),
            attempts,
            self._roomy(question, topology, attempts[0]),
            tree.kept,
            replace(
                self.options,
                order=self.options.order if is_kueues else policy.order,
                unconstrained=policy.unconstrained,
                floor_first=policy.floor_first,
                scores=self._scores(pod_sets, topology),
                arriving=self._arriving(question, topology),
            ),
        )

    def tree(self, question: Question, topology: TopologyBooks) -> GroupTree:
        """The groups and pod sets of a question."""
        kept = {
            str(index): kept_slots(pod_set, topology)
            for index, pod_set in enumerate(question.pod_sets)
            if pod_set.slices
        }
        return GroupTree(
            self.books,
            topology,
            question.gang,
            question.pod_sets,
            question.units,
            kept,
            question.shared.constraint,
            question.is_balanced,
        )

    def _roomy(self, question: Question, topology: TopologyBooks, masks: Masks) -> Masks | None:
        """These masks without the domains that have too little for the gangs that follow.

        None: that is none of them, or all.
        """
        level = question.shared.constraint.required
        if level is None or question.shared.nodes or not question.to_follow:
            return None
        own = ((pod_set.shaped[0], len(pod_set.unplanned)) for pod_set in question.pod_sets)
        needed = together(
            (self.books.vector(request), pods) for request, pods in (*own, *question.to_follow)
        )
        demand = [needed.get(row, 0) for row in range(max(needed) + 1)]
        depth = topology.levels.index(level)
        has_room = topology.capacity.may_cover(depth, demand)
        if has_room.all() or not has_room.any():
            return None
        inside = has_room[topology.tree.domain_of[depth]]
        return {name: mask & inside for name, mask in masks.items()}

    def _arriving(
        self, question: Question, topology: TopologyBooks
    ) -> list[tuple[tuple[int, ...], Pairs]]:
        """The pods nominated for nodes of this topology."""
        slot_of = topology.tree.slot_of
        found = []
        for request, pods in question.nominated.pods.items():
            here = [(slot_of[node], number) for node, number in pods.items() if node in slot_of]
            if here:
                found.append((self.books.counted(request), Pairs.of(here)))
        return found

    def _scores(
        self, pod_sets: Sequence[PodSetMembers], topology: TopologyBooks
    ) -> dict[Hashable, np.typing.NDArray[np.int64]]:
        """The scores of preferred node affinity, for pod sets that have any."""
        if not self.honours_preferred:
            return {}
        return {
            str(index): self.node_table.scores(pod_set.shaped[1], topology.tree)
            for index, pod_set in enumerate(pod_sets)
            if pod_set.shaped[1].preferred
        }

    def _mask(
        self,
        question: Question,
        topology: TopologyBooks,
        pod_set: PodSetMembers,
        pin: slice | None,
    ) -> Mask:
        # A replacement does not go where the pod before it was evicted.
        is_running = question.gang.membership.bound
        mask_of = self.node_table.lasting if is_running else self.node_table.mask
        mask = mask_of(pod_set.shaped[1], topology.tree)
        refused = self.refused(question, topology, pod_set)
        if pin is None and refused is None and pod_set.allowed is None and not question.closed:
            return mask
        narrowed = mask.copy() if refused is None else mask & ~refused
        if question.closed:
            narrowed &= ~among(question.closed, topology)
        if pod_set.allowed is not None:
            narrowed &= among(pod_set.allowed, topology)
        if pin is not None:
            narrowed[: pin.start] = False
            narrowed[pin.stop :] = False
        return narrowed

    def refused(
        self, question: Question, topology: TopologyBooks, pod_set: PodSetMembers
    ) -> Mask | None:
        """Nodes that kube-scheduler excludes for this pod set; None: there are none."""
        remembered, offer = (
            self.refusals.of(question.gang.key.namespace, pod_set.shaped),
            question.offer,
        )
        is_refused = among(remembered, topology) if remembered else None
        if offer is None or offer.shaped != pod_set.shaped:
            return is_refused
        left_out = ~among(offer.nodes, topology)
        if offer.narrowed_to is not None:
            left_out &= among(offer.narrowed_to, topology)
        return left_out if is_refused is None else left_out | is_refused


def among(nodes: Collection[str], topology: TopologyBooks) -> Mask:
    """The slots of these nodes. Shapes: (N,)."""
    slot_of = topology.tree.slot_of
    found = np.zeros(len(topology.tree.nodes), dtype=np.bool_)
    found[[slot_of[node] for node in nodes if node in slot_of]] = True
    return found
