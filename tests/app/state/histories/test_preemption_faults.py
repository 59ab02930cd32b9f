"""Preemption when answers are lost, watches lag, nodes go, and others preempt as well.

Nodes of 8 GPUs, pods of 8 unless it says otherwise; `hp` is of priority 1000.
"""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from app.kube.watch.events import Listed
from app.state.answers import preempting
from app.state.answers.victim_cost import VictimCosts
from app.state.cache import room
from app.state.effects import Bind, EmitEvent
from app.state.filter_result import Passed, Victims
from tests.app.state.crews import CrewWorld, hands
from tests.app.state.histories.test_elastic import crew
from tests.app.state.preemptor import Preemptors, hp, rack, running
from tests.app.state.stories import finish, go
from tests.app.state.world import World, members
from tests.records import RACK, group, node, pod


def preempt(world, uid, offered):
    answer, effects = world.inputs.preempt(
        world.pods[uid], {n: Victims(tuple(v), 0) for n, v in offered.items()}, world.now
    )
    world._take(effects)
    return {n: v.uids for n, v in answer.items()}


# -- priorities below 0 ----------------------------------------------------------------------------


def test_a_pod_of_priority_0_takes_the_place_of_an_overprovisioning_pod_of_minus_10():
    world = World(rack(0, 1))
    world.put(pod("pause", priority=-10, on="n00"))
    preemptors = Preemptors(world, hp("web", priority=0))
    preemptors.play(5)
    assert preemptors.killed == ["pause"]
    assert preemptors.bound.keys() == {"web"}


# -- a DELETE of kube-scheduler's that did not come to pass ----------------------------------------


def test_a_preemptor_whose_victim_was_never_deleted_is_answered_again():
    world = World(rack(0, 1), [pod("v", on="n00")])
    world.put(hp())
    assert preempt(world, "uid-hp", {"n00": ["uid-v"]})
    # the NNN is written, then the DELETE fails, or kube-scheduler is restarted before it
    world.put(replace(world.pods["uid-hp"], nominated_node="n00"))
    for _ in range(3600):
        world.tick(1.0)
    assert preempt(world, "uid-hp", {"n00": ["uid-v"]})


def test_an_answer_that_nothing_came_of_counts_for_ten_seconds():
    world = World(rack(0, 1), [pod("v", on="n00")])
    world.put(hp())
    assert preempt(world, "uid-hp", {"n00": ["uid-v"]})
    world.tick(9.9)
    assert preempt(world, "uid-hp", {"n00": ["uid-v"]}) == {}
    world.tick(0.1)
    assert preempt(world, "uid-hp", {"n00": ["uid-v"]})


def test_a_lost_second_answer_does_not_stop_a_preemptor_for_ever():
    world = World(rack(0, 2), [pod("v0", on="n00"), pod("v1", on="n01")])
    world.put(hp())
    assert preempt(world, "uid-hp", {"n00": ["uid-v0"]})
    world.put(replace(world.pods["uid-hp"], nominated_node="n00"))
    world.delete(world.pods["uid-v0"])
    world.put(node("b0/r0/n00", is_cordoned=True))
    world.tick(1.0)
    assert preempt(world, "uid-hp", {"n01": ["uid-v1"]})  # timed out on its way: NNN stays n00
    for _ in range(3600):
        world.tick(1.0)
    assert preempt(world, "uid-hp", {"n01": ["uid-v1"]})


# -- the node dies while the victim terminates there -----------------------------------------------


@pytest.mark.parametrize("why", [{"is_ready": False}, {"is_cordoned": True}])
def test_a_node_that_dies_with_the_victim_terminating_does_not_stop_the_preemptor(why):
    world = World(rack(0, 2), [pod("v0", on="n00"), pod("v1", on="n01")])
    world.put(hp())
    assert preempt(world, "uid-hp", {"n00": ["uid-v0"]})
    world.put(replace(world.pods["uid-hp"], nominated_node="n00"))
    world.put(replace(world.pods["uid-v0"], is_terminating=True))
    world.put(node("b0/r0/n00", **why))
    for _ in range(3600):
        world.tick(1.0)
    assert preempt(world, "uid-hp", {"n01": ["uid-v1"]})


