"""Every tie-break and preference: which domain comes first.

Counts come in domain order, which is the lexicographic order of the domains' paths.
Ties break by the lowest index, everywhere; so equal inputs give equal answers.

    tightest      the smallest domain that takes all of it
    one_domain    the tightest of the domains with the best score
    tightest_domains  the first few of them
    ranked        domains in the order in which they are filled, by `request.Strategy`
    ranked_led    the same while the leader has no place yet
    for_group     domains in the order in which a group tries them, by `request.DomainOrder`

`fill` then fills domains in that order. `packing_scores` is the same concern for a single
ordinary pod, as kube-scheduler scores; where domains have tiers, `utilization` is. Where several
things decide, `points_by_place` makes one score of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy import typing as npt

from topology.fit.fit import LevelFit
from topology.fit.use import WHOLE, used_by_domain
from topology.model.capacity import Capacity
from topology.model.request import DomainOrder, Strategy
from topology.model.resources import Counts, Rows
from topology.model.tree import Tree

SCORE_MAX = 10  # of an extender's prioritize answer
_KEY_BITS = 62  # of one int64 that holds several sort columns
_SHORT_MAX = 2**16 - 1


def tightest(counts: Counts, need: int, ties: Counts | None = None) -> int | None:
    """The domain with the smallest count of at least `need`; None if there is none.

    Order: of equal counts the smallest tie, then the lowest index.
    Source: kueue pkg/cache/scheduler/tas_flavor_snapshot.go (v0.16), the best fit.
    """
    fits = (counts >= need).nonzero()[0]
    if fits.size == 0:
        return None
    counted = counts[fits]
    if ties is None:
        return int(fits[counted.argmin()])
    fits = fits[counted == counted.min()]
    return int(fits[ties[fits].argmin()])


def one_domain(fits: LevelFit, need: int, *, is_last_chance: bool) -> int | None:
    """The domain that takes all slices, and the leader, or None.

    Preferred nodes weigh more than capacity: before the last chance only the domains with the
    highest score are looked at, then the best of those that fit.
    Order: highest score, fewest slices, fewest pods, lowest index.
    Source: kueue pkg/cache/scheduler/tas_flavor_snapshot.go (v0.16), findLevelWithFitDomains.
    """
    counts = _looked_at(fits, need, is_last_chance=is_last_chance)
    ties = None if fits.slices is fits.pods else fits.pods_led
    return tightest(counts, need, ties)


def tightest_domains(fits: LevelFit, need: int, most: int, *, is_last_chance: bool) -> Rows:
    """The first of the domains that `one_domain` would choose if those before were not there."""
    counts = _looked_at(fits, need, is_last_chance=is_last_chance)
    takes: Rows = (counts >= need).nonzero()[0]
    ordered: Rows = takes[by_columns([(counts[takes], False), (fits.pods_led[takes], False)])]
    return ordered[:most]


def _looked_at(fits: LevelFit, need: int, *, is_last_chance: bool) -> Counts:
    """What each domain takes with the leader; -1 where `one_domain` does not look at it."""
    counts = fits.slices_led
    if fits.may_lead is not None:
        counts = np.where(fits.may_lead, counts, -1)
    if fits.scores is None:
        return counts
    looked_at = counts >= (need if is_last_chance else 0)
    best = fits.scores[looked_at].max(initial=-1)
    return np.where(looked_at & (fits.scores == best), counts, -1)


def ranked(fits: LevelFit, strategy: Strategy) -> Rows:
    """Domains in the order in which they are filled with workers.

    Below the level of the slices none are counted, so there the smallest come first.
    Source: kueue pkg/cache/scheduler/tas_flavor_snapshot.go (v0.16), sorted domains.
    """
    columns = [] if fits.scores is None else [(fits.scores, True)]
    columns.append((fits.slices, strategy is Strategy.BEST_FIT))
    if fits.slices is not fits.pods:
        columns.append((fits.pods, False))
    return by_columns(columns)


def ranked_led(fits: LevelFit, strategy: Strategy) -> Rows:
    """Domains in the order in which the leader and then its workers are offered to them.

    Source: kueue pkg/cache/scheduler/tas_flavor_snapshot.go (v0.16), sorted domains with leader.
    """
    if fits.may_lead is None:
        return ranked(fits, strategy)
    columns = [(fits.may_lead.astype(np.int64), True)]
    if fits.scores is not None:
        columns.append((fits.scores, True))
    columns.append((fits.slices_led, strategy is Strategy.BEST_FIT))
    if fits.slices is not fits.pods:
        columns.append((fits.pods_led, False))
    return by_columns(columns)


def by_columns(columns: Sequence[tuple[Counts, bool]]) -> Rows:
    """Domain indices sorted by columns, the first column first; ties by the lowest index.

    Each column says whether larger numbers come first. All columns and the index go into
    one integer where they fit: sorting that is several times faster than by columns. So is
    sorting a single column of short integers, which numpy does digit by digit.
    Shapes: each column (D,) of numbers >= 0 -> (D,).
    """
    domains = columns[0][0].size
    if domains < 2:
        return np.arange(domains, dtype=np.intp)
    largest = [int(np.maximum.reduce(column)) for column, _ in columns]
    (column, is_descending), most = columns[0], largest[0]
    if len(columns) == 1 and most <= _SHORT_MAX:
        short = (most - column if is_descending else column).astype(np.uint16)
        return short.argsort(kind="stable")
    index_bits = (domains - 1).bit_length()
    if index_bits + sum(most.bit_length() for most in largest) > _KEY_BITS:
        ascending = [-column if is_descending else column for column, is_descending in columns]
        return np.lexsort(ascending[::-1])
    key = most - column if is_descending else column.copy()
    for (column, is_descending), most in zip(columns[1:], largest[1:], strict=True):
        key <<= most.bit_length()
        key += most - column if is_descending else column
    key <<= index_bits
    key += np.arange(domains)
    key.sort()
    key &= (1 << index_bits) - 1
    return key.astype(np.intp, copy=False)


def packing_scores(
    tree: Tree,
    capacity: Capacity,
    request: Sequence[int],
    used: Sequence[Counts] | None = None,
) -> Counts:
    """Scores nodes for one ordinary pod, higher where it keeps whole domains free.

    Every node of a wholly free domain, one level above the nodes, gets 0, or 1 if a wider
    domain around it is in use. Every other node gets 2 to SCORE_MAX by how much of its domains
    is used, each level weighing twice the next wider one. A closed node, and one that lacks
    capacity for the pod, gets 0.
    `used`: as `used_by_domain`, where that is known.
    Shapes: request (R,) -> (N,), 0 to SCORE_MAX.
    """
    if not tree.nodes:
        return np.zeros(0, dtype=np.int64)
    used = used_by_domain(tree, capacity) if used is None else used
    weighted = np.zeros(len(tree.nodes), dtype=np.int64)
    for level, (shares, domain_of) in enumerate(zip(used, tree.domain_of, strict=True)):
        each = shares << level
        weighted += each if each.size == weighted.size else each[domain_of]
    most = WHOLE * (2 ** len(tree.levels) - 1)
    scores: Counts = 2 + weighted * (SCORE_MAX - 2) // most
    around = max(0, tree.node_level - 1)
    is_free = (used[around] == 0)[tree.domain_of[around]]
    np.copyto(scores, weighted > 0, where=is_free)
    scores[~capacity.may_cover(tree.node_level, request)] = 0
    return scores


def points_by_place(columns: Sequence[tuple[Counts, int]]) -> Counts:
    """SCORE_MAX for the best, one less for the next, then for the next two, four, eight …; 0.

    kube-scheduler takes one with the most points, so only the best have to be told apart; and a
    long list of others with 0 is short to send. Equal ones get equal points.
    Each column is of numbers >= 0, smaller is better, the first column first; with it, in how many
    bits it counts: of larger numbers the highest ones.
    Shapes: each column (S,) -> (S,), 0 to SCORE_MAX.
    """
    key = np.zeros(columns[0][0].size, dtype=np.int64)
    if key.size == 0:
        return key
    for column, bits in columns:
        key <<= bits
        key += column >> max(0, int(column.max()).bit_length() - bits)
    places = [min(2**better, key.size) - 1 for better in range(SCORE_MAX)]
    best = np.sort(np.partition(key, places[-1])[: places[-1] + 1])
    has_points = (key <= best[-1]).nonzero()[0]
    points = np.zeros(key.size, dtype=np.int64)
    points[has_points] = SCORE_MAX - best[places].searchsorted(key[has_points])
    return points


def for_group(
    tree: Tree,
    order: DomainOrder,
    candidates: Rows,
    level: int,
    inside: int,
    urgency: Callable[[int, Rows], npt.NDArray[np.float64]],
) -> Rows:
    """Candidates of one level in the order in which a group tries them.

    `urgency` says of domains of a level how far the group would fill them; a fuller one comes
    first. `inside` is the level of the domain they all lie in; -1: none.
    Order: TOPMOST by the ancestors, the widest first, then by the domain itself; else by the
        domain alone. Ties by the lowest index.
    Source: KAI-Scheduler pkg/scheduler/plugins/topology (v0.17); volcano
        pkg/scheduler/plugins/network-topology-aware/network_topology_aware.go (v1.15).
    """
    levels = range(inside + 1, level + 1) if order is DomainOrder.TOPMOST else (level,)
    columns: list[npt.NDArray[Any]] = []
    for at in levels:
        around = tree.domain_of[at][tree.starts[level][candidates]]
        columns += [-urgency(at, around), around]
    ranked: Rows = candidates[np.lexsort(columns[::-1])]
    return ranked
