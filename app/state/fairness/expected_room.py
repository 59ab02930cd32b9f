"""Where a gang is likely to have room first, and when, by the expected ends of what runs.

    pods on a node ──▶ how many of the gang's fit there, and from when on ─┐
    nodes of a domain ─────────────────────────────────────────────────────┴─▶ nodes, and a time

Of the nodes that suffice by then those are taken that get free last: what ends before may still run
on the others, and on these until then. Each pod set alone says from when on a domain may have room
at the earliest, for all domains at once; node by node only the first few of them are looked at.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from app.kube.core.objects import Amounts
from app.state.cache.counting import Vector
from app.state.fairness.endings import Endings, Growth, Times
from topology.model.resources import Counts, Rows
from topology.model.tree import Tree

MOST_NODES = 8_192  # a gang is sought a place on; the domains that come first
MOST_DOMAINS = 16  # that are looked at node by node
NONE = -1  # the domain of a node that is not looked at


class TakesSome(Protocol):
    """Pods of one pod set."""

    @property
    def empty(self) -> Counts:
        """How many of them each node could take if it were empty."""


@dataclass(frozen=True, slots=True)
class Need:
    """Pods of one pod set: how many, what each requests, and how many an empty node could take."""

    pods: int
    request: Vector
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

    `domains`: of which no more nodes are looked at than MOST_NODES. `is_whole`: all of the domain
    is kept. Of equal ones the first.
    """
    domain_of = _domain_of(wanted_slots(needs, domains), domains, len(tree.nodes))
    grows = [_of_need(need, endings.growth(tree, need.request), domain_of) for need in needs]
    earliest = np.max(
        [
            _first(grow, domain_of[grow.slots], need.pods, len(domains))
            for grow, need in zip(grows, needs, strict=True)
        ],
        axis=0,
    )
    best: tuple[float, int, Expected] | None = None
    for number in np.argsort(earliest, kind="stable")[:MOST_DOMAINS].tolist():
        if math.isinf(earliest[number]) or (best is not None and earliest[number] > best[0]):
            break
        within = [grow.of(domain_of[grow.slots] == number) for grow in grows]
        found = _room_in(domains[number], needs, within, is_whole=is_whole)
        if found is not None and (best is None or (found.at, number) < best[:2]):
            best = found.at, number, found
    return best and best[2]


def wanted_slots(needs: Sequence[TakesSome], domains: Sequence[range]) -> Rows:
    """The slots of these domains that could take some of the pods, not too many."""
    if not domains:
        return np.zeros(0, dtype=np.intp)
    slots = _slots_of(domains)
    takes_some = np.any([need.empty[slots] > 0 for need in needs], axis=0)
    return slots[takes_some][:MOST_NODES]


def _slots_of(domains: Sequence[range]) -> Rows:
    return np.concatenate([np.arange(each.start, each.stop, dtype=np.intp) for each in domains])


def _domain_of(wanted: Rows, domains: Sequence[range], nodes: int) -> Rows:
    """The number of each wanted node's domain. Shapes: wanted (K,) -> (nodes,)."""
    domain_of = np.full(nodes, NONE, dtype=np.intp)
    if domains:
        numbers = np.repeat(np.arange(len(domains), dtype=np.intp), [*map(len, domains)])
        domain_of[_slots_of(domains)] = numbers
    is_wanted = np.zeros(nodes, dtype=np.bool_)
    is_wanted[wanted] = True
    domain_of[~is_wanted] = NONE
    return domain_of


def _of_need(need: Need, grow: Growth, domain_of: Rows) -> Growth:
    """That of nodes that could take such pods, domains together, in order."""
    grow = grow.of((domain_of[grow.slots] != NONE) & (need.empty[grow.slots] > 0))
    return grow.of(np.lexsort((grow.slots, grow.when, domain_of[grow.slots])))


def _first(grow: Growth, domain: Rows, pods: int, domains: int) -> Times:
    """When so many pods fit in each domain; infinity: never. Shapes: domain (K,) -> (domains,)."""
    at = np.full(domains, math.inf)
    total = np.cumsum(grow.more)
    starts = np.searchsorted(domain, domain)  # the first row of the same domain
    before = np.concatenate((np.zeros(1, dtype=np.int64), total))[starts]
    enough = np.flatnonzero(total - before >= pods)[::-1]
    at[domain[enough]] = grow.when[enough]  # the first one is written last
    return at


def _room_in(
    slots: range, needs: Sequence[Need], grows: Sequence[Growth], *, is_whole: bool
) -> Expected | None:
    """No two pod sets share a node, unless all of the domain is kept."""
    chosen: list[int] = []
    at = -math.inf
    for need, grow in zip(needs, grows, strict=True):
        found = _nodes_for(need.pods, grow if is_whole else grow.of(~np.isin(grow.slots, chosen)))
        if found is None:
            return None
        chosen.extend(found.slots)
        at = max(at, found.at)
    return Expected(slots if is_whole else sorted(chosen), at)


def _nodes_for(pods: int, grow: Growth) -> Expected | None:
    """The nodes that get free last of those that are enough for one pod set first."""
    enough = int(np.searchsorted(np.cumsum(grow.more), pods))
    if enough == len(grow.more):
        return None
    at = float(grow.when[enough])
    end = int(np.searchsorted(grow.when, at, side="right"))  # what gets free then is as good
    slots, which = np.unique(grow.slots[:end], return_inverse=True)
    fits = np.zeros(len(slots), dtype=np.int64)
    np.add.at(fits, which, grow.more[:end])
    when = np.full(len(slots), -math.inf)
    np.maximum.at(when, which, grow.when[:end])
    by_time = np.lexsort((slots, -when))
    last = int(np.searchsorted(np.cumsum(fits[by_time]), pods))
    return Expected(slots[by_time[: last + 1]].tolist(), at)


def fitting(left: Mapping[str, int], request: Amounts) -> int:
    """How many pods with this request fit into what a node has left."""
    return min(max(left.get(each, 0), 0) // amount for each, amount in request if amount)


def take(free: dict[str, int], request: Amounts) -> None:
    """Count a pod on a node."""
    for resource, amount in request:
        free[resource] = free.get(resource, 0) - amount
