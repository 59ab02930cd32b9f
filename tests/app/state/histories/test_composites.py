"""Gangs of CompositePodGroups, as these, PodGroups and pods come, change and go, in any order."""

from __future__ import annotations

from itertools import permutations

import msgspec
import pytest

from app.kube.watch.events import Listed
from app.state.effects import Evict, WriteStatus
from app.state.journal.record import Recorder
from app.state.journal.replay import replay
from tests.app.dialects.native.composites import KIND, composite, inner, root
from tests.app.dialects.native.objects import KIND as POD_GROUP
from tests.app.dialects.native.objects import member, members
from tests.app.state.stories import go, sentence
from tests.app.state.world import LISTED, World
from tests.records import BLOCK, PREFERRED, RACK, REQUIRED, node, pod

ON = {"native_pod_groups": "on", "kinds": (*LISTED, POD_GROUP, KIND)}
TWO_PLAIN = (inner("a", 2), inner("b", 2))
TWO = (composite("all", 2, key=BLOCK), inner("a", 2, key=RACK), inner("b", 2, key=RACK))


def two_blocks():
    """Two racks in each of two blocks, two nodes in each of these with room for one pod each."""
    return [
        node(f"b{block}/r{block}{rack}/n{block}{rack}{at}")
        for block in range(2)
        for rack in range(2)
        for at in range(2)
    ]


def world_of(*objects, pods=(), **settings):
    world = World(two_blocks(), pods, **{**ON, **settings})
    for kind in (POD_GROUP, KIND):
        world.apply(Listed(kind, tuple(each for each in objects if each.kind == kind)))
    world.tick()
    return world


def occupied(*nodes):
    """A pod on each of these nodes."""
    return tuple(pod(f"f{each}", on=f"n{each}", phase="Running") for each in nodes)


def gone(world):
    """All pods go as far as they may: what starts, by name."""
    found = {}
    for _ in range(4):
        found |= go(world)
    return found


def blocks(on):
    return {name[1] for name in on.values()}


def racks(on):
    """Named by the block and the rack: b0/r01/n010."""
    return {name[:3] for name in on.values()}


def told(world, name="a-0"):
    return sentence(world, f"uid-{name}")


# -- whole, level by level -------------------------------------------------------------------------


def test_the_groups_of_a_gang_start_together_each_in_its_rack_and_all_in_one_block():
    world = world_of(*TWO)
    world.put(*members(2, "a"), member("b-0", "b"))
    assert gone(world) == {}
    assert world.held == {}
    assert told(world) == "gang default/all waits until all 4 of its pods are there and ungated"
    world.put(member("b-1", "b"))
    on = gone(world)
    assert len(on) == 4
    assert len(blocks(on)) == 1
    for of in ("a", "b"):
        assert len(racks({name: on[name] for name in on if name.startswith(of)})) == 1


def test_a_gang_that_no_block_has_room_for_waits_though_each_group_has_a_rack():
    three = (*TWO, inner("c", 2, key=RACK))
    world = world_of(composite("all", 3, key=BLOCK), *three[1:])
    for of in ("a", "b", "c"):
        world.put(*members(2, of))
    assert gone(world) == {}
    assert told(world).startswith("gang default/all cannot be placed: 2 of 2 pods fit in one")
    assert "but not beside pod sets b, c" in told(world)
    world = world_of(composite("all", 3), *three[1:])
    for of in ("a", "b", "c"):
        world.put(*members(2, of))
    assert len(gone(world)) == 6


def test_of_three_groups_two_are_enough_and_the_third_follows():
    world = world_of(*TWO, inner("c", 1))
    world.put(*members(2, "a"), *members(2, "b"))
    on = gone(world)
    assert len(on) == 4
    world.put(member("c-0", "c"))
    assert gone(world) == {}  # the block is full
    roomy = world_of(composite("all", 2), *TWO[1:], inner("c", 1))
    roomy.put(*members(2, "a"), *members(2, "b"))
    assert len(gone(roomy)) == 4
    roomy.put(member("c-0", "c"))
    assert list(gone(roomy)) == ["c-0"]


def test_of_a_group_that_runs_no_more_pods_wait_until_all_that_have_not_succeeded_are_there():
    """Beside it is a group that would be enough, and has no room."""
    world = world_of(composite("all", 1), inner("a", 3), inner("b", 1))
    first = members(3, "a")
    world.put(*first)
    on = gone(world)
    assert len(on) == 3
    for each, phase in zip(first, ("Succeeded", "Running", "Running"), strict=True):
        world.put(msgspec.structs.replace(each, node=on[each.name], phase=phase))
    for each in first[1:]:
        world.delete(world.pods[each.uid])
    world.put(member("a-3", "a"), member("b-0", "b", gpus=9))
    assert gone(world) == {}
    assert world.held == {}
    world.tick(60.0)
    assert world.held == {}
    world.put(member("a-4", "a"))
    assert sorted(gone(world)) == ["a-3", "a-4"]


