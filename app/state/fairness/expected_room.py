"""Where a gang is likely to have room first, and when, by the expected ends of what runs.

    pods on a node ──▶ how many of the gang's fit there, and from when on ─┐
    nodes of a domain ─────────────────────────────────────────────────────┴─▶ nodes, and a time

Of the nodes that suffice by then those are taken that get free last: what ends before may still run
on the others, and on these until then.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from operator import itemgetter

from app.kube.core.objects import Amounts
from app.state.cache.books import Books
from app.state.fairness.run_times import RunTimes
from topology.model.resources import Counts
from topology.model.tree import Tree

_Ends = Sequence[tuple[float, Amounts]]  # in order


@dataclass(slots=True)
class Endings:
    """What is free on nodes, and what gets free when; reads only so many nodes."""

    books: Books
    run_times: RunTimes
    now: float
    latest: float
    """What gets free later counts as never free."""
    most_nodes: int
    _read: dict[str, tuple[Mapping[str, int], _Ends]] = field(default_factory=dict)

    @property
    def is_spent(self) -> bool:
        """Whether no further node is read."""
        return len(self._read) >= self.most_nodes

    def growing(self, node: str, request: Amounts) -> Iterator[tuple[float, int]]:
        """How many such pods fit on the node, and from when on; nothing on one too many."""
        free, ends = self._of(node)
        left = dict(free)
        fits = fitting(left, request)
        if fits:
            yield self.now, fits
        for end, amounts in ends:
            for resource, amount in amounts:
                left[resource] = left.get(resource, 0) + amount
            more = fitting(left, request)
            if more > fits:
                fits = more
                yield end, fits

    def _of(self, node: str) -> tuple[Mapping[str, int], _Ends]:
        if node in self._read or self.is_spent:
            return self._read.get(node, ({}, ()))
        free = dict(self.books.nodes[node].allocatable)
        ends: list[tuple[float, Amounts]] = []
        for uid, request in self.books.bound_on.get(node, {}).items():
            end = self.run_times.end_of(uid, self.now)
            if end <= self.latest:
                ends.append((end, request))
            take(free, request)
        for request in self.books.held_on.get(node, {}).values():
            take(free, request)
        ends.sort(key=itemgetter(0))
        self._read[node] = free, ends
        return free, ends


@dataclass(frozen=True, slots=True)
class Need:
    """Pods of one pod set: how many, what each requests, and how many an empty node could take."""

    pods: int
    request: Amounts
    empty: Counts


@dataclass(frozen=True, slots=True)
class Expected:
    """Slots that are enough for all pods, and when they are likely to be."""

    slots: Sequence[int]
    at: float


def first_room(
    needs: Sequence[Need], domains: Sequence[range], tree: Tree, endings: Endings, *, is_whole: bool
) -> Expected | None:
    """The domain that is likely to have room first; None: none is by then.

    `is_whole`: all of the domain is kept. Of equal ones the first; some are left out where too
    many nodes would have to be read.
    """
    best: Expected | None = None
    for slots in domains:
        found = _room_in(slots, needs, tree, endings, is_whole=is_whole)
        if found is not None and (best is None or found.at < best.at):
            best = found
        if endings.is_spent:
            break
    return best


def _room_in(
    slots: range, needs: Sequence[Need], tree: Tree, endings: Endings, *, is_whole: bool
) -> Expected | None:
    """No two pod sets share a node, unless all of the domain is kept."""
    chosen: list[int] = []
    at = -math.inf
    for need in needs:
        taken = () if is_whole else set(chosen)
        left = [slot for slot in slots if slot not in taken and need.empty[slot]]
        found = _nodes_for(need, left, tree, endings)
        if found is None:
            return None
        chosen.extend(found.slots)
        at = max(at, found.at)
    return Expected(slots if is_whole else sorted(chosen), at)


def _nodes_for(need: Need, slots: Sequence[int], tree: Tree, endings: Endings) -> Expected | None:
    """The nodes that get free last of those that are enough for one pod set first."""
    grows = sorted(
        (when, slot, pods)
        for slot in slots
        for when, pods in endings.growing(tree.nodes[slot], need.request)
    )
    fits: dict[int, tuple[float, int]] = {}
    total, at = 0, math.inf
    for when, slot, pods in grows:
        if when > at:
            break
        total += pods - fits.get(slot, (0.0, 0))[1]
        fits[slot] = when, pods
        if total >= need.pods:  # what gets free at the same time is as good
            at = when
    if total < need.pods:
        return None
    chosen, lacking = [], need.pods
    for slot, (_, pods) in sorted(fits.items(), key=lambda each: (-each[1][0], each[0])):
        chosen.append(slot)
        lacking -= pods
        if lacking <= 0:
            break
    return Expected(chosen, at)


def fitting(left: Mapping[str, int], request: Amounts) -> int:
    """How many pods with this request fit into what a node has left."""
    return min(max(left.get(each, 0), 0) // amount for each, amount in request if amount)


def take(free: dict[str, int], request: Amounts) -> None:
    """Count a pod on a node."""
    for resource, amount in request:
        free[resource] = free.get(resource, 0) - amount
