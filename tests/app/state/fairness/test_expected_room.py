"""A gang that starves has the nodes kept that are likely to be free first; others use them."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from tests.app.state.world import World, four_racks, members, racks
from tests.records import RACK, group, node, pod

EXPECTS = {"starvation_seconds": 60.0, "backfill": "deadlines", "earmarked_nodes": 16}
STARVED = 61.0  # seconds
ALL_OF_R1 = {"n10", "n11", "n12", "n13"}


def ending(rack: int, seconds: int, nodes: int = 4):
    """Pods on the nodes of a rack that end so long after they are bound."""
    return [
        replace(pod(f"o{rack}{i}", on=f"n{rack}{i}", phase="Running"), deadline_seconds=seconds)
        for i in range(nodes)
    ]


def busy(r0=4_000, r1=1_000, r2=2_000, r3=3_000):
    return [each for r, end in enumerate((r0, r1, r2, r3)) for each in ending(r, end)]


def starving(pods, gang, nodes=None, **settings):
    world = World(nodes or four_racks(), [*pods, *gang], **{**EXPECTS, **settings})
    world.tick(STARVED)
    world.tick()
    return world


def lasting(seconds, *pods):
    return [replace(each, deadline_seconds=seconds) for each in pods]


def kept(world):
    return world.engine.starvation.nodes()


def test_the_rack_that_is_free_first_is_kept_and_not_that_with_most_room_now():
    pods = [each for each in busy() if each.name not in ("o20", "o21")]
    world = starving(pods, members("big", 4))
    assert kept(world) == ALL_OF_R1
    (mark,) = world.engine.starvation.of.values()
    assert mark.free_at == 2_000.0, "bound at 1,000, with a deadline of 1,000"


def test_a_gang_that_ends_before_uses_what_is_kept_and_one_that_does_not_goes_elsewhere():
    world = starving([each for each in busy() if each.name != "o10"], members("big", 4))
    assert kept(world) == ALL_OF_R1
    world.put(*lasting(2_000, *members("long", 1)), *lasting(500, *members("short", 1)))
    world.tick()
    assert world.held == {"uid-short0": "n10"}


def test_an_ordinary_pod_that_ends_before_passes():
    world = starving([each for each in busy() if each.name != "o10"], members("big", 4))
    assert world.filter(pod("any")).without == ALL_OF_R1
    assert world.filter(*lasting(2_000, pod("long"))).without == ALL_OF_R1
    assert world.filter(*lasting(500, pod("short"))).without == frozenset()


def test_of_a_rack_the_nodes_that_get_free_last_are_kept():
    pods = [replace(each, deadline_seconds=900 + i) for i, each in enumerate(ending(1, 1))]
    world = starving([*busy()[:4], *pods, *busy()[8:]], members("two", 2))
    assert kept(world) == {"n10", "n11"}, "these two are the first that are enough"
    free = [each for each in pods if each.name != "o10"]
    world = starving([*busy()[:4], *free, *busy()[8:]], members("three", 3))
    assert kept(world) == {"n10", "n11", "n12"}


def test_a_node_that_is_free_now_is_left_to_others_where_enough_get_free_together():
    world = starving([each for each in busy() if each.name != "o10"], members("two", 2))
    assert kept(world) == {"n11", "n12"}


def test_a_gang_with_a_preferred_level_has_nodes_kept_where_ends_are_known():
    annotations = group("any", 3, **{"kueue.x-k8s.io/podset-preferred-topology": RACK})
    gang = [pod(f"any{i}", annotations=annotations) for i in range(3)]
    assert kept(starving(busy(), gang)) == {"n10", "n11", "n12"}
    assert kept(starving([replace(each, deadline_seconds=0) for each in busy()], gang)) == set()


def test_where_no_end_is_known_the_rack_with_most_room_now_is_kept_as_without():
    pods = [replace(each, deadline_seconds=0) for each in busy() if each.name != "o20"]
    world = starving(pods, members("big", 4))
    assert kept(world) == {"n20", "n21", "n22", "n23"}
    world.put(*lasting(1, *members("short", 1)))
    world.tick()
    assert world.held == {}, "nothing says when they are free"


def test_ends_that_are_too_far_off_are_not_counted_with():
    world = starving(busy(), members("any", 4, required=RACK), backfill_seconds=800.0)
    assert not [each for each in world.engine.starvation.of.values() if each.is_expected]


def test_an_earmark_follows_what_ends_earlier():
    world = starving(busy(), members("big", 4))
    for index in range(4):
        world.delete(world.pods[f"uid-o2{index}"])
        if index < 3:
            world.put(replace(pod(f"z{index}", on=f"n2{index}"), deadline_seconds=100))
    world.put(replace(pod("z3", on="n23"), deadline_seconds=100))
    world.tick(5.1)
    assert kept(world) == {"n20", "n21", "n22", "n23"}


def test_the_gang_starts_when_the_room_is_there_and_the_next_has_nodes_kept_at_once():
    later = {"created": "2026-01-02T00:00:00Z"}
    world = starving(busy(), [*members("big", 4), *members("next", 4, **later)])
    assert [key.name for key in world.engine.starvation.of] == ["big"]
    for each in ending(1, 0):
        world.delete(world.pods[each.uid])
    world.tick()
    assert racks(world.held) == {"n1"}
    world.tick(5.1)
    assert [key.name for key in world.engine.starvation.of] == ["next"]


def test_an_earmark_whose_room_does_not_come_ends_and_the_namespace_rests():
    world = starving(busy(1_000, 1_000, 1_000, 1_000), members("big", 4), earmark_seconds=100.0)
    (mark,) = world.engine.starvation.of.values()
    assert mark.until == mark.free_at + 100.0
    world.tick(mark.until - world.now + 1.0)
    assert world.engine.starvation.of == {}
    rest = world.engine.starvation.rests_until("default") - world.now
    assert 100.0 <= rest <= 110.0, "as long as nothing could use them"


@pytest.mark.parametrize(("after", "rest"), [(-100.0, 0.0), (90.0, 90.0)])
def test_a_gang_that_is_withdrawn_leaves_a_rest_from_when_its_room_was_expected(after, rest):
    """Else one after the other could keep nodes, and none of them would have to start there."""
    world = starving(busy(1_000, 1_000, 1_000, 1_000), members("big", 4), earmark_seconds=100.0)
    (mark,) = world.engine.starvation.of.values()
    world.tick(mark.free_at + after - world.now)
    world.delete(*[world.pods[f"uid-big{at}"] for at in range(4)])
    world.tick(5.1)
    assert world.engine.starvation.of == {}
    left = world.engine.starvation.rests_until("default") - world.now
    assert rest <= max(left, 0.0) <= rest + 10.0 * (rest > 0)


def test_a_gang_that_waits_is_tried_again_when_the_room_is_expected_later():
    world = starving([each for each in busy() if each.name != "o10"], members("big", 4))
    world.put(*lasting(1_500, *members("mid", 1)))
    world.tick()
    assert world.held == {}
    world.put(replace(pod("o10", on="n10", phase="Running"), deadline_seconds=60, uid="uid-o10"))
    world.delete(world.pods["uid-o10"])
    for index in range(1, 4):
        world.delete(world.pods[f"uid-o1{index}"])
        world.put(replace(pod(f"y{index}", on=f"n1{index}"), deadline_seconds=1_700))
    world.tick(5.1)
    world.tick()
    assert world.held == {"uid-mid0": "n10"}


def test_a_node_with_room_for_several_pods_counts_with_all_of_them():
    nodes = [node(f"b0/r0/n{i}") for i in range(3)]
    pods = lasting(500, *(pod(f"o{i}", on=f"n{i}", gpus=8, phase="Running") for i in range(3)))
    world = starving(pods, members("six", 6, gpus=4), nodes)
    assert kept(world) == {"n0", "n1", "n2"}
    world = starving(pods, members("four", 4, gpus=4), nodes)
    assert len(kept(world)) == 2