# -- NNN lost while victims take longer than 10 s --------------------------------------------------


def test_while_victims_end_slowly_and_the_nomination_is_lost_nobody_else_goes():
    world = World(rack(0, 2), [pod("v0", on="n00"), pod("v1", on="n01")])
    world.put(hp())
    assert preempt(world, "uid-hp", {"n00": ["uid-v0"]})
    world.put(replace(world.pods["uid-hp"], nominated_node="n00"))
    world.put(replace(world.pods["uid-v0"], is_terminating=True))  # grace: 60 s
    world.put(replace(world.pods["uid-hp"], nominated_node=""))  # an extender timed out
    for _ in range(20):
        world.tick(1.0)
    assert preempt(world, "uid-hp", {"n01": ["uid-v1"]}) == {}


# -- kube-scheduler is behind our watch ------------------------------------------------------------


def test_the_same_question_asked_again_after_the_victim_is_gone_kills_nobody_else():
    world = World(rack(0, 2), [pod("v0", on="n00"), pod("v1", on="n01")])
    world.put(hp())
    offered = {"n00": ["uid-v0"], "n01": ["uid-v1"]}
    (first,) = preempt(world, "uid-hp", offered)
    world.delete(world.pods[f"uid-v{first[-1]}"])  # our watch is ahead of kube-scheduler's
    assert preempt(world, "uid-hp", offered) == {}


def test_a_pod_that_is_bound_already_has_no_victims():
    world = World(rack(0, 2), [pod("v1", on="n01")])
    waiting = hp()
    world.put(waiting)
    world.confirm(world.bind(waiting, "n00"))
    assert world.pods["uid-hp"].node == "n00"
    answer = world.engine.preempt(waiting, {"n01": Victims(("uid-v1",), 0)}, world.now)[0]
    assert answer == {}


# -- nominations that live for ever ----------------------------------------------------------------


def test_the_nomination_of_another_schedulers_pod_goes_with_a_list_that_leaves_it_out():
    other = replace(hp(scheduler="another"), nominated_node="n00")
    world = World(rack(0, 1), [other])
    world.apply(Listed("Pod", ()))  # it was deleted while the watch was cut
    gang = members("g", 1)
    world.put(*gang)
    finish(world)
    assert not world.engine.nominations
    assert world.pods["uid-g0"].node == "n00"


def test_an_old_nomination_of_a_member_that_waits_keeps_nobody_off_its_node():
    # as an older Corral's /preempt, or a kube-scheduler killed while it bound, has left it
    stale = replace(members("incomplete", 2)[0], nominated_node="n00")
    world = World(rack(0, 1), [stale])
    gang = members("g", 1)
    world.put(*gang)
    finish(world)
    assert world.pods["uid-g0"].node == "n00"


# -- capacity of bindings under way ----------------------------------------------------------------


def test_a_binding_that_is_posted_does_not_yield_to_higher_priority():
    world = World(rack(0, 1))
    (member,) = gang = members("g", 1)
    world.put(*gang)
    posted = world.bind(member, world.filter(member).node)
    assert [type(each) for each in posted] == [Bind]  # at the API server, not seen yet
    world.put(hp())
    answer = world.filter(world.pods["uid-hp"])  # kube-scheduler's /bind timed out
    assert isinstance(answer, Passed)
    effects = world.bind(world.pods["uid-hp"], "n00")
    assert not any(isinstance(each, Bind) for each in effects), "two pods of 8 GPUs on n00"


def test_an_ordinary_pods_binding_under_way_does_not_yield_either():
    world = World(rack(0, 1))
    low = pod("low")
    world.put(low, hp())
    assert any(isinstance(each, Bind) for each in world.bind(low, "n00"))
    effects = world.bind(world.pods["uid-hp"], "n00")
    assert not any(isinstance(each, Bind) for each in effects), "two pods of 8 GPUs on n00"


