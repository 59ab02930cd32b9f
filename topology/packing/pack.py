"""Pods of several shapes onto the same nodes, each by its exact number.

    bounds ─▶ greedy, once ─▶ relaxation ─▶ greedy ─▶ table in a corridor ─▶ whole table ─▶ solver,
     │ no                      │ no                                           │ no     if installed
     └─────────────────────────┴─────────────── proven ───────────────────────┘     else: not found

Cheap attempts come first; each either packs all pods, proves that nothing can, or passes on.
Here a question is reduced to a smaller one that means the same, bounds refute what is plainly
too much, and the attempts are called in turn:

    patterns    the reduced question, what one node takes at once, and the relaxation
    greedy      fills nodes with runs of equal pods
    table       decides, by dynamic programming from node to node
    solver      looks for what the tables are too small for

Reduced means: equal shapes are one, nodes that take no pod are gone, and nodes that take the same
pods are of one *kind*. Bounds count what each shape finds alone, and add up resources.

Proofs are made of integers only, so what is called proven is. All work is counted in array cells,
never in time; equal inputs give equal answers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, combinations, islice

import numpy as np

from topology.model.resources import Counts, Mask
from topology.packing import solver
from topology.packing.greedy import Greedy
from topology.packing.patterns import Problem, Work, patterns_of, pods_alone, relaxed
from topology.packing.table import Table

BUDGET = 300_000_000
"""Array cells touched before an answer is given up; a few tenths of a second."""
_SUBSETS_MAX = 64  # of shapes whose resources are added up
_TABLE_SHAPES_MAX = 12
_CORRIDORS = (1, 4, 16, 64)  # pods of each shape to either side


@dataclass(frozen=True, slots=True, eq=False)
class Packing:
    """A node for every pod."""

    pods_by_shape_and_node: Counts
    """(S, N); each row adds up to the pods asked for."""


@dataclass(frozen=True, slots=True)
class NoPacking:
    """Why there is none."""

    pods_by_shape: tuple[int, ...]
    """How many of each shape went in together, in the attempt that placed most pods."""
    is_proven: bool
    """Nothing fits, however it is placed. False: none was found within the budget."""


def pack(
    free: Counts,
    requests: Counts,
    may_host: Mask,
    pods: Sequence[int],
    budget: int | Work = BUDGET,
) -> Packing | NoPacking:
    """Nodes for so many pods of each shape at once, or why there are none.

    Shapes: free (R, N), requests (S, R), may_host (S, N), pods (S,).
    Units: base units of each resource row, amounts up to AMOUNT_MAX; free may be negative.
    `budget`: array cells it may touch; given as `Work`, what is left of it says what it did.
    Order: the order of nodes decides nothing but which of alike nodes holds what.
    Raises: ValueError if the arrays do not belong together, or ask for less than nothing.
    """
    problem = _problem(free, requests, may_host, pods)
    work = budget if isinstance(budget, Work) else Work(budget)
    if not problem.pods.size:
        return Packing(np.zeros(may_host.shape, dtype=np.int64))
    is_refuted = _is_refuted(problem)
    greedy = Greedy(problem, work)
    placed = greedy.run(is_single=True)
    if placed is None and not is_refuted:
        placed, is_refuted = _by_patterns(problem, greedy, work)
        if placed is None and not is_refuted:
            placed = solver.solve(problem, work)
    if placed is None:
        fitted = problem.spread(greedy.best).sum(axis=1)
        return NoPacking(tuple(fitted.tolist()), is_proven=is_refuted)
    return Packing(problem.spread(placed))


def _by_patterns(problem: Problem, greedy: Greedy, work: Work) -> tuple[Counts | None, bool]:
    """A packing (S, M) if one is found, and whether it is proven that there is none."""
    patterns = patterns_of(problem, work)
    if patterns is None:
        return greedy.run(is_single=False), False
    is_refuted, held = relaxed(problem, patterns, work)
    if is_refuted:
        return None, True
    placed = greedy.run(is_single=False)
    if placed is not None or problem.pods.size > _TABLE_SHAPES_MAX:
        return placed, False
    whole = Table.whole(problem, patterns)
    for width in _CORRIDORS:
        table = whole.corridor(held, width)
        if table.cost * 2 > whole.cost and whole.is_within(work):
            break
        if not table.is_within(work):
            return None, False
        work.spend(table.cost)
        placed = table.solve()
        if placed is not None:
            return placed, False
    if not whole.is_within(work):
        return None, False
    work.spend(whole.cost)
    placed = whole.solve()
    return placed, placed is None


# Reductions


def _problem(free: Counts, requests: Counts, may_host: Mask, pods: Sequence[int]) -> Problem:
    """Brings a question into the form that all attempts work on."""
    shapes, resources = requests.shape
    if free.shape[0] != resources or may_host.shape != (shapes, free.shape[1]):
        raise ValueError(f"free {free.shape}, requests {requests.shape}, mask {may_host.shape}")
    if len(pods) != shapes or min(pods, default=0) < 0 or requests.min(initial=0) < 0:
        raise ValueError(f"pods {tuple(pods)} of {shapes} shapes, all at least 0 like requests")
    alike: dict[tuple[bytes, bytes], list[tuple[int, int]]] = {}
    for shape, number in enumerate(pods):
        if number:
            key = (requests[shape].astype(">i8").tobytes(), may_host[shape].tobytes())
            alike.setdefault(key, []).append((shape, int(number)))
    # The table is smallest when the shape with most pods is its value, which is the last one.
    keys = sorted(alike, key=lambda key: (sum(number for _, number in alike[key]), key[0]))
    asked = tuple(tuple(alike[key]) for key in keys)
    needed = np.array([sum(number for _, number in group) for group in asked], dtype=np.int64)
    rows = [group[0][0] for group in asked]
    one, hosts = requests[rows].astype(np.int64), may_host[rows]
    unit = np.maximum(np.gcd.reduce(one, axis=0), 1)
    one = one // unit
    left = np.maximum(free, 0) // unit[:, None]
    most = np.minimum(pods_alone(left, one), needed[:, None]) * hosts
    left = _binding(left, one, most)
    useful = np.flatnonzero(most.any(axis=0))
    columns = np.concatenate([most[:, useful], left[:, useful]])
    order = np.lexsort(columns[::-1]) if columns.size else np.arange(useful.size)
    columns, slots = columns[:, order], useful[order]
    is_first = np.ones(slots.size, dtype=np.bool_)
    is_first[1:] = (columns[:, 1:] != columns[:, :-1]).any(axis=0)
    first = is_first.nonzero()[0]
    return Problem(
        free=columns[len(rows) :, first],
        requests=one,
        most=columns[: len(rows), first],
        nodes=np.diff(np.append(first, slots.size)),
        pods=needed,
        slots=slots,
        asked=asked,
        shape=may_host.shape,
    )


def _binding(free: Counts, requests: Counts, most: Counts) -> Counts:
    """Free amounts without what no pods can use, so that more nodes are alike.

    Shapes: (R, N), (S, R), (S, N) -> (R, N).
    """
    rest = free.copy()
    for shape, request in enumerate(requests):
        rest -= request[:, None] * most[shape]
        np.maximum(rest, -1, out=rest)  # and no sum of several shapes can leave an int64
    return free - np.maximum(rest, 0)


# Bounds


def _is_refuted(problem: Problem) -> bool:
    """Some shape alone, or some resource of some shapes together, does not suffice."""
    if ((problem.most * problem.nodes).sum(axis=1) < problem.pods).any():
        return True
    shapes = range(problem.pods.size)
    subsets = chain.from_iterable(combinations(shapes, size) for size in reversed(shapes))
    for subset in chain([tuple(shapes)], islice(subsets, _SUBSETS_MAX)):
        hosts = problem.most[list(subset)].any(axis=0)
        for resource, amounts in enumerate(problem.requests.T):
            demand = sum(int(problem.pods[shape]) * int(amounts[shape]) for shape in subset)
            offered = problem.free[resource, hosts]
            # In two halves: one sum of large amounts would leave an int64.
            high = int(((offered >> 32) * problem.nodes[hosts]).sum())
            low = int(((offered & 0xFFFFFFFF) * problem.nodes[hosts]).sum())
            if demand > (high << 32) + low:
                return True
    return False
