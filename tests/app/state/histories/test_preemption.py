"""kube-scheduler preempts for ordinary pods: as few gangs as possible lose as little as possible.

Nodes of 8 GPUs, pods of 8 unless it says otherwise, of priority 0; `hp` is of priority 1000.
"""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from app.kube.core.objects import Owner
from app.kube.watch.events import Applied
from app.state.effects import EmitEvent
from app.state.filter_result import Passed, Rejected, Victims
from tests.app.state.preemptor import Preemptors, hp, rack, running
from tests.app.state.stories import finish
from tests.app.state.world import Names, World, members
from tests.records import GPU, RACK, group, node, pod

DAEMON_SET = Owner("apps/v1", "DaemonSet", "agent", "uid-agent")


def test_a_pod_that_needs_one_node_of_a_gang_takes_one_member():
    world = running(World(rack()), members("g", 8))
    preemptors = Preemptors(world, hp())
    preemptors.play()
    assert len(preemptors.killed) == 1
    assert preemptors.bound.keys() == {"hp"}
    assert len(world.gang("g").running) == 7
    preemptors.play(600)  # ten minutes later
    assert len(preemptors.killed) == 1


def test_the_replacement_of_the_victim_waits_and_kills_nobody():
    world = running(World(rack()), members("g", 8))
    preemptors = Preemptors(world, hp(), is_slow=True)
    preemptors.play(2)
    (killed,) = preemptors.killed
    again = pod("again", annotations=group("g", 8, RACK))
    world.put(again)
    preemptors.end_victims()
    world.tick()
    assert isinstance(world.filter(again), Rejected)
    preemptors.play()
    assert preemptors.killed == [killed]
    assert preemptors.bound.keys() == {"hp"}
    world.delete(world.pods["uid-hp"])
    world.tick(1.0)
    assert world.schedule(again).keys() == {"again"}  # in the rack again, once there is room


def test_where_a_pod_of_its_own_would_do_no_gang_loses_a_member():
    single = pod("single", created="2025-01-01T00:00:00Z")
    world = running(World([*rack(), node("b0/r1/n10")]), members("g", 8))
    world.put(replace(single, node="n10"))
    preemptors = Preemptors(world, hp())
    preemptors.play()
    assert preemptors.killed == ["single"]


@pytest.mark.parametrize(
    ("setting", "killed"), [("by_priority", "g"), ("last", "single"), ("never", "single")]
)
def test_priority_or_whole_gangs_come_first_as_set(setting, killed):
    world = running(World([*rack(), node("b0/r1/n10")], gangs_as_victims=setting), members("g", 8))
    world.put(pod("single", priority=500, on="n10"))
    preemptors = Preemptors(world, hp())
    preemptors.play()
    assert [name[: len(killed)] for name in preemptors.killed] == [killed]


def test_with_never_a_pod_waits_where_only_members_could_go():
    world = running(World(rack(), gangs_as_victims="never"), members("g", 8))
    preemptors = Preemptors(world, hp())
    preemptors.play()
    assert (preemptors.killed, preemptors.bound) == ([], {})


@pytest.mark.parametrize("pauses", [0, 30])
def test_two_preemptors_break_one_gang_and_not_two(pauses):
    nodes = [*rack(0, 4), *rack(1, 4)]
    world = running(World(nodes), members("g", 4), members("h", 4))
    preemptors = Preemptors(world, hp("hp0"))
    preemptors.play(pauses or 1)
    second = hp("hp1")
    preemptors.pods[second.uid] = second
    world.put(second)
    preemptors.play()
    assert len(preemptors.killed) == 2
    assert len({name[0] for name in preemptors.killed}) == 1
    assert preemptors.bound.keys() == {"hp0", "hp1"}


def test_a_hundred_preemptors_kill_as_many_pods_as_there_are_nodes_and_then_no_more():
    nodes = [each for number in range(4) for each in rack(number, 4)]
    gangs = [members(f"g{number}", 4) for number in range(4)]
    world = running(World(nodes), *gangs)
    preemptors = Preemptors(world, *(hp(f"hp{number}") for number in range(20)))
    preemptors.play(40)
    assert len(preemptors.killed) == 16
    assert len(preemptors.bound) == 16
    preemptors.play(40)
    assert len(preemptors.killed) == 16


def test_what_is_held_for_a_gang_yields_to_a_pod_that_has_no_other_node():
    world = World(rack(0, 2))
    world.put(*members("g", 2))
    assert set(world.held.values()) == {"n00", "n01"}
    preemptors = Preemptors(world, pod("equal"), hp())
    preemptors.play(1)
    assert preemptors.killed == []
    assert preemptors.bound.keys() == {"hp"}
    assert world.held == {}