def test_a_gang_of_higher_priority_keeps_its_plan():
    world = World(rack(0, 1))
    (low,) = members("low", 1, gpus=4)
    high = [replace(each, priority=5000) for each in members("high", 1, gpus=4)]
    world.put(low, *high)
    world.bind(low, world.filter(low).node)  # posted
    world.put(hp(gpus=4))
    world.bind(world.pods["uid-hp"], "n00")
    assert "uid-high0" in world.held


# -- victims that need not die ---------------------------------------------------------------------


def test_no_running_pod_ends_where_a_gang_waits_at_bind_that_could_give_way():
    world = World([*rack(0, 1), node("b0/r1/n10"), node("b0/r1/n11", gpus=0)])
    world.put(pod("single", on="n00"))
    annotations = group("g", 2, RACK)
    gang = [pod("g0", annotations=annotations), pod("g1", gpus=0, annotations=annotations)]
    world.put(*gang)
    assert world.held["uid-g0"] == "n10"
    world.bind(gang[0], world.filter(gang[0]).node)
    preemptors = Preemptors(world, hp())
    preemptors.play(5)
    assert preemptors.killed == []
    assert preemptors.bound.keys() == {"hp"}


def test_a_gang_of_which_a_pod_has_succeeded_is_not_broken_before_a_single_pod_goes():
    world = running(World(rack(0, 3)), members("g", 2, created="2026-02-01T00:00:00Z"))
    world.put(replace(world.pods["uid-g1"], phase="Succeeded"))
    (free,) = {"n00", "n01", "n02"} - {world.pods["uid-g0"].node, world.pods["uid-g1"].node}
    world.put(pod("s0", on=free), pod("s1", on=world.pods["uid-g1"].node))
    world.tick(1.0)
    preemptors = Preemptors(world, hp())
    preemptors.play(5)
    assert preemptors.killed in (["s0"], ["s1"])


def test_a_surplus_pod_of_an_elastic_gang_goes_before_a_pod_that_breaks_a_rigid_one():
    def born(pods, at):
        return [replace(each, created=at) for each in pods]

    world = CrewWorld(
        {"e": crew(3, 1), "r": crew(3, 3)},
        [*rack(0, 3), *rack(1, 3)],
        [
            *born(hands("e", "w", 3), "2026-01-01T00:00:00Z"),
            *born(hands("r", "w", 3), "2026-02-01T00:00:00Z"),
        ],
    )
    assert len(go(world)) == 6
    preemptors = Preemptors(world, hp())
    preemptors.play(5)
    assert [name[0] for name in preemptors.killed] == ["e"]


def test_a_node_whose_pod_ends_already_is_waited_for():
    world = World(rack(0, 2), [pod("t", on="n00", is_terminating=True), pod("v", on="n01")])
    world.put(hp())
    # kube-scheduler names pods that terminate as victims too, and then skips them
    answer = preempt(world, "uid-hp", {"n00": ["uid-t"], "n01": ["uid-v"]})
    assert answer in ({"n00": ("uid-t",)}, {})


def test_a_pod_that_may_never_go_may_not_go_while_it_waits_at_bind_either():
    world = World([node("b0/r0/n00"), node("b0/r0/n01", gpus=0)], unpreemptible_in=("default",))
    kept = {"corral.dev/preemptible": "false"}
    annotations = group("g", 2, RACK)
    gang = [
        pod("g0", gpus=4, annotations=annotations, labels=kept),
        pod("g1", gpus=0, annotations=annotations, labels=kept, cpu=64_000),
    ]
    world.put(*gang)
    assert world.held == {"uid-g0": "n00", "uid-g1": "n01"}
    world.bind(gang[0], "n00")
    world.put(pod("v", gpus=4, on="n00"), hp())
    assert preempt(world, "uid-hp", {"n00": ["uid-v", "uid-g0"]}) == {}


# -- a gang that nobody tells of room --------------------------------------------------------------


