"""What one search may use: the books, less what it assumes itself, seen through the masks."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NoReturn

import numpy as np

from topology.fit import fit
from topology.fit.fit import LevelFit
from topology.fit.unit import Lead, Unit
from topology.model.answer import Pairs
from topology.model.capacity import Capacity
from topology.model.request import DomainOrder, PodSet, Strategy
from topology.model.resources import Counts, Mask, Rows
from topology.model.tree import Tree

CALL = 1_000  # what asking for no node at all costs, in node visits


@dataclass(slots=True)
class Visits:
    """What searches cost, the same on every machine: nodes looked at, each as often as it was."""

    total: int = 0

    def add(self, visits: int) -> None:
        """Count some more."""
        self.total += visits


@dataclass(slots=True)
class Allowance:
    """What may be spent on a gang of several pod sets before its search is given up, unfinished.

    Several searches may have one in common.
    """

    last_visit: int
    """When `Visits` have more in total, it is used up."""
    cells: int
    """Of arrays, for packings (`packing`)."""
    is_spent: bool = False
    """A search has been given up: what it assumed is not read any more."""

    def give_up(self) -> NoReturn:
        """End the search that has used it up. Raises: AllowanceSpent."""
        self.is_spent = True
        raise AllowanceSpent


class AllowanceSpent(Exception):
    """A search goes on no longer; it is caught where the search began."""


@dataclass(frozen=True, slots=True)
class Options:
    """Options of a search beside the masks; by default all nodes are equally good."""

    scores: Mapping[Hashable, Counts] = field(default_factory=dict)
    """Per shape (N,), numbers >= 0: preferred node affinity, weighing more than capacity."""
    reasons: Mapping[Hashable, Sequence[str]] = field(default_factory=dict)
    """Per shape (N,): why its mask closes a node, for the sake of NoFit.excluded."""
    arriving: Sequence[tuple[Sequence[int], Pairs]] = ()
    """(request, slots) of pods that count as being there though the books do not have them."""
    unconstrained: Strategy = Strategy.LEAST_FREE
    """How pods without a level are packed (Kueue's gate TASProfileMixed; off: BEST_FIT)."""
    kept_bind: bool = True
    """Pods that are added beside others go where the level that all of them require is.

    False: only replaced pods do; so does Kueue, which lets growth leave a required domain.
    """
    order: DomainOrder = DomainOrder.TIGHTEST
    """In which order the domains of one level are tried for a group."""
    weights: Mapping[int, int] | None = None
    """By resource row: what counts for MOST_USED of what a group requests; None: all, alike."""
    floor_first: bool = False
    """Pods that are not needed come after all that are, and nothing moves for them (KAI, Volcano).

    Else all pods are tried at once before some are left out.
    """
    floor_only: bool = False
    """Pods that are not needed get no place."""
    tries: int = 1000
    """How many places may be tried in vain for a gang of several pod sets.

    0: each pod set gets Kueue's place and no other, though that may leave none for the next.
    """
    visits: Visits = field(default_factory=Visits, compare=False)
    """Where the search counts what it costs."""
    allowance: Allowance | None = field(default=None, compare=False)
    """None: a search ends by itself. Else it ends as it would by itself, or is not finished."""

    @property
    def without_allowance(self) -> Options:
        """The same for a search that costs little."""
        return self if self.allowance is None else replace(self, allowance=None)


class View:
    """The books, less what the search's own earlier units assume."""

    __slots__ = ("_assumed", "_inside", "capacity", "masks", "options", "tree")

    def __init__(
        self,
        tree: Tree,
        capacity: Capacity,
        masks: Mapping[Hashable, Mask],
        options: Options,
    ) -> None:
        self.tree = tree
        self.capacity = capacity
        self.masks = masks
        self.options = options
        self._assumed: dict[int, Counts] = {}  # resource row -> (N,) amounts
        self._inside: Mask | None = None
        for request, slots in options.arriving:
            self.assume(request, slots)

    def confine(self, slots: slice | None) -> None:
        """Leaves only these slots to the units that follow; None: all of them again."""
        self._inside = None if slots is None else self._mask(slots)

    def _mask(self, slots: slice) -> Mask:
        mask = np.zeros(len(self.tree.nodes), dtype=np.bool_)
        mask[slots] = True
        return mask

    def assume(self, request: Sequence[int], placed: Pairs, times: int = 1) -> None:
        """Counts (slot, pods) of this search as being there already; -1 times: not any more."""
        for row in _asked(request):
            if row not in self._assumed:
                self._assumed[row] = np.zeros(len(self.tree.nodes), dtype=np.int64)
            self._assumed[row][placed.indices] += placed.pods * (times * request[row])

    def expect(self, requests: Iterable[Sequence[int]]) -> None:
        """Makes what will be assumed of these requests seen by views that share it."""
        for row in {row for request in requests for row in _asked(request)}:
            self._assumed.setdefault(row, np.zeros(len(self.tree.nodes), dtype=np.int64))

    def share(self, view: View, slots: slice) -> None:
        """Sees from now on what another view assumes on its part of that view's slots."""
        self._assumed = {row: amounts[slots] for row, amounts in view._assumed.items()}

    def free(self, rows: Sequence[int], slots: Rows | None = None) -> list[Counts]:
        """What is left of some resources, to be read only. Shapes: each (N,) or (len(slots),)."""
        self.spend(CALL + len(self.tree.nodes if slots is None else slots))
        return [self._free(row, slots) for row in rows]

    def _free(self, row: int, slots: Rows | None) -> Counts:
        free: Counts
        if row < self.capacity.free_now.shape[0]:
            free = self.capacity.free_now[row]
        else:  # no node has offered any of it yet
            free = np.zeros(len(self.tree.nodes), dtype=np.int64)
        assumed = self._assumed.get(row)
        if slots is None:
            return free if assumed is None else free - assumed
        return free[slots] if assumed is None else free[slots] - assumed[slots]

    def spend(self, visits: int) -> None:
        """Count what the search costs. Raises: AllowanceSpent."""
        visited, allowance = self.options.visits, self.options.allowance
        visited.add(visits)
        if allowance is not None and visited.total > allowance.last_visit:
            allowance.give_up()

    def may_host(self, shape: Hashable) -> Mask:
        """Which nodes are open, inside and allowed for a shape. Shapes: (N,)."""
        may_host = self._may_ever_host(shape)
        return may_host if self._inside is None else may_host & self._inside

    def _may_ever_host(self, shape: Hashable) -> Mask:
        is_open, mask = self.capacity.is_open, self.masks.get(shape)
        return is_open if mask is None else is_open & mask

    def node_fit(self, unit: Unit, slots: Rows | None = None) -> LevelFit:
        """What each node takes of a unit; nothing where it may not be.

        With slots given, every other node counts as 0.
        Source: kueue pkg/cache/scheduler/tas_flavor_snapshot.go (v0.16), phase 1.
        """
        workers, leader = unit.workers, unit.leader
        rows = _asked(workers.request)
        request = [workers.request[row] for row in rows]
        free = self.free(rows, slots)
        may_host = self.may_host(workers.shape)
        pods = self._spread(fit.pods_per_node(free, request), slots, may_host)
        led = None
        if leader is not None:
            leads = fit.pods_per_node(
                self.free(_asked(leader.request), slots),
                [amount for amount in leader.request if amount],
            )
            may_lead = self._spread(leads, slots, self.may_host(leader.shape)) > 0
            for index, row in enumerate(rows):
                if row < len(leader.request):
                    free[index] = free[index] - leader.request[row]
            beside = self._spread(fit.pods_per_node(free, request), slots, may_host)
            led = (np.where(may_lead, beside, pods), may_lead)
        scores = self.options.scores.get(workers.shape)
        if scores is not None:
            # Also outside of where the pods must be: that is how Kueue adds them up (2.4).
            scores = np.where(self._may_ever_host(workers.shape), scores, 0)
        return fit.of_nodes(pods, unit.layers, self.tree.node_level, led=led, scores=scores)

    def _spread(self, pods: Counts, slots: Rows | None, may_host: Mask) -> Counts:
        """Pods of some slots as pods of all of them, 0 where they may not be."""
        if slots is not None:
            inside, pods = pods, np.zeros(len(self.tree.nodes), dtype=np.int64)
            pods[slots] = inside
        np.copyto(pods, 0, where=~may_host)
        return pods

    def excluded(
        self, pods: PodSet | Lead, slots: slice | None = None
    ) -> tuple[tuple[str, int], ...]:
        """Why nodes take none of these pods, as `fit.exclusions` counts them.

        `slots` are those that the pods are confined to, instead of those of `confine`.
        """
        inside = self._inside if slots is None else self._mask(slots)
        rows = _asked(pods.request)
        names = (*self.capacity.axis.names, pods.lacking)
        is_allowed = self.masks.get(pods.shape)
        return fit.exclusions(
            self.free(rows),
            [(names[row], pods.request[row]) for row in rows],
            self.capacity.is_open,
            np.ones_like(self.capacity.is_open) if is_allowed is None else is_allowed,
            is_inside=inside,
            reasons=self.options.reasons.get(pods.shape),
        )


def _asked(request: Sequence[int]) -> list[int]:
    """Resource rows a pod asks something of."""
    return [row for row, amount in enumerate(request) if amount]