def test_a_pod_of_higher_priority_leaves_what_is_held_alone_where_it_has_another_node():
    world = World([*rack(0, 2), node("b0/r1/n10")])
    world.put(*members("g", 2))
    held = dict(world.held)
    answer = world.filter(hp())
    assert isinstance(answer, Passed)
    assert answer.without == {"n00", "n01"}
    Preemptors(world, hp()).play(1)
    assert world.held == held


def test_of_two_gangs_held_on_a_node_the_one_of_lower_priority_yields():
    world = World(rack(0, 1))
    low = [replace(each, priority=10) for each in members("low", 1, gpus=4)]
    high = [replace(each, priority=100) for each in members("high", 1, gpus=4)]
    world.put(*high, *low)  # the one of lower priority is the older plan
    assert len(world.held) == 2
    preemptors = Preemptors(world, hp(priority=50, gpus=4))
    preemptors.play(2)
    assert preemptors.bound == {"hp": "n00"}
    assert world.held == {"uid-high0": "n00"}


def test_a_gang_whose_members_wait_at_bind_gives_way_and_no_pod_ends():
    world = World(rack(0, 2))
    gang = members("g", 2)
    world.put(*gang)
    first = gang[0]
    world.bind(first, world.filter(first).node)
    preemptors = Preemptors(world, hp("hp0"), hp("hp1"))
    preemptors.play(5)
    assert preemptors.killed == []
    assert preemptors.bound.keys() == {"hp0", "hp1"}
    assert first.uid in world.refused
    assert world.held == {}


def test_while_victims_end_the_preemptor_gets_no_others():
    world = running(World(rack(0, 4)), members("g", 4))
    preemptors = Preemptors(world, hp(), is_slow=True)
    preemptors.play(1)
    waiting = world.pods["uid-hp"]
    offered = {"n01": Victims(("uid-g1",), 0), "n02": Victims(("uid-g2",), 0)}
    world.put(replace(waiting, nominated_node=""))  # lost on its way
    assert world.engine.preempt(world.pods["uid-hp"], offered, world.now)[0] == {}
    preemptors.end_victims()
    preemptors.play()
    assert len(preemptors.killed) == 1
    assert preemptors.bound.keys() == {"hp"}


def test_after_a_restart_the_nominated_node_and_who_ends_there_say_the_same():
    ending = replace(pod("g0", on="n00", annotations=group("g", 2, RACK)), is_terminating=True)
    other = pod("g1", on="n01", annotations=group("g", 2, RACK))
    waiting = replace(hp(), nominated_node="n00")
    world = World(rack(0, 2), [ending, other, waiting])
    offered = {"n01": Victims((other.uid,), 0)}
    assert world.engine.preempt(waiting, offered, world.now)[0] == {}
    world.delete(ending)
    world.tick(1.0)
    assert world.held == {}  # the place is not kept against the pod it was freed for
    assert isinstance(answer := world.filter(waiting, ["n00"]), Passed)
    assert answer.without == frozenset()


def test_a_place_that_was_kept_before_the_nomination_was_seen_is_given_up():
    world = running(World(rack(0, 2)), members("g", 2))
    waiting = hp(scheduler="another")  # its preemption asks no extender of ours
    world.put(waiting)
    world.delete(world.pods["uid-g0"])
    assert set(world.held.values()) == {"n00"}
    world.put(replace(waiting, nominated_node="n00"))
    assert world.held == {}
    world.tick(1.0)
    assert world.held == {}


def test_equal_priority_takes_nothing_that_is_held():
    world = World(rack(0, 2))
    gang = [replace(each, priority=1000) for each in members("g", 2)]
    world.put(*gang)
    preemptors = Preemptors(world, hp())
    preemptors.play(5)
    assert preemptors.bound == {}
    assert len(world.held) == 2


def test_members_that_wait_preempt_nobody():
    world = running(World(rack(0, 2)), members("g", 2))
    late = [replace(each, priority=1000) for each in members("late", 1)]
    world.put(*late)
    offered = {"n00": Victims(("uid-g0",), 0)}
    assert world.engine.preempt(late[0], offered, world.now)[0] == {}


def test_a_gang_counts_as_its_most_important_pod():
    gang = members("g", 2)
    gang[1] = replace(gang[1], priority=1000)
    world = running(World(rack(0, 2)), gang)
    offered = {world.pods["uid-g0"].node: Victims(("uid-g0",), 0)}
    waiting = hp()
    world.put(waiting)
    assert world.engine.preempt(waiting, offered, world.now)[0] == {}
    higher = hp("higher", priority=1001)
    world.put(higher)
    assert world.engine.preempt(higher, offered, world.now)[0] == offered


