"""Nodes kept free for gangs that have waited too long.

Smaller gangs can overtake a gang that needs a whole rack for ever. After `starvation_seconds` it
earmarks nodes of the domain that is likely to be free first: of those that could take all of it,
the one where most of it fits already. No gang behind it in the queue is placed there, and no
ordinary pod that requests what the gang needs, but for pods of a higher priority.

    a gang with a required level ─▶ a domain of it ─▶ as few of its nodes as could take the gang

One pending pod must not close a cluster. So only pods that exist count, and only nodes that would
have room if all pods that end had ended. Earmarks are few in a namespace, a share of all nodes, and
have an end, after which the namespace has none for as long as it had one. No node is earmarked
where room is kept for a gang of the same or a higher priority, which others were evicted for. If an
earmarked node has gone or takes no pods any more, other nodes are kept instead where some would do.

With `backfill` on it is known of some pods when they end (`expected_room.py`). Then the nodes are
those of the domain that is likely to have room first, or of the whole cluster for a gang without a
required level; what is likely to end before all of them are free may use them until then; and the
earmark is found anew, at every review if the work of one allows that: gangs take turns, and one
whose nodes were not read yet has another one before those that had theirs. It ends when the room
has not come `earmark_seconds` after it was expected first; if it does come, the namespace may have
the next one at once.

A gang that is not planned before its own pods come to /filter is not among those that wait here: it
had its domain, and could not use it.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from heapq import nsmallest
from itertools import islice

import numpy as np

from app.dialects.spec import GangKey
from app.kube.core.objects import PodRecord
from app.state.cache.books import Books
from app.state.cache.eligibility.node_table import NodeTable
from app.state.cache.topology_books import TopologyBooks
from app.state.fairness.earmark import Earmark, scarce_in
from app.state.fairness.endings import Endings
from app.state.fairness.enough_nodes import ANYWHERE, Fit, Lasting, Sought, fewest
from app.state.fairness.expected_room import Expected, Need, first_room, wanted_slots
from app.state.fairness.run_times import RunTimes
from app.state.gang.gang import Gang
from app.state.isolation import confined
from app.state.plan.planner import Planner
from app.state.plan.question.pod_sets import PodSetMembers
from app.state.plan.question.request import among
from app.state.pods.nominations import Nominations
from app.state.settings import EngineSettings
from app.state.turns.queue import Rank, rank_in_queue
from topology.fit import fit
from topology.model.capacity import Capacity
from topology.model.resources import Counts, Mask

NOTHING: frozenset[str] = frozenset()
MOST_TRIED = 32  # gangs in one review; the others are tried in the next ones
MOST_TRIED_IN_NAMESPACE = 4
MOST_NODES_READ = 2_048  # in one review for what lasts there: added up, 5 us for 30 pods
MOST_DOMAINS = 4  # tried for one gang


@dataclass(slots=True)
class Starvation:
    """The earmarks by gang.

    Invariant: a namespace has at most `earmarks_per_namespace` of them, rests included.
    """

    settings: EngineSettings
    books: Books
    node_table: NodeTable
    nominations: Nominations
    planner: Planner
    run_times: RunTimes
    of: dict[GangKey, Earmark] = field(default_factory=dict)
    endings: Endings = field(init=False)
    too_large: dict[GangKey, int] = field(default_factory=dict)
    """The nodes that a gang would need: more than may be kept at all."""
    _rests: dict[str, list[float]] = field(default_factory=dict)
    """By namespace: for each earmark that has ended, until when no other takes its place."""
    _tried: set[GangKey] = field(default_factory=set)  # since all others were
    _reviewed_at: float = 0.0

    def __post_init__(self) -> None:
        self.endings = Endings(self.books, self.run_times, self.settings.backfill_seconds)

    # -- giving and ending -----------------------------------------------------------------------

    def review(self, waiting: Iterable[Gang], now: float) -> frozenset[str]:
        """Give and end earmarks; returns the nodes whose earmark ended or changed."""
        limit, floor = now - self.settings.starvation_seconds, self.settings.earmark_priority
        starving = {
            gang.key: gang
            for gang in waiting
            if gang.complete_at <= limit and gang.priority >= floor
        }
        before = dict(self.of)
        self._reviewed_at = now
        self._end(starving, now)
        if starving:
            self.endings.begin(now)
        else:
            self.endings.forget()
        self._give(starving.values(), now, Lasting(self.books, MOST_NODES_READ))
        self.planner.earmark(
            {key: (each.nodes, rank_in_queue(starving[key])) for key, each in self.of.items()},
            {key: each.free_at - now for key, each in self.of.items() if each.is_expected},
        )
        return NOTHING.union(
            *(
                each.nodes
                for key, each in before.items()
                if key not in self.of or self.of[key].opens_more_than(each)
            )
        )

    def _end(self, starving: Mapping[GangKey, Gang], now: float) -> None:
        for key, mark in list(self.of.items()):
            if key not in starving or mark.until <= now:
                del self.of[key]
                # Before it was to be free others could use it.
                closed = now - max(mark.since, mark.until - self.settings.earmark_seconds)
                has_come = mark.is_expected and mark.until > now and self._has_place(key)
                if closed > 0 and not has_come:
                    self._rests.setdefault(key.namespace, []).append(now + closed)
        for namespace, ends in list(self._rests.items()):
            self._rests[namespace] = [end for end in ends if end > now]
            if not self._rests[namespace]:
                del self._rests[namespace]
        self.too_large = {key: nodes for key, nodes in self.too_large.items() if key in starving}
        self._tried.intersection_update(starving)

    def _has_place(self, key: GangKey) -> bool:
        gang = self.run_times.gangs.by_key.get(key)
        return gang is not None and bool(gang.plan.nodes or gang.has_started)

    def _give(self, starving: Iterable[Gang], now: float, lasting: Lasting) -> None:
        """Try gangs in turn, those as well whose nodes get free at some time: others may before."""
        kept = Counter(key.namespace for key in self.of)
        kept.update({namespace: len(ends) for namespace, ends in self._rests.items()})
        tried = Counter[str]()
        for gang in self._in_turn([gang for gang in starving if self._may_try(gang, kept)]):
            namespace, mark = gang.key.namespace, self.of.get(gang.key)
            if not self._may_try(gang, kept) or tried[namespace] >= MOST_TRIED_IN_NAMESPACE:
                continue
            if tried and self._is_spent(tried.total(), lasting):
                break
            tried[namespace] += 1
            before = self.endings.cost
            with confined(self.planner.on_fault, "earmark for gang {}", gang.key):
                self._try(gang, now, lasting)
            self.planner.budget.spend(namespace, self.endings.cost - before)
            kept[namespace] += mark is None and gang.key in self.of

    def _is_spent(self, tried: int, lasting: Lasting) -> bool:
        """Whether the rest waits for the next review."""
        is_spent = lasting.is_spent or self.endings.is_spent or self.planner.budget.is_spent
        return is_spent or tried >= MOST_TRIED

    def _try(self, gang: Gang, now: float, lasting: Lasting) -> None:
        """Find the nodes of a gang, anew if it has some; not before what runs there is read."""
        self._tried.add(gang.key)
        mark = self.of.pop(gang.key, None)  # its own nodes are free for it
        sought = self._sought(gang)
        if sought is not None and self.run_times and not self._has_read(sought):
            self._tried.discard(gang.key)
            found = mark
        else:
            found = None if sought is None else self._chosen(sought, now, lasting)
        if mark is not None:
            until = mark.until if found is None else min(mark.until, found.until)
            found = replace(found or mark, since=mark.since, until=until)
        if found is not None:
            self.of[gang.key] = found

    def _has_read(self, sought: Sought) -> bool:
        slots = wanted_slots(sought.fits, [slots for slots, _ in sought.domains()])
        return self.endings.have_read([sought.tree.nodes[slot] for slot in slots.tolist()])

    def _may_try(self, gang: Gang, kept: Counter[str]) -> bool:
        """Whether a gang may get nodes, or other ones than it has; `kept`: by namespace."""
        if (mark := self.of.get(gang.key)) is not None:
            return mark.is_expected or not all(map(self.books.takes_pods, mark.nodes))
        return kept[gang.key.namespace] < self.settings.earmarks_per_namespace

    def _in_turn(self, gangs: Sequence[Gang]) -> list[Gang]:
        """The gangs in order, those first that were not tried since all others were.

        Of those that have no nodes as many of each namespace as one review tries.
        """
        if all(gang.key in self._tried for gang in gangs):
            self._tried.difference_update(gang.key for gang in gangs)

        def turn(gang: Gang) -> tuple[bool, Rank]:
            return gang.key in self._tried, rank_in_queue(gang)

        found, lines = list[Gang](), dict[str, list[Gang]]()
        for gang in gangs:
            line = found if gang.key in self.of else lines.setdefault(gang.key.namespace, [])
            line.append(gang)
        for line in lines.values():
            found += nsmallest(MOST_TRIED_IN_NAMESPACE, line, key=turn)
        return sorted(found, key=turn)

    # -- questions -------------------------------------------------------------------------------

    def nodes(self) -> frozenset[str]:
        """Every earmarked node."""
        return NOTHING.union(*(earmark.nodes for earmark in self.of.values()))

    def closed_to(self, pod: PodRecord) -> frozenset[str]:
        """The nodes that are closed to an ordinary pod."""
        if not self.of:
            return NOTHING
        seconds = self.run_times.seconds_of(pod)
        return NOTHING.union(
            *(
                each.nodes
                for each in self.of.values()
                if each.bars(pod) and self._reviewed_at + seconds > each.free_at
            )
        )

    def rests_until(self, namespace: str) -> float:
        """When a namespace may have all its earmarks again; 0 if it may."""
        return max(self._rests.get(namespace, ()), default=0.0)

    def why_none(self, key: GangKey) -> str:
        """Why a gang that starves can have no nodes kept, as a sentence; "" if it may."""
        if key not in self.too_large:
            return ""
        return (
            f"no nodes are kept free for it: it would need {self.too_large[key]}, and"
            f" earmarked_nodes and earmarked_share allow {self._most_nodes()}"
        )

    def _most_nodes(self) -> int:
        """How many nodes may be kept at one time, for all gangs."""
        share = int(self.settings.earmarked_share * len(self.books.nodes))
        return max(self.settings.earmarked_nodes, share)

    # -- which nodes -----------------------------------------------------------------------------

    def _sought(self, gang: Gang) -> Sought | None:
        """What a gang needs, and which nodes could take it; None: none are kept for such a one."""
        self.too_large.pop(gang.key, None)
        viewed = self.planner.serving.view(gang)
        if viewed is None:
            return None
        pod_sets = tuple(pod_set for pod_set in viewed[0] if any(pod_set.required))
        if not pod_sets and self.run_times:
            pod_sets = viewed[0]
        topology = viewed[1]
        kept = self.nominations.kept(gang.priority, gang.members, gang.placeholders)
        rank = rank_in_queue(gang)
        for_others = (nodes for nodes, its in self.planner.new_nodes.values() if its < rank)
        taken = self.nodes().union(kept, *for_others)
        slot_of = topology.tree.slot_of
        is_left = np.ones(len(topology.tree.nodes), dtype=np.bool_)
        is_left[[slot_of[name] for name in taken if name in slot_of]] = False
        fits = [
            self._fit(pod_set, pods, topology, is_left)
            for pod_set in pod_sets
            if (pods := _present(gang, pod_set))
        ]
        self.planner.budget.spend(gang.key.namespace, len(fits) * len(topology.tree.nodes))
        if not fits or not topology.tree.nodes:
            return None
        levels = {level for pod_set in pod_sets for level in pod_set.required}
        level = min((topology.levels.index(each) for each in levels), default=ANYWHERE)
        is_whole = len(levels) > 1 or any(pod_set.slices for pod_set in pod_sets)
        return Sought(gang, fits, topology.tree, level, is_whole=is_whole)

    def _chosen(self, sought: Sought, now: float, lasting: Lasting) -> Earmark | None:
        """Nodes of the domain that is likely to have room first, if that is known of some.

        Else of that where most of the gang fits now, of those that could take it all.
        """
        found = self._expected(sought) if self.run_times else None
        slots: Sequence[int] = ()
        if found is not None:
            slots = found.slots
        elif sought.level != ANYWHERE:
            slots = self._slots(sought, lasting)
        if not slots:
            return None
        return Earmark(
            frozenset(sought.tree.nodes[slot] for slot in slots),
            sought.gang.priority,
            scarce_in(each.request for each in sought.fits),
            since=now,
            until=(found.at if found else now) + self.settings.earmark_seconds,
            free_at=found.at if found else -math.inf,
        )

    def _expected(self, sought: Sought) -> Expected | None:
        """The slots of the domain that is likely to have room first, unless they are too many."""
        if sought.is_whole and sought.level == ANYWHERE:
            return None
        needs = [
            Need(each.pods, self.books.vector(each.request), each.empty) for each in sought.fits
        ]
        domains = [slots for slots, _ in sought.domains()]
        found = first_room(needs, domains, sought.tree, self.endings, is_whole=sought.is_whole)
        if found is None or (sought.is_for_absent and found.at <= self.endings.now):
            return None
        most, nodes = self._most_nodes(), len(found.slots)
        if nodes > most:
            self.too_large[sought.gang.key] = nodes
        return found if nodes <= most - len(self.nodes()) else None

    def _slots(self, sought: Sought, lasting: Lasting) -> Sequence[int]:
        """The slots to keep, none if there are none or too many."""
        fits, tree, is_whole = sought.fits, sought.tree, sought.is_whole
        most = self._most_nodes()
        # Where all that exists fits, what lacks room are pods that do not exist.
        is_for_absent = sought.is_for_absent
        pods, least = sum(each.pods for each in fits), len(tree.nodes) + 1
        for slots, fit_now in islice(sought.domains(), MOST_DOMAINS):
            if is_for_absent and fit_now == pods:
                return ()
            needed = len(slots) if is_whole else max(each.least_nodes(slots) for each in fits)
            least = min(least, needed)
            if needed > most:
                continue
            kept = () if is_whole else fewest(fits, slots, lasting)
            if not kept and all(each.fits_in(slots, lasting) for each in fits):
                kept = slots
            if kept and len(kept) <= most - len(self.nodes()) and not lasting.is_spent:
                return kept
        if most < least <= len(tree.nodes):
            self.too_large[sought.gang.key] = least
        return ()

    def _fit(
        self, pod_set: PodSetMembers, pods: int, topology: TopologyBooks, is_left: Mask
    ) -> Fit:
        vector = self.books.vector(pod_set.shaped[0])
        rows = [row for row, amount in enumerate(vector) if amount]
        asked = [vector[row] for row in rows]
        capacity = topology.capacity
        allowed = self.node_table.mask(pod_set.shaped[1], topology.tree)
        may_host = allowed & is_left & capacity.is_open
        if pod_set.allowed is not None:
            may_host &= among(pod_set.allowed, topology)
        now = fit.pods_per_node(capacity.free(rows), asked)
        empty = fit.pods_per_node([_row(capacity, row) for row in rows], asked)
        return Fit(
            pods,
            pod_set.shaped[0],
            topology.tree,
            np.where(may_host, now, 0),
            np.where(may_host, empty, 0),
        )


def _present(gang: Gang, pod_set: PodSetMembers) -> int:
    """How many pods of the pod set exist and have to be placed."""
    exist = sum(each.pod.uid not in gang.placeholders for each in pod_set.unplanned)
    return exist if pod_set.needed is None else min(exist, pod_set.needed)


def _row(capacity: Capacity, row: int) -> Counts:
    """What the nodes have of a resource; zeros for one that no node ever had."""
    if row < len(capacity.allocatable):
        amounts: Counts = capacity.allocatable[row]
        return amounts
    return np.zeros(len(capacity.tree.nodes), dtype=np.int64)
