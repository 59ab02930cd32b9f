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
    ResourceAxis,
    Slice,
    Tree,
    build,
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


def held_back(capacity: Capacity) -> None:
    """A debt that every sum knows of."""
    capacity.held[0, 1] -= 1
    capacity.free_now = capacity.free()
    capacity.free_by_domain = capacity.counted_by_domain()


def out_of_date(capacity: Capacity) -> None:
    capacity.free_now[0, 1] += 1


def out_of_date_above(capacity: Capacity) -> None:
    capacity.free_by_domain[1][0, 0] += 1


def beyond_an_int64(capacity: Capacity) -> None:
    capacity.free_by_domain[-1][0, 0] = 2**62


@pytest.mark.parametrize(
    ("breakage", "says"),
    [
        pytest.param(held_back, "held: negative on node n2", id="negative"),
        pytest.param(out_of_date, "free_now: node n2", id="free_now"),
        pytest.param(out_of_date_above, "free_by_domain: level 1", id="free_by_domain"),
        pytest.param(beyond_an_int64, "a node counts for", id="sums"),
    ],
)
def test_a_check_of_everything_finds_broken_books(
    breakage: Callable[[Capacity], None], says: str
) -> None:
    tree, capacity = cluster(CLUSTER)
    invariants.check(tree, capacity)
    breakage(capacity)
    with pytest.raises(BrokenInvariant, match=says):
        invariants.check(tree, capacity)


@pytest.mark.parametrize(
    ("breakage", "says"),
    [
        pytest.param({"nodes": ("n1", "n1", "n3", "n4")}, "a name occurs twice", id="slots"),
        pytest.param(
            {"ends": (rows(3, 4), rows(2, 3, 3), rows(1, 2, 3, 4))}, "ends are not", id="ranges"
        ),
        pytest.param(
            {"domain_of": (rows(0, 0, 1, 1), rows(0, 0, 1, 2), rows(0, 1, 2, 3))},
            "domain_of",
            id="nesting",
        ),
        pytest.param({"generation": 2}, "tree of generation 2", id="generation"),
    ],
)
def test_a_check_of_everything_finds_a_broken_tree(breakage: dict[str, object], says: str) -> None:
    tree, capacity = cluster(CLUSTER)
    with pytest.raises(BrokenInvariant, match=says):
        invariants.check(replace(tree, **breakage), capacity)


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        pytest.param({"domains": Pairs.of([(0, 11)])}, "domains disagree", id="whole"),
        pytest.param(
            {"slots": Pairs.of([(0, 9), (1, 3)])}, "9 of nvidia.com/gpu placed, 8 free", id="fits"
        ),
        pytest.param(
            {
                "level": 0,
                "domains": Pairs.of([(0, 12)]),
                "slots": Pairs.of([(0, 8), (2, 4)]),
            },
            f"2 domains of {RACK}",
            id="required",
        ),
    ],
)
def test_a_check_of_everything_finds_a_broken_placement(
    fields: dict[str, object], says: str
) -> None:
    tree, capacity, gang, placement = placed()
    invariants.check(tree, capacity, gang=gang, placement=placement)
    with pytest.raises(BrokenInvariant, match=says):
        invariants.check(tree, capacity, gang=gang, placement=broken(placement, **fields))


def test_a_check_of_everything_finds_slices_that_are_cut_and_nodes_that_may_not_host() -> None:
    tree, capacity = cluster(CLUSTER)
    sliced = PodSet("w", 4, (1,), shape="large", slices=(Slice(2, RACK),))
    gang = Gang("ns/gang", Group("root", (sliced,)))
    cut = PodSetPlacement("w", 0, domains=Pairs.of([(0, 4)]), slots=Pairs.of([(0, 3), (2, 1)]))
    placement = Placement("ns/gang", tree.generation, (cut,))
    with pytest.raises(BrokenInvariant, match="slices of 2 are cut"):
        invariants.check(tree, capacity, gang=gang, placement=placement)
    masks = {"large": np.array([False, True, True, True])}
    with pytest.raises(BrokenInvariant, match="n1 may not host w"):
        invariants.check(tree, capacity, gang=gang, placement=placement, masks=masks)


@pytest.mark.parametrize(
    ("breakage", "says"),
    [
        pytest.param(
            lambda tree: {"nodes": ("n1", "n1", "n3", "n4")}, "a name occurs twice", id="twice"
        ),
        pytest.param(
            lambda tree: {"slot_of": dict(tree.slot_of) | {"n1": 1}},
            "slot_of is not the inverse",
            id="slot_of",
        ),
    ],
)
def test_slots_are_sorted(breakage: Callable[[Tree], dict[str, object]], says: str) -> None:
    tree, _ = cluster(CLUSTER)
    with pytest.raises(BrokenInvariant, match=says):
        invariants.check_slots_are_sorted(replace(tree, **breakage(tree)))