@pytest.mark.parametrize(
    "kept",
    [
        pytest.param(pod("v", on="n00", owner=DAEMON_SET), id="of_a_daemon_set"),
        pytest.param(pod("v", on="n00", owner=Owner("v1", "Node", "n00", "u")), id="of_a_kubelet"),
        pytest.param(replace(pod("v", on="n00"), namespace="kube-system"), id="of_the_system"),
    ],
)
def test_some_pods_are_never_victims(kept):
    world = World(rack(0, 1))
    world.put(kept)
    waiting = hp()
    world.put(waiting)
    offered = {"n00": Victims((kept.uid,), 0)}
    assert world.engine.preempt(waiting, offered, world.now)[0] == {}


@pytest.mark.parametrize(
    ("namespaces", "may_go"),
    [((), True), (("other",), True), (("default",), False), (("*",), False)],
)
def test_a_label_keeps_pods_from_being_victims_where_the_operator_lets_it(namespaces, may_go):
    world = World(rack(0, 1), unpreemptible_in=namespaces)
    waiting = hp()
    world.put(pod("v", on="n00", labels={"corral.dev/preemptible": "false"}), waiting)
    offered = {"n00": Victims(("uid-v",), 0)}
    answer = world.engine.preempt(waiting, offered, world.now)[0]
    assert answer == (offered if may_go else {})


def test_a_node_without_victims_or_with_unknown_ones_is_left_out():
    world = World(rack(0, 3))
    world.put(pod("v", on="n00"), hp())
    waiting = world.pods["uid-hp"]
    none, unknown = Victims((), 0), Victims(("uid-nobody",), 0)
    offered = {"n01": none, "n02": unknown, "n00": Victims(("uid-v",), 0)}
    assert world.engine.preempt(waiting, offered, world.now)[0] == {"n00": offered["n00"]}


def test_of_a_group_over_several_nodes_only_the_pods_of_the_node_are_answered():
    world = World(rack(0, 2))
    world.put(pod("v0", on="n00"), pod("v1", on="n01"), hp())
    offered = {"n00": Victims(("uid-v0", "uid-v1"), 0)}
    answer = world.engine.preempt(world.pods["uid-hp"], offered, world.now)[0]
    assert answer == {"n00": Victims(("uid-v0",), 0)}


def test_a_node_that_would_not_do_is_left_out():
    world = World(rack(0, 2))
    higher = [replace(each, priority=5000) for each in members("g", 1, gpus=4)]
    world.put(*higher)  # held on n00
    world.put(pod("v0", gpus=4, on="n00"), pod("v1", on="n01", priority=500), hp())
    (held_on,) = world.held.values()
    assert held_on == "n00"
    offered = {"n00": Victims(("uid-v0",), 0), "n01": Victims(("uid-v1",), 0)}
    answer = world.engine.preempt(world.pods["uid-hp"], offered, world.now)[0]
    assert answer.keys() == {"n01"}  # though its pod is of higher priority


def test_the_owner_of_a_gang_is_told_who_took_its_place():
    world = running(World(rack(0, 4)), members("g", 4))
    preemptors = Preemptors(world, hp())
    preemptors.play(1)
    (event,) = [
        each
        for each in world.effects
        if isinstance(each, EmitEvent) and each.reason == "MemberPreempted"
    ]
    (killed,) = preemptors.killed
    on = preemptors.world.pods["uid-hp"].nominated_node or preemptors.bound["hp"]
    assert event.sentence == (
        f"member default/{killed} gives way to pod default/hp (priority 1000 over 0) on node {on};"
        " the gang keeps 3 of 4 running"
    )


def test_after_three_grants_in_vain_a_pod_gets_none_for_ten_minutes():
    world = World(rack(0, 1))
    waiting = hp()
    world.put(waiting)
    answers = []
    for number in range(5):
        victim = pod(f"v{number}", on="n00")
        world.put(victim)
        offered = {"n00": Victims((victim.uid,), 0)}
        answers.append(bool(world.engine.preempt(waiting, offered, world.now)[0]))
        world.delete(victim)
        world.tick(61.0)
        world.tick(1.0)
    assert answers == [True, True, True, False, False]
    world.tick(600.0)
    victim = pod("v", on="n00")
    world.put(victim)
    assert world.engine.preempt(waiting, {"n00": Victims((victim.uid,), 0)}, world.now)[0]


