"""Gangs on several Topologies, each inside one domain of the one before it."""

from __future__ import annotations

from itertools import product

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.dialects.declared import JOINED
from app.kube.watch.events import Listed
from app.state.domains.named_levels import MOST_PER_NAMESPACE
from app.state.journal.replay import replay
from app.state.plan.single_nodes import with_levels
from tests.app.dialects.kai.objects import group, member, sub_group, topology_record, within
from tests.app.state.histories.test_kai import KINDS, started, world_of
from tests.app.state.journal.test_journal import RecordedWorld
from tests.app.state.stories import finish, sentence
from tests.records import node

ZONE, BLOCK, ROOM, RACK = (f"example.com/{each}" for each in ("zone", "block", "room", "rack"))
ZONES = topology_record("zones", ZONE, BLOCK)
RACKS = topology_record("racks", ROOM, RACK)
IN_ZONE = within(ZONE, topology="zones")
IN_RACK = within(RACK, topology="racks")


def labelled(name, gpus=1, **labels):
    said = {f"example.com/{key}": value for key, value in labels.items()}
    made = node(name, gpus=gpus)
    return msgspec.structs.replace(made, labels={**made.labels, **said})


def grid():
    """Two zones of two blocks, and in each zone the same two racks, which cross the blocks."""
    return [
        labelled(f"{zone}{rack}{at}", zone=zone, block=f"b{at % 2}", room="m", rack=rack)
        for zone, rack, at in product("xy", "ab", range(4))
    ]


def on(name, least, constraint=IN_RACK, parent="", **more):
    return sub_group(name, least, parent, topologyConstraint=constraint, **more)


def pods(part, count, of="pg"):
    return [member(f"{of}-{part}-{at}", part, of=of, gpus=1) for at in range(count)]


def world(*things, nodes=None, topologies=(ZONES, RACKS)):
    return world_of(*things, nodes=grid() if nodes is None else nodes, topologies=topologies)


def joined(world):
    return [name for name in world.engine.books.topologies if name.startswith(JOINED)]


PAIR = group("pg", None, on("a", 3), on("b", 3), on=IN_ZONE)


def test_each_sub_group_is_in_one_rack_and_all_are_in_one_zone():
    placed = started(world(PAIR), *pods("a", 3), *pods("b", 3))
    assert len(placed) == 6
    assert len({name[0] for name in placed.values()}) == 1
    racks = [{placed[f"pg-{part}-{at}"][:2] for at in range(3)} for part in "ab"]
    assert [len(each) for each in racks] == [1, 1]
    assert racks[0] != racks[1]  # of four nodes with room for one pod each


def test_the_rack_crosses_blocks_for_no_block_is_required():
    placed = started(world(group("pg", None, on("a", 4), on=IN_ZONE)), *pods("a", 4))
    assert sorted(name[2] for name in placed.values()) == list("0123")


def test_a_rack_that_goes_on_in_another_zone_is_no_place():
    refused = world(group("pg", None, on("a", 5), on=IN_ZONE))
    assert started(refused, *pods("a", 5)) == {}
    assert "4 of 5 pods fit" in sentence(refused, "uid-pg-a-0")
    alone = world(group("pg", None, on("a", 5)))
    assert len(started(alone, *pods("a", 5))) == 5


def test_all_of_it_starts_or_nothing():
    short = world(group("pg", None, on("a", 4), on("b", 4), on("c", 4), on=IN_ZONE))
    assert started(short, *pods("a", 4), *pods("b", 4), *pods("c", 4)) == {}
    assert short.held == {}


def test_a_pod_made_anew_comes_back_into_the_rack_of_its_zone():
    there = world(PAIR)
    placed = started(there, *pods("a", 3), *pods("b", 3))
    home = placed["pg-a-0"][:2]
    there.delete(there.pods["uid-pg-a-0"])
    again = started(there, member("pg-a-again", "a", gpus=1))
    assert again["pg-a-again"][:2] == home


def test_a_node_that_lacks_a_label_of_either_is_no_place():
    bare = [labelled(f"xa{at}", zone="x", block="b0", room="m") for at in range(4)]
    assert started(world(PAIR, nodes=bare), *pods("a", 3), *pods("b", 3)) == {}


