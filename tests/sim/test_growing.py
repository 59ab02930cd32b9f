"""Random worlds whose nodes an autoscaler makes and removes; and that what judges them can fail."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial

import pytest

from app.kube.core.objects import NodeRecord, Shape
from tests.autoscaling.machines.actions import Action, DeleteNode, EvictPod, MakeNode, SetTaint
from tests.autoscaling.machines.cloud import Cloud
from tests.autoscaling.machines.groups import NodeGroup, node_body
from tests.autoscaling.reading.seen import Seen
from tests.records import GPU, RACK, group, node, pod
from tests.sim.api import ApiServer
from tests.sim.clock import Clock, History
from tests.sim.faults import FLOOR, FLOOR_SEEDS, GROWN, GROWN_FLOOR, GROWN_SEEDS, Hits, least_hits
from tests.sim.growing import Growing
from tests.sim.growth import GROUP, growth_of, is_rack
from tests.sim.growth_checks import GrowthChecks
from tests.sim.kai.in_parts import InParts
from tests.sim.kinds import Workload
from tests.sim.liveness import check_nobody_is_forgotten
from tests.sim.mode import GROWING, PREEMPTING, USUAL, Mode
from tests.sim.violation import Violation
from tests.sim.world import World
from tests.workload_pods import stateful_pods, workload

SEEDS = (1, 13, 14)
SHORT = 14  # one whose history is short
RACKS = (2, 4, 1)


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
def test_nothing_is_violated_while_nodes_come_and_go(seed: int) -> None:
    outcome = World(seed, mode=GROWING).run()
    assert not outcome.violation, "\n".join((outcome.violation, *outcome.last_lines, outcome.trace))
    assert outcome.hits["W node made"]


@pytest.mark.slow
def test_the_same_seed_is_the_same_history() -> None:
    assert World(SHORT, mode=GROWING).run().digest == World(SHORT, mode=GROWING).run().digest


# -- what is drawn -------------------------------------------------------------------------------


def test_a_cluster_that_is_fully_grown_is_the_one_that_the_seed_has_otherwise() -> None:
    for seed in range(50):
        growth = growth_of(seed, RACKS, gpus=4)
        racks = {each.name: each for each in growth.groups if is_rack(each)}
        assert sorted(racks) == [f"g{at}" for at in range(3) if at not in growth.static]
        assert all(each.max == RACKS[int(name[1:])] for name, each in racks.items())
        assert all(each.allocatable[GPU] == "4" for each in racks.values())
        assert growth.largest is racks["g1"], "what needs a whole domain needs new nodes"


def test_some_begin_without_a_node_and_some_have_groups_that_take_no_member() -> None:
    drawn = [growth_of(seed, RACKS, gpus=4) for seed in range(50)]
    assert {each.begins_empty for each in drawn} == {True, False}
    assert any(each.taints for growth in drawn for each in growth.groups)
    assert any(GPU not in each.allocatable for growth in drawn for each in growth.groups)
    assert any(each.min for growth in drawn for each in growth.groups)


def test_the_other_histories_have_no_autoscaler() -> None:
    assert World(SHORT).growing is None
    assert World(SHORT).api.nodes


def test_a_mode_is_said_on_the_command_line() -> None:
    assert USUAL.options == []
    assert Mode(preempting=True, growing=True).options == ["--preempting", "--growing"]


def test_a_run_answers_for_what_its_histories_have() -> None:
    assert least_hits("W node made", 500, USUAL) == 0
    assert least_hits("F11 cordon", FLOOR_SEEDS, USUAL) == FLOOR
    assert least_hits("W composite", 500, PREEMPTING) == 0
    assert least_hits("F11 cordon", 500, GROWING) == 0
    assert least_hits("W node made", 2 * GROWN_SEEDS, GROWING) == 2 * GROWN_FLOOR
    assert all(least_hits(each, GROWN_SEEDS - 1, GROWING) == 0 for each in GROWN)


def test_no_world_that_grows_has_gangs_that_go_by_labels_which_machines_do_not_have() -> None:
    worlds = [World(seed, mode=GROWING) for seed in range(1, 61)]
    assert any(InParts.is_in(seed) for seed in range(1, 61))
    assert not any(isinstance(each, InParts) for world in worlds for each in world.vocabularies)


# -- what goes wrong with a node -----------------------------------------------------------------


def grown_world() -> tuple[World, str]:
    """A world that has not begun, and a node of it that an autoscaler has made."""
    world = World(SHORT, mode=GROWING)
    assert world.growing is not None
    made = world.growing.growth.largest
    body = node_body("made", made.known_labels, made.taints, made.allocatable)
    world.growing.nodes._carry_out([MakeNode(body)])
    return world, "made"


def test_a_node_that_an_autoscaler_made_is_restored_to_what_it_has_become() -> None:
    world, name = grown_world()
    assert world.growing is not None
    world.chaos._change_node(name, is_unschedulable=True, labels={"a": "b"})
    taint = {"key": "going", "value": "", "effect": "NoSchedule"}
    world.growing.nodes._carry_out([SetTaint(name, taint)])
    world.chaos._restore(name)
    restored: NodeRecord = world.api.nodes[name]
    assert not restored.is_unschedulable
    assert GROUP in restored.labels
    assert [each.key for each in restored.taints] == ["going"]


def test_a_node_that_an_autoscaler_made_does_not_come_back_when_it_is_gone() -> None:
    world, name = grown_world()
    world.chaos._delete_node(name)
    world.chaos._restore(name)
    assert name not in world.api.nodes


# -- G1 ------------------------------------------------------------------------------------------


class Judged:
    """A member of a gang, and a pod of none, on a node."""

    def __init__(self) -> None:
        clock = Clock()
        self.api = ApiServer(clock, History(clock))
        self.checks = GrowthChecks(clock, self.api, Hits())
        self.api.create("Node", node("b0/r0/n0"))
        clock.run_until(10.0)
        run = {"on": "n0", "phase": "Running"}
        self.api.create("Pod", pod("member", annotations=group("g", 1), **run))
        self.api.create("Pod", pod("other", **run))
        clock.run_until(20.0)

    def evict(self, name: str) -> None:
        self.checks.about_to(EvictPod("default", name, self.api.pods[name].uid))


def test_a_member_that_is_evicted_for_its_node_to_go_is_a_violation() -> None:
    with pytest.raises(Violation, match="G1: member is evicted"):
        Judged().evict("member")


def test_a_member_that_is_evicted_from_a_node_given_up_later_is_one_too() -> None:
    judged = Judged()
    judged.checks.about_to(SetTaint("n0", {"key": "going", "effect": "NoSchedule"}))
    with pytest.raises(Violation, match="G1: member is evicted"):
        judged.evict("member")


def test_a_pod_of_no_gang_may_be_evicted() -> None:
    Judged().evict("other")


def test_a_member_that_came_to_a_node_which_was_given_up_goes_with_it() -> None:
    judged = Judged()
    judged.checks.about_to(SetTaint("n0", {"key": "going", "effect": "NoSchedule"}))
    judged.api.remove("Pod", "member")
    judged.api.create("Pod", pod("member", annotations=group("g", 1), on="n0"))
    judged.evict("member")


def test_a_node_that_is_removed_under_a_member_is_a_violation() -> None:
    judged = Judged()
    with pytest.raises(Violation, match="G1: node n0 is removed"):
        judged.checks.about_to(DeleteNode("n0"))
    judged.api.end("member", "Succeeded")
    judged.checks.about_to(DeleteNode("n0"))


# -- G2 to G5 ------------------------------------------------------------------------------------


class Restless:
    """An autoscaler that orders a machine every so often, and gives it back, whatever is there."""

    def __init__(self, cloud: Cloud, pause: float) -> None:
        self.cloud, self._pause, self.next_at = cloud, pause, 0.0

    def step(self, seen: Seen, now: float) -> list[Action]:
        if now < self.next_at:
            return []
        self.next_at = now + self._pause
        for name in list(self.cloud.machines):
            self.cloud.release(name)
        self.cloud.order(next(iter(self.cloud.groups.values())), now)
        return []

    def restart(self, seen: Seen) -> list[Action]:
        return []


def restless(pause: float) -> Growing:
    """What judges a world with such an autoscaler in it, which has groups of 20 machines."""
    growing = World(SHORT, mode=GROWING).growing
    assert growing is not None
    groups = tuple(NodeGroup(each.name, 20) for each in growing.growth.groups)
    growing.growth = replace(growing.growth, groups=groups)
    growing.nodes.autoscaler = Restless(Cloud(groups), pause)
    return growing


@pytest.mark.slow
@pytest.mark.parametrize(
    ("pause", "what"),
    [
        pytest.param(2.0, "machines are ordered while nothing begins", id="soon"),
        pytest.param(140.0, "come and go without end", id="now_and_then"),
    ],
)
def test_nodes_that_come_and_go_for_ever_are_a_violation(pause: float, what: str) -> None:
    growing = restless(pause)
    growing.nodes.begin()
    with pytest.raises(Violation, match=f"G2: .*{what}"):
        growing.await_rest(100.0)


def waiting(world: World, *, names: str) -> None:
    """A gang of one pod waits, which names a group, or "" for none."""
    shape = Shape(selector=((GROUP, names),) if names else ())
    world.api.create("Pod", pod("g-0", annotations=group("g", 1), gpus=1, shape=shape))


def judge_who_waits(world: World) -> None:
    assert world.growing is not None
    forgotten = partial(check_nobody_is_forgotten, world.api, [], world.checks.absent)
    forgotten(lambda _: False, [], {}, world.growing.with_new_nodes)


def test_a_gang_that_waits_though_its_group_could_grow_is_a_violation() -> None:
    world = World(SHORT, mode=GROWING)
    assert world.growing is not None
    waiting(world, names=world.growing.growth.largest.name)
    with pytest.raises(Violation, match=r"G3: gang .* nodes that it fits on may be made"):
        judge_who_waits(world)


def test_a_gang_may_wait_whose_group_has_all_its_machines() -> None:
    world = World(SHORT, mode=GROWING)
    assert world.growing is not None
    largest = world.growing.growth.largest
    for _ in range(largest.max):
        world.growing.nodes.autoscaler.cloud.order(largest, 0.0)
    waiting(world, names=largest.name)
    judge_who_waits(world)


@pytest.mark.parametrize("taken", [7, 8])
def test_a_gang_may_wait_whose_pods_that_exist_fit(taken: int) -> None:
    """No autoscaler makes a node for a pod that fits, nor for one that does not exist."""
    world = World(SHORT, mode=GROWING)
    assert world.growing is not None
    largest = world.growing.growth.largest
    world.api.create("Node", node("b0/r0/n0", labels={GROUP: largest.name}))
    world.api.create("Pod", pod("o", on="n0", phase="Running", gpus=taken))
    world.api.create("StatefulSet", workload("StatefulSet", "db", {"": 2}, is_gradual=True))
    shape = Shape(selector=((GROUP, largest.name),))
    first, _ = stateful_pods("db", 2, RACK, gpus=1, shape=shape)
    world.api.create("Pod", first)
    if taken < 8:
        judge_who_waits(world)
        return
    with pytest.raises(Violation, match="G3: gang"):
        judge_who_waits(world)


def test_of_a_gang_that_names_no_group_it_is_not_known_what_an_autoscaler_makes_for_it() -> None:
    world = World(SHORT, mode=GROWING)
    waiting(world, names="")
    judge_who_waits(world)


@pytest.mark.slow
def test_a_node_that_stays_without_a_pod_is_a_violation() -> None:
    growing = restless(math.inf)
    growing.nodes.begin()
    growing.nodes.autoscaler.cloud.order(growing.growth.groups[0], 0.0)
    with pytest.raises(Violation, match=r"G4: .* stay though no pod is there"):
        growing.await_gone()


def test_more_machines_than_a_lone_gang_has_pods_are_a_violation() -> None:
    growing = restless(math.inf)
    workload = Workload("g", "group", (), {}, 0, is_gated=True, seconds=1.0, declared=2)
    cloud = growing.nodes.autoscaler.cloud
    for _ in range(3):
        cloud.order(growing.growth.groups[0], 0.0)
    growing.is_grown_for(workload, orders=1)
    with pytest.raises(Violation, match="G5: 3 machines are ordered for 2 pods"):
        growing.is_grown_for(workload, orders=0)
