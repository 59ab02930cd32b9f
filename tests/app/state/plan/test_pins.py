"""Where settled members leave the others to be."""

from __future__ import annotations

import pytest

from app.state.plan.question.pins import slots_of
from tests.text import BLOCK, RACK, cluster
from tests.work import lines_run
from topology import NODE_LEVEL, build

TREE, _ = cluster("b1/r1/n1\nb1/r2/n2\nb1/r2/n3\nb2/r1/n4")


@pytest.mark.parametrize(
    ("path", "nodes"),
    [
        (("b1",), "n1 n2 n3"),
        (("b1", "r2"), "n2 n3"),
        (("b2", "r1", "n4"), "n4"),
        (("b2", "r2"), ""),
        (("a",), ""),
        (("c",), ""),
    ],
)
def test_a_domain_is_found_by_its_path(path, nodes):
    assert list(TREE.nodes[slots_of(TREE, path)]) == nodes.split()


def test_a_domain_is_found_without_a_look_at_all_of_them():
    names = [f"n{index:03}" for index in range(1_000)]
    tree = build((BLOCK, RACK, NODE_LEVEL), {name: ("b", f"r-{name}", name) for name in names}, 1)
    assert lines_run(lambda: slots_of(tree, ("b", "r-n999"))) < 200
