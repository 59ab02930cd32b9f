"""Which of several topologies a gang is placed on."""

from __future__ import annotations

from dataclasses import replace

import msgspec

from app.dialects.kueue.dialect import KueueDialect
from app.dialects.registry import Dialects
from app.state.engine import Engine
from tests.app.state.stories import go
from tests.app.state.world import World, members
from tests.records import node, topology
from topology.model.request import Constraint

ZONE, RA, RB = "example.com/zone", "example.com/ra", "example.com/rb"


def labelled(name, **labels):
    keys = {"zone": ZONE, "ra": RA, "rb": RB}
    found = node(name)
    own = {**found.labels, **{keys[key]: value for key, value in labels.items()}}
    return msgspec.structs.replace(found, labels=own)


def world_of(*nodes, pods=()):
    return World(nodes, pods, topologies=[topology("a", ZONE, RA), topology("b", ZONE, RB)])


class NamingB(KueueDialect):
    """A vocabulary whose gangs name their topology: b, always."""

    def configured(self, options):
        return self

    def spec(self, *asked):
        spec = super().spec(*asked)
        return spec and replace(spec, topology="b")


class InARack(NamingB):
    """Their gangs are in one rack of it, which the topology may call so."""

    def __init__(self, *aliases):
        super().__init__()
        self.aliases = aliases

    def spec(self, *asked):
        spec = super().spec(*asked)
        return spec and replace(spec, root=replace(spec.root, constraint=Constraint("rack")))

    def topologies(self, record):
        for spec in super().topologies(record):
            yield replace(spec, aliases=self.aliases, replaces_settings=spec.name == "a")


class WorldOfB(World):
    def __init__(self, *things, dialect=None, **more):
        self.dialect = dialect or NamingB()
        super().__init__(*things, **more)

    def built(self):
        return Engine(self.settings, dialects=Dialects((self.dialect,)))


def test_a_gang_that_fits_only_the_second_topology_with_its_level_is_placed_there():
    # Only one node of zone 1 has a label of topology a, all have one of topology b.
    nodes = [
        labelled("n0", zone="z1", ra="x", rb="x"),
        *(labelled(f"n{at}", zone="z1", rb="x") for at in range(1, 4)),
    ]
    world = world_of(*nodes, pods=members("g", 4, ZONE))
    go(world)
    assert sorted(each.node for each in world.pods.values()) == ["n0", "n1", "n2", "n3"]


def test_a_replacement_joins_its_gang_on_the_topology_where_that_runs():
    nodes = [
        *(labelled(f"a{at}", zone="z1", ra="x") for at in range(3)),
        *(labelled(f"b{at}", zone="z1", rb="x") for at in range(3)),
    ]
    pods = members("g", 3, ZONE)
    running = [
        msgspec.structs.replace(each, node=f"b{at}", phase="Running")
        for at, each in enumerate(pods[:2])
    ]
    world = world_of(*nodes, pods=[*running, pods[2]])
    go(world)
    assert world.pods[pods[2].uid].node == "b2"


def test_a_gang_that_fits_no_topology_is_told_so_once():
    world = world_of(labelled("n0", zone="z1", ra="x", rb="x"), pods=members("g", 2, ZONE))
    go(world)
    assert all(not each.node for each in world.pods.values())
    assert len([each for each in world.reports if "placed: 1 of 2 pods fit" in each]) == 1


def test_a_gang_that_names_its_topology_is_placed_on_no_other():
    nodes = [
        *(labelled(f"a{at}", zone="z1", ra="x") for at in range(2)),
        *(labelled(f"b{at}", zone="z1", rb="x") for at in range(2)),
    ]
    topologies = [topology("a", ZONE, RA), topology("b", ZONE, RB)]
    world = WorldOfB(nodes, members("g", 2, ZONE), topologies=topologies)
    go(world)
    assert sorted(each.node for each in world.pods.values()) == ["b0", "b1"]


def test_a_gang_whose_topology_lacks_its_level_is_told_so():
    nodes = [labelled(f"n{at}", zone="z1", ra="x", rb="x") for at in range(2)]
    topologies = [topology("a", ZONE, RA), topology("b", ZONE, RB)]
    world = WorldOfB(nodes, members("g", 2, RA), topologies=topologies)
    go(world)
    assert all(not each.node for each in world.pods.values())
    (report,) = world.reports
    assert f"Topology b has no level {RA}; its levels: " in report


def test_a_level_may_have_another_name_which_may_be_given_later():
    nodes = [labelled(f"n{at}", zone="z1", rb="xy"[at % 2]) for at in range(4)]
    said = InARack()
    world = WorldOfB(
        nodes, members("g", 2, None), topologies=[topology("b", ZONE, RB)], dialect=said
    )
    go(world)
    assert "Topology b has no level rack; its levels: " in world.reports[0]
    said.aliases = (("rack", RB),)
    world.put(topology("b", ZONE, RB))
    go(world)
    on = {each.node for each in world.pods.values()}
    assert on in ({"n0", "n2"}, {"n1", "n3"})


def test_the_levels_that_are_set_stay_in_use_beside_a_topology_that_does_not_replace_them():
    world = WorldOfB(levels=(ZONE, RA), dialect=InARack())
    world.put(topology("b", ZONE, RB))
    assert {"default", "b"} < world.engine.books.topologies.keys()
    world.put(topology("a", ZONE, RA))
    assert "default" not in world.engine.books.topologies
