"""Domains that objects declare: who is in them, as nodes, labels and objects come and go.

On the engine: HyperNodes are the objects, and gangs require one of tier 1.
"""

from __future__ import annotations

from itertools import pairwise

import msgspec
import pytest

from app.kube.watch.events import Listed
from app.state.cache.books import ALL_NODES
from app.state.effects import EmitEvent, WriteStatus
from app.state.filter_result import Rejected
from app.state.gang.gang import Gang
from tests.app.dialects.volcano.objects import by_labels, by_pattern, exact, record
from tests.app.state.world import LISTED, World, members
from tests.records import BLOCK, RACK, node, topology

TIER = "topology.volcano.sh/tier-{}".format
KINDS = (*LISTED, "HyperNode")
CONDITION = {
    "status": "True",
    "reason": "AllMembersResolved",
    "message": "every member counts",
}
TREE = (
    record("s0", 1, exact("Node", "n0", "n1")),
    record("s1", 1, exact("Node", "n2", "n3")),
    record("s2", 2, exact("HyperNode", "s0", "s1")),
)


def world_of(*hyper_nodes, nodes=None, **settings):
    """Four nodes with room for one pod each, in no rack, and these HyperNodes."""
    if nodes is None:
        nodes = [node(f"n{at}", gpus=1) for at in range(4)]
    world = World(nodes, kinds=KINDS, levels=(), **settings)
    world.apply(Listed("HyperNode", hyper_nodes))
    world.tick()
    return world


def paths(world):
    """Node -> the domains it is in, the widest first."""
    world.engine.books.refresh()
    tree = world.engine.books.topologies["HyperNodes"].tree
    found = (tree.path(tree.node_level, slot) for slot in range(len(tree.nodes)))
    return {path[-1]: path[:-1] for path in found}


def placed(world, name, pods, tier):
    gang = members(name, pods, TIER(tier), gpus=1)
    world.put(*gang)
    world.tick()
    return sorted(world.schedule(*gang).values())


def written(world):
    """The last status of each HyperNode: (nodes, reason, message)."""
    world.tick()
    found = {}
    for effect in world.effects:
        if isinstance(effect, WriteStatus):
            *_, condition = effect.status["conditions"]
            said = effect.status["nodeCount"], condition["reason"], condition["message"]
            found[effect.gang.name] = said
    return found


def shown(before, status):
    """The record as the watch shows it after a status was written."""
    (condition,) = status["conditions"]
    said = condition["status"], condition["reason"], condition["message"]
    count = status["nodeCount"]
    return msgspec.structs.replace(
        before, node_count=count, condition=said, turned_at="t", version="8"
    )


def test_a_gang_is_in_one_hyper_node_of_the_tier_that_it_requires():
    world = world_of(*TREE)
    assert placed(world, "near", 2, 1) in (["n0", "n1"], ["n2", "n3"])
    wide = world_of(*TREE)
    assert placed(wide, "wide", 4, 2) == ["n0", "n1", "n2", "n3"]
    assert placed(world_of(*TREE), "many", 3, 1) == []


def test_a_node_in_no_hyper_node_is_alone_at_every_tier():
    world = world_of(*TREE[:1])
    assert paths(world) == {"n0": ("s0",), "n1": ("s0",), "n2": ("node/n2",), "n3": ("node/n3",)}
    assert placed(world, "near", 2, 1) == ["n0", "n1"]
    assert placed(world, "more", 2, 1) == []


def test_a_tier_that_no_hyper_node_has_is_no_level():
    world = world_of(*TREE)
    pod = members("g", 2, TIER(3), gpus=1)
    world.put(*pod)
    answer = world.filter(pod[0])
    assert isinstance(answer, Rejected)
    assert TIER(3) in answer.sentence


def test_hyper_nodes_stand_beside_the_levels_of_the_settings_and_go_when_the_last_does():
    world = World([node("b0/r0/n0")], kinds=KINDS)
    world.apply(Listed("HyperNode", TREE))
    assert set(world.engine.books.topologies) == {ALL_NODES, "default", "HyperNodes"}
    world.delete(*TREE)
    assert set(world.engine.books.topologies) == {ALL_NODES, "default"}


