"""Which of two nodes a preemptor is answered, criterion by criterion.

Two nodes of 8 GPUs, with pods that could go on both; the one that costs less is answered.
"""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from app.dialects.spec import GroupSpec, LeafSpec
from app.kube.core.objects import PodRecord
from app.state.filter_result import Victims
from tests.app.state.crews import CrewWorld, hands
from tests.app.state.preemptor import hp, rack, running
from tests.app.state.world import World, members
from tests.records import pod

EARLY, LATE = "2025-01-01T00:00:00Z", "2026-06-01T00:00:00Z"


def answered(world: World, violations: dict[str, int] | None = None) -> dict[str, tuple[str, ...]]:
    """The node that costs least if all pods of each node may go, and who goes there."""
    if "uid-hp" not in world.pods:
        world.put(hp())
    on: dict[str, list[str]] = {}
    for uid, each in world.pods.items():
        if each.node:
            on.setdefault(each.node, []).append(uid)
    offered = {
        node: Victims(tuple(uids), (violations or {}).get(node, 0)) for node, uids in on.items()
    }
    answer, _ = world.engine.preempt(world.pods["uid-hp"], offered, world.now)
    return {node: victims.uids for node, victims in answer.items()}


def pair(name: str, node: str, *priorities: int, created: str = EARLY) -> list[PodRecord]:
    """Pods that share a node's GPUs."""
    gpus = 8 // len(priorities)
    return [
        pod(f"{name}{at}", on=node, gpus=gpus, priority=each, phase="Running", created=created)
        for at, each in enumerate(priorities)
    ]


@pytest.mark.parametrize(
    ("dear", "cheap"),
    [
        pytest.param((5, 0), (4, 4), id="the_highest_priority_first"),
        pytest.param((0, 0), (0,), id="then_how_many_end"),
        pytest.param((5, 4), (5, 3), id="then_the_sum_of_priorities"),
        pytest.param((-10, -10), (-10,), id="a_pod_more_costs_whatever_its_priority"),
    ],
)
def test_of_pods_alone_those_cost_least(dear: tuple[int, ...], cheap: tuple[int, ...]) -> None:
    for first, second in (("n00", "n01"), ("n01", "n00")):
        world = World(rack(0, 2), [*pair("d", first, *dear), *pair("c", second, *cheap)])
        assert answered(world).keys() == {second}


def test_those_that_have_run_for_less_time_go_and_the_oldest_of_a_node_counts() -> None:
    for first, second in (("n00", "n01"), ("n01", "n00")):
        mixed = [*pair("d", first, 0, 0, created=LATE)]
        mixed[1] = replace(mixed[1], created=EARLY)
        middle = pair("c", second, 0, 0, created="2026-01-01T00:00:00Z")
        assert answered(World(rack(0, 2), [*mixed, *middle])).keys() == {second}


def test_how_long_a_pod_has_run_counts_only_of_the_highest_priority() -> None:
    old_low = pair("d", "n00", 5, 0, created=LATE)
    old_low[1] = replace(old_low[1], created=EARLY)
    middle = pair("c", "n01", 5, 0, created="2026-01-01T00:00:00Z")
    assert answered(World(rack(0, 2), [*old_low, *middle])).keys() == {"n00"}


def test_where_all_is_equal_the_first_node_by_name_is_answered() -> None:
    for names in (("n00", "n01"), ("n01", "n00")):
        world = World(rack(0, 2), [each for at in names for each in pair(f"v-{at}-", at, 0)])
        assert answered(world).keys() == {"n00"}


def test_budgets_that_would_be_violated_come_before_everything() -> None:
    world = World(rack(0, 2), [*pair("d", "n00", 0), *pair("c", "n01", 900, 900)])
    assert answered(world, {"n00": 1}).keys() == {"n01"}


def test_pods_that_end_anyway_cost_nothing() -> None:
    ending = [replace(each, is_terminating=True) for each in pair("d", "n00", 900)]
    assert answered(World(rack(0, 2), [*ending, *pair("c", "n01", 0)])).keys() == {"n00"}


def test_the_most_important_victim_is_named_first_then_the_oldest() -> None:
    some = pair("v", "n00", 1, 7, 7, 3)
    some[1] = replace(some[1], created=LATE)
    (victims,) = answered(World(rack(0, 1), some)).values()
    assert victims == ("uid-v2", "uid-v1", "uid-v3", "uid-v0")


@pytest.mark.parametrize(
    ("priority", "may_go"),
    [
        pytest.param(999, True, id="lower"),
        pytest.param(1000, False, id="equal"),
        pytest.param(1001, False, id="higher"),
    ],
)
def test_only_pods_of_lower_priority_go(priority: int, may_go: bool) -> None:
    assert bool(answered(World(rack(0, 1), pair("v", "n00", priority)))) is may_go


def test_no_preemptor_is_of_such_priority_that_pods_of_the_system_go() -> None:
    critical = 2_000_000_000  # of PriorityClass system-cluster-critical
    for priority, may_go in ((critical - 1, True), (critical, False)):
        world = World(rack(0, 1), pair("v", "n00", priority))
        world.put(hp(priority=critical + 1000))
        assert bool(answered(world)) is may_go


def test_a_gang_that_lacks_a_pod_already_is_broken_no_further() -> None:
    world = running(World(rack(0, 3)), members("w", 1), members("b", 2))
    lost = world.pods["uid-b1"]
    world.delete(lost)
    world.put(pod("stranger", on=lost.node, priority=5000, phase="Running"))
    assert answered(world).keys() == {world.pods["uid-b0"].node}


@pytest.mark.parametrize(
    ("pods", "needed", "goes"),
    [
        pytest.param(3, None, "uid-alone", id="all_are_needed"),
        pytest.param(4, 3, "uid-alone", id="it_has_just_enough"),
        pytest.param(3, 2, "uid-c-w-2", id="one_can_be_spared"),
        pytest.param(5, 4, "uid-c-w-2", id="it_lacks_one_already"),
    ],
)
def test_a_gang_is_broken_only_by_the_loss_of_a_pod_that_it_needs(
    pods: int, needed: int | None, goes: str
) -> None:
    """The pod alone has run for longer, which decides where no gang is broken."""
    crew = GroupSpec("c", (LeafSpec("w", pods, needed=needed),))
    run = [
        replace(each, node=f"n0{at}", phase="Running")
        for at, each in enumerate(hands("c", "w", 3, created=LATE))
    ]
    alone = pod("alone", on="n03", created=EARLY, phase="Running")
    world = CrewWorld({"c": crew}, rack(0, 4), [*run, alone])
    world.put(hp())
    offered = {"n03": Victims((alone.uid,), 0), "n02": Victims((run[2].uid,), 0)}
    answer, _ = world.engine.preempt(world.pods["uid-hp"], offered, world.now)
    assert [victims.uids for victims in answer.values()] == [(goes,)]


def test_a_time_that_cannot_be_read_is_the_beginning_of_time() -> None:
    odd = pair("d", "n00", 0, created="yesterday")
    assert answered(World(rack(0, 2), [*odd, *pair("c", "n01", 0)])).keys() == {"n01"}
