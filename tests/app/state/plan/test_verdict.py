"""What a gang is told beside why it has no place."""

from __future__ import annotations

import msgspec
import pytest

from app.state.plan.verdict import UnknownTopology
from tests.app.state.world import World
from tests.records import group, node, pod

ONE_NODE = [node("b0/r0/n00", gpus=8)]


def test_the_verdict_of_a_gang_with_resource_claims_says_that_they_are_not_counted():
    claiming = msgspec.structs.replace(pod("g", annotations=group("g", 1)), has_claims=True)
    world = World([], [claiming])
    world.tick()
    assert world.gang().reporting.sentence.endswith("; resource claims of its pods are not counted")


def test_so_does_the_end_of_a_plan_that_kube_scheduler_did_not_use():
    claiming = msgspec.structs.replace(pod("g", annotations=group("g", 1)), has_claims=True)
    world = World(ONE_NODE, [claiming], hold_seconds=60.0)
    world.tick(61.0)
    assert world.gang().reporting.sentence.endswith("; resource claims of its pods are not counted")


@pytest.mark.parametrize(
    ("verdict", "named", "not_named"),
    [
        pytest.param(
            UnknownTopology(("rack", "row"), ("block", "rack")),
            ("not known: row;", "known levels: block, rack"),
            "Topology ",
            id="a_level_that_there_is_not",
        ),
        pytest.param(
            UnknownTopology(("rack", "zone"), ("block", "rack", "zone")),
            ("no topology has these levels together: rack, zone",),
            "not known",
            id="levels_of_two_topologies",
        ),
        pytest.param(
            UnknownTopology(("rack", "row"), (), "fabric"),
            ("Topology fabric does not exist",),
            "rack",
            id="a_topology_that_is_named",
        ),
        pytest.param(
            UnknownTopology(("rack", "row"), ("block", "row"), "fabric"),
            ("Topology fabric has no level rack; its levels: block, row",),
            "does not exist",
            id="a_level_that_the_topology_lacks",
        ),
    ],
)
def test_an_unknown_topology_is_told_by_what_is_known(verdict, named, not_named):
    text = str(verdict)
    assert all(words in text for words in named)
    assert not_named not in text