def test_what_groups_do_not_need_takes_nothing_of_what_others_do():
    world = world_of(composite("all", 2, key=BLOCK), inner("a", 1), inner("b", 3))
    world.put(*members(4, "a"), *members(3, "b"))
    on = gone(world)
    assert sorted(name[0] for name in on) == ["a", "b", "b", "b"]
    assert len(blocks(on)) == 1


# -- annotations for what composites lack ----------------------------------------------------------


def test_a_level_that_a_composite_prefers_is_kept_where_it_has_room_and_widened_where_not():
    prefers = composite("all", 2, key=BLOCK, annotations={PREFERRED: RACK})
    for made in (composite("all", 2, key=BLOCK), prefers):
        world = world_of(made, inner("a", 1), inner("b", 1), pods=occupied("000", "100", "110"))
        world.put(member("a-0", "a"), member("b-0", "b"))
        # Without it the fuller block is better, where either rack has one node left.
        assert len(racks(gone(world))) == (1 if made is prefers else 2)
    world = world_of(prefers, *TWO_PLAIN)
    world.put(*members(2, "a"), *members(2, "b"))
    on = gone(world)
    assert (len(on), len(blocks(on)), len(racks(on))) == (4, 1, 2)


def test_a_level_that_a_composite_requires_in_an_annotation_holds_for_all_of_it():
    for said in (REQUIRED, "corral.dev/workload-required-topology"):
        made = composite("all", 2, key=BLOCK, annotations={said: RACK})
        world = world_of(made, *TWO_PLAIN)
        world.put(*members(2, "a"), *members(2, "b"))
        assert gone(world) == {}
        assert told(world).startswith("gang default/all cannot be placed: ")
        world = world_of(made, inner("a", 1), inner("b", 1), pods=occupied("000", "100", "110"))
        world.put(member("a-0", "a"), member("b-0", "b"))
        assert racks(gone(world)) == {"n01"}


def test_a_level_that_a_composite_prefers_though_it_is_wider_than_its_key_is_refused():
    world = world_of(composite("all", 2, key=RACK, annotations={PREFERRED: BLOCK}), *TWO_PLAIN)
    world.put(*members(2, "a"), *members(2, "b"))
    assert gone(world) == {}
    assert told(world).startswith("gang default/all is invalid: ")
    assert RACK in told(world)
    assert BLOCK in told(world)


def test_composites_of_a_gang_that_name_other_levels_for_all_of_it_contradict_each_other():
    said = "corral.dev/workload-required-topology"
    outer = composite("all", 1, annotations={said: BLOCK})
    part = composite("part", 1, inside="all", annotations={said: RACK})
    world = world_of(outer, part, inner("a", 1, "part"))
    world.put(member("a-0", "a"))
    assert gone(world) == {}
    assert told(world).startswith("gang default/all is invalid: CompositePodGroup default/part:")


def test_an_annotation_on_a_composite_that_comes_later_moves_nothing_that_runs():
    world = world_of(composite("all", 2), *TWO_PLAIN)
    world.put(*members(2, "a"), *members(2, "b"))
    assert len(gone(world)) == 4
    world.put(composite("all", 2, annotations={REQUIRED: RACK}))
    assert gone(world) == {}
    assert world.told(Evict) == []


# -- objects that come late ------------------------------------------------------------------------


@pytest.mark.parametrize("order", list(permutations(range(3))))
def test_objects_and_pods_may_come_in_any_order(order):
    objects = (composite("all", 1), composite("part", 2, inside="all", key=RACK), None)
    groups = (inner("a", 1, "part"), inner("b", 1, "part"))
    world = world_of()
    world.put(member("a-0", "a"), member("b-0", "b"))
    for at in order:
        assert gone(world) == {}
        world.put(*((objects[at],) if objects[at] else groups))
    on = gone(world)
    assert len(on) == 2
    assert len(racks(on)) == 1
    assert list(world.engine.gangs.by_key) == [root()]


def test_pods_wait_for_a_composite_that_is_not_there_and_say_so():
    world = world_of(inner("a", 1))
    world.put(member("a-0", "a"))
    assert gone(world) == {}
    assert told(world) == "gang default/all waits until CompositePodGroup all is there"
    world.put(composite("all", 1, inside="more"))
    assert gone(world) == {}
    assert told(world) == "gang default/more waits until CompositePodGroup more is there"
    world.put(composite("more", 1))
    assert len(gone(world)) == 1


def test_a_gang_waits_for_a_pod_group_that_it_lacks_and_says_so():
    world = world_of(*TWO[:2])
    world.put(*members(2, "a"))
    assert gone(world) == {}
    assert told(world) == (
        "gang default/all waits until CompositePodGroup all, which has 1 of 2 groups, has the"
        " others"
    )
    world.put(TWO[2], *members(2, "b"))
    assert len(gone(world)) == 4


def test_min_count_may_change_of_a_pod_group_at_any_depth():
    part = composite("part", 1, inside="all")
    world = world_of(composite("all", 1), part, inner("a", 3, "part"))
    world.put(*members(2, "a"))
    assert gone(world) == {}
    world.put(inner("a", 2, "part"))
    assert len(gone(world)) == 2


