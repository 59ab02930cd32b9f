"""What NoFit says of groups: how many pods of one kind fit where, and beside what they do not."""

from __future__ import annotations

import random
from collections import Counter
from itertools import permutations

import pytest

from tests.text import BLOCK, RACK, cluster, vector
from tests.topology.nested import test_complete_oracle as losses
from tests.topology.nested.test_walk_oracle import Question, random_question
from topology import (
    Capacity,
    Constraint,
    DomainOrder,
    Gang,
    Group,
    Leader,
    NoFit,
    Options,
    PodSet,
    Tree,
    complete,
    find,
)
from topology.fit.fit import OUTSIDE
from topology.fit.view import View
from topology.nested.parts import is_nested, root_of
from topology.nested.state import _with_others
from topology.nested.walk import Walk

IN_RACK, IN_BLOCK = Constraint(required=RACK), Constraint(required=BLOCK)


def pods(
    capacity: Capacity, name: str, number: int, constraint: Constraint | None = None, **amounts: int
) -> PodSet:
    request = vector(capacity.axis, pods=1, **amounts)
    return PodSet(name, number, request, "", constraint or Constraint())


def refused(
    tree: Tree, capacity: Capacity, *members: PodSet | Group, constraint: Constraint | None = None
) -> NoFit:
    root = Group("root", members, constraint or Constraint())
    answer = find(tree, capacity, Gang("ns/gang", root), {})
    assert isinstance(answer, NoFit)
    return answer


def check(answer: NoFit, gang: Gang) -> None:
    assert answer.needed > 0
    assert answer.available >= 0
    names = set(gang.names())
    assert answer.pod_set in names
    assert {*answer.beside, answer.pod_set} <= names
    if answer.available >= answer.needed:
        assert bool(answer.leader) != bool(answer.beside)
        assert answer.pod_set not in answer.beside
        assert f"{answer.needed} of {answer.needed} " in str(answer)
        assert ", but not " in str(answer)
    else:
        assert not answer.beside


@pytest.mark.parametrize("inner", [Constraint(), IN_RACK], ids=["anywhere", "in_a_rack"])
@pytest.mark.parametrize("needed", [1, 2, None])
@pytest.mark.parametrize("outer", [Constraint(), IN_BLOCK], ids=["anywhere", "in_a_block"])
def test_where_there_are_no_nodes_it_is_told_of_groups_any_of_which_would_do(
    outer: Constraint, needed: int | None, inner: Constraint
) -> None:
    """Pods of no kind are needed for certain: of the first group it is told."""
    tree, capacity = cluster("")
    members = tuple(
        Group(f"g{name}", (pods(capacity, name, 2, gpu=gpus),), inner)
        for name, gpus in (("a", 4), ("b", 8), ("c", 1))
    )
    gang = Gang("ns/gang", Group("root", members, outer, needed=needed))
    answer = find(tree, capacity, gang, {})
    assert isinstance(answer, NoFit)
    check(answer, gang)
    assert (answer.available, answer.needed) == (0, 2)


@pytest.mark.parametrize("constraint", [Constraint(), IN_RACK], ids=["anywhere", "in_a_rack"])
@pytest.mark.parametrize("names", ["".join(order) for order in permutations("abc")])
def test_of_several_kinds_that_do_not_fit_the_one_is_told_of_which_the_least_share_does(
    names: str, constraint: Constraint
) -> None:
    tree, capacity = cluster("b1/r1/n1 gpu=5 cpu=3 disk=8")
    members = {
        "a": pods(capacity, "a", 4, cpu=1),
        "b": pods(capacity, "b", 10, gpu=1),
        "c": pods(capacity, "c", 9, disk=1),
    }
    inner = Group("inner", tuple(members[name] for name in names), constraint)
    answer = refused(tree, capacity, inner, constraint=IN_BLOCK)
    assert (answer.pod_set, answer.needed, answer.available) == ("b", 10, 5)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_fewer_fit_than_are_needed_or_it_says_what_does_not_fit_beside_them(seed: int) -> None:
    chance = random.Random(seed)
    seen: Counter[str] = Counter()
    for _ in range(1500):
        asked = random_question(chance)
        answer = find(asked.tree, asked.capacity, asked.gang, asked.masks, asked.options)
        lost = chance.choice([losses.random_loss, losses.random_slice_loss])(chance)
        if lost is not None:
            asked = lost.question
            answer = complete(
                asked.tree, asked.capacity, asked.gang, asked.masks, lost.kept, asked.options
            )
        if isinstance(answer, NoFit):
            check(answer, asked.gang)
            seen["leader"] += bool(answer.leader)
            seen["beside"] += bool(answer.beside)
            seen["too few"] += answer.available < answer.needed
    assert seen["too few"] > 100
    assert seen["leader"] > 5
    assert seen["beside"] > 0


