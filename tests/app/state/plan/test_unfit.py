"""Requests that found no place: when they are searched again, and when that would be in vain."""

from __future__ import annotations

import dataclasses
from random import Random

import pytest
from msgspec.structs import replace

from app.dialects.spec import GangKey
from app.kube.core.objects import Shape
from app.state.cache.books import Books
from app.state.cache.eligibility.node_table import NodeTable
from app.state.plan import unfit
from app.state.plan.unfit import Unfit
from app.state.plan.verdict import InvalidGang, NoPlan
from tests.app.state.world import World, members
from tests.records import GPU, node, pod

REQUEST = ((GPU, 4), ("pods", 1))
ANYWHERE, POOL_A = Shape(), Shape(selector=(("pool", "a"),))
NO = NoPlan(InvalidGang("no place"))


class Cluster:
    """Nodes of 8 GPUs, what is taken of them, and what is remembered."""

    def __init__(self, nodes: int = 2) -> None:
        self.books, self.table = Books(), NodeTable()
        self.unfit = Unfit(self.books, self.table)
        for at in range(nodes):
            self.put(f"n{at}")
            self.take(f"n{at}", 8)

    def put(self, name: str, **more) -> None:
        self.books.put_node(node(name, **more))
        self.table.put_node(node(name, **more))
        self.books.refresh()

    def take(self, on: str, gpus: int) -> None:
        self.books.unbind(f"on-{on}")
        self.books.bind(f"on-{on}", on, ((GPU, gpus), ("pods", 1)))

    def note(
        self,
        shape: Shape = ANYWHERE,
        *,
        signature: str = "s",
        settled: int = 0,
        gang: str = "g",
        pod_sets: int = 1,
    ) -> None:
        key = GangKey("default", gang, "group")
        pods = [(REQUEST, shape)] * pod_sets
        self.unfit.note((signature,), NO, pods, key, settled=settled)

    def holds(self, signature: str = "s") -> bool:
        return self.unfit.still_holds((signature,))


def test_a_request_that_was_never_searched_is_not_known():
    assert not Cluster().holds()


def test_it_holds_as_long_as_nothing_has_gained_room():
    cluster = Cluster()
    cluster.note()
    assert cluster.holds()
    assert cluster.unfit.verdict(("s",)) is NO


@pytest.mark.parametrize(("left", "holds"), [(3, True), (4, False), (8, False)])
def test_it_holds_until_a_node_takes_one_of_its_pods(left, holds):
    cluster = Cluster()
    cluster.note()
    cluster.take("n1", 8 - left)
    cluster.unfit.grew(["n1"])
    assert cluster.holds() is holds


def test_its_numbers_are_not_those_of_now_once_a_node_has_gained_room():
    cluster = Cluster()
    cluster.note()
    cluster.take("n1", 7)
    cluster.unfit.grew(["n1"])
    assert cluster.holds()
    assert cluster.unfit.verdict(("s",)) is None


def test_room_on_a_node_that_its_pods_may_not_use_changes_nothing():
    cluster = Cluster()
    cluster.note(POOL_A)
    cluster.take("n1", 0)
    cluster.unfit.grew(["n1"])
    assert cluster.holds()
    cluster.put("n1", labels={"pool": "a"})
    cluster.unfit.grew(["n1"])
    assert not cluster.holds()


@pytest.mark.parametrize("nodes", [unfit.FEW_NODES, unfit.FEW_NODES + 1])
@pytest.mark.parametrize("pool", ["a", "b"])
def test_many_nodes_are_judged_as_few_are(nodes, pool):
    cluster = Cluster(nodes)
    cluster.note(POOL_A)
    for at in range(nodes):
        cluster.take(f"n{at}", 0)
    cluster.put("n0", labels={"pool": pool})
    cluster.unfit.grew([f"n{at}" for at in range(nodes)])
    assert cluster.holds() is (pool == "b")


def test_a_node_that_is_closed_or_gone_takes_nothing():
    cluster = Cluster()
    cluster.note()
    cluster.take("n1", 0)
    cluster.put("n1", is_cordoned=True)
    cluster.unfit.grew(["n1", "never-seen"])
    assert cluster.holds()
    cluster.put("n1")
    cluster.unfit.grew(["n1"])
    assert not cluster.holds()


