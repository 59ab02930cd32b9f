"""A gang's plan: held, waited for at /bind, lost and made again."""

from __future__ import annotations

from typing import ClassVar

import msgspec
import pytest

from app.dialects.corral import BORN, NODES
from app.kube.core.objects import Requirement, Shape, Term
from app.state.effects import Bind, BindFailed
from app.state.filter_result import Rejected
from app.state.plan.planner import Planner
from app.state.reserve.plans import LOOK_SECONDS
from tests.app.state.stories import sentence
from tests.app.state.world import World, four_racks, members, racks
from tests.records import RACK, group, node, pod
from tests.work import lines_run


def test_members_rejected_early_are_woken_once_the_gang_is_placed():
    world = World(four_racks())
    gang = members("g", 3)
    world.put(gang[0])
    world.filter(gang[0])
    world.put(*gang[1:])
    assert world.woken == ["g0"]


def test_bind_is_held_until_the_last_member_arrives_and_then_all_are_bound():
    world = World(four_racks())
    gang = members("g", 3)
    world.put(*gang)
    nodes = [world.filter(member).node for member in gang]
    early = [world.bind(member, on) for member, on in zip(gang[:2], nodes[:2], strict=True)]
    assert early == [[], []]
    last = world.bind(gang[2], nodes[2])
    assert {effect.uid for effect in last if isinstance(effect, Bind)} == set(world.held)


def test_a_plan_without_progress_is_given_up_after_its_time_and_the_gang_is_tried_again():
    world = World(four_racks(), gang_bind_seconds=10.0, hold_seconds=20.0)
    gang = members("g", 2)
    world.put(*gang)
    world.bind(gang[0], world.filter(gang[0]).node)
    world.tick(21.0)
    assert world.refused == [gang[0].uid]
    world.tick(5.0)
    assert isinstance(world.filter(gang[1]), Rejected)  # kube-scheduler asks for it at last
    world.tick()
    assert len(world.schedule(*gang)) == 2


def test_a_stuck_gang_is_placed_and_woken_on_the_tick_after_capacity_is_freed():
    world = World(four_racks())
    fillers = [pod(f"f{r}", on=f"n{r}0") for r in range(4)]
    world.put(*fillers)
    gang = members("g", 4)
    world.put(*gang)
    for member in gang:
        world.filter(member)
    world.delete(fillers[2])
    world.tick()
    assert sorted(world.woken) == ["g0", "g1", "g2", "g3"]
    assert racks(world.schedule(*gang)) == {"n2"}


def test_a_gang_that_awaits_its_pods_holds_nothing_and_says_so_if_it_has_no_place_any_more():
    world = World(four_racks(), members("g", 4))
    world.tick(world.engine.settings.hold_seconds + 1.0)
    lost = "gang default/g lost its plan: kube-scheduler did not bring every member in time"
    assert (world.held, world.gang().reporting.sentence) == ({}, lost)
    fillers = [pod(f"f{rack}", on=f"n{rack}0", scheduler="someone-else") for rack in range(4)]
    world.put(*fillers)
    world.tick(LOOK_SECONDS)
    world.tick()
    sentence = world.gang().reporting.sentence
    assert sentence.startswith("gang default/g cannot be placed: 3 of 4 pods fit in one ")
    world.delete(fillers[2])
    world.tick(LOOK_SECONDS)
    world.tick()
    assert (world.held, world.gang().reporting.sentence) == ({}, lost)
    world.filter(world.pods["uid-g0"])
    for number in range(1, 4):
        world.filter(world.pods[f"uid-g{number}"])
    world.tick()
    assert len(world.held) == 4


def test_a_foreign_bind_onto_held_capacity_loses_the_plan_and_another_place_is_found():
    world = World(four_racks())
    gang = members("g", 4)
    world.put(*gang)
    taken = world.held["uid-g0"]
    world.put(pod("thief", on=taken, scheduler="someone-else"))
    assert world.held == {}
    world.tick(2.0)
    assert racks(world.schedule(*gang)) == {"n1"}