def test_nodes_of_one_path_are_sorted_by_name() -> None:
    tree = build([RACK], {"n1": ["r1", "same"], "n2": ["r1", "same"]}, generation=1)
    invariants.check_slots_are_sorted(tree)
    with pytest.raises(BrokenInvariant, match="not sorted by path, then name"):
        invariants.check_slots_are_sorted(
            replace(tree, nodes=("n2", "n1"), slot_of={"n2": 0, "n1": 1})
        )


def test_slots_are_sorted_by_path_before_name() -> None:
    tree, _ = cluster("b1/r1/n2\nb1/r2/n1")
    invariants.check_slots_are_sorted(tree)
    names = (tree.names[0], ("r2", "r1"), tree.names[2])
    with pytest.raises(BrokenInvariant, match="sorted"):
        invariants.check_slots_are_sorted(replace(tree, names=names))


@pytest.mark.parametrize(
    ("racks", "says"),
    [
        pytest.param(rows(0, 2, 2), "a domain has no slot", id="empty_domain"),
        pytest.param(rows(0, 3, 2), "a domain has no slot", id="a_domain_before_the_last_one"),
        pytest.param(rows(1, 2, 3), "starts at slot 1, not 0", id="not_from_the_first_slot"),
        pytest.param(rows(0, 2, 4), "a domain has no slot", id="beyond_the_last_slot"),
        pytest.param(rows(0, 2), "names and starts differ", id="a_domain_without_a_range"),
        pytest.param(rows(0, 1, 3), "ends are not the next starts", id="another_end"),
    ],
)
def test_starts_increase(racks: np.ndarray, says: str) -> None:
    tree, _ = cluster(CLUSTER)
    invariants.check_starts_increase(tree)
    with pytest.raises(BrokenInvariant, match=f"^level 1: {says}$"):
        invariants.check_starts_increase(
            replace(tree, starts=(tree.starts[0], racks, tree.starts[2]))
        )


def test_a_tree_of_nodes_has_domains_and_one_of_none_has_not() -> None:
    tree, _ = cluster(CLUSTER)
    without = {"starts": (rows(), *tree.starts[1:]), "names": ((), *tree.names[1:])}
    with pytest.raises(BrokenInvariant, match="level 0: no domain for the nodes"):
        invariants.check_starts_increase(replace(tree, **without))
    empty, capacity = cluster("")
    invariants.check(empty, capacity, bound=[], reserved=[])
    with pytest.raises(BrokenInvariant, match="level 0: no domain for the nodes"):
        invariants.check_starts_increase(replace(tree, nodes=(), slot_of={}))


def test_ends_are_the_next_starts() -> None:
    tree, _ = cluster(CLUSTER)
    with pytest.raises(BrokenInvariant, match="level 1: ends are not the next starts"):
        invariants.check_starts_increase(
            replace(tree, ends=(tree.ends[0], rows(2, 3, 3), tree.ends[2]))
        )


@pytest.mark.parametrize(
    ("breakage", "says"),
    [
        pytest.param(
            {
                "starts": (rows(0, 3), rows(0, 2), rows(0, 1, 2, 3)),
                "domain_of": (rows(0, 0, 0, 1), rows(0, 0, 1, 1), rows(0, 1, 2, 3)),
            },
            "level 1: a domain crosses its parent",
            id="crosses_parent",
        ),
        pytest.param(
            {"parents": (rows(0, 0), rows(0, 1, 1), rows(0, 0, 1, 2))},
            "level 1: parents are wrong",
            id="parents",
        ),
        pytest.param(
            {"parents": (rows(0, 0), rows(0, 0, 1), rows(0, 0, 1, 1))},
            "level 2: parents are wrong",
            id="parents_of_nodes",
        ),
        pytest.param(
            {"parents": (rows(0, 1), rows(0, 0, 1), rows(0, 0, 1, 2))},
            "level 0: a domain has a parent",
            id="root_parent",
        ),
        pytest.param(
            {"domain_of": (rows(0, 0, 1, 1), rows(0, 0, 1, 2), rows(0, 1, 2, 3))},
            "level 0: domain_of is wrong",
            id="domain_of",
        ),
    ],
)
def test_levels_nest(breakage: dict[str, object], says: str) -> None:
    tree, _ = cluster(CLUSTER)
    invariants.check_levels_nest(tree)
    with pytest.raises(BrokenInvariant, match=f"^{says}$"):
        invariants.check_levels_nest(replace(tree, **breakage))


