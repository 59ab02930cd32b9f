from __future__ import annotations

from typing import Any

import pytest

from tests.text import BLOCK, RACK, cluster
from topology import (
    NODE_LEVEL,
    Constraint,
    Gang,
    Group,
    InvalidRequest,
    Leader,
    PodSet,
    Slice,
    Strategy,
)
from topology.fit.unit import Unit, part_of, units_of

TREE, _ = cluster("b1/r1/n1\nb1/r2/n2")
REQUIRED = Constraint(required=RACK)


def pods(name: str, number: int, **fields: Any) -> PodSet:
    return PodSet(name, number, (1,), **fields)


def units(*members: PodSet | Group, constraint: Constraint | None = None) -> list[Unit]:
    root = Group("root", members, constraint or Constraint())
    return units_of(TREE, Gang("ns/gang", root), Strategy.LEAST_FREE)


def names(found: list[Unit]) -> list[tuple[str, str | None]]:
    return [(unit.workers.name, unit.leader.name if unit.leader else None) for unit in found]


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        pytest.param(
            lambda: units(pods("a", 1), pods("b", 2)), [("a", None), ("b", None)], id="root"
        ),
        pytest.param(
            lambda: units(pods("a", 3, leader=Leader("l", (1,)))), [("a", "l")], id="leader"
        ),
        pytest.param(
            lambda: units(pods("a", 1), pods("b", 2), constraint=REQUIRED),
            [("b", "a")],
            id="constrained_root",
        ),
        pytest.param(
            lambda: units(pods("a", 1), Group("g", (pods("b", 2), pods("c", 1)), REQUIRED)),
            [("a", None), ("b", "c")],
            id="group_beside_a_pod_set",
        ),
        pytest.param(
            lambda: units(Group("g", (pods("b", 1), pods("c", 1)))), [("b", "c")], id="two_of_one"
        ),
        pytest.param(
            lambda: units(Group("g", (pods("b", 2), pods("c", 2)))),
            [("b", None), ("c", None)],
            id="unconstrained_group_holds_nothing_together",
        ),
    ],
)
def test_what_is_placed_in_one_go(found: Any, expected: list[tuple[str, str | None]]) -> None:
    assert names(found()) == expected


@pytest.mark.parametrize(
    ("constraint", "slices", "first", "last", "may_spread"),
    [
        pytest.param(REQUIRED, (), 1, 1, False, id="required"),
        pytest.param(Constraint(preferred=RACK), (), 1, 0, True, id="preferred"),
        pytest.param(Constraint(BLOCK, NODE_LEVEL), (), 2, 0, False, id="both"),
        pytest.param(Constraint(), (), 2, 2, True, id="neither"),
        pytest.param(Constraint(), (Slice(2, RACK),), 0, 0, True, id="slices_alone"),
    ],
)
def test_levels_that_are_tried(
    constraint: Constraint, slices: tuple[Slice, ...], first: int, last: int, may_spread: bool
) -> None:
    [unit] = units(pods("a", 4, constraint=constraint, slices=slices))
    assert (unit.first, unit.last, unit.may_spread) == (first, last, may_spread)


def test_an_inner_layer_holds_at_every_level_down_to_its_own() -> None:
    tree, _ = cluster("z1/b1/r1/n1")
    layers = (Slice(8, tree.levels[0]), Slice(4, tree.levels[2]), Slice(2, NODE_LEVEL))
    gang = Gang("ns/gang", Group("root", (pods("a", 8, slices=layers),)))
    [unit] = units_of(tree, gang, Strategy.LEAST_FREE)
    assert (unit.layers.size, unit.layers.level, unit.layers.inner) == (8, 0, (1, 4, 4, 2))


def test_pods_without_a_level_are_packed_as_told_and_all_others_by_best_fit() -> None:
    free, required = units(pods("a", 2), pods("b", 2, constraint=REQUIRED))
    assert (free.strategy, required.strategy) == (Strategy.LEAST_FREE, Strategy.BEST_FIT)


def test_pods_that_do_not_divide_are_refused_or_leave_the_last_slice_smaller() -> None:
    with pytest.raises(InvalidRequest, match="slices of 2 pods must evenly divide pod set count 5"):
        pods("a", 5, slices=(Slice(2, RACK),))
    [unit] = units(pods("a", 5, slices=(Slice(2, RACK),), partial_last_slice=True))
    assert (unit.slices, unit.layers.remainder) == (2, 1)


@pytest.mark.parametrize(
    ("constraint", "slices", "levels"),
    [
        pytest.param(Constraint(), (), (2, 2), id="free_without_slices_any_nodes"),
        pytest.param(Constraint(), (Slice(2, RACK),), (0, 0), id="free_with_slices"),
        pytest.param(REQUIRED, (), (1, 1), id="required"),
    ],
)
def test_a_part_of_a_unit_is_looked_for_at_its_levels(
    constraint: Constraint, slices: tuple[Slice, ...], levels: tuple[int, int]
) -> None:
    [unit] = units(pods("a", 8, constraint=constraint, slices=(Slice(2, RACK),)))
    part = part_of(TREE, unit, 3, slices, None)
    assert (part.first, part.last) == levels
    assert (part.workers.pods, part.workers.slices, part.leader) == (3, slices, None)
    assert part.layers.remainder == (1 if slices else 0)
