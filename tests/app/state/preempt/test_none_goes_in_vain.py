"""Who need not go for a gang does not, and where making room leads nowhere it ends.

As in `test_room_plans`: nodes of 8 GPUs, pods of 8 unless it says otherwise; `T` is a gang of
priority 1000 that requires a rack, all others have priority 0, a controller, and run.
"""

from __future__ import annotations

import random

import pytest
from msgspec.structs import replace

from app.state.effects import EmitEvent
from app.state.preempt.plans.in_vain import IN_VAIN_SECONDS, MOST_COUNTED, MOST_IN_VAIN, InVain
from tests.app.state.preempt.test_making_room import gang, single, train
from tests.app.state.preempt.test_room_plans import (
    Evicting,
    Pair,
    all_pods,
    foreign,
    notes,
    placed,
)
from tests.app.state.preemptor import rack
from tests.app.state.world import members
from tests.records import pod

HOUR = 3600.0
STOPPED = 160.0  # by then two places are in vain: 60 s each, and the gang has waited before
LATER = 1_500.0  # a gang asks again after 16 minutes at the latest


@pytest.mark.parametrize("nodes", [8, 24])
def test_pods_of_a_rack_stay_where_one_gang_alone_frees_another(nodes):
    """P4: the gang has a node of the first rack and all of the second; small pods have the rest."""
    chance = random.Random(1)
    running = gang("a", "n10", *(f"n2{at}" for at in range(nodes)))
    for at in range(1, nodes):
        gpus = 8
        while gpus:
            its = min(gpus, chance.choice((1, 2, 3)))
            gpus -= its
            running.append(single(f"p{at}-{gpus}", f"n1{at}", gpus=its))
    request = pod("", gpus=5).request
    waiting = [replace(each, priority=1000, request=request) for each in members("T", nodes)]
    world = Evicting([*rack(1, nodes), *rack(2, nodes)], running, waiting=waiting)
    assert sorted(world.evicted) == sorted(f"a{at}" for at in range(nodes + 1))


# -- pods that do not end --------------------------------------------------------------------------


def stuck_racks(number, of=Evicting, **settings):
    """So many racks of two nodes; in each a pod ends as it is told to, and one does not."""
    nodes = [each for at in range(1, number + 1) for each in rack(at, 2)]
    running = []
    for at in range(1, number + 1):
        running += [single(f"stuck{at}", f"n{at}0"), single(f"ends{at}", f"n{at}1")]
    running = [replace(each, grace_seconds=30) for each in running]
    return of(nodes, running, waiting=train(2), preempted_at_most=1000, **settings)


def play(world, seconds, step=2.0):
    """Time passes; pods that are evicted are gone at once, but for those that are stuck."""
    for _ in range(round(seconds / step)):
        world.run(step, step)
        world.delete(*[each for each in ending(world) if not each.name.startswith("stuck")])


def ending(world):
    return [each for each in world.pods.values() if each.is_terminating]


def gone_from(world):
    """The racks that pods were evicted from, in order."""
    return [name.removeprefix("ends") for name in world.evicted if name.startswith("ends")]


def has_ended(world, name):
    world.delete(*[each for each in ending(world) if each.name == name])


@pytest.mark.slow
def test_after_two_places_with_pods_that_do_not_end_no_others_go():
    """Once it is gone around; then the gang waits, however long."""
    world = stuck_racks(5)
    play(world, STOPPED + LATER, step=5.0)
    assert gone_from(world) == ["1", "2"]
    assert world.results == {"stuck": 2}


def test_it_is_said_which_pods_that_waits_for():
    world = stuck_racks(3)
    play(world, STOPPED + 300.0)
    said = [each.sentence for each in world.told(EmitEvent) if each.reason == "RoomNotMade"]
    assert said == [
        "gang default/T makes no room any more: pod default/stuck1 does not end in time",
        "gang default/T makes no room any more: pod default/stuck2 does not end in time; no others"
        " are evicted for now, as others went for it from two places where pods do not end: it"
        " waits until one of pod default/stuck1 and pod default/stuck2 has ended",
    ]
    assert world.said[-1][1] == (
        "gang default/T (priority 1000) could start in cloud.provider.com/topology-rack=b0/r3 if 2"
        " pods went, and none is evicted, as others went for it from two places where pods do not"
        " end: it waits until one of pod default/stuck1 and pod default/stuck2 has ended: pod"
        " default/ends3 (priority 0), pod default/stuck3 (priority 0)"
    )


