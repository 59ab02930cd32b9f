"""Which domains could take the gang, what goes there at least, and in which order they come."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from itertools import chain, combinations

import numpy as np
import pytest

from tests.text import BLOCK, RACK, cluster, vector
from tests.topology.victims.cases import Case, random_case
from topology import Capacity, Constraint, Gang, Group, Options, PodSet
from topology.nested.subtree import Subtree, subtree_of, whole
from topology.victims.outlook import Outlook
from topology.victims.table import Table
from topology.victims.trial import Problem
from topology.victims.victim import Loss, Victim, loss_of

ANYWHERE = Constraint()
IN_RACK, IN_BLOCK = Constraint(required=RACK), Constraint(required=BLOCK)
CASES = 400


def prospects(
    text: str,
    runs: Sequence[str],
    asked: Sequence[str],
    constraint: Constraint = IN_RACK,
) -> list[tuple[str, Loss, str]]:
    """(nodes, what goes at least, who is in the way) of each domain, in order.

    `runs`: a key, the nodes of its pods, what each takes of them, and the work that is lost.
    `asked`: how many pods, and what each requests.
    """
    tree, capacity = cluster(text)
    candidates = [_victim(capacity, line) for line in runs]
    pod_sets = tuple(_pod_set(capacity, line) for line in asked)
    gang = Gang("ns/gang", Group("root", pod_sets, constraint))
    problem = Problem(tree, capacity, gang, {}, Options(), Table(capacity, candidates))
    may_go = [at for at, each in enumerate(candidates) if each.key != "stays"]
    return [
        (
            " ".join(tree.nodes[slice(*each.subtree.slots)]),
            each.bound,
            " ".join(candidates[one].key for one in each.ones),
        )
        for each in Outlook(problem, np.array(may_go, dtype=np.intp)).prospects()
    ]


def _victim(capacity: Capacity, line: str) -> Victim:
    key, *words = line.split()
    amounts = _amounts(words)
    work = int(amounts.pop("work", "0"))
    request = vector(capacity.axis, pods=1, **amounts)
    slots = [capacity.tree.slot_of[word] for word in words if "=" not in word]
    for slot in slots:
        capacity.use(slot, request)
    pods = tuple((slot, request) for slot in slots)
    return Victim(key, pods, is_gang=len(slots) > 1, lost_work=work)


def _pod_set(capacity: Capacity, line: str) -> PodSet:
    pods, *words = line.split()
    request = list(vector(capacity.axis, pods=1, **_amounts(words)))
    while not request[-1]:
        request.pop()  # a request ends with the last resource that is in it
    return PodSet(line, int(pods), tuple(request))


def _amounts(words: Sequence[str]) -> dict[str, str]:
    return dict(word.split("=") for word in words if "=" in word)


TWO_RACKS = "b1/r1/n1 gpu=8\nb1/r1/n2 gpu=8\nb2/r2/n3 gpu=8\nb2/r2/n4 gpu=8"


@pytest.mark.parametrize(
    ("runs", "asked", "found"),
    [
        pytest.param(
            ["a n1 gpu=8", "b n3 gpu=8"],
            ["2 gpu=8"],
            [("n1 n2", Loss(0, 0, 1, 0), "a"), ("n3 n4", Loss(0, 0, 1, 0), "b")],
            id="of_domains_alike_the_first_comes_first",
        ),
        pytest.param(
            ["a n1 gpu=8", "b n2 gpu=8", "c n3 gpu=8"],
            ["2 gpu=8"],
            [("n3 n4", Loss(0, 0, 1, 0), "c"), ("n1 n2", Loss(0, 0, 2, 0), "a b")],
            id="fewer_pods_come_first",
        ),
        pytest.param(
            ["a n1 n2 gpu=8", "b n3 gpu=8", "c n4 gpu=8"],
            ["2 gpu=8"],
            [("n3 n4", Loss(0, 0, 2, 0), "b c"), ("n1 n2", Loss(0, 1, 2, 0), "a")],
            id="no_gang_comes_before_one",
        ),
        pytest.param(
            ["b n1 n1 gpu=4", "c n2 n2 gpu=4", "a n3 n4 gpu=8"],
            ["2 gpu=8"],
            [("n3 n4", Loss(0, 1, 2, 0), "a"), ("n1 n2", Loss(0, 2, 4, 0), "b c")],
            id="one_gang_comes_before_two",
        ),
        pytest.param(
            ["a n1 n2 n3 gpu=8", "b n4 gpu=8"],
            ["2 gpu=8"],
            [("n1 n2", Loss(0, 1, 3, 0), "a"), ("n3 n4", Loss(0, 1, 4, 0), "b a")],
            id="a_gang_counts_with_the_pods_it_has_elsewhere",
        ),
        pytest.param(
            ["a n1 n3 n4 gpu=8", "b n2 gpu=4", "c n2 gpu=4"],
            ["2 gpu=8"],
            [("n3 n4", Loss(0, 1, 3, 0), "a"), ("n1 n2", Loss(0, 1, 5, 0), "b c a")],
            id="pods_that_go_beside_a_gang_are_counted",
        ),
        pytest.param(
            ["a n1 n2 gpu=4", "b n1 gpu=4", "c n2 gpu=4", "d n3 n3 n3 n4 gpu=2"],
            ["2 gpu=8"],
            [("n1 n2", Loss(0, 1, 2, 0), "a b c"), ("n3 n4", Loss(0, 1, 4, 0), "d")],
            id="on_the_nodes_of_a_gang_no_more_than_it_is_sure_to_go",
        ),
        pytest.param(
            ["a n1 gpu=8", "stays n2 gpu=8", "b n3 gpu=8"],
            ["2 gpu=8"],
            [("n3 n4", Loss(0, 0, 1, 0), "b")],
            id="a_domain_that_stays_too_full_is_left_out",
        ),
        pytest.param(
            ["a n1 gpu=8", "stays n2 gpu=8", "stays n3 gpu=1", "b n4 gpu=8"],
            ["2 gpu=8"],
            [],
            id="all_are_left_out",
        ),
        pytest.param(
            ["a n1 gpu=8", "b n3 gpu=6", "stays n3 gpu=2"],
            ["9 gpu=1"],
            [("n3 n4", Loss(0, 0, 1, 0), "b"), ("n1 n2", Loss(0, 0, 1, 0), "a")],
            id="of_those_alike_the_roomier_comes_last",
        ),
        pytest.param(
            ["a n1 gpu=4", "b n1 gpu=2", "c n1 gpu=2", "d n3 gpu=8", "e n4 gpu=8"],
            ["11 gpu=1"],
            [("n1 n2", Loss(0, 0, 1, 0), "a b c"), ("n3 n4", Loss(0, 0, 2, 0), "d e")],
            id="the_largest_pod_of_a_node_makes_the_most_places",
        ),
        pytest.param(
            ["a n1 gpu=4 work=7", "b n1 gpu=4 work=5", "c n2 gpu=8 work=3", "stays n3 gpu=8"],
            ["16 gpu=1"],
            [("n1 n2", Loss(0, 0, 3, 15), "c a b")],
            id="the_least_work_of_so_many_pods_is_lost",
        ),
        pytest.param(
            [
                "a n1 gpu=4 work=7",
                "b n1 gpu=4 work=5",
                "g n1 n2 gpu=0 work=1",
                "c n2 gpu=8 work=9",
                "stays n3 gpu=8",
                "stays n4 gpu=8",
            ],
            ["4 gpu=1"],
            [("n1 n2", Loss(0, 0, 1, 5), "g c a b")],
            id="the_work_of_a_gang_that_need_not_go_is_not_counted",
        ),
        pytest.param(
            [
                "g n1 n2 gpu=4 work=6",
                "h n1 n2 gpu=2 work=8",
                "a n1 gpu=2 work=1",
                "stays n3 gpu=8",
            ],
            ["12 gpu=1"],
            [("n1 n2", Loss(0, 1, 2, 6), "g h a")],
            id="the_least_work_of_so_many_gangs_is_lost",
        ),
    ],
)
def test_prospects_of_racks(
    runs: list[str], asked: list[str], found: list[tuple[str, Loss, str]]
) -> None:
    assert prospects(TWO_RACKS, runs, asked) == found


@pytest.mark.parametrize(
    ("runs", "ones"),
    [
        pytest.param(["g n1 n3 gpu=8", "a n2 gpu=8"], "a g", id="a_pod_before_a_gang"),
        pytest.param(
            ["g n1 n1 gpu=4", "h n2 n3 gpu=8"], "h g", id="a_gang_is_a_part_of_one_on_each_node"
        ),
        pytest.param(
            ["a n1 gpu=4", "b n1 gpu=4", "c n2 gpu=8"], "c a b", id="a_large_pod_before_small_ones"
        ),
        pytest.param(
            ["a n1 gpu=4", "b n2 gpu=8", "c n1 gpu=4"], "b a c", id="node_by_node_then_as_named"
        ),
        pytest.param(["a n1 gpu=0", "b n2 gpu=8"], "b", id="nobody_on_a_node_that_gains_no_place"),
        pytest.param(
            ["a n1 gpu=2", "g n2 n1 gpu=2", "b n2 gpu=6", "stays n1 gpu=4"],
            "g b a",
            id="each_once_where_it_comes_first",
        ),
        pytest.param(
            ["a n1 gpu=1", "b n1 gpu=7", "c n2 gpu=4", "stays n2 gpu=4", "stays n3 gpu=8"],
            "a b c",
            id="by_what_goes_for_each_place",
        ),
    ],
)
def test_those_that_look_cheapest_for_the_room_they_give_come_first(
    runs: list[str], ones: str
) -> None:
    [found] = [each for each in prospects(TWO_RACKS, runs, ["9 gpu=1"]) if each[0] == "n1 n2"]
    assert found[2] == ones


@pytest.mark.parametrize(
    ("constraint", "found"),
    [
        pytest.param(
            ANYWHERE, [("n1 n2 n3 n4", Loss(0, 0, 1, 1), "a b c")], id="anywhere_in_the_cluster"
        ),
        pytest.param(
            IN_BLOCK,
            [("n4", Loss(0, 0, 1, 4), "c"), ("n1 n2 n3", Loss(0, 0, 1, 1), "a b")],
            id="in_one_of_the_widest_domains",
        ),
        pytest.param(
            IN_RACK,
            [
                ("n1", Loss(0, 0, 1, 1), "a"),
                ("n2 n3", Loss(0, 0, 1, 2), "b"),
                ("n4", Loss(0, 0, 1, 4), "c"),
            ],
            id="in_one_of_the_narrower_ones",
        ),
    ],
)
def test_each_domain_of_the_level_that_takes_the_whole_gang_is_looked_at(
    constraint: Constraint, found: list[tuple[str, Loss, str]]
) -> None:
    nodes = "b1/r1/n1 gpu=8\nb1/r2/n2 gpu=8\nb1/r2/n3 gpu=0\nb2/r3/n4 gpu=8"
    runs = ["a n1 gpu=8 work=1", "b n2 gpu=8 work=2", "c n4 gpu=8 work=4"]
    assert prospects(nodes, runs, ["8 gpu=1"], constraint) == found


@pytest.mark.parametrize(
    ("constraint", "bounds"),
    [
        pytest.param(ANYWHERE, [Loss(0, 1, 2, 3)], id="anywhere"),
        pytest.param(IN_BLOCK, [Loss(0, 1, 2, 9), Loss(0, 2, 5, 7)], id="in_a_block"),
    ],
)
def test_only_gangs_inside_a_domain_make_room_there(
    constraint: Constraint, bounds: list[Loss]
) -> None:
    nodes = "b1/r1/n1 gpu=10\nb1/r1/n2 gpu=4\nb2/r2/n3 gpu=8\nb2/r2/n4 gpu=8"
    runs = ["g n1 n1 gpu=4 work=3", "h n2 n2 n2 gpu=1 work=4", "k n3 n4 gpu=5 work=9"]
    assert [bound for _, bound, _ in prospects(nodes, runs, ["12 gpu=1"], constraint)] == bounds


@pytest.mark.parametrize(
    ("runs", "asked", "bound"),
    [
        pytest.param(["a n1 gpu=8 cpu=1", "b n1 gpu=0 cpu=7"], ["1 gpu=8 cpu=8"], 2, id="two"),
        pytest.param(["a n1 gpu=2", "b n1 gpu=2", "c n1 gpu=4"], ["2 gpu=4"], 2, id="two_of_them"),
        pytest.param(["a n1 gpu=1", "b n1 gpu=1", "c n1 gpu=1"], ["2 gpu=4"], 3, id="all_three"),
        pytest.param(["a n1 gpu=1", "b n1 gpu=1", "c n1 gpu=1"], ["7 gpu=1"], 2, id="as_many"),
        pytest.param(
            ["a n1 gpu=1 cpu=6", "b n1 gpu=1 cpu=1"], ["1 gpu=8", "1 gpu=0 cpu=3"], 2, id="kinds"
        ),
        pytest.param(["a n1 gpu=1", "b n1 gpu=1"], ["1 gpu=8", "2 gpu=1"], 2, id="either_kind"),
        pytest.param(["a n1 gpu=0 cpu=8", "b n1 gpu=8"], ["8 gpu=1"], 1, id="what_is_lacking"),
    ],
)
def test_at_least_so_many_pods_go_from_one_node(
    runs: list[str], asked: list[str], bound: int
) -> None:
    found = prospects("b1/r1/n1 gpu=8 cpu=8", runs, asked)
    assert [each for _, each, _ in found] == [Loss(0, 0, bound, 0)]


def test_the_cheapest_places_of_a_domain_are_counted_first() -> None:
    """A place on n1 takes two pods, one on n2 one; of n3 nothing is gained."""
    nodes = "b1/r1/n1 gpu=8\nb1/r1/n2 gpu=8\nb1/r1/n3 gpu=4"
    runs = [*(f"s{at} n1 gpu=4" for at in range(2)), "a n2 gpu=8", "z n3 gpu=0"]
    bounds = [prospects(nodes, runs, [f"{pods} gpu=8"]) for pods in (1, 2, 3)]
    assert [[bound for _, bound, _ in found] for found in bounds] == [
        [Loss(0, 0, 1, 0)],
        [Loss(0, 0, 3, 0)],
        [],
    ]


@pytest.mark.parametrize(
    ("pods", "used", "bound"),
    [
        pytest.param(3, 8, 2, id="two_places_each"),
        pytest.param(2, 8, 1, id="one_node_is_enough"),
        pytest.param(4, 7, 2, id="one_place_more_on_each"),
    ],
)
def test_a_pod_makes_no_more_places_than_its_node_gains(pods: int, used: int, bound: int) -> None:
    """The nodes have CPUs for two pods, whatever goes."""
    nodes = "b1/r1/n1 gpu=8 cpu=2\nb1/r1/n2 gpu=8 cpu=2"
    found = prospects(nodes, [f"a n1 gpu={used}", f"b n2 gpu={used}"], [f"{pods} gpu=1 cpu=1"])
    assert [each for _, each, _ in found] == [Loss(0, 0, bound, 0)]


def test_the_only_place_of_a_node_takes_a_pod() -> None:
    nodes = "b1/r1/n1 gpu=8 cpu=1\nb1/r1/n2 gpu=8 cpu=1"
    found = prospects(nodes, ["a n1 gpu=8", "b n2 gpu=8"], ["2 gpu=1 cpu=1"])
    assert [each for _, each, _ in found] == [Loss(0, 0, 2, 0)]


def test_places_beyond_the_missing_ones_cost_nothing() -> None:
    runs = [f"a{at} n{at} gpu=8" for at in range(1, 5)]
    found = prospects(TWO_RACKS, runs, ["2 gpu=8"], ANYWHERE)
    assert [each for _, each, _ in found] == [Loss(0, 0, 2, 0)]


def test_each_of_the_widest_domains_lacks_places_of_its_own() -> None:
    runs = ["a n1 gpu=8", "b n3 gpu=8", "c n4 gpu=8"]
    assert prospects(TWO_RACKS, runs, ["2 gpu=8"], IN_BLOCK) == [
        ("n1 n2", Loss(0, 0, 1, 0), "a"),
        ("n3 n4", Loss(0, 0, 2, 0), "b c"),
    ]


def test_of_several_kinds_places_count_by_how_many_are_needed() -> None:
    """All of the one pod that needs CPUs twice over, and the four that need GPUs once."""
    nodes = "b1/r1/n1 gpu=4 cpu=0\nb1/r1/n2 gpu=0 cpu=2"
    found = prospects(nodes, ["a n1 gpu=4", "b n2 cpu=2"], ["4 gpu=1", "1 cpu=1"])
    assert [ones for _, _, ones in found] == ["b a"]


def test_nodes_that_are_closed_make_no_places() -> None:
    nodes = "b1/r1/n1 gpu=8 closed\nb1/r1/n2 gpu=8\nb2/r2/n3 gpu=8 closed"
    runs = ["a n1 gpu=8", "b n2 gpu=8", "c n3 gpu=8"]
    assert prospects(nodes, runs, ["8 gpu=1"]) == [("n1 n2", Loss(0, 0, 1, 0), "b")]


# Against every set of those in a domain


def _sets(ones: Sequence[int]) -> Iterator[tuple[int, ...]]:
    return chain.from_iterable(combinations(ones, size) for size in range(1, len(ones) + 1))


def _subtrees(problem: Problem) -> list[Subtree]:
    tree, level = problem.tree, problem.level
    if level < 0:
        return [whole(tree)]
    return [subtree_of(tree, level, domain) for domain in range(tree.starts[level].size)]


def _least(problem: Problem, case: Case, subtree: Subtree) -> Loss | None:
    """The least loss with which sums say that the gang fits, if one goes at all."""
    inside = slice(*subtree.slots)
    losses = []
    for ones in _sets(range(len(case.candidates))):
        entries = problem.table.entries(np.array(ones, dtype=np.intp))
        free = problem.free.copy()
        np.add.at(free.T, problem.table.changes.slots[entries], problem.freed(entries).T)
        pods = [counts[inside].sum() for counts in problem.pods(free)]
        if all(have >= needed for have, (_, needed) in zip(pods, problem.demand, strict=True)):
            losses.append(loss_of(case.candidates[one] for one in ones)._replace(ended_for_good=0))
    return min(losses, default=None)


@pytest.mark.slow
def test_no_set_is_less_than_the_bound_and_every_domain_with_one_is_named() -> None:
    chance = random.Random(1)
    tight = domains = 0
    for _ in range(CASES):
        case = random_case(chance, most=6)
        problem = Problem(case.tree, case.capacity, case.gang, {}, Options(), case.table)
        everyone = np.arange(len(case.candidates))
        if not everyone.size:
            continue
        found = list(Outlook(problem, everyone).prospects())
        assert [each.bound[:3] for each in found] == sorted(each.bound[:3] for each in found)
        named = {each.subtree.slots: each.bound for each in found}
        for subtree in _subtrees(problem):
            least = _least(problem, case, subtree)
            bound = named.pop(subtree.slots, None)
            assert (least is None) == (bound is None)
            takes_it = all(
                now[slice(*subtree.slots)].sum() >= needed
                for now, (_, needed) in zip(problem.now, problem.demand, strict=True)
            )
            if least is not None and bound is not None and not takes_it:
                assert bound <= least
                tight += bound[:3] == least[:3]
                domains += 1
        assert not named
    assert tight / domains > 0.5