def older(capacity: Capacity) -> None:
    capacity.generation = 0


def narrower(capacity: Capacity) -> None:
    capacity.used = capacity.used[:, :-1].copy()


def node_major(capacity: Capacity) -> None:
    capacity.held = np.asfortranarray(capacity.held)


def fractional(capacity: Capacity) -> None:
    capacity.allocatable = capacity.allocatable.astype(np.float64)  # type: ignore[assignment]


def narrower_sums(capacity: Capacity) -> None:
    capacity.free_by_domain[1] = capacity.free_by_domain[1][:, :-1].copy()


def fewer_claims(capacity: Capacity) -> None:
    capacity.is_open = capacity.is_open[:-1].copy()


def fewer_names(capacity: Capacity) -> None:
    capacity.axis = ResourceAxis()


def of_an_older_tree(capacity: Capacity) -> None:
    capacity.tree = replace(capacity.tree, generation=0)


@pytest.mark.parametrize(
    ("breakage", "says"),
    [
        pytest.param(older, "capacity of generation 0, tree of generation 1", id="older"),
        pytest.param(of_an_older_tree, "of generation", id="of_an_older_tree"),
        pytest.param(narrower, "used: shape", id="narrower"),
        pytest.param(narrower_sums, "free_by_domain of level 1: shape", id="narrower_sums"),
        pytest.param(node_major, "held: not in C order", id="node_major"),
        pytest.param(fractional, "allocatable: dtype float64", id="fractional"),
        pytest.param(fewer_claims, "is_open: not one claim per node", id="fewer_claims"),
        pytest.param(fewer_names, "3 rows for 2 resources", id="fewer_names"),
    ],
)
def test_shapes_agree(breakage: Callable[[Capacity], None], says: str) -> None:
    tree, capacity = cluster(CLUSTER)
    invariants.check_shapes_agree(tree, capacity)
    breakage(capacity)
    with pytest.raises(BrokenInvariant, match=says):
        invariants.check_shapes_agree(tree, capacity)


def test_resources_that_no_node_has_offered_yet_need_no_row() -> None:
    tree, capacity = cluster(CLUSTER)
    capacity.axis.row("rdma/hca")
    invariants.check_shapes_agree(tree, capacity)


def test_sums_fit_an_int64() -> None:
    _, capacity = cluster(CLUSTER)
    invariants.check_sums_fit_an_int64(capacity)
    capacity.free_by_domain[-1][1, 0] = (2**63 - 1) // 4
    invariants.check_sums_fit_an_int64(capacity)
    capacity.free_by_domain[-1][1, 0] += 1
    with pytest.raises(BrokenInvariant, match=f"counts for {2**61}, the sum may reach {2**63}"):
        invariants.check_sums_fit_an_int64(capacity)


def test_a_sum_that_just_fits_an_int64_is_kept() -> None:
    _, capacity = cluster("r1/n1 gpu=8")
    capacity.free_by_domain[-1][1, 0] = 2**63 - 1
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


def test_a_request_of_its_table_may_have_fewer_rows_than_the_books_or_more() -> None:
    _, capacity = cluster(CLUSTER)
    capacity.use(1, (1,))
    for request in ((1,), (1, 0, 0, 0)):
        invariants.check_books_equal_their_table(capacity, "used", [(1, request)])


def test_free_is_current() -> None:
    _, capacity = cluster(CLUSTER)
    invariants.check_free_is_current(capacity)
    capacity.free_now[0, 2] -= 1
    with pytest.raises(BrokenInvariant, match="free_now: node n3 is out of date"):
        invariants.check_free_is_current(capacity)


def test_free_by_domain_is_current() -> None:
    _, capacity = cluster(CLUSTER)
    invariants.check_free_by_domain_is_current(capacity)
    capacity.held[0, 2] += 1
    with pytest.raises(BrokenInvariant, match="free_by_domain: level 0, b1 is out of date"):
        invariants.check_free_by_domain_is_current(capacity)


def test_every_level_has_the_same_total() -> None:
    _, capacity = cluster(CLUSTER)
    invariants.check_every_level_has_the_same_total(capacity)
    capacity.free_by_domain[0][2, 1] += 1
    with pytest.raises(BrokenInvariant, match="level 0"):
        invariants.check_every_level_has_the_same_total(capacity)


