"""Groups inside groups: which domain each takes, and what happens when one finds none."""

from __future__ import annotations

import gc
from dataclasses import replace

import pytest

from tests.text import BLOCK, GPU, RACK, cluster, pods_per_node, vector
from topology import (
    Capacity,
    Constraint,
    DomainOrder,
    Gang,
    Group,
    InvalidRequest,
    Leader,
    NoFit,
    Options,
    Placement,
    PodSet,
    Slice,
    Strategy,
    Tree,
    complete,
    find,
    invariants,
)

IN_RACK, IN_BLOCK = Constraint(required=RACK), Constraint(required=BLOCK)
NEAR_RACK = Constraint(preferred=RACK)
TWO_BLOCKS = """
    b1/r1/n1 gpu=4
    b1/r1/n2 gpu=4
    b1/r2/n3 gpu=4
    b2/r3/n4 gpu=8
    b2/r3/n5 gpu=8
    b2/r4/n6 gpu=8
    b2/r4/n7 gpu=8
"""


def pods(
    capacity: Capacity,
    name: str,
    number: int,
    gpu: int = 1,
    constraint: Constraint | None = None,
    needed: int | None = None,
) -> PodSet:
    request = vector(capacity.axis, pods=1, gpu=gpu)
    return PodSet(name, number, request, "", constraint or Constraint(), needed)


def search(
    tree: Tree, capacity: Capacity, root: Group, options: Options | None = None
) -> dict[str, dict[str, int]] | NoFit:
    """Pods on each node, per pod set."""
    gang = Gang("ns/gang", root)
    answer = find(tree, capacity, gang, {}, options or Options())
    if isinstance(answer, NoFit):
        return answer
    assert isinstance(answer, Placement)
    invariants.check(tree, capacity, gang=gang, placement=answer)
    return pods_per_node(tree, answer)


def test_members_lie_in_the_domain_of_their_group_and_in_their_own() -> None:
    tree, capacity = cluster(TWO_BLOCKS)
    replicas = tuple(
        Group(
            f"replica{index}",
            (pods(capacity, f"lead{index}", 2), pods(capacity, f"work{index}", 5, gpu=2)),
            IN_RACK,
        )
        for index in range(2)
    )
    placed = search(tree, capacity, Group("root", replicas, IN_BLOCK))
    assert isinstance(placed, dict)
    racks = [{*placed[f"lead{index}"], *placed[f"work{index}"]} for index in range(2)]
    assert racks == [{"n4", "n5"}, {"n6", "n7"}]


def test_the_next_domain_is_tried_when_a_member_finds_no_place_in_the_tightest() -> None:
    tree, capacity = cluster(TWO_BLOCKS)
    group = Group("g", (pods(capacity, "small", 2), pods(capacity, "large", 1, gpu=6)), IN_BLOCK)
    placed = search(tree, capacity, Group("root", (group, pods(capacity, "other", 3, 1, IN_RACK))))
    assert isinstance(placed, dict)
    assert set(placed["large"]) < {"n4", "n5", "n6", "n7"}
    assert set(placed["small"]) < {"n4", "n5", "n6", "n7"}


@pytest.mark.parametrize("is_kept", [False, True])
@pytest.mark.parametrize("needed", [None, 3])
def test_a_search_that_is_over_looks_at_nothing_more(needed: int | None, is_kept: bool) -> None:
    """What it left behind is found by the garbage collector in the middle of another search."""
    tree, capacity = cluster(TWO_BLOCKS)
    replicas = tuple(
        Group(f"r{at}", (pods(capacity, f"w{at}", 4, needed=needed),), IN_RACK) for at in range(2)
    )
    gang, options = Gang("ns/gang", Group("root", replicas, IN_BLOCK)), Options()
    kept = {"w0": [(tree.slot_of["n4"], 2)]} if is_kept else {}
    gc.collect()
    gc.disable()
    try:
        answer = complete(tree, capacity, gang, {}, kept, options)
        before = options.visits.total
        gc.collect()
    finally:
        gc.enable()
    assert isinstance(answer, Placement)
    assert before > 0
    assert options.visits.total == before


