"""Gangs whose sub-groups are beside each other on different Topologies, each placed on its own."""

from __future__ import annotations

import random

import msgspec
import pytest

from app.cli.audit.gathering import Gathering
from app.cli.audit.reading import judged as audited
from app.explain.answering import answer
from app.explain.asking import asking
from app.kube.watch.events import Listed
from app.state.effects import SeekPlace, SeekRoom
from app.state.filter_result import Possible
from app.state.journal.replay import replay
from app.state.plan.verdict import NOTHING_FOR_PARTS
from app.state.settings import EngineSettings
from tests import cluster
from tests.app.dialects.kai.objects import group, member, sub_group, topology_record, within
from tests.app.state.answers.test_hypothetical import asked, gated, whole
from tests.app.state.autoscaling.marking import OURS, Marking
from tests.app.state.domains.test_joined import labelled
from tests.app.state.histories.test_kai import KINDS, fill, started, world_of
from tests.app.state.journal.test_journal import RecordedWorld
from tests.app.state.plan.elsewhere.test_search_on import Searched
from tests.app.state.stories import finish, sentence
from tests.records import node, pod

ZONE, RACK, ROW = (f"example.com/{each}" for each in ("zone", "rack", "row"))
RACKS = topology_record("racks", RACK)
ROWS = topology_record("rows", ROW)
IN_RACK, IN_ROW = within(RACK, topology="racks"), within(ROW, topology="rows")
IN_ZONE = within(ZONE, topology="zones")


def crossing(racks="ab", rows="xyz", each=1, gpus=1):
    """Racks and rows that cross each other: `each` nodes are in both of any two."""
    return [
        labelled(f"{rack}{row}{at}", gpus=gpus, rack=rack, row=row)
        for rack in racks
        for row in rows
        for at in range(each)
    ]


def on(name, least, constraint=None, parent="", **more):
    return sub_group(name, least, parent, topologyConstraint=constraint, **more)


def pods(part, count, *, first=0, gpus=1, **more):
    numbers = range(first, first + count)
    return [member(f"{part}-{at}", part, gpus=gpus, **more) for at in numbers]


def world(*things, nodes=None, topologies=(RACKS, ROWS), **settings):
    nodes = crossing() if nodes is None else nodes
    return world_of(*things, nodes=nodes, topologies=topologies, **settings)


def at(placed, part):
    return [node for name, node in sorted(placed.items()) if name.startswith(f"{part}-")]


def racks(placed, part="r"):
    return {name[0] for name in at(placed, part)}


def rows(placed, part="w"):
    return {name[1] for name in at(placed, part)}


PAIR = group("pg", None, on("r", 2, IN_RACK), on("w", 2, IN_ROW))


# -- the first plan --------------------------------------------------------------------------------


def test_each_sub_group_is_in_one_domain_of_its_own_topology():
    placed = started(world(PAIR), *pods("r", 2), *pods("w", 2))
    assert len(placed) == 4
    assert (len(racks(placed)), len(rows(placed))) == (1, 1)


def test_a_domain_is_not_cut_where_one_of_the_other_topology_crosses_it():
    """No node is in both a rack and a row with another: each has room for one pod alone."""
    pg = group("pg", None, on("r", 3, IN_RACK), on("w", 1, IN_ROW))
    placed = started(world(pg), *pods("r", 3), *pods("w", 1))
    assert (len(at(placed, "r")), len(racks(placed))) == (3, 1)
    assert len(at(placed, "w")) == 1


def test_all_of_it_starts_or_nothing():
    short = world(group("pg", None, on("r", 3, IN_RACK), on("w", 2, IN_ROW)))
    fill(short, "ax0")  # what is left of a row is one node, or one in the rack that is whole
    assert started(short, *pods("r", 3), *pods("w", 2)) == {}
    assert short.held == {}
    told = sentence(short, "uid-w-0")
    assert "1 of 2 pods fit in one example.com/row" in told
    assert "not everything was tried" in told
    assert "beside its pods on other Topologies" in told
    assert told == sentence(short, "uid-r-0")
    short.delete(short.pods["uid-other-ax0"])
    finish(short)
    assert started(short) == {}  # three of a rack, and two of a row, need two whole ones
    short.put(labelled("az1", rack="c", row="z"))
    finish(short)
    assert len(started(short)) == 5


