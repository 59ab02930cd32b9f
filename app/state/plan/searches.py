"""What is searched for a gang, on the topologies that serve it.

    question ──request──▶ placement ──assignment──▶ plan      on one topology after the other, or
    question in parts ──requests──▶ placements ──▶ plan       on several at once (`in_parts.py`)

A search that takes too long for the loop goes on elsewhere, and its answer is taken here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial

from app.dialects.spec import TierPacking
from app.state.cache.books import Books
from app.state.cache.eligibility.node_refusals import Refusals
from app.state.cache.eligibility.node_table import NodeTable
from app.state.cache.topology_books import TopologyBooks
from app.state.effects import PlaceAnswer
from app.state.gang.last_places import LastPlaces
from app.state.plan.assignment import plan_of
from app.state.plan.elsewhere.long_search import Answered, part_of
from app.state.plan.elsewhere.search_on import SearchesOn
from app.state.plan.exclusions import explained
from app.state.plan.in_parts import InParts
from app.state.plan.nearness import everywhere, nearness, places_of, planned_by_leaf
from app.state.plan.question.parts import PartRequests, Unplaced
from app.state.plan.question.pod_sets import are_narrowed_apart
from app.state.plan.question.request import (
    Builder,
    Question,
    SearchRequest,
    among,
    inside,
    search,
)
from app.state.plan.serving import Served
from app.state.plan.unfit import Signature, Unfit
from app.state.plan.verdict import InvalidGang, NoPlan, Plan, SearchFailed, StillSearching
from topology.errors import InvalidRequest
from topology.fit.view import Allowance, Options
from topology.model.answer import NoFit, Placement
from topology.model.request import DomainOrder

MOST_TRIES = 32  # failed attempts per search for a gang of several pod sets
PER_NODE = 10  # visits of each node beside `visits_per_search`: all of them at once cost little
CELLS_PER_VISIT = 64  # of packings, for each of `visits_per_search`


@dataclass(slots=True)
class Searches:
    """Finds places on the books as they are; changes nothing but what is known not to fit."""

    books: Books
    node_table: NodeTable
    refusals: Refusals
    searches_on: SearchesOn
    last_places: LastPlaces
    most_visits: int
    """In one search for a gang of several pod sets; what takes more goes on elsewhere."""
    order: DomainOrder  # of gangs whose policy is Kueue's
    packing: TierPacking  # what makes domains full
    honours_preferred: bool  # preferred node affinity decides before capacity does
    unfit: Unfit = field(init=False)
    _options: Options = field(init=False)

    def __post_init__(self) -> None:
        self._options = Options(tries=MOST_TRIES, order=self.order, visits=self.node_table.visits)
        self.unfit = Unfit(self.books, self.node_table)

    def builder(self) -> Builder:
        """What makes requests of questions on the books as they are."""
        weights, options = self.packing.weights_by_row(self.books.axis), self._options
        if weights is not None:
            options = replace(options, weights=weights)
        return Builder(self.books, self.node_table, self.refusals, options, self.honours_preferred)

    def answer(
        self, question: Question, signature: Signature, served: Served, *, may_go_on: bool
    ) -> Plan | NoPlan:
        """The plan or verdict on the topologies that serve the gang, one at least for each part.

        `may_go_on`: a search that takes too long goes on elsewhere; the same call then takes its
        answer.
        """
        if len(served) > 1:
            in_parts = self.in_parts(self.builder(), question, served)
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
        if question.offer is None:
            self._note_unfit(question, signature, verdict)
        return verdict

    def in_parts(self, builder: Builder, question: Question, served: Served) -> InParts | None:
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
            found = self.allowed_parts(requests).answer()
        except InvalidRequest as error:
            return _invalid(question, error)
        if not isinstance(found, Unplaced):
            return in_parts.plan(found)
        if found.why.is_unfinished:
            if may_go_on:
                key, now = question.gang.key, self.unfit.now
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
            settled = sum(1 for _ in question.gang.settled())
            pods = (pod_set.shaped for pod_set in question.pod_sets)
            self.unfit.note(signature, verdict, pods, question.gang.key, settled=settled, at=at)

    def _go_on(
        self, question: Question, signature: Signature, topologies: Iterable[TopologyBooks]
    ) -> None:
        """Have a search gone on with elsewhere."""
        self.searches_on.ask(
            question.gang.key,
            signature,
            lambda: on_each(self.builder(), question, topologies),
            self.unfit.now,
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
            why, is_alone = replace(answer.why, pod_set=pod_set), answer.topology is not None
            verdict = in_parts.no_plan(Unplaced(part, why, requests.requests[part], is_alone))
            self._note_answered(question, known, verdict)
            return verdict

        return self._taken(question, signature, used)

    def _note_answered(self, question: Question, known: Answered, verdict: NoPlan) -> None:
        """Remember a verdict that was found elsewhere, on books as they were."""
        self._note_unfit(question, known.signature, verdict, known.asked_at)
        if not self.unfit.still_holds(known.signature):
            self.searches_on.again(question.gang.key, known.signature)

    def _by_answer(
        self, known: Answered, answer: PlaceAnswer, question: Question, topology: TopologyBooks
    ) -> Plan | NoPlan | None:
        """The plan or verdict by an answer; None: it is over on the books as they are."""
        try:
            request = self.builder().request(question, topology)
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
        return self._as_before(question, self.allowed(request), plan, topology) or plan

    def allowed(self, request: SearchRequest) -> SearchRequest:
        """The same with the allowance of a search on the loop."""
        return _with_allowance(request, self._allowance(len(request.tree.nodes)))

    def allowed_parts(self, requests: PartRequests) -> PartRequests:
        """The same with one allowance for the searches of all parts."""
        nodes = sum(len(each.tree.nodes) for each in requests.requests)
        return requests.mapped(partial(_with_allowance, allowance=self._allowance(nodes)))

    def _allowance(self, nodes: int) -> Allowance:
        last_visit = self.node_table.visits.total + self.most_visits + PER_NODE * nodes
        return Allowance(last_visit, CELLS_PER_VISIT * self.most_visits)

    def _on(self, topology: TopologyBooks, question: Question) -> Plan | NoPlan:
        """The answer on one topology."""
        builder = self.builder()
        try:
            request = builder.request(question, topology)
            allowed = self.allowed(request)
            answer = search(allowed)
        except InvalidRequest as error:
            return _invalid(question, error)
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
        builder = self.builder()
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


def _invalid(question: Question, error: InvalidRequest) -> NoPlan:
    """The verdict on what cannot be asked."""
    # That pods were narrowed to different domains is no mistake of their owner.
    is_split = any(pod_set.is_split for pod_set in question.pod_sets)
    return NoPlan(InvalidGang(str(error), is_permanent=not is_split))


def _with_allowance(request: SearchRequest, allowance: Allowance) -> SearchRequest:
    return replace(request, options=replace(request.options, allowance=allowance))


def on_each(
    builder: Builder, question: Question, topologies: Iterable[TopologyBooks]
) -> Iterator[tuple[TopologyBooks, SearchRequest]]:
    """The question on each topology that it may be put to."""
    for topology in topologies:
        with suppress(InvalidRequest):
            yield topology, builder.request(question, topology)