def test_a_preemptor_that_does_not_come_for_its_room_is_requeued_once():
    """Of a victim whose binding was under way kube-scheduler sees no end that frees a node."""
    world = World(rack(0, 2))
    gang = members("g", 2)
    world.put(*gang, hp())
    world.tick()
    node_of_first = world.filter(gang[0]).node  # kube-scheduler counts it there from now on
    offered = {node_of_first: Victims((gang[0].uid,), 0)}
    answer, _ = world.engine.preempt(world.pods["uid-hp"], offered, world.now)
    assert answer.keys() == {node_of_first}
    world.delete(*gang)
    world.tick(0.1)
    world.tick(9.8)
    assert world.woken == []
    world.tick(0.2)
    assert world.woken == ["hp"]
    for _ in range(40):
        world.tick(1.0)
    assert world.woken == ["hp"]


def test_a_preemptor_waits_for_its_victims_to_end_without_being_requeued():
    world = World(rack(0, 1), [pod("v", on="n00")])
    preemptors = Preemptors(world, hp(), is_slow=True)
    preemptors.play(40)
    assert world.woken == []
    preemptors.end_victims()
    preemptors.play(2)
    assert preemptors.bound.keys() == {"hp"}
    assert world.woken == []


def test_a_grant_ends_with_its_node_and_with_its_pod():
    world = World(rack(0, 2))
    world.put(pod("v", on="n00"), hp())
    offered = {"n00": Victims(("uid-v",), 0)}
    world.engine.preempt(world.pods["uid-hp"], offered, world.now)
    assert world.engine.grants.of.keys() == {"uid-hp"}
    world.put(replace(world.engine.books.nodes["n00"], is_unschedulable=True))
    world.tick()
    assert world.engine.grants.of == {}
    world.put(replace(world.engine.books.nodes["n00"], is_unschedulable=False))
    world.engine.preempt(world.pods["uid-hp"], offered, world.now)
    assert world.engine.grants.of.keys() == {"uid-hp"}
    world.delete(world.pods["uid-hp"])
    assert world.engine.grants.of == {}
    gang = members("g", 1)
    world.delete(world.pods["uid-v"])
    world.put(*gang)
    finish(world)
    assert world.pods["uid-g0"].node


def test_no_plan_takes_the_room_that_a_preemption_frees():
    world = World(rack(0, 1), [pod("v", on="n00")])
    world.put(hp())
    offered = {"n00": Victims(("uid-v",), 0)}
    world.engine.preempt(world.pods["uid-hp"], offered, world.now)
    world.put(*members("g", 1))
    world.delete(world.pods["uid-v"])  # before the watch shows the nomination
    world.tick(1.0)
    assert world.held == {}
    high = [replace(each, priority=5000) for each in members("high", 1)]
    world.put(*high)
    world.tick(1.0)
    assert world.held == {"uid-high0": "n00"}


def test_before_the_lists_are_in_only_nodes_without_gangs_are_left_to_kube_scheduler():
    world = World()
    engine = world.built()
    waiting = hp()
    offered = {"n00": Victims(("uid-v",), 0), "n01": Victims((), 0)}
    assert engine.preempt(waiting, offered, 0.0)[0] == {"n00": offered["n00"]}
    (member,) = members("other", 1, priority=1000)
    assert engine.preempt(member, offered, 0.0)[0] == {}
    for record in members("g", 1):
        engine.apply(Applied(replace(record, node="n00")), 0.0)
    assert engine.preempt(waiting, offered, 0.0)[0] == {}


def test_a_member_that_is_nominated_is_never_answered_with_an_error():
    world = World()
    engine = world.built()
    (member,) = members("g", 1)
    nominated = replace(member, nominated_node="n00")
    assert type(engine.filter(member, Names(["n00"]), 0.0)[0]).__name__ == "Failed"
    assert type(engine.filter(nominated, Names(["n00"]), 0.0)[0]).__name__ == "Rejected"


def test_gpus_of_several_victims_on_a_node_are_added_up():
    world = World(rack(0, 1))
    world.put(*(pod(f"v{at}", gpus=4, on="n00") for at in range(2)), hp())
    some = {"n00": Victims(("uid-v0",), 0)}
    both = {"n00": Victims(("uid-v0", "uid-v1"), 0)}
    assert world.engine.preempt(world.pods["uid-hp"], some, world.now)[0] == {}
    assert world.engine.preempt(world.pods["uid-hp"], both, world.now)[0].keys() == {"n00"}
    assert dict(world.engine.books.nodes["n00"].allocatable)[GPU] == 8