def test_a_part_that_has_no_place_alone_says_so_and_no_more():
    none = world(group("pg", None, on("r", 1, IN_RACK), on("w", 3, IN_ROW)))
    assert started(none, *pods("r", 1), *pods("w", 3)) == {}
    told = sentence(none, "uid-w-0")
    assert "2 of 3 pods fit in one example.com/row" in told
    assert "not everything" not in told
    assert "beside" not in told


def test_a_part_leaves_the_only_domain_that_another_one_fits_in():
    # Rack a is the tighter one for the racks' pods, and row x the only one with room for two.
    nodes = [labelled(f"{name}0", rack=name[0], row=name[1]) for name in ("ax", "ay", "bx", "bz")]
    nodes += [labelled("bq0", rack="b", row="q")]
    pg = group("pg", None, on("r", 2, IN_RACK), on("w", 2, IN_ROW))
    placed = started(world(pg, nodes=nodes), *pods("r", 2), *pods("w", 2))
    assert at(placed, "w") == ["ax0", "bx0"]
    assert sorted(at(placed, "r")) == ["bq0", "bz0"]


def test_pods_that_name_no_topology_may_be_on_nodes_without_its_labels():
    pg = group("pg", None, on("r", 3, IN_RACK), on("w", 2, IN_ROW), on("router", 1))
    bare = node("b9/r9/bare0", gpus=1)
    nodes = [*crossing(rows="xyz"), labelled("cx0", rack="c", row="x"), bare]
    placed = started(world(pg, nodes=nodes), *pods("r", 3), *pods("w", 2), *pods("router", 1))
    assert len(placed) == 6
    assert (len(racks(placed)), len(rows(placed))) == (1, 1)


def test_pods_of_different_parts_share_a_node_as_far_as_it_has_room():
    pg = group("pg", None, on("r", 3, IN_RACK), on("w", 3, IN_ROW))
    large = world(pg, nodes=[labelled("ax0", 6, rack="a", row="x")])
    placed = started(large, *pods("r", 3), *pods("w", 3))
    assert set(placed.values()) == {"ax0"}
    small = world(pg, nodes=[labelled("ax0", 5, rack="a", row="x")])
    assert started(small, *pods("r", 3), *pods("w", 3)) == {}


def test_a_part_may_be_on_one_topology_inside_another():
    zones = topology_record("zones", ZONE)
    whole = on("whole", None, within(ZONE, topology="zones"), minSubGroup=2)
    parts = (whole, on("r", 2, IN_RACK, "whole"), on("s", 1, None, "whole"), on("w", 2, IN_ROW))
    nodes = [
        labelled(f"{rack}{row}{zone}", rack=rack, row=row, zone=zone)
        for zone in "pq"
        for rack in "ab"
        for row in "xy"
    ]
    there = world(group("pg", None, *parts), nodes=nodes, topologies=(zones, RACKS, ROWS))
    placed = started(there, *pods("r", 2), *pods("s", 1), *pods("w", 2))
    assert len(placed) == 5
    assert (len(racks(placed)), len(rows(placed))) == (1, 1)
    assert len({name[2] for name in (*at(placed, "r"), *at(placed, "s"))}) == 1


def test_a_preferred_level_widens_on_its_own_topology_alone():
    pg = group("pg", None, on("r", 3, within("", RACK, "racks")), on("w", 2, IN_ROW))
    placed = started(world(pg), *pods("r", 3), *pods("w", 2))
    assert len(placed) == 5
    assert len(rows(placed)) == 1


def test_an_alias_is_that_of_the_topology_which_the_sub_group_names():
    named = (
        topology_record("racks", RACK, aliases=("it",)),
        topology_record("rows", ROW, aliases=("it",)),
    )
    its = [within("it", topology=name) for name in ("racks", "rows")]
    pair = group("pg", None, on("r", 2, its[0]), on("w", 2, its[1]))
    placed = started(world(pair, topologies=named), *pods("r", 2), *pods("w", 2))
    assert (len(placed), len(racks(placed)), len(rows(placed))) == (4, 1, 1)


# -- more pods than it needs -----------------------------------------------------------------------


