"""Where a gang is placed: from its members to nodes, one search per gang.

    members ──pod_sets──▶ question ──request──▶ placement ──assignment──▶ nodes

A request that found no place is searched again when something has changed for it (`unfit.py`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain, islice

import numpy as np

from app.dialects.spec import GangKey, TierPacking
from app.state.cache.books import ALL_NODES, Books
from app.state.cache.node_refusals import Offer, Refusals, Shaped
from app.state.cache.node_table import NodeTable
from app.state.cache.topology_books import TopologyBooks
from app.state.effects import PlaceAnswer
from app.state.gang.families import Families
from app.state.gang.gang import Gang
from app.state.gang.last_places import LastPlaces
from app.state.gang.members.member import Member
from app.state.gang.parts import Searched
from app.state.isolation import OnFault, reraise
from app.state.plan.assignment import plan_of
from app.state.plan.elsewhere.long_search import Answered, part_of
from app.state.plan.elsewhere.search_on import SearchesOn
from app.state.plan.exclusions import Told, explained
from app.state.plan.in_parts import InParts
from app.state.plan.nearness import everywhere, nearness, places_of, planned_by_leaf
from app.state.plan.question.parts import PartRequests, Unplaced
from app.state.plan.question.pod_sets import (
    PodSetMembers,
    are_narrowed_apart,
    flaw_in_units,
)
from app.state.plan.question.request import (
    Builder,
    Question,
    SearchRequest,
    among,
    depends_on,
    inside,
    search,
)
from app.state.plan.serving import Served, Serving
from app.state.plan.unfit import Signature, Unfit
from app.state.plan.verdict import (
    CLAIMS_NOT_COUNTED,
    NO_NODES,
    InvalidGang,
    NoPlan,
    Plan,
    SearchFailed,
    StillSearching,
)
from app.state.pods.nominations import Nominations, Together
from app.state.turns.budget import POD, Budget
from app.state.turns.queue import Rank, rank_in_queue
from topology.errors import InvalidRequest
from topology.fit.fit import pods_per_node
from topology.fit.view import Allowance, Options
from topology.model.answer import NoFit, Placement
from topology.model.request import DomainOrder

MOST_TRIES = 32  # failed attempts per search for a gang of several pod sets
PER_NODE = 10  # visits of each node beside `visits_per_search`: all of them at once cost little
CELLS_PER_VISIT = 64  # of packings, for each of `visits_per_search`


@dataclass(slots=True)
class Planner:
    """Places gangs on the books as they are; changes nothing but a gang's `last_search`."""

    books: Books
    node_table: NodeTable
    refusals: Refusals
    nominations: Nominations
    budget: Budget
    searches_on: SearchesOn
    most_visits: int
    """In one search for a gang of several pod sets; what takes more goes on elsewhere."""
    honours_preferred: bool = True  # preferred node affinity decides before capacity does
    is_balanced: bool = False  # pods with a preferred level are spread evenly
    order: DomainOrder = DomainOrder.TIGHTEST  # of gangs whose policy is Kueue's
    packing: TierPacking = field(default_factory=TierPacking)  # what makes domains full
    families: Families = field(default_factory=Families)
    last_places: LastPlaces = field(default_factory=LastPlaces)
    is_ready: bool = False  # false until every list is in: no plan from a part of the cluster
    leads: bool = True  # else we follow another Corral (`lifecycle/succession.py`)
    on_fault: OnFault = reraise
    earmarked: dict[GangKey, tuple[frozenset[str], Rank]] = field(default_factory=dict)
    """Nodes kept for a gang from those that come after it (`fairness/starvation.py`)."""
    free_in: dict[GangKey, float] = field(default_factory=dict)
    """Of these, in how many seconds all are likely to be free: what ends before may use them."""
    expected_seconds: Callable[[Gang], float] = lambda gang: math.inf
    """How long a gang is likely to run."""
    new_nodes: dict[GangKey, tuple[frozenset[str], Rank]] = field(default_factory=dict)
    """The same of nodes that were made while it asked for some (`autoscaling/new_nodes.py`)."""
    serving: Serving = field(init=False)
    _options: Options = field(init=False)
    _unfit: Unfit = field(init=False)

    def __post_init__(self) -> None:
        self.serving = Serving(self.books, self.node_table, self.families)
        self._options = Options(tries=MOST_TRIES, order=self.order, visits=self.node_table.visits)
        self._unfit = Unfit(self.books, self.node_table)

    def refresh(self) -> None:
        """Bring the trees up to date before a search."""
        self.books.refresh()

    def capacity_grew(self, nodes: Collection[str]) -> None:
        """Note that there may be places where none were: on these nodes; none: anywhere."""
        self._unfit.grew(nodes)

    # -- searches ------------------------------------------------------------------------------

    def plan(
        self,
        gang: Gang,
        offer: Offer | None = None,
        members: tuple[Member, ...] | None = None,
        *,
        has_more_room: bool = False,
        may_go_on: bool = False,
    ) -> Plan | NoPlan:
        """A node for every member that is not planned yet, or for those named, or why not.

        `has_more_room`: the books show more room than other gangs find, for a part of this gang's
        plan yields to the rest. `may_go_on`: a search that takes too long goes on elsewhere; the
        same call then takes its answer.
        """
        with self._counted(gang, pods=len(gang.unplanned() if members is None else members)):
            try:
                found = self._searched(
                    gang, offer, members, has_more_room=has_more_room, may_go_on=may_go_on
                )
            except Exception as error:
                self.on_fault(f"search for gang {gang.key}", error)
                return NoPlan(SearchFailed(type(error).__name__))
        if isinstance(found, NoPlan) and isinstance(found.why, NoFit):
            notes = (
                found.note,
                "" if self.books.nodes else NO_NODES,
                CLAIMS_NOT_COUNTED if gang.has_claims else "",
            )
            note = "; ".join(filter(None, notes))
            return replace(found, note=note) if note else found
        return found

    @contextmanager
    def _counted(self, gang: Gang, pods: int = 0) -> Iterator[None]:
        """Have so many pods, and what the block looks at, counted for the gang's namespace."""
        visits = self.node_table.visits
        before = visits.total
        try:
            yield
        finally:
            self.budget.spend(gang.key.namespace, visits.total - before + POD * pods)

    def _searched(
        self,
        gang: Gang,
        offer: Offer | None,
        members: tuple[Member, ...] | None,
        *,
        has_more_room: bool,
        may_go_on: bool,
    ) -> Plan | NoPlan:
        if flaw := flaw_in_units(gang):
            return NoPlan(InvalidGang(flaw))
        pod_sets = self.serving.pod_sets(gang, members)
        served = self.serving.served(gang, pod_sets)
        for its, topologies in served:
            if not topologies:
                return NoPlan(self.serving.why_none(gang, its))
        question = self._question(gang, pod_sets, offer)
        signature = question.signature
        if has_more_room:
            signature = (*signature, gang.key)
        namespace = gang.key.namespace
        if any(self.refusals.of(namespace, pod_set.shaped) for pod_set in pod_sets):
            signature = (*signature, namespace)
        if offer is None and members is None:
            gang.last_search = Searched(signature, gang.version)
        if offer is None and (known := self._unfit.verdict(signature)):
            return known
        if len(served) > 1:
            in_parts = self._in_parts(self._builder(), question, served)
            assert in_parts is not None  # each has a topology
            return self._searched_in_parts(in_parts, question, signature, may_go_on=may_go_on)
        ((_, topologies),) = served
        answered = self._answered(question, signature, topologies) if may_go_on else None
        if answered is not None:
            return answered
        verdict: NoPlan | None = None
        for topology in topologies:
            found = self._on(topology, question)
            if isinstance(found, Plan):
                return found
            if found.is_pending:
                if may_go_on:
                    self._go_on(question, signature, topologies)
                return found
            # What is invalid on one topology may only lack room on another one.
            if verdict is None or (found.is_about_cluster and not verdict.is_about_cluster):
                verdict = found
        assert verdict is not None  # there is at least one topology
        if offer is None:
            self._note_unfit(question, signature, verdict)
        return verdict

    def _in_parts(self, builder: Builder, question: Question, served: Served) -> InParts | None:
        """A question in parts; None: one is on a topology that is not there."""
        if not all(topologies for _, topologies in served):
            return None
        parts = [(question.part(its), topologies[0]) for its, topologies in served]
        return InParts(builder, parts)

    def _searched_in_parts(
        self, in_parts: InParts, question: Question, signature: Signature, *, may_go_on: bool
    ) -> Plan | NoPlan:
        """The answer for a gang that is placed on several topologies at once."""
        try:
            requests = in_parts.requests()
            if may_go_on:
                answered = self._answered_in_parts(in_parts, requests, question, signature)
                if answered is not None:
                    return answered
            found = self._allowed_parts(requests).answer()
        except InvalidRequest as error:
            is_split = any(pod_set.is_split for pod_set in question.pod_sets)
            return NoPlan(InvalidGang(str(error), is_permanent=not is_split))
        if not isinstance(found, Unplaced):
            return in_parts.plan(found)
        if found.why.is_unfinished:
            if may_go_on:
                key, now = question.gang.key, self._unfit.now
                self.searches_on.ask(key, signature, in_parts.searches, now, requests)
            return NoPlan(StillSearching())
        verdict = in_parts.no_plan(found)
        if question.offer is None:
            self._note_unfit(question, signature, verdict)
        return verdict

    def _note_unfit(
        self, question: Question, signature: Signature, verdict: NoPlan, at: int | None = None
    ) -> None:
        """Remember a verdict on the books as they are, or as they were (`unfit.py`)."""
        if isinstance(verdict.why, NoFit):
            is_rest = next(question.gang.settled(), None) is not None
            pods = (pod_set.shaped for pod_set in question.pod_sets)
            self._unfit.note(signature, verdict, pods, question.gang.key, is_rest=is_rest, at=at)

    def _go_on(
        self, question: Question, signature: Signature, topologies: Iterable[TopologyBooks]
    ) -> None:
        """Have a search gone on with elsewhere."""
        self.searches_on.ask(
            question.gang.key,
            signature,
            lambda: _requests(self._builder(), question, topologies),
            self._unfit.now,
        )

    def _answered(
        self, question: Question, signature: Signature, topologies: Sequence[TopologyBooks]
    ) -> Plan | NoPlan | None:
        """What such a search has found, where it is still so; None: it is to be searched for."""

        def used(known: Answered, answer: PlaceAnswer) -> Plan | NoPlan | None:
            its = (each for each in topologies if each.name == answer.topology)
            found = (self._by_answer(known, answer, question, topology) for topology in its)
            return next(found, None)

        return self._taken(question, signature, used)

    def _taken(
        self,
        question: Question,
        signature: Signature,
        use: Callable[[Answered, PlaceAnswer], Plan | NoPlan | None],
    ) -> Plan | NoPlan | None:
        """What is made of an answer; `use` gives None where it is over."""
        key = question.gang.key
        known = self.searches_on.taken(key, signature)
        if known is None:
            is_sought = self.searches_on.is_sought(key, signature)
            return NoPlan(StillSearching()) if is_sought else None
        if known.answer is None:
            return NoPlan(SearchFailed("see the log"))
        found = use(known, known.answer)
        if found is not None:
            self.searches_on.used(key)
            return found
        is_put_off = self.searches_on.is_in_vain(key)
        return NoPlan(StillSearching(is_put_off=True)) if is_put_off else None

    def _answered_in_parts(
        self, in_parts: InParts, requests: PartRequests, question: Question, signature: Signature
    ) -> Plan | NoPlan | None:
        """The same of a search on several topologies at once."""

        def used(known: Answered, answer: PlaceAnswer) -> Plan | NoPlan | None:
            if answer.why is None:
                placed = known.place_parts(requests)
                return None if placed is None else in_parts.plan(placed)
            part, pod_set = part_of(answer.why.pod_set)
            if part >= len(requests.requests):
                return None
            why, is_alone = replace(answer.why, pod_set=pod_set), bool(answer.topology)
            verdict = in_parts.no_plan(Unplaced(part, why, requests.requests[part], is_alone))
            self._note_answered(question, known, verdict)
            return verdict

        return self._taken(question, signature, used)

    def _note_answered(self, question: Question, known: Answered, verdict: NoPlan) -> None:
        """Remember a verdict that was found elsewhere, on books as they were."""
        self._note_unfit(question, known.signature, verdict, known.asked_at)
        if not self._unfit.still_holds(known.signature):
            self.searches_on.again(question.gang.key, known.signature)

    def _by_answer(
        self, known: Answered, answer: PlaceAnswer, question: Question, topology: TopologyBooks
    ) -> Plan | NoPlan | None:
        """The plan or verdict by an answer; None: it is over on the books as they are."""
        try:
            request = self._builder().request(question, topology)
        except InvalidRequest:  # the topology is another one by now
            return None
        if answer.why is not None:
            verdict = self._verdict(answer.why, question, topology, request)
            self._note_answered(question, known, verdict)
            return verdict
        placement = known.place(request)
        if placement is None:
            return None
        plan = plan_of(question.gang, placement, question.pod_sets, topology)
        return self._as_before(question, self._allowed(request), plan, topology) or plan

    def _allowed(self, request: SearchRequest) -> SearchRequest:
        """The same with the allowance of a search on the loop."""
        return _with_allowance(request, self._allowance(len(request.tree.nodes)))

    def _allowed_parts(self, requests: PartRequests) -> PartRequests:
        """The same with one allowance for the searches of all parts."""
        nodes = sum(len(each.tree.nodes) for each in requests.requests)
        return requests.mapped(partial(_with_allowance, allowance=self._allowance(nodes)))

    def _allowance(self, nodes: int) -> Allowance:
        last_visit = self.node_table.visits.total + self.most_visits + PER_NODE * nodes
        return Allowance(last_visit, CELLS_PER_VISIT * self.most_visits)

    def finds(
        self, gang: Gang, change: Callable[[SearchRequest], SearchRequest]
    ) -> Iterator[bool | None]:
        """Whether its searches would find places if they were changed so; None: that takes long.

        One answer for each topology that may serve it, or one for all that it is placed on at once;
        as if no node were kept for others or had refused its pods.
        """
        in_parts = self._asked_in_parts(gang, is_free=True)
        if in_parts is not None:
            with suppress(InvalidRequest):
                found = self._allowed_parts(in_parts.requests().mapped(change)).answer()
                is_unknown = isinstance(found, Unplaced) and found.why.is_unfinished
                yield None if is_unknown else not isinstance(found, Unplaced)
            return
        for request in self.requests(gang, is_free=True):
            with suppress(InvalidRequest):
                answer = search(self._allowed(change(request)))
                is_unknown = isinstance(answer, NoFit) and answer.is_unfinished
                yield None if is_unknown else isinstance(answer, Placement)

    def _on(self, topology: TopologyBooks, question: Question) -> Plan | NoPlan:
        """The answer on one topology."""
        builder = self._builder()
        try:
            request = builder.request(question, topology)
            allowed = self._allowed(request)
            answer = search(allowed)
        except InvalidRequest as error:
            # That pods were narrowed to different domains is no mistake of their owner.
            is_split = any(pod_set.is_split for pod_set in question.pod_sets)
            return NoPlan(InvalidGang(str(error), is_permanent=not is_split))
        if isinstance(answer, Placement):
            plan = plan_of(question.gang, answer, question.pod_sets, topology)
            return self._as_before(question, allowed, plan, topology) or plan
        if answer.is_unfinished:
            return NoPlan(StillSearching())
        return self._verdict(answer, question, topology, request)

    def _verdict(
        self, answer: NoFit, question: Question, topology: TopologyBooks, request: SearchRequest
    ) -> NoPlan:
        """Why there is no place, with what looks up the reasons."""
        builder = self._builder()
        return NoPlan(
            answer,
            explain=lambda: explained(answer, builder, question, topology, request),
            is_narrowed_apart=are_narrowed_apart(question.pod_sets),
        )

    def _as_before(
        self, question: Question, request: SearchRequest, plan: Plan, topology: TopologyBooks
    ) -> Plan | None:
        """The plan where the gang was that this one succeeds; None: this plan is a better one.

        On its nodes, else in the domains of them; with as many pods, and as near together.
        """
        gang, spec = question.gang, question.gang.membership.spec
        before = self.last_places.of(None if spec is None else spec.successor_of)
        if spec is None or not before or gang.has_started:
            return None
        on = everywhere(topology)
        for nodes in places_of(before, spec, topology):
            answer = search(inside(request, among(nodes, topology)))
            if isinstance(answer, Placement):
                again = plan_of(gang, answer, question.pod_sets, topology)
                is_as_large = len(again.nodes) >= len(plan.nodes)
                near, nearest = (
                    nearness(spec, planned_by_leaf(spec, gang.members, each.nodes), on)
                    for each in (again, plan)
                )
                if is_as_large and near >= nearest:
                    return again
        return None

    def _question(
        self, gang: Gang, pod_sets: tuple[PodSetMembers, ...], offer: Offer | None
    ) -> Question:
        return Question.of(
            gang,
            pod_sets,
            self.kept_from(gang),
            offer,
            self._nominated(gang),
            self.families.shared(gang),
            self.families.to_follow(gang),
            is_balanced=self.is_balanced,
        )

    def _builder(self) -> Builder:
        weights, options = self.packing.weights_by_row(self.books.axis), self._options
        if weights is not None:
            options = replace(options, weights=weights)
        return Builder(self.books, self.node_table, self.refusals, options, self.honours_preferred)

    def requests(self, gang: Gang, *, is_free: bool = False) -> Iterator[SearchRequest]:
        """The searches for a gang that waits: one on each topology that may serve it.

        None for one that is placed on several at once. `is_free`: as if no node were kept for
        others or had refused its pods.
        """
        for _, _, request in self._asked(gang, is_free=is_free):
            yield request

    def is_kept_off(self, gang: Gang) -> bool:
        """Whether nodes are kept for gangs before this one, or have refused pods like its own."""
        namespace = gang.key.namespace
        return bool(self.kept_from(gang)) or any(
            self.refusals.of(namespace, pod_set.shaped) for pod_set in self.serving.pod_sets(gang)
        )

    def told(self, gang: Gang) -> Iterator[Told]:
        """The same searches, with all that their answers are told in.

        Of a gang on several topologies that of the first part that finds no place, beside the
        others; if all do, that of the part that comes first.
        """
        in_parts = self._asked_in_parts(gang)
        if in_parts is not None:
            with suppress(InvalidRequest), self._counted(gang):
                requests = in_parts.requests()
                found = self._allowed_parts(requests).answer(most=2 * len(requests.requests))
                if not isinstance(found, Unplaced):
                    yield in_parts.told(0, requests.requests[0])
                elif not found.why.is_unfinished:
                    yield in_parts.told(found.part, found.as_if_there)
            return
        for question, topology, request in self._asked(gang):
            yield Told.of(self._builder(), question, topology, request)

    def _asked(
        self, gang: Gang, *, is_free: bool = False
    ) -> Iterator[tuple[Question, TopologyBooks, SearchRequest]]:
        if flaw_in_units(gang):
            return
        with self._counted(gang, pods=len(gang.unplanned())):
            builder, question = self._waiting(gang, is_free=is_free)
            served = self.serving.served(gang, question.pod_sets)
            if len(served) > 1:
                return  # no search alone says whether there is a place
            for topology, request in _requests(builder, question, served[0][1]):
                yield question, topology, request

    def _asked_in_parts(self, gang: Gang, *, is_free: bool = False) -> InParts | None:
        """What is searched for a gang that waits and is placed on several topologies at once."""
        if flaw_in_units(gang) or not self.serving.is_in_parts(gang):
            return None
        with self._counted(gang, pods=len(gang.unplanned())):
            builder, question = self._waiting(gang, is_free=is_free)
            return self._in_parts(builder, question, self.serving.served(gang, question.pod_sets))

    def _waiting(self, gang: Gang, *, is_free: bool) -> tuple[Builder, Question]:
        """What asks for the members of a gang that have no node; `is_free` as of `requests`."""
        question, builder = self._question(gang, self.serving.pod_sets(gang), None), self._builder()
        if is_free:
            question = replace(question, closed=frozenset())
            builder = replace(builder, refusals=Refusals())
        return builder, question

    def pods_by_node(self, gang: Gang, shaped: Shaped) -> Mapping[str, int]:
        """How many pods like these each node takes now; nodes that take none are left out.

        As those see it who know nothing of what is kept for gangs, nor of levels.
        """
        request, shape = shaped
        every, vector = self.books.topologies[ALL_NODES], self.books.vector(request)
        with self._counted(gang):
            mask = self.node_table.mask(shape, every.tree) & every.capacity.is_open
        pods = pods_per_node(every.capacity.free(range(len(vector))), vector)
        slots = np.flatnonzero(mask & (pods > 0)).tolist()
        return {every.tree.nodes[slot]: int(pods[slot]) for slot in slots}

    def sought(self, gang: Gang) -> tuple[object, ...]:
        """What a gang needs a place for: the same places serve those for which this is equal."""
        if flaw_in_units(gang):
            return (gang.key, gang.version)  # no place serves it
        return Question.of(gang, self.serving.pod_sets(gang), frozenset(), None).pods

    def seats(
        self, gang: Gang, places: Iterable[tuple[int, str, int]]
    ) -> Iterator[tuple[Member, str]]:
        """A node for each of a gang's unplanned pods: (pod set, node, pods) of an answer."""
        pod_sets = enumerate(self.serving.pod_sets(gang))
        unseated = {index: iter(each.unplanned) for index, each in pod_sets}
        for index, node, pods in places:
            for member in islice(unseated.get(index, ()), pods):
                yield member, node

    # -- requests that have no place -----------------------------------------------------------

    def is_unfit(self, gang: Gang) -> bool:
        """Whether the last search for this gang found no place, and one would find none now."""
        last = gang.last_search
        with self._counted(gang):
            return (
                last is not None
                and last.version == gang.version
                and depends_on(last.signature) == self._others(gang)
                and self._unfit.still_holds(last.signature)
            )

    def leave(self, gang: Gang) -> None:
        """Let go of a gang that is gone."""
        self.families.leave(gang.key)
        self._unfit.leave(gang.key)

    def _others(self, gang: Gang) -> tuple[object, ...]:
        """What of a signature changes without the gang, as it is now (`depends_on`)."""
        return self.kept_from(gang), self._nominated(gang), self.families.shared(gang)

    def _nominated(self, gang: Gang) -> Together:
        """Pods that this gang gives way to on the nodes they are nominated for."""
        lowest = gang.membership.lowest_priority
        known = (gang.members, gang.placeholders, self.nominations.booked(self.books))
        return self.nominations.above(lowest, *known)

    def earmark(
        self, nodes: Mapping[GangKey, tuple[frozenset[str], Rank]], free_in: Mapping[GangKey, float]
    ) -> None:
        """Keep these nodes, and no others, for gangs that starve."""
        self.earmarked, self.free_in = dict(nodes), dict(free_in)

    def kept_from(self, gang: Gang) -> frozenset[str]:
        """Nodes that are kept for gangs which come before this one."""
        if not (self.earmarked or self.new_nodes):
            return frozenset()
        rank = rank_in_queue(gang)
        seconds = self.expected_seconds(gang) if self.free_in else math.inf
        passed = {key for key, free_in in self.free_in.items() if seconds <= free_in}
        earmarked = (each for each in self.earmarked.items() if each[0] not in passed)
        each = chain(earmarked, self.new_nodes.items())
        others = (nodes for key, (nodes, its) in each if key != gang.key and its < rank)
        return frozenset().union(*others)

    def kept(self) -> frozenset[str]:
        """Nodes that are kept for any gang."""
        each = chain(self.earmarked.values(), self.new_nodes.values())
        return frozenset().union(*(nodes for nodes, _ in each))


def _with_allowance(request: SearchRequest, allowance: Allowance) -> SearchRequest:
    return replace(request, options=replace(request.options, allowance=allowance))


def _requests(
    builder: Builder, question: Question, topologies: Iterable[TopologyBooks]
) -> Iterator[tuple[TopologyBooks, SearchRequest]]:
    """The question on each topology that it may be put to."""
    for topology in topologies:
        with suppress(InvalidRequest):
            yield topology, builder.request(question, topology)
