"""A PodGang that names another one in reuseReservationRef goes where that one was."""

from __future__ import annotations

import msgspec
import pytest

from tests.app.dialects.grove.objects import gang, pod_group, within
from tests.app.state.histories.test_grove import (
    fill,
    members,
    on,
    racks,
    started,
    world_of,
)
from tests.app.state.stories import finish
from tests.records import BLOCK, RACK


def pod_gang(name, *, reuses="", pods=2, on_=None):
    """A PodGang of workers called after it."""
    made = gang(name, pod_group(f"{name}w", pods), on=within(RACK) if on_ is None else on_)
    return msgspec.structs.replace(made, reuses=reuses)


def workers(name, count=2, **more):
    return members(count, f"{name}w", of=name, **more)


def old_in_rack_2(world, pods=2, **more):
    """The PodGang `old` in a rack that is not the first one a search finds; the others are free."""
    others = [f"n{rack}{at}" for rack in (0, 1, 3) for at in range(4)]
    fill(world, *others)
    placed = started(world, pod_gang("old", pods=pods, **more), *workers("old", pods))
    assert racks(placed) == {"n2"}
    world.delete(*(each for each in world.pods.values() if each.name.startswith("other")))
    # Where a search packs most tightly.
    fill(world, "n00", "n01")
    return set(placed.values())


def ends(world, name):
    world.delete(pod_gang(name), *(p for p in world.pods.values() if p.name.startswith(f"{name}w")))


def test_without_a_reference_a_new_gang_is_where_it_fits_most_tightly():
    world = world_of()
    old_in_rack_2(world)
    ends(world, "old")
    started(world, pod_gang("new"), *workers("new"))
    assert racks(on(world, "new")) == {"n0"}


@pytest.mark.parametrize("is_gone", [True, False], ids=["gone_before", "goes_after"])
def test_a_gang_is_on_the_nodes_of_the_one_that_it_names(is_gone):
    world = world_of()
    nodes = old_in_rack_2(world)
    if is_gone:
        ends(world, "old")
    started(world, pod_gang("new", reuses="old"), *workers("new"))
    # While the other still runs its nodes are full: then beside it, in its rack.
    assert racks(on(world, "new")) == {"n2"}
    assert (set(on(world, "new").values()) == nodes) == is_gone


def test_pods_that_go_one_by_one_leave_the_place_known():
    world = world_of()
    nodes = old_in_rack_2(world)
    for name in on(world, "old"):
        world.delete(world.pods[f"uid-{name}"])
        finish(world)
    started(world, pod_gang("new", reuses="old"), *workers("new"))
    assert set(on(world, "new").values()) == nodes


def test_a_place_that_is_taken_by_others_is_a_suggestion_and_no_more():
    world = world_of()
    old_in_rack_2(world)
    ends(world, "old")
    fill(world, *(f"n2{at}" for at in range(4)))
    started(world, pod_gang("new", reuses="old"), *workers("new"))
    assert len(on(world, "new")) == 2
    assert racks(on(world, "new")) == {"n0"}


def test_a_place_that_is_nearer_together_counts_before_the_one_of_before():
    """The other was spread over two racks of its block, as there was no other room."""
    world = world_of()
    prefers = within(BLOCK, RACK)
    fill(world, *(f"n{rack}{at}" for rack in (0, 1) for at in range(4)), "n20", "n21", "n22")
    fill(world, "n30", "n31", "n32")
    placed = started(world, pod_gang("old", on_=prefers), *workers("old"))
    assert racks(placed) == {"n2", "n3"}
    ends(world, "old")
    world.delete(*(p for p in world.pods.values() if p.name[:8] in ("other-n2", "other-n0")))
    started(world, pod_gang("new", reuses="old", on_=prefers), *workers("new"))
    assert len(racks(on(world, "new"))) == 1


def test_a_gang_that_is_larger_is_where_all_of_it_has_room():
    world = world_of()
    old_in_rack_2(world)
    ends(world, "old")
    fill(world, "n20")
    started(world, pod_gang("new", reuses="old", pods=4), *workers("new", 4))
    assert len(on(world, "new")) == 4


def test_of_a_gang_that_never_was_nothing_is_known():
    world = world_of(pod_gang("new", reuses="none"))
    assert len(started(world, *workers("new"))) == 2


def test_only_as_many_places_are_remembered_as_there_is_room_for():
    world = world_of()
    places = world.engine.last_places
    places.most_gangs = 1
    old_in_rack_2(world)
    started(world, pod_gang("next", pods=1), *workers("next", 1))
    keys = [each for each in world.engine.gangs.by_key if places.of(each)]
    assert [each.name for each in keys] == ["next"]
    places.most_nodes = 1
    started(world, pod_gang("last", pods=2), *workers("last", 2))
    assert [each for each in world.engine.gangs.by_key if places.of(each)] == []