def test_a_pod_group_that_is_made_anew_inside_another_composite_moves_its_pods():
    world = world_of(composite("all", 1), composite("other", 1), inner("a", 2))
    world.put(member("a-0", "a"))
    world.delete(inner("a", 2))
    assert gone(world) == {}
    world.put(inner("a", 2, "other", key=RACK))
    world.put(member("a-1", "a"))
    on = gone(world)
    assert len(on) == 2
    assert len(racks(on)) == 1
    assert list(world.engine.gangs.by_key) == [root("other")]


def test_running_pods_stay_when_their_composite_goes_and_are_in_it_when_it_is_back():
    world = world_of(*TWO)
    world.put(*members(2, "a"), *members(2, "b"))
    on = gone(world)
    world.delete(TWO[0])
    world.tick()
    assert world.told(Evict) == []
    assert set(world.engine.books.bound) == {f"uid-{name}" for name in on}
    world.put(TWO[0])
    world.tick()
    assert world.told(Evict) == []
    assert world.gang("all").membership.problem == ""
    assert len(world.gang("all").membership.bound) == 4


def test_a_circle_that_is_broken_starts():
    world = world_of(composite("x", 1, inside="y"), composite("y", 1, inside="x"))
    world.put(inner("a", 1, "x"), member("a-0", "a"))
    assert gone(world) == {}
    assert "it is inside a circle: x in y in x" in told(world)
    world.delete(composite("y", 1, inside="x"))
    world.put(composite("y", 1))
    assert len(gone(world)) == 1


def test_a_mistake_in_one_group_keeps_all_from_starting_until_it_is_mended():
    world = world_of(composite("all", 1), inner("a", 2), inner("b", None))
    world.put(*members(2, "a"))
    assert gone(world) == {}
    assert "PodGroup default/b: spec.schedulingPolicy.basic: Forbidden" in told(world)
    world.put(inner("b", 1))
    assert len(gone(world)) == 2


def test_nothing_of_objects_that_are_gone_is_remembered():
    world = world_of(*TWO, composite("part", 1, inside="all"))
    world.put(*members(2, "a"))
    world.delete(*TWO, composite("part", 1, inside="all"), *members(2, "a"))
    world.tick()
    objects = world.engine.objects
    assert (objects.by_uid, objects.by_gang, objects.inside) == ({}, {}, {})
    assert world.engine.gangs.by_key == {}


# -- what is written -------------------------------------------------------------------------------


def conditions(world):
    """The last that was written on each object, by the end of its path."""
    return {
        effect.path.split("/")[-2]: effect.status["conditions"][0]["status"]
        for effect in world.told(WriteStatus)
    }


def test_every_object_says_whether_it_has_started():
    world = world_of(*TWO)
    world.put(*members(2, "a"), *members(1, "b"))
    gone(world)
    assert conditions(world) == {"all": "False", "a": "False", "b": "False"}
    world.put(member("b-1", "b"))
    gone(world)
    world.tick()
    assert conditions(world) == {"all": "True", "a": "True", "b": "True"}
    before = len(world.told(WriteStatus))
    world.engine.statuses.note(root())
    world.tick()
    assert len(world.told(WriteStatus)) == before


def test_a_group_that_has_started_says_so_though_the_gang_that_needs_all_lacks_another():
    """As after a binding that failed."""
    runs = [member(f"a-{at}", "a", on=f"n00{at}", phase="Running") for at in (0, 1)]
    world = world_of(*TWO, pods=(*runs, *members(2, "b")))
    world.put(*(pod(f"other-{at}", on=at, phase="Running") for at in ("n010", "n011")))
    gone(world)
    assert conditions(world) == {"all": "False", "a": "True", "b": "False"}


def test_each_status_is_sent_again_that_does_not_show():
    world = world_of(*TWO)
    world.put(*members(2, "a"))
    gone(world)
    before = len(world.told(WriteStatus))
    assert before == 3
    world.tick(1.0)
    world.tick(11.0)
    world.tick(1.1)
    again = [effect.path for effect in world.told(WriteStatus)[before:]]
    assert len(set(again)) == 3


# -- restart ---------------------------------------------------------------------------------------


def test_a_journal_of_them_replays():
    lines: list[str] = []

    class Recorded(World):
        def built(self):
            engine = super().built()
            self.recorder = Recorder(engine, engine.settings, lines.append)
            return engine

    world = Recorded(two_blocks(), **ON)
    world.apply(Listed(POD_GROUP, TWO[1:]))
    world.apply(Listed(KIND, TWO[:1]))
    world.put(*members(2, "a"), *members(2, "b"))
    assert len(gone(world)) == 4
    assert list(replay(lines)) == []


def test_a_restart_knows_what_runs():
    world = world_of(*TWO)
    world.put(*members(2, "a"), *members(2, "b"))
    gone(world)
    again = world_of(*TWO, pods=world.pods.values())
    assert list(again.engine.gangs.by_key) == [root()]
    assert len(again.gang().membership.bound) == 4
    assert again.gang().phase is world.gang().phase
