"""How full a group's members would leave the domains they choose, where these lie in a wider one.

    group in one domain of tier 2 ─┬─ member in one of tier 1: the fullest with it, 1.0
                                   ├─ member in one of tier 1: the next one, 0.75
                                   └─ members that choose none: together in all of it, 0.5
    score of that domain of tier 2:                                          2.25 of 3

A domain of which a part is nearly full is better than one that is evenly used: the rest of it
stays whole. The members are put, one after the other, into the domain that is fullest with them,
in every wider domain at the same time. That is an estimate, since pods are counted by domain and
not by node: it decides the order in which domains are tried, and never what fits.
Source: volcano docs/design/Network Topology Aware Scheduling.md, "HyperNode Selection Preference";
pkg/scheduler/actions/allocate/allocate.go (v1.15), allocateForJob.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy import typing as npt

from topology.fit.utilization import weights_of
from topology.fit.view import CALL, View
from topology.model.resources import Counts, Rows
from topology.nested.estimates.headroom import Headroom
from topology.nested.parts import Kind, Part

Shares = npt.NDArray[np.float64]
MOST_SCORED = 16  # members of one group; the rest of them are not looked at
_DIGITS = 9  # of a score: what is behind comes from rounding


@dataclass(frozen=True, slots=True)
class Choice:
    """Pods that choose a domain together."""

    levels: tuple[int, ...]
    """Those at which they may, in the order tried, the widest that of their group's domain."""
    pods: Mapping[Kind, int]


def choices(part: Part, level: int, *, is_whole: bool) -> list[Choice]:
    """What chooses domains inside one of a level that the part is in.

    All that are wherever the part is are one choice, the first. `is_whole`: with all members and
    pods, else with those that are needed.
    """
    together = dict[Kind, int]()
    found = list[Choice]()
    for member in _members(part, level, is_whole=is_whole):
        pods = dict[Kind, int]()
        for leaf in member.leaves():
            unit = leaf.unit if is_whole else leaf.floor
            assert unit is not None, "a leaf has a unit"
            for one in unit.pod_sets:
                kind = (one.request, one.shape)
                pods[kind] = pods.get(kind, 0) + one.pods
        if inner := _inner(member, level):
            may_widen = member.may_spread or member.levels[-1] <= level
            found.append(Choice((*inner, level) if may_widen else inner, pods))
        else:
            for kind, its in pods.items():
                together[kind] = together.get(kind, 0) + its
    return [Choice((level,), together), *found] if together else found


def _members(part: Part, level: int, *, is_whole: bool) -> Iterator[Part]:
    """The members of a group, and those of its groups that choose no domain inside the level."""
    members = part.members
    if not is_whole:
        members = tuple(member for member in part.members if not member.is_optional)
        members = members[: max(0, part.needed - len(part.members) + len(members))]
    for member in members:
        if member.unit is None and not _inner(member, level):
            yield from _members(member, level, is_whole=is_whole)
        else:
            yield member


def _inner(part: Part, level: int) -> tuple[int, ...]:
    """The levels narrower than that one at which a part chooses a domain."""
    return tuple(each for each in part.levels if each > level)


@dataclass(slots=True, eq=False)
class _Level:
    """The domains of one level, as they are with the members that were put into them."""

    domains: Rows
    """(W,) first domain here of each wider domain."""
    around: Rows
    """(D,) the wider domain of each."""
    offered: Mapping[int, Shares]
    """By resource row: (D,) what their open nodes have."""
    used: dict[int, Shares]
    takes: dict[Kind, Counts]
    """(D,) pods of each kind that they still take."""
    weights: Mapping[int, int] | None
    """By resource row, as `Options.weights`."""
    _choice: Choice | None = None
    _shares: Shares = field(default_factory=lambda: np.zeros(0))
    """What `shares` has said of the last choice: the next one is mostly like it."""

    def shares(self, choice: Choice) -> Shares:
        """How full the domains are with a choice, -1 where it does not fit. Shapes: (D,)."""
        if self._choice is None or self._choice.pods != choice.pods:
            self._choice, self._shares = choice, self._full(choice, slice(None))
        return self._shares

    def put(self, choice: Choice, domains: Rows) -> None:
        """Count the pods of a choice in each of these domains."""
        for kind, pods in choice.pods.items():
            if kind in self.takes:
                self.takes[kind][domains] -= pods
        for row, amount in _wanted(choice).items():
            if row in self.used:
                self.used[row][domains] += amount
        if self._choice is not None:
            self._shares[domains] = self._full(self._choice, domains)

    def _full(self, choice: Choice, domains: Rows | slice) -> Shares:
        """The same of some domains. Shapes: domains (K,) -> (K,)."""
        wanted = _wanted(choice)
        weights = weights_of(wanted, self.weights)
        here = self.around[domains].size
        fits = np.ones(here, dtype=np.bool_)
        for kind, pods in choice.pods.items():
            fits &= self.takes[kind][domains] >= pods
        total, share = max(sum(weights.values()), 1), np.zeros(here)
        for row, amount in wanted.items():
            if row in self.used:
                offered, used = self.offered[row][domains], self.used[row][domains] + amount
                fits &= used <= offered
                share += used / np.maximum(offered, 1) * weights.get(row, 0) / total
        return np.where(fits, share, -1.0)