@pytest.mark.parametrize("is_listed", [True, False], ids=["a_list", "one_event"])
@pytest.mark.parametrize(
    "named",
    [by_pattern("^n[01]$"), by_labels(rack="a"), by_labels({"key": "rack", "operator": "Exists"})],
    ids=["by_pattern", "by_label", "by_any_label"],
)
def test_nodes_are_members_by_pattern_or_label_from_the_moment_they_are_there(named, is_listed):
    labelled = [node(f"n{at}", gpus=1, labels={"rack": "a"}) for at in range(2)]
    world = World([labelled[0], node("n2", gpus=1)], kinds=KINDS, levels=())
    one = record("s0", 1, named)
    world.apply(Listed("HyperNode", (one,) if is_listed else ()))
    if not is_listed:
        world.put(one)
    assert paths(world) == {"n0": ("s0",), "n2": ("node/n2",)}
    world.put(labelled[1])
    assert paths(world)["n1"] == ("s0",)
    world.delete(labelled[0])
    assert paths(world) == {"n1": ("s0",), "n2": ("node/n2",)}


def test_a_label_that_changes_moves_its_node_at_once():
    nodes = [node(f"n{at}", gpus=1, labels={"rack": "ab"[at // 2]}) for at in range(4)]
    world = world_of(*(record(f"s-{rack}", 1, by_labels(rack=rack)) for rack in "ab"), nodes=nodes)
    world.put(node("n1", gpus=1, labels={"rack": "b"}))
    assert [paths(world)[f"n{at}"] for at in range(4)] == [("s-a",), *[("s-b",)] * 3]
    assert placed(world, "three", 3, 1) == ["n1", "n2", "n3"]
    world.tick(1.0)
    assert written(world)["s-b"][0] == 3


def test_a_plan_over_nodes_that_are_taken_apart_is_given_up():
    world = world_of(*TREE)
    gang = members("g", 2, TIER(1), gpus=1)
    world.put(*gang)
    world.tick()
    held = {each.node for each in world.engine.books.held.values()}
    own, other = (TREE[0], "s1") if held == {"n0", "n1"} else (TREE[1], "s0")
    first, last = sorted(held)
    world.put(record(own.name, 1, exact("Node", first)))
    assert world.engine.books.held == {}
    world.tick(2.0)  # until a lost plan may be made anew
    nodes = sorted(world.schedule(*gang).values())
    assert nodes == sorted(node for node, path in paths(world).items() if path[-1] == other)
    assert last not in nodes


def test_a_gang_that_runs_stays_where_it_is():
    world = world_of(*TREE)
    assert placed(world, "near", 2, 1) == ["n0", "n1"]
    world.effects.clear()
    world.delete(TREE[0])
    world.tick()
    assert {each.node for each in world.engine.books.bound.values()} == {"n0", "n1"}
    assert world.engine.gangs.by_key


def test_a_plan_of_other_levels_stays_when_hyper_nodes_change():
    nodes = [node(f"b0/r0/n{at}", gpus=1) for at in range(2)]
    world = World(nodes, kinds=KINDS)
    world.apply(Listed("HyperNode", TREE))
    gang = members("g", 2, gpus=1)
    world.put(*gang)
    world.tick()
    held = dict(world.engine.books.held)
    assert len(held) == 2
    world.delete(TREE[0])
    assert world.engine.books.held == held


# What is written on them


def test_the_nodes_are_counted_and_flaws_are_said_with_an_event():
    world = world_of(*TREE, record("s3", 2, [*exact("HyperNode", "s0", "s9"), *exact("Node", "x")]))
    assert written(world) == {
        "s0": (2, "AllMembersResolved", "every member counts"),
        "s1": (2, "AllMembersResolved", "every member counts"),
        "s2": (4, "AllMembersResolved", "every member counts"),
        "s3": (
            0,
            "MemberTaken",
            "s0 is a member of s2 already; there is no s9; there is no node x",
        ),
    }
    (event,) = (effect for effect in world.effects if isinstance(effect, EmitEvent))
    assert (event.about.kind, event.about.name, event.reason) == ("HyperNode", "s3", "MemberTaken")
    assert event.about.api_version == "topology.volcano.sh/v1alpha1"
    assert event.sentence == "s0 is a member of s2 already; and 2 more"
    assert event.is_warning


def test_the_count_follows_the_nodes_in_the_same_tick():
    world = world_of(*TREE)
    world.put(*(shown(one, status_of(world, one.name)) for one in TREE))
    world.tick(1.0)
    world.effects.clear()
    world.delete(node("n0", gpus=1))
    assert written(world) == {
        "s0": (1, "NodeNotFound", "there is no node n0"),
        "s2": (3, "AllMembersResolved", "every member counts"),
    }


def status_of(world, name):
    return next(
        effect.status
        for effect in reversed(world.effects)
        if isinstance(effect, WriteStatus) and effect.gang.name == name
    )


def test_nothing_is_written_that_is_there():
    world = world_of(*TREE)
    there = [shown(one, status_of(world, one.name)) for one in TREE]
    again = world_of(*there)
    assert [each for each in again.effects if isinstance(each, WriteStatus | EmitEvent)] == []


def test_what_another_controller_overwrites_is_written_less_and_less_often():
    world = world_of(TREE[0])
    overwritten = msgspec.structs.replace(TREE[0], node_count=9)
    written_at = [1000.1]
    for step in range(8 * 360):
        world.effects.clear()
        # As it writes, ours has just been seen, and another condition of its own changes too.
        world.put(shown(overwritten, {"nodeCount": 2, "conditions": [CONDITION]}))
        other = ({"type": "Other", "n": step},)
        world.put(msgspec.structs.replace(overwritten, other_conditions=other, version=f"{step}"))
        world.tick(10.0)
        if any(isinstance(each, WriteStatus) for each in world.effects):
            written_at.append(world.now)
    waits = [round(later - before) for before, later in pairwise(written_at)]
    assert waits[:5] == pytest.approx([30, 60, 120, 240, 480], abs=12)
    assert max(waits) == pytest.approx(3600, abs=12)
    assert len(written_at) < 20
    world.effects.clear()
    world.delete(node("n0", gpus=1))
    assert written(world)["s0"][0] == 1  # something new to say is said at once


def test_a_status_that_never_shows_is_written_for_months():
    world = world_of(TREE[0])
    for _ in range(1_100):
        world.effects.clear()
        world.tick(3_600.0)
        assert written(world)["s0"][0] == 2


def test_a_status_that_the_watch_does_not_show_is_written_again():
    world = world_of(TREE[0])
    world.effects.clear()
    for _ in range(5):
        world.tick(5.0)
    assert world.effects == []
    world.tick(10.0)
    assert written(world)["s0"] == (2, "AllMembersResolved", "every member counts")


def test_nodes_that_come_one_by_one_are_told_of_once_and_counted_once_a_second():
    names = [f"m{at}" for at in range(100)]
    world = world_of(record("s0", 1, exact("Node", *names)))
    world.effects.clear()
    for at, name in enumerate(names):
        world.put(node(name, gpus=1))
        world.tick(0.1)
        if at % 7 == 0:
            assert world.engine.topologies.view("uid-s0").nodes == at + 1
    statuses = [each for each in world.effects if isinstance(each, WriteStatus)]
    assert 9 <= len(statuses) <= 11
    assert [each for each in world.effects if isinstance(each, EmitEvent)] == []
    world.tick(1.0)
    assert written(world)["s0"] == (100, "AllMembersResolved", "every member counts")


def test_flaws_that_stay_are_told_once():
    world = world_of(record("s0", 1, exact("Node", "n0", "x")))
    for at in range(3):
        world.put(node(f"more-{at}", gpus=1))
        world.put(record("s0", 1, [*exact("Node", "n0", "x"), *by_pattern(f"^more-[0-{at}]$")]))
        world.tick(40.0)
    events = [effect for effect in world.effects if isinstance(effect, EmitEvent)]
    assert [event.sentence for event in events] == ["there is no node x"]


def test_an_object_of_the_same_name_made_anew_takes_the_place_of_the_first():
    world = world_of(*TREE)
    anew = msgspec.structs.replace(TREE[0], uid="uid-anew")
    world.apply(Listed("HyperNode", (anew, *TREE[1:])))
    assert paths(world)["n0"] == ("s2", "s0")
    world.delete(TREE[0])  # that the first is gone is heard late
    assert paths(world)["n0"] == ("s2", "s0")
    world.delete(anew)
    assert paths(world)["n0"] == ("node/n0", "node/n0")


def test_an_object_made_anew_has_its_status_written_also_if_the_first_is_still_there():
    world = world_of(*TREE)
    world.put(*(shown(one, status_of(world, one.name)) for one in TREE))
    world.tick()
    world.effects.clear()
    anew = msgspec.structs.replace(TREE[0], uid="uid-anew")
    world.put(anew)
    world.tick()
    assert [each.uid for each in world.effects if isinstance(each, WriteStatus)] == ["uid-anew"]
    world.delete(anew)  # the first one counts again
    world.tick()
    assert paths(world)["n0"] == ("s2", "s0")


# Beside other topologies


def test_a_tier_that_changes_moves_the_nodes_and_ends_plans_over_them():
    others = (record("s8", 1, exact("Node", "n2")), record("s9", 2, exact("Node", "n3")))
    world = world_of(TREE[0], *others)
    gang = members("g", 2, TIER(1), gpus=1)
    world.put(*gang)
    world.tick()
    assert {each.node for each in world.engine.books.held.values()} == {"n0", "n1"}
    world.put(record("s0", 2, exact("Node", "n0", "n1")))
    assert paths(world)["n0"] == ("s0", "node/n0")
    world.tick(2.0)
    assert world.engine.books.held == {}
    assert world.schedule(*gang) == {}


def test_a_topology_of_labels_cannot_have_the_level_of_a_tier():
    world = world_of(*TREE)
    world.put(topology("forged", TIER(1)))
    assert world.engine.topologies.problem == (
        f"Topology forged: {TIER(1)} is a tier of objects, not a label"
    )
    assert set(world.engine.books.topologies) == {ALL_NODES, "HyperNodes"}
    world.delete(*TREE)
    assert world.engine.topologies.problem == ""
    assert set(world.engine.books.topologies) == {ALL_NODES, "forged"}


def test_more_than_sixteen_tiers_are_told_and_the_rest_goes_on():
    many = [record(f"t{tier}", tier, exact("Node", "n0")) for tier in range(1, 18)]
    world = World([node(f"b0/r0/n{at}", gpus=1) for at in range(2)], kinds=KINDS)
    world.put(topology("hypernodes", BLOCK, RACK))
    world.apply(Listed("HyperNode", tuple(many)))
    assert world.engine.topologies.problem.startswith("Topology HyperNodes: levels: 17 given")
    pods = members("g", 2, gpus=1)
    world.put(*pods)
    world.tick()
    assert len(world.schedule(*pods)) == 2
    world.delete(many[0])
    assert world.engine.topologies.problem == ""
    assert paths(world)["n1"] == ("node/n1",) * 16


def test_a_new_tier_keeps_the_trees_of_other_topologies():
    world = World([node("b0/r0/n0", gpus=1)], kinds=KINDS)
    before = world.engine.books.topologies["default"].tree
    world.put(TREE[0])
    assert world.engine.books.topologies["default"].tree is before


def test_what_is_read_does_not_depend_on_the_order_of_a_set():
    hyper_nodes = [record(f"s{at}", 1, exact("Node", f"n{at}")) for at in range(4)]
    world = world_of(*hyper_nodes)
    world.effects.clear()
    world.apply(Listed("HyperNode", (record("s9", 2, exact("HyperNode", *"abc")),)))
    assert list(world.engine.topologies.replace("HyperNode", hyper_nodes).moved) == [
        f"n{at}" for at in range(4)
    ]


def test_a_gang_is_looked_at_once_however_many_of_its_nodes_move(monkeypatch):
    nodes = [node(f"n{at}", gpus=1) for at in range(40)]
    whole = record("s0", 1, exact("Node", *(f"n{at}" for at in range(40))))
    world = world_of(whole, nodes=nodes)
    assert len(placed(world, "g", 40, 1)) == 40
    asked = []
    levels = Gang.levels.fget
    monkeypatch.setattr(Gang, "levels", property(lambda gang: asked.append(gang) or levels(gang)))
    world.delete(whole)
    assert len(asked) == 1