def test_a_preferred_level_is_widened_one_level_at_a_time() -> None:
    tree, capacity = cluster(TWO_BLOCKS)

    def blocks(number: int, constraint: Constraint) -> set[int] | NoFit:
        group = Group("g", (pods(capacity, "a", 2), pods(capacity, "b", number)), constraint)
        placed = search(tree, capacity, Group("root", (Group("around", (group,)),)))
        if isinstance(placed, NoFit):
            return placed
        level = tree.levels.index(BLOCK)
        return {int(tree.domain_of[level][tree.slot_of[node]]) for node in placed["b"]}

    assert blocks(6, NEAR_RACK) == {0}
    assert blocks(9, NEAR_RACK) == {1}  # one rack, in the other block
    assert blocks(30, NEAR_RACK) == {1}  # one block, several racks
    assert blocks(40, NEAR_RACK) == {0, 1}
    refused = blocks(40, Constraint(required=BLOCK, preferred=RACK))
    assert isinstance(refused, NoFit)
    assert (refused.level, refused.needed, refused.available) == (BLOCK, 42, 32)
    assert refused.is_proven


def test_a_member_makes_room_for_a_later_one_that_would_find_none() -> None:
    tree, capacity = cluster("b1/r1/n1 gpu=4\nb1/r2/n2 gpu=4\nb1/r2/n3 gpu=1")
    first = Group("first", (pods(capacity, "a", 2), pods(capacity, "b", 2)), IN_RACK)
    second = Group("second", (pods(capacity, "c", 1), pods(capacity, "d", 1, gpu=4)), IN_RACK)
    placed = search(tree, capacity, Group("root", (first, second), IN_BLOCK))
    assert placed == {"a": {"n1": 2}, "b": {"n1": 2}, "c": {"n3": 1}, "d": {"n2": 1}}


def test_many_pods_without_a_level_make_room_in_a_rack_for_a_later_member() -> None:
    tree, capacity = cluster("b1/r1/n1 gpu=10\nb1/r1/n2 gpu=14\nb1/r2/n3 gpu=10\nb1/r2/n4 gpu=14")
    # The tightest nodes for the first 20 are n1 and n3, which leaves 14 GPUs in either rack.
    members = (pods(capacity, "anywhere", 20), pods(capacity, "together", 20, constraint=IN_RACK))
    placed = search(tree, capacity, Group("root", members))
    assert isinstance(placed, dict)
    assert {frozenset(here) for here in placed.values()} == {
        frozenset({"n1", "n2"}),
        frozenset({"n3", "n4"}),
    }


HARD = "b1/r1/n1 gpu=8\nb1/r2/n2 gpu=8"


def hard_to_place(capacity: Capacity) -> tuple[Group, ...]:
    """As 4 + 2 + 2 and 3 + 3 + 2 alone; one after the other, the last one finds no room."""
    return tuple(
        Group(f"g{at}", (pods(capacity, f"a{at}", size - 1), pods(capacity, f"b{at}", 1)), IN_RACK)
        for at, size in enumerate((4, 3, 3, 2, 2, 2))
    )


def test_without_tries_it_says_that_not_everything_was_tried() -> None:
    tree, capacity = cluster(HARD)
    groups = hard_to_place(capacity)
    assert isinstance(search(tree, capacity, Group("root", groups)), dict)
    refused = search(tree, capacity, Group("root", groups), Options(tries=2))
    assert isinstance(refused, NoFit)
    assert not refused.is_proven
    assert refused.is_cut_short
    assert "not everything was tried" in str(refused)
    proven = replace(refused, is_proven=True, is_cut_short=False)
    assert "tried" not in str(proven)


