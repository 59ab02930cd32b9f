"""A vocabulary chooses among several places that all fit."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from app.dialects.kueue.dialect import KueueDialect
from app.dialects.registry import Dialects
from app.dialects.spec import SearchPolicy, TierPacking
from app.state.engine import Engine
from tests.app.state.world import World, members, racks
from tests.records import GPU, RACK, node, pod
from topology.model.request import DomainOrder, Strategy


class WithPolicy(KueueDialect):
    """Kueue's words, with another policy."""

    def __init__(self, policy: SearchPolicy) -> None:
        super().__init__()
        self._policy = policy

    def configured(self, options):
        return self

    def spec(self, *asked):
        spec = super().spec(*asked)
        return spec and replace(spec, policy=self._policy)


def world_with(policy: SearchPolicy, *nodes, pods, **settings) -> World:
    class Planned(World):
        def built(self) -> Engine:
            return Engine(self.settings, dialects=Dialects((WithPolicy(policy),)))

    return Planned(nodes, pods, **settings)


@pytest.mark.parametrize(
    ("strategy", "pods"),
    [
        pytest.param(Strategy.LEAST_FREE, {"n00": 1, "n01": 1, "n02": 3}, id="smallest_holes"),
        pytest.param(Strategy.BEST_FIT, {"n00": 1, "n02": 4}, id="fewest_nodes"),
    ],
)
def test_pods_without_a_level_fill_the_domains_that_the_policy_says(strategy, pods):
    nodes = [node(f"b0/r0/n0{at}", gpus=gpus) for at, gpus in enumerate((1, 1, 4))]
    policy = SearchPolicy(unconstrained=strategy)
    world = world_with(policy, *nodes, pods=members("g", 5, None, gpus=1))
    assert Counter(world.held.values()) == pods


@pytest.mark.parametrize(
    ("order", "rack"),
    [
        pytest.param(DomainOrder.TIGHTEST, "n1", id="least_left"),
        pytest.param(DomainOrder.MOST_USED, "n0", id="most_used"),
    ],
)
def test_a_group_tries_the_domain_first_that_the_policy_says(order, rack):
    # With the gang's 4 GPUs, rack 0 would have 2 of 16 left, and rack 1 has 1 of 5.
    nodes = [node("b0/r0/n00", gpus=16), node("b0/r1/n10", gpus=5)]
    stranger = pod("s", gpus=10, on="n00")
    gang = members("g", 2, RACK, gpus=2)
    world = world_with(SearchPolicy(order=order), *nodes, pods=[stranger, *gang])
    assert racks(world.held) == {rack}


@pytest.mark.parametrize(
    ("resources", "rack"),
    [
        pytest.param(None, "n1", id="every_requested_resource_alike"),
        pytest.param((("cpu", 1), ("memory", 1)), "n0", id="gpus_are_not_listed"),
        pytest.param((("cpu", 1), (GPU, 1)), "n1", id="both_alike"),
        pytest.param((("cpu", 9), (GPU, 1)), "n0", id="cpu_weighs_more"),
    ],
)
def test_a_domain_is_used_as_far_as_resources_that_weigh_something_are(resources, rack):
    """Rack 0 has more cores in use, rack 1 more GPUs, by a larger share."""
    nodes = [node("b0/r0/n00", gpus=16), node("b0/r1/n10", gpus=16)]
    strangers = [pod("s", gpus=1, cpu=16_000, on="n00"), pod("t", gpus=8, cpu=1_000, on="n10")]
    gang = members("g", 2, RACK, gpus=2)
    policy = SearchPolicy(order=DomainOrder.MOST_USED)
    packing = TierPacking(resources=resources)
    world = world_with(policy, *nodes, pods=[*strangers, *gang], packing=packing)
    assert racks(world.held) == {rack}
