"""As many levels as a Topology object may have, with and without the hostname level."""

from __future__ import annotations

import msgspec
import pytest

from app.kube.watch.events import Listed
from app.process.engine_settings import engine_settings
from app.settings import Settings
from app.state.cache.books import ALL_NODES
from app.state.domains.topologies import DEFAULT
from tests.app.dialects.grove.objects import topology_record
from tests.app.state.world import World, four_racks, members
from tests.records import BLOCK, RACK, job, node, topology
from topology.model.levels import LEVELS_MAX, NODE_LEVEL

SIXTEEN = tuple(f"example.com/level-{number}" for number in range(LEVELS_MAX))


def nodes_of(levels):
    """Four nodes that differ in the narrowest of the levels alone."""
    found = [node(f"n{number}") for number in range(4)]
    return [
        msgspec.structs.replace(
            each,
            labels={**each.labels, **dict.fromkeys(levels, "a"), levels[-1]: f"v{number // 2}"},
        )
        for number, each in enumerate(found)
    ]


@pytest.mark.parametrize(
    ("levels", "narrowest"),
    [
        pytest.param(SIXTEEN, SIXTEEN[-1], id="sixteen_and_the_node_level_is_added"),
        pytest.param((*SIXTEEN[:-1], NODE_LEVEL), SIXTEEN[-2], id="the_node_level_is_the_last"),
    ],
)
@pytest.mark.parametrize("is_object", [True, False], ids=["a_topology_object", "the_settings"])
def test_a_gang_is_placed_in_a_topology_of_sixteen_levels(levels, narrowest, is_object):
    above = tuple(level for level in levels if level != NODE_LEVEL)
    if is_object:
        world = World(nodes_of(above), topologies=[topology("deep", *levels)], levels=())
    else:
        world = World(nodes_of(above), levels=engine_settings(Settings(levels=levels)).levels)
    assert world.engine.topologies.problem == ""
    pods = members("g", 2, narrowest)
    world.put(*pods)
    assert set(world.schedule(*pods).values()) in ({"n0", "n1"}, {"n2", "n3"})


@pytest.mark.parametrize("is_binding_first", [True, False])
def test_of_two_kinds_that_declare_one_name_the_same_one_counts_in_any_order(is_binding_first):
    """As where Grove was upgraded, and the object of the kind before is still there."""
    before = topology_record("net", BLOCK)
    binding = topology_record("net", BLOCK, RACK, kind="ClusterTopologyBinding")
    world = World(four_racks(), levels=())
    world.put(*((binding, before) if is_binding_first else (before, binding)))
    assert world.engine.books.topologies["grove.io/net"].tree.levels == (BLOCK, RACK, NODE_LEVEL)


def test_seventeen_levels_are_told_and_not_used():
    levels = (*SIXTEEN, "example.com/level-16")
    world = World(topologies=[topology("deep", *levels)], levels=())
    assert "17 given" in world.engine.topologies.problem
    assert "deep" not in world.engine.books.topologies


def test_an_object_that_says_what_it_said_before_is_no_change():
    topologies = World(levels=()).engine.topologies
    rows = topology("rows", "example.com/row")
    assert topologies.put(rows)
    assert not topologies.put(rows)
    assert topologies.put(topology("rows", "example.com/row", NODE_LEVEL))


def topologies_of(world):
    return world.engine.books.topologies.keys() - {ALL_NODES}


def test_a_topology_that_a_list_leaves_out_is_used_no_more():
    one, other = topology("one", "example.com/row"), topology("other", "example.com/hall")
    world = World(topologies=[one, other], levels=())
    assert topologies_of(world) == {"one", "other"}
    world.apply(Listed("Topology", (other,)))
    assert topologies_of(world) == {"other"}
    world.apply(Listed("Topology", ()))
    assert topologies_of(world) == set()


def test_the_levels_set_are_a_topology_as_long_as_no_object_declares_one():
    world = World(levels=("example.com/row",))
    assert topologies_of(world) == {DEFAULT}
    declared = topology("one", "example.com/hall")
    world.put(declared)
    assert topologies_of(world) == {"one"}
    world.delete(declared)
    assert topologies_of(world) == {DEFAULT}


def test_a_list_says_whether_it_may_be_a_change():
    topologies = World(levels=()).engine.topologies
    rows = topology("rows", "example.com/row")
    assert not topologies.replace("Topology", [])
    assert topologies.replace("Topology", [rows])
    assert topologies.replace("Topology", [])
    assert not topologies.replace("Topology", [])
    assert not topologies.replace("Topology", [job("j", 1)]), "a Job declares none"


def test_an_object_that_goes_is_a_change_if_it_declared_a_topology():
    topologies = World(levels=()).engine.topologies
    rows = topology("rows", "example.com/row")
    topologies.put(rows)
    assert not topologies.drop("uid-of-another")
    assert topologies.drop(rows.uid)
    assert not topologies.drop(rows.uid)


def test_a_problem_is_told_until_its_topology_is_mended():
    world = World(topologies=[topology("odd", "a", "a")], levels=())
    assert "a is named twice" in world.engine.topologies.problem
    world.put(topology("odd", "a", "b"))
    assert world.engine.topologies.problem == ""
    assert topologies_of(world) == {"odd"}


def test_a_value_under_several_parents_is_told_as_long_as_its_topology_is_there():
    there = topology("odd", BLOCK, RACK)
    nodes = [node("b0/r0/n0"), node("b1/r0/n1")]
    world = World(nodes, topologies=[there, topology("rows", "example.com/row")], levels=())
    assert "stands under several parents" in world.engine.warnings()[0]
    world.delete(there)
    world.tick()
    assert world.engine.warnings() == ()