def lacking(asked: Question) -> tuple[int, int] | None:
    """(needed, available) of the kind of which least fits all nodes together; None: all fit."""
    capacity = asked.capacity
    free = capacity.free().T.tolist()
    demand: Counter[tuple[tuple[int, ...], object]] = Counter()
    for one in asked.gang.pod_sets():
        demand[one.request, one.shape] += one.pods
        if one.leader is not None:
            demand[one.leader.request, one.leader.shape] += 1
    worst = None
    for (request, shape), needed in demand.items():
        mask = asked.masks.get(shape)
        available = sum(
            min(
                max(0, left // amount) for left, amount in zip(here, request, strict=True) if amount
            )
            for slot, here in enumerate(free)
            if capacity.is_open[slot] and (mask is None or mask[slot])
        )
        if available < needed and (worst is None or available * worst[0] < worst[1] * needed):
            worst = (needed, available)
    return worst


def needs_all(member: Group | PodSet) -> bool:
    return member.needed is None and all(map(needs_all, getattr(member, "members", ())))


def test_a_gang_that_all_nodes_together_do_not_take_says_how_many_pods_of_one_kind_fit() -> None:
    chance, seen = random.Random(0), 0
    while seen < 25:
        asked = random_question(chance)
        if asked.gang.root.constraint != Constraint() or not is_nested(asked.gang):
            continue
        worst = lacking(asked) if needs_all(asked.gang.root) else None
        if worst is None:
            continue
        answer = find(asked.tree, asked.capacity, asked.gang, asked.masks, asked.options)
        assert isinstance(answer, NoFit)
        assert (answer.level, answer.needed, answer.available) == ("", *worst)
        assert answer.is_proven
        seen += 1


@pytest.mark.parametrize("order", DomainOrder)
def test_members_of_one_kind_that_a_domain_does_not_take_are_counted_together(
    order: DomainOrder,
) -> None:
    """What the first member has taken of the rack is not there for the group after it."""
    tree, capacity = cluster("b1/r1/n1 gpu=4\nb1/r1/n2 gpu=4\nb1/r2/n3 gpu=4")
    first = pods(capacity, "first", 2, gpu=1)
    rest = Group("rest", (pods(capacity, "a", 2, gpu=2), pods(capacity, "b", 2, gpu=2)))
    root = Group("root", (first, rest), IN_RACK)
    answer = find(tree, capacity, Gang("ns/gang", root), {}, Options(order=order))
    assert isinstance(answer, NoFit)
    assert (answer.pod_set, answer.level, answer.needed, answer.available) == ("a", RACK, 4, 3)


def test_kinds_that_fit_one_by_one_and_not_in_one_rack_are_named() -> None:
    tree, capacity = cluster("b1/r1/n1 gpu=4\nb1/r1/n2 gpu=4\nb1/r2/n3 cpu=8\nb1/r2/n4 cpu=8")
    devices, feeder = pods(capacity, "train", 8, gpu=1), pods(capacity, "feed", 3, cpu=4)
    answer = refused(tree, capacity, devices, feeder, constraint=IN_RACK)
    assert (answer.pod_set, answer.needed, answer.available) == ("train", 8, 8)
    assert str(answer) == (
        f"8 of 8 pods fit in one {RACK}, but not beside pod set feed; "
        "excluded nodes: insufficient nvidia.com/gpu 2"
    )


def test_a_place_wider_than_the_groups_is_not_counted() -> None:
    """The group tries rack r1 first; there is more in its block, which its member may use too."""
    tree, capacity = cluster("b1/r1/n1 gpu=2\nb1/r2/n2 gpu=1")
    near = Group(
        "near",
        (pods(capacity, "a", 1, gpu=1), pods(capacity, "b", 1, IN_BLOCK, gpu=2)),
        IN_RACK,
    )
    answer = refused(tree, capacity, near)
    assert (answer.pod_set, answer.level, answer.needed, answer.available) == ("b", RACK, 1, 0)


def test_a_leader_of_a_group_that_has_no_place_is_what_is_counted() -> None:
    tree, capacity = cluster("b1/r1/n1 gpu=4\nb1/r2/n2 gpu=4")
    leader = Leader("boss", vector(capacity.axis, pods=1, gpu=8))
    led = PodSet("w", 2, vector(capacity.axis, pods=1, gpu=1), leader=leader)
    inner = Group("inner", (led, pods(capacity, "other", 1)), IN_BLOCK)
    answer = refused(tree, capacity, inner)
    assert (answer.pod_set, answer.needed, answer.available) == ("boss", 1, 0)
    assert answer.excluded == (("insufficient nvidia.com/gpu", 2),)


def test_pods_that_stay_leave_only_their_own_domain() -> None:
    tree, capacity = cluster("b1/r1/n1 gpu=4\nb1/r1/n2 gpu=1\nb1/r2/n3 gpu=8")
    group = Group(
        "g",
        (
            pods(capacity, "a", 4, gpu=1),
            pods(capacity, "b", 1, gpu=1),
            pods(capacity, "c", 2, gpu=1),
        ),
        IN_RACK,
    )
    capacity.use(0, vector(capacity.axis, pods=1, gpu=1), 3)
    gang = Gang("ns/gang", Group("root", (group,)))
    answer = complete(tree, capacity, gang, {}, {"a": [(0, 3)]})
    assert isinstance(answer, NoFit)
    assert (answer.level, answer.needed, answer.available) == (RACK, 4, 2)
    assert answer.excluded == ((OUTSIDE, 1),)


@pytest.mark.parametrize(
    ("names", "short", "leader", "beside"),
    [
        pytest.param("led", "w", "boss", (), id="a_leader_and_its_workers"),
        pytest.param("led x", "w", "", ("boss", "x"), id="the_first_has_a_leader"),
        pytest.param("x led", "w", "", ("x", "boss"), id="the_last_has_a_leader"),
        pytest.param("x", "x", "", (), id="nothing_else_is_there"),
        pytest.param("x y", "x", "", ("y",), id="of_another_kind"),
        pytest.param("x z", "x", "", ("z",), id="of_the_same_kind"),
        pytest.param("x y z", "x", "", ("y",), id="of_other_kinds_if_there_are"),
    ],
)
def test_beside_whom_pods_of_one_kind_do_not_fit(
    names: str, short: str, leader: str, beside: tuple[str, ...]
) -> None:
    tree, capacity = cluster("b1/r1/n1 gpu=4")
    boss = Leader("boss", vector(capacity.axis, pods=1, gpu=3))
    members = {
        "led": PodSet("w", 2, vector(capacity.axis, pods=1, gpu=1), leader=boss),
        "x": pods(capacity, "x", 1, gpu=2),
        "y": pods(capacity, "y", 1, gpu=4),
        "z": pods(capacity, "z", 1, gpu=2),
    }
    root = Group("root", tuple(members[name] for name in names.split()))
    gang = Gang("ns/gang", root)
    part = root_of(tree, gang, Options().unconstrained)
    units = [leaf.unit for leaf in part.leaves() if leaf.unit is not None]
    [kind] = [(one.request, one.shape) for one in gang.pod_sets() if one.name == short]
    told = _with_others(NoFit(short, "", 1, 1), units, kind)
    assert (told.leader, told.beside) == (leader, beside)


@pytest.mark.parametrize(
    ("tries", "is_proven"),
    [
        pytest.param(1, True, id="for_both"),
        pytest.param(0, False, id="for_the_first_alone"),
    ],
)
def test_that_a_member_has_no_place_is_proven_while_there_are_tries(
    tries: int, is_proven: bool
) -> None:
    """The first member has a place alone, the second has none, though the nodes have the room."""
    tree, capacity = cluster("b1/r1/n1 gpu=17\nb1/r2/n2 gpu=17")
    members = (pods(capacity, "a", 1, gpu=1), pods(capacity, "b", 20, IN_RACK, gpu=1))
    root = root_of(tree, Gang("ns/gang", Group("root", members)), Options().unconstrained)
    walk = Walk(View(tree, capacity, {}, Options(tries=tries)), root)
    walk.failure = NoFit("b", RACK, 20, 17)
    assert walk.no_fit().is_proven is is_proven