def test_that_pods_which_are_not_needed_fit_nowhere_proves_nothing() -> None:
    tree, capacity = cluster(HARD)
    useless = pods(capacity, "useless", 1, gpu=100, needed=0)
    root = Group("root", (*hard_to_place(capacity), useless))
    assert isinstance(search(tree, capacity, root), dict)
    refused = search(tree, capacity, root, Options(tries=6))
    assert isinstance(refused, NoFit)
    assert not refused.is_proven


def test_what_is_not_needed_is_placed_where_it_fits_and_left_out_else() -> None:
    tree, capacity = cluster("b1/r1/n1 gpu=4\nb1/r1/n2 gpu=2\nb1/r2/n3 gpu=1")
    elastic = pods(capacity, "elastic", 9, constraint=IN_RACK, needed=2)
    assert search(tree, capacity, Group("root", (elastic,))) == {"elastic": {"n1": 4, "n2": 2}}
    members = tuple(pods(capacity, f"m{index}", 3, constraint=IN_RACK) for index in range(3))
    placed = search(tree, capacity, Group("root", members, needed=2))
    assert isinstance(placed, dict)
    assert [sum(nodes.values()) for nodes in placed.values()] == [3, 3, 0]
    refused = search(tree, capacity, Group("root", members, needed=3))
    assert isinstance(refused, NoFit)
    assert refused.is_proven


def test_pods_that_are_not_needed_stay_in_the_required_domain_of_the_others() -> None:
    tree, capacity = cluster("b1/r1/n1 gpu=3\nb1/r2/n2 gpu=8")
    both = tuple(
        pods(capacity, name, 6, constraint=IN_RACK, needed=needed)
        for name, needed in (("a", 2), ("b", 6))
    )
    for options in (Options(), Options(floor_first=True)):
        placed = search(tree, capacity, Group("root", both), options)
        assert placed == {"a": {"n1": 3}, "b": {"n2": 6}}


def test_pods_of_which_none_is_needed_are_placed_where_they_fit_and_never_block() -> None:
    tree, capacity = cluster("b1/r1/n1 gpu=4\nb1/r2/n2 gpu=3")
    spare = pods(capacity, "spare", 5, needed=0)
    asked = pods(capacity, "asked", 4, constraint=IN_RACK)
    for root in (Group("root", (spare, asked)), Group("root", (asked, spare), needed=1)):
        placed = search(tree, capacity, root)
        assert isinstance(placed, dict)
        assert (placed["asked"], placed["spare"]) == ({"n1": 4}, {"n2": 3})
    full = pods(capacity, "asked", 7)
    placed = search(tree, capacity, Group("root", (spare, full)))
    assert placed == {"spare": {}, "asked": {"n1": 4, "n2": 3}}


def test_members_without_a_place_come_before_more_pods_of_those_that_have_one() -> None:
    tree, capacity = cluster("b1/r1/n1 gpu=4")
    members = tuple(pods(capacity, name, 3, needed=2) for name in "ab")
    root = Group("root", tuple(Group(each.name, (each,)) for each in members), needed=1)
    assert search(tree, capacity, root) == {"a": {"n1": 2}, "b": {"n1": 2}}


def test_every_member_has_the_least_of_it_before_any_has_more() -> None:
    tree, capacity = cluster("b1/r1/n1 gpu=8")
    names = [f"{group}{at}" for group in "ab" for at in range(2)]
    each = {name: Group(name, (pods(capacity, name, 3, needed=2),)) for name in names}
    around = tuple(Group(at, (each[f"{at}0"], each[f"{at}1"]), needed=1) for at in "ab")
    for root in (Group("root", around, needed=1), Group("root", around, needed=0)):
        placed = search(tree, capacity, root)
        assert placed == {name: {"n1": 2} for name in names}


