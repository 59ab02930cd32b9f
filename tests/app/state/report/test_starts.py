"""How long gangs take to start, as metrics and traces have it."""

from __future__ import annotations

import pytest

from app.state.report.starts import MOST_KEPT, Decision, Start
from tests.app.state.world import World, four_racks, members
from tests.records import RACK, group, node, pod


def racks(number, nodes):
    """Racks of so many nodes with 8 GPUs each."""
    return [node(f"b0/r{r}/n{r}{i}", gpus=8) for r in range(number) for i in range(nodes)]


def replacement(name, total):
    """A pod that its owner makes for one that is gone."""
    return pod(name, gpus=8, annotations=group("g", total, RACK))


def test_a_gang_that_starts_is_told_once_with_when_it_got_how_far():
    world = World(four_racks())
    first, *rest = members("g", 4)
    world.put(first)
    first_pod_at = world.now
    world.tick(5.0)
    world.put(*rest)
    complete_at = world.now
    world.tick(2.0)
    world.schedule(first, *rest)
    world.tick()  # what is bound is looked at by the tick

    assert list(world.engine.starts.decisions()) == [Decision(0.0)]
    assert list(world.engine.starts.taken()) == [
        Start(
            world.gang().key, 4, first_pod_at, complete_at, complete_at, complete_at + 2.1, plans=1
        )
    ]
    assert list(world.engine.starts.taken()) == []


def test_a_verdict_is_a_decision_and_the_plan_that_follows_is_no_second_one():
    world = World(racks(1, 2))
    taken, waiting = members("taken", 2, gpus=8), members("waiting", 2, gpus=8)
    world.put(*taken)
    world.schedule(*taken)
    world.put(*waiting)
    world.tick(60.0)
    assert len(list(world.engine.starts.decisions())) == 2
    list(world.engine.starts.taken())

    world.delete(*(world.pods[each.uid] for each in taken))
    world.tick(1.0)
    world.schedule(*waiting)
    world.tick()

    assert list(world.engine.starts.decisions()) == []
    (start,) = world.engine.starts.taken()
    assert start.gang.name == "waiting"
    assert start.started_at - start.complete_at == pytest.approx(61.1, abs=1.0)


def test_a_plan_that_was_lost_counts_beside_the_one_that_was_used():
    world = World(racks(2, 2))
    gang = members("g", 2, gpus=8)
    world.put(*gang)
    lost = world.engine.books.nodes[next(iter(world.held.values()))]
    world.delete(lost)
    world.tick(30.0)
    world.schedule(*gang)
    world.tick()

    (start,) = world.engine.starts.taken()
    assert start.plans == 2


def test_a_repair_is_no_start():
    world = World(racks(1, 3))
    gang = members("g", 2, gpus=8)
    world.put(*gang)
    world.schedule(*gang)
    world.tick()
    assert len(list(world.engine.starts.taken())) == 1

    world.delete(world.pods[gang[0].uid])
    again = replacement("g2", 2)
    world.put(again)
    world.tick(1.0)
    world.schedule(again)
    world.tick()

    assert world.gang().phase.value == "running"
    assert list(world.engine.starts.taken()) == []


def test_a_gang_that_ran_before_this_engine_is_no_start():
    before = World(racks(1, 2))
    gang = members("g", 2, gpus=8)
    before.put(*gang)
    before.schedule(*gang)
    before.tick()

    world = World(racks(1, 2), pods=before.pods.values())
    world.tick(1.0)

    assert world.gang().phase.value == "running"
    assert list(world.engine.starts.taken()) == []
    assert list(world.engine.starts.decisions()) == []


def test_a_gang_whose_pods_are_all_made_anew_starts_anew():
    world = World(racks(1, 2))
    gang = members("g", 2, gpus=8)
    world.put(*gang)
    world.schedule(*gang)
    world.tick()
    list(world.engine.starts.taken())

    again = [replacement("g2", 2), replacement("g3", 2)]
    world.delete(*(world.pods[each.uid] for each in gang))
    world.tick(1.0)
    world.put(*again)
    world.tick(1.0)
    world.schedule(*again)
    world.tick()

    assert [start.pods for start in world.engine.starts.taken()] == [2]


def test_what_nobody_takes_is_bounded():
    world = World(four_racks())
    starts = world.engine.starts
    world.put(*members("g", 4))
    gang = world.gang()
    for _ in range(MOST_KEPT + 10):
        gang.milestones.is_decided = False
        starts.note_decision(gang, world.now, is_plan=False)
    assert len(list(starts.decisions())) == MOST_KEPT
