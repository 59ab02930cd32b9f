"""What counts as a violation of PodGroups on several Topologies, and what only looks like one."""

from __future__ import annotations

from random import Random

import msgspec
import pytest

from app.dialects.kai.pod_groups import decode_pod_group
from app.kube.watch.events import Applied, Listed
from app.state.effects import Evict
from tests.app.dialects.kai.objects import member, topology_record
from tests.app.state.world import LISTED, World
from tests.records import BLOCK, RACK, node
from tests.sim.api import KAI, KAI_GROUP, KAI_TOPOLOGY, ApiServer
from tests.sim.clock import Clock, History
from tests.sim.evictions import evictions_of
from tests.sim.faults import Hits
from tests.sim.judging import Judging
from tests.sim.kai.checks import PartsChecks
from tests.sim.kai.drawn import draw
from tests.sim.kai.in_parts import InParts
from tests.sim.kai.life import Kai
from tests.sim.kai.rest import AtRest
from tests.sim.kai.tree import HALL, LEVELS, NET, RACKS, ROW, ROWS, Sub, Tree, Within, tree_of
from tests.sim.objects import Objects
from tests.sim.oracle import Taken
from tests.sim.runs import run_seed
from tests.sim.violation import Violation

NOTHING = Taken(frozenset())
IN_RACK, IN_ROW = Within(RACKS, RACK), Within(ROWS, ROW)
IN_BLOCK = Within(NET, BLOCK)


def node_in(rack, row, gpus=1):
    """A node of a rack and of a row; "": of none."""
    labels = {HALL: f"h{row}", ROW: f"w{row}"} if row != "" else {}
    return node(f"b{rack // 2}/r{rack}/n{rack}{row}", gpus=gpus, labels=labels)


NODES = tuple(node_in(rack, row) for rack in range(2) for row in range(2))


def pods(leaf, count=1, first=0, **more):
    numbers = range(first, first + count)
    return [member(f"{leaf}-{at}", leaf, gpus=1, **more) for at in numbers]


def on(leaf, *nodes):
    """Pods that run."""
    return [
        member(f"{leaf}-{at}", leaf, gpus=1, on=each, phase="Running")
        for at, each in enumerate(nodes)
    ]


def pair(racks=1, rows=1, in_rack=IN_RACK, in_row=IN_ROW, around=None):
    return Tree(around, (Sub("r", "", racks, in_rack), Sub("w", "", rows, in_row)))


class Cluster:
    """An API server with nodes and PodGroup `pg`."""

    def __init__(self, its, nodes=NODES):
        clock = Clock()
        self.api = ApiServer(clock, History(clock))
        self.objects = Objects(clock, self.api)
        self.rest = AtRest(self.api, self.objects)
        for each in nodes:
            self.api.create("Node", each)
        self.put(its)

    def put(self, its):
        write = self.objects.change
        if self.objects.get(KAI_GROUP, "pg") is None:
            write = self.objects.create
        metadata = {"generation": 1, "name": "pg", "uid": "u"}
        write(KAI_GROUP, "pg", metadata=metadata, spec=its.spec())
        return self.api.objects[KAI_GROUP]["pg"]

    def add(self, *new):
        for each in new:
            self.api.create("Pod", each)

    def waits(self, *full, among=None):
        taken = Taken(frozenset(full))
        return self.rest.waits_in_vain("pg", self.api.list("Pod"), taken, among)


class Judged(Cluster, Judging):
    """An engine, and a judge that has been told the same unless a test says otherwise."""

    def __init__(self, its, nodes=NODES):
        super().__init__(its, nodes)
        kinds = (*LISTED, *KAI)
        world = World(nodes, kinds=kinds, levels=())
        self.judge(PartsChecks(self.objects, Hits()), world, kinds)
        record = self.api.objects[KAI_GROUP]["pg"]
        topologies = tuple(topology_record(name, *levels) for name, levels in LEVELS.items())
        for kind, records in ((KAI_TOPOLOGY, topologies), (KAI_GROUP, (record,))):
            self.world.apply(Listed(kind, records))
        self.show(*nodes, record)
        self.world.tick()


# -- what is written -------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(60))
def test_a_drawn_pod_group_is_read_as_it_was_written_and_is_valid(seed):
    its = draw(Random(seed), 8, 4, 0.0).kai
    body = {"metadata": {"name": "pg", "uid": "u", "generation": 1}, "spec": its.spec()}
    told = tree_of(body)
    assert (told.within, told.subs) == (its.within, its.subs)
    record = decode_pod_group(msgspec.json.encode(body))
    assert record.flaw == ""
    if its.within is None or not any(each.kind == NET for each in its.drawn):
        assert len(record.parts) >= 2  # else what is in a block may be in one tree
    assert {each.name for each in record.sub_groups if each.is_leaf} == {
        each.name for each in its.leaves
    }


# -- every step ------------------------------------------------------------------------------------


def test_a_gang_starts_with_each_part_on_its_own_topology():
    judged, gang = Judged(pair(2, 1)), [*pods("r", 2), *pods("w")]
    judged.come(*gang)
    judged.checks.took(judged.life)
    judged.start(*gang)
    assert judged.checks.hits.counts["W kai in parts"] == 1


def test_a_gang_that_starts_without_pods_that_one_part_needs_is_a_violation():
    judged, gang = Judged(pair()), [*pods("r"), *pods("w")]
    judged.come(*gang)
    judged.start(gang[0])  # which waits for the other
    judged.show(judged.put(pair(rows=2)))
    with pytest.raises(Violation, match=r"K1: default/pg starts with places for \['r-0', 'w-0'\]"):
        judged.start(gang[1])