def test_what_one_part_does_not_need_takes_no_room_from_what_another_needs():
    nodes = crossing(racks="a", rows="x", each=4)
    pg = group("pg", None, on("r", 1, IN_RACK), on("w", 2, IN_ROW))
    placed = started(world(pg, nodes=nodes), *pods("r", 4), *pods("w", 4))
    assert len(placed) == 4
    assert len(at(placed, "r")) >= 1
    assert len(at(placed, "w")) >= 2


def test_a_part_of_which_nothing_is_needed_comes_last_and_blocks_nothing():
    pg = group("pg", None, on("r", 2, IN_RACK), on("w", 0, IN_ROW))
    nodes = crossing(racks="a", rows="x", each=3)
    placed = started(world(pg, nodes=nodes), *pods("w", 3), *pods("r", 2))
    assert (len(at(placed, "r")), len(at(placed, "w"))) == (2, 1)


def test_pods_that_come_later_join_the_others_in_their_domains():
    there = world(PAIR, nodes=crossing(each=2))
    placed = started(there, *pods("r", 2), *pods("w", 2))
    again = started(there, *pods("r", 9, first=2), *pods("w", 9, first=2))
    assert (racks(again), rows(again)) == (racks(placed), rows(placed))
    assert len(again) == 8  # a rack has six nodes, a row four, and two are in both


def test_a_part_that_may_grow_does_not_wait_for_another_that_may_not():
    there = world(PAIR)
    placed = started(there, *pods("r", 2), *pods("w", 2))
    (rack,), (full,) = racks(placed), rows(placed)
    row = min({*"xyz"} - {full})
    there.put(labelled(f"{rack}{row}1", gpus=1, rack=rack, row=row))
    again = started(there, *pods("w", 1, first=2), *pods("r", 1, first=2))
    assert at(again, "w") == at(placed, "w")  # its row is full
    assert at(again, "r") == [*at(placed, "r"), f"{rack}{row}1"]


# -- as time goes by -------------------------------------------------------------------------------


def test_pods_that_are_lost_come_back_into_the_domains_of_their_own_topology():
    there = world(PAIR)
    placed = started(there, *pods("r", 2), *pods("w", 2))
    for name in ("r-0", "w-0"):
        there.delete(there.pods[f"uid-{name}"])
    again = started(there, *pods("r", 1, first=7), *pods("w", 1, first=7))
    assert len(again) == 4
    assert (racks(again), rows(again)) == (racks(placed), rows(placed))


def test_a_node_that_is_lost_is_replaced_in_the_domain_of_each_topology():
    there = world(PAIR, nodes=crossing(each=2))
    placed = started(there, *pods("r", 2), *pods("w", 2))
    lost = placed["r-0"]
    there.delete(next(each for each in crossing(each=2) if each.name == lost))
    gone = [each for each in list(there.pods.values()) if each.node == lost]
    there.delete(*gone)
    new = [
        msgspec.structs.replace(each, name=f"{each.name}9", uid=f"{each.uid}9", node="")
        for each in gone
    ]
    again = started(there, *new)
    assert len(again) == 4
    assert lost not in again.values()
    assert (racks(again), rows(again)) == (racks(placed), rows(placed))


def test_what_runs_goes_on_after_a_restart_and_lost_pods_come_back():
    first = world(PAIR)
    placed = started(first, *pods("r", 2), *pods("w", 2))
    first.delete(first.pods["uid-w-0"])
    second = world(PAIR, *first.pods.values())
    again = started(second, *pods("w", 1, first=5))
    assert {name: node for name, node in again.items() if name != "w-5"} == {
        name: node for name, node in placed.items() if name != "w-0"
    }
    assert rows(again) == rows(placed)


def test_a_gang_waits_for_the_topology_of_each_part_and_names_it():
    there = world(PAIR, topologies=(RACKS,))
    assert started(there, *pods("r", 2), *pods("w", 2)) == {}
    assert "Topology kai.scheduler/rows does not exist" in sentence(there, "uid-r-0")
    there.put(ROWS)
    finish(there)
    assert len(started(there)) == 4


def test_a_level_that_is_not_there_is_named_with_its_topology():
    pg = group("pg", None, on("r", 2, IN_RACK), on("w", 2, within(RACK, topology="rows")))
    there = world(pg)
    assert started(there, *pods("r", 2), *pods("w", 2)) == {}
    assert f"Topology kai.scheduler/rows has no level {RACK}" in sentence(there, "uid-r-0")