def test_only_what_has_grown_since_matters():
    cluster = Cluster()
    cluster.take("n1", 0)
    cluster.unfit.grew(["n1"])
    cluster.note()  # it did not fit though n1 takes a pod: it has more of them
    cluster.unfit.grew(["n0"])
    assert cluster.holds()


def test_where_anything_may_have_grown_it_is_searched_again():
    cluster = Cluster()
    cluster.note()
    cluster.unfit.grew([])
    assert not cluster.holds()


def test_more_nodes_than_are_remembered_count_as_anything():
    cluster = Cluster()
    cluster.note()
    cluster.unfit.grew([f"other-{at}" for at in range(unfit.MOST_NODES)])
    assert cluster.holds()
    cluster.unfit.grew(["one-more"])
    assert not cluster.holds()


def test_any_change_may_help_the_rest_of_a_gang():
    cluster = Cluster()
    cluster.note(settled=1)
    assert cluster.holds()
    cluster.unfit.grew(["n1"])
    assert not cluster.holds()


def test_a_resource_that_no_node_offers_is_in_no_node_s_room():
    cluster = Cluster()
    pods = [((("example.com/fpga", 1),), ANYWHERE)]
    cluster.unfit.note(("s",), NO, pods, GangKey("default", "g", "group"))
    cluster.take("n1", 0)
    cluster.unfit.grew(["n1"])
    assert cluster.holds()


def test_so_many_requests_are_remembered_and_no_heavy_one():
    cluster = Cluster()
    for at in range(unfit.MOST_REQUESTS + 5):
        cluster.note(signature=f"s{at}")
    assert len(cluster.unfit) == unfit.MOST_REQUESTS
    assert not cluster.holds("s0")
    cluster.note(Shape(selector=(("pool", "x" * unfit.MOST_BYTES),)), signature="heavy")
    cluster.unfit.grew(["n1"])
    assert not cluster.holds("heavy")


def test_so_many_verdicts_are_kept_with_their_reasons():
    cluster = Cluster()
    for at in range(3 * unfit.MOST_EXACT):
        cluster.note(signature=f"s{at}")
    known = [at for at in range(3 * unfit.MOST_EXACT) if cluster.unfit.verdict((f"s{at}",))]
    assert 0 < len(known) <= unfit.MOST_EXACT


def test_a_verdict_is_not_given_again_once_the_trees_are_others():
    cluster = Cluster()
    cluster.note()
    cluster.books.drop_node("n1")
    cluster.books.refresh()
    assert cluster.unfit.verdict(("s",)) is None
    assert cluster.holds()


def test_a_pod_that_is_made_smaller_where_it_runs_leaves_room_for_a_gang():
    world = World([node("b0/r0/n0")], [pod("large", on="n0", phase="Running")])
    world.put(*members("g", 1, gpus=4))
    world.tick()
    assert world.held == {}
    smaller = ((GPU, 4), ("cpu", 1000), ("pods", 1))
    world.put(replace(world.pods["uid-large"], request=smaller, version="2"))
    world.tick()
    assert world.held == {"uid-g0": "n0"}


def test_a_gang_that_is_planned_anew_leaves_room_where_it_was_planned_before():
    world = World([node("b0/r0/n0"), node("b1/r1/n1", is_cordoned=True)])
    world.put(*members("first", 1))
    world.put(*members("second", 1))
    world.tick()
    assert world.held == {"uid-first0": "n0"}
    world.put(node("b1/r1/n1", labels={"pool": "b"}))
    world.filter(world.pods["uid-first0"], ["n1"])  # kube-scheduler does not offer n0
    world.put(node("b2/r2/n2", gpus=0))
    world.tick()
    world.tick(2.0)
    assert sorted(world.held.values()) == ["n0", "n1"]