# -- plans of gangs that name no topology, while topologies change ---------------------------------


def planned_in_two_blocks(*declared, levels=()):
    """A gang in one rack r0, by a topology that does not tell those of two blocks apart."""
    nodes = [node(f"b{block}/r0/n{block}", gpus=8) for block in range(2)]
    world = World(nodes, topologies=declared, levels=levels)
    world.put(*members("g", 2))
    assert set(world.held.values()) == {"n0", "n1"}
    return world


RACKS = topology("default", RACK)
RACKS_IN_BLOCKS = msgspec.structs.replace(topology("default", BLOCK, RACK), uid="made-again")


def test_a_plan_is_given_up_when_the_topology_of_its_rack_gets_a_wider_level():
    world = planned_in_two_blocks(RACKS)
    world.put(topology("default", BLOCK, RACK))
    assert world.held == {}
    world.tick(2.0)  # until a lost plan may be made anew
    assert world.held == {}
    assert "1 of 2 pods fit in one cloud.provider.com/topology-rack" in world.reports[-1]


def test_a_plan_is_given_up_when_the_topology_of_its_rack_comes_back_with_a_wider_level():
    world = planned_in_two_blocks(RACKS)
    held = world.held
    world.delete(RACKS)
    world.tick()
    assert world.held == held  # nothing says yet that it is in two racks
    world.put(RACKS_IN_BLOCKS)
    assert world.held == {}


def test_a_plan_is_given_up_when_the_levels_set_tell_its_rack_from_another_one():
    world = planned_in_two_blocks(RACKS, levels=(BLOCK, RACK))
    world.delete(RACKS)
    assert world.held == {}


def test_a_plan_is_given_up_when_another_list_of_topologies_splits_its_rack():
    world = planned_in_two_blocks(RACKS)
    world.apply(Listed("Topology", (RACKS_IN_BLOCKS,)))
    assert world.held == {}


@pytest.mark.parametrize(
    "again",
    [
        pytest.param(RACKS, id="as_it_was"),
        pytest.param(topology("default", RACK, NODE_LEVEL), id="with_a_narrower_level"),
        pytest.param(topology("default", BLOCK), id="without_the_level"),
    ],
)
def test_a_plan_stays_when_its_topology_comes_back_and_splits_no_rack(again):
    world = planned_in_two_blocks(RACKS)
    held = world.held
    world.delete(RACKS)
    world.put(again)
    assert world.held == held


@pytest.mark.parametrize(
    "meanwhile",
    [
        pytest.param(None, id="no_topology"),
        pytest.param(topology("default", BLOCK), id="without_the_level"),
        pytest.param(topology("other", "example.com/row"), id="another_one"),
    ],
)
def test_a_plan_is_given_up_when_its_node_moves_while_the_level_of_its_rack_is_gone(meanwhile):
    """Else the gang would start in two racks once the topology is back."""
    world = World(four_racks(), topologies=[topology("default", BLOCK, RACK)], levels=())
    world.put(*members("g", 2))
    moving, staying = sorted(set(world.held.values()))
    world.delete(topology("default", BLOCK, RACK))
    if meanwhile is not None:
        world.put(meanwhile)
    there = world.engine.books.nodes[moving]
    world.put(msgspec.structs.replace(there, labels={**there.labels, "team": "a"}))
    assert set(world.held.values()) == {moving, staying}, "no level is of another value"
    world.put(msgspec.structs.replace(there, labels={**there.labels, RACK: "r9"}))
    assert world.held == {}


@pytest.mark.parametrize("is_gone", [True, False], ids=["that_is_gone", "that_is_there"])
def test_a_plan_stays_when_its_node_moves_in_another_topology(is_gone):
    other = topology("other", "example.com/row")
    world = World(four_racks(), topologies=[RACKS, other], levels=())
    world.put(*members("g", 2))
    held = world.held
    if is_gone:
        world.delete(other)
    there = world.engine.books.nodes[min(held.values())]
    world.put(msgspec.structs.replace(there, labels={**there.labels, "example.com/row": "x"}))
    assert world.held == held != {}


def test_a_plan_stays_as_long_as_the_topology_of_its_rack_does():
    world = planned_in_two_blocks(RACKS)
    held = world.held
    another = topology("another", BLOCK, RACK)
    world.put(another)
    assert world.held == held
    world.put(topology("another", "example.com/region", BLOCK, RACK))
    world.delete(another)
    assert world.held == held
    world.put(another)
    world.delete(RACKS)  # only that one has racks now
    assert world.held == {}


def test_a_plan_stays_when_a_topology_goes_that_it_was_not_made_by():
    world = World(four_racks(), topologies=[topology("a", BLOCK, RACK), RACKS], levels=())
    world.put(*members("g", 2))
    held = world.held
    world.delete(RACKS)
    assert world.held == held != {}


def test_a_plan_within_one_of_the_racks_by_now_is_made_anew_there():
    nodes = [node(f"b{block}/r0/n{block}", gpus=16) for block in range(2)]
    world = World(nodes, topologies=[topology("default", BLOCK, RACK)], levels=())
    world.put(*members("g", 2))
    held = world.held
    world.put(RACKS)  # wider racks: no plan is in two of them
    assert world.held == held
    world.put(topology("default", BLOCK, RACK))
    world.tick(2.0)
    assert set(world.held.values()) == set(held.values())
