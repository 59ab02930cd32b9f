"""Where a gang is placed: from its members to nodes, one search per gang.

    members ──pod_sets──▶ question ──searches──▶ plan, or why there is none

A request that found no place is searched again when something has changed for it (`unfit.py`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from itertools import chain, islice

import numpy as np

from app.dialects.spec import GangKey
from app.state.cache.books import ALL_NODES, Books
from app.state.cache.eligibility.node_refusals import Offer, Refusals, Shaped
from app.state.cache.eligibility.node_table import NodeTable
from app.state.cache.topology_books import TopologyBooks
from app.state.gang.families import Families
from app.state.gang.gang import Gang
from app.state.gang.members.member import Member
from app.state.gang.parts import Searched
from app.state.isolation import OnFault, reraise
from app.state.plan.exclusions import Told
from app.state.plan.in_parts import InParts
from app.state.plan.question.parts import PartRequests, Unplaced
from app.state.plan.question.pod_sets import PodSetMembers, flaw_in_units
from app.state.plan.question.request import (
    Builder,
    Question,
    SearchRequest,
    depends_on,
    search,
)
from app.state.plan.searches import Searches, on_each
from app.state.plan.serving import Serving
from app.state.plan.verdict import (
    CLAIMS_NOT_COUNTED,
    NO_NODES,
    InvalidGang,
    NoPlan,
    Plan,
    SearchFailed,
)
from app.state.pods.nominations import Nominations, Together
from app.state.turns.budget import POD, Budget
from app.state.turns.queue import Rank, rank_in_queue
from topology.errors import InvalidRequest
from topology.fit.fit import pods_per_node
from topology.model.answer import NoFit


@dataclass(slots=True)
class Planner:
    """Places gangs on the books as they are; changes nothing but a gang's `last_search`."""

    books: Books
    node_table: NodeTable
    refusals: Refusals
    nominations: Nominations
    budget: Budget
    searches: Searches
    is_balanced: bool = False  # pods with a preferred level are spread evenly
    families: Families = field(default_factory=Families)
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

    def __post_init__(self) -> None:
        self.serving = Serving(self.books, self.node_table, self.families)

    def refresh(self) -> None:
        """Bring the trees up to date before a search."""
        self.books.refresh()

    def capacity_grew(self, nodes: Collection[str]) -> None:
        """Note that there may be places where none were: on these nodes; none: anywhere."""
        self.searches.unfit.grew(nodes)

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
                CLAIMS_NOT_COUNTED if self.has_claims(gang) else "",
            )
            note = "; ".join(filter(None, notes))
            return replace(found, note=note) if note else found
        return found

    def has_claims(self, gang: Gang) -> bool:
        """Whether some member that waits has claims, or requests what is taken by claims."""
        axis = self.books.axis
        if gang.has_claims or not axis.claimed:
            return gang.has_claims
        return any(map(axis.claims, {each.pod.request for each in gang.membership.unbound}))

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
        if offer is None and (known := self.searches.unfit.verdict(signature)):
            return known
        return self.searches.answer(question, signature, served, may_go_on=may_go_on)

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
                found = self.searches.allowed_parts(in_parts.requests().mapped(change)).answer()
                yield _is_found(found.why if isinstance(found, Unplaced) else None)
            return
        for request in self.requests(gang, is_free=True):
            with suppress(InvalidRequest):
                answer = search(self.searches.allowed(change(request)))
                yield _is_found(answer if isinstance(answer, NoFit) else None)

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

    def told(self, gang: Gang) -> tuple[tuple[Told, ...], PartRequests | None]:
        """The same searches, with all that their answers are told in.

        Of a gang on several topologies one for each part, and what asks for all of them at once.
        """
        in_parts = self._asked_in_parts(gang)
        if in_parts is not None:
            with suppress(InvalidRequest), self._counted(gang):
                parts = in_parts.requests()
                return tuple(in_parts.told(*part) for part in enumerate(parts.requests)), parts
            return (), None
        asked = self._asked(gang)
        return tuple(Told.of(self.searches.builder(), *each) for each in asked), None

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
            for topology, request in on_each(builder, question, served[0][1]):
                yield question, topology, request

    def _asked_in_parts(self, gang: Gang, *, is_free: bool = False) -> InParts | None:
        """What is searched for a gang that waits and is placed on several topologies at once."""
        if flaw_in_units(gang) or not self.serving.is_in_parts(gang):
            return None
        with self._counted(gang, pods=len(gang.unplanned())):
            builder, question = self._waiting(gang, is_free=is_free)
            return self.searches.in_parts(
                builder, question, self.serving.served(gang, question.pod_sets)
            )

    def _waiting(self, gang: Gang, *, is_free: bool) -> tuple[Builder, Question]:
        """What asks for the members of a gang that have no node; `is_free` as of `requests`."""
        question, builder = (
            self._question(gang, self.serving.pod_sets(gang), None),
            self.searches.builder(),
        )
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
                and self.searches.unfit.still_holds(last.signature)
            )

    def leave(self, gang: Gang) -> None:
        """Let go of a gang that is gone."""
        self.families.leave(gang.key)
        self.searches.unfit.leave(gang.key)

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


def _is_found(why_not: NoFit | None) -> bool | None:
    """Whether a search has found a place; None: there was no time to end it."""
    if why_not is None:
        return True
    return None if why_not.is_unfinished else False
