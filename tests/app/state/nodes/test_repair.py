"""Which nodes have failed: remembered until they come back, and never without end."""

from __future__ import annotations

from app.state.nodes.repair import MOST_FAILED, Failures
from app.state.settings import EngineSettings
from tests.records import node


def test_a_node_that_comes_back_has_failed_once():
    failures = Failures(EngineSettings())
    failures.drop_node("n")
    assert failures.put_node(node("n"), 1.0)
    assert not failures.put_node(node("n"), 2.0)


def test_of_the_nodes_that_have_gone_so_many_are_remembered_the_latest():
    failures = Failures(EngineSettings())
    for number in range(MOST_FAILED + 2):
        failures.drop_node(f"n{number}")
    assert len(failures._failed) == MOST_FAILED
    came_back = [failures.put_node(node(f"n{number}"), 1.0) for number in range(4)]
    assert came_back == [False, False, True, True]