def test_a_preferred_level_inside_widens_up_to_the_domain_outside():
    prefers = within("", RACK, topology="racks")
    placed = started(world(group("pg", None, on("a", 6, prefers), on=IN_ZONE)), *pods("a", 6))
    assert len(placed) == 6
    assert len({name[0] for name in placed.values()}) == 1
    assert started(world(group("pg", None, on("a", 9, prefers), on=IN_ZONE)), *pods("a", 9)) == {}


def test_levels_may_be_named_by_their_aliases():
    named = (
        topology_record("zones", ZONE, BLOCK, aliases=("zone",)),
        topology_record("racks", ROOM, RACK, aliases=("", "rack")),
    )
    by_alias = on("a", 3, within("rack", topology="racks"))
    pg = group("pg", None, by_alias, on=within("zone", topology="zones"))
    placed = started(world(pg, topologies=named), *pods("a", 3))
    assert len({name[:2] for name in placed.values()}) == 1
    assert len(placed) == 3


@pytest.mark.parametrize(
    ("root", "inner", "topologies", "why"),
    [
        pytest.param(
            IN_ZONE,
            IN_RACK,
            (ZONES,),
            "Topology kai.scheduler/racks does not exist, or its levels are not valid",
            id="a_topology_that_is_not_there",
        ),
        pytest.param(
            within("example.com/hall", topology="zones"),
            IN_RACK,
            (ZONES, RACKS),
            "Topology kai.scheduler/zones has no level example.com/hall; its levels:"
            f" {ZONE}, {BLOCK}, kubernetes.io/hostname",
            id="an_outer_level_that_is_not_there",
        ),
        pytest.param(
            IN_ZONE,
            within(ZONE, topology="racks"),  # the other one has it
            (ZONES, RACKS),
            f"Topology kai.scheduler/racks has no level {ZONE}; its levels:"
            f" {ROOM}, {RACK}, kubernetes.io/hostname",
            id="a_level_of_the_other",
        ),
        pytest.param(
            within(ZONE, BLOCK, topology="zones"),
            IN_RACK,
            (ZONES, RACKS),
            f"level {BLOCK} of kai.scheduler/zones is narrower than {ZONE}, inside of which its"
            " groups name another Topology",
            id="an_outer_level_that_is_narrower",
        ),
        pytest.param(
            within(BLOCK, topology="zones"),
            within(ZONE, topology="racks"),
            (topology_record("zones", BLOCK), topology_record("racks", ROOM, BLOCK, ZONE)),
            "Topologies kai.scheduler/zones and kai.scheduler/racks are not joined: both have level"
            f" {BLOCK}, inside others",
            id="a_level_of_both_inside_others",
        ),
        pytest.param(
            within("it", topology="zones"),
            within("it", topology="racks"),
            (
                topology_record("zones", ZONE, aliases=("it",)),
                topology_record("racks", RACK, aliases=("it",)),
            ),
            f"level it is {ZONE} and, of kai.scheduler/racks, {RACK}",
            id="an_alias_of_two_levels",
        ),
    ],
)
def test_what_is_not_joined_waits_and_says_which_topology_and_level(root, inner, topologies, why):
    there = world(group("pg", None, on("a", 3, inner), on=root), topologies=topologies)
    assert started(there, *pods("a", 3)) == {}
    assert why in sentence(there, "uid-pg-a-0")


def test_a_gang_that_waits_for_a_topology_starts_when_it_is_there():
    there = world(PAIR, topologies=(ZONES,))
    assert started(there, *pods("a", 3), *pods("b", 3)) == {}
    there.put(RACKS)
    finish(there)
    assert len(started(there)) == 6


def test_a_pod_group_that_comes_after_its_pods_is_read_on_both():
    there = world()
    started(there, *pods("a", 3), *pods("b", 3))
    assert len(started(there, PAIR)) == 6


def test_a_combination_is_a_tree_for_as_long_as_a_pod_group_names_it():
    there = world(PAIR, group("other", None, on("a", 1), on=IN_ZONE))
    assert len(joined(there)) == 1
    there.delete(PAIR)
    assert len(joined(there)) == 1
    there.delete(group("other", None, on("a", 1), on=IN_ZONE))
    assert joined(there) == []


