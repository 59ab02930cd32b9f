"""Domains by path: equal values under two parents are two domains, and gaps make no wrong one."""

from __future__ import annotations

import pytest

from app.dialects.volcano.from_labels.domains import domains_of, placed_from_widest
from app.errors import DecodeError
from tests.app.dialects.volcano.from_labels.labelled import BLOCK, LEVELS, RACK, nodes_of


def found(text: str) -> dict[tuple[int, str], tuple[str, ...]]:
    """(tier, path) -> the nodes that are direct members."""
    placed = placed_from_widest(nodes_of(text), LEVELS)
    return {
        (each.tier, "/".join(value for _, value in each.path)): each.nodes
        for each in domains_of([(placed, LEVELS)])
    }


def test_one_rack_name_in_two_blocks_is_two_domains() -> None:
    domains = found("n1 b1/r1\nn2 b2/r1\nn3 b1/r1")
    assert domains == {
        (1, "b1/r1"): ("n1", "n3"),
        (1, "b2/r1"): ("n2",),
        (2, "b1"): (),
        (2, "b2"): (),
    }


def test_a_domain_names_those_of_the_next_tier_inside_it() -> None:
    placed = placed_from_widest(nodes_of("n1 b1/r2\nn2 b1/r1\nn3 b2/r1"), LEVELS)
    inner = {each.path: each.inner for each in domains_of([(placed, LEVELS)])}
    b1, b2 = (BLOCK, "b1"), (BLOCK, "b2")
    assert inner[(b1,)] == ((b1, (RACK, "r1")), (b1, (RACK, "r2")))
    assert inner[(b2,)] == ((b2, (RACK, "r1")),)


def test_a_node_without_the_narrow_label_is_in_the_wide_domain_alone() -> None:
    assert found("n1 b1/r1\nn2 b1/-") == {(1, "b1/r1"): ("n1",), (2, "b1"): ("n2",)}


def test_a_node_without_the_wide_label_is_in_no_domain() -> None:
    assert found("n1 b1/r1\nn2 -/r1") == {(1, "b1/r1"): ("n1",), (2, "b1"): ()}


def test_nodes_are_named_by_the_first_label_that_they_lack() -> None:
    nodes = nodes_of("n4 -/-\nn1 b1/r1\nn3 b1/-\nn2 -/r1")
    assert placed_from_widest(nodes, LEVELS).lacking == {BLOCK: ("n2", "n4"), RACK: ("n3",)}


def test_an_empty_value_counts_as_no_label() -> None:
    placed = placed_from_widest({"n1": {BLOCK: "b1", RACK: ""}}, LEVELS)
    assert placed.lacking == {RACK: ("n1",)}
    assert placed.paths == {"n1": ((BLOCK, "b1"),)}


@pytest.mark.parametrize("value", ["a b", "-a", "a" * 64, "a/b", "ä"])
def test_what_is_no_label_value_is_named_with_its_node(value: str) -> None:
    with pytest.raises(DecodeError) as raised:
        placed_from_widest({"n1": {BLOCK: value}}, LEVELS)
    assert all(part in str(raised.value) for part in ("Node n1", BLOCK, value))