def test_a_gang_is_tried_where_a_grant_ended_at_the_next_question():
    world = World(rack(0, 1), [pod("v", on="n00")])
    world.put(hp())
    assert preempt(world, "uid-hp", {"n00": ["uid-v"]})
    world.put(replace(world.pods["uid-hp"], nominated_node="n00"))
    world.put(*members("g", 1))
    world.delete(world.pods["uid-v"])
    world.tick(1.0)
    world.put(replace(world.pods["uid-hp"], nominated_node=""))  # an extender timed out
    world.tick(1.0)
    assert preempt(world, "uid-hp", {"n09": ["uid-x"]}) == {}  # its own filters refuse n00
    for _ in range(5):
        world.tick(1.0)
    assert world.held == {"uid-g0": "n00"}


# -- only so many are judged -----------------------------------------------------------------------


def test_nodes_that_cannot_be_answered_do_not_use_up_what_is_judged(monkeypatch):
    monkeypatch.setattr(preempting, "MOST_JUDGED", 4)
    world = running(
        World([*rack(0, 5), node("b0/r9/z9")], gangs_as_victims="never"), members("g", 5)
    )
    world.put(pod("single", on="z9"))
    preemptors = Preemptors(world, hp())
    preemptors.play(10)
    assert preemptors.killed == ["single"]


@pytest.mark.parametrize(
    ("bound", "priorities", "answered"),
    [
        pytest.param("MOST_JUDGED", (9, 8, 7, 6, 5), "n02", id="judged"),
        pytest.param("MOST_LOOKED_AT", (9, 8, 7, 6, 5), "n01", id="looked_at"),
        pytest.param("MOST_LOOKED_AT", (5000, 5000, 7, 6, 5), None, id="those_in_vain_are_too"),
        pytest.param("MOST_JUDGED", (5000, 9, 8, 7, 6), "n03", id="those_in_vain_are_not_judged"),
    ],
)
def test_of_the_nodes_offered_so_many_victims_decide(monkeypatch, bound, priorities, answered):
    """One for each node: the later ones would cost less."""
    monkeypatch.setattr(preempting, bound, 2)
    victims = [pod(f"v{at}", on=f"n0{at}", priority=each) for at, each in enumerate(priorities)]
    world = World(rack(0, 5), victims)
    world.put(hp())
    found = preempt(world, "uid-hp", {each.node: [each.uid] for each in victims})
    assert list(found) == ([answered] if answered else [])


def test_nodes_with_fewer_victims_are_judged_first(monkeypatch):
    monkeypatch.setattr(preempting, "MOST_LOOKED_AT", 2)
    several = [pod(f"v{at}", on="n00", gpus=4) for at in range(2)]
    world = World(rack(0, 2), [*several, pod("one", on="n01", priority=900)])
    world.put(hp())
    offered = {"n00": [each.uid for each in several], "n01": ["uid-one"]}
    assert list(preempt(world, "uid-hp", offered)) == ["n01"]


# -- costs -----------------------------------------------------------------------------------------


def test_what_a_gang_needs_is_counted_once_for_a_thousand_nodes(monkeypatch):
    counted = []
    needs_of = VictimCosts._needs_of
    monkeypatch.setattr(
        VictimCosts, "_needs_of", lambda *args: counted.append(args) or needs_of(*args)
    )
    nodes = 1000
    gang = [replace(each, node=f"n0{at}") for at, each in enumerate(members("g", nodes))]
    world = World([*rack(0, nodes), node("b0/r1/m0")], [*gang, pod("v", on="m0")])
    world.put(hp("other"), hp())
    assert preempt(world, "uid-other", {"m0": ["uid-v"]})
    assert preempt(world, "uid-hp", {each.node: [each.uid] for each in gang})
    assert len(counted) == 1


def test_where_nothing_is_held_for_lower_pods_no_held_node_is_looked_at_twice(monkeypatch):
    world = World(rack(0, 100))
    world.put(*members("g", 100))
    assert len(world.held) == 100
    low = pod("low")
    world.put(low)
    asked = []
    lacks = room._lacks
    monkeypatch.setattr(room, "_lacks", lambda *args: asked.append(args) or lacks(*args))
    answer = world.filter(low)
    assert isinstance(answer, Passed)
    assert len(answer.without) == 100
    assert len(asked) == 2  # all that is held, and what would be left of it: nothing more


