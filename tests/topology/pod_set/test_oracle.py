"""Small clusters against brute force: every way to put the pods on nodes is tried.

The search finds a place exactly where there is one, and never at a wider level than needed.
"""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass
from functools import cache
from itertools import combinations_with_replacement
from typing import Any

import numpy as np
import pytest

from tests.text import BLOCK, RACK
from tests.topology.random_clusters import LEVELS, random_cluster
from topology import (
    NODE_LEVEL,
    Capacity,
    Constraint,
    Counts,
    Gang,
    Group,
    Leader,
    NoFit,
    Options,
    Placement,
    PodSet,
    Slice,
    Strategy,
    Tree,
    find,
    invariants,
)

CASES, SEEDS = 1250, 8  # with those of `test_walk_oracle` 20,000
ONE_IN = {
    "required": 4,
    "preferred": 3,
    "balanced": 10,
    "slices": 3,
    "inner slices": 5,
    "smaller last slice": 90,
    "leader": 6,
    "leader of a group": 6,
    "leader and slices": 8,
    "preferred nodes": 8,
    "6 pods": 10,
    "8 nodes": 12,
}
"""At least one question in so many is of that kind."""


@dataclass(frozen=True)
class Question:
    """One random gang on one random cluster."""

    tree: Tree
    capacity: Capacity
    gang: Gang
    masks: dict[Any, Any]
    options: Options

    @property
    def workers(self) -> PodSet:
        return max(self.gang.pod_sets(), key=lambda pod_set: (pod_set.pods, bool(pod_set.slices)))

    @property
    def constraint(self) -> Constraint:
        [member] = self.gang.root.members
        return member.constraint

    @property
    def leader(self) -> Leader | None:
        if self.workers.leader is not None:
            return self.workers.leader
        others = [one for one in self.gang.pod_sets() if one is not self.workers]
        return Leader("l", others[0].request, others[0].shape) if others else None


def random_question(chance: random.Random) -> Question:
    tree, capacity = random_cluster(
        chance, nodes_max=8, pods=[1, 2, 4, 9], amount_max=6, open_share=0.9
    )
    shapes = {
        shape: np.array([chance.random() < 0.85 for _ in tree.nodes], dtype=np.bool_)
        for shape in ("workers", "leader")
    }
    scores = {"workers": np.array([chance.choice([0, 0, 5]) for _ in tree.nodes], dtype=np.int64)}
    options = Options(
        scores=scores if chance.random() < 0.2 else {},
        unconstrained=chance.choice(list(Strategy)),
    )
    return Question(tree, capacity, random_gang(chance), shapes, options)


def random_gang(chance: random.Random) -> Gang:
    pods = chance.randint(1, 6)
    slices = random_slices(chance, pods)
    widest = LEVELS.index(slices[0].level) if slices else 2
    level = LEVELS[chance.randint(0, widest)]
    constraint = chance.choice(
        [
            Constraint(),
            Constraint(required=level),
            Constraint(required=level),
            Constraint(preferred=level),
            Constraint(preferred=level),
            Constraint(preferred=level, balanced=True),
        ]
    )
    workers = PodSet("w", pods, (1, chance.choice([1, 1, 2])), "workers", slices=slices)
    lead_request = (1, chance.randint(0, 4))
    match chance.choice(["alone", "alone", "leader", "group"]):
        case "leader":
            leader = Leader("l", lead_request, "leader")
            member: PodSet | Group = PodSet(
                "w", pods, workers.request, "workers", constraint, slices=slices, leader=leader
            )
        case "group" if pods > 1 or not slices:
            leads = PodSet("l", 1, lead_request, "leader")
            in_order = (workers, leads) if pods == 1 or chance.random() < 0.5 else (leads, workers)
            member = Group("g", in_order, constraint)
        case _:
            smaller = bool(slices) and len(slices) == 1 and not constraint.balanced
            more = 1 if smaller and slices[0].pods > 1 and chance.random() < 0.8 else 0
            member = PodSet(
                "w",
                min(6, pods + more),
                workers.request,
                "workers",
                constraint,
                slices=slices,
                partial_last_slice=bool(more),
            )
    return Gang("ns/gang", Group("root", (member,)))


def random_slices(chance: random.Random, pods: int) -> tuple[Slice, ...]:
    sizes = [size for size in range(1, pods + 1) if pods % size == 0]
    outer = chance.choice(sizes)
    inner = chance.choice([size for size in range(1, outer + 1) if outer % size == 0])
    match chance.randint(0, 5):
        case 0:
            return (Slice(outer, chance.choice(LEVELS)),)
        case 1:
            return (Slice(outer, RACK), Slice(inner, NODE_LEVEL))
        case 2:
            return (Slice(outer, BLOCK), Slice(inner, chance.choice(LEVELS[1:])))
        case _:
            return ()


