"""A gang that others have gone for in vain asks node autoscalers like any other one.

The names are those of `test_room_plans.py`.
"""

from __future__ import annotations

from msgspec.structs import replace

from app.state.effects import Mark
from tests.app.state.autoscaling.marking import OURS
from tests.app.state.preempt.test_making_room import N1, N2, gang, train, two_racks
from tests.app.state.preempt.test_room_plans import Evicting


def gated():
    return [replace(each, gates=OURS) for each in train()]


def making_room():
    """T waits behind the gate, and the API server does not say yet whether others may go."""
    running = [*gang("a", *N1), *gang("b", *N2)]
    world = Evicting(two_racks(), running, silent=True, waiting=gated())
    assert world.plan
    return world


def rise(world):
    """No pod that runs is of a lower priority any more."""
    world.put(*[replace(each, priority=2000) for each in world.pods.values() if each.node])


def marked(world):
    return sorted(each.name for each in world.told(Mark) if each.sentence)


def test_one_that_was_not_whole_for_a_moment_meanwhile():
    world = making_room()
    first, *_ = gated()
    world.delete(first)
    world.run(2.0)
    assert world.results == {"withdrawn": 1}
    rise(world)
    world.put(replace(first, uid="uid-again"))
    world.run(20.0)
    assert marked(world) == []
    world.run(25.0)
    assert set(marked(world)) == {"T0", "T1", "T2", "T3"}


def test_one_whose_time_to_ask_had_come_meanwhile():
    world = making_room()
    world.run(25.0)
    assert world.plan, "no answer has come for half a minute"
    rise(world)
    world.run(60.0)
    assert world.results == {"unanswered": 1}
    assert set(marked(world)) == {"T0", "T1", "T2", "T3"}