def test_a_plan_is_given_up_when_a_wider_level_of_one_topology_splits_its_domain():
    nodes = [labelled(f"ax{at}", rack="a", row="x", hall=f"h{at}") for at in range(4)]
    waits = world(PAIR, nodes=nodes)
    waits.put(*pods("r", 2), *pods("w", 2))
    waits.tick()
    assert len(waits.held) == 4
    waits.put(topology_record("rows", "example.com/hall", ROW))
    assert waits.held == {}


def test_a_plan_is_given_up_when_a_node_moves_to_another_domain_of_one_topology():
    waits = world(PAIR)
    waits.put(*pods("r", 2), *pods("w", 2))
    waits.tick()
    name = waits.held["uid-w-0"]
    waits.put(labelled(name, rack=name[0], row="q"))
    assert waits.held == {}
    placed = started(waits)
    assert (len(placed), len(racks(placed)), len(rows(placed))) == (4, 1, 1)
    assert name not in at(placed, "w")


def test_a_pod_group_that_comes_to_be_on_two_topologies_is_placed_on_both():
    there = world(group("pg", None, on("r", 2, IN_RACK), on("w", 3, IN_RACK)))
    assert started(there, *pods("r", 2), *pods("w", 2)) == {}
    assert len(started(there, PAIR)) == 4


def test_pods_are_placed_one_by_one_as_kube_scheduler_asks_with_fewer_nodes():
    there = world(PAIR, nodes=crossing(each=2))
    there.put(*pods("r", 2), *pods("w", 2))
    there.tick()
    held = there.held["uid-r-0"]
    others = [each.name for each in crossing(each=2) if each.name != held]
    there.filter(there.pods["uid-r-0"], others)
    there.tick()
    assert there.held["uid-r-0"] != held
    nodes = {uid.removeprefix("uid-"): name for uid, name in there.held.items()}
    assert (len(nodes), len(racks(nodes)), len(rows(nodes))) == (4, 1, 1)


# -- beside other features -------------------------------------------------------------------------


@pytest.mark.parametrize("its", [IN_RACK, IN_ROW])
def test_no_room_is_made_for_it_and_its_pods_are_told(its):
    pg = group("pg", None, on("r", 2, IN_RACK), on("w", 2, its))
    there = world(pg, nodes=crossing(racks="a", rows="x", each=4), preempt="explain")
    fill(there, "ax0")
    there.put(*pods("r", 2, priority=10), *pods("w", 2, priority=10))
    for _ in range(60):
        there.tick(10.0)
    is_in_parts = its is IN_ROW
    assert (NOTHING_FOR_PARTS in sentence(there, "uid-r-0")) == is_in_parts
    assert (there.told(SeekRoom) == []) == is_in_parts


def test_an_explanation_is_of_the_part_that_finds_no_place_beside_the_others():
    there = world(group("pg", None, on("r", 3, IN_RACK), on("w", 2, IN_ROW)))
    started(there, *pods("r", 3), *pods("w", 2))
    said = answer(asking(there.engine, there.gang(), there.now))
    assert not said.fits_now
    assert said.topology == "kai.scheduler/rows"
    assert (said.best.domain.split("=")[0], said.best.pods) == (ROW, 1)
    assert said.blockers == ()


def test_a_search_that_takes_the_loop_too_long_goes_on_elsewhere():
    pg = group("pg", None, on("r", 4, IN_RACK), on("w", 4, IN_ROW), on("router", 1))
    there = world(pg, nodes=crossing(each=4), visits_per_search=1_000)
    placed = started(there, *pods("r", 4), *pods("w", 4), *pods("router", 1))
    assert there.told(SeekPlace) != []
    assert (len(placed), len(racks(placed)), len(rows(placed))) == (9, 1, 1)


@pytest.mark.parametrize("visits", [20_000, 1_000])
def test_a_part_without_a_topology_that_has_no_place_alone_says_so_wherever_it_is_searched(visits):
    pg = group("pg", None, on("r", 1, IN_RACK), on("w", 1, IN_ROW), on("any", 7))
    there = world(pg, visits_per_search=visits)
    there.put(*pods("r", 1), *pods("w", 1), *pods("any", 7))
    there.tick()
    there.tick(1.0)
    assert (there.told(SeekPlace) != []) == (visits == 1_000)
    told = sentence(there, "uid-r-0")
    assert "6 of 7 pods" in told
    assert "beside" not in told