def test_a_gang_whose_capacity_is_taken_again_and_again_does_not_wait_longer_each_time():
    world = World(four_racks(), members("g", 4), retry_seconds=1.0, retry_seconds_most=60.0)
    for number in range(10):
        world.tick(1.1)
        thief = pod(f"thief{number}", on=world.held["uid-g0"], scheduler="someone-else")
        world.put(thief)
        assert world.held == {}
        world.delete(thief)
    world.tick(1.1)
    assert len(world.held) == 4


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({"is_ready": False}, id="not_ready"),
        pytest.param({"is_unschedulable": True}, id="cordoned"),
        pytest.param({"allocatable": (("cpu", 64_000), ("pods", 110))}, id="lost_its_gpus"),
    ],
)
def test_a_planned_node_that_closes_or_shrinks_loses_the_plan(change):
    nodes = four_racks()
    world = World(nodes)
    world.put(*members("g", 4))
    world.put(msgspec.structs.replace(nodes[0], **change))
    assert world.held == {}
    world.tick(2.0)
    assert {on[:2] for on in world.held.values()} == {"n1"}


def test_a_plan_that_a_node_has_too_little_for_by_now_says_so_and_blames_no_one():
    """As while a device plugin begins anew: the kubelet offers none of its devices."""
    nodes = four_racks()
    world = World(nodes)
    pods = members("g", 4)
    world.put(*pods)
    world.put(msgspec.structs.replace(nodes[0], allocatable=(("cpu", 64_000), ("pods", 110))))
    assert sentence(world, pods[0].uid) == (
        "gang default/g lost its plan: node n00 has less by now than is held there"
    )


def test_a_deleted_node_loses_the_plan():
    nodes = four_racks()
    world = World(nodes)
    world.put(*members("g", 4))
    world.delete(nodes[0])
    world.tick(2.0)
    assert {on[:2] for on in world.held.values()} == {"n1"}


def test_a_member_deleted_before_the_start_ends_every_hold_until_it_is_replaced():
    world = World(four_racks())
    gang = members("g", 3)
    world.put(*gang)
    world.bind(gang[0], world.filter(gang[0]).node)
    world.delete(gang[2])
    assert world.held == {}
    assert world.refused == ["uid-g0"]
    late = pod("late", annotations=group("g", 3, RACK))
    world.put(late)
    world.tick(2.0)
    assert len(world.schedule(gang[0], gang[1], late)) == 3


def test_a_plan_nobody_asks_for_is_given_up_after_a_while():
    world = World(four_racks(), hold_seconds=60.0)
    world.put(*members("g", 4))
    assert len(world.held) == 4
    world.tick(61.0)
    assert world.held == {}


def test_a_failed_bind_keeps_its_slot_and_is_bound_when_it_comes_back():
    world = World(four_racks())
    gang = members("g", 2)
    world.put(*gang)
    nodes = [world.filter(member).node for member in gang]
    world.bind(gang[0], nodes[0])
    binds = world.bind(gang[1], nodes[1])
    world.confirm(bind for bind in binds if bind.uid == gang[0].uid)
    world._take(world.engine.bind_finished(gang[1].uid, BindFailed("503"), world.now))
    assert world.held == {gang[1].uid: nodes[1]}
    assert world.schedule(gang[1]) == {"g1": nodes[1]}


def test_a_lost_plan_does_not_take_back_a_binding_under_way():
    nodes = four_racks()
    world = World(nodes)
    gang = members("g", 2)
    world.put(*gang)
    on = {member.uid: world.filter(member).node for member in gang}
    world.bind(gang[0], on[gang[0].uid])
    binds = world.bind(gang[1], on[gang[1].uid])
    world.put(*(msgspec.structs.replace(n, is_unschedulable=True) for n in nodes[:4]))
    assert world.held == on
    world.confirm(binds)
    world.tick()
    assert world.engine.gangs_by_phase()["running"] == 1


def test_a_pinned_member_is_not_woken_again():
    world = World(four_racks(), rewake_seconds=10.0)
    gang = members("g", 2)
    world.filter(gang[0])
    world.put(*gang)
    world.filter(gang[0])
    world.tick(11.0)
    assert world.woken == ["g0"]


