"""/filter and /prioritize over the real engine: what a restart of ours means for others."""

from __future__ import annotations

import pytest

from app.kube.watch.events import Applied, Listed
from app.state.engine import Engine
from app.state.filter_result import Failed, Passed, Rejected
from app.state.settings import EngineSettings
from app.verbs.filter import filter_nodes
from app.verbs.prioritize import score_nodes
from tests.app.state.world import LISTED
from tests.records import BLOCK, RACK, group, node, pod

NODES = tuple(node(f"b1/r1/n{i}") for i in (1, 2, 3))


class Names(tuple):
    """Candidates that are simply there."""

    def names(self):
        return self


CANDIDATES = Names(("n1", "n2", "n3"))


@pytest.fixture
def fresh():
    return Engine(EngineSettings(kinds=LISTED))


@pytest.fixture
def synced(fresh):
    for kind, records in (("Node", NODES), ("Pod", ()), ("Job", ()), ("Topology", ())):
        fresh.apply(Listed(kind, records), 0.0)
    assert fresh.is_synced
    return fresh


def answered(engine, a_pod):
    fed = []
    return filter_nodes(engine, fed.extend, a_pod, CANDIDATES, 1.0)


def test_before_the_lists_are_in_a_stranger_passes(fresh):
    assert answered(fresh, pod("web")) == Passed()


def test_before_the_lists_are_in_a_gang_gets_an_error(fresh):
    answer = answered(fresh, pod("trainer-0", annotations=group("train", 2)))
    assert isinstance(answer, Failed)


def test_another_schedulers_gang_is_a_stranger(fresh):
    member = pod("trainer-0", annotations=group("train", 2), scheduler="default-scheduler")
    assert answered(fresh, member) == Passed()


def test_a_gang_that_is_not_complete_waits(synced):
    answer = answered(synced, pod("trainer-0", annotations=group("train", 2)))
    assert isinstance(answer, Rejected)


def test_before_the_lists_are_in_no_node_is_preferred():
    engine = Engine(EngineSettings(levels=(BLOCK, RACK), kinds=LISTED))
    web, used, empty = pod("web", gpus=1), "n1", "n4"
    engine.apply(Listed("Node", (*NODES, node(f"b1/r2/{empty}"))), 0.0)
    engine.apply(Applied(pod("running", gpus=4, on=used)), 0.0)
    assert score_nodes(engine, web, Names((used, empty)), 1.0) == [0, 0]
    for kind in ("Job", "Topology"):
        engine.apply(Listed(kind, ()), 1.0)
    engine.apply(Listed("Pod", (pod("running", gpus=4, on=used),)), 1.0)
    first, second = score_nodes(engine, web, Names((used, empty)), 1.0)
    assert first > second


def test_scores_are_whole_numbers_up_to_ten(synced):
    scores = score_nodes(synced, pod("web"), CANDIDATES, 1.0)
    assert len(scores) == 3
    assert all(type(score) is int and 0 <= score <= 10 for score in scores)
