"""A domain as a cluster of its own: the same nodes, the same books, other indices."""

from __future__ import annotations

import random

import numpy as np
import pytest

from tests.text import BLOCK, RACK, cluster, vector
from tests.topology.random_clusters import random_cluster
from topology import Options, Pairs, PodSetPlacement, invariants
from topology.fit.view import View
from topology.nested.estimates.headroom import Headroom
from topology.nested.subtree import Subtree, cut, domains_in, subtree_of, whole

TWO_BLOCKS = """
    b1/r1/n1 gpu=1
    b1/r1/n2 gpu=2
    b1/r2/n3 gpu=3
    b2/r1/n4 gpu=4
    b2/r1/n5 gpu=5 closed
"""


def test_a_subtree_has_the_slots_of_its_domain() -> None:
    tree, _ = cluster(TWO_BLOCKS)
    assert whole(tree) == Subtree(-1, 0, (0, 5))
    assert subtree_of(tree, 0, 1) == Subtree(0, 1, (3, 5))
    assert subtree_of(tree, 1, 1) == Subtree(1, 1, (2, 3))


@pytest.mark.parametrize(
    ("level", "domain", "expected"),
    [
        pytest.param(0, 0, [(0, 1), (0, 2), (0, 3)], id="first_block"),
        pytest.param(0, 1, [(1, 2), (2, 3), (3, 5)], id="last_block"),
        pytest.param(1, 1, [(0, 1), (1, 2), (2, 3)], id="a_rack_and_what_is_around"),
        pytest.param(2, 4, [(1, 2), (2, 3), (4, 5)], id="the_last_node"),
    ],
)
def test_domains_in_a_subtree_or_around_it(
    level: int, domain: int, expected: list[tuple[int, int]]
) -> None:
    tree, _ = cluster(TWO_BLOCKS)
    subtree = subtree_of(tree, level, domain)
    assert [domains_in(tree, subtree, each) for each in range(3)] == expected


def test_no_domains_are_in_a_tree_without_nodes() -> None:
    tree, _ = cluster("")
    assert domains_in(tree, whole(tree), 1) == (0, 0)


def test_a_cut_is_a_tree_of_the_nodes_inside_with_the_same_books() -> None:
    tree, capacity = cluster(TWO_BLOCKS)
    scores, mask = np.arange(5), np.array([True, False, True, False, True])
    options = Options(scores={"s": scores}, reasons={"s": ["", "a", "", "b", ""]})
    view = View(tree, capacity, {"s": mask}, options)
    for level, names in enumerate(tree.names):
        for domain in range(len(names)):
            subtree = subtree_of(tree, level, domain)
            here = slice(*subtree.slots)
            inside = cut(view, subtree).view
            assert inside.tree.nodes == tree.nodes[here]
            assert inside.tree.levels == (BLOCK, RACK, tree.levels[2])
            assert [len(each) for each in inside.tree.names[: level + 1]] == [1] * (level + 1)
            assert inside.tree.path(level, 0) == tree.path(level, domain)
            invariants.check_slots_are_sorted(inside.tree)
            invariants.check_starts_increase(inside.tree)
            invariants.check_levels_nest(inside.tree)
            invariants.check_free_by_domain_is_current(inside.capacity)
            assert inside.capacity.free().tolist() == capacity.free()[:, here].tolist()
            assert inside.capacity.is_open.tolist() == capacity.is_open[here].tolist()
            assert inside.may_host("s").tolist() == (mask & capacity.is_open)[here].tolist()
            assert inside.options.scores["s"].tolist() == scores[here].tolist()
            assert list(inside.options.reasons["s"]) == ["", "a", "", "b", ""][here]


def test_a_place_in_a_cut_is_the_same_nodes_in_the_whole() -> None:
    tree, capacity = cluster(TWO_BLOCKS)
    view = View(tree, capacity, {}, Options())
    inside = cut(view, subtree_of(tree, 0, 1))
    placed = PodSetPlacement("w", 1, Pairs.of([(0, 3)]), Pairs.of([(0, 1), (1, 2)]))
    assert inside.widened(placed) == PodSetPlacement(
        "w", 1, Pairs.of([(2, 3)]), Pairs.of([(3, 1), (4, 2)])
    )
    everything = cut(view, whole(tree))
    assert everything.view is view
    assert everything.widened(placed) == placed


def test_what_is_assumed_around_a_cut_is_seen_inside_at_once() -> None:
    tree, capacity = cluster(TWO_BLOCKS)
    request = vector(capacity.axis, pods=1, gpu=2)
    view = View(tree, capacity, {}, Options())
    view.expect([request])
    inside = cut(view, subtree_of(tree, 0, 1)).view
    row = capacity.axis.row("nvidia.com/gpu")
    assert inside.free([row])[0].tolist() == [4, 5]
    view.assume(request, Pairs.of([(0, 1), (3, 2)]), 1)
    assert inside.free([row])[0].tolist() == [0, 5]
    view.assume(request, Pairs.of([(3, 1)]), -1)
    assert inside.free([row])[0].tolist() == [2, 5]


def test_headroom_that_is_renewed_is_what_is_counted_anew() -> None:
    chance = random.Random(3)
    for _ in range(60):
        tree, capacity = random_cluster(
            chance, nodes_max=8, pods=(0, 2, 5), amount_max=9, open_share=0.8
        )
        mask = np.array([chance.random() < 0.7 for _ in tree.nodes])
        view = View(tree, capacity, {"some": mask}, Options())
        kinds = [((1, 2), ""), ((1, 0), "some"), ((1, 3), "some")]
        view.expect(request for request, _ in kinds)
        headroom = Headroom(view, kinds)
        for _ in range(4):
            slots = sorted(
                chance.sample(range(len(tree.nodes)), chance.randint(1, len(tree.nodes)))
            )
            pairs = Pairs.of([(slot, chance.randint(1, 2)) for slot in slots])
            view.assume(chance.choice(kinds)[0], pairs, chance.choice([1, 1, -1]))
            headroom.note(pairs.indices)
            anew = Headroom(view, kinds)
            # One that is not asked for now takes in several changes at once later.
            for kind in chance.sample(kinds, chance.randint(1, len(kinds))):
                for level in range(len(tree.levels)):
                    assert headroom.pods(kind, level).tolist() == anew.pods(kind, level).tolist()


def test_headroom_counts_what_each_domain_takes_of_one_kind_alone() -> None:
    tree, capacity = cluster(TWO_BLOCKS)
    request = vector(capacity.axis, pods=1, gpu=2)
    view = View(tree, capacity, {"not-n3": np.array([True, True, False, True, True])}, Options())
    headroom = Headroom(view, [(request, ""), (request, "not-n3")])
    assert [headroom.pods((request, ""), level).tolist() for level in range(3)] == [
        [2, 2],
        [1, 1, 2],
        [0, 1, 1, 2, 0],
    ]
    assert headroom.pods((request, "not-n3"), 0).tolist() == [1, 2]