@pytest.mark.parametrize("visits", [20_000, 1_000])
def test_a_journal_is_played_again_also_where_searches_went_on_elsewhere(visits):
    there = RecordedWorld(crossing(), kinds=KINDS, levels=(), visits_per_search=visits)
    there.apply(Listed("Topology.kai.scheduler", (RACKS, ROWS)))
    there.apply(Listed("PodGroup.scheduling.run.ai", (PAIR,)))
    assert len(started(there, *pods("r", 2), *pods("w", 2))) == 4
    assert any(b"place_found" in line for line in there.lines) == (visits == 1_000)
    assert list(replay(there.lines)) == []


def test_an_answer_from_elsewhere_is_not_used_where_others_took_the_place_meanwhile():
    there = Searched(crossing(each=2), kinds=KINDS, levels=())
    there.apply(Listed("Topology.kai.scheduler", (RACKS, ROWS)))
    there.apply(Listed("PodGroup.scheduling.run.ai", (PAIR,)))
    there.put(*pods("r", 2), *pods("w", 2))
    there.tick()
    key, found = there.found()
    assert {name.split("/")[0] for name, *_ in found.places} == {"0", "1"}
    taken = found.places[-1][-1][0][0]
    there.put(pod("other", gpus=1, on=taken, phase="Running"))
    there.give(key, found)
    there.tick()
    assert there.held == {}
    there.tick(1.0)
    there.answer()
    assert len(there.held) == 4
    assert taken not in there.held.values()


def test_no_nodes_are_kept_for_it_while_it_starves():
    there = world(PAIR, nodes=crossing(racks="a", rows="x", each=4), starvation_seconds=60.0)
    fill(there, "ax0", "ax1")
    there.put(*pods("r", 2), *pods("w", 2))
    for _ in range(20):
        there.tick(10.0)
    assert there.engine.planner.earmarked == {}
    assert "no nodes are kept for it" in sentence(there, "uid-r-0")
    alike = [member(f"one-{at}", of="alone", gpus=1) for at in range(4)]
    there.put(group("alone", 4, on=IN_RACK), *alike)
    for _ in range(20):
        there.tick(10.0)
    assert [key.name for key in there.engine.planner.earmarked] == ["alone"]


@pytest.mark.parametrize(("each", "is_marked"), [(1, True), (4, False)])
def test_its_pods_ask_for_nodes_where_it_fits_on_none_that_there_are(each, is_marked):
    """Empty nodes of two rows in one rack: of one each it is too little for both parts."""
    settings = {"kinds": KINDS, "levels": (), "needs_nodes": "busy"}
    there = Marking(crossing(racks="a", rows="xy", each=each), **settings)
    there.apply(Listed("Topology.kai.scheduler", (RACKS, ROWS)))
    there.apply(Listed("PodGroup.scheduling.run.ai", ()))
    there.put(PAIR, *pods("r", 2, gates=OURS), *pods("w", 2, gates=OURS))
    there.wait(900.0)
    assert bool(there.marked) == is_marked


def test_a_node_that_is_not_there_is_judged_by_the_topology_of_the_pods_own_part():
    there = world(PAIR, nodes=crossing(racks="a", rows="x"))
    there.put(*pods("r", 2), *pods("w", 2))
    there.tick()
    nodes = [
        cluster.node(f"on-{name}", gpus=1, labels={f"example.com/{name}": "new"})
        for name in ("rack", "row")
    ]
    for part, node_of_its in (("r", "on-rack"), ("w", "on-row")):
        found = asked(there, gated(there.pods[f"uid-{part}-0"]), whole(*nodes))
        assert isinstance(found, Possible)
        assert found.nodes == (node_of_its,)


