"""Nodes that were made while gangs asked for nodes: kept for these gangs until they are enough.

An autoscaler makes nodes one after the other, and any pod that fits would take the first of them.
So of the nodes that came since a gang asked, those of the domain in which most of it fits are kept
for it, as few as its pods need: no gang behind it in the queue is placed there, and no ordinary pod
that requests what it needs, but for pods of a higher priority. A node whose labels have not come
yet may be of any domain: for a moment it is kept for the first gang that names a level. One that
reports no devices yet is no place for anybody who requests some; kube-scheduler may hear of them
before Corral does, so until Corral has it is closed to ordinary pods that request them.

Each new node in the domain prolongs that, up to thrice its time. Then what has come is told, the
nodes are anybody's, and the gang has none kept for as long as it had some; twice as long each time,
for it may need what no autoscaler makes. A node that went after the gang asked, and is back soon,
is not new: any pod that fits there may have waited for it.

A look has a bound: beside the gangs that have nodes kept already, only the first few of each
namespace are looked at, and where thousands ask, it is found out once a second which these are.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from heapq import nsmallest

import numpy as np

from app.dialects.spec import GangKey
from app.kube.core.objects import PodRecord
from app.state.autoscaling.marks import Marks
from app.state.cache.books import ALL_NODES, Books
from app.state.cache.topology_books import TopologyBooks
from app.state.fairness.earmark import Earmark, scarce_in
from app.state.gang.gang import PLANNABLE, Gang
from app.state.gang.gangs import Gangs
from app.state.isolation import confined
from app.state.plan.planner import Planner
from app.state.plan.question.pins import pins
from app.state.plan.question.pod_sets import PodSetMembers
from app.state.plan.question.request import among
from app.state.pods.arrivals import WaitingPod
from app.state.report.messages import autoscaling as messages
from app.state.report.reports import Reports
from app.state.settings import EngineSettings
from app.state.turns.queue import in_order, rank_in_queue
from topology.fit.fit import pods_per_node
from topology.model.resources import Counts, Rows

NOTHING: frozenset[str] = frozenset()
MOST_GANGS = 32  # that have nodes kept at one time …
MOST_OF_NAMESPACE = 2  # … and of these, of one namespace
REVIEW_SECONDS = 5.0  # between two looks, unless a new node changes
MOST_TRIED_IN_NAMESPACE = 16  # gangs that have none kept yet, in one look
MOST_VISITS = 16_384  # new nodes and pods that are looked at for these, once for each gang: 1 us
MOST_RANKED = 512  # gangs that are put in order at each look; of more it is known …
RANKED_SECONDS = 1.0  # … for so long which come first
MOST_NODES = 10_000  # that are remembered as new
BACK_SECONDS = 600.0  # after which a node of the same name is another one
MOST_DOUBLED = 6
MOST_PROLONGED = 3  # times as long as nodes are kept after the last one came


@dataclass(slots=True)
class Kept:
    """The nodes that are kept for one gang."""

    since: float
    last_at: float  # when the last of them came
    nodes: frozenset[str] = NOTHING


@dataclass(slots=True)
class NewNodes:
    """Which new nodes are kept for which gang.

    Invariant: no node is kept for two gangs.
    """

    settings: EngineSettings
    books: Books
    gangs: Gangs
    planner: Planner
    marks: Marks
    reports: Reports
    of: dict[GangKey, Earmark] = field(default_factory=dict)
    _bare: dict[frozenset[str], Earmark] = field(default_factory=dict)
    """By what is scarce: the new nodes that have none of it yet, as the first gang sees them."""
    _kept: dict[GangKey, Kept] = field(default_factory=dict)
    _rests: dict[GangKey, float] = field(default_factory=dict)  # until when it has none kept again
    _in_vain: dict[GangKey, int] = field(default_factory=dict)  # so often it had some kept
    _gone: dict[str, float] = field(default_factory=dict)  # when nodes went, back now or not
    _made: dict[str, float] = field(default_factory=dict)
    """When nodes came that were not there before, while some gang asks for nodes."""
    _has_changed: bool = False  # one of these, or what else decides
    _reviewed_at: float = 0.0
    _first: list[GangKey] = field(default_factory=list)  # of each namespace, when they were ranked
    _ranked_at: float = -math.inf

    # -- nodes -------------------------------------------------------------------------------------

    def put(self, name: str, now: float) -> None:
        """Note a node that was not there before."""
        self.marks.note_new_node(now)
        if self.marks.open:
            self._made[name] = now
            self._has_changed = True
            if len(self._made) > MOST_NODES:
                del self._made[next(iter(self._made))]

    def note_change(self, name: str) -> None:
        """Note that a node has changed."""
        self._has_changed = self._has_changed or name in self._made

    def drop(self, name: str, now: float) -> None:
        """Note that a node is gone."""
        self._gone.pop(name, None)  # so that they are in the order of time
        self._gone[name] = now
        if len(self._gone) > MOST_NODES:
            del self._gone[next(iter(self._gone))]
        if self._made.pop(name, None) is not None:
            self._has_changed = True

    # -- whose they are ----------------------------------------------------------------------------

    def closed_to(self, pod: PodRecord | WaitingPod) -> frozenset[str]:
        """The nodes that are closed to an ordinary pod."""
        if not (self.of or self._bare):
            return NOTHING
        marks = (*self.of.values(), *self._bare.values())
        return NOTHING.union(*(each.nodes for each in marks if each.bars(pod)))

    def nodes(self) -> frozenset[str]:
        """Every node that is kept."""
        return NOTHING.union(*(each.nodes for each in self.of.values()))

    def is_due(self, now: float) -> bool:
        """Whether new nodes have changed, or it is time to look at them."""
        is_time = now >= self._reviewed_at + REVIEW_SECONDS
        return self.planner.is_ready and (self._has_changed or (bool(self._made) and is_time))

    def review(self, now: float) -> frozenset[str]:
        """Keep nodes for gangs that asked before they came; those kept no more, or for others."""
        self._has_changed, self._reviewed_at = False, now
        self.books.refresh()
        before = self.of
        self._end(now)
        longest = MOST_PROLONGED * self.settings.needs_nodes_hold_seconds
        while self._made:
            first = next(iter(self._made))
            if self.marks.open and now < self._made[first] + longest:
                break
            del self._made[first]  # they are in the order of time
        self.of, self._bare = {}, {}
        taken, in_namespace, visits = set[str](), Counter[str](), 0
        looked_at = self._looked_at(now) if self._made else []
        for gang in looked_at:
            namespace = gang.key.namespace
            if len(self.of) >= MOST_GANGS or in_namespace[namespace] >= MOST_OF_NAMESPACE:
                continue
            if gang.key not in self._kept:
                if visits >= MOST_VISITS:
                    continue
                visits += len(self._made) + len(gang.members)
            with confined(self.planner.on_fault, "new nodes for gang {}", gang.key):
                mark = self._mark(gang, taken, now)
                if mark is not None:
                    self.of[gang.key] = mark
                    taken |= mark.nodes
                    in_namespace[namespace] += 1
        rank = {gang.key: rank_in_queue(gang) for gang in looked_at}
        self.planner.new_nodes = {key: (each.nodes, rank[key]) for key, each in self.of.items()}
        kept = {key: each.nodes for key, each in self.of.items()}
        return NOTHING.union(*(each.nodes - kept.get(key, NOTHING) for key, each in before.items()))

    def _looked_at(self, now: float) -> list[Gang]:
        """The gangs that have nodes kept, and those that may have some next, in order."""
        if len(self.marks.open) <= MOST_RANKED or now >= self._ranked_at + RANKED_SECONDS:
            self._ranked_at, lines = now, dict[str, list[Gang]]()
            for gang in self.marks.asking():
                if now >= self._rests.get(gang.key, 0.0):
                    lines.setdefault(gang.key.namespace, []).append(gang)
            self._first = [
                gang.key
                for line in lines.values()
                for gang in nsmallest(MOST_TRIED_IN_NAMESPACE, line, key=rank_in_queue)
            ]
        keys = dict.fromkeys([*self._kept, *self._first])
        return in_order(
            self.gangs.by_key[key]
            for key in keys
            if self._asks(key) and now >= self._rests.get(key, 0.0)
        )

    def _asks(self, key: GangKey) -> bool:
        """Whether a gang is there, and asks for nodes."""
        gang = self.gangs.by_key.get(key)
        return gang is not None and gang.need.is_open and gang.phase in PLANNABLE

    def _end(self, now: float) -> None:
        """End what was kept for long enough, and what is kept for gangs that ask no more."""
        for key, kept in list(self._kept.items()):
            most = self.settings.needs_nodes_hold_seconds
            is_over = now >= min(kept.last_at + most, kept.since + MOST_PROLONGED * most)
            if not self._asks(key):
                del self._kept[key]
            elif is_over:
                del self._kept[key]
                times = self._in_vain[key] = self._in_vain.get(key, 0) + 1
                self._rests[key] = now + (now - kept.since) * 2 ** min(times - 1, MOST_DOUBLED)
                self._tell_end(self.gangs.by_key[key], kept.nodes)
        self._in_vain = {key: times for key, times in self._in_vain.items() if self._asks(key)}
        self._rests = {
            key: end for key, end in self._rests.items() if end > now and self._asks(key)
        }

    def _tell_end(self, gang: Gang, came: frozenset[str]) -> None:
        """Tell what came: where a node group lacks a label, it is no matter of how many."""
        viewed, lack = self.planner.serving.view(gang), gang.need.lack
        level = "" if lack is None else lack.level
        unplaced = 0
        if level and viewed is not None:
            _, topology = viewed
            unplaced = sum(
                each not in topology.tree.slot_of for each in came & self.books.nodes.keys()
            )
        sentence = messages.new_nodes_released(gang.key, len(came), level, unplaced)
        self.reports.new_nodes_released(gang, sentence)

    # -- which nodes -------------------------------------------------------------------------------

    def _mark(self, gang: Gang, taken: set[str], now: float) -> Earmark | None:
        """The new nodes to keep for a gang; None: there are none."""
        viewed = self.planner.serving.view(gang)
        if viewed is None:
            return None
        pod_sets, topology = viewed
        since = gang.need.opened_at
        # Where others go for a gang that is no less important, that one is to have what gets free.
        theirs = self.planner.nominations.kept(gang.priority, gang.members, gang.placeholders)
        new = [
            each
            for each, at in self._made.items()
            if at >= since
            and not (each in taken or each in theirs or self._is_back(each, at, since))
        ]
        scarce = scarce_in(each.shaped[0] for each in pod_sets)
        if scarce not in self._bare and len(self._bare) < MOST_GANGS:
            bare = frozenset(each for each in new if self._is_bare(each, scarce))
            self._bare[scarce] = Earmark(bare, gang.priority, scarce, since, math.inf)
        nodes = self._of_best_domain(pod_sets, topology, new)
        if any(any(each.required) for each in pod_sets):
            nodes |= self._settling(new, topology, now)
        kept = self._kept.get(gang.key)
        if not nodes:
            return None  # those that were kept are gone, or are not its any more
        last_at = max(self._made[each] for each in nodes)
        if kept is None:
            kept = self._kept[gang.key] = Kept(now, now)
        kept.last_at, kept.nodes = max(kept.last_at, last_at), nodes
        return Earmark(
            nodes,
            gang.priority,
            scarce,
            since=kept.since,
            until=kept.last_at + self.settings.needs_nodes_hold_seconds,
        )

    def _is_bare(self, node: str, scarce: frozenset[str]) -> bool:
        """Whether a node has nothing of what is scarce."""
        has = self.books.nodes[node].allocatable
        return not any(amount and resource in scarce for resource, amount in has)

    def _is_back(self, node: str, at: float, since: float) -> bool:
        """Whether a node that came then had only been away since a time after this one."""
        gone_at = self._gone.get(node, -math.inf)
        return gone_at >= since and at < gone_at + BACK_SECONDS

    def _of_best_domain(
        self, pod_sets: Iterable[PodSetMembers], topology: TopologyBooks, new: Iterable[str]
    ) -> frozenset[str]:
        """The new nodes of the domain in which most of the gang fits, as few as it needs."""
        tree = topology.tree
        slots = np.array(
            sorted(tree.slot_of[each] for each in new if each in tree.slot_of), dtype=np.intp
        )
        if not slots.size:
            return NOTHING
        pod_sets = tuple(pod_sets)
        levels = {level for each in pod_sets for level in each.required}
        *_, pinned = pins(pod_sets, topology, self.books.nodes)  # around members that run
        fits = [
            self._fit(each, pin, topology, slots)
            for each, pin in zip(pod_sets, pinned, strict=True)
        ]
        domains = np.zeros_like(slots)
        if levels:
            depth = min(topology.levels.index(each) for each in levels)
            domains = tree.domain_of[depth][slots]
        best, most = NOTHING, 0
        for domain in np.unique(domains).tolist():
            inside = domains == domain
            pods = sum(
                min(int(fit[inside].sum()), len(each.unplanned))
                for each, fit in zip(pod_sets, fits, strict=True)
            )
            if pods > most:
                most = pods
                chosen = set[int]()
                for each, fit in zip(pod_sets, fits, strict=True):
                    chosen |= _enough(slots[inside], fit[inside], len(each.unplanned), chosen)
                best = frozenset(tree.nodes[slot] for slot in chosen)
        return best

    def _fit(
        self, pod_set: PodSetMembers, pin: slice | None, topology: TopologyBooks, slots: Rows
    ) -> Counts:
        """How many pods of a pod set fit on each of these slots now. Shapes: (S,) -> (S,).

        `pin`: the slots that it may use; None: all.
        """
        vector = self.books.vector(pod_set.shaped[0])
        rows = [row for row, amount in enumerate(vector) if amount]
        allowed = self.planner.node_table.mask(pod_set.shaped[1], topology.tree)[slots]
        may_host = allowed & topology.capacity.is_open[slots]
        if pod_set.allowed is not None:
            may_host &= among(pod_set.allowed, topology)[slots]
        if pin is not None:
            may_host &= (slots >= pin.start) & (slots < pin.stop)
        free = topology.capacity.free(rows, slots)
        fits: Counts = np.where(may_host, pods_per_node(free, [vector[row] for row in rows]), 0)
        return fits

    def _settling(self, new: Iterable[str], topology: TopologyBooks, now: float) -> frozenset[str]:
        """New nodes that have no place in the topology yet, and may have one in a moment."""
        limit = now - self.settings.node_settle_seconds
        every: Mapping[str, int] = self.books.topologies[ALL_NODES].tree.slot_of
        return frozenset(
            each
            for each in new
            if each not in topology.tree.slot_of and each in every and self._made[each] > limit
        )


def _enough(slots: Rows, fit: Counts, pods: int, chosen: set[int]) -> set[int]:
    """Slots that take so many pods, those that take most first; of those chosen already none."""
    found = set[int]()
    for index in np.argsort(-fit, kind="stable").tolist():
        if pods <= 0 or not fit[index]:
            break
        slot = int(slots[index])
        if slot not in chosen:
            found.add(slot)
            pods -= int(fit[index])
    return found
