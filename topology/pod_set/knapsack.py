"""Exactly so many domains that take a unit and leave the least free.

A table over (domains used, leader still to place, pods still to place). Entries hold the domain
taken last; of two ways to the same entry the first one found stays, and domains are tried in
the order given, which is how ties break. Pods still to place may fall below 0: that is what
the set leaves free.

All entries of one domain are filled at once, as three shifts of the table.
Source: kueue pkg/cache/scheduler/tas_balanced_placement.go (v0.16), the optimal set.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy import typing as npt

from topology.fit.fit import LevelFit
from topology.fit.unit import Unit
from topology.model.resources import Rows

STEPS_MAX = 400_000_000
"""Entries times domains beyond which no set is looked for; a tenth of a second or two."""
STEPS_PER_VISIT = 64  # take as long as a visit of a node

_UNSET = -1
_Table = npt.NDArray[np.int32]


def chosen_set(
    fits: LevelFit, order: Rows, number: int, unit: Unit, spend: Callable[[int], None]
) -> Rows | None:
    """The domains of the best set of exactly `number`, ascending; None if there is none.

    Shapes: fits (D,), order (D,): the sequence in which domains are tried.
    `spend`: is told what it costs, in node visits.
    """
    pods = unit.slices * unit.layers.size
    deepest = int(fits.pods.max(initial=0)) * (1 if unit.leader is None else number)
    width = pods + deepest + 1  # column c: c - deepest pods are still to be placed
    steps = 2 * (number + 1) * width * order.size
    if number == 0 or steps > STEPS_MAX:
        return None
    spend(steps // STEPS_PER_VISIT)
    leaders = 0 if unit.leader is None else 1
    # Per leader still to place: (domains used, column) -> the domain taken last.
    last = np.full((2, number + 1, width), _UNSET, dtype=np.int32)
    led_last = np.zeros((number + 1, width), dtype=np.bool_)
    is_set = np.zeros((2, number + 1, width), dtype=np.bool_)
    is_set[leaders, 0, pods + deepest] = True
    for domain in order.tolist():
        may_lead = fits.may_lead is not None and bool(fits.may_lead[domain])
        before = is_set[:, :-1].copy()
        before[0, :, : deepest + 1] = False  # all is placed: nothing to add
        if fits.slices[domain] > 0:
            _enter(last[0], is_set[0], before[0], int(fits.pods[domain]), domain)
        if leaders and may_lead:
            new = _enter(last[0], is_set[0], before[1], int(fits.pods_led[domain]), domain)
            led_last[1:] |= new
        if leaders and fits.slices[domain] > 0:
            _enter(last[1], is_set[1], before[1], int(fits.pods[domain]), domain)
    enough = is_set[0, number, : deepest + 1].nonzero()[0]
    if not enough.size:
        return None
    return _way(fits, last, led_last, number, int(enough[-1]))


def _enter(
    last: _Table,
    is_set: npt.NDArray[np.bool_],
    before: npt.NDArray[np.bool_],
    pods: int,
    domain: int,
) -> npt.NDArray[np.bool_]:
    """Takes a domain on top of the entries before, where no other way was found yet."""
    new = np.zeros_like(before)
    new[:, : before.shape[1] - pods] = before[:, pods:]
    new &= ~is_set[1:]
    last[1:][new] = domain
    is_set[1:] |= new
    return new


def _way(
    fits: LevelFit, last: _Table, led_last: npt.NDArray[np.bool_], number: int, column: int
) -> Rows:
    """The domains on the way to an entry at which everything is placed."""
    domains: list[int] = []
    leaders = 0
    for used in range(number, 0, -1):
        domain = int(last[leaders, used, column])
        domains.append(domain)
        if leaders == 0 and led_last[used, column]:
            leaders = 1
            column += int(fits.pods_led[domain])
        else:
            column += int(fits.pods[domain])
    return np.array(sorted(domains), dtype=np.intp)
