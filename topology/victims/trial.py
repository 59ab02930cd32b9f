"""Whether one domain takes the gang if some of the victims are gone.

For pods of one kind that may be anywhere in the domain a sum over its nodes says so. For all other
gangs the sums of each kind rule out what is hopeless, and the search itself decides, in the domain
as a cluster of its own.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import ge

import numpy as np

from topology.fit.fit import pods_per_node
from topology.fit.view import Options, View
from topology.model.answer import NoFit, Placement
from topology.model.capacity import Capacity
from topology.model.changed.capacity import arrived, as_if
from topology.model.request import PODS_MAX, Gang
from topology.model.resources import Counts, Mask, Rows
from topology.model.tree import Tree
from topology.nested.parts import Kind, Part, root_of
from topology.nested.subtree import Subtree, cut
from topology.nested.walk import find
from topology.victims.table import Table

SEARCH = 100  # visits that a search counts for, one more for every so many nodes of the tree …
LOOKED_AT = 300  # … and one for every so many that it looks at, each as often as it does


class Problem:
    """What is asked, of which cluster, and who may go."""

    def __init__(
        self,
        tree: Tree,
        capacity: Capacity,
        gang: Gang,
        masks: Mapping[Hashable, Mask],
        options: Options,
        table: Table,
    ) -> None:
        """Raises: as `walk.find`."""
        if options.arriving:
            capacity = arrived(capacity, options.arriving)
            options = replace(options, arriving=())
        self.tree, self.capacity, self.gang = tree, capacity, gang
        self.masks, self.options, self.table = masks, options, table
        self.visits = 0
        """What was tried so far costs: a visit is a node whose books change."""
        root = root_of(tree, gang, options.unconstrained)
        least, kinds = (
            dict(root.demand),
            (kind for leaf in root.leaves() for kind, _ in leaf.demand),
        )
        self.demand = [(kind, least.get(kind, 0)) for kind in dict.fromkeys(kinds)]
        """(kind, pods): at least so many of each; 0 where a gang may start without that kind."""
        part, self.level = _around(root)
        # ^ of `level` one domain must take the whole gang; -1: there is none
        floor = part.floor
        self.is_plain = (
            floor is not None
            and not floor.workers.slices
            and floor.leader is None
            and len(self.demand) == 1
        )
        """Pods of one kind, anywhere in a domain of `level`."""
        asked = {row for (request, _), _ in self.demand for row in _asked(request)}
        self.rows = tuple(sorted(asked))
        """Resources that the gang requests."""
        self.free: Counts = np.zeros((len(self.rows), len(tree.nodes)), dtype=np.int64)
        """What nodes have left of `rows`. Shapes: (rows, N)."""
        for at, row in enumerate(self.rows):
            if row < capacity.free_now.shape[0]:
                self.free[at] = capacity.free_now[row]
        self.hosts = [self._hosts(shape) for (_, shape), _ in self.demand]
        """Per kind (N,): which nodes may have pods of it."""
        self.now = self.pods(self.free)
        """Per kind (N,): how many pods of it nodes take now."""

    def _hosts(self, shape: Hashable) -> Mask:
        mask = self.masks.get(shape)
        return self.capacity.is_open if mask is None else self.capacity.is_open & mask

    def pods(self, free: Counts) -> list[Counts]:
        """How many pods of each kind nodes take. Shapes: (rows, N) -> each (N,)."""
        return [
            np.where(hosts, self._room(kind, free), 0)
            for (kind, _), hosts in zip(self.demand, self.hosts, strict=True)
        ]

    def _room(self, kind: Kind, free: Counts) -> Counts:
        request, _ = kind
        at = [self.rows.index(row) for row in _asked(request)]
        return pods_per_node(free[at], [request[row] for row in _asked(request)])

    def freed(self, entries: Rows) -> Counts:
        """What goes with entries of the table. Shapes: (E,) -> (rows, E)."""
        changes = self.table.changes
        freed = np.zeros((len(self.rows), entries.size), dtype=np.int64)
        for at, row in enumerate(self.rows):
            if row < changes.freed.shape[0]:
                freed[at] = changes.freed[row, entries]
        return freed

    def without(self, ones: Rows) -> Placement | NoFit:
        """What the search says once these are gone."""
        books = self.table.changes.books(self.capacity, ones.tolist())
        return self.searched(self.tree, books, self.masks, self.options)

    def searched(
        self, tree: Tree, books: Capacity, masks: Mapping[Hashable, Mask], options: Options
    ) -> Placement | NoFit:
        """What the search says; counts what that costs."""
        before = options.visits.total
        try:
            return find(tree, books, self.gang, masks, options)
        finally:
            looked_at = options.visits.total - before
            self.visits += SEARCH + len(tree.nodes) // SEARCH + looked_at // LOOKED_AT


def _asked(request: Sequence[int]) -> list[int]:
    return [row for row, amount in enumerate(request) if amount]


def _around(part: Part) -> tuple[Part, int]:
    """The part that all pods are of, and the level of which one domain must take it; -1: none."""
    if not part.may_spread:
        return _innermost(part), part.levels[-1]
    return _around(part.members[0]) if len(part.members) == 1 else (part, -1)


def _innermost(part: Part) -> Part:
    """The only leaf of a part, if it has no narrower level; else the part."""
    if len(part.members) == 1 and part.members[0].may_spread:
        return _innermost(part.members[0])
    return part


@dataclass(frozen=True, slots=True)
class _Asked:
    """What one pod of a kind takes."""

    amounts: tuple[tuple[int, int], ...]
    """(which of the problem's rows, amount)."""

    def pods(self, free: Sequence[int]) -> int:
        """How many of them have room in so much."""
        least = PODS_MAX
        for at, amount in self.amounts:
            room = free[at] // amount
            least = min(least, room)
        return max(least, 0)


class Domain:
    """One domain: what each of the victims frees there, and the search inside it."""

    def __init__(self, problem: Problem, subtree: Subtree, ones: Sequence[int]) -> None:
        self.problem = problem
        start, end = subtree.slots
        table, changes = problem.table, problem.table.changes
        entries = table.entries(np.array(ones, dtype=np.intp))
        slots = changes.slots[entries]
        is_here = (slots >= start) & (slots < end)
        entries, slots = entries[is_here], slots[is_here]
        self.slots = np.unique(slots)
        """Nodes where something may be freed."""
        self.start = start
        self.free: list[list[int]] = problem.free[:, self.slots].T.tolist()
        """By node of `slots`: what it has left of the problem's rows."""
        self.at: dict[int, list[tuple[int, int, list[int]]]] = {one: [] for one in ones}
        """By victim: (which of `slots`, its bit in the number that says who is gone there, what it
        frees of the problem's rows)."""
        self._freed: list[list[list[int]]] = [[] for _ in self.free]
        """By node of `slots`, by bit: what goes with that victim."""
        freed = problem.freed(entries).T.tolist()
        where = self.slots.searchsorted(slots).tolist()
        for one, node, amounts in zip(changes.owners[entries].tolist(), where, freed, strict=True):
            self.at[one].append((node, 1 << len(self._freed[node]), amounts))
            self._freed[node].append(amounts)
        self.asked = [
            _Asked(tuple((problem.rows.index(row), request[row]) for row in _asked(request)))
            for (request, _), _ in problem.demand
        ]
        self.needed = [needed for _, needed in problem.demand]
        self.hosts: list[list[bool]] = [hosts[self.slots].tolist() for hosts in problem.hosts]
        self.totals = [int(now[start:end].sum()) for now in problem.now]
        """By kind: how many pods the domain takes now."""
        self.known = self._shared()
        """By node of `slots`, by who is gone there: `pods`, as far as it was asked for."""
        self._subtree = subtree
        self._inside: View | None = None  # of a gang that is not plain, once it is searched

    def _shared(self) -> list[dict[int, tuple[int, ...]]]:
        """An empty dict for each node of `slots`; one for all that are alike."""
        by_kind: dict[Hashable, dict[int, tuple[int, ...]]] = {}
        hosts = zip(*self.hosts, strict=True)
        return [
            by_kind.setdefault((tuple(free), tuple(map(tuple, freed)), hosts_of), {})
            for free, freed, hosts_of in zip(self.free, self._freed, hosts, strict=True)
        ]

    def left(self, node: int, gone: int) -> list[int]:
        """What a node of `slots` has left of the problem's rows without those of these bits."""
        left = list(self.free[node])
        for bit, freed in enumerate(self._freed[node]):
            if gone >> bit & 1:
                for at, amount in enumerate(freed):
                    left[at] += amount
        return left

    def pods(self, node: int, gone: int) -> tuple[int, ...]:
        """How many pods of each kind a node of `slots` takes without those of these bits."""
        left = self.left(node, gone)
        pods = self.known[node][gone] = tuple(
            asked.pods(left) if hosts[node] else 0
            for asked, hosts in zip(self.asked, self.hosts, strict=True)
        )
        return pods

    def most_places(self, now: Books, without: Books) -> dict[int, float]:
        """For how many more pods each of the victims makes room at most, of a plain gang.

        On a node a set makes no more places than what goes there is of what one place lacks, of
        any resource, and no more than all of them together; so places of a set are at most the sum
        of its members'.
        """
        asked = self.asked[0]
        gained = [after - before for before, after in zip(now.pods, without.pods, strict=True)]
        lacks = [
            [(at, (pods + 1) * amount - free[at]) for at, amount in asked.amounts]
            for free, pods in zip(self.free, now.pods, strict=True)
        ]
        return {
            one: sum(
                min(
                    gained[node],
                    max((freed[row] / lack for row, lack in lacks[node] if lack > 0), default=0),
                )
                for node, _, freed in at
                if gained[node]
            )
            for one, at in self.at.items()
        }

    def useful(self, without: Books) -> set[int]:
        """Those who free what some node of a plain gang has too little of for all it could take.

        `without`: the domain with all of them gone.
        """
        asked = self.asked[0]
        short = [
            [at for at, amount in asked.amounts if pods * amount > free[at]]
            for free, pods in zip(self.free, without.pods, strict=True)
        ]
        return {
            one
            for one, at in self.at.items()
            if any(freed[row] for node, _, freed in at for row in short[node])
        }

    def is_placed(self, gone: Sequence[int]) -> bool:
        """Whether the search finds a place without those of these bits, by node of `slots`."""
        problem = self.problem
        if problem.is_plain:
            return True
        if self._inside is None:
            view = View(problem.tree, problem.capacity, problem.masks, problem.options)
            self._inside = cut(view, self._subtree).view
        view, capacity = self._inside, self._inside.capacity
        taken = capacity.used + capacity.held
        at = self.slots - self.start
        free = [self.left(node, bits) for node, bits in enumerate(gone)]
        left = np.array(free, dtype=np.int64).reshape(at.size, len(problem.rows))
        for column, row in enumerate(problem.rows):
            if row < taken.shape[0]:
                taken[row, at] = capacity.allocatable[row, at] - left[:, column]
        books = as_if(capacity, taken, capacity.is_open)
        answer = problem.searched(view.tree, books, view.masks, view.options)
        return isinstance(answer, Placement)


class Books:
    """What is left in a domain while some of the victims are gone.

    A change costs as much as there are nodes on which it frees something.
    """

    __slots__ = ("_domain", "_gone", "_pods", "totals")

    def __init__(self, domain: Domain) -> None:
        self._domain = domain
        self._gone = [0] * len(domain.free)
        """By node: the bits of those that are gone."""
        self._pods = [
            known.get(0) or domain.pods(node, 0) for node, known in enumerate(domain.known)
        ]
        self.totals = list(domain.totals)

    @property
    def pods(self) -> list[int]:
        """By node: how many pods of the first kind it takes."""
        return [pods[0] for pods in self._pods]

    def pods_on(self, node: int) -> tuple[int, ...]:
        """How many pods of each kind it takes."""
        return self._pods[node]

    def turn(self, one: int) -> None:
        """Have one that is there go, or one that is gone stay."""
        domain, gone, pods, totals = self._domain, self._gone, self._pods, self.totals
        changes, known = domain.at[one], domain.known
        domain.problem.visits += len(changes)
        for node, bit, _ in changes:
            gone[node] = without = gone[node] ^ bit
            before, now = pods[node], known[node].get(without)
            if now is None:
                now = domain.pods(node, without)
            if now is not before:
                pods[node] = now
                for kind, number in enumerate(now):
                    totals[kind] += number - before[kind]

    def may_fit(self) -> bool:
        """False: the gang does not fit, whatever the search would say."""
        totals, needed = self.totals, self._domain.needed
        return totals[0] >= needed[0] and all(map(ge, totals, needed))

    def fits(self) -> bool:
        """Whether the domain takes the gang."""
        return self.may_fit() and self._domain.is_placed(self._gone)
