"""How much each domain gets when domains are filled in order.

    BEST_FIT      each whole, the last one the tightest that takes what is left
    LEAST_FREE    each whole, the last one whichever is next
    a leader      in the first domain that can host it and leaves enough for the others

"Led" counts are those of a domain that also hosts the leader. Counts are pods or slices;
the caller decides which.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from topology.fit.fit import LevelFit
from topology.fit.order import tightest
from topology.model.request import Strategy
from topology.model.resources import Counts, Mask, Rows


@dataclass(frozen=True, slots=True, eq=False)
class Offers:
    """What each domain can take. Shapes: all (D,)."""

    counts: Counts
    led: Counts
    may_lead: Mask | None = None
    """None: there is no leader to place."""
    scores: Counts | None = None

    @staticmethod
    def of(fits: LevelFit, pods: int | None = None) -> Offers:
        """The slices of one level; with `pods` given, parts of so many pods."""
        if pods is None:
            return Offers(fits.slices, fits.slices_led, fits.may_lead, fits.scores)
        if pods == 1:
            return Offers(fits.pods, fits.pods_led, fits.may_lead, fits.scores)
        return Offers(fits.pods // pods, fits.pods_led // pods, fits.may_lead, fits.scores)

    def beside_leader(self) -> Offers:
        """The same domains once the leader has its place."""
        return Offers(self.counts, self.led, None, self.scores)


@dataclass(frozen=True, slots=True, eq=False)
class Filled:
    """What domains get."""

    domains: Rows
    """In the order they were taken."""
    counts: Counts
    """What each of them gets; may be 0."""
    leader: int | None = None
    """The domain that gets the leader."""


def fill(offers: Offers, order: Rows, need: int, strategy: Strategy) -> Filled | None:
    """Fills the domains in order until `need` is reached; None if all of them do not suffice.

    Source: kueue pkg/cache/scheduler/tas_flavor_snapshot.go (v0.16), updateCountsToMinimum.
    """
    if offers.may_lead is None:
        return _filled_in_order(offers, order, need, strategy)
    order = leader_first(offers, order, need)
    domains: list[int] = []
    counts: list[int] = []
    for place, domain in enumerate(order.tolist()):
        led = int(offers.led[domain])
        if offers.may_lead[domain] and led >= need:
            last = domain
            if strategy is Strategy.BEST_FIT:
                last = tightest_of(offers, order[place:], need, led=True)
            return _taken([*domains, last], [*counts, need], last)
        # A domain that cannot lead is filled as well before one that can is reached.
        domains.append(domain)
        counts.append(min(led, need))
        need -= counts[-1]
        if offers.may_lead[domain]:
            rest = _filled_in_order(offers, order[place + 1 :], need, strategy)
            if rest is None:
                return None
            first = _taken(domains, counts, domain)
            return Filled(
                np.concatenate([first.domains, rest.domains]),
                np.concatenate([first.counts, rest.counts]),
                domain,
            )
    return None


def leader_first(offers: Offers, order: Rows, need: int) -> Rows:
    """The order, its first domain that can lead and leaves enough moved to the front.

    Source: kueue pkg/cache/scheduler/tas_flavor_snapshot.go (v0.16), the leader's domain first.
    """
    if order.size < 2 or offers.may_lead is None:
        return order
    counts = offers.counts[order]
    spare = int(counts.sum()) - need
    leaves_enough = offers.may_lead[order] & (counts - offers.led[order] <= spare)
    first = int(leaves_enough.argmax())
    if not leaves_enough[first]:
        return order
    return np.concatenate([order[first : first + 1], order[:first], order[first + 1 :]])


def tightest_of(offers: Offers, order: Rows, need: int, *, led: bool) -> int:
    """Of the next domains in order with the score of the first, the tightest that takes it all.

    Source: kueue pkg/cache/scheduler/tas_flavor_snapshot.go (v0.16), the best fit.
    """
    order = order[: _same_score(offers, order)]
    counts = (offers.led if led else offers.counts)[order]
    if led and offers.may_lead is not None:
        counts = np.where(offers.may_lead[order], counts, -1)
    best = tightest(counts, need)
    assert best is not None, "the first in order takes it"
    return int(order[best])


def _same_score(offers: Offers, order: Rows) -> int:
    """How many of the next domains in order have the score of the first."""
    if offers.scores is None:
        return order.size
    differs = offers.scores[order] != offers.scores[order[0]]
    return int(differs.argmax()) if differs.any() else order.size


def _filled_in_order(offers: Offers, order: Rows, need: int, strategy: Strategy) -> Filled | None:
    """Fills domains without a leader: whole ones, then the one that takes what is left."""
    counts = offers.counts[order]
    running = counts.cumsum()
    edge = int(running.searchsorted(need))
    if edge == counts.size:
        return None
    left = need - int(running[edge] - counts[edge])
    domains, taken = order[: edge + 1].copy(), counts[: edge + 1].copy()
    if strategy is Strategy.BEST_FIT:
        rest = counts[edge : edge + _same_score(offers, order[edge:])]
        best = tightest(rest, left)
        assert best is not None, "the one at the edge takes it"
        domains[edge] = order[edge + best]
    taken[edge] = left
    return Filled(domains, taken)


def _taken(domains: list[int], counts: list[int], leader: int) -> Filled:
    return Filled(np.array(domains, dtype=np.intp), np.array(counts, dtype=np.int64), leader)