def _wanted(choice: Choice) -> dict[int, int]:
    """What the pods of a choice request together, by resource row."""
    wanted = dict[int, int]()
    for (request, _), pods in choice.pods.items():
        for row, amount in enumerate(request):
            if amount:
                wanted[row] = wanted.get(row, 0) + amount * pods
    return wanted


@dataclass(slots=True, eq=False)
class Scores:
    """Scores the domains of one level for a group that is to be in one of them."""

    view: View
    headroom: Headroom
    level: int
    _levels: dict[int, _Level] = field(default_factory=dict)

    def of(self, chosen: list[Choice]) -> Shares:
        """The mean of what the choices have left of their domains. Shapes: (W,), 0 to 1."""
        scored = self._with_first_kinds(chosen[:MOST_SCORED])
        kinds = {kind for choice in scored for kind in choice.pods}
        for inner in {each for choice in scored for each in choice.levels}:
            self._levels[inner] = self._at(inner, kinds)
        scores = np.zeros(self.view.tree.starts[self.level].size)
        for choice in scored:
            self._add(choice, scores)
        mean: Shares = np.round(scores / max(len(scored), 1), _DIGITS)
        return mean

    def _with_first_kinds(self, chosen: list[Choice]) -> list[Choice]:
        """The same, with one kind for all that request the same of the same nodes."""
        first = dict[tuple[tuple[int, ...], int], Kind]()
        found = list[Choice]()
        for choice in chosen:
            pods = dict[Kind, int]()
            for (request, shape), its in choice.pods.items():
                alike = (request, id(self.view.masks.get(shape)))
                kind = first.setdefault(alike, (request, shape))
                pods[kind] = pods.get(kind, 0) + its
            found.append(Choice(choice.levels, pods))
        return found

    def _at(self, inner: int, kinds: set[Kind]) -> _Level:
        tree, view = self.view.tree, self.view
        starts = tree.starts[inner]
        around = tree.domain_of[self.level][starts]
        rows = sorted({row for request, _ in kinds for row, amount in enumerate(request) if amount})
        is_open, has = view.capacity.is_open, view.capacity.allocatable
        offered, used = dict[int, Shares](), dict[int, Shares]()
        for row, free in zip(rows, view.free(rows), strict=True):
            if row < has.shape[0]:
                here = np.where(is_open, has[row], 0).astype(np.float64)
                left = np.where(is_open, free, 0).astype(np.float64)
                offered[row] = np.add.reduceat(here, starts)
                used[row] = offered[row] - np.add.reduceat(left, starts)
        first = np.searchsorted(around, np.arange(tree.starts[self.level].size))
        takes = {kind: self.headroom.pods(kind, inner).copy() for kind in kinds}
        return _Level(first, around, offered, used, takes, view.options.weights)

    def _add(self, choice: Choice, scores: Shares) -> None:
        """Put a choice into the best domain of each wider one, and add how full it leaves that."""
        waits = np.ones(scores.size, dtype=np.bool_)
        for inner in choice.levels:
            here = self._levels[inner]
            self.view.spend(CALL + here.around.size)
            shares = here.shares(choice)
            best = np.maximum.reduceat(shares, here.domains)
            served = waits & (best >= 0)
            scores[served] += best[served]
            domains = (shares == best[here.around]).nonzero()[0]
            around = here.around[domains]  # sorted: of equal ones the first is taken
            is_taken = served[around]
            is_taken[1:] &= around[1:] != around[:-1]
            self._put(choice, inner, domains[is_taken])
            waits &= ~served
            if not waits.any():
                return

    def _put(self, choice: Choice, inner: int, domains: Rows) -> None:
        """Count a choice in domains of a level, and in those around them."""
        tree = self.view.tree
        slots = tree.starts[inner][domains]
        for each, here in self._levels.items():
            if each <= inner:
                here.put(choice, tree.domain_of[each][slots])