def test_what_is_not_needed_comes_in_turn_whichever_group_it_is_in() -> None:
    def turns(*numbers: int) -> tuple[Group, ...]:
        each = (replace(pods(capacity, f"t{at}", 2, needed=1), turn=at) for at in numbers)
        return tuple(Group(one.name, (one,)) for one in each)

    for room, placed in ((3, [1, 1, 1, 0, 0, 0]), (7, [2, 1, 1, 1, 1, 1]), (8, [2, 2, 1, 1, 1, 1])):
        tree, capacity = cluster(f"b1/r1/n1 gpu={room}")
        # `a` is asked for and has a later member; of `b` and `c` nothing is needed.
        a, b = Group("a", turns(0, 3), needed=1), Group("b", turns(4, 1), needed=0)
        c = Group("c", turns(2, 5), constraint=IN_RACK, needed=0)
        found = search(tree, capacity, Group("root", (a, b, c), needed=1))
        assert isinstance(found, dict)
        assert [sum(found[f"t{at}"].values()) for at in range(6)] == placed


def test_a_group_whose_least_fits_nowhere_leaves_its_room_to_those_after_it() -> None:
    tree, capacity = cluster("b1/r1/n1 gpu=4")
    asked, too_large, last = (
        Group(name, (pods(capacity, name, number, needed=needed),))
        for name, number, needed in (("asked", 2, 1), ("large", 4, 4), ("last", 3, 2))
    )
    placed = search(tree, capacity, Group("root", (asked, too_large, last), needed=1))
    assert placed == {"asked": {"n1": 2}, "large": {}, "last": {"n1": 2}}


def test_with_the_floor_first_pods_that_are_not_needed_go_where_the_least_of_them_fits() -> None:
    tree, capacity = cluster("b1/r1/n1 gpu=1\nb1/r2/n2 gpu=4\nb1/r3/n3 gpu=2")
    spare = pods(capacity, "spare", 3, constraint=IN_RACK, needed=0)
    asked = pods(capacity, "asked", 2, constraint=IN_RACK)
    root = Group("root", (spare, asked))
    placed = search(tree, capacity, root, Options(floor_first=True))
    assert placed == {"spare": {"n1": 1}, "asked": {"n3": 2}}
    assert search(tree, capacity, root) == {"spare": {"n2": 3}, "asked": {"n3": 2}}


def test_a_group_of_which_nothing_is_needed_goes_where_all_of_it_fits() -> None:
    tree, capacity = cluster("b1/r1/n1 gpu=1\nb1/r2/n2 gpu=4\nb1/r3/n3 gpu=2")
    both = (pods(capacity, "a", 2), pods(capacity, "b", 2))
    optional = Group("optional", both, IN_RACK, needed=0)
    asked = pods(capacity, "asked", 2, constraint=IN_RACK)
    placed = search(tree, capacity, Group("root", (optional, asked)))
    assert placed == {"a": {"n2": 2}, "b": {"n2": 2}, "asked": {"n3": 2}}
    # Also where something else that is not needed fits only in part.
    tree, capacity = cluster("b1/r1/n1 gpu=2\nb1/r2/n2 gpu=4\nb1/r3/n3 gpu=1")
    never = pods(capacity, "never", 9, constraint=IN_RACK, needed=0)
    asked = pods(capacity, "asked", 1, constraint=IN_RACK)
    placed = search(tree, capacity, Group("root", (optional, never, asked)))
    assert placed == {"a": {"n2": 2}, "b": {"n2": 2}, "never": {"n1": 2}, "asked": {"n3": 1}}


def test_a_group_beyond_those_that_are_needed_goes_where_all_of_it_fits() -> None:
    tree, capacity = cluster("b1/r1/n1 gpu=2\nb1/r2/n2 gpu=4\nb1/r3/n3 gpu=2")
    both = (pods(capacity, "a", 2), pods(capacity, "b", 2, needed=0))
    asked = pods(capacity, "asked", 2, constraint=IN_RACK)
    never = pods(capacity, "never", 9, constraint=IN_RACK)
    root = Group("root", (asked, Group("beyond", both, IN_RACK), never), needed=1)
    placed = search(tree, capacity, root)
    assert placed == {"asked": {"n1": 2}, "a": {"n2": 2}, "b": {"n2": 2}, "never": {}}


