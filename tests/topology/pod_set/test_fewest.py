"""Where several domains are needed, the wider domain is taken in which these are fewest."""

from __future__ import annotations

import pytest

from tests.text import BLOCK, RACK, cluster, pods_per_node, vector
from topology import (
    Capacity,
    Constraint,
    DomainOrder,
    Gang,
    Group,
    Leader,
    NoFit,
    Options,
    PodSet,
    Tree,
    find,
    invariants,
)
from topology.pod_set import fewest

# b1 has 12 in four racks, b2 has 15 in two of its three, b3 has 14 in two.
BROKEN = """
b1/r11/n11 gpu=4
b1/r12/n12 gpu=3
b1/r13/n13 gpu=3
b1/r14/n14 gpu=2
b2/r21/n21 gpu=10
b2/r22/n22 gpu=5
b3/r31/n31 gpu=9
b3/r32/n32 gpu=5
"""


def racks(pods: int, order: DomainOrder, text: str = BROKEN, **constraint: str) -> list[str]:
    tree, capacity = cluster(text)
    asked = Constraint(**(constraint or {"preferred": RACK}))
    return racks_of(tree, capacity, workers(capacity, pods, asked), order)


def workers(capacity: Capacity, pods: int, asked: Constraint, **more: object) -> PodSet:
    request = vector(capacity.axis, pods=1, gpu=1)
    return PodSet("workers", pods, request, constraint=asked, **more)


def racks_of(tree: Tree, capacity: Capacity, asked: PodSet, order: DomainOrder) -> list[str]:
    gang = Gang("ns/g", Group("g", (asked,)))
    found = find(tree, capacity, gang, {}, Options(order=order))
    assert not isinstance(found, NoFit), str(found)
    invariants.check(tree, capacity, gang=gang, placement=found)
    return sorted(node.replace("n", "r") for node in pods_per_node(tree, found)["workers"])


def test_kueue_takes_the_tightest_block_however_broken_it_is() -> None:
    assert racks(12, DomainOrder.TIGHTEST) == ["r11", "r12", "r13", "r14"]


def test_of_equally_many_racks_those_are_taken_that_keep_least_free() -> None:
    assert racks(12, DomainOrder.FEWEST) == ["r31", "r32"]
    assert racks(15, DomainOrder.FEWEST) == ["r21", "r22"]


def test_one_rack_comes_before_all_of_this_and_the_tightest_is_taken() -> None:
    assert racks(9, DomainOrder.FEWEST) == racks(9, DomainOrder.TIGHTEST) == ["r31"]


def test_it_widens_no_further_than_is_required() -> None:
    wider = {"preferred": RACK, "required": BLOCK}
    assert racks(12, DomainOrder.FEWEST, **wider) == ["r31", "r32"]
    tree, capacity = cluster(BROKEN)
    asked = workers(capacity, 16, Constraint(**wider))
    gang = Gang("ns/g", Group("g", (asked,)))
    assert isinstance(find(tree, capacity, gang, {}, Options(order=DomainOrder.FEWEST)), NoFit)


def test_a_leader_is_counted_where_it_is() -> None:
    tree, capacity = cluster(BROKEN)
    leader = Leader("leader", vector(capacity.axis, pods=1, gpu=4))
    asked = workers(capacity, 10, Constraint(preferred=RACK), leader=leader)
    assert set(racks_of(tree, capacity, asked, DomainOrder.FEWEST)) <= {"r31", "r32"}


def test_of_many_blocks_only_so_many_are_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[int] = []
    down = fewest.assign.down

    def counted(tree, fits, unit, level, domains):
        tried.extend(domains.tolist())
        return down(tree, fits, unit, level, domains)

    monkeypatch.setattr(fewest.assign, "down", counted)
    lines = [
        f"b{block:03}/r{block:03}{rack}/n{block:03}{rack} gpu=4"
        for block in range(99)
        for rack in "xy"
    ]
    racks(6, DomainOrder.FEWEST, "\n".join(lines))
    assert len(tried) == fewest.MOST_TRIED + 1, "and once more for the answer"
