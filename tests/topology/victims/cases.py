"""Random clusters that are full, a gang that has no place there, and who may go."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from tests.text import BLOCK, RACK
from topology import (
    NODE_LEVEL,
    Capacity,
    Constraint,
    Gang,
    Group,
    NoFit,
    Placement,
    PodSet,
    ResourceAxis,
    Slice,
    Tree,
    build,
    find,
)
from topology.model.changed.capacity import leaving
from topology.victims.choose import VISITS, victims
from topology.victims.table import Table
from topology.victims.victim import NoVictims, Victim, Victims, loss_of

GPUS, CPUS = 4, 16
BUDGETS = ("web", "db")
OWNERS = ("job", "other")


@dataclass(frozen=True)
class Case:
    tree: Tree
    capacity: Capacity
    gang: Gang
    candidates: Sequence[Victim]
    allowed: Mapping[str, int]
    lasts: Mapping[str, int]

    @property
    def table(self) -> Table:
        return Table(self.capacity, self.candidates, self.lasts)

    def answer(self, visits: int = VISITS) -> Victims | NoVictims:
        return victims(
            self.tree, self.capacity, self.gang, {}, self.table, self.allowed, visits=visits
        )

    def without(self, ones: Sequence[int]) -> Placement | NoFit:
        """What the search says once these are gone."""
        books = leaving(self.capacity, self.candidates).books(self.capacity, ones)
        return find(self.tree, books, self.gang, {})

    def is_allowed(self, ones: Sequence[int]) -> bool:
        spent = dict.fromkeys(BUDGETS, 0)
        for one in ones:
            for budget, pods in self.candidates[one].protected:
                spent[budget] += pods
        return all(spent[budget] <= self.allowed.get(budget, 0) for budget in BUDGETS)

    def price(self, ones: Sequence[int]) -> tuple[int, ...]:
        chosen = [self.candidates[one] for one in ones]
        ends, *rest = loss_of(chosen)
        failed = dict.fromkeys(OWNERS, 0)
        for one in chosen:
            for owner, pods in one.counted:
                failed[owner] += pods
        ends += sum(pods > self.lasts.get(owner, pods) for owner, pods in failed.items())
        return (max((one.rank for one in chosen), default=-1), ends, *rest)

    def cheapest_in_domains(self) -> tuple[int, ...] | None:
        """The same for pods of one kind that need one rack, from all sets of those in each rack."""
        (pod_set,) = self.gang.pod_sets()
        request = np.array(pod_set.request)
        best: tuple[int, ...] | None = None
        for rack in range(self.tree.starts[1].size):
            slots = self.tree.slots(1, rack)
            free = self.capacity.free()[: request.size, slots]
            here = [
                one
                for one, victim in enumerate(self.candidates)
                if any(slots.start <= slot < slots.stop for slot, _ in victim.pods)
            ]
            freed = np.zeros((len(here), *free.shape), dtype=np.int64)
            for at, one in enumerate(here):
                for slot, amounts in self.candidates[one].pods:
                    if slots.start <= slot < slots.stop:
                        freed[at, :, slot - slots.start] += amounts
            is_in = (np.arange(2 ** len(here))[:, None] >> np.arange(len(here))) & 1
            left = free + np.tensordot(is_in, freed, axes=1)
            places = (left // request[:, None]).min(axis=1).clip(0).sum(axis=1)
            for number in np.flatnonzero(places >= pod_set.pods).tolist():
                ones = [one for at, one in enumerate(here) if number >> at & 1]
                if self.is_allowed(ones) and (best is None or self.price(ones) < best):
                    best = self.price(ones)
        return best

    def cheapest(self) -> tuple[int, ...] | None:
        """What the least of all sets costs, after every set that costs less was tried."""
        everyone = range(len(self.candidates))
        if not isinstance(self.without(list(everyone)), Placement):
            return None
        sets = [ones for size in range(len(everyone) + 1) for ones in combinations(everyone, size)]
        sets.sort(key=self.price)
        for ones in sets:
            if self.is_allowed(ones) and isinstance(self.without(ones), Placement):
                return self.price(ones)
        return None


def hard_case(chance: random.Random) -> Case:
    """Racks of five to eight nodes, full of pods and gangs of up to six, some across racks."""
    nodes = {
        f"n{rack}{at}": (f"b{rack // 2}", f"r{rack}", f"n{rack}{at}")
        for rack in range(chance.randint(2, 4))
        for at in range(chance.randint(5, 8))
    }
    tree = build((BLOCK, RACK, NODE_LEVEL), nodes, 1)
    capacity = Capacity(ResourceAxis(), tree)
    for slot in range(len(nodes)):
        capacity.set_node(slot, (10, GPUS, CPUS), is_open=True)
    candidates = [
        _in_racks(chance, capacity, f"v{number:02}") for number in range(chance.randint(14, 34))
    ]
    candidates = [one for one in candidates if one.pods]
    constraint = Constraint(required=RACK)
    request = (1, chance.choice((2, 4, 4)), chance.choice((1, 8)))
    gang = Gang(
        "g", Group("g", (PodSet("w", chance.randint(2, 6), request, constraint=constraint),))
    )
    lasts = {"job": 3, "other": chance.randint(0, 2)}
    return Case(tree, capacity, gang, candidates, dict.fromkeys(BUDGETS, 4), lasts)


SHAPES = ("rack", "block", "anywhere", "slices", "parts", "roles")


def wide_case(chance: random.Random, shape: str) -> Case:
    """Larger than hard ones: racks of four to ten full nodes, pods of three resources.

    One or two gangs take all nodes of a rack and some of others, so that more racks than one could
    take the gang that waits without them. `shape`: of that gang, one of `SHAPES`.
    """
    nodes = {
        f"n{rack}{at}": (f"b{rack // 2}", f"r{rack}", f"n{rack}{at}")
        for rack in range(chance.randint(2, 4))
        for at in range(chance.randint(4, 10))
    }
    tree = build((BLOCK, RACK, NODE_LEVEL), nodes, 1)
    axis = ResourceAxis()
    for resource in ("nvidia.com/gpu", "memory"):
        axis.row(resource)
    capacity = Capacity(axis, tree)
    everywhere = range(len(nodes))
    for slot in everywhere:
        capacity.set_node(slot, (20, 64, 8, 64), is_open=True)
    candidates = []
    for number in range(chance.randint(1, 2)):
        rack = _slots_of(tree, chance.randrange(tree.starts[1].size))
        request = (1, 8, chance.choice((4, 8)), 8)
        slots = [slot for slot in {*rack, *chance.sample(everywhere, 2)}]
        taken = tuple((slot, request) for slot in slots if _take(capacity, slot, request))
        if taken:
            candidates.append(Victim(f"wide{number}", taken, is_gang=True))
    for slot in everywhere:
        for _ in range(chance.randint(2, 8)):
            request = (1, chance.randint(1, 16), chance.randint(1, 3), chance.randint(1, 16))
            if _take(capacity, slot, request):
                number = len(candidates)
                candidates.append(_ordinary(chance, f"p{number}", slot, request))
    request = (1, chance.choice((1, 40)), chance.choice((3, 5, 8)), chance.choice((1, 30)))
    gang = Gang("g", _waiting(shape, chance.randint(2, 4), request))
    return Case(tree, capacity, gang, candidates, dict.fromkeys(BUDGETS, 6), {"job": 2, "other": 1})


def _ordinary(chance: random.Random, key: str, slot: int, request: tuple[int, ...]) -> Victim:
    return Victim(
        key,
        ((slot, request),),
        rank=chance.choice((0, 0, 0, 0, 5)),
        lost_work=chance.randint(0, 3),
        protected=((chance.choice(BUDGETS), 1),) if chance.random() < 0.1 else (),
        counted=((chance.choice(OWNERS), 1),) if chance.random() < 0.1 else (),
    )


def _waiting(shape: str, pairs: int, request: tuple[int, ...]) -> Group:
    """A gang of so many pairs of pods."""
    pods, in_rack, in_block = 2 * pairs, Constraint(required=RACK), Constraint(required=BLOCK)
    if shape in ("rack", "block", "anywhere"):
        around = {"rack": in_rack, "block": in_block, "anywhere": Constraint()}[shape]
        return Group("g", (PodSet("w", pods, request, constraint=around),))
    if shape == "slices":
        slices = (Slice(2, RACK),)
        return Group("g", (PodSet("w", pods, request, constraint=in_block, slices=slices),))
    if shape == "parts":
        halves = tuple(
            Group(f"g{part}", (PodSet(f"w{part}", pairs, request),), in_rack) for part in range(2)
        )
        return Group("g", halves, in_block)
    assert shape == "roles"
    return Group("g", (PodSet("w", pods, request), PodSet("x", 2, (1, 8, 0, 4))), in_rack)


def _in_racks(chance: random.Random, capacity: Capacity, key: str) -> Victim:
    tree = capacity.tree
    is_gang = chance.random() < 0.5
    rack = chance.randrange(tree.starts[1].size)
    slots = range(len(tree.nodes)) if chance.random() < 0.4 else _slots_of(tree, rack)
    request = (1, chance.choice((1, 2, 4)), chance.choice((1, 4)))
    chosen = chance.sample(slots, min(chance.randint(2, 6) if is_gang else 1, len(slots)))
    pods = [(slot, request) for slot in chosen if _take(capacity, slot, request)]
    return Victim(
        key,
        tuple(pods),
        rank=chance.choice((0, 0, 0, 5)),
        is_gang=is_gang,
        ends_for_good=chance.random() < 0.1,
        lost_work=len(pods) * chance.randint(0, 3),
        protected=((chance.choice(BUDGETS), len(pods)),) if chance.random() < 0.1 else (),
        counted=((chance.choice(OWNERS), len(pods)),) if chance.random() < 0.2 else (),
    )


def _slots_of(tree: Tree, rack: int) -> range:
    slots = tree.slots(1, rack)
    return range(slots.start, slots.stop)


def random_case(chance: random.Random, *, most: int, is_plain: bool | None = None) -> Case:
    """Up to so many that may go, on two blocks of racks of two to four nodes."""
    nodes = {
        f"n{rack}{at}": (f"b{rack % 2}", f"r{rack}", f"n{rack}{at}")
        for rack in range(chance.randint(1, 4))
        for at in range(chance.randint(2, 4))
    }
    tree = build((BLOCK, RACK, NODE_LEVEL), nodes, 1)
    capacity = Capacity(ResourceAxis(), tree)
    for slot in range(len(nodes)):
        capacity.set_node(slot, (10, GPUS, CPUS), is_open=chance.random() < 0.95)
    numbers = range(chance.randint(most // 2, most))
    candidates = [_victim(chance, capacity, f"v{number:02}") for number in numbers]
    for slot in range(len(nodes)):  # what stays
        if chance.random() < 0.3:
            _take(capacity, slot, (1, 0, chance.randint(1, 6)))
    allowed = {budget: chance.randint(0, 3) for budget in BUDGETS if chance.random() < 0.8}
    lasts = {owner: chance.randint(0, 3) for owner in OWNERS if chance.random() < 0.8}
    is_plain = chance.random() < 0.6 if is_plain is None else is_plain
    return Case(tree, capacity, _gang(chance, is_plain), candidates, allowed, lasts)


def _victim(chance: random.Random, capacity: Capacity, key: str) -> Victim:
    is_gang = chance.random() < 0.4
    slots = range(len(capacity.tree.nodes))
    pods = []
    request = (1, chance.choice((0, 1, 1, 2, 4)), chance.choice((1, 2, 8)))
    for _ in range(chance.randint(2, 4) if is_gang else 1):
        slot = chance.choice(slots)
        if _take(capacity, slot, request):
            pods.append((slot, request))
    protected = ((chance.choice(BUDGETS), len(pods)),) if chance.random() < 0.25 else ()
    return Victim(
        key,
        tuple(pods),
        rank=chance.choice((0, 0, 0, 5, 10)),
        is_gang=is_gang,
        ends_for_good=chance.random() < 0.15,
        lost_work=len(pods) * chance.randint(0, 3),
        protected=protected,
        counted=((chance.choice(OWNERS), len(pods)),) if chance.random() < 0.25 else (),
    )


def _take(capacity: Capacity, slot: int, request: tuple[int, ...]) -> bool:
    free = capacity.allocatable[:, slot] - capacity.used[:, slot]
    if (free[: len(request)] < np.array(request)).any():
        return False
    capacity.use(slot, request)
    return True


def _gang(chance: random.Random, is_plain: bool) -> Gang:
    constraint = chance.choice(
        (
            Constraint(required=RACK),
            Constraint(required=RACK),
            Constraint(required=BLOCK),
            Constraint(preferred=RACK),
            Constraint(),
        )
    )
    request = (1, chance.choice((1, 2, 4)), chance.choice((1, 4)))
    pods = chance.randint(1, 6)
    if is_plain:
        return Gang("g", Group("g", (PodSet("w", pods, request, constraint=constraint),)))
    if chance.random() < 0.5:
        slices = (Slice(2, RACK),)
        around = Constraint() if constraint.required == RACK else constraint
        workers = PodSet("w", pods // 2 * 2 + 2, request, constraint=around, slices=slices)
        return Gang("g", Group("g", (workers,)))
    if chance.random() < 0.5:
        parts = tuple(
            Group(f"g{part}", (PodSet(f"w{part}", pods, request),), Constraint(required=RACK))
            for part in range(2)
        )
        return Gang("g", Group("g", parts, needed=chance.choice((1, None))))
    members = (PodSet("w", pods, request), PodSet("x", chance.randint(1, 2), (1, 0, 8)))
    return Gang("g", Group("g", members, constraint))
