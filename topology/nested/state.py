"""The state of a walk: its view of the books, what is placed where, and what still fits where.

It answers which domains may take a part and in which order, puts units into domains and takes
them back. It decides nothing; deciding is `walk`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy import typing as npt

from topology.fit import order
from topology.fit.unit import Lead, Unit
from topology.fit.utilization import weights_of
from topology.fit.view import View
from topology.model.answer import NoFit, PodSetPlacement
from topology.model.request import DomainOrder, PodSet
from topology.model.resources import Counts, Mask, Rows
from topology.model.tree import Tree
from topology.nested.estimates.bounds import Bounds, together
from topology.nested.estimates.headroom import Headroom
from topology.nested.estimates.scores import Scores, choices
from topology.nested.parts import Kind, Part, kind_of
from topology.nested.subtree import Cut, Subtree, cut, domains_in, subtree_of
from topology.nested.unplaced import has_kept
from topology.packing.pack import NoPacking, Packing, pack
from topology.packing.patterns import Work
from topology.pod_set import search
from topology.pod_set.assign import Share, placements
from topology.pod_set.unplaced import Kept, added, by_domain, completed, staying

FEW_DOMAINS = 8  # are tried without a closer look at which of them certainly take nothing
CELLS = 10_000_000  # array cells one packing may touch: some ten milliseconds
CELLS_PER_VISIT = 64  # take as long as a visit of a node
PACKING = 4_000  # node visits that any packing costs


@dataclass(frozen=True, slots=True)
class Held:
    """Where a leaf is for now."""

    unit: Unit
    placed: tuple[PodSetPlacement, ...]
    inside: Subtree
    """Where its group is."""


@dataclass(slots=True, eq=False)
class WalkState:
    """What one walk has placed so far, and what it may use."""

    view: View
    root: Part
    kept: Mapping[str, Kept] = field(default_factory=dict)
    """Pods of the gang that are on the books already and stay where they are."""
    held: dict[int, Held] = field(default_factory=dict)
    """id of a leaf -> its place."""
    subtrees: dict[int, Subtree] = field(default_factory=dict)
    """id of a group -> the domain its members are in, or are being placed in."""
    is_over: bool = False
    """The view is not read any more, so nothing is taken back."""
    headroom: Headroom = field(init=False)
    _cuts: dict[Subtree, Cut] = field(default_factory=dict)
    _bounds: Bounds = field(init=False)

    def __post_init__(self) -> None:
        kinds = self.root.kinds()
        self.view.expect(request for request, _ in kinds)
        self.headroom = Headroom(self.view, kinds)
        self._bounds = Bounds(self.view, self.headroom, self.kept)

    def is_placed(self, part: Part) -> bool:
        return id(part) in (self.subtrees if part.unit is None else self.held)

    def place(self, unit: Unit, subtree: Subtree) -> tuple[PodSetPlacement, ...] | NoFit:
        here = self._cuts.get(subtree)
        if here is None:
            here = self._cuts[subtree] = cut(self.view, subtree)
        if not self.view.options.order.is_kueues and subtree.level >= unit.first:
            # The walk has chosen the domain; inside it the nodes are filled as without a level.
            unit = replace(unit, strategy=self.view.options.unconstrained)
        answer = search.place(here.view, unit)
        if isinstance(answer, NoFit):
            return answer
        return tuple(here.widened(placed) for placed in answer)

    def put(self, part: Part, unit: Unit, subtree: Subtree) -> tuple[PodSetPlacement, ...] | NoFit:
        """A place in a subtree for a part, with as many pods as the unit: beside its kept ones."""
        if not has_kept(part, self.kept):
            return self.place(unit, subtree)
        return completed(self.view, unit, self.kept, slice(*subtree.slots))

    def hold(self, part: Part, held: Held) -> None:
        self.held[id(part)] = held
        self._assume(held, 1)

    def drop(self, part: Part) -> None:
        allowance = self.view.options.allowance
        if self.is_over or (allowance is not None and allowance.is_spent):
            self.held.pop(id(part), None)  # where it was given up, some had no place for a moment
        else:
            self._assume(self.held.pop(id(part)), -1)

    def _assume(self, held: Held, times: int) -> None:
        requests = {one.name: one.request for one in held.unit.pod_sets}
        for placed in held.placed:
            slots = added(placed, self.kept)
            self.view.assume(requests[placed.pod_set], slots, times)
            self.headroom.note(slots.indices)

    def candidates(
        self, part: Part, subtree: Subtree, level: int, *, is_whole: bool = True
    ) -> list[int]:
        """Domains of a level inside the subtree that may take a part, best first.

        `is_whole`: the order is that for all of the part, else for what is needed of it.
        """
        tree = self.view.tree
        start, end = domains_in(tree, subtree, level)
        may_fit = np.ones(end - start, dtype=np.bool_)
        home = self.home(part, subtree, level)
        if home.size:
            may_fit[:] = False
            is_required = not part.may_spread and level == part.levels[-1]
            if is_required or (home == home[0]).all():
                may_fit[home[0] - start] = True
        for kind, pods in part.demand:
            may_fit &= self.headroom.pods(kind, level)[start:end] >= pods
        left = np.count_nonzero(may_fit)
        if left > FEW_DOMAINS and len(part.demand) > 1:
            may_fit &= self._bounds.hold_all(part, subtree, level)
        if left and self._bounds.requires_narrower(part, level):
            may_fit &= self._bounds.hold_each(part, subtree, level)
        candidates: Rows = may_fit.nonzero()[0] + start
        if candidates.size > 1:
            how = self.view.options.order
            candidates = order.for_group(
                tree,
                how,
                candidates,
                level,
                subtree.level,
                lambda at, of: self._urgency(part, at, of, is_whole=is_whole),
            )
        return [int(domain) for domain in candidates]

    def roomy(self, part: Part, subtree: Subtree, level: int, but: Sequence[int]) -> list[int]:
        """Other domains of a level in the subtree with as much free in all as a part requests.

        Only those where this walk has placed pods: nothing else can be moved there. None where
        pods of the part stay: they say where it may be.
        """
        start, end = domains_in(self.view.tree, subtree, level)
        if start == end or has_kept(part, self.kept):
            return []
        is_used = self._is_used(level)[start:end]
        if not is_used.any():
            return []
        has_enough = is_used & self._bounds.hold_sums(part, subtree, level)
        has_enough[np.array(but, dtype=np.intp) - start] = False
        return [start + int(domain) for domain in has_enough.nonzero()[0]]

    def _is_used(self, level: int) -> Mask:
        """Where this walk has placed pods. Shapes: (D,)."""
        domain_of = self.view.tree.domain_of[level]
        is_used = np.zeros(self.view.tree.starts[level].size, dtype=np.bool_)
        for held in self.held.values():
            for placed in held.placed:
                is_used[domain_of[placed.slots.indices]] = True
        return is_used

    def home(self, part: Part, subtree: Subtree, level: int) -> Rows:
        """Domains of a level inside a subtree that hold kept pods of a part, if these bind it."""
        if not self.kept or not self.view.options.kept_bind:
            return np.zeros(0, dtype=np.intp)
        start, end = subtree.slots
        slots = [
            slot
            for leaf in part.leaves()
            if leaf.unit is not None
            for stays in staying(leaf.unit, self.kept).values()
            for slot, _ in stays
            if start <= slot < end
        ]
        return self.view.tree.domain_of[level][np.array(slots, dtype=np.intp)]

    def has_room(self, part: Part, subtree: Subtree) -> bool:
        """False: the subtree certainly does not take a part."""
        level = max(subtree.level, 0)
        start, end = domains_in(self.view.tree, subtree, level)
        return all(
            int(self.headroom.pods(kind, level)[start:end].sum()) >= pods
            for kind, pods in part.demand
        )

    def every_way(
        self, unit: Unit, subtree: Subtree
    ) -> Iterator[tuple[PodSetPlacement, ...] | None]:
        """Every way to put what is missing of a unit on the nodes of a subtree.

        None: one that cuts a slice, which the caller counts like any other.
        """
        tree, stays = self.view.tree, staying(unit, self.kept)
        here = stays[unit.workers.name]
        missing = unit.workers.pods - sum(pods for _, pods in here)
        for way in _ways_over(self._takes(unit.workers, subtree), missing):
            together = Counter(dict(here))
            together.update(dict(way))
            workers = sorted(together.items())
            if not _are_slices_whole(tree, unit, workers):
                yield None
                continue
            if unit.leader is None or stays[unit.leader.name]:
                leads = None if unit.leader is None else stays[unit.leader.name][0][0]
                yield over_nodes(tree, unit, workers, leads)
                continue
            for slot, _ in self._takes(unit.leader, subtree):
                if self._takes_both(unit, slot, dict(way).get(slot, 0)):
                    yield over_nodes(tree, unit, workers, slot)

    def _takes(self, pods: PodSet | Lead, subtree: Subtree) -> list[tuple[int, int]]:
        """(slot, pods of this kind it takes) of the nodes that take any."""
        start, end = subtree.slots
        kind = kind_of(pods)
        takes = self.headroom.pods(kind, self.view.tree.node_level)[start:end]
        return [(slot, most) for slot, most in enumerate(takes.tolist(), start) if most]

    def _takes_both(self, unit: Unit, slot: int, workers: int) -> bool:
        """Whether a node takes the leader beside so many workers."""
        assert unit.leader is not None, "asked of a unit with a leader"
        asked = together(((unit.leader.request, 1), (unit.workers.request, workers)))
        free = self.view.free(list(asked), np.array([slot], dtype=np.intp))
        return all(amount <= left[0] for amount, left in zip(asked.values(), free, strict=True))

    def _urgency(
        self, part: Part, level: int, domains: Rows, *, is_whole: bool
    ) -> npt.NDArray[np.float64]:
        """How far a part would fill each domain, 1 to the brim. Shapes: domains (D,) -> (D,)."""
        if self.view.options.order is DomainOrder.MOST_USED:
            chosen = choices(part, level, is_whole=is_whole)
            if any(choice.levels[0] > level for choice in chosen):
                return Scores(self.view, self.headroom, level).of(chosen)[domains]
            return self._share(part, level, domains)
        filled = np.zeros(domains.size)
        for kind, pods in part.demand:
            takes = self.headroom.pods(kind, level)[domains]
            np.maximum(filled, pods / np.maximum(takes, 1), out=filled)
        return filled

    def _share(self, part: Part, level: int, domains: Rows) -> npt.NDArray[np.float64]:
        """Of what each domain has, the share in use with all pods of a part: a weighted mean.

        Shapes: domains (D,) -> (D,).
        """
        view, wanted = self.view, dict[int, int]()
        for leaf in part.leaves():
            assert leaf.unit is not None, "a leaf has a unit"
            for one in leaf.unit.pod_sets:
                for row, amount in enumerate(one.request):
                    if amount:
                        wanted[row] = wanted.get(row, 0) + amount * one.pods
        weights = weights_of(wanted, view.options.weights)
        first, last = int(domains.min()), int(domains.max())
        start, stop = view.tree.slots(level, first).start, view.tree.slots(level, last).stop
        rows, starts = list(weights), view.tree.starts[level][first : last + 1] - start
        total = max(sum(weights.values()), 1)
        is_open, has = view.capacity.is_open[start:stop], view.capacity.allocatable[:, start:stop]
        share = np.zeros(starts.size)
        for row, free in zip(rows, view.free(rows, np.arange(start, stop)), strict=True):
            here = np.where(is_open, has[row], 0) if row < has.shape[0] else np.zeros(is_open.size)
            offered = np.add.reduceat(here.astype(np.float64), starts)
            left = np.add.reduceat(np.where(is_open, free, 0).astype(np.float64), starts)
            used = (offered - left + wanted[row]) / np.maximum(offered, 1)
            share += used * weights[row] / total
        return share[domains - first]

    def packing(self, leaves: Sequence[Part], subtree: Subtree) -> Packing | NoPacking:
        """Nodes for what is needed of all leaves at once, or that there are none.

        Order: of each leaf the workers, then the leader.
        Raises: AllowanceSpent.
        """
        floors = [one for leaf in leaves if leaf.floor is not None for one in leaf.floor.pod_sets]
        stays = [sum(pods for _, pods in self.kept.get(one.name, ())) for one in floors]
        rows = sorted({row for one in floors for row, amount in enumerate(one.request) if amount})
        start, end = subtree.slots
        requests = [
            [one.request[row] if row < len(one.request) else 0 for row in rows] for one in floors
        ]
        allowance = self.view.options.allowance
        most = CELLS if allowance is None else min(CELLS, allowance.cells)
        work = Work(most)
        packing = pack(
            np.array(self.view.free(rows, np.arange(start, end)), dtype=np.int64),
            np.array(requests, dtype=np.int64),
            np.array([self.view.may_host(one.shape)[start:end] for one in floors]),
            [one.pods - pods for one, pods in zip(floors, stays, strict=True)],
            work,
        )
        if allowance is not None:
            allowance.cells -= most - work.cells
            if work.is_short and most < CELLS:
                allowance.give_up()
        self.view.spend(PACKING + (most - work.cells) // CELLS_PER_VISIT)
        return packing

    def packed(
        self, leaves: Sequence[Part], packing: Packing, subtree: Subtree
    ) -> Iterator[tuple[Part, tuple[PodSetPlacement, ...]]]:
        """The places that a `packing` gives leaves, beside their kept pods."""
        first, rows = subtree.slots[0], iter(packing.pods_by_shape_and_node)
        for leaf in leaves:
            assert leaf.floor is not None, "only leaves are packed"
            way = Counter(dict(self.kept.get(leaf.floor.workers.name, ())))
            way.update(_by_slot(next(rows), first))
            leader = None if leaf.floor.leader is None else min(_by_slot(next(rows), first))
            yield leaf, over_nodes(self.view.tree, leaf.floor, sorted(way.items()), leader)

    def shortage(self, part: Part, subtree: Subtree, level: int) -> NoFit:
        """Of the kind that lacks most, what the best domain of a level in a subtree takes.

        A level that is not narrower than the subtree, or -1, is the subtree itself. Pods that stay
        and bind the part leave only their own domain.
        """
        view, inside, worst = self.view, subtree, None
        level = max(level, subtree.level)
        home = self.home(part, subtree, max(level, 0))
        if level > subtree.level and home.size:
            inside = subtree_of(view.tree, level, int(home[0]))
        start, end = domains_in(view.tree, inside, max(level, 0))
        for kind, pods in part.demand:
            takes = self.headroom.pods(kind, max(level, 0))[start:end]
            most = int(takes.sum()) if level < 0 else int(takes.max(initial=0))
            if worst is None or most * worst[1] < worst[2] * pods:
                worst = (kind, pods, most)
        if worst is None:
            # Some of its members would do, of which none has a domain: there is no node.
            member = next((one for one in part.members if one.demand or one.members), None)
            assert member is not None, "what demands nothing fits"
            return self.shortage(member, inside, -1 if member.may_spread else member.levels[-1])
        kind, needed, available = worst
        leaves = [leaf for leaf in part.leaves() if not leaf.is_optional] or part.leaves()
        units = [leaf.unit for leaf in leaves if leaf.unit is not None]
        short = next(one for unit in units for one in unit.pod_sets if kind_of(one) == kind)
        found = NoFit(
            pod_set=short.name,
            level="" if level < 0 else view.tree.levels[level],
            needed=needed,
            available=available,
            excluded=view.excluded(short, None if inside is subtree else slice(*inside.slots)),
            nodes=int(np.count_nonzero(view.capacity.is_open)),
        )
        if available < needed:
            return found
        for member in self._bounds.narrower(part):
            why = self.shortage(member, inside, member.levels[-1])
            if why.available < why.needed:
                return why
        return _with_others(found, units, kind)


def _by_slot(pods: Counts, first: int) -> dict[int, int]:
    """Slot -> pods, where there are any, of nodes from a first slot on. Shapes: (N,)."""
    return {slot: here for slot, here in enumerate(pods.tolist(), first) if here}


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


def _with_others(found: NoFit, units: list[Unit], kind: Kind) -> NoFit:
    """Names what does not fit beside pods of a kind that would fit alone."""
    if len(units) == 1 and units[0].leader is not None:
        return replace(found, leader=units[0].leader.name)
    pod_sets = [one for unit in units for one in unit.pod_sets if one.name != found.pod_set]
    others = [one for one in pod_sets if kind_of(one) != kind] or pod_sets
    return replace(found, beside=tuple(one.name for one in others))


def _are_slices_whole(tree: Tree, unit: Unit, workers: list[tuple[int, int]]) -> bool:
    """Whether each domain of a slice layer has whole slices of it, but for a smaller last one."""
    for level, size in unit.layers.named:
        rests = [pods % size for pods in by_domain(tree, level, workers).values() if pods % size]
        smaller = unit.workers.pods % size
        if rests != ([smaller] if smaller else []):
            return False
    return True


def _ways_over(takes: list[tuple[int, int]], pods: int) -> Iterator[list[tuple[int, int]]]:
    """Every way to put pods on slots that take so many each, early slots first."""
    if pods == 0:
        yield []
    if sum(pods for _, pods in takes) < pods:
        return
    for index, (slot, most) in enumerate(takes):
        for here in range(min(most, pods), 0, -1):
            if here == pods:
                yield [(slot, here)]
            else:
                for rest in _ways_over(takes[index + 1 :], pods - here):
                    yield [(slot, here), *rest]