@pytest.mark.parametrize("apart", ["", "r", "w"])
def test_the_audit_judges_each_part_on_its_own_topology(apart):
    nodes = {"r": ("ax0", "ay0"), "w": ("bx0", "ax0")}
    if apart:
        nodes[apart] = ("ax0", "by0")
    gathering = Gathering(EngineSettings(levels=()))
    for each in crossing(gpus=4):
        gathering.put_node(each)
    gathering.put_objects("Topology.kai.scheduler", [RACKS, ROWS])
    gathering.put_objects("PodGroup.scheduling.run.ai", [PAIR])
    running = [
        msgspec.structs.replace(each, node=node, phase="Running")
        for part, its in nodes.items()
        for each, node in zip(pods(part, 2), its, strict=True)
    ]
    gathering.put_pods(running)
    found = audited(gathering, len(running)).verdicts
    levels = {each.constraint: each.answer for each in found if each.level}
    assert levels == {
        f"group {part}": "VIOLATION" if part == apart else "MATCH" for part in ("r", "w")
    }


def test_how_near_its_pods_are_is_measured_on_the_topology_of_each_part():
    prefers = within("", RACK, "racks"), within("", ROW, "rows")
    pair = group("pg", None, on("r", 2, prefers[0]), on("w", 2, prefers[1]))
    there = world(pair, nodes=crossing(each=2))
    placed = started(there, *pods("r", 2), *pods("w", 2))
    assert (len(racks(placed)), len(rows(placed))) == (1, 1)
    nearness = there.engine.planner.serving.nearness
    assert nearness(there.gang()) == 1.0
    there.put(topology_record("rows", "example.com/hall"))
    assert nearness(there.gang()) is None
    there.delete(ROWS)
    assert nearness(there.gang()) is None


def test_a_part_inside_a_topology_that_is_not_there_says_which():
    whole = on("whole", None, within(ZONE, topology="zones"), minSubGroup=1)
    there = world(group("pg", None, whole, on("r", 1, IN_RACK, "whole"), on("w", 1, IN_ROW)))
    assert started(there, *pods("r", 1), *pods("w", 1)) == {}
    assert "Topology kai.scheduler/zones does not exist" in sentence(there, "uid-w-0")


class Lived:
    """A gang in two parts whose pods and nodes come and go; its domains are looked at each time."""

    def __init__(self, seed, around):
        self.chance, self.made, self.gone = random.Random(seed), 0, dict[str, object]()
        self.nodes = {
            f"{rack}{row}{zone}": labelled(f"{rack}{row}{zone}", 2, rack=rack, row=row, zone=zone)
            for rack in "ab"
            for row in "xyz"
            for zone in "pq"
        }
        parts = (on("r", 3, IN_RACK), on("w", 2, IN_ROW), on("any", 1))
        self.pg = group("pg", None, *parts, on=around)
        self.world = self.begun()
        self.world.put(*pods("r", 3), *pods("w", 2), *pods("any", 1))
        self.go()
        assert len(self.on) == 6
        self.made = 6

    def begun(self, *pods):
        """A new engine on what there is."""
        there = [each for name, each in self.nodes.items() if name not in self.gone]
        topologies = (RACKS, ROWS, topology_record("zones", ZONE))
        return world(self.pg, *pods, nodes=there, topologies=topologies)

    @property
    def on(self):
        """The node of each of its pods that has one."""
        there = self.world.pods.values()
        return {each.name: each.node for each in there if each.node and "other" not in each.name}

    def go(self):
        for _ in range(3):
            self.world.tick(60.0)
            self.world.schedule(*(each for each in self.world.pods.values() if not each.node))

    def step(self):
        now = self.world
        match self.chance.choice(("more", "more", "more", "end", "node", "back", "again", "fill")):
            case "more":
                part = self.chance.choice(("r", "r", "w", "w", "any"))
                now.put(*pods(part, 1, first=self.made))
                self.made += 1
            case "end" if now.pods:
                now.delete(now.pods[self.chance.choice(sorted(now.pods))])
            case "node" if len(self.gone) < 4:
                name = self.chance.choice(sorted(self.nodes.keys() - self.gone.keys()))
                self.gone[name] = self.nodes[name]
                now.delete(self.nodes[name])
                now.delete(*(each for each in list(now.pods.values()) if each.node == name))
            case "back" if self.gone:
                now.put(self.gone.pop(min(self.gone)))
            case "fill":
                name = self.chance.choice(sorted(self.nodes.keys() - self.gone.keys()))
                self.made += 1
                now.put(pod(f"other-{self.made}", gpus=1, on=name, phase="Running"))
            case "again":
                self.world = self.begun(*now.pods.values())
        self.go()