@cache
def arrangements(nodes: int, pods: int) -> Counts:
    """Every way to put identical pods on nodes, one per row. Shapes: (ways, nodes)."""
    ways = list(combinations_with_replacement(range(nodes), pods))
    table = np.zeros((len(ways), nodes), dtype=np.int64)
    for row, slots in enumerate(ways):
        np.add.at(table[row], list(slots), 1)
    return table


def narrowest(question: Question) -> int | None:
    """The narrowest level at which all pods can be in one domain; -1: in none; None: nowhere."""
    tree, workers, leader = question.tree, question.workers, question.leader
    ways = arrangements(len(tree.nodes), workers.pods)
    ways = ways[are_whole(question, ways)]
    free, best = question.capacity.free(), None
    hosts = question.capacity.is_open & question.masks["workers"]
    leads = question.capacity.is_open & question.masks["leader"]
    for place in [None] if leader is None else leads.nonzero()[0].tolist():
        left = free.copy()
        if place is not None and leader is not None:
            left[:, place] -= leader.request
            if left[:, place].min() < 0:
                continue
        asked = np.array(workers.request)
        fits = np.array([(way[None, :] * asked[:, None] <= left).all(axis=0) for way in ways])
        if not len(ways):
            continue
        fits = (fits | (ways == 0)) & (hosts | (ways == 0))
        for way in ways[fits.all(axis=1)]:
            used = way > 0
            if place is not None:
                used = used.copy()
                used[place] = True
            level = max(
                (at for at in range(3) if len(set(tree.domain_of[at][used].tolist())) == 1),
                default=-1,
            )
            best = level if best is None else max(best, level)
    return best


def are_whole(question: Question, ways: Counts) -> np.ndarray:
    """Which ways cut no slice, but for the last one."""
    whole = np.ones(len(ways), dtype=np.bool_)
    for layer in question.workers.slices:
        starts = question.tree.starts[LEVELS.index(layer.level)]
        rests = np.add.reduceat(ways, starts, axis=1) % layer.pods
        last = question.workers.pods % layer.pods
        whole &= (rests.sum(axis=1) == last) & ((rests > 0).sum(axis=1) == (last > 0))
    return whole


def check(question: Question) -> bool:
    """Holds one answer against brute force; whether there was a place."""
    best = narrowest(question)
    tree, capacity, gang = question.tree, question.capacity, question.gang
    answer = find(tree, capacity, gang, question.masks, question.options)
    required, preferred = question.constraint.required, question.constraint.preferred
    fits = best is not None and (required is None or best >= LEVELS.index(required))
    assert isinstance(answer, Placement) == fits, f"{gang}: {answer}, best level {best}"
    if isinstance(answer, NoFit):
        assert answer.is_proven
        assert str(answer)
        return False
    invariants.check(tree, capacity, gang=gang, placement=answer, masks=question.masks)
    wanted = required or preferred
    if wanted and not question.constraint.balanced and not question.options.scores:
        assert best is not None
        level = max(0, min(LEVELS.index(wanted), best))
        slots = [slot for placed in answer.pod_sets for slot, _ in placed.slots]
        assert answer.pod_sets[0].level == level
        assert (len(set(tree.domain_of[level][slots].tolist())) == 1) == (best >= 0)
    return True


def kinds(question: Question) -> list[str]:
    """What is special about a question."""
    workers, constraint = question.workers, question.constraint
    has_kind = {
        "required": constraint.required is not None,
        "preferred": constraint.preferred is not None,
        "balanced": constraint.balanced,
        "slices": len(workers.slices) > 0,
        "inner slices": len(workers.slices) > 1,
        "smaller last slice": bool(workers.slices) and workers.pods % workers.slices[0].pods > 0,
        "leader": workers.leader is not None,
        "leader of a group": isinstance(question.gang.root.members[0], Group),
        "leader and slices": question.leader is not None and len(workers.slices) > 0,
        "preferred nodes": bool(question.options.scores),
        "6 pods": workers.pods == 6,
        "8 nodes": len(question.tree.nodes) == 8,
    }
    return [kind for kind, has in has_kind.items() if has]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(SEEDS))
def test_a_place_is_found_exactly_where_there_is_one_and_never_wider_than_needed(
    seed: int,
) -> None:
    chance = random.Random(seed)
    questions = [random_question(chance) for _ in range(CASES)]
    assert CASES // 4 < sum(map(check, questions)) < CASES  # both answers were asked for
    drawn = Counter(kind for question in questions for kind in kinds(question))
    for kind, one_in in ONE_IN.items():
        assert drawn[kind] * one_in >= CASES, f"{kind}: {drawn[kind]} of {CASES}"
    assert drawn.keys() == ONE_IN.keys()
