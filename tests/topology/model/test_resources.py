from __future__ import annotations

import pytest

from topology.model.resources import AMOUNT_MAX, CPU, PODS, ResourceAxis


def test_pods_and_cpu_are_the_first_two_rows() -> None:
    axis = ResourceAxis()
    assert axis.names == (PODS, CPU)
    assert (axis.row(PODS), axis.row(CPU)) == (0, 1)


def test_an_unknown_resource_gets_the_next_row_and_keeps_it() -> None:
    axis = ResourceAxis()
    rows = [axis.row("memory"), axis.row("nvidia.com/gpu"), axis.row("memory")]
    assert rows == [2, 3, 2]
    assert len(axis) == 4


def test_a_vector_is_in_row_order_with_zeros_between() -> None:
    axis = ResourceAxis()
    axis.row("memory")
    assert axis.vector([("nvidia.com/gpu", 8), (PODS, 1)]) == (1, 0, 0, 8)


def test_amounts_of_a_resource_named_twice_add_up() -> None:
    assert ResourceAxis().vector([(CPU, 250), (PODS, 1), (CPU, 500)]) == (1, 750)


@pytest.mark.parametrize("amount", [AMOUNT_MAX + 1, -AMOUNT_MAX - 1])
def test_an_amount_beyond_two_exbibytes_is_refused_by_name(amount: int) -> None:
    with pytest.raises(ValueError, match="memory"):
        ResourceAxis().vector([("memory", amount)])


def test_a_request_adds_no_row_and_what_has_none_is_one_row_past_the_last() -> None:
    axis = ResourceAxis()
    axis.row("memory")
    asked = ((CPU, 250), ("example.com/b", 3), ("example.com/a", 2), ("memory", 7), (PODS, 1))
    assert axis.request(asked) == (1, 250, 7, 1)
    assert axis.lacking(asked) == "example.com/a"
    assert axis.names == (PODS, CPU, "memory")


def test_a_request_of_nothing_but_what_has_a_row_is_its_vector() -> None:
    axis = ResourceAxis()
    asked = ((CPU, 250), (PODS, 1), ("example.com/none", 0))
    assert axis.request(asked) == (1, 250)
    assert axis.lacking(asked) == ""


def test_two_exbibytes_in_either_direction_are_accepted() -> None:
    axis = ResourceAxis()
    assert axis.vector([("memory", AMOUNT_MAX), (CPU, -AMOUNT_MAX)]) == (0, -AMOUNT_MAX, AMOUNT_MAX)


def test_amounts_that_add_up_to_more_than_two_exbibytes_are_refused() -> None:
    axis = ResourceAxis()
    with pytest.raises(ValueError, match=f"resource memory: {AMOUNT_MAX + 1} is beyond"):
        axis.vector([("memory", AMOUNT_MAX), ("memory", 1)])
    with pytest.raises(ValueError, match="resource memory"):
        axis.request([("memory", AMOUNT_MAX + 1)])


def test_an_axis_says_which_resources_it_has() -> None:
    axis = ResourceAxis()
    assert (CPU in axis, "memory" in axis, len(axis)) == (True, False, 2)
    axis.row("memory")
    assert ("memory" in axis, len(axis)) == (True, 3)


def test_a_resource_named_with_nothing_of_it_is_not_lacking_though_another_is() -> None:
    axis = ResourceAxis()
    asked = (("example.com/a", 0), ("example.com/b", 1), (PODS, 1))
    assert axis.lacking(asked) == "example.com/b"
    assert axis.request(asked) == (1, 0, 1)


def test_what_is_claimed_is_taken_and_not_asked_for() -> None:
    axis = ResourceAxis()
    axis.row("example.com/a")
    axis.claimed = frozenset(("example.com/a", "example.com/b"))
    asked = (("cpu", 5), ("example.com/a", 2), ("example.com/b", 1), ("pods", 1))
    assert axis.request(asked) == (1, 5, 0)
    assert axis.taken(asked) == (1, 5, 2)
    assert axis.lacking(asked) == ""
    assert axis.lacks_row(asked)
    assert axis.claims(asked)
    assert not axis.claims((("cpu", 5), ("example.com/a", 0)))
    assert axis.request((*asked, ("example.com/c", 1))) == (1, 5, 0, 1)
