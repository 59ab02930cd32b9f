"""How full a group's members leave the domains they choose, against placing them one by one."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from tests.text import BLOCK, GPU, RACK, cluster
from tests.topology.nested.test_walk import IN_BLOCK, IN_RACK, pods, search
from topology import Capacity, Constraint, DomainOrder, Group, Options, PodSet, Strategy, Tree
from topology.fit.view import View
from topology.model.request import Gang
from topology.nested.estimates.headroom import Headroom
from topology.nested.estimates.scores import MOST_SCORED, Scores, choices
from topology.nested.parts import Part, root_of

MOST_USED = Options(order=DomainOrder.MOST_USED)


def part_of(tree: Tree, group: Group) -> Part:
    return root_of(tree, Gang("ns/gang", Group("root", (group,))), Strategy.LEAST_FREE).members[0]


def scores(tree: Tree, capacity: Capacity, group: Group, *, is_whole: bool = True) -> list[float]:
    """Of each block."""
    part, view = part_of(tree, group), View(tree, capacity, {}, MOST_USED)
    kinds = [
        (one.request, one.shape)
        for leaf in part.leaves()
        if leaf.unit is not None
        for one in leaf.unit.pod_sets
    ]
    made = Scores(view, Headroom(view, kinds), tree.levels.index(BLOCK))
    return made.of(choices(part, made.level, is_whole=is_whole)).tolist()


def in_racks(capacity: Capacity, *numbers: int) -> tuple[Group, ...]:
    return tuple(
        Group(f"g{at}", (pods(capacity, f"p{at}", number),), IN_RACK)
        for at, number in enumerate(numbers)
    )


def use(tree: Tree, capacity: Capacity, **gpus: int) -> None:
    for name, used in gpus.items():
        request = pods(capacity, "one", 1).request
        capacity.use(tree.slot_of[name], tuple(used * amount for amount in request))


def test_a_block_is_as_good_as_its_racks_are_full_with_the_members() -> None:
    """In b1 the two fill r1 and r2, and r3 stays free; b2 is fuller as a whole."""
    tree, capacity = cluster(
        "b1/r1/n1 gpu=4\nb1/r2/n2 gpu=4\nb1/r3/n3 gpu=3\n"
        "b2/r4/n4 gpu=4\nb2/r5/n5 gpu=4\nb2/r6/n6 gpu=4"
    )
    use(tree, capacity, n1=2, n2=2, n4=1, n5=1, n6=4)
    group = Group("job", in_racks(capacity, 2, 2), IN_BLOCK)
    assert scores(tree, capacity, group) == [1.0, 0.75]
    placed = search(tree, capacity, Group("root", (group,)), MOST_USED)
    assert placed == {"p0": {"n1": 2}, "p1": {"n2": 2}}


def test_members_that_share_a_rack_are_counted_one_after_the_other() -> None:
    tree, capacity = cluster("b1/r1/n1 gpu=4\nb2/r2/n2 gpu=8")
    group = Group("job", in_racks(capacity, 2, 2), IN_BLOCK)
    assert scores(tree, capacity, group) == [(0.5 + 1.0) / 2, (0.25 + 0.5) / 2]


def test_a_member_that_prefers_a_rack_counts_by_the_block_where_no_rack_takes_it() -> None:
    tree, capacity = cluster("b1/r1/n1 gpu=1\nb1/r2/n2 gpu=1\nb2/r3/n3 gpu=4")
    near = Constraint(required=BLOCK, preferred=RACK)
    one = Group("g", (pods(capacity, "p", 2),), near)
    other = Group("h", (pods(capacity, "q", 1),), IN_RACK)
    assert scores(tree, capacity, Group("job", (one,), IN_BLOCK)) == [1.0, 0.5]
    assert scores(tree, capacity, Group("job", (other, one), IN_BLOCK)) == [
        1.0 / 2,  # no two are left for the second
        (0.25 + 0.75) / 2,
    ]


def test_members_without_a_level_count_together_and_by_the_whole_block() -> None:
    tree, capacity = cluster("b1/r1/n1 gpu=4\nb1/r2/n2 gpu=4\nb2/r3/n3 gpu=16")
    loose = (pods(capacity, "a", 1), pods(capacity, "b", 1))
    group = Group("job", (*loose, *in_racks(capacity, 2)), IN_BLOCK)
    # In which racks they will be is not known: a rack is as full as without them.
    assert scores(tree, capacity, group) == [(2 / 8 + 2 / 4) / 2, (2 / 16 + 2 / 16) / 2]


def test_what_is_not_needed_counts_only_while_all_are_tried() -> None:
    tree, capacity = cluster("b1/r1/n1 gpu=4\nb2/r2/n2 gpu=3\nb2/r3/n3 gpu=3")
    policy = Group("policy", in_racks(capacity, 2, 2), needed=1)
    group = Group("job", (policy,), IN_BLOCK)
    assert scores(tree, capacity, group) == [0.75, pytest.approx(2 / 3)]
    assert scores(tree, capacity, group, is_whole=False) == [0.5, pytest.approx(2 / 3)]


@pytest.mark.parametrize("seed", range(30))
def test_the_score_of_a_block_is_that_of_placing_its_members_one_by_one(seed: int) -> None:
    """Of nodes that are a rack each, where nothing is estimated; an equal one is the first."""
    rng = Random(seed)
    nodes = [(f"n{at}", at % 3, rng.randint(1, 8)) for at in range(9)]
    tree, capacity = cluster("\n".join(f"b{b}/r{n}/{n} gpu={gpu}" for n, b, gpu in nodes))
    use(tree, capacity, **{name: rng.randint(0, gpu) for name, _, gpu in nodes})
    members = in_racks(capacity, *(rng.randint(1, 4) for _ in range(4)))
    gpus = capacity.axis.row(GPU)
    found = scores(tree, capacity, Group("job", members, IN_BLOCK))
    for block, score in enumerate(found):
        slots = tree.slots(tree.levels.index(BLOCK), block)
        free = capacity.free_now[gpus][slots].copy()
        has = capacity.allocatable[gpus][slots]
        total = 0.0
        for member in members:
            assert isinstance(member.members[0], PodSet)
            number = member.members[0].pods
            shares = np.where(free >= number, (has - free + number) / has, -1.0)
            if shares.max() >= 0:
                total += shares.max()
                free[shares.argmax()] -= number
        assert score == pytest.approx(total / len(members))


def test_of_many_members_the_first_are_looked_at() -> None:
    """However many sub-groups a tenant declares, ordering the domains costs no more."""
    tree, capacity = cluster("b1/r1/n1 gpu=4\nb2/r2/n2 gpu=8")
    costs = []
    for number in (MOST_SCORED, 20 * MOST_SCORED):
        group = Group("job", in_racks(capacity, *[1] * number), IN_BLOCK)
        part, view = part_of(tree, group), View(tree, capacity, {}, Options())
        kinds = [(one.request, one.shape) for one in [pods(capacity, "p", 1)]]
        headroom, before = Headroom(view, kinds), view.options.visits.total
        Scores(view, headroom, 0).of(choices(part, 0, is_whole=True))
        costs.append(view.options.visits.total - before)
    assert costs[0] == costs[1]
