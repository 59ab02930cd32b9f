"""Questions to `topology.packing`, drawn at random or planted, and what is true of any answer."""

from __future__ import annotations

import random
from itertools import product
from typing import NamedTuple

import numpy as np

from topology import Counts, Mask
from topology.packing.pack import NoPacking, Packing

GIB = 2**30


class Question(NamedTuple):
    """What `pack` is asked."""

    free: Counts
    requests: Counts
    may_host: Mask
    pods: tuple[int, ...]


def asked(free: list[list[int]], requests: list[list[int]], *pods: int) -> Question:
    """A question as lists: one of free amounts per node, one of requests per shape."""
    columns = np.array(free, dtype=np.int64).T
    mask = np.ones((len(requests), len(free)), dtype=np.bool_)
    return Question(columns, np.array(requests, dtype=np.int64), mask, pods)


def check(question: Question, answer: Packing | NoPacking) -> None:
    """Whatever the answer is, it must not contradict the question."""
    free, requests, may_host, pods = question
    if isinstance(answer, NoPacking):
        assert all(0 <= fit <= need for fit, need in zip(answer.pods_by_shape, pods, strict=True))
        assert answer.pods_by_shape != pods
        return
    placed = answer.pods_by_shape_and_node
    assert placed.shape == may_host.shape
    assert placed.sum(axis=1).tolist() == list(pods)
    assert (placed >= 0).all()
    assert not placed[~may_host].any()
    # In Python's integers, which cannot overflow.
    used = requests.T.astype(object) @ placed.astype(object)
    assert ((used <= free) | (used == 0)).all()


def fits(question: Question) -> bool:
    """Tries everything each node can hold after everything the nodes before it can."""
    free, requests, may_host, pods = question
    reached = np.zeros([most + 1 for most in pods], dtype=np.bool_)
    reached.flat[0] = True
    held = np.array(list(product(*(range(most + 1) for most in pods))), dtype=object)
    used = held @ requests.astype(object)  # Python's integers, which cannot overflow
    for node in range(free.shape[1]):
        is_held = ((used <= free[:, node]) | (used == 0)).all(axis=1)
        is_held &= ~(held.astype(np.bool_) & ~may_host[:, node]).any(axis=1)
        before = reached.copy()
        for one in held[is_held].tolist():
            after = tuple(slice(number, None) for number in one)
            until = tuple(slice(0, most + 1 - n) for most, n in zip(pods, one, strict=True))
            reached[after] |= before[until]
    return bool(reached.flat[-1])


def small_question(chance: random.Random) -> Question:
    """At most 5 nodes, 3 shapes and 6 pods of each."""
    nodes, shapes, rows = chance.randint(0, 5), chance.randint(1, 3), chance.randint(0, 3)
    unit = chance.choice([1, 1, 3, 2**30, 2**57])
    request = [0, 1, 2, 3, 5] if chance.random() < 0.5 else range(1, 8)
    requests = [[1] + [chance.choice(request) * unit for _ in range(rows)] for _ in range(shapes)]
    if chance.random() < 0.1:
        requests[-1] = requests[0]
    free = [
        [chance.choice([1, 2, 3, 5, 110, 110])]
        + [chance.randint(-1, 14) * unit + chance.choice([0, unit // 2]) for _ in range(rows)]
        for _ in range(nodes)
    ]
    mask = np.array([[chance.random() < 0.9 for _ in range(nodes)] for _ in range(shapes)])
    question = Question(
        np.array(free, dtype=np.int64).reshape(nodes, rows + 1).T,
        np.array(requests, dtype=np.int64),
        mask.reshape(shapes, nodes).astype(np.bool_),
        (0,) * shapes,
    )
    return question._replace(pods=about_what_fits(question, chance))


def about_what_fits(question: Question, chance: random.Random) -> tuple[int, ...]:
    """Fills nodes pod by pod in any order until nothing goes in; then perhaps one pod more."""
    left, pods = question.free.copy(), [0] * len(question.requests)
    waiting = [(shape, node) for shape, node in np.argwhere(question.may_host).tolist()] * 3
    chance.shuffle(waiting)
    for shape, node in waiting:
        request = question.requests[shape]
        if pods[shape] < 6 and ((request <= left[:, node]) | (request == 0)).all():
            left[:, node] -= request
            pods[shape] += 1
    for _ in range(chance.choice([0, 1, 1, 2])):
        pods[chance.randrange(len(pods))] += 1
    return tuple(min(number, 6) for number in pods)


def planted(
    nodes: int, factor: float, seed: int, *, slack: float = 0.0, shapes: int = 3
) -> Question:
    """Nodes that hold about four pods each, with a little to spare, and a share of those pods."""
    chance = np.random.default_rng(seed)
    requests = np.stack(
        [
            np.ones(shapes, dtype=np.int64),
            chance.integers(2, 17, shapes) * 500,
            chance.integers(2, 33, shapes) * GIB,
            chance.integers(0, 3, shapes),
        ],
        axis=1,
    )
    held = chance.multinomial(4, [1 / shapes] * shapes, size=nodes).T
    used = requests.T @ held
    free = used + (used * slack * chance.random(used.shape)).astype(np.int64)
    free[0] = 110
    pods = [share_of(int(planted), factor) for planted in held.sum(axis=1)]
    return Question(free, requests, np.ones((shapes, nodes), dtype=np.bool_), tuple(pods))


def share_of(pods: int, factor: float) -> int:
    """A share of so many pods in whole pods, a share over 1 at least one more."""
    return int(pods * factor) if factor <= 1 else int(-(-pods * factor // 1))