@pytest.mark.parametrize("seed", range(20))
def test_no_gang_is_passed_over_that_would_find_a_place(seed):
    chance = Random(seed)
    nodes = [
        node(f"b{at // 4}/r{at // 2}/n{at}", labels={"pool": chance.choice("ab")})
        for at in range(8)
    ]
    world = World(nodes, visits_per_tick=10_000)
    shapes = (ANYWHERE, POOL_A, Shape(selector=(("pool", "b"),)))
    for at in range(12):
        size, gpus = chance.randint(1, 4), chance.choice((2, 5, 8))
        world.put(*members(f"g{at}", size, gpus=gpus, shape=chance.choice(shapes)))
    skipped = 0
    for step in range(60):
        match chance.randrange(4):
            case 0:
                world.put(pod(f"p{step}", on=f"n{chance.randrange(8)}", gpus=chance.randint(1, 8)))
            case 1 if ordinary := [each for each in world.pods.values() if each.name[0] == "p"]:
                world.delete(chance.choice(ordinary))
            case 2:
                at = chance.randrange(8)
                here = node(f"b{at // 4}/r{chance.randrange(4)}/n{at}", labels={"pool": "a"})
                world.put(here)
            case _:
                world.put(node(f"b0/r0/n{chance.randrange(8)}", is_cordoned=chance.random() < 0.5))
        world.tick()
        engine = world.engine
        for gang in engine.gangs.plannable():
            if engine.planner.is_unfit(gang):
                skipped += 1
                planner = engine.planner
                searches = dataclasses.replace(planner.searches)  # which know no verdicts
                fresh = dataclasses.replace(planner, searches=searches)
                assert isinstance(fresh.plan(gang, members=gang.unplanned()), NoPlan)
    assert skipped


def test_a_gang_that_is_gone_is_held_on_to_by_no_verdict():
    cluster = Cluster()
    for name in ("a", "b"):
        cluster.note(signature=name, gang=name)
    cluster.unfit.leave(GangKey("default", "a", "group"))
    assert cluster.unfit.verdict(("a",)) is None
    assert cluster.unfit.verdict(("b",)) is NO
    world = World([node(f"b0/r0/n{at}", gpus=1) for at in range(2)], members("g", 2))
    assert world.engine.planner.searches.unfit.exact == 1
    for each in list(world.pods.values()):
        world.delete(each)
    world.tick()
    assert world.engine.planner.searches.unfit.exact == 0


def test_what_is_remembered_weighs_so_much_and_the_latest_stays():
    cluster = Cluster()
    long = "x" * (unfit.MOST_BYTES // 2)
    for number in range(3 * unfit.MOST_KNOWN_BYTES // unfit.MOST_BYTES):
        cluster.note(Shape(selector=(("pool", f"{long}{number}"),)), signature=str(number))
        assert cluster.unfit.known_bytes <= unfit.MOST_KNOWN_BYTES
    assert cluster.holds(str(number))
    assert not cluster.holds("0")
    assert cluster.unfit.known_bytes > unfit.MOST_KNOWN_BYTES // 2


def test_of_requests_of_many_pod_sets_the_last_of_a_gang_are_remembered():
    """Those of a user who deletes a pod and makes it again, say, a thousand times."""
    cluster, many = Cluster(), unfit.FEW_SETS + 1
    cluster.note(signature="other", gang="other", pod_sets=many)
    for at in range(9):
        cluster.note(signature=f"{at}", pod_sets=many)
        cluster.note(signature=f"{at}", pod_sets=many)
    assert [at for at in range(9) if cluster.holds(f"{at}")] == [5, 6, 7, 8]
    assert cluster.holds("other")
    cluster.unfit.leave(GangKey("default", "g", "group"))
    assert not cluster.holds("8")
    assert len(cluster.unfit) == 1


def test_a_request_weighs_what_it_names_of_nodes_with_pods_of_its_gang():
    cluster = Cluster()
    cluster.note()
    alone = cluster.unfit.known_bytes
    cluster.note(signature="rest", settled=1_000)
    assert cluster.unfit.known_bytes == 2 * alone + 1_000 * unfit.NAME_BYTES


def test_no_verdict_is_kept_of_a_request_of_many_pod_sets():
    """What its reasons are looked up in has a byte for each node and pod set."""
    cluster = Cluster()
    for pod_sets in (unfit.FEW_SETS + 1, unfit.FEW_SETS):
        assert cluster.unfit.exact == 0
        cluster.note(pod_sets=pod_sets)
    assert cluster.unfit.exact == 1


def test_no_verdict_is_kept_of_a_request_that_is_heavy():
    cluster = Cluster()
    cluster.note(Shape(selector=(("pool", "x" * unfit.MOST_EXACT_BYTES),)))
    assert cluster.unfit.exact == 0