@pytest.mark.parametrize(
    ("its", "what"),
    [
        pytest.param(pair(3, 1), "pg r requires one .*rack", id="of_the_sub_group"),
        pytest.param(
            pair(3, 1, None, None, Within(RACKS, RACK)), "pg requires one .*rack", id="around_it"
        ),
    ],
)
def test_a_plan_over_two_domains_of_what_is_required_is_a_violation(its, what):
    judged = Judged(pair(3, 1, None))
    judged.come(*pods("r", 3), *pods("w"))
    judged.checks.took(judged.life)
    judged.show(judged.put(its))
    with pytest.raises(Violation, match=f"K2: {what}: planned on"):
        judged.checks.took(judged.life)


def test_a_plan_on_a_node_that_is_in_no_domain_of_its_topology_is_a_violation():
    judged = Judged(pair(1, 1, IN_RACK, None), nodes=(node_in(0, ""), node_in(1, "")))
    judged.come(*pods("r"), *pods("w"))
    judged.checks.took(judged.life)
    judged.show(judged.put(pair()))
    with pytest.raises(Violation, match=r"K2: pg w requires one example.com/row: planned on"):
        judged.checks.took(judged.life)


def test_a_pod_that_goes_because_the_pod_group_changes_is_a_violation():
    judged = Judged(pair())
    record = judged.api.objects[KAI_GROUP]["pg"]
    judged.checks.taken(judged.corral, Applied(record), [])
    with pytest.raises(Violation, match="K3: PodGroup pg changes"):
        judged.checks.taken(judged.corral, Applied(record), [Evict("default", "r-0", "u", "why")])


# -- at rest ---------------------------------------------------------------------------------------


def test_a_gang_waits_in_vain_where_all_of_its_parts_have_room_at_once():
    cluster = Cluster(pair(2, 2))
    cluster.add(*pods("r", 2), *pods("w"))
    assert cluster.waits() == ""  # for another pod
    cluster.add(*pods("w", 1, first=1))
    assert cluster.waits() == ""  # a rack and a row have a node in common
    cluster.api.create("Node", node_in(2, 0))
    assert cluster.waits() == "{'r': 2, 'w': 2} in {'r': 'r0', 'w': 'h0/w0'}"
    assert cluster.waits("n20") == ""


def test_parts_in_one_block_wait_in_vain_only_where_one_has_room_for_both():
    cluster = Cluster(pair(2, 1, around=IN_BLOCK), nodes=(*NODES[:2], node_in(2, 0)))
    cluster.add(*pods("r", 2), *pods("w"))
    assert cluster.waits() == ""  # the only rack with room for two is a block's only one
    cluster.api.create("Node", node_in(3, 1))
    assert cluster.waits() == ""
    cluster.api.create("Node", node_in(1, 1))
    assert "'': 'b0'" in cluster.waits()


def test_a_part_waits_in_vain_where_some_of_its_sub_groups_have_room():
    inner = tuple(Sub(f"w{at}", "w", 2, IN_ROW) for at in range(2))
    cluster = Cluster(Tree(None, (Sub("w", "", 1, None), *inner, Sub("r", "", 1, IN_RACK))))
    cluster.add(*pods("w0", 2), *pods("w1", 2), *pods("r"))
    assert "'r': 1" in cluster.waits()
    assert cluster.waits("n00", "n01") == ""
    cluster.put(Tree(None, (Sub("w", "", 2, None), *inner, Sub("r", "", 1, IN_RACK))))
    assert cluster.waits() == ""


def test_a_pod_that_follows_waits_in_vain_in_the_domain_of_its_own_part_alone():
    cluster = Cluster(pair())
    cluster.add(*on("r", "n00"), *on("w", "n10"), *pods("w", 1, first=1))
    assert cluster.waits("n00") == ""  # its row is full
    cluster.api.create("Node", node_in(2, 0))
    assert cluster.waits("n00") == "{'w': 1} in {'w': 'h0/w0'}"


def test_what_a_running_gang_lacks_waits_in_vain_where_all_of_it_has_room():
    cluster = Cluster(pair(2, 2))
    cluster.add(*on("r", "n00"), *on("w", "n10"), *pods("r", 1, first=1), *pods("w", 1, first=1))
    assert cluster.waits("n00", "n10") == ""
    cluster.api.create("Node", node_in(2, 0))
    assert "{'r': 1, 'w': 1}" in cluster.waits("n00", "n10")


def test_pods_on_different_topologies_have_no_room_made_for_them():
    cluster = Cluster(pair())
    cluster.add(*pods("r"), *pods("w"))
    assert cluster.waits()
    assert cluster.waits(among=cluster.api) == ""


# -- worlds ----------------------------------------------------------------------------------------


def test_their_worlds_are_those_with_pod_groups_of_kais_that_have_no_others():
    seeds = [seed for seed in range(500) if InParts.is_in(seed)]
    assert 35 <= len(seeds) <= 75
    assert not any(map(Kai.is_in, seeds))


def test_a_world_of_them_has_some_and_no_violation():
    seeds = (seed for seed in range(500) if InParts.is_in(seed))
    seed = next(each for each in seeds if evictions_of(each, is_sure=False) is None)
    outcome = run_seed(seed)
    assert outcome.violation == ""
    assert outcome.hits["W kaiparts"] >= 2
    assert outcome.hits["W kai in parts"] >= 2
