"""What a gang's spec says of itself: what it needs, and where a leaf is in it."""

from __future__ import annotations

import pytest

from app.dialects.declared import DisruptionBudget
from app.dialects.flaw import MOST_SHOWN, Flaw
from app.dialects.spec import GangKey, GangSpec, GroupSpec, LeafSpec


def spec_of(root):
    return GangSpec(GangKey("default", "g", "test"), root, "a test")


def test_a_gang_that_needs_all_of_its_pods_is_not_elastic():
    whole = spec_of(GroupSpec("g", (LeafSpec("a", 2), LeafSpec("b", 1, needed=1)), needed=2))
    assert not whole.is_elastic
    assert spec_of(GroupSpec("g", (LeafSpec("a", 2), LeafSpec("b", 1)), needed=1)).is_elastic
    assert spec_of(GroupSpec("g", (LeafSpec("a", 2, needed=1),))).is_elastic


def test_a_need_outside_of_what_there_is_means_the_nearest_that_there_is():
    assert LeafSpec("a", 2, needed=5).least == 2
    assert LeafSpec("a", 2, needed=-1).least == 0
    assert GroupSpec("g", (LeafSpec("a", 2),), needed=3).least == 1


def test_a_leaf_is_inside_all_groups_around_it():
    inner = GroupSpec("inner", (LeafSpec("a", 1),))
    outer = GroupSpec("outer", (LeafSpec("b", 1), inner))
    root = GroupSpec("root", (outer, LeafSpec("c", 1)))
    spec = spec_of(root)
    assert [leaf.name for leaf in spec.leaves()] == ["b", "a", "c"]
    assert [spec.path_to(name) for name in "abc"] == [(root, outer, inner), (root, outer), (root,)]


def test_a_name_that_no_leaf_has_is_of_the_leaf_without_one_or_of_the_gang():
    inner = GroupSpec("inner", (LeafSpec("", 1),))
    root = GroupSpec("root", (LeafSpec("a", 1), inner))
    assert spec_of(root).path_to("x") == (root, inner)
    whole = GroupSpec("whole", (GroupSpec("inner", (LeafSpec("a", 1),)),))
    assert spec_of(whole).path_to("x") == (whole,)


@pytest.mark.parametrize(
    ("pods", "needed", "least"),
    [(3, None, 3), (3, 3, 3), (3, 2, 2), (3, 1, 1), (3, 0, 0), (3, -1, 0), (3, 4, 3), (0, None, 0)],
)
def test_what_a_leaf_or_a_group_takes_is_between_none_and_all(pods, needed, least):
    assert LeafSpec("a", pods, needed=needed).least == least
    members = tuple(LeafSpec(str(at), 1) for at in range(pods))
    assert GroupSpec("g", members, needed=needed).least == least


def test_a_gang_is_as_deep_as_its_groups_are_inside_one_another():
    inner = GroupSpec("inner", (LeafSpec("a", 1), GroupSpec("innermost", (LeafSpec("b", 2),))))
    assert spec_of(GroupSpec("root", (LeafSpec("c", 1),))).depth == 1
    assert spec_of(GroupSpec("root", (LeafSpec("c", 1), inner))).depth == 3
    assert spec_of(GroupSpec("root", (inner, inner))).pods == 6


NEWLINE = r"\n"  # as it is shown


def shown(value):
    """How a flaw shows a value."""
    text = str(Flaw("labels[x]", "Invalid value", "is odd", value))
    before, after = "metadata.labels[x]: Invalid value: ", ": is odd"
    assert text.startswith(before)
    assert text.endswith(after)
    return text.removeprefix(before).removesuffix(after)


@pytest.mark.parametrize(
    ("value", "told"),
    [
        pytest.param("a", '"a"', id="a_text"),
        pytest.param("", '""', id="an_empty_one"),
        pytest.param('a"b\n', r'"a\"b\n"', id="escaped"),
        pytest.param("\ud800", '"?"', id="half_a_character"),
        pytest.param("x" * MOST_SHOWN, f'"{"x" * MOST_SHOWN}"', id="as_long_as_it_may_be"),
        pytest.param("x" * (MOST_SHOWN + 1), f'"{"x" * MOST_SHOWN}…"', id="longer"),
        pytest.param("\n" * 255, f'"{NEWLINE * 255}"', id="escapes_that_just_fit"),
        pytest.param("\n" * 256, f'"{NEWLINE * 255}\\…"', id="escapes_that_are_cut"),
        pytest.param(
            "\x01" * 99, ('"' + r"\u0001" * 99)[: 2 * MOST_SHOWN] + '…"', id="long_escapes"
        ),
        pytest.param(-7, "-7", id="a_number"),
        pytest.param(10**300, "1" + "0" * (MOST_SHOWN - 1), id="a_long_number"),
    ],
)
def test_of_a_value_as_much_is_shown_as_a_message_can_take(value, told):
    assert shown(value) == told


def test_a_flaw_of_a_field_shows_no_value():
    flaw = Flaw("annotations[x]", "Required value", "must be set")
    assert str(flaw) == "metadata.annotations[x]: Required value: must be set"
    assert flaw.body == "Required value: must be set"


def test_a_budget_of_all_selects_every_pod_and_lets_none_go():
    budget = DisruptionBudget.of_all("team", "team/db")
    assert (budget.namespace, budget.name, budget.allowed) == ("team", "team/db", 0)
    assert budget.selector.matches({})
    assert budget.selector.matches({"app": "db"})
