"""Each invariant fails on an object broken in just that way, and holds on the whole one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from tests.text import RACK, cluster, vector
from topology import (
    BrokenInvariant,
    Capacity,
    Constraint,
    Gang,
    Group,
    Leader,
    Pairs,
    Placement,
    PodSet,
    PodSetPlacement,
    Slice,
    Tree,
    find,
    invariants,
)

CLUSTER = """
    b1/r1/n1 gpu=8
    b1/r1/n2 gpu=8
    b1/r2/n3 gpu=8
    b2/r1/n4 gpu=8 closed
"""


def rows(*indices: int) -> np.ndarray:
    return np.array(indices, dtype=np.intp)


def placed(pods: int = 12) -> tuple[Tree, Capacity, Gang, Placement]:
    tree, capacity = cluster(CLUSTER)
    request = vector(capacity.axis, pods=1, gpu=1)
    pod_set = PodSet("w", pods, request, constraint=Constraint(required=RACK))
    gang = Gang("ns/gang", Group("root", (pod_set,)))
    placement = find(tree, capacity, gang, {})
    assert isinstance(placement, Placement)
    return tree, capacity, gang, placement


def broken(placement: Placement, **fields: object) -> Placement:
    (only,) = placement.pod_sets
    return replace(placement, pod_sets=(replace(only, **fields),))


def test_a_whole_cluster_and_its_placement_keep_every_invariant() -> None:
    tree, capacity, gang, placement = placed()
    request = gang.root.members[0].request  # type: ignore[union-attr]
    capacity.use(2, request)
    capacity.hold(2, request, pods=2)
    invariants.check(
        tree,
        capacity,
        bound=[(2, request)],
        reserved=[(2, request)] * 2,
        gang=gang,
        placement=placement,
    )
    with pytest.raises(BrokenInvariant):
        invariants.check(tree, capacity, bound=[], reserved=[(2, request)] * 2)


@pytest.mark.parametrize(
    "breakage",
    [
        pytest.param(lambda tree: {"nodes": ("n2", "n1", "n3", "n4")}, id="order"),
        pytest.param(lambda tree: {"nodes": ("n1", "n1", "n3", "n4")}, id="twice"),
        pytest.param(lambda tree: {"slot_of": dict(tree.slot_of) | {"n1": 1}}, id="slot_of"),
    ],
)
def test_slots_are_sorted(breakage: Callable[[Tree], dict[str, object]]) -> None:
    tree, _ = cluster(CLUSTER)
    with pytest.raises(BrokenInvariant):
        invariants.check_slots_are_sorted(replace(tree, **breakage(tree)))


def test_slots_are_sorted_by_path_before_name() -> None:
    tree, _ = cluster("b1/r1/n2\nb1/r2/n1")
    invariants.check_slots_are_sorted(tree)
    names = (tree.names[0], ("r2", "r1"), tree.names[2])
    with pytest.raises(BrokenInvariant, match="sorted"):
        invariants.check_slots_are_sorted(replace(tree, names=names))


@pytest.mark.parametrize(
    "racks",
    [
        pytest.param(rows(0, 2, 2), id="empty_domain"),
        pytest.param(rows(1, 2, 3), id="not_from_the_first_slot"),
        pytest.param(rows(0, 2, 4), id="beyond_the_last_slot"),
        pytest.param(rows(0, 2), id="a_domain_without_a_range"),
    ],
)
def test_starts_increase(racks: np.ndarray) -> None:
    tree, _ = cluster(CLUSTER)
    invariants.check_starts_increase(tree)
    with pytest.raises(BrokenInvariant):
        invariants.check_starts_increase(
            replace(tree, starts=(tree.starts[0], racks, tree.starts[2]))
        )


def test_ends_are_the_next_starts() -> None:
    tree, _ = cluster(CLUSTER)
    with pytest.raises(BrokenInvariant, match="ends"):
        invariants.check_starts_increase(
            replace(tree, ends=(tree.ends[0], rows(2, 3, 3), tree.ends[2]))
        )


@pytest.mark.parametrize(
    "breakage",
    [
        pytest.param({"starts": (rows(0, 3), rows(0, 2), rows(0, 1, 2, 3))}, id="crosses_parent"),
        pytest.param({"parents": (rows(0, 0), rows(0, 1, 1), rows(0, 0, 1, 2))}, id="parents"),
        pytest.param({"parents": (rows(0, 1), rows(0, 0, 1), rows(0, 0, 1, 2))}, id="root_parent"),
        pytest.param(
            {"domain_of": (rows(0, 0, 1, 1), rows(0, 0, 1, 2), rows(0, 1, 2, 3))}, id="domain_of"
        ),
    ],
)
def test_levels_nest(breakage: dict[str, object]) -> None:
    tree, _ = cluster(CLUSTER)
    invariants.check_levels_nest(tree)
    with pytest.raises(BrokenInvariant):
        invariants.check_levels_nest(replace(tree, **breakage))


def older(capacity: Capacity) -> None:
    capacity.generation = 0


def narrower(capacity: Capacity) -> None:
    capacity.used = capacity.used[:, :-1].copy()


def node_major(capacity: Capacity) -> None:
    capacity.held = np.asfortranarray(capacity.held)


def fractional(capacity: Capacity) -> None:
    capacity.allocatable = capacity.allocatable.astype(np.float64)  # type: ignore[assignment]


@pytest.mark.parametrize("breakage", [older, narrower, node_major, fractional])
def test_shapes_agree(breakage: Callable[[Capacity], None]) -> None:
    tree, capacity = cluster(CLUSTER)
    invariants.check_shapes_agree(tree, capacity)
    breakage(capacity)
    with pytest.raises(BrokenInvariant):
        invariants.check_shapes_agree(tree, capacity)


def test_sums_fit_an_int64() -> None:
    _, capacity = cluster(CLUSTER)
    invariants.check_sums_fit_an_int64(capacity)
    capacity.free_by_domain[-1][1, 0] = 2**62
    with pytest.raises(BrokenInvariant, match=str(2**62)):
        invariants.check_sums_fit_an_int64(capacity)


@pytest.mark.parametrize("name", ["used", "held"])
def test_books_are_not_negative(name: str) -> None:
    _, capacity = cluster(CLUSTER)
    invariants.check_books_are_not_negative(capacity)
    getattr(capacity, name)[1, 2] = -1
    with pytest.raises(BrokenInvariant, match=f"{name}: negative on node n3"):
        invariants.check_books_are_not_negative(capacity)


@pytest.mark.parametrize(("verb", "name"), [("use", "used"), ("hold", "held")])
def test_books_equal_their_table(verb: str, name: str) -> None:
    _, capacity = cluster(CLUSTER)
    request = vector(capacity.axis, pods=1, gpu=2)
    getattr(capacity, verb)(1, request)
    invariants.check_books_equal_their_table(capacity, name, [(1, request)])
    with pytest.raises(BrokenInvariant, match="node n2"):
        invariants.check_books_equal_their_table(capacity, name, [(1, request), (1, request)])


def test_free_by_domain_is_current() -> None:
    _, capacity = cluster(CLUSTER)
    invariants.check_free_by_domain_is_current(capacity)
    capacity.held[0, 2] += 1
    with pytest.raises(BrokenInvariant, match="b1"):
        invariants.check_free_by_domain_is_current(capacity)


def test_every_level_has_the_same_total() -> None:
    _, capacity = cluster(CLUSTER)
    invariants.check_every_level_has_the_same_total(capacity)
    capacity.free_by_domain[0][2, 1] += 1
    with pytest.raises(BrokenInvariant, match="level 0"):
        invariants.check_every_level_has_the_same_total(capacity)


@pytest.mark.parametrize(
    "breakage",
    [
        pytest.param({"slots": Pairs.of([(0, 8), (1, 3)])}, id="a_pod_is_missing"),
        pytest.param({"slots": Pairs.of([(0, 12), (1, 0)])}, id="a_slot_for_no_pods"),
        pytest.param({"slots": Pairs.of([(1, 4), (0, 8)])}, id="slots_out_of_order"),
        pytest.param({"slots": Pairs.of([(0, 8), (0, 4)])}, id="a_slot_twice"),
        pytest.param({"domains": Pairs.of([(1, 12)])}, id="another_domain"),
        pytest.param({"pod_set": "other"}, id="another_pod_set"),
    ],
)
def test_placement_is_whole(breakage: dict[str, object]) -> None:
    tree, _, gang, placement = placed()
    invariants.check_placement_is_whole(tree, gang, placement)
    with pytest.raises(BrokenInvariant):
        invariants.check_placement_is_whole(tree, gang, broken(placement, **breakage))


@pytest.mark.parametrize("fields", [{"gang": "ns/other"}, {"generation": 0}])
def test_placement_belongs_to_its_gang_and_tree(fields: dict[str, object]) -> None:
    tree, _, gang, placement = placed()
    with pytest.raises(BrokenInvariant):
        invariants.check_placement_is_whole(tree, gang, replace(placement, **fields))


@pytest.mark.parametrize(
    ("slots", "names"),
    [
        pytest.param(
            Pairs.of([(0, 9), (1, 3)]), "n1: 9 of nvidia.com/gpu placed, 8 free", id="too_many"
        ),
        pytest.param(Pairs.of([(0, 8), (3, 4)]), "n4 is closed", id="closed"),
        pytest.param(Pairs.of([(0, 8), (2, 4)]), "n3 may not host w", id="not_allowed"),
    ],
)
def test_placement_fits(slots: Pairs, names: str) -> None:
    _, capacity, gang, placement = placed()
    masks = {"": np.array([True, True, False, True])}
    invariants.check_placement_fits(capacity, gang, placement, masks)
    with pytest.raises(BrokenInvariant, match=names):
        invariants.check_placement_fits(capacity, gang, broken(placement, slots=slots), masks)


def test_required_level_is_one_domain() -> None:
    tree, _, gang, placement = placed()
    invariants.check_required_level_is_one_domain(tree, gang, placement)
    split = broken(placement, slots=Pairs.of([(0, 8), (2, 4)]))
    with pytest.raises(BrokenInvariant, match=f"2 domains of {RACK}"):
        invariants.check_required_level_is_one_domain(tree, gang, split)


def test_a_leader_shares_the_required_level_of_its_workers() -> None:
    tree, _ = cluster(CLUSTER)
    led = PodSet("w", 2, (1,), constraint=Constraint(required=RACK), leader=Leader("boss", (1,)))
    gang = Gang("ns/gang", Group("root", (led,)))
    workers = PodSetPlacement("w", 1, domains=Pairs.of([(0, 2)]), slots=Pairs.of([(0, 2)]))
    boss = PodSetPlacement("boss", 1, domains=Pairs.of([(0, 1)]), slots=Pairs.of([(1, 1)]))
    together = Placement("ns/gang", tree.generation, (workers, boss))
    invariants.check_required_level_is_one_domain(tree, gang, together)
    apart = replace(together, pod_sets=(workers, replace(boss, slots=Pairs.of([(2, 1)]))))
    with pytest.raises(BrokenInvariant, match=f"2 domains of {RACK}"):
        invariants.check_required_level_is_one_domain(tree, gang, apart)


def test_slices_are_whole() -> None:
    tree, _ = cluster(CLUSTER)
    sliced = PodSet("w", 5, (1,), slices=(Slice(2, RACK),), partial_last_slice=True)
    gang = Gang("ns/gang", Group("root", (sliced,)))
    whole = PodSetPlacement(
        "w", 0, domains=Pairs.of([(0, 5)]), slots=Pairs.of([(0, 3), (1, 1), (2, 1)])
    )
    placement = Placement("ns/gang", tree.generation, (whole,))
    invariants.check_slices_are_whole(tree, gang, placement)
    exact = Gang("ns/gang", Group("root", (PodSet("w", 4, (1,), slices=(Slice(2, RACK),)),)))
    with pytest.raises(BrokenInvariant, match=f"pod set w: slices of 2 are cut at {RACK}"):
        invariants.check_slices_are_whole(tree, exact, placement)


def test_ranks_are_dense() -> None:
    tree, _ = cluster(CLUSTER)
    whole = PodSetPlacement("w", 1, domains=Pairs.of([(0, 3)]), slots=Pairs.of([(0, 2), (1, 1)]))
    invariants.check_ranks_are_dense(tree, whole)
    with pytest.raises(BrokenInvariant, match="rank 2"):
        invariants.check_ranks_are_dense(tree, replace(whole, slots=Pairs.of([(0, 2), (2, 1)])))