@pytest.mark.parametrize("around", [None, IN_ZONE], ids=["apart", "in_a_zone"])
@pytest.mark.parametrize("seed", range(6))
def test_whatever_comes_and_goes_each_part_is_in_one_domain_of_its_topology(seed, around):
    lived, came = Lived(seed, around), set[str]()
    for _ in range(40):
        before = set(lived.on)
        lived.step()
        assert max(len(racks(lived.on)), len(rows(lived.on))) <= 1
        assert around is None or len(zones(lived.on)) <= 1
        came.update(name.split("-")[0] for name in lived.on.keys() - before)
    assert came >= {"r", "w", "any"}


# -- in one domain of what is around them ----------------------------------------------------------

ZONES = topology_record("zones", ZONE, "example.com/block")


def zoned(zones="pq", racks="ab", rows="xy", **more):
    """The same racks and rows in each zone, which cross each other there."""
    return [
        labelled(f"{rack}{row}{zone}", rack=rack, row=row, zone=zone, block="b", **more)
        for zone in zones
        for rack in racks
        for row in rows
    ]


def zones(placed):
    return {name[2] for name in placed.values()}


def in_zones(*things, nodes=None, **settings):
    nodes = zoned() if nodes is None else nodes
    return world(*things, nodes=nodes, topologies=(ZONES, RACKS, ROWS), **settings)


SHARED = group("pg", None, on("r", 2, IN_RACK), on("w", 1, IN_ROW), on("any", 1), on=IN_ZONE)


def test_parts_are_in_one_domain_that_is_required_around_them():
    there = in_zones(SHARED)
    fill(there, "axp")
    placed = started(there, *pods("r", 2), *pods("w", 1), *pods("any", 1))
    assert (len(placed), zones(placed), len(racks(placed))) == (4, {"q"}, 1)


def test_parts_that_fit_in_no_common_domain_wait():
    there = in_zones(SHARED)
    fill(there, "axp", "axq")
    assert started(there, *pods("r", 2), *pods("w", 1), *pods("any", 1)) == {}
    there.delete(there.pods["uid-other-axq"])
    finish(there)
    assert zones(started(there)) == {"q"}


def test_a_part_whose_tree_the_others_are_not_in_comes_back_into_their_domain():
    """Nodes of racks have no row, and nodes of rows no rack."""
    nodes = [labelled(f"a{at}{zone}", rack="a", zone=zone) for zone in "pq" for at in range(2)]
    nodes += [labelled(f"x{at}{zone}", row="x", zone=zone) for zone in "pq" for at in range(2)]
    pg = group("pg", None, on("r", 2, IN_RACK), on("w", 1, IN_ROW), on=IN_ZONE)
    there = in_zones(pg, nodes=nodes)
    (zone,) = zones(started(there, *pods("r", 2), *pods("w", 1)))
    there.delete(there.pods["uid-w-0"])
    there.tick(600.0)
    for at in range(2):  # the zone has no room for it any more
        fill(there, f"x{at}{zone}")
    assert at_most_there(there, pods("w", 1, first=5)) == {zone}
    there.delete(there.pods[f"uid-other-x0{zone}"])
    finish(there)
    assert "w-5" in started(there)
    assert zones(started(there)) == {zone}


def at_most_there(there, new):
    """The zones of the pods that run once these have come; none of these is among them."""
    placed = started(there, *new)
    assert not {each.name for each in new} & placed.keys()
    return zones(placed)


def test_a_level_inside_the_shared_one_is_beside_another_topology_there():
    """In zone p a rack has room, and no row beside its pods."""
    net = topology_record("net", ZONE, RACK)
    pg = group(
        "pg", None, on("r", 2, within(RACK, topology="net")), on("w", 2, IN_ROW),
        on=within(ZONE, topology="net"),
    )  # fmt: skip
    there = world(pg, nodes=zoned(rows="xyv"), topologies=(net, ROWS))
    fill(there, "axp", "ayp", "avp")
    placed = started(there, *pods("r", 2), *pods("w", 2))
    assert (len(placed), zones(placed), len(racks(placed)), len(rows(placed))) == (4, {"q"}, 1, 1)