def test_there_is_room_for_so_many_combinations_and_the_next_one_is_told():
    extra = [topology_record(f"t{at}", f"example.com/level-{at}") for at in range(3)]
    levels = [f"example.com/level-{at}" for at in range(3)]
    groups = [
        group(f"pg{at}", None, on("a", 1, within(level, topology=f"t{at}")), on=IN_ZONE)
        for at, level in enumerate(levels)
    ]
    nodes = [
        msgspec.structs.replace(each, labels={**each.labels, **dict.fromkeys(levels, "one")})
        for each in grid()
    ]
    there = world(*groups, nodes=nodes, topologies=(ZONES, *extra))
    assert len(joined(there)) == MOST_PER_NAMESPACE == 2
    for at in range(3):
        started(there, *pods("a", 1, f"pg{at}"))
    assert sorted(started(there)) == ["pg0-a-0", "pg1-a-0"]
    assert "there is room for 16 combinations of Topologies" in sentence(there, "uid-pg2-a-0")
    there.delete(groups[0])
    finish(there)
    assert "pg2-a-0" in started(there)


def test_a_combination_that_cannot_be_joined_takes_no_room():
    lost = [
        group(f"pg{at}", None, on("a", 1, within(RACK, topology=f"no-{at}")), on=IN_ZONE)
        for at in range(MOST_PER_NAMESPACE)
    ]
    there = world(*lost, PAIR)
    assert len(joined(there)) == 1
    assert len(started(there, *pods("a", 3), *pods("b", 3))) == 6


def test_a_joined_topology_serves_no_other_gang_and_splits_no_value():
    there = world(PAIR)
    started(there, *pods("a", 3), *pods("b", 3))
    assert joined(there) != []
    assert not any(JOINED in each for each in there.engine.books.split_values)
    assert not there.engine.topologies.is_declared(joined(there)[0])
    assert with_levels(there.engine.books, {ZONE, RACK}) == ()
    assert with_levels(there.engine.books, {ZONE, RACK}, PAIR.join.name) != ()


def test_a_plan_is_given_up_when_a_wider_level_of_the_outer_topology_splits_its_domain():
    nodes = [labelled(f"n{at}", region=f"r{at}", zone="z", room="m", rack="a") for at in range(2)]
    pair = group("pg", None, on("a", 1), on("b", 1), on=IN_ZONE)
    waits = world(pair, nodes=nodes, topologies=(topology_record("zones", ZONE), RACKS))
    waits.put(*pods("a", 1), *pods("b", 1))
    waits.tick()
    assert set(waits.held.values()) == {"n0", "n1"}
    waits.put(topology_record("zones", "example.com/region", ZONE))
    assert waits.held == {}


def test_a_journal_with_joined_topologies_is_played_again():
    there = RecordedWorld(grid(), kinds=KINDS, levels=())
    there.apply(Listed("Topology.kai.scheduler", (ZONES, RACKS)))
    there.apply(Listed("PodGroup.scheduling.run.ai", (PAIR,)))
    assert len(started(there, *pods("a", 3), *pods("b", 3))) == 6
    assert list(replay(there.lines)) == []


@settings(max_examples=40)
@given(
    st.lists(st.tuples(*[st.integers(0, 1)] * 4), min_size=1, max_size=10),
    st.integers(1, 4),
    st.integers(0, 3),
)
def test_a_place_is_found_where_one_domain_of_each_has_room_and_nowhere_else(labels, inner, outer):
    """`inner` pods in one rack, `outer` beside them in the same zone; a node has room for one."""
    nodes = [
        labelled(f"n{at:02}", zone=f"z{z}", block=f"b{b}", room=f"m{m}", rack=f"r{r}")
        for at, (z, b, m, r) in enumerate(labels)
    ]
    parts = [on("a", inner), *([sub_group("b", outer)] if outer else [])]
    there = world(group("pg", None, *parts, on=IN_ZONE), nodes=nodes)
    placed = started(there, *pods("a", inner), *pods("b", outer))
    fits = any(
        labels.count((z, 0, m, r)) + labels.count((z, 1, m, r)) >= inner
        and sum(each[0] == z for each in labels) >= inner + outer
        for z, _, m, r in labels
    )
    assert len(placed) == (inner + outer if fits else 0)
    if fits:
        at = {f"n{index:02}": each for index, each in enumerate(labels)}
        assert len({at[name][0] for name in placed.values()}) == 1
        assert len({at[placed[f"pg-a-{n}"]][2:] for n in range(inner)}) == 1
