"""What was not written is said again: in turns, for as long as it is true, and no longer."""

from __future__ import annotations

import msgspec
import pytest

from app.dialects.spec import GangKey
from app.state.effects import DELETE, STATUS, Delete, EmitEvent, WriteStatus
from app.state.report.again.lost import LostWrite, LostWrites
from tests.app.state.born.nursery import nursery, rack, train
from tests.app.state.lost import replacement, started
from tests.app.state.report.test_statuses import PLAYERS, with_a_band
from tests.app.state.world import World, four_racks, members
from tests.records import RACK, group, node, pod

GATHER_SECONDS = 10.0


def half(name="g", namespace="default"):
    """One of a gang's two pods."""
    record = pod(f"{name}0", annotations=group(name, 2, RACK), uid=f"uid-{namespace}-{name}0")
    return msgspec.structs.replace(record, namespace=namespace)


def other_half(name="g"):
    return pod(f"{name}1", annotations=group(name, 2, RACK))


def events(effects):
    return [effect for effect in effects if isinstance(effect, EmitEvent)]


def lose(world, *effects):
    """The controllers could not write these events."""
    for event in effects:
        world._take(world.inputs.write_lost(event.gang, event.reason, event.about.uid, world.now))


def said_next(world, ticks=3):
    return [event for _ in range(ticks) for event in events(world.tick())]


def incomplete():
    world = World(four_racks())
    world.put(half())
    world.tick(GATHER_SECONDS)
    return world, "GangIncomplete"


def not_placed():
    world = World(four_racks(), needs_nodes="off")
    world.put(*members("g", 5))
    world.tick()
    return world, "GangNotPlaced"


def mistaken():
    world = World(four_racks())
    world.put(*members("g", 2, required="no.such/level"))
    world.tick()
    return world, "GangMistaken"


def contradicting():
    world = World(four_racks())
    world.put(pod("a", annotations=group("g", 2)), pod("b", annotations=group("g", 3)))
    world.tick()
    return world, "GangMistaken"


def in_excess():
    world = started()
    world.put(replacement())
    world.tick()
    return world, "PodNotInGang"


def placed_after_all():
    world = World(four_racks(is_cordoned=True))
    world.put(*members("g", 2))
    world.tick()
    world.put(*four_racks())
    for _ in range(3):
        world.tick()
    return world, "GangPlaced"


def without_ranks():
    numbered = [{"kueue.x-k8s.io/pod-group-pod-index": "0"}, {}]
    both = zip(members("g", 2), numbered, strict=True)
    world = World(four_racks())
    world.put(*[msgspec.structs.replace(each, labels=labels) for each, labels in both])
    world.tick()
    return world, "RanksNotUsed"


def evicted():
    world = started(fail_fast=True)
    for each in four_racks():
        if each.name != world.pods["uid-g0"].node:
            world.put(msgspec.structs.replace(each, is_unschedulable=True))
    world.delete(world.engine.books.nodes[world.pods["uid-g0"].node])
    world.delete(world.pods["uid-g0"])
    world.put(replacement())
    for _ in range(30):
        world.tick()
    return world, "GangEvicted"


STORIES = [
    incomplete,
    not_placed,
    mistaken,
    contradicting,
    in_excess,
    placed_after_all,
    without_ranks,
    evicted,
]


@pytest.mark.parametrize("story", STORIES, ids=[story.__name__ for story in STORIES])
def test_a_lost_event_is_emitted_once_more_while_it_is_true(story):
    world, reason = story()
    (event,) = [each for each in world.told(EmitEvent) if each.reason == reason]
    assert said_next(world) == []
    lose(world, event, event)
    assert world.engine.lost_writes == 1
    assert said_next(world) == [event]
    assert world.engine.lost_writes == 0


def joined(world):
    world.put(other_half())


def grown(world):
    world.put(node("b0/r0/n04"))


def left(world):
    for each in list(world.pods.values()):
        world.delete(each)


def told_right(world):
    world.delete(world.pods["uid-b"])


def bound(world):
    world.schedule(*world.pods.values())


@pytest.mark.parametrize(
    ("story", "change"),
    [
        pytest.param(incomplete, joined, id="the_other_half_came"),
        pytest.param(incomplete, left, id="its_pods_are_gone"),
        pytest.param(not_placed, grown, id="a_node_came"),
        pytest.param(contradicting, told_right, id="nothing_contradicts_itself"),
        pytest.param(in_excess, left, id="the_pod_is_gone"),
        pytest.param(placed_after_all, bound, id="the_gang_runs"),
    ],
)
def test_a_lost_event_that_is_not_true_any_more_is_not_repeated(story, change):
    world, reason = story()
    (event,) = [each for each in world.told(EmitEvent) if each.reason == reason]
    change(world)
    for _ in range(3):
        world.tick()
    lose(world, event)
    assert reason not in [each.reason for each in said_next(world)]
    assert world.engine.lost_writes == 0


