"""Who of a set may stay after all: the dearest first, each beside those that stay already.

A set that was found in one domain may hold some whom another domain takes the gang without, and one
whose search was cut short some whom its own does. So each of the set is tried in turn. Sums by
domain rule out most; for pods of one kind they decide, for all other gangs a search does.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from topology.model.answer import Placement
from topology.nested.subtree import whole
from topology.victims.trial import Books, Domain, Problem

THIN_VISITS = 60_000  # of one set, beside those of the search: some 400 searches of 5,000 nodes


def thinned(
    problem: Problem, ones: Sequence[int], visits: int = THIN_VISITS
) -> tuple[list[int], bool]:
    """Those of a set that have to go, and whether that is known of all of them.

    With the set the gang has a place. `visits`: so many more are for this; then the rest go.
    """
    most = problem.visits + visits
    sums, gone = _Sums(problem, ones), list(ones)
    for one in sorted(ones, key=problem.table.loss, reverse=True):
        if problem.visits >= most:
            return gone, False
        sums.turn(one)
        rest = [each for each in gone if each != one]
        if sums.may_fit() and (problem.is_plain or _is_enough(problem, rest)):
            gone = rest
        else:
            sums.turn(one)
    return gone, True


def _is_enough(problem: Problem, gone: Sequence[int]) -> bool:
    return isinstance(problem.without(np.array(gone, dtype=np.intp)), Placement)


class _Sums:
    """Which domains may take the gang while some of a set are gone, as sums over nodes say."""

    def __init__(self, problem: Problem, ones: Sequence[int]) -> None:
        tree, level = problem.tree, problem.level
        self._needed = [needed for _, needed in problem.demand]
        self._domain = Domain(problem, whole(tree), ones)
        self._books = Books(self._domain)
        domain_of = np.zeros(len(tree.nodes), dtype=np.intp)
        if level >= 0:
            domain_of = tree.domain_of[level]
        self._domain_of: list[int] = domain_of[self._domain.slots].tolist()
        """By node where something is freed."""
        self._pods: list[list[int]] = [
            np.bincount(domain_of, now).astype(np.int64).tolist() for now in problem.now
        ]
        """By kind and domain: how many pods it takes."""
        self._taking: set[int] = set()
        for domain in range(len(self._pods[0])):
            self._judge(domain)
        for one in ones:
            self.turn(one)

    def turn(self, one: int) -> None:
        """Have one that is there go, or one that is gone stay."""
        nodes = {node for node, _, _ in self._domain.at[one]}
        self._count(nodes, -1)
        self._books.turn(one)
        self._count(nodes, 1)
        for domain in {self._domain_of[node] for node in nodes}:
            self._judge(domain)

    def _count(self, nodes: Iterable[int], times: int) -> None:
        for node in nodes:
            domain = self._domain_of[node]
            for kind, pods in enumerate(self._books.pods_on(node)):
                self._pods[kind][domain] += times * pods

    def _judge(self, domain: int) -> None:
        if all(
            pods[domain] >= needed for pods, needed in zip(self._pods, self._needed, strict=True)
        ):
            self._taking.add(domain)
        else:
            self._taking.discard(domain)

    def may_fit(self) -> bool:
        """False: no domain takes the gang, whatever the search would say."""
        return bool(self._taking)
