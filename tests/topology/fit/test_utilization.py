"""How full the domains around a node are, against a literal reckoning with fractions.

Source: volcano pkg/scheduler/plugins/network-topology-aware/network_topology_aware.go (v1.14),
batchNodeOrderFnForNormalPods; docs/design/Network Topology Aware Scheduling.md.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from topology import Capacity, ResourceAxis
from topology.fit.utilization import Tier, around_nodes, points, tier_weights, utilization
from topology.model.explicit_tree import Domain, Forest, has_tier
from topology.model.resources import AMOUNT_MAX

LEVEL = "tier-{}".format


@dataclass
class Cluster:
    """Nodes in domains, and the plain numbers that the oracle reckons with."""

    forest: Forest
    capacity: Capacity
    tiers: tuple[Tier, ...]

    @classmethod
    def of(
        cls,
        domains: Sequence[Domain],
        nodes: Mapping[str, tuple[str, Sequence[int], Sequence[int]]],
        closed: Sequence[str] = (),
    ) -> Cluster:
        """Nodes as (domain or "", offered, used) in rows of pods, cpu and more."""
        forest = Forest()
        for domain in domains:
            forest.put(domain)
        for name, (inside, _, _) in nodes.items():
            forest.place(name, [inside] if inside else [])
        tree = forest.tree({tier: LEVEL(tier) for tier in forest.tiers}, 1)
        axis = ResourceAxis()
        for name in ("memory", "gpu"):
            axis.row(name)
        capacity = Capacity(axis, tree)
        for name, (_, offered, used) in nodes.items():
            capacity.set_node(tree.slot_of[name], offered, is_open=name not in closed)
            capacity.use(tree.slot_of[name], used)
        tiers = tuple(
            Tier(level, tier, has_tier(tree, level)) for level, tier in enumerate(forest.tiers)
        )
        return cls(forest, capacity, tiers)

    def shares(
        self,
        request: Sequence[int],
        fading: float = 0.8,
        weights: Mapping[int, int] | None = None,
    ) -> dict[str, float]:
        tree = self.capacity.tree
        found = around_nodes(tree, self.capacity, self.tiers, request, fading, weights)
        return dict(zip(tree.nodes, found.tolist(), strict=True))

    def literal(
        self, request: Sequence[int], fading: Fraction, weights: Mapping[int, int] | None
    ) -> dict[str, Fraction]:
        """The same, node by node and tier by tier, with fractions."""
        forest, found = self.forest, {}
        narrowest = min(forest.tiers, default=1)
        for node in self.capacity.tree.nodes:
            total = parts = Fraction(0)
            for tier in forest.tiers:
                weight = fading ** (tier - narrowest)
                here = [name for name in forest.path(node) if forest.domains[name].tier == tier]
                share = self._literal_share(here[0], request, weights) if here else Fraction(1)
                total, parts = total + weight * share, parts + weight
            found[node] = total / parts if parts else Fraction(0)
        return found

    def _literal_share(
        self, domain: str, request: Sequence[int], weights: Mapping[int, int] | None
    ) -> Fraction:
        capacity, slot_of = self.capacity, self.capacity.tree.slot_of
        inside = [slot_of[node] for node in self.forest.nodes if domain in self.forest.path(node)]
        inside = [slot for slot in inside if capacity.is_open[slot]]
        total = parts = Fraction(0)
        for row, amount in enumerate(request):
            weight = (row != 0) if weights is None else weights.get(row)
            if not amount or weight is None or weight is False:
                continue
            has = sum(int(capacity.allocatable[row, slot]) for slot in inside)
            # What is missing on one node is no debt of the others.
            free = sum(max(0, int(capacity.free()[row, slot])) for slot in inside)
            if amount > free:
                return Fraction(0)
            total += int(weight) * Fraction(has - free + amount, has)
            parts += int(weight)
        return total / parts if parts else Fraction(0)


# -- against the oracle ----------------------------------------------------------------------------


def random_cluster(chance: random.Random) -> Cluster:
    """Up to nine nodes in up to three tiers of any numbers; branches leave tiers out."""
    numbers = sorted(chance.sample(range(6), 3))
    racks = [Domain(f"r{at}", numbers[0]) for at in range(chance.randint(0, 3))]
    blocks = []
    left = [rack.name for rack in racks]
    for at in range(chance.randint(0, 2)):
        inner, left = left[:2], left[2:]
        blocks.append(Domain(f"b{at}", numbers[1], tuple(inner)))
    names = [*(block.name for block in blocks), *left]
    spines = [Domain("s", numbers[2], tuple(names[: chance.randint(0, 3)]))]
    domains = [*racks, *blocks, *chance.choice(([], spines))]
    nodes = {}
    for at in range(chance.randint(1, 9)):
        inside = chance.choice(["", *(domain.name for domain in domains)])
        offered = [chance.randint(0, 9) for _ in range(4)]
        nodes[f"n{at}"] = (inside, offered, [chance.randint(0, 9) for _ in range(4)])
    return Cluster.of(domains, nodes, [name for name in nodes if chance.random() < 0.2])


@pytest.mark.parametrize("seed", range(8))
def test_shares_are_those_of_a_literal_reckoning(seed: int) -> None:
    chance = random.Random(seed)
    for _ in range(40):
        cluster = random_cluster(chance)
        request = [1, *(chance.randint(0, 4) for _ in range(3))]
        fading = chance.choice([Fraction(0), Fraction(1, 2), Fraction(4, 5), Fraction(3)])
        given_weights = {row: chance.randint(0, 5) for row in range(4) if chance.random() < 0.6}
        weights = chance.choice([None, given_weights])
        found = cluster.shares(request, float(fading), weights)
        literal = cluster.literal(request, fading, weights)
        assert found == pytest.approx({node: float(each) for node, each in literal.items()})


def test_the_share_that_volcano_has_recorded() -> None:
    """Test_batchNodeOrderFnForNormalPods: 2,000 nodes, half used, 200, 40, 5 and 1 HyperNodes."""
    sizes = (10, 50, 400, 2_000)
    domains = [
        Domain(
            f"t{tier}-{at}",
            tier + 1,
            tuple(f"t{tier - 1}-{each}" for each in range(at * many, (at + 1) * many))
            if tier
            else (),
        )
        for tier, size in enumerate(sizes)
        for many in (size // sizes[tier - 1],)
        for at in range(2_000 // size)
    ]
    offered, used = (110, 100_000, 8_000, 10), (0, 50_000, 4_000, 5)
    nodes = {f"n{at}": (f"t0-{at // 10}", offered, used) for at in range(2_000)}
    found = Cluster.of(domains, nodes).shares(
        (1, 50_000, 4_000, 5), fading=1, weights={1: 5, 2: 5, 3: 5}
    )
    assert len(set(found.values())) == 1
    assert found["n0"] == pytest.approx(0.515375)


# -- "New Implementation For BatchNodeOrderFn": tasks without network topology constraints ---------

TWO_RACKS = (Domain("r1", 1), Domain("r2", 1))
SPINE = (*TWO_RACKS, Domain("s", 2, ("r1", "r2")))
ONE = (1, 1_000, 1, 0)


def test_batch_node_order_fn_nodes_of_the_fuller_domain_score_higher() -> None:
    offered = (110, 8_000, 8, 8)
    cluster = Cluster.of(
        TWO_RACKS,
        {
            "n1": ("r1", offered, (0, 2_000, 2, 0)),
            "n2": ("r1", offered, (0, 0, 0, 0)),
            "n3": ("r2", offered, (0, 1_000, 1, 0)),
            "n4": ("r2", offered, (0, 0, 0, 0)),
        },
    )
    found = cluster.shares(ONE)
    assert found["n1"] == found["n2"] == pytest.approx(3 / 16)
    assert found["n3"] == found["n4"] == pytest.approx(2 / 16)


@pytest.mark.parametrize(
    ("request_", "weights", "fuller"),
    [
        pytest.param((1, 1_000, 0, 0), {1: 1, 2: 1}, "n1", id="memory_is_not_requested"),
        pytest.param((1, 0, 1, 0), {1: 1, 2: 1}, "n2", id="cpu_is_not_requested"),
        pytest.param((1, 1_000, 1, 1), {2: 1}, "n2", id="cpu_is_not_watched"),
        pytest.param((1, 1_000, 1, 0), {1: 3, 2: 1}, "n1", id="cpu_weighs_more"),
        pytest.param((1, 1_000, 1, 0), {1: 1, 2: 3}, "n2", id="memory_weighs_more"),
        pytest.param((1, 1_000, 1, 0), {1: 0, 2: 1}, "n2", id="cpu_weighs_nothing"),
    ],
)
def test_batch_node_order_fn_only_resources_requested_and_watched_count_by_their_weights(
    request_: Sequence[int], weights: Mapping[int, int], fuller: str
) -> None:
    offered = (110, 10_000, 10, 8)
    cluster = Cluster.of(
        TWO_RACKS,
        {
            "n1": ("r1", offered, (0, 6_000, 1, 0)),
            "n2": ("r2", offered, (0, 1_000, 6, 0)),
        },
    )
    found = cluster.shares(request_, weights=weights)
    assert max(found, key=lambda node: found[node]) == fuller


@pytest.mark.parametrize(
    ("fading", "fuller"),
    [
        pytest.param(0, "n1", id="narrowest_tier_alone"),
        pytest.param(0.5, "n1", id="narrow_tiers_weigh_more"),
        pytest.param(3, "n3", id="wide_tiers_weigh_more"),
    ],
)
def test_batch_node_order_fn_tiers_count_by_weights_that_fade(fading: float, fuller: str) -> None:
    """n1 is in the fuller rack, n3 in the fuller block."""
    offered = (110, 10_000, 8, 8)
    cluster = Cluster.of(
        (
            *(Domain(f"r{at}", 1) for at in range(1, 5)),
            Domain("b1", 2, ("r1", "r2")),
            Domain("b2", 2, ("r3", "r4")),
        ),
        {
            "n1": ("r1", offered, (0, 6_000, 0, 0)),
            "n2": ("r2", offered, (0, 0, 0, 0)),
            "n3": ("r3", offered, (0, 5_000, 0, 0)),
            "n4": ("r4", offered, (0, 4_000, 0, 0)),
        },
    )
    found = cluster.shares((1, 1_000, 0, 0), fading)
    assert max(found, key=lambda node: found[node]) == fuller


# -- edges -----------------------------------------------------------------------------------------


def test_a_node_in_no_domain_of_a_tier_counts_as_full_there() -> None:
    offered, nothing = (110, 9_000, 8, 8), (0, 0, 0, 0)
    cluster = Cluster.of(
        (*SPINE, Domain("s2", 2)),
        {
            "n1": ("r1", offered, nothing),
            "n2": ("r2", offered, nothing),
            "n3": ("s2", offered, nothing),
            "n4": ("", offered, nothing),
        },
    )
    rack, spine, alone = 1 / 9, 1 / 18, 1.0
    assert cluster.shares((1, 1_000, 0, 0), fading=0.5) == {
        "n1": pytest.approx((rack + 0.5 * spine) / 1.5),
        "n2": pytest.approx((rack + 0.5 * spine) / 1.5),
        "n3": pytest.approx((alone + 0.5 * rack) / 1.5),
        "n4": pytest.approx(alone),
    }


def test_a_domain_with_less_than_the_pod_requests_scores_nothing_at_its_tier() -> None:
    offered = (110, 8_000, 8, 8)
    cluster = Cluster.of(
        SPINE,
        {
            "n1": ("r1", offered, (0, 7_500, 0, 0)),
            "n2": ("r2", offered, (0, 1_000, 0, 0)),
        },
    )
    spine = 9_500 / 16_000
    found = cluster.shares((1, 1_000, 0, 0), fading=1)
    assert found == {"n1": pytest.approx(spine / 2), "n2": pytest.approx((spine + 0.25) / 2)}
    weighing_nothing = cluster.shares((1, 1_000, 1, 0), fading=0, weights={1: 0, 2: 1})
    assert weighing_nothing["n1"] == 0


def test_what_is_held_counts_as_used() -> None:
    offered, nothing = (110, 8_000, 8, 8), (0, 0, 0, 0)
    cluster = Cluster.of(TWO_RACKS, {f"n{at}": (f"r{at}", offered, nothing) for at in (1, 2)})
    cluster.capacity.hold(cluster.capacity.tree.slot_of["n2"], (1, 4_000))
    found = cluster.shares(ONE)
    assert found["n2"] > found["n1"]


def test_a_resource_that_no_node_ever_had_has_no_room_anywhere() -> None:
    cluster = Cluster.of(TWO_RACKS, {"n1": ("r1", (110, 8_000, 8, 8), (0, 0, 0, 0))})
    assert cluster.shares((1, 1_000, 0, 0, 1)) == {"n1": 0.0}


def test_sums_of_the_largest_amounts_are_sums_still() -> None:
    most = (110, AMOUNT_MAX, 0, 0)
    nodes = {
        f"n{at}": (f"r{1 + at % 2}", most, (0, (at % 2) * (AMOUNT_MAX // 2), 0, 0))
        for at in range(4)
    }
    cluster = Cluster.of(TWO_RACKS, nodes)
    found = cluster.shares((1, 1, 0, 0))
    assert all(0 <= share <= 1 for share in found.values())
    assert found["n1"] > found["n0"]


def test_a_tree_without_tiers_or_without_nodes_has_no_shares() -> None:
    cluster = Cluster.of((), {"n1": ("", (110, 8_000, 8, 8), (0, 0, 0, 0))})
    assert cluster.shares(ONE) == {"n1": 0.0}
    assert Cluster.of(TWO_RACKS, {}).shares(ONE) == {}


def test_a_domain_that_counts_nothing_has_a_share_of_nothing() -> None:
    cluster = Cluster.of(TWO_RACKS, {"n1": ("r1", (110, 8_000, 8, 8), (0, 4_000, 0, 0))})
    tree = cluster.capacity.tree
    assert utilization(tree, cluster.capacity, 0, (1,), {1: 1}).tolist() == [0.0]
    assert utilization(tree, cluster.capacity, 0, (1, 1_000), {1: 0}).tolist() == [0.0]


@pytest.mark.parametrize(
    ("tiers", "fading", "weights"),
    [
        pytest.param([1, 2, 3], 0.5, [1, 0.5, 0.25], id="each_half_of_the_one_before"),
        pytest.param([3, 2, 1], 0.5, [0.25, 0.5, 1], id="in_any_order"),
        pytest.param([1, 3], 0.5, [1, 0.25], id="a_tier_between_that_does_not_occur"),
        pytest.param([0, 1], 0, [1, 0], id="the_narrowest_alone_if_it_is_tier_0"),
        pytest.param([4, 5], 0, [1, 0], id="the_narrowest_alone_if_it_is_tier_4"),
        pytest.param([1, 2], 2, [0.5, 1], id="growing"),
        pytest.param([1, 2**31 - 1], 0.8, [1, 0], id="too_far_away_to_count"),
        pytest.param([1, 2**31 - 1], 1.5, [0, 1], id="the_widest_alone"),
        pytest.param([], 0.8, [], id="no_tier"),
    ],
)
def test_a_tier_weighs_the_fading_of_the_next_narrower_one(
    tiers: list[int], fading: float, weights: list[float]
) -> None:
    assert tier_weights(tiers, fading) == pytest.approx(weights)


# -- points ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("shares", "whole"),
    [
        pytest.param([0.2, 0.4, 0.3], [0, 10, 5], id="from_the_emptiest_to_the_fullest"),
        pytest.param([0.30, 0.34], [0, 10], id="a_small_difference_is_seen"),
        pytest.param([0.0, 0.05, 1.0], [0, 1, 10], id="halves_go_up"),
        pytest.param([0.7, 0.7], [0, 0], id="equal"),
        pytest.param([0.1 + 0.2, 0.3], [0, 0], id="equal_but_for_rounding"),
        pytest.param([0.5], [0], id="one"),
        pytest.param([], [], id="none"),
    ],
)
def test_points_tell_the_fuller_from_the_emptier(shares: list[float], whole: list[int]) -> None:
    assert points(np.array(shares), 10).tolist() == whole


@given(st.lists(st.floats(0, 1), min_size=1, max_size=20))
def test_a_fuller_node_never_has_fewer_points(shares: list[float]) -> None:
    found = points(np.array(shares), 10).tolist()
    assert all(0 <= each <= 10 for each in found)
    by_share = sorted(zip(shares, found, strict=True))
    assert [each for _, each in by_share] == sorted(found)