@pytest.mark.parametrize(
    ("breakage", "says"),
    [
        pytest.param(
            {"slots": Pairs.of([(0, 8), (1, 3)])},
            r"pod set \['w'\]: fewer placed than are needed",
            id="a_pod_is_missing",
        ),
        pytest.param({"slots": Pairs.of([(0, 8), (1, 5)])}, "13 of 12 placed", id="a_pod_too_many"),
        pytest.param(
            {"slots": Pairs.of([(0, 12), (1, 0)])}, "a place for no pods", id="a_slot_for_no_pods"
        ),
        pytest.param(
            {"slots": Pairs.of([(1, 4), (0, 8)])}, "not in order", id="slots_out_of_order"
        ),
        pytest.param({"slots": Pairs.of([(0, 8), (0, 4)])}, "named twice", id="a_slot_twice"),
        pytest.param({"domains": Pairs.of([(0, 8), (0, 4)])}, "named twice", id="a_domain_twice"),
        pytest.param(
            {"domains": Pairs.of([(1, 12)])}, "domains disagree with slots", id="another_domain"
        ),
        pytest.param(
            {"domains": Pairs.of([(0, 11)])}, "domains disagree with slots", id="fewer_in_a_domain"
        ),
        pytest.param({"pod_set": "other"}, "placement of other pod sets", id="another_pod_set"),
    ],
)
def test_placement_is_whole(breakage: dict[str, object], says: str) -> None:
    tree, _, gang, placement = placed()
    invariants.check_placement_is_whole(tree, gang, placement)
    with pytest.raises(BrokenInvariant, match=says):
        invariants.check_placement_is_whole(tree, gang, broken(placement, **breakage))


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        pytest.param({"gang": "ns/other"}, "placement of ns/other for gang ns/gang", id="gang"),
        pytest.param({"generation": 0}, "of another generation", id="generation"),
    ],
)
def test_placement_belongs_to_its_gang_and_tree(fields: dict[str, object], says: str) -> None:
    tree, _, gang, placement = placed()
    with pytest.raises(BrokenInvariant, match=says):
        invariants.check_placement_is_whole(tree, gang, replace(placement, **fields))


@pytest.mark.parametrize(
    ("needed", "inner_needed", "pods", "is_whole"),
    [
        pytest.param(None, None, (2, 2, 2), True, id="all_of_all"),
        pytest.param(None, None, (2, 2, 1), False, id="a_pod_of_a_member_is_missing"),
        pytest.param(1, None, (2, 0, 0), True, id="one_member_is_enough"),
        pytest.param(1, None, (1, 2, 0), False, id="no_member_is_whole"),
        pytest.param(None, 1, (2, 2, 0), True, id="one_inner_member_is_enough"),
        pytest.param(None, 1, (2, 1, 1), False, id="no_inner_member_is_whole"),
        pytest.param(0, None, (0, 0, 1), True, id="none_is_needed"),
    ],
)
def test_as_many_members_are_placed_as_are_needed(
    needed: int | None, inner_needed: int | None, pods: tuple[int, ...], is_whole: bool
) -> None:
    tree, _ = cluster(CLUSTER)
    one, two, three = (PodSet(name, 2, (1,)) for name in ("one", "two", "three"))
    inner = Group("inner", (two, three), needed=inner_needed)
    gang = Gang("ns/gang", Group("root", (one, inner), needed=needed))
    places = [Pairs.of([(0, number)] if number else []) for number in pods]
    placement = Placement(
        "ns/gang",
        tree.generation,
        tuple(
            PodSetPlacement(name, tree.node_level, domains=place, slots=place)
            for name, place in zip(gang.names(), places, strict=True)
        ),
    )
    if is_whole:
        invariants.check_placement_is_whole(tree, gang, placement)
    else:
        with pytest.raises(BrokenInvariant, match="fewer placed than are needed"):
            invariants.check_placement_is_whole(tree, gang, placement)


def test_as_many_pods_are_placed_as_are_needed_of_a_pod_set() -> None:
    tree, _, gang, placement = placed(pods=12)
    (pod_set,) = gang.pod_sets()
    for needed, is_whole in ((0, True), (10, True), (11, False)):
        least = replace(gang, root=Group("root", (replace(pod_set, needed=needed),)))
        ten = broken(placement, domains=Pairs.of([(0, 10)]), slots=Pairs.of([(0, 8), (1, 2)]))
        if is_whole:
            invariants.check_placement_is_whole(tree, least, ten)
        else:
            with pytest.raises(BrokenInvariant, match="fewer placed than are needed"):
                invariants.check_placement_is_whole(tree, least, ten)


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