def test_of_a_group_of_which_nothing_is_needed_a_part_is_placed_where_not_all_fits() -> None:
    tree, capacity = cluster("b1/r1/n1 gpu=1\nb1/r2/n2 gpu=4\nb1/r3/n3 gpu=2")
    both = (pods(capacity, "a", 2), pods(capacity, "b", 2))
    optional = Group("optional", both, IN_RACK, needed=0)
    asked = pods(capacity, "asked", 4, constraint=IN_RACK)
    placed = search(tree, capacity, Group("root", (optional, asked)))
    assert placed == {"a": {"n3": 2}, "b": {}, "asked": {"n2": 4}}


@pytest.mark.parametrize("text", ["", "b1/r1/n1 gpu=0 closed"])
def test_a_gang_of_which_nothing_is_needed_has_a_place_even_without_nodes(text: str) -> None:
    tree, capacity = cluster(text)
    nothing = Group("root", (pods(capacity, "a", 3, constraint=IN_RACK),), IN_BLOCK, needed=0)
    assert search(tree, capacity, nothing) == {"a": {}}


def test_leaders_and_slices_keep_their_rules_inside_groups() -> None:
    tree, capacity = cluster(TWO_BLOCKS)
    led = replace(
        pods(capacity, "workers", 8, gpu=2),
        slices=(Slice(4, RACK),),
        leader=Leader("leader", vector(capacity.axis, pods=1, gpu=1)),
    )
    inner = Group("inner", (led, pods(capacity, "beside", 2)), IN_BLOCK)
    placed = search(tree, capacity, Group("root", (inner,), IN_BLOCK))
    assert isinstance(placed, dict)
    assert sum(placed["workers"].values()) == 8
    assert set(placed["leader"]) < {"n4", "n5", "n6", "n7"}


@pytest.mark.parametrize(
    ("order", "node"),
    [
        pytest.param(DomainOrder.TIGHTEST, {"n1"}, id="tightest_of_all_racks"),
        pytest.param(DomainOrder.TOPMOST, {"n4", "n5"}, id="in_the_tightest_block"),
        pytest.param(DomainOrder.MOST_USED, {"n3"}, id="most_used_rack"),
    ],
)
def test_the_order_of_domains_is_a_named_choice(order: DomainOrder, node: set[str]) -> None:
    tree, capacity = cluster(
        """
        b1/r1/n1 gpu=3
        b1/r2/n2 gpu=5
        b1/r3/n3 gpu=5/9
        b2/r4/n4 gpu=2
        b2/r4/n5 gpu=2
        """
    )
    one = Group("g", (pods(capacity, "a", 1, constraint=IN_RACK),))
    placed = search(tree, capacity, Group("root", (Group("h", (one,)),)), Options(order=order))
    assert isinstance(placed, dict)
    assert set(placed["a"]) <= node


@pytest.mark.parametrize("order", DomainOrder)
def test_pods_that_fit_no_domain_they_prefer_fill_the_roomiest_in_any_order(
    order: DomainOrder,
) -> None:
    tree, capacity = cluster("b1/r1/n1 gpu=3\nb1/r2/n2 gpu=5\nb1/r3/n3 gpu=8")
    near = Group("root", (pods(capacity, "a", 12, constraint=NEAR_RACK),))
    assert search(tree, capacity, near, Options(order=order)) == {"a": {"n2": 4, "n3": 8}}


