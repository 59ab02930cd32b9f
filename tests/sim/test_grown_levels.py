"""Gangs for which nodes are made whose level labels repeat, disappear, change, or never come."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import pytest

from tests.records import BLOCK, RACK
from tests.sim.grown import IN_RACK, Watched, rack
from tests.sim.kinds import Workload

SETTLE = 60.0  # `node_settle_seconds`, unless it is set
MOMENT = 0.002  # less than kube-scheduler takes for anything


def at(block: str, of_rack: str) -> Mapping[str, str]:
    """The labels of a node in this rack of this block."""
    return {BLOCK: block, RACK: of_rack}


def kept(watched: Watched) -> frozenset[str]:
    """The new nodes that are kept for some gang."""
    return watched.world.corrals[0].engine.new_nodes.nodes()


def planned(watched: Watched) -> set[str]:
    """The nodes that a gang has places on, or is to be bound to."""
    gangs = watched.world.corrals[0].engine.gangs.by_key.values()
    return {node for gang in gangs for node in gang.plan.nodes.values()}


def places(watched: Watched, nodes: object) -> Counter[tuple[str, str]]:
    """How many of these nodes are in each block and rack."""
    all_nodes = watched.world.api.nodes
    labels = [all_nodes[name].labels for name in nodes]  # type: ignore[attr-defined]
    return Counter((each.get(BLOCK, ""), each.get(RACK, "")) for each in labels)


def relabel(watched: Watched, name: str, **labels: str) -> Mapping[str, str]:
    """Give a node other labels of levels, and return those that it had."""
    before = watched.world.api.nodes[name].labels
    rest = {key: value for key, value in before.items() if key not in (BLOCK, RACK)}
    watched.world.api.change("Node", name, labels={**rest, **labels})
    return before


def until_planned(watched: Watched, gang: Workload) -> set[str]:
    """Stop at the moment at which the gang has a plan and no pod of it is bound."""
    clock, end = watched.world.clock, watched.world.clock.now + 1000.0
    while not planned(watched):
        assert clock.now < end
        clock.run_until(clock.now + MOMENT)
    assert watched.bound(gang) == {}
    return planned(watched)


@pytest.mark.slow
def test_a_gang_is_not_placed_across_two_racks_of_one_name() -> None:
    """Each second node is in the other block, and of both blocks the rack is called r0."""
    both = (at("b0", "r0"), at("b1", "r0"))
    watched = Watched(rack("any", 9, late_labels=both))
    gang = watched.world.gang(4, 8, 300.0, IN_RACK)
    watched.until(lambda: len(watched.made) == 4)
    watched.run(150.0)
    assert places(watched, watched.made) == {("b0", "r0"): 2, ("b1", "r0"): 2}
    assert watched.bound(gang) == {}
    assert set(places(watched, kept(watched))) == {("b0", "r0")}, "of equal ones the first"
    others = [watched.world.plain(1, 8, 2000.0)]
    watched.until(lambda: len(watched.bound(others[-1])) == 1)
    assert set(places(watched, watched.bound(others[-1]).values())) == {("b1", "r0")}
    while not watched.bound(gang):
        others.append(watched.world.plain(1, 8, 2000.0))
        watched.run(200.0)
        assert len(others) < 6
    watched.until(lambda: len(watched.bound(gang)) == 4)
    assert set(places(watched, watched.bound(gang).values())) == {("b0", "r0")}


@pytest.mark.slow
def test_of_two_racks_of_one_name_each_goes_to_a_gang_of_its_own() -> None:
    watched = Watched(
        rack("one", 4, late_labels=(at("b0", "r0"),), label_seconds=30.0),
        rack("two", 4, late_labels=(at("b1", "r0"),), label_seconds=30.0),
    )
    gangs = [watched.world.gang(4, 8, 2000.0, IN_RACK) for _ in range(2)]
    watched.until(lambda: all(len(watched.bound(each)) == 4 for each in gangs))
    found = [places(watched, watched.bound(each).values()) for each in gangs]
    assert sorted(map(dict, found), key=str) == [{("b0", "r0"): 4}, {("b1", "r0"): 4}]
    assert len(watched.made) == 8


@pytest.mark.slow
@pytest.mark.parametrize("labels", [{}, at("b0", "r9")], ids=["disappears", "changes"])
def test_a_level_that_changes_while_its_node_is_kept_ends_that_until_it_is_back(
    labels: Mapping[str, str],
) -> None:
    watched = Watched(rack("r0", 4, stock=3, register_seconds=10.0, label_seconds=5.0))
    gang = watched.world.gang(4, 8, 300.0, IN_RACK)
    watched.until(lambda: len(kept(watched)) == 3)
    watched.run(SETTLE + 10.0)
    first = sorted(kept(watched))[0]
    before = relabel(watched, first, **labels)
    watched.run(10.0)
    assert len(kept(watched)) == 2
    assert first not in kept(watched)
    watched.autoscaler.cloud.stock["r0"] = None
    watched.until(lambda: len(watched.made) >= 4)
    watched.run(100.0)
    assert watched.bound(gang) == {}
    other = watched.world.plain(1, 8, 50.0)
    watched.until(lambda: len(watched.bound(other)) == 1)
    assert set(watched.bound(other).values()) == {first}, "it is anybody's"
    watched.until(lambda: other.is_over)
    watched.world.api.change("Node", first, labels=before)
    watched.until(lambda: len(watched.bound(gang)) == 4)
    assert set(places(watched, watched.bound(gang).values())) == {("b0", "r0")}
    watched.until(watched.is_empty)


@pytest.mark.slow
@pytest.mark.parametrize("labels", [{}, at("b0", "r9")], ids=["disappears", "changes"])
def test_a_level_that_changes_between_plan_and_binding_has_the_gang_wait_whole(
    labels: Mapping[str, str],
) -> None:
    watched = Watched(rack("r0", 4))
    gang = watched.world.gang(4, 8, 300.0, IN_RACK)
    first = sorted(until_planned(watched, gang))[0]
    before = relabel(watched, first, **labels)
    watched.run(150.0)
    assert watched.bound(gang) == {}
    assert planned(watched) == set()
    assert first not in kept(watched)
    watched.world.api.change("Node", first, labels=before)
    watched.until(lambda: len(watched.bound(gang)) == 4)
    assert len(set(watched.bound(gang).values())) == 4
    watched.until(watched.is_empty)


@pytest.mark.slow
def test_nodes_whose_level_never_comes_are_let_go_and_taken_by_others() -> None:
    half = (at("b0", "r0"), {})
    watched = Watched(rack("any", 8, late_labels=half, register_seconds=10.0, label_seconds=30.0))
    gang = watched.world.gang(4, 8, 300.0, IN_RACK)
    watched.until(lambda: len(watched.made) == 4)
    made_at = watched.world.clock.now
    others = watched.world.plain(2, 8, 2000.0)
    watched.until(lambda: len(kept(watched)) == 4)
    assert watched.world.clock.now < made_at + SETTLE
    assert watched.bound(others) == {}
    watched.until(lambda: len(watched.bound(others)) == 2)
    assert made_at + SETTLE - 5.0 <= watched.world.clock.now < made_at + SETTLE + 120.0
    assert set(places(watched, watched.bound(others).values())) == {("", "")}
    while not watched.bound(gang):
        watched.world.plain(1, 8, 2000.0)
        watched.run(200.0)
        assert len(watched.made) <= 8
    watched.until(lambda: len(watched.bound(gang)) == 4)
    assert set(places(watched, watched.bound(gang).values())) == {("b0", "r0")}