def test_it_starts_where_such_a_pod_has_ended_after_all():
    world = stuck_racks(3)
    play(world, STOPPED)
    has_ended(world, "stuck2")
    play(world, 10.0)
    assert set(placed(world).values()) == {"n20", "n21"}
    assert gone_from(world) == ["1", "2"]


@pytest.mark.slow
def test_others_go_again_once_such_a_pod_has_ended_and_its_place_is_taken():
    """For each pod that ends after all one more place at most."""
    world = stuck_racks(5)
    play(world, STOPPED)
    world.put(foreign("late", "n20", priority=1000))
    has_ended(world, "stuck2")
    play(world, STOPPED)
    assert gone_from(world) == ["1", "2", "3"]
    play(world, LATER, step=10.0)
    assert gone_from(world) == ["1", "2", "3"], "neither in the first nor in the third do they end"


def test_pods_that_end_already_and_do_not_in_time_are_no_place_that_others_went_from():
    """The gang waits for these in three racks, one after the other, and evicts none before."""
    nodes = [each for at in range(1, 5) for each in rack(at, 1)]
    running = [single(f"stuck{at}", f"n{at}0") for at in range(1, 5)]
    there = [replace(each, grace_seconds=30, is_terminating=True) for each in running[:3]]
    world = Evicting(nodes, [*there, running[3]], waiting=train(1))
    play(world, 2 * STOPPED)
    assert world.results["stuck"] >= 3
    assert world.evicted == ["stuck4"]


@pytest.mark.slow
def test_a_gang_that_is_made_again_alike_waits_as_the_one_before():
    world = stuck_racks(3)
    play(world, STOPPED)
    all_pods(world)
    play(world, LATER, step=10.0)
    assert gone_from(world) == ["1", "2"]


@pytest.mark.parametrize("change", [{"request": pod("", gpus=7).request}, {"priority": 2000}])
def test_a_gang_that_needs_another_place_has_others_go(change):
    world = stuck_racks(3)
    play(world, STOPPED)
    mine = [each for each in world.pods.values() if each.name.startswith("T")]
    world.delete(*mine)
    world.put(
        *[
            replace(each, uid=f"{each.uid}-again", annotations=each.annotations, **change)
            for each in train(2)
        ]
    )
    play(world, 120.0)
    assert gone_from(world) == ["1", "2", "3"]


def restarted(world):
    world.restart()
    return world


def taken_over(world):
    world.follow()
    world.run(3.0)
    world.take_over()
    return world


@pytest.mark.slow
@pytest.mark.parametrize("ends", [restarted, taken_over])
def test_another_corral_evicts_no_others_either(ends):
    world = stuck_racks(5, of=Pair)
    play(world, STOPPED)
    for _ in range(2):
        ends(world)
        play(world, LATER, step=10.0)
        assert gone_from(world) == ["1", "2"]


@pytest.mark.slow
@pytest.mark.parametrize("seconds", [65.0, 100.0])
def test_one_that_starts_as_it_is_gone_around_knows_of_the_place_before(seconds):
    """Others go from the second place for 60 seconds after they did from the first."""
    world = stuck_racks(5, of=Pair)
    play(world, seconds)
    assert gone_from(world) == ["1", "2"]
    restarted(world)
    play(world, LATER, step=10.0)
    assert gone_from(world) == ["1", "2"]


def test_a_pod_that_has_ended_while_none_decided_is_not_waited_for():
    world = stuck_racks(5, of=Pair)
    play(world, STOPPED)
    world.put(foreign("late", "n10", priority=1000))
    world.pods = {uid: each for uid, each in world.pods.items() if each.name != "stuck1"}
    restarted(world)
    play(world, STOPPED)
    assert gone_from(world) == ["1", "2", "3"]


def test_nothing_is_noted_any_more_of_a_gang_that_has_a_place():
    world = stuck_racks(3)
    play(world, STOPPED)
    assert notes(world)
    has_ended(world, "stuck1")
    play(world, 20.0)
    assert placed(world)
    assert notes(world) == []


