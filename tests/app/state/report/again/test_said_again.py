"""The API server forgets events: why a gang waits is said again, as long as it waits."""

from __future__ import annotations

import pytest

from app.state.effects import EmitEvent
from tests.app.state.report.again.test_lost import (
    contradicting,
    half,
    incomplete,
    mistaken,
    not_placed,
    other_half,
)
from tests.app.state.world import World, four_racks
from tests.records import node

HOUR = 3_600.0  # for which the API server keeps events, unless it is set otherwise


def events(world: World) -> list[EmitEvent]:
    return world.told(EmitEvent)


def wait(world: World, seconds: float) -> None:
    end = world.now + seconds
    while world.now < end:
        world.tick(10.0)


STORIES = [incomplete, not_placed, mistaken, contradicting]


@pytest.mark.parametrize("story", STORIES, ids=[story.__name__ for story in STORIES])
def test_there_is_always_an_event_of_the_last_hour_that_says_why_a_gang_waits(story):
    world, reason = story()
    for _ in range(4):
        before = len(events(world))
        wait(world, HOUR - 60.0)
        said = [each.reason for each in events(world)[before:]]
        assert reason in said
        assert len(said) <= 2


@pytest.mark.parametrize("story", STORIES, ids=[story.__name__ for story in STORIES])
def test_of_a_gang_that_is_gone_nothing_is_said_again(story):
    world, _ = story()
    world.delete(*list(world.pods.values()))
    before = len(events(world))
    wait(world, 2 * HOUR)
    assert events(world)[before:] == []


def test_of_a_gang_that_has_a_place_nothing_is_said_again():
    world, _ = not_placed()
    world.put(node("b0/r0/n04"))
    for _ in range(3):
        world.tick()
    world.schedule(*world.pods.values())
    before = len(events(world))
    wait(world, 2 * HOUR)
    assert events(world)[before:] == []


def test_of_a_gang_that_became_whole_it_is_not_said_again_that_pods_are_missing():
    world, _ = incomplete()
    world.put(other_half())
    world.tick()
    world.schedule(*world.pods.values())
    before = len(events(world))
    wait(world, 2 * HOUR)
    assert events(world)[before:] == []


def test_the_verdict_is_said_again_with_the_numbers_of_now():
    world, _ = not_placed()
    (first,) = events(world)
    world.put(node("b0/r0/n00", is_cordoned=True))
    world.tick(100.0)
    wait(world, HOUR)
    again = events(world)[-1]
    assert again.reason == first.reason
    assert again.sentence == world.gang().reporting.sentence != first.sentence


def test_many_gangs_are_not_said_again_all_at_once():
    world = World(four_racks())
    world.put(*[half(f"g{number}") for number in range(30)])
    wait(world, 60.0)
    before = len(events(world))
    assert before == 30
    said: list[int] = []
    for _ in range(3_000):
        world.tick(1.0)
        said.append(len(events(world)) - before)
    assert max(after - now for now, after in zip(said, said[10:], strict=False)) <= 6
    assert said[-1] >= 30
    names = {each.gang.name for each in events(world)[before : before + 30]}
    assert len(names) == 30


def test_what_is_remembered_of_gangs_ends_with_them():
    world = World(four_racks())
    for number in range(20):
        record = half(f"g{number}")
        world.put(record)
        wait(world, 20.0)
        world.delete(record)
    assert len(world.engine.reports.said_again) == 0
