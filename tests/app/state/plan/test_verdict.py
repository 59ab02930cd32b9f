"""What a gang is told beside why it has no place."""

from __future__ import annotations

import msgspec

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
