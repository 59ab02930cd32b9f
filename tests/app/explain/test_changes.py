"""What changes about gangs is found, a bounded number of gangs at a time."""

from __future__ import annotations

from dataclasses import replace

import pytest

from app.dialects.spec import GangKey
from app.explain import changes
from app.explain.changes import Change, Changes
from app.explain.gangs import view
from app.state.gang.reasons import Reason
from tests.app.state.world import World, four_racks, members
from tests.records import RACK, group, pod


def all_changes(found: Changes, world: World) -> list[Change]:
    """Those of one whole round; looks that find nothing are in it."""
    told = found.look(world.now)
    while found._line is not None:
        told += found.look(world.now)
    return told


def names(told: list[Change]) -> list[tuple[str, str]]:
    return [(each.gang.name, "gone" if each.is_gone else each.gang.phase) for each in told]


def test_the_first_round_shows_every_gang_and_the_next_one_none() -> None:
    world = World(four_racks())
    world.put(*members("a", 2), *members("b", 5))
    world.tick()
    found = Changes(world.engine)
    assert not found.is_whole
    assert names(all_changes(found, world)) == [("a", "placed"), ("b", "waiting")]
    assert found.is_whole
    assert all_changes(found, world) == []


def test_a_change_of_phase_reason_message_or_pods_is_shown_as_it_is_now() -> None:
    """Against the views themselves, through a gang's life."""
    world = World(four_racks())
    found = Changes(world.engine)
    all_changes(found, world)
    seen: dict[str, object] = {}

    def check() -> None:
        told = {each.gang.name: each.gang for each in all_changes(found, world)}
        for gang in world.engine.gangs.by_key.values():
            now = view(gang, world.now, world.engine.books)
            what = now.phase, now.reason, now.message, now.pods.there, now.pods.bound
            assert (gang.key.name in told) == (seen.get(gang.key.name) != what), now
            assert told.get(gang.key.name, now) == now
            seen[gang.key.name] = what

    pods = members("a", 3)
    for each in pods:
        world.put(each)
        check()
        world.tick()
        check()
    world.schedule(*pods)
    check()
    world.tick(seconds=60)
    check()
    assert len(seen) == 1


def test_a_gang_that_is_gone_is_told_once() -> None:
    world = World(four_racks())
    pods = [pod(f"a{at}", annotations=group("a", 5, RACK)) for at in range(2)]
    world.put(*pods)
    world.tick()
    found = Changes(world.engine)
    all_changes(found, world)
    for each in pods:
        world.delete(each)
    world.tick()
    assert not world.engine.gangs.by_key
    assert names(all_changes(found, world)) == [("a", "gone")]
    assert all_changes(found, world) == []


def test_of_two_gangs_of_one_name_the_newest_counts() -> None:
    """As of an owner that was made anew while pods of the old one still end."""
    world = World(four_racks())
    world.put(*members("a", 2))
    world.tick()
    gangs = world.engine.gangs
    (old,) = gangs.by_key.values()
    found = Changes(world.engine)
    all_changes(found, world)
    new = gangs.add(replace(old.key, epoch="second"))
    assert names(all_changes(found, world)) == [("a", "gathering")]
    old.phase = type(old.phase).DONE
    assert all_changes(found, world) == []  # of the old one nothing is told any more
    del gangs.by_key[old.key]
    assert all_changes(found, world) == []
    gangs.remove(new)
    assert names(all_changes(found, world)) == [("a", "gone")]


def test_a_look_costs_the_same_however_many_gangs_change() -> None:
    """Five thousand new gangs: each look has its bound, and in the end all have been shown."""
    world = World(four_racks())
    for at in range(5_000):
        world.engine.gangs.add(GangKey("default", f"g{at}", "group"))
    found = Changes(world.engine)
    shown = set()
    looks = 0
    while not found.is_whole:
        before = found.looked_at, found.cost
        shown |= {each.gang.name for each in found.look(world.now)}
        looks += 1
        assert found.looked_at - before[0] <= changes.MOST_LOOKED_AT
        assert found.cost - before[1] <= changes.MOST_COST
    assert len(shown) == 5_000
    assert looks >= 5_000 / changes.MOST_COST
    # Once nothing changes, a round takes as many looks as its length asks for.
    before_all = found.looked_at
    all_changes(found, world)
    assert found.looked_at - before_all <= 2 * 5_000


@pytest.mark.parametrize("pods", [10, 2_000])
def test_large_gangs_count_for_several(pods: int) -> None:
    world = World(four_racks())
    gang = world.engine.gangs.add(GangKey("default", "a", "group"))
    gang.membership = replace(gang.membership, members_live=pods)
    found = Changes(world.engine)
    all_changes(found, world)
    assert found.cost == 1 + pods // changes.PODS_AS_ONE


def test_a_gang_shown_later_says_how_long_it_waits_by_then() -> None:
    world = World(four_racks())
    world.put(*members("large", 5))
    world.tick()
    found = Changes(world.engine)
    all_changes(found, world)
    (shown,) = found.shown.values()
    now = view(world.gang("large"), world.now + 30.0, world.engine.books)
    assert shown.as_of(world.now + 30.0).waiting_seconds == pytest.approx(now.waiting_seconds)


def test_a_corral_that_does_not_lead_says_so_of_what_it_does_not_place() -> None:
    world = World(four_racks())
    world.put(*members("a", 2))
    world.tick()
    whose = [""]
    found = Changes(world.engine, lambda: whose[0])
    (before,) = all_changes(found, world)
    assert before.gang.reason == Reason.AWAITING_SCHEDULER
    whose[0] = "pod corral-1 leads"
    (after,) = all_changes(found, world)
    assert (after.gang.reason, whose[0] in after.gang.message) == (Reason.NOT_LEADING, True)
    assert all_changes(found, world) == []