@pytest.mark.parametrize(
    ("order", "placed"),
    [
        pytest.param(DomainOrder.TIGHTEST, {"n1": 1, "n3": 5}, id="roomiest_first_as_kueue"),
        pytest.param(DomainOrder.TOPMOST, {"n1": 2, "n2": 3, "n3": 1}, id="smallest_holes_first"),
        pytest.param(DomainOrder.MOST_USED, {"n1": 2, "n2": 3, "n3": 1}, id="most_used_rack"),
    ],
)
def test_inside_the_domain_of_a_walk_nodes_are_filled_as_without_a_level(
    order: DomainOrder, placed: dict[str, int]
) -> None:
    tree, capacity = cluster("b1/r1/n1 gpu=2\nb1/r1/n2 gpu=3\nb1/r1/n3 gpu=5")
    together = Group("root", (pods(capacity, "a", 6, constraint=IN_RACK),))
    found = search(tree, capacity, together, Options(order=order))
    assert found == {"a": placed}
    as_told = Options(order=order, unconstrained=Strategy.BEST_FIT)
    assert search(tree, capacity, together, as_told) == {"a": {"n1": 1, "n3": 5}}


def test_pod_slots_and_what_is_not_requested_are_nothing_a_rack_is_used_of() -> None:
    tree, capacity = cluster(
        """
        b1/r1/n1 gpu=8 cpu=64/64 pods=90/100
        b1/r2/n2 gpu=2/8 cpu=64 pods=100
        """
    )
    one = Group("g", (pods(capacity, "a", 1, constraint=IN_RACK),))
    options = Options(order=DomainOrder.MOST_USED)
    assert search(tree, capacity, Group("root", (one,)), options) == {"a": {"n2": 1}}


def test_the_most_used_rack_is_so_by_the_mean_of_what_the_gang_requests() -> None:
    tree, capacity = cluster(
        """
        b1/r1/n1 gpu=3/8 cpu=0/8
        b1/r2/n2 gpu=2/8 cpu=4/8
        """
    )
    request = vector(capacity.axis, pods=1, gpu=1, cpu=1)
    one = Group("g", (PodSet("a", 1, request, constraint=IN_RACK),))
    options = Options(order=DomainOrder.MOST_USED)
    assert search(tree, capacity, Group("root", (one,)), options) == {"a": {"n2": 1}}


@pytest.mark.parametrize(
    ("weights", "rack"),
    [
        pytest.param({"gpu": 1, "cpu": 1}, "n2", id="alike"),
        pytest.param({"gpu": 3, "cpu": 1}, "n1", id="gpus_weigh_more"),
        pytest.param({"gpu": 1}, "n1", id="gpus_alone"),
        pytest.param({"gpu": 1, "cpu": 0}, "n1", id="cpu_weighs_nothing"),
        pytest.param({"gpu": 1, "memory": 9}, "n1", id="memory_is_not_requested"),
        pytest.param({"pods": 1}, "n2", id="pod_slots_if_they_are_named"),
        pytest.param({}, "n1", id="nothing_counts_and_the_first_is_taken"),
    ],
)
def test_the_most_used_rack_is_so_by_the_weights_of_resources(
    weights: dict[str, int], rack: str
) -> None:
    tree, capacity = cluster(
        """
        b1/r1/n1 gpu=4/8 cpu=0/8 pods=0/10 memory=0/8
        b1/r2/n2 gpu=2/8 cpu=5/8 pods=1/10 memory=8/8
        """
    )
    request = vector(capacity.axis, pods=1, gpu=1, cpu=1)
    one = Group("g", (PodSet("a", 1, request, constraint=IN_RACK),))
    named = {GPU if name == "gpu" else name: weight for name, weight in weights.items()}
    rows = {capacity.axis.row(name): weight for name, weight in named.items()}
    options = Options(order=DomainOrder.MOST_USED, weights=rows)
    assert search(tree, capacity, Group("root", (one,)), options) == {"a": {rack: 1}}


