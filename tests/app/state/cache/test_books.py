"""The books: what counts, where, and for how long."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.kube.core.objects import Owner
from app.state.cache import room
from app.state.cache.books import Books
from app.state.cache.resource_rows import MOST_BOOKED
from tests.app.state.world import World, four_racks, members
from tests.records import BLOCK, RACK, node, pod, topology
from topology.model.levels import NODE_LEVEL


def test_pods_of_other_schedulers_are_counted():
    world = World([node("b0/r0/n00"), node("b0/r0/n01")])
    world.put(pod("foreign", on="n00", scheduler="someone-else"))
    gang = members("g", 2)
    world.put(*gang)
    assert world.held == {}


def test_all_pods_gone_leaves_the_books_empty():
    world = World(four_racks())
    gangs = [*members("a", 4), *members("b", 3), *members("c", 5)]
    lasting = pod("d", gpus=0, on="n00", owner=Owner("apps/v1", "DaemonSet", "d", "uid-of-d"))
    world.put(*gangs, lasting)
    world.schedule(*gangs)
    cluster = world.engine.books
    assert [*cluster.lasting] == [lasting.uid]
    world.delete(*list(world.pods.values()))
    world.tick()
    assert (cluster.bound, cluster.held, world.engine.gangs.by_key) == ({}, {}, {})
    assert cluster.lasting == {}
    assert not any(topology.capacity.used.any() for topology in cluster.topologies.values())


def test_a_finished_pod_takes_nothing():
    running = pod("f", on="n00", phase="Running")
    world = World([node("b0/r0/n00")], [running])
    world.put(*members("g", 1))
    assert world.held == {}
    world.put(msgspec.structs.replace(running, phase="Succeeded"))
    world.tick()
    assert world.held == {"uid-g0": "n00"}


def test_capacity_held_on_a_node_is_counted_when_the_node_joins_a_topology():
    bare = node("n00")
    world = World([bare])
    world.put(*members("g", 1, required=None))
    labelled = msgspec.structs.replace(node("b0/r0/n00"))
    world.put(labelled)
    world.put(*members("h", 1))
    assert set(world.held) == {"uid-g0"}


def test_what_a_node_offers_from_now_on_counts_at_once():
    world = World([node("b0/r0/n00", gpus=4)])
    world.put(*members("g", 1))
    assert world.held == {}
    world.put(node("b0/r0/n00", gpus=8))
    world.tick()
    assert world.held == {"uid-g0": "n00"}


def test_a_node_that_could_not_be_read_takes_no_pods():
    broken = msgspec.structs.replace(node("b0/r0/n00"), problem="node n00: no such amount")
    world = World([broken])
    world.put(*members("g", 1))
    assert world.held == {}


def test_a_pod_that_is_booked_cannot_be_held_as_well():
    world = World([node("b0/r0/n00"), node("b0/r0/n01")], [pod("bound", on="n00")])
    world.put(*members("g", 1))
    for uid in ("uid-bound", "uid-g0"):
        with pytest.raises(ValueError, match=f"pod {uid} is booked already"):
            world.engine.books.hold(uid, "n01", (("pods", 1),))
    assert world.engine.differences() == []


def test_pods_bound_by_name_with_absurd_requests_break_nothing():
    world = World([node("b0/r0/n00")])
    world.put(*(pod(f"x{i}", on="n00", cpu=2**61, gpus=2**61) for i in range(20)))
    world.put(*members("g", 1))
    assert world.held == {}


def test_more_absurd_pods_on_one_node_than_can_be_counted_fill_it_and_no_other():
    books = Books()
    request = (("nvidia.com/gpu", 2**60), ("pods", 1))
    absurd = 3 * 2**61 // MOST_BOOKED + 1
    for number in range(absurd):
        books.bind(f"uid-{number}", "n0", request)
    books.put_node(node("b0/r0/n0"))
    books.put_node(node("b0/r0/n1"))
    books.refresh()
    one = (("nvidia.com/gpu", 1), ("pods", 1))
    assert [room.fits(books, name, one) for name in ("n0", "n1")] == [False, True]
    books.recount()
    assert [room.fits(books, name, one) for name in ("n0", "n1")] == [False, True]


@pytest.mark.parametrize(
    ("blocks", "told"),
    [
        pytest.param(4, "domains: b0/r, b1/r, b2/r, b3/r", id="all_of_four"),
        pytest.param(5, "domains: b0/r, b1/r, b2/r, b3/r, …", id="four_of_five"),
    ],
)
def test_a_value_under_many_parents_is_told_with_at_most_four_of_its_paths(blocks, told):
    world = World([node(f"b{block}/r/n{block}") for block in range(blocks)])
    (warning,) = world.engine.warnings()
    assert warning.endswith(told)


FPGA = "example.com/fpga"


def asking(record, **amounts):
    """The pod with these amounts as well, under names of example.com."""
    more = tuple((f"example.com/{name}", amount) for name, amount in amounts.items())
    return msgspec.structs.replace(record, request=tuple(sorted((*record.request, *more))))


def offering(path, fpgas):
    """A node with devices of a kind that no other node has."""
    made = node(path)
    return msgspec.structs.replace(made, allocatable=(*made.allocatable, (FPGA, fpgas)))


def numbers(world):
    """How many numbers all the books of the cluster are made of."""
    matrices = ("allocatable", "used", "held", "free_now")
    return sum(
        getattr(topology.capacity, matrix).size
        for topology in world.engine.books.topologies.values()
        for matrix in matrices
    )


def test_resources_that_no_node_offers_cost_nothing():
    world = World(four_racks())
    before = numbers(world)
    for i in range(40):
        made_up = {f"r{i}x{j}": 1 for j in range(25)}
        world.put(asking(pod(f"bound{i}", on="n00"), **made_up))
        waiting = asking(members(f"g{i}", 1)[0], **made_up)
        world.put(waiting)
        world.filter(waiting)
        world.filter(asking(pod(f"plain{i}"), **made_up))
    assert (numbers(world), len(world.engine.books.axis)) == (before, 3)
    assert world.held == {}
    assert all(len(vector) <= 4 for vector in world.engine.books.rows._vectors.values())


def test_requests_too_long_to_be_kept_are_not():
    world = World(four_racks())
    world.filter(asking(pod("plain"), **{f"r{j}": 1 for j in range(17)}))
    world.filter(asking(pod("plain"), **{"r" * 600: 1}))
    assert all(len(amounts) <= 16 for amounts in world.engine.books.rows._vectors)
    assert not any("r" * 600 in dict(amounts) for amounts in world.engine.books.rows._vectors)


def test_no_more_requests_are_kept_than_the_bound(monkeypatch):
    monkeypatch.setattr("app.state.cache.resource_rows.MOST_VECTORS", 8)
    world = World(four_racks())
    for cpu in range(1, 100):
        world.filter(pod("plain", cpu=cpu))
    assert len(world.engine.books.rows._vectors) <= 8


def test_a_gang_waits_for_a_resource_until_a_node_begins_to_offer_it():
    world = World(four_racks())
    world.put(asking(members("g", 1)[0], fpga=4))
    assert world.held == {}
    verdict = world.engine.planner.plan(world.gang("g"))
    assert "excluded nodes: insufficient example.com/fpga 16" in str(verdict)
    world.put(offering("b1/r3/n31", 4))
    world.tick()
    assert world.held == {"uid-g0": "n31"}


def test_what_runs_is_counted_when_its_node_begins_to_offer_the_resource():
    runs = asking(pod("runs", on="n31", gpus=0), fpga=3)
    world = World(four_racks(), [runs])
    gang = asking(members("g", 1, gpus=0)[0], fpga=2)
    world.put(gang)
    world.put(offering("b1/r3/n31", 4))
    world.tick()
    assert world.held == {}
    world.delete(runs)
    world.tick()
    assert world.held == {"uid-g0": "n31"}


def test_a_node_that_ceases_to_offer_a_resource_keeps_the_books_of_what_runs():
    runs = asking(pod("runs", on="n31", gpus=0), fpga=3)
    world = World([*four_racks(), offering("b1/r3/n32", 1)], [runs])
    world.put(offering("b1/r3/n31", 4))
    world.put(node("b1/r3/n31"))
    world.put(asking(members("g", 1, gpus=0)[0], fpga=2))
    world.tick()
    assert world.held == {}
    world.put(offering("b1/r3/n31", 4))
    world.tick()
    assert world.held == {}
    world.put(offering("b1/r3/n31", 5))
    world.tick()
    assert world.held == {"uid-g0": "n31"}


def test_pods_listed_before_the_nodes_are_counted_with_what_these_offer():
    world = World([], [asking(pod("runs", on="n31", gpus=0), fpga=3)])
    world.put(offering("b1/r3/n31", 4))
    world.put(asking(members("g", 1, gpus=0)[0], fpga=2))
    world.tick()
    assert world.held == {}
    world.put(asking(members("h", 1, gpus=0)[0], fpga=1))
    world.tick()
    assert world.held == {"uid-h0": "n31"}


def test_nodes_that_offer_too_many_resources_are_told(monkeypatch):
    monkeypatch.setattr("app.state.cache.resource_rows.MOST_RESOURCES", 6)
    made = node("b0/r0/n00")
    more = tuple((f"example.com/r{i}", 1) for i in range(6))
    world = World([msgspec.structs.replace(made, allocatable=(*made.allocatable, *more))])
    assert len(world.engine.books.axis) == 6
    (warning,) = world.engine.warnings()
    assert "more than 6 resources" in warning
    assert warning.endswith("example.com/r3, example.com/r4, example.com/r5")
    world.put(asking(members("g", 1)[0], r5=1))
    assert world.held == {}
    world.put(asking(members("h", 1)[0], r2=1))
    assert world.held == {"uid-h0": "n00"}


@pytest.mark.parametrize(
    ("after", "has_moved"),
    [
        pytest.param(node("b0/r0/n00", labels={"zone": "z"}), False, id="another_label"),
        pytest.param(node("b0/r0/n00", gpus=4), False, id="no_label"),
        pytest.param(node("b0/r1/n00"), True, id="another_rack"),
        pytest.param(node("b1/r0/n00"), True, id="another_block"),
    ],
)
def test_a_node_has_moved_if_some_topology_has_it_elsewhere(after, has_moved):
    listed = [topology("blocks", BLOCK), topology("racks", BLOCK, RACK)]
    books = World([node("b0/r0/n00")], topologies=listed).engine.books
    assert books.has_moved(books.nodes["n00"], after) is has_moved


@given(
    st.lists(
        st.tuples(st.sampled_from("abcd"), st.sampled_from(("", "b0/r0/", "b0/r1/", "b1/r1/"))),
        max_size=12,
    ),
    st.booleans(),
)
def test_trees_that_follow_single_nodes_are_those_built_from_all(moves, is_lazy):
    books = Books()
    books.set_topologies({"t": (BLOCK, RACK, NODE_LEVEL)})
    for at, (name, where) in enumerate(moves):
        if where and name in books.nodes and at % 3 == 0:
            books.drop_node(name)
        else:
            books.put_node(node(f"{where}{name}", gpus=at))
        books.bind(f"u{at}", name, (("cpu", 1), ("pods", 1)))
        if not is_lazy:
            books.refresh()
    books.refresh()
    followed = {
        name: (each.tree.nodes, each.tree.names, each.capacity.copy())
        for name, each in books.topologies.items()
    }
    books.outdate()
    books.recount()
    for name, (nodes, names, capacity) in followed.items():
        anew = books.topologies[name]
        assert (nodes, names) == (anew.tree.nodes, anew.tree.names)
        for part in ("allocatable", "used", "is_open", "free_now"):
            rows = getattr(capacity, part), getattr(anew.capacity, part)
            assert np.array_equal(*rows), part


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 3)), max_size=40))
def test_a_copy_of_who_is_bound_stays_as_it_was_whatever_is_bound_later(changes):
    books, copies = Books(), []
    for number, where in changes:
        copies.append((books.bound_now(), {node: dict(on) for node, on in books.bound_on.items()}))
        if where == 0:
            books.unbind(f"uid-{number}")
        else:
            books.bind(f"uid-{number}", f"n{where}", (("cpu", number),))
        by_node = {}
        for uid, booking in books.bound.items():
            by_node.setdefault(booking.node, {})[uid] = booking.request
        assert books.bound_on == by_node
    assert all(copy == then for copy, then in copies)


def test_a_copy_of_who_is_bound_shares_what_stays_as_it_is():
    books = Books()
    for number in range(6):
        books.bind(f"uid-{number}", f"n{number % 3}", ())
    first = books.bound_now()
    books.unbind("uid-1")
    second = books.bound_now()
    assert [node for node in first if first[node] is not second[node]] == ["n1"]