# -- more ------------------------------------------------------------------------------------------


def test_a_second_preemptor_takes_the_other_pod_of_the_gang_that_is_broken_already():
    nodes = [node("b0/r0/n00"), node("b0/r1/n10")]
    world = running(World(nodes), members("g", 2, gpus=4), members("h", 2, gpus=4))
    assert world.pods["uid-g0"].node == world.pods["uid-g1"].node
    preemptors = Preemptors(world, hp("hp0", gpus=4), hp("hp1", gpus=4), is_slow=True)
    preemptors.play(5)
    preemptors.end_victims()
    preemptors.play(15)
    preemptors.end_victims()
    preemptors.play(15)
    assert preemptors.bound.keys() == {"hp0", "hp1"}
    assert len({name[0] for name in preemptors.killed}) == 1, preemptors.killed


def test_an_earmark_of_equal_priority_does_not_refuse_the_node_that_was_freed():
    world = World([*rack(0, 2), node("b0/r1/n10")], starvation_seconds=60.0)
    gang = [replace(each, priority=1000) for each in members("g", 2)]
    world.put(
        pod("v", on="n00", priority=10),
        pod("w", on="n01", priority=2000),
        pod("x", on="n10", priority=20),
        *gang,
    )
    for _ in range(50):
        world.tick(1.0)
    preemptors = Preemptors(world, hp(), is_slow=True)
    preemptors.play(20)
    preemptors.end_victims()
    preemptors.play(300)
    preemptors.end_victims()
    preemptors.play(30)
    assert preemptors.killed == ["v"]
    assert preemptors.bound == {"hp": "n00"}


def test_a_gang_whose_bindings_were_refused_is_not_planned_there_again_before_the_preemptor():
    world = World(rack(0, 2))
    gang = members("g", 2)
    world.put(*gang)
    node_of = dict(world.held)
    world.bind(gang[0], world.filter(gang[0]).node)
    other = pod("other", on=node_of["uid-g1"], gpus=0, cpu=1, priority=5000)
    world.put(hp(), other)
    on = node_of["uid-g0"]
    assert preempt(world, "uid-hp", {on: ["uid-g0"]}) == {}
    assert world.held == {}
    for _ in range(80):  # kube-scheduler's back-off of the preemptor: up to 10 s
        world.tick()
    assert on not in world.held.values()


def test_an_earlier_nomination_does_not_hide_the_room_that_is_freed_now():
    world = running(World(rack(0, 3)), members("g", 2))
    on = world.pods["uid-g0"].node
    (old,) = {"n00", "n01", "n02"} - {each.node for each in world.pods.values()}
    world.put(pod("v", on=old))
    world.put(replace(hp(), nominated_node=old))
    world.put(node(f"b0/r0/{old}", is_cordoned=True))
    world.tick(1.0)
    assert preempt(world, "uid-hp", {on: ["uid-g0"]})
    world.delete(world.pods["uid-g0"])  # before the watch shows the new nomination
    world.tick(1.0)
    assert on not in world.held.values()


def test_a_place_is_not_kept_against_a_pod_that_may_preempt_its_member():
    # another scheduler's preemptor of 500; the gang's other pod is of 1000
    gang = members("g", 2)
    gang[1] = replace(gang[1], priority=1000)
    world = running(World(rack(0, 2)), gang)
    waiting = hp(priority=500, scheduler="another")
    world.put(waiting)
    killed = 0
    victim = world.pods["uid-g0"]
    for number in range(5):
        world.put(replace(waiting, nominated_node=victim.node))
        world.delete(victim)
        killed += 1
        again = replace(gang[0], name=f"again{number}", uid=f"uid-again{number}")
        world.put(again)  # its Job is quicker than the other scheduler
        world.tick(1.0)
        if not world.schedule(again):
            break
        victim = world.pods[again.uid]
    assert killed == 1