@pytest.mark.parametrize("order", DomainOrder)
def test_what_no_node_ever_had_has_no_place_in_any_order(order: DomainOrder) -> None:
    tree, capacity = cluster("b1/r1/n1 gpu=8\nb1/r2/n2 gpu=8")
    request = (*vector(capacity.axis, pods=1, gpu=1), 1)
    odd = PodSet("a", 1, request, constraint=IN_RACK, lacking="example.com/odd")
    answer = search(tree, capacity, Group("root", (odd,)), Options(order=order))
    assert isinstance(answer, NoFit)
    assert (answer.available, answer.excluded) == (0, (("insufficient example.com/odd", 2),))
    some = replace(odd, needed=0)
    assert search(tree, capacity, Group("root", (some,)), Options(order=order)) == {"a": {}}


@pytest.mark.parametrize(
    ("in_use", "closed", "rack"),
    [
        pytest.param(2, 8, "n3", id="what_runs_on_a_closed_node_is_not_in_use"),
        pytest.param(4, 0, "n1", id="what_a_closed_node_offers_is_not_free"),
    ],
)
def test_the_most_used_rack_is_so_by_its_open_nodes(in_use: int, closed: int, rack: str) -> None:
    """Of 8 GPUs on each node; on the only node of r2, 3 are in use."""
    tree, capacity = cluster(
        f"""
        b1/r1/n1 gpu={in_use}/8
        b1/r1/n2 gpu={closed}/8 closed
        b1/r2/n3 gpu=3/8
        """
    )
    one = Group("g", (pods(capacity, "a", 1, constraint=IN_RACK),))
    options = Options(order=DomainOrder.MOST_USED)
    assert search(tree, capacity, Group("root", (Group("h", (one,)),)), options) == {"a": {rack: 1}}


def test_thousands_of_members_are_no_deep_recursion() -> None:
    lines = "\n".join(f"b{node // 20}/r{node // 4}/n{node:03} gpu=40" for node in range(40))
    tree, capacity = cluster(lines)
    members = tuple(pods(capacity, f"m{index}", 1) for index in range(1500))
    placed = search(
        tree, capacity, Group("root", (Group("g", members),), Constraint(preferred=RACK))
    )
    assert isinstance(placed, dict)
    assert len(placed) == 1500


def test_what_cannot_be_meant_is_refused_by_name() -> None:
    tree, capacity = cluster(TWO_BLOCKS)
    two = (pods(capacity, "a", 2), pods(capacity, "b", 2))
    deep = Group("g", two)
    for _ in range(20):
        deep = Group("g", (deep,))
    for root, sentence in (
        (Group("g", two, Constraint(required="row")), "group g, required: level row is unknown"),
        (Group("g", two, Constraint(RACK, BLOCK)), "group g: preferred level .* is wider"),
        (Group("g", two, Constraint(preferred=RACK, balanced=True)), "group g: balanced"),
        (deep, "group g: more than 16 groups"),
    ):
        with pytest.raises(InvalidRequest, match=sentence):
            search(tree, capacity, Group("root", (root,)))


@pytest.mark.parametrize("is_nested", [False, True])
def test_shapes_that_only_fit_together_in_one_way_are_packed(is_nested: bool) -> None:
    lines = "\n".join(f"b1/r1/n{node:02} gpu=8" for node in range(20))
    tree, capacity = cluster(lines)
    both = (pods(capacity, "three", 20, gpu=3), pods(capacity, "five", 20, gpu=5))
    member = Group("g", both, IN_RACK if is_nested else Constraint())
    placed = search(tree, capacity, Group("root", (member,)))
    assert isinstance(placed, dict)
    assert set(placed["three"].values()) == set(placed["five"].values()) == {1}
    more = (*both, pods(capacity, "four", 1, gpu=4))
    refused = search(tree, capacity, Group("root", (replace(member, members=more),)))
    assert isinstance(refused, NoFit)
    assert refused.is_proven