# -- a gang that does not start --------------------------------------------------------------------


def never_brought(hours):
    """Gangs of two fill four racks, and come back wherever there is room; T is never brought."""
    racks = [(f"n{at}0", f"n{at}1") for at in range(1, 5)]
    world = Evicting(
        [node for at in range(1, 5) for node in rack(at, 2)],
        [each for at, on in enumerate(racks) for each in gang(f"g{at}", *on)],
        waiting=train(2),
        preempted_at_most=1000,
    )
    for number in range(round(hours * HOUR / 2.0)):
        world.run(2.0, 2.0)
        comes_back(world, number)
    return world


def comes_back(world, number):
    """What was evicted is gone, and made again; what is placed of it runs."""
    gone = ending(world)
    world.delete(*gone)
    for each in gone:
        uid = f"{each.uid.split('+')[0]}+{number}"
        again = replace(each, uid=uid, node="", phase="Pending", is_terminating=False)
        world.put(again)
    for its in list(world.engine.gangs.by_key.values()):
        for uid, on in list(its.plan.nodes.items()) if its.key.name != "T" else ():
            if uid in world.pods:
                world.put(replace(world.pods[uid], node=on, phase="Running"))


@pytest.mark.slow
def test_for_a_gang_that_is_never_brought_others_go_three_times_in_an_hour():
    world = never_brought(0.9)
    assert len(world.evicted) == MOST_IN_VAIN * 2
    assert world.results["placed"] > 0
    (said,) = {text for reason, text in world.said if "none is evicted" in text}
    assert "as others went for it three times within an hour, and it has not started" in said


@pytest.mark.slow
def test_an_hour_after_the_first_time_they_go_again():
    world = never_brought(1.5)
    assert MOST_IN_VAIN * 2 < len(world.evicted) <= 2 * MOST_IN_VAIN * 2


def test_what_went_before_it_started_was_not_in_vain():
    """Each time it starts, ends and is made again."""
    world = Evicting(rack(1, 2), gang("a", "n10", "n11"), waiting=train(2), preempted_at_most=1000)
    for number in range(MOST_IN_VAIN + 1):
        comes_back(world, number)
        world.run(3.0)
        assert world.schedule(*[each for each in world.pods.values() if each.name[0] == "T"])
        world.run(3.0)
        mine = [each for each in world.pods.values() if each.name[0] == "T"]
        world.delete(*mine)
        world.run(3.0)
        comes_back(world, number)
        world.run(3.0)
        world.put(*[replace(each, uid=f"{each.uid}-{number}") for each in train(2)])
        world.run(20.0)
    assert len(world.evicted) == 2 * (MOST_IN_VAIN + 2)


# -- what is counted -------------------------------------------------------------------------------


NEEDED = (0, ("a place",))


def test_of_no_more_gangs_is_it_counted_than_the_bound_and_those_that_count_no_more_make_room():
    in_vain = InVain()
    for at in range(MOST_COUNTED + 1):
        in_vain.note(f"g{at}", NEEDED, 0.0)
    assert len(list(in_vain)) == MOST_COUNTED
    in_vain.note("late", NEEDED, IN_VAIN_SECONDS)
    assert list(in_vain) == ["late"]


def test_the_same_pods_are_one_place():
    in_vain = InVain()
    in_vain.note_stuck("g", NEEDED, ["a", "b"], 0.0)
    in_vain.note_stuck("g", NEEDED, ["b"], 0.0)
    assert not in_vain.is_stuck("g", NEEDED)
    in_vain.note_stuck("g", NEEDED, ["c"], 0.0)
    assert in_vain.is_stuck("g", NEEDED)


def test_a_place_counts_until_the_last_of_its_pods_has_ended():
    in_vain = InVain()
    in_vain.note_stuck("g", NEEDED, ["a", "b"], 0.0)
    in_vain.note_stuck("g", NEEDED, ["c"], 0.0)
    assert in_vain.note_gone("a") == []
    assert in_vain.note_gone("b") == ["g"]
    assert not in_vain.is_stuck("g", NEEDED)
