"""Gangs on clusters that begin without a node, in virtual time: scenarios of autoscaling.md 5."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from random import Random

import pytest

from tests.autoscaling.cluster_autoscaler.loop import ClusterAutoscaler, Settings
from tests.autoscaling.machines.groups import NodeGroup
from tests.records import BLOCK, GPU, RACK, REQUIRED, SLICE_LEVEL, SLICE_SIZE
from tests.sim.grown import Grown
from tests.sim.kinds import Workload
from tests.sim.liveness import check_books, check_empty
from tests.sim.world import EMPTY_SECONDS

MACHINE = {"cpu": "64", "memory": "512Gi", "pods": "110", GPU: "8"}
QUICK = Settings(unneeded=40.0, delay_after_add=0.0, provisioning_requests=False)
IN_RACK = {REQUIRED: RACK}
LONG = 3000.0  # of waiting for anything; a machine that does not come is given up after 900 s


def rack(name: str, most: int, rng: Random | None = None, **more: object) -> NodeGroup:
    """A group that is one rack, with the delays of its own."""
    drawn = rng or Random(name)
    delays = {
        "register_seconds": drawn.uniform(5.0, 40.0),
        "ready_seconds": drawn.uniform(1.0, 20.0),
        "label_seconds": drawn.uniform(0.0, 40.0),
        "resource_seconds": drawn.uniform(0.0, 60.0),
    }
    labels = {BLOCK: "b0", RACK: name}
    return NodeGroup(
        name,
        most,
        **{"allocatable": MACHINE, "late_labels": (labels,), "tags": labels, **delays, **more},
    )


class Watched:
    """A world, and which of its nodes were made so far."""

    def __init__(self, *groups: NodeGroup) -> None:
        self.autoscaler = ClusterAutoscaler(groups, QUICK)
        self.world = Grown(self.autoscaler)
        self.made: list[str] = []
        create = self.world.api.create

        def noted(kind: str, record: object) -> object:
            if kind == "Node":
                self.made.append(record.name)  # type: ignore[attr-defined]
            return create(kind, record)

        self.world.api.create = noted  # type: ignore[method-assign]

    def until(self, holds: Callable[[], bool], seconds: float = LONG) -> None:
        """Let time pass until it holds."""
        clock, end = self.world.clock, self.world.clock.now + seconds
        while not holds():
            assert clock.now < end, f"not within {seconds} s"
            clock.run_until(clock.now + 5.0)

    def run(self, seconds: float) -> None:
        self.world.clock.run_until(self.world.clock.now + seconds)

    def bound(self, workload: Workload) -> dict[str, str]:
        """The node of each pod that has one."""
        pods = self.world.api.list("Pod")
        own = {each.name: each.node for each in pods if each.uid in workload.uids}
        return {name: node for name, node in own.items() if node}

    def marked(self) -> list[str]:
        return [each.name for each in self.world.api.list("Pod") if each.is_marked]

    def racks(self, workload: Workload) -> Counter[str]:
        """How many pods are in each rack."""
        return Counter(node.rpartition("-")[0] for node in self.bound(workload).values())

    def is_empty(self) -> bool:
        return not (self.world.api.nodes or self.world.api.list("Pod"))


@pytest.mark.slow
def test_1_a_gang_of_an_empty_cluster_gets_its_rack_and_no_node_more() -> None:
    watched = Watched(rack("r0", 12))
    gang = watched.world.gang(8, 8, 300.0, IN_RACK)
    watched.until(lambda: len(watched.bound(gang)) == 8)
    watched.run(120.0)
    assert len(watched.made) == len(set(watched.bound(gang).values())) == 8
    watched.until(watched.is_empty)
    assert len(watched.made) == 8


@pytest.mark.slow
def test_5_of_two_gangs_each_gets_a_rack_the_first_of_them_first() -> None:
    watched = Watched(rack("r0", 8), rack("r1", 8, stock=0))
    first = watched.world.gang(8, 8, 2000.0, IN_RACK)
    watched.run(10.0)
    second = watched.world.gang(8, 8, 600.0, IN_RACK)
    watched.until(lambda: len(watched.bound(first)) == 8)
    watched.run(60.0)
    assert watched.bound(second) == {}
    assert len(watched.marked()) == 8, "it asks on"
    watched.autoscaler.cloud.stock["r1"] = None
    watched.until(lambda: len(watched.bound(second)) == 8)
    assert set(watched.racks(first)) == {"r0"}
    assert set(watched.racks(second)) == {"r1"}


@pytest.mark.slow
def test_6_ordinary_pods_that_come_meanwhile_take_no_node_of_the_gangs_rack() -> None:
    watched = Watched(rack("r0", 8))
    gang = watched.world.gang(8, 8, 300.0, IN_RACK)
    watched.until(lambda: len(watched.made) >= 3)
    flood = watched.world.plain(6, 8, 100.0)
    watched.until(lambda: len(watched.bound(gang)) == 8)
    assert watched.bound(flood) == {}
    watched.until(lambda: len(watched.bound(flood)) > 0)


@pytest.mark.slow
def test_7_where_the_cloud_is_out_of_stock_nothing_starts_and_what_came_goes_to_others() -> None:
    watched = Watched(rack("r0", 8, stock=6))
    gang = watched.world.gang(8, 8, 100.0, IN_RACK)
    watched.run(400.0)
    assert watched.bound(gang) == {}
    small = watched.world.gang(2, 8, 100.0, IN_RACK)
    watched.run(60.0)
    assert watched.bound(small) == {}, "the six are kept for the first"
    watched.until(lambda: len(watched.bound(small)) == 2)
    assert watched.bound(gang) == {}
    before = len(watched.made)
    watched.run(600.0)
    assert len(watched.made) - before <= 8, "nodes do not come and go all the time"
    watched.autoscaler.cloud.stock["r0"] = None
    watched.until(lambda: len(watched.bound(gang)) == 8)


@pytest.mark.slow
def test_9_the_nodes_of_a_gang_that_is_deleted_meanwhile_go_again() -> None:
    watched = Watched(rack("r0", 8))
    gang = watched.world.gang(8, 8, 100.0, IN_RACK)
    watched.until(lambda: len(watched.made) >= 2)
    for each in watched.world.api.list("Pod"):
        watched.world.api.remove("Pod", each.name)
    gang.names.clear()
    gang.is_over = True
    watched.until(lambda: not watched.world.api.nodes)
    assert watched.world.corrals[0].engine.new_nodes.nodes() == frozenset()


@pytest.mark.slow
def test_10_a_gang_that_fits_before_its_nodes_come_starts_and_these_go_again() -> None:
    watched = Watched(rack("r0", 4), rack("r1", 4, register_seconds=300.0))
    first = watched.world.gang(4, 8, 120.0, IN_RACK)
    watched.until(lambda: len(watched.bound(first)) == 4)
    second = watched.world.gang(4, 8, 1500.0, IN_RACK)
    watched.until(lambda: len(watched.marked()) == 4)
    watched.until(lambda: len(watched.bound(second)) == 4)
    assert set(watched.racks(second)) == {"r0"}
    assert watched.marked() == []
    watched.run(600.0)
    assert sorted({name.rpartition("-")[0] for name in watched.world.api.nodes}) == ["r0"]


@pytest.mark.slow
def test_a_gang_of_four_racks_comes_and_goes_ten_times() -> None:
    """Random delays and stock-outs: nothing starts in part, which the world checks all the time."""
    rng = Random(64)
    watched = Watched(*(rack(f"r{number}", 16, rng) for number in range(4)))
    whole = {REQUIRED: BLOCK, SLICE_LEVEL: RACK, SLICE_SIZE: "16"}
    for attempt in range(10):
        before = len(watched.made)
        is_short = attempt in (3, 7)
        if is_short:
            watched.autoscaler.cloud.stock[f"r{rng.randrange(4)}"] = rng.randrange(1, 16)
        gang = watched.world.gang(64, 8, 30.0, whole)
        if is_short:
            watched.run(rng.uniform(300.0, 500.0))
            assert watched.bound(gang) == {}
            for name in watched.autoscaler.cloud.stock:
                watched.autoscaler.cloud.stock[name] = None
        watched.until(lambda gang=gang: len(watched.bound(gang)) == 64)
        assert watched.racks(gang) == {f"r{number}": 16 for number in range(4)}
        watched.until(watched.is_empty)
        assert len(watched.made) - before == 64, attempt
    check_books(watched.world.api, watched.world.corrals, watched.world.clock)
    watched.run(EMPTY_SECONDS)
    check_empty(watched.world.corrals)