def test_a_pod_that_others_end_for_in_vain_is_told_once_that_it_is_stopped():
    world = World(rack(0, 5), [pod(f"v{at}", on=f"n0{at}") for at in range(5)])
    world.put(hp())
    for at in range(3):
        assert preempt(world, "uid-hp", {f"n0{at}": [f"uid-v{at}"]})
        world.delete(world.pods[f"uid-v{at}"])
        world.put(node(f"b0/r0/n0{at}", is_cordoned=True))
        world.tick(1.0)
    for _ in range(2):
        assert preempt(world, "uid-hp", {"n03": ["uid-v3"]}) == {}
    told = [each for each in world.told(EmitEvent) if each.reason == "PreemptionStopped"]
    assert [each.about.name for each in told] == ["hp"]
    for _ in range(600):
        world.tick(1.0)
    assert preempt(world, "uid-hp", {"n03": ["uid-v3"]})


def test_an_event_that_still_shows_the_old_nomination_does_not_end_a_grant():
    world = World(rack(0, 3), [pod("v1", on="n01"), pod("v2", on="n02")])
    world.put(replace(hp(), nominated_node="n00"), node("b0/r0/n00", is_cordoned=True))
    world.tick(1.0)
    assert preempt(world, "uid-hp", {"n01": ["uid-v1"]})
    world.put(replace(world.pods["uid-hp"], annotations={"any": "thing"}))
    assert preempt(world, "uid-hp", {"n02": ["uid-v2"]}) == {}


def unseen_preemptor_of(world, first, on, unseen):
    """At /preempt a pod for which one member's binding would be refused; nothing is, so far."""
    held = dict(world.held)
    offered = {on: Victims((first.uid,), 0)}
    assert world.engine.preempt(unseen, offered, world.now) == ({}, [])
    assert (world.held, world.refused) == (held, [])


def gang_with_one_at_bind():
    world = World(rack(nodes=2))
    gang = members("g", 2)
    world.put(*gang)
    on = world.filter(gang[0]).node
    world.bind(gang[0], on)
    return world, gang, on


def test_a_pod_that_the_watch_does_not_show_ends_no_plan_before_it_does():
    world, (first, _), on = gang_with_one_at_bind()
    unseen = hp()
    unseen_preemptor_of(world, first, on, unseen)
    world.put(unseen)
    # kube-scheduler's own filters have rejected it: no patch makes it try the pod again.
    assert first.uid in world.refused
    assert preempt(world, unseen.uid, {on: [first.uid]}) == {}, "its node is free in a moment"


@pytest.mark.parametrize(
    "truth",
    [
        {"priority": 0},
        {"preempts": False},
        {"request": (("nvidia.com/gpu", 9),)},
        {"scheduler": "another"},
        {"annotations": group("hps", 1)},
    ],
    ids=["its_priority", "its_policy", "its_request", "its_scheduler", "its_gang"],
)
def test_what_a_request_says_of_an_unseen_pod_ends_no_plan_where_the_watch_says_otherwise(truth):
    world, (first, _), on = gang_with_one_at_bind()
    unseen = hp()
    unseen_preemptor_of(world, first, on, unseen)
    world.put(replace(unseen, **truth))
    world.tick()
    assert world.refused == []


def test_an_unseen_preemptor_ends_no_plan_once_the_gang_has_started():
    world, (first, second), on = gang_with_one_at_bind()
    unseen = hp()
    unseen_preemptor_of(world, first, on, unseen)
    world.confirm(world.bind(second, world.filter(second).node))
    world.put(unseen)
    world.tick()
    assert world.refused == []
    assert {each.uid for each in world.told(Bind)} == {first.uid, second.uid}
    assert world.engine.grants.of == {}, "no node is kept for it: its members run"


def test_of_unseen_preemptors_the_latest_are_remembered():
    world, (first, _), on = gang_with_one_at_bind()
    most = preempting.MOST_UNSHOWN
    many = [replace(hp(), name=f"hp{at}", uid=f"uid-hp{at}") for at in range(most + 1)]
    for unseen in many:
        unseen_preemptor_of(world, first, on, unseen)
    world.put(many[0])
    assert world.refused == []
    world.put(many[1])
    assert first.uid in world.refused