def test_a_pod_that_is_no_part_of_its_gang_for_another_reason_is_told_that_one_too():
    world = started()
    world.delete(world.pods["uid-g0"])
    it = replacement()
    slices = {**it.annotations, "kueue.x-k8s.io/podset-slice-size": "1"}
    size = {**it.annotations, "kueue.x-k8s.io/pod-group-total-count": "5"}
    for said in (slices, slices, size, it.annotations):
        world.put(msgspec.structs.replace(it, annotations=said))
        world.tick()
    world.put(replacement("g8"))
    world.tick()
    told = [each.sentence for each in world.told(EmitEvent) if each.reason == "PodNotInGang"]
    first, second, third = told
    assert "podset-slice-size" in first
    assert "pod default/g9 says 5" in second
    assert "is one more than" in third


def test_a_pod_in_excess_that_is_gone_before_the_gang_was_sorted_out_is_not_reported():
    world, _ = in_excess()
    (event,) = world.told(EmitEvent)
    lose(world, event)
    world.delete(world.pods["uid-g9"])
    assert said_next(world) == []


def test_a_verdict_is_repeated_with_the_numbers_of_now():
    world, _ = not_placed()
    (event,) = world.told(EmitEvent)
    world.put(node("b0/r0/n00", is_cordoned=True))
    world.tick(100.0)
    lose(world, event)
    (again,) = said_next(world)
    assert (again.gang, again.about, again.reason) == (event.gang, event.about, event.reason)
    assert again.sentence == world.gang().reporting.sentence != event.sentence


def test_one_tenants_2500_lost_events_leave_another_its_turn():
    world = World(four_racks())
    world.put(*[half(f"g{i}", "loud") for i in range(250)])
    world.tick(GATHER_SECONDS)
    world.put(half("q", "quiet"))
    world.tick(GATHER_SECONDS)
    for _ in range(5):  # the roll calls of 250 gangs are not taken in one tick
        world.tick()
    world.tick(GATHER_SECONDS)
    emitted = world.told(EmitEvent)
    lose(world, *emitted)
    assert world.engine.lost_writes == len(emitted) == 251
    order = [event.gang.namespace for event in said_next(world, ticks=251)]
    assert sorted(order) == ["loud"] * 250 + ["quiet"]
    assert order.index("quiet") <= 1


def test_a_deletion_that_was_dropped_is_asked_for_again_while_the_pod_is_in_excess():
    world = started(delete_excess_pods=True)
    world.put(replacement())
    world.tick()
    (deletion,) = world.told(Delete)
    world._take(world.inputs.write_lost(deletion.gang, DELETE, deletion.uid, world.now))
    assert [each for each in world.tick() if isinstance(each, Delete)] == [deletion]
    world.delete(world.pods["uid-g0"])  # now there is a place for it
    world.tick()
    world._take(world.inputs.write_lost(deletion.gang, DELETE, deletion.uid, world.now))
    assert [each for each in world.tick() if isinstance(each, Delete)] == []


def test_a_status_that_was_lost_is_written_again():
    world = with_a_band()
    world.put(*PLAYERS)
    world.tick()
    (*_, last) = world.told(WriteStatus)
    assert not [each for each in world.tick() if isinstance(each, WriteStatus)]
    world._take(world.inputs.write_lost(last.gang, STATUS, last.uid, world.now))
    assert [each for each in world.tick() if isinstance(each, WriteStatus)] == [last]


def test_what_is_lost_of_a_gang_that_is_gone_is_forgotten():
    world = World(four_racks())
    world._take(
        world.inputs.write_lost(GangKey("x", "y", "group"), "GangPlaced", "uid-z", world.now)
    )
    assert world.engine.lost_writes == 0


def test_nothing_is_said_again_of_a_gang_whose_first_pod_has_not_come_yet():
    """Its Job may have had pods before, of which an event was lost."""
    jobs, pods = train()
    world = nursery(rack(0), jobs)
    assert world.asked(pods[0])
    for reason in ("GangPlaced", "GangIncomplete", "GangNotPlaced"):
        lost = world.gang().key, reason, "uid-job-train"
        world._take(world.inputs.write_lost(*lost, world.now))
    assert said_next(world) == []
    assert world.engine.lost_writes == 0


def test_the_memory_of_lost_writes_is_bounded_and_shared():
    lost = LostWrites(most=4)
    for number in range(10):
        lost.add(LostWrite(GangKey("loud", f"g{number}", "group"), "GangIncomplete", "u"))
    for name in ("a", "b"):
        lost.add(LostWrite(GangKey("quiet", name, "group"), "GangIncomplete", "u"))
    assert len(lost) == 4
    taken = [lost.take() for _ in range(4)]
    assert sorted(each.gang.namespace for each in taken) == ["loud"] * 2 + ["quiet"] * 2
    assert lost.take() is None


def test_where_every_namespace_has_one_the_next_namespace_gets_none():
    lost = LostWrites(most=2)
    for namespace in "abc":
        lost.add(LostWrite(GangKey(namespace, "g", "group"), STATUS, "u"))
    assert [lost.take().gang.namespace for _ in range(len(lost))] == ["a", "b"]
