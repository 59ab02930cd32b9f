"""Who of a set may stay after all."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tests.text import BLOCK, RACK
from tests.topology.victims.test_victims import WHOLE, Cluster
from topology import Constraint, Gang, Group, Options, PodSet, Slice
from topology.victims.table import Table
from topology.victims.thin import THIN_VISITS, thinned
from topology.victims.trial import SEARCH, Problem

IN_RACK = Constraint(required=RACK)


def problem_of(cluster: Cluster, *members: PodSet) -> Problem:
    gang = Gang("t", Group("t", members))
    table = Table(cluster.capacity, cluster.candidates)
    return Problem(cluster.tree, cluster.capacity, gang, {}, Options(), table)


def pods(number: int, request: tuple[int, ...] = WHOLE) -> PodSet:
    return PodSet("w", number, request, constraint=IN_RACK)


def pairs(number: int) -> PodSet:
    """Pairs of pods, each in a rack, all in one block: sums do not say where they fit."""
    around = Constraint(required=BLOCK)
    return PodSet("w", 2 * number, WHOLE, constraint=around, slices=(Slice(2, RACK),))


def those_that_go(
    problem: Problem, keys: Sequence[str], visits: int = THIN_VISITS
) -> tuple[set[str], bool]:
    numbers = {victim.key: one for one, victim in enumerate(problem.table.candidates)}
    gone, is_known = thinned(problem, [numbers[key] for key in keys], visits)
    return {problem.table.candidates[one].key for one in gone}, is_known


def across() -> Cluster:
    """A gang has all of one rack and a node of the other, where pods have the rest."""
    cluster = Cluster(3, 3)
    cluster.runs("gang", "n00", "n10", "n11", "n12")
    cluster.runs("a", "n01")
    cluster.runs("b", "n02")
    return cluster


def test_pods_of_one_rack_stay_where_another_is_free_without_the_gang_that_has_to_go() -> None:
    problem = problem_of(across(), pods(3))
    assert those_that_go(problem, ["gang", "a", "b"]) == ({"gang"}, True)


def test_a_set_of_which_each_has_to_go_stays_as_it_is() -> None:
    cluster = Cluster(2)
    cluster.runs("a", "n00")
    cluster.runs("b", "n01")
    assert those_that_go(problem_of(cluster, pods(2)), ["a", "b"]) == ({"a", "b"}, True)


def test_of_two_that_are_each_enough_the_dearer_stays() -> None:
    cluster = Cluster(1, 2)
    cluster.runs("pod", "n00")
    cluster.runs("gang", "n10", "n11")
    for keys in (["pod", "gang"], ["gang", "pod"]):
        assert those_that_go(problem_of(cluster, pods(1)), keys) == ({"pod"}, True)


def test_a_gang_of_one_kind_of_pods_is_not_searched() -> None:
    problem = problem_of(across(), pods(3))
    those_that_go(problem, ["gang", "a", "b"])
    assert problem.visits < SEARCH


def two_blocks() -> Cluster:
    """As `across`, for two pairs in racks of a block."""
    cluster = Cluster(2, 3)
    cluster.runs("a", "n00")
    cluster.runs("b", "n01")
    for at in range(3):
        cluster.runs(f"c{at}", f"n1{at}")
    return cluster


def test_any_other_gang_is_searched_where_sums_say_that_it_may_fit() -> None:
    """Four nodes are enough of five, and three of the second rack serve one pair only."""
    problem = problem_of(two_blocks(), pairs(2))
    gone, is_known = those_that_go(problem, ["a", "b", "c0", "c1", "c2"])
    assert (gone & {"a", "b"}, len(gone), is_known) == ({"a", "b"}, 4, True)
    assert 3 * SEARCH <= problem.visits < 4 * SEARCH, "for a, b and one more; then sums say it"


@pytest.mark.parametrize(("visits", "stay"), [(0, 0), (1, 0), (THIN_VISITS, 1)])
def test_where_the_visits_end_the_rest_go(visits: int, stay: int) -> None:
    problem = problem_of(two_blocks(), pairs(2))
    gone, is_known = those_that_go(problem, ["a", "b", "c0", "c1", "c2"], visits)
    assert (5 - len(gone), is_known) == (stay, bool(stay))
