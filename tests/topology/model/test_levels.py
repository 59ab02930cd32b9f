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
