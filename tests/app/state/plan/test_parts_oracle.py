"""Gangs on several topologies on small clusters, against brute force.

What is found is a place by every rule; what is said to be proven has none in any arrangement of
the pods on the nodes; and what has a place is found, but for very little.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import pytest

from app.state.plan.question.parts import Across, PartRequests, Placed, Unplaced
from app.state.plan.question.request import SearchRequest
from topology import (
    NODE_LEVEL,
    Capacity,
    Constraint,
    DomainOrder,
    Gang,
    Group,
    Options,
    PodSet,
    ResourceAxis,
    build,
)

CASES, SEEDS = 250, 4
OUTER, LEVEL, ANYWHERE = "outer", "level", None
OPTIONS = Options(order=DomainOrder.TOPMOST, floor_first=True, tries=32)


@dataclass(frozen=True)
class Part:
    """Pods of one size, in one domain of their own topology or anywhere."""

    pods: int
    amount: int
    level: str | None


@dataclass(frozen=True)
class Case:
    free: tuple[int, ...]
    """Of each node."""
    domains: tuple[tuple[str, ...], ...]
    """Of each node, in the topology of each part."""
    parts: tuple[Part, ...]
    outer: tuple[str, ...] = ()
    """Of each node: all parts are in one of these, in which the domains of the others are."""

    @classmethod
    def drawn(cls, chance: random.Random) -> Case:
        nodes, parts = chance.randint(2, 8), chance.choice((2, 2, 3))
        return cls(
            tuple(chance.choice((0, 1, 1, 2, 3)) for _ in range(nodes)),
            tuple(tuple(chance.choice("xyz"[: 2 + at % 2]) for at in range(parts))
                  for _ in range(nodes)),
            tuple(
                Part(chance.randint(1, 4), chance.choice((1, 1, 2)),
                     chance.choice((LEVEL, LEVEL, LEVEL, ANYWHERE)))
                for _ in range(parts)
            ),
            chance.choice(((), tuple(chance.choice("pq") for _ in range(nodes)))),
        )  # fmt: skip

    def request(self, at: int) -> SearchRequest:
        part = self.parts[at]
        levels = (NODE_LEVEL,) if part.level is None else (part.level, NODE_LEVEL)
        paths = {
            f"n{node}": (*self.outer[node : node + 1], *(domains[at], f"n{node}")[-len(levels) :])
            for node, domains in enumerate(self.domains)
        }
        levels = (OUTER, *levels) if self.outer else levels
        tree = build(levels, paths, 1)
        capacity = Capacity(ResourceAxis(), tree)
        for slot, name in enumerate(tree.nodes):
            capacity.set_node(slot, (110, self.free[int(name[1:])]), is_open=True)
        pods = PodSet("0", part.pods, (1, part.amount), shape="0")
        around = Constraint(required=OUTER if self.outer else None)
        root = Group("gang", (Group("part", (pods,), Constraint(required=part.level)),), around)
        masks = {"0": np.ones(len(tree.nodes), dtype=np.bool_)}
        return SearchRequest(tree, capacity, Gang("g", root), (masks,), None, {}, OPTIONS)

    def requests(self) -> PartRequests:
        requests = tuple(map(self.request, range(len(self.parts))))
        names = dict.fromkeys(range(len(requests)), frozenset("0"))
        across = (Across(OUTER, names),) if self.outer else ()
        return PartRequests(requests, (True,) * len(requests), across)

    def has_place(self, at: int = 0, free: tuple[int, ...] = ()) -> bool:
        """Whether any arrangement of the parts from this one on is a place for them."""
        free = free or self.free
        if self.outer and at == 0 and free == self.free:
            inside = (self._inside(outer) for outer in sorted(set(self.outer)))
            return any(each.has_place() for each in inside)
        if at == len(self.parts):
            return True
        part = self.parts[at]
        domains = {each[at] for each in self.domains} if part.level else {None}
        return any(
            self.has_place(at + 1, left)
            for domain in sorted(domains, key=str)
            for left in self.arranged(at, domain, free, 0, part.pods)
        )

    def _inside(self, outer: str) -> Case:
        """The nodes of one of the outer domains alone."""
        free = tuple(
            amount if its == outer else 0 for amount, its in zip(self.free, self.outer, strict=True)
        )
        return replace(self, free=free, outer=())

    def arranged(
        self, at: int, domain: str | None, free: tuple[int, ...], node: int, pods: int
    ) -> Iterator[tuple[int, ...]]:
        """What is free after each way of putting so many pods on these nodes."""
        if node == len(free):
            if pods == 0:
                yield free
            return
        amount = self.parts[at].amount
        is_inside = domain is None or self.domains[node][at] == domain
        for here in range(min(free[node] // amount, pods) + 1 if is_inside else 1):
            left = (*free[:node], free[node] - here * amount, *free[node + 1 :])
            yield from self.arranged(at, domain, left, node + 1, pods - here)

    def check(self, placed: Placed) -> None:
        left, outer = list(self.free), set[str]()
        for at, part in enumerate(self.parts):
            tree, (one,) = self.request(at).tree, placed[at].pod_sets
            nodes = {int(tree.nodes[slot][1:]): pods for slot, pods in one.slots}
            assert sum(nodes.values()) == part.pods
            for node, pods in nodes.items():
                left[node] -= pods * part.amount
                outer.update(self.outer[node : node + 1])
            if part.level:
                assert len({self.domains[node][at] for node in nodes}) == 1
        assert min(left) >= 0
        assert len(outer) == bool(self.outer)


@pytest.mark.parametrize("seed", range(SEEDS))
def test_a_place_is_found_where_there_is_one_and_nowhere_else(seed):
    chance, counts = random.Random(seed), Counter[str]()
    for _ in range(CASES):
        case = Case.drawn(chance)
        found = case.requests().answer()
        if not isinstance(found, Unplaced):
            case.check(found)
            counts["found"] += 1
        elif case.has_place():
            assert not found.why.is_proven
            counts["missed"] += 1
        else:
            counts["none"] += 1
            counts["beside"] += not found.is_alone
    assert counts["missed"] <= 1
    assert min(counts["found"], counts["none"]) > CASES // 4
    assert counts["beside"] > CASES // 20


def test_no_more_is_searched_than_is_allowed_and_the_answer_says_so():
    """The first part takes one of the two nodes that the other needs, unless it comes second."""
    free = (1, 1, 1)
    case = Case(free, (("x", "y"), ("x", "y"), ("x", "z")), (Part(1, 1, LEVEL), Part(2, 1, LEVEL)))
    found = case.requests().answer(most=2)
    assert isinstance(found, Unplaced)
    assert (found.part, found.why.is_proven, found.why.is_cut_short) == (1, False, True)
    assert not isinstance(case.requests().answer(), Unplaced)