def test_a_rejected_member_that_does_not_come_back_is_woken_again():
    world = World(four_racks(), rewake_seconds=10.0)
    gang = members("g", 2)
    world.filter(gang[0])
    world.put(*gang)
    world.tick(11.0)
    assert world.woken == ["g0", "g0"]


def test_asking_again_and_again_without_getting_anywhere_does_not_hold_for_ever():
    world = World(four_racks(), hold_seconds=60.0)
    gang = members("g", 2)
    world.put(*gang)
    held = []
    for _ in range(8):
        world.filter(gang[0])
        world.tick(10.0)
        held.append(len(world.held))
    assert 0 in held


class Counting(Planner):
    """Counts its searches for single pods."""

    __slots__ = ()
    singles: ClassVar[list[str]] = []

    def _searched(self, gang, offer, members, **how):
        if members is not None and len(members) == 1:
            self.singles.append(members[0].pod.uid)
        return Planner._searched(self, gang, offer, members, **how)


def test_a_gang_that_runs_searches_once_for_each_kind_of_pod_that_finds_no_place():
    first = msgspec.structs.replace(members("g", 31)[0], node="n00", phase="Running")
    world = World(four_racks(), [first])
    world.engine.planner.__class__ = Counting
    said = group("g", 31, RACK)
    large = [pod(f"l{at}", gpus=8 + at % 3, cpu=10**9, annotations=said) for at in range(28)]
    small = [pod(f"s{at}", gpus=1, annotations=said) for at in range(2)]
    world.put(*large[:27], *small)
    Counting.singles.clear()
    world.put(large[27])
    world.tick()
    assert set(world.held) == {"uid-s0", "uid-s1"}
    assert len(Counting.singles) <= 2 * (3 + 2)  # with the room of absent pods and without


# -- pods of a gang that runs, where not all of them have a place ----------------------------------


def half_run(pods: int, nodes: int, **more) -> World:
    """A Corral that starts: a pod runs on each of the first nodes, and as many wait."""
    annotations = group("g", 2 * pods)
    names = [f"n{at:03}" for at in range(nodes)]
    running = [pod(f"r{at:03}", annotations=annotations, on=names[at]) for at in range(pods)]
    waiting = [pod(f"w{at:03}", annotations=annotations, **more) for at in range(pods)]
    return World([node(name) for name in names], [*running, *waiting])


def planned(world: World) -> set[str]:
    (gang,) = world.engine.gangs.by_key.values()
    return {uid.removeprefix("uid-") for uid in gang.plan.nodes}


@pytest.mark.parametrize("free", [0, 1, 4, 7])
def test_as_many_as_fit_have_a_place_and_the_first_ones_come_first(free):
    assert planned(half_run(8, 8 + free)) == {f"w{at:03}" for at in range(free)}


def test_pods_of_a_kind_that_fits_nowhere_keep_no_others_from_their_place():
    world = half_run(4, 6)
    world.put(*(pod(f"a{at}", gpus=9, annotations=group("g", 8)) for at in range(2)))
    assert planned(world) == {"w000", "w001"}


def test_pods_narrowed_to_nodes_that_are_full_keep_no_others_from_their_place():
    def narrowed(name: str) -> Shape:
        return Shape(terms=(Term(fields=(Requirement("metadata.name", "In", (name,)),)),))

    annotations = group("g", 8, **{BORN: NODES})
    names = [f"n{at}" for at in range(6)]
    running = [pod(f"r{at}", annotations=annotations, on=names[at]) for at in range(4)]
    waiting = [
        pod(f"w{at}", annotations=annotations, shape=narrowed(names[at + 2])) for at in range(4)
    ]
    world = World([node(name) for name in names], [*running, *waiting])
    (gang,) = world.engine.gangs.by_key.values()
    assert gang.plan.nodes == {"uid-w2": "n4", "uid-w3": "n5"}


def test_a_place_for_all_but_one_is_found_in_as_many_steps_as_there_are_pods():
    def steps(pods: int) -> int:
        worlds = list[World]()
        lines = lines_run(lambda: worlds.append(half_run(pods, 2 * pods - 1)))
        assert len(planned(worlds[0])) == pods - 1
        return lines

    assert steps(80) < 4.5 * steps(20)
