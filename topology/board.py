"""What a walk of groups sees and changes: the room, who is placed where, what still fits where.

It answers which domains may take a part and in which order, puts units into domains and takes
them back. It decides nothing; deciding is `groups`.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace

import numpy as np
from numpy import typing as npt

from topology import order, search
from topology.answer import NoFit, PodSetPlacement
from topology.assign import Share, placements
from topology.headroom import Headroom
from topology.packing import NoPacking, Packing, pack
from topology.parts import Kind, Part
from topology.request import DomainOrder, PodSet
from topology.resources import PODS_ROW, Rows
from topology.room import Room
from topology.scope import Cut, Scope, cut, domains_in
from topology.tree import Tree
from topology.unit import Lead, Unit

CELLS = 10_000_000  # array cells one packing may touch: some ten milliseconds


@dataclass(frozen=True, slots=True)
class Held:
    """Where a leaf is for now."""

    unit: Unit
    placed: tuple[PodSetPlacement, ...]


@dataclass(slots=True, eq=False)
class Board:
    """One walk's books."""

    room: Room
    root: Part
    held: dict[int, Held] = field(default_factory=dict)
    """id of a leaf -> its place."""
    scopes: dict[int, Scope] = field(default_factory=dict)
    """id of a group -> the domain its members are in, or are being placed in."""
    headroom: Headroom = field(init=False)
    _cuts: dict[Scope, Cut] = field(default_factory=dict)

    def __post_init__(self) -> None:
        kinds = dict.fromkeys(kind for leaf in self.root.leaves() for kind in _kinds(leaf))
        self.room.expect(request for request, _ in kinds)
        self.headroom = Headroom(self.room, kinds)

    def is_placed(self, part: Part) -> bool:
        return id(part) in (self.scopes if part.unit is None else self.held)

    def place(self, unit: Unit, scope: Scope) -> tuple[PodSetPlacement, ...] | NoFit:
        here = self._cuts.get(scope)
        if here is None:
            here = self._cuts[scope] = cut(self.room, scope)
        if self.room.options.order is not DomainOrder.TIGHTEST and scope.level >= unit.first:
            # The walk has chosen the domain; inside it the nodes are filled as without a level.
            unit = replace(unit, strategy=self.room.options.unconstrained)
        answer = search.place(here.room, unit)
        if isinstance(answer, NoFit):
            return answer
        return tuple(here.widened(placed) for placed in answer)

    def hold(self, part: Part, held: Held) -> None:
        self.held[id(part)] = held
        self._assume(held, 1)

    def drop(self, part: Part) -> None:
        self._assume(self.held.pop(id(part)), -1)

    def _assume(self, held: Held, sign: int) -> None:
        requests = {one.name: one.request for one in _pods_of(held.unit)}
        for placed in held.placed:
            slots = [(slot, sign * pods) for slot, pods in placed.slots]
            self.room.assume(requests[placed.pod_set], slots)
            self.headroom.renew([slot for slot, _ in slots])

    def candidates(self, part: Part, scope: Scope, level: int) -> list[int]:
        """Domains of a level inside the scope that may take a part, best first."""
        tree = self.room.tree
        start, end = domains_in(tree, scope, level)
        may_fit = np.ones(end - start, dtype=np.bool_)
        for kind, pods in part.demand:
            may_fit &= self.headroom.pods(kind, level)[start:end] >= pods
        candidates: Rows = may_fit.nonzero()[0] + start
        if candidates.size > 1:
            how = self.room.options.order
            candidates = order.for_group(
                tree,
                how,
                candidates,
                level,
                scope.level,
                lambda at, of: self._urgency(part, at, of),
            )
        return [int(domain) for domain in candidates]

    def has_room(self, part: Part, scope: Scope) -> bool:
        """False: the scope certainly does not take a part."""
        level = max(scope.level, 0)
        start, end = domains_in(self.room.tree, scope, level)
        return all(
            int(self.headroom.pods(kind, level)[start:end].sum()) >= pods
            for kind, pods in part.demand
        )

    def takes(self, pods: PodSet | Lead, scope: Scope) -> list[tuple[int, int]]:
        """(slot, pods of this kind it takes) of the nodes that take any."""
        start, end = scope.slots
        kind = (pods.request, pods.shape)
        takes = self.headroom.pods(kind, self.room.tree.node_level)[start:end]
        return [(slot, most) for slot, most in enumerate(takes.tolist(), start) if most]

    def takes_both(self, unit: Unit, slot: int, workers: int) -> bool:
        """Whether a node takes the leader beside so many workers."""
        assert unit.leader is not None, "asked of a unit with a leader"
        asked: Counter[int] = Counter()
        for request, pods in ((unit.leader.request, 1), (unit.workers.request, workers)):
            for row, amount in enumerate(request):
                asked[row] += amount * pods
        rows = [row for row, amount in asked.items() if amount]
        free = self.room.free(rows, np.array([slot], dtype=np.intp))[:, 0].tolist()
        return all(asked[row] <= left for row, left in zip(rows, free, strict=True))

    def _urgency(self, part: Part, level: int, domains: Rows) -> npt.NDArray[np.float64]:
        """How far a part would fill each domain, 1 to the brim. Shapes: domains (D,) -> (D,)."""
        if self.room.options.order is DomainOrder.MOST_USED:
            return self._share(part, level)[domains]
        filled = np.zeros(domains.size)
        for kind, pods in part.demand:
            takes = self.headroom.pods(kind, level)[domains]
            np.maximum(filled, pods / np.maximum(takes, 1), out=filled)
        return filled

    def _share(self, part: Part, level: int) -> npt.NDArray[np.float64]:
        """Of what each domain has, the share in use with all pods of a part: mean of resources."""
        room, wanted = self.room, dict[int, int]()
        for leaf in part.leaves():
            assert leaf.unit is not None, "a leaf has a unit"
            for one in _pods_of(leaf.unit):
                pods = one.pods if isinstance(one, PodSet) else 1
                for row, amount in enumerate(one.request):
                    if row != PODS_ROW and amount:
                        wanted[row] = wanted.get(row, 0) + amount * pods
        rows, starts = list(wanted), room.tree.starts[level]
        free = np.where(room.capacity.is_open, room.free(rows), 0)
        has = np.zeros_like(free)
        for index, row in enumerate(rows):
            if row < room.capacity.allocatable.shape[0]:
                has[index] = np.where(room.capacity.is_open, room.capacity.allocatable[row], 0)
        share = np.zeros(starts.size)
        for index, row in enumerate(rows):
            offered = np.add.reduceat(has[index].astype(np.float64), starts)
            left = np.add.reduceat(free[index].astype(np.float64), starts)
            share += (offered - left + wanted[row]) / np.maximum(offered, 1) / len(rows)
        return share

    def packing(self, part: Part, scope: Scope) -> Packing | NoPacking:
        """Nodes for all members at once, or that there are none."""
        floors = [member.floor.workers for member in part.members if member.floor is not None]
        rows = sorted({row for one in floors for row, amount in enumerate(one.request) if amount})
        start, end = scope.slots
        requests = [
            [one.request[row] if row < len(one.request) else 0 for row in rows] for one in floors
        ]
        return pack(
            self.room.free(rows, np.arange(start, end)),
            np.array(requests, dtype=np.int64),
            np.array([self.room.may_host(one.shape)[start:end] for one in floors]),
            [one.pods for one in floors],
            CELLS,
        )

    def shortage(self, part: Part, scope: Scope, level: int) -> NoFit:
        """Of the kind that lacks most, what the best domain of a level takes; -1: all together."""
        room, worst = self.room, None
        for kind, pods in part.demand:
            start, end = domains_in(room.tree, scope, max(level, 0))
            takes = self.headroom.pods(kind, max(level, 0))[start:end]
            most = int(takes.sum()) if level < 0 else int(takes.max(initial=0))
            if worst is None or most * worst[1] < worst[2] * pods:
                worst = (kind, pods, most)
        assert worst is not None, "what demands nothing has room"
        leaf = next(one for one in part.leaves() if worst[0] in _kinds(one))
        assert leaf.unit is not None, "a leaf has a unit"
        return NoFit(
            pod_set=leaf.unit.workers.name,
            level="" if level < 0 else room.tree.levels[level],
            needed=worst[1],
            available=worst[2],
            excluded=room.excluded(leaf.unit),
            nodes=int(np.count_nonzero(room.capacity.is_open)),
        )


def over_nodes(
    tree: Tree, unit: Unit, way: list[tuple[int, int]], leader: int | None
) -> tuple[PodSetPlacement, ...]:
    """The answer for one such way: the narrowest level it has one domain of, if it may."""
    if leader is not None and leader not in dict(way):
        way = [*way, (leader, 0)]
    slots = np.array([slot for slot, _ in way], dtype=np.intp)
    pods = np.array([pods for _, pods in way], dtype=np.int64)
    level = unit.first
    while level > unit.last and np.unique(tree.domain_of[level][slots]).size > 1:
        level -= 1
    return placements(tree, unit, level, Share(slots, pods, leader))


def _pods_of(unit: Unit) -> list[PodSet | Lead]:
    return [unit.workers] if unit.leader is None else [unit.workers, unit.leader]


def _kinds(leaf: Part) -> list[Kind]:
    assert leaf.unit is not None, "a leaf has a unit"
    return [(one.request, one.shape) for one in _pods_of(leaf.unit)]
