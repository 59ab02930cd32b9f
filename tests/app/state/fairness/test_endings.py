"""What gangs that starve look at in one review is bounded, shared, and goes on in the next one."""

from __future__ import annotations

import msgspec
import pytest

from app.state.fairness import endings as bounds
from tests.app.state.world import World, members
from tests.records import node, pod

EXPECTS = {"starvation_seconds": 60.0, "backfill": "deadlines", "earmarked_share": 1.0}
NODES = 120  # in racks of 4, all full of pods that end
REVIEW = 5.1  # seconds to the next one


def nodes(count=NODES):
    return [node(f"b0/r{i // 4}/n{i}") for i in range(count)]


def ending(number: int, seconds: int, name: str = "o"):
    return msgspec.structs.replace(
        pod(f"{name}{number}", on=f"n{number}", phase="Running"), deadline_seconds=seconds
    )


def teams(count: int, **more):
    """A gang in each of so many namespaces."""
    return [
        msgspec.structs.replace(each, namespace=f"team-{number}")
        for number in range(count)
        for each in members(f"g{number}", 2, **more)
    ]


def full(*gangs, count=NODES, **settings):
    pods = [ending(number, 5_000 + number) for number in range(count)]
    return World(nodes(count), [*pods, *gangs], **{**EXPECTS, **settings})


@pytest.fixture
def narrow(monkeypatch):
    monkeypatch.setattr(bounds, "MOST_READ", 16)
    monkeypatch.setattr(bounds, "MOST_VISITS", 200)


@pytest.mark.usefixtures("narrow")
def test_a_review_looks_at_few_nodes_and_every_gang_gets_its_earmark_after_some():
    gangs = [
        msgspec.structs.replace(each, namespace=f"team-{number}")
        for number in range(20)
        for each in members(f"g{number}", 2, cpu=1_000 + number)  # no two share what they look at
    ]
    world = full(*gangs)
    starvation, given = world.engine.starvation, []
    world.tick(61.0)
    for _ in range(40):
        assert starvation.endings.read <= 16
        # A gang's own work is not cut: a table, and what follows of it.
        assert starvation.endings.visits <= 200 + 2 * NODES + NODES // 4 + 1
        given.append(len(starvation.of))
        world.tick(REVIEW)
    assert given[0] == 0, "what runs on the nodes is not read yet"
    assert given[-1] == 20
    assert all(mark.is_expected for mark in starvation.of.values())


def test_gangs_with_equal_pods_share_what_is_looked_at():
    world = full(*teams(20))
    world.tick(61.0)
    assert len(world.engine.starvation.of) == 20
    alone = full(*teams(1))
    alone.tick(61.0)
    both = world.engine.starvation.endings, alone.engine.starvation.endings
    assert both[0].read == both[1].read == NODES
    assert both[0].visits <= both[1].visits + 19 * (NODES // 4 + 1)


def test_a_review_is_part_of_the_work_of_its_tick():
    world = full(*teams(20), count=200, visits_per_tick=10_000)
    world.tick(61.0)
    assert world.engine.budget.spent >= 200 * bounds.READ > 10_000
    assert len(world.engine.starvation.of) == 1, "nothing is left for a second gang"
    world.tick(REVIEW)
    assert len(world.engine.starvation.of) == 20


def test_nothing_is_read_again_before_it_changes(monkeypatch):
    monkeypatch.setattr(bounds, "READ_SECONDS", 1_000.0)
    world = full(*teams(1))
    world.tick(61.0)
    read = world.engine.starvation.endings
    assert read.read == NODES
    world.tick(REVIEW)
    assert read.read == 0
    world.delete(world.pods["uid-o7"])
    world.put(ending(7, 100, name="p"))
    world.tick(REVIEW)
    assert read.read == 1


def test_what_is_read_is_read_again_after_a_time():
    world = full(*teams(1))
    world.tick(61.0)
    world.tick(bounds.READ_SECONDS)
    assert world.engine.starvation.endings.read == NODES


def test_nodes_that_change_all_the_time_keep_no_gang_from_its_earmark(monkeypatch):
    monkeypatch.setattr(bounds, "MOST_READ", 4)
    world = full(*teams(1), count=16)
    world.tick(61.0)
    for turn in range(4):
        for number in range(16):
            was = f"uid-o{number}" if turn == 0 else f"uid-{turn - 1}-{number}"
            world.delete(world.pods[was])
            world.put(ending(number, 4_000, name=f"{turn}-"))
        world.tick(REVIEW)
    (mark,) = world.engine.starvation.of.values()
    assert mark.is_expected


def test_no_more_nodes_are_remembered_than_the_bound_and_none_that_is_gone(monkeypatch):
    world = full(*teams(1))
    world.tick(61.0)
    known = world.engine.starvation.endings._of
    assert len(known) == NODES
    world.delete(nodes()[-1])
    world.tick(REVIEW)
    assert len(known) == NODES - 1
    monkeypatch.setattr(bounds, "MOST_KEPT", 50)
    world.tick(REVIEW)
    assert len(known) == 50
    for number in range(2):
        each = world.pods[f"uid-g0{number}"]
        world.delete(each)
    world.tick(REVIEW)
    assert known == {}
