from __future__ import annotations

import pytest

from topology.errors import InvalidRequest, InvalidTopology
from topology.model.levels import LEVELS_MAX, NODE_LEVEL, index_of, levels_of


def test_the_node_level_is_appended_when_missing() -> None:
    assert levels_of(["block", "rack"]) == ("block", "rack", NODE_LEVEL)


def test_the_node_level_is_kept_where_it_stands_last() -> None:
    assert levels_of(["rack", NODE_LEVEL]) == ("rack", NODE_LEVEL)


@pytest.mark.parametrize(
    ("keys", "names"),
    [
        pytest.param([], "0 given", id="none"),
        pytest.param([f"l{n}" for n in range(LEVELS_MAX + 1)], "17 given", id="too_many"),
        pytest.param(["rack", "block", "rack"], "rack is named twice", id="twice"),
        pytest.param([NODE_LEVEL, "rack"], NODE_LEVEL, id="node_level_above_another"),
        pytest.param(["block", ""], "an empty key", id="empty"),
    ],
)
def test_a_list_that_is_no_hierarchy_is_refused(keys: list[str], names: str) -> None:
    with pytest.raises(InvalidTopology, match=names):
        levels_of(keys)


def test_sixteen_levels_are_accepted() -> None:
    keys = [f"level-{level}" for level in range(LEVELS_MAX)]
    assert levels_of(keys) == (*keys, NODE_LEVEL)
    assert levels_of(levels_of(keys)) == levels_of(keys)


def test_an_unknown_level_is_refused_with_those_there_are() -> None:
    with pytest.raises(InvalidRequest, match=r"pod set w: level row .* block, rack"):
        index_of(("block", "rack"), "row", "pod set w")


def test_sixteen_levels_above_the_node_level_are_accepted_and_seventeen_are_not() -> None:
    keys = [f"level-{level}" for level in range(LEVELS_MAX)]
    assert levels_of([*keys, NODE_LEVEL]) == (*keys, NODE_LEVEL)
    with pytest.raises(InvalidTopology, match="18 given, a topology has 1 to 16"):
        levels_of([*keys, "one-more", NODE_LEVEL])


def test_the_node_level_alone_is_a_hierarchy() -> None:
    assert levels_of([NODE_LEVEL]) == (NODE_LEVEL,)


def test_a_level_is_found_by_its_key() -> None:
    assert [index_of(("block", "rack"), key, "any") for key in ("block", "rack")] == [0, 1]
