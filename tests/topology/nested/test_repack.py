"""Pod sets of one domain are packed anew for one more, and stay where they must be."""

from __future__ import annotations

from tests.text import BLOCK, RACK, cluster, pods_per_node, vector
from topology import Capacity, Constraint, Gang, Group, NoFit, Options, PodSet, Tree
from topology import find as search
from topology.fit.view import View
from topology.nested import walk
from topology.nested.parts import root_of
from topology.nested.repack import by_demand
from topology.nested.state import WalkState

IN_RACK, IN_BLOCK = Constraint(required=RACK), Constraint(required=BLOCK)


def asks(capacity: Capacity, name: str, pods: int, constraint=IN_RACK, **amounts: int) -> PodSet:
    request = vector(capacity.axis, pods=1, **amounts)
    return PodSet(name, pods, request, constraint=constraint)


def found(tree: Tree, capacity: Capacity, *members: PodSet | Group, tries: int = 32):
    answer = search(tree, capacity, Gang("ns/g", Group("g", members)), {}, Options(tries=tries))
    return answer if isinstance(answer, NoFit) else pods_per_node(tree, answer)


def test_those_that_need_most_come_first_whatever_they_need_most_of() -> None:
    tree, capacity = cluster("b1/r1/n1 gpu=8 cpu=100\nb1/r2/n2 gpu=8 cpu=100")
    small = asks(capacity, "small", 1, gpu=1, cpu=1)
    cores = asks(capacity, "cores", 2, gpu=0, cpu=45)
    gpus = asks(capacity, "gpus", 2, gpu=3, cpu=1)
    gang = Gang("ns/g", Group("g", (small, gpus, cores)))
    view = View(tree, capacity, {}, Options())
    root = root_of(tree, gang, view.options.unconstrained)
    ordered = by_demand(WalkState(view, root), root)
    assert [part.name for part in ordered.members] == ["cores", "gpus", "small"]


# Of r1's nodes the large pod of "wide" needs n1 alone, and the tightest for "tall" is n1 too.
ONE_RACK = "b1/r1/n1 gpu=4 cpu=8\nb1/r1/n2 gpu=5 cpu=6\nb1/r2/n3 gpu=0 cpu=100"


def test_a_pod_set_moves_inside_its_rack_for_one_that_would_find_no_node(monkeypatch) -> None:
    tree, capacity = cluster(ONE_RACK)
    tall = asks(capacity, "tall", 1, gpu=4, cpu=6)
    wide = asks(capacity, "wide", 1, gpu=1, cpu=8)
    assert found(tree, capacity, tall) == {"tall": {"n1": 1}}
    assert found(tree, capacity, tall, wide) == {"tall": {"n2": 1}, "wide": {"n1": 1}}
    monkeypatch.setattr(walk, "movable", lambda *_: ())
    monkeypatch.setattr(walk, "EVERY_WAY", walk.FIRST)
    assert isinstance(found(tree, capacity, tall, wide), NoFit), "nothing else moves it"


def test_nobody_is_moved_out_of_the_rack_that_his_group_is_in() -> None:
    tree, capacity = cluster("b1/r1/n1 gpu=4 cpu=9\nb1/r2/n2 gpu=4 cpu=9")
    tall = asks(capacity, "tall", 1, gpu=4, cpu=6)
    wide = asks(capacity, "wide", 1, gpu=1, cpu=8)
    last = asks(capacity, "last", 1, gpu=1, cpu=1)
    refused = found(tree, capacity, tall, wide, asks(capacity, "more", 1, gpu=4, cpu=1), last)
    assert isinstance(refused, NoFit)
    placed = found(tree, capacity, tall, wide, last)
    assert isinstance(placed, dict)
    assert set(placed["tall"]) != set(placed["wide"])
    assert placed["last"] == placed["wide"]