def test_an_explanation_looks_as_far_for_a_place_as_a_plan_does():
    """Zone p has a rack alone and zone q a row alone, and both are fuller than r, which has both.

    In the order of its parts, and in the other order, there is no place.
    """
    nodes = [labelled(f"a{at}p", rack="a", zone="p") for at in range(2)]
    nodes += [labelled("x0q", row="x", zone="q")]
    nodes += [
        labelled(f"{rack}{row}r", rack=rack, row=row, zone="r") for rack in "ab" for row in "xy"
    ]
    pg = group("pg", None, on("r", 2, IN_RACK), on("w", 1, IN_ROW), on=IN_ZONE)
    there = in_zones(pg, nodes=nodes)
    fill(there, "axr", "bxr")
    assert started(there, *pods("r", 2), *pods("w", 1)) == {}
    there.delete(there.pods["uid-other-axr"])
    said = answer(asking(there.engine, there.gang(), there.now))
    assert zones(started(there)) == {"r"}
    assert said.fits_now


def test_after_a_restart_parts_come_back_into_the_domain_around_them():
    first = in_zones(SHARED)
    placed = started(first, *pods("r", 2), *pods("w", 1), *pods("any", 1))
    for name in ("w-0", "any-0"):
        first.delete(first.pods[f"uid-{name}"])
    second = in_zones(SHARED, *first.pods.values())
    again = started(second, *pods("w", 1, first=5), *pods("any", 1, first=5))
    assert (len(again), zones(again)) == (4, zones(placed))


def test_a_search_that_goes_on_elsewhere_keeps_parts_in_one_domain():
    there = in_zones(SHARED, visits_per_search=1_000)
    fill(there, "axp")
    placed = started(there, *pods("r", 2), *pods("w", 1), *pods("any", 1))
    assert there.told(SeekPlace) != []
    assert (len(placed), zones(placed)) == (4, {"q"})


def test_parts_inside_a_part_of_the_domain_are_in_one_of_its_domains():
    block = within("example.com/block", topology="zones")
    half = on("half", None, block, minSubGroup=2)
    inner = (on("r", 2, IN_RACK, "half"), on("w", 1, IN_ROW, "half"))
    nodes = [
        labelled(f"{rack}{row}{zone}{at}", rack=rack, row=row, zone=zone, block=f"b{at}")
        for zone in "pq"
        for rack in "ab"
        for row in "xy"
        for at in range(2)
    ]
    there = in_zones(group("pg", None, half, *inner, on("s", 4), on=IN_ZONE), nodes=nodes)
    fill(there, "axp0", "axp1", "axq0", "axq1")
    assert started(there, *pods("r", 2), *pods("w", 1), *pods("s", 4)) == {}
    there.delete(there.pods["uid-other-axq0"])
    finish(there)
    placed = started(there)
    assert (len(placed), zones(placed), len(racks(placed))) == (7, {"q"}, 1)
    assert len({name[3] for part in ("r", "w") for name in at(placed, part)}) == 1


@pytest.mark.parametrize(("zone", "answer"), [("p", "MATCH"), ("q", "VIOLATION")])
def test_the_audit_judges_what_is_around_parts_for_all_of_them(zone, answer):
    gathering = Gathering(EngineSettings(levels=()))
    nodes = [labelled(f"a{each}", rack="a", zone=each) for each in "pq"]
    for each in (*nodes, labelled(f"x{zone}", row="x", zone=zone)):
        gathering.put_node(each)
    gathering.put_objects("Topology.kai.scheduler", [topology_record("zones", ZONE), RACKS, ROWS])
    pg = group("pg", None, on("r", 1, IN_RACK), on("w", 1, IN_ROW), on=IN_ZONE)
    gathering.put_objects("PodGroup.scheduling.run.ai", [pg])
    running = [
        msgspec.structs.replace(each, node=node, phase="Running")
        for each, node in zip((*pods("r", 1), *pods("w", 1)), ("ap", f"x{zone}"), strict=True)
    ]
    gathering.put_pods(running)
    found = audited(gathering, len(running)).verdicts
    assert {each.constraint: each.answer for each in found if each.level == ZONE} == {
        "gang": answer
    }
