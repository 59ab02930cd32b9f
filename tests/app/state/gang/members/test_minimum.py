"""What a gang cannot start without: the tree of `needed` against its plain definition."""

from __future__ import annotations

from itertools import product
from random import Random

import pytest

from app.dialects.spec import GangKey, GangSpec, GroupSpec, LeafSpec
from app.state.gang.members import minimum


def spec_of(root):
    return GangSpec(GangKey("default", "g", "test"), root, "a test")


def enough(part, pods):
    """The definition, in two lines."""
    if isinstance(part, LeafSpec):
        return pods.get(part.name, 0) >= part.least
    return sum(enough(each, pods) for each in part.members) >= part.least


def drawn(rng, depth, names):
    if depth == 0 or rng.random() < 0.3:
        pods = rng.randint(1, 3)
        return LeafSpec(next(names), pods, needed=rng.choice([None, *range(pods + 1)]))
    members = tuple(drawn(rng, depth - 1, names) for _ in range(rng.randint(1, 3)))
    needed = rng.choice([None, *range(len(members) + 1)])
    return GroupSpec(next(names), members, needed=needed)


def drawn_spec(seed):
    rng = Random(seed)
    names = (f"p{at}" for at in range(100))
    members = tuple(drawn(rng, 2, names) for _ in range(2))
    return rng, spec_of(GroupSpec("root", members, needed=rng.choice([None, 0, 1, 2])))


@pytest.mark.parametrize("seed", range(60))
def test_enough_is_enough_of_every_part_and_least_is_the_fewest(seed):
    rng, spec = drawn_spec(seed)
    leaves = list(spec.leaves())[:5]
    totals = []
    for counts in product(*(range(leaf.pods + 1) for leaf in leaves)):
        pods = dict(zip((leaf.name for leaf in leaves), counts, strict=True))
        pods.update((leaf.name, rng.randint(0, leaf.pods)) for leaf in list(spec.leaves())[5:])
        assert minimum.has_enough(spec, pods) is enough(spec.root, pods)
        if enough(spec.root, pods):
            totals.append(sum(pods.values()))
    if len(list(spec.leaves())) <= 5:
        assert minimum.least_pods(spec) == min(totals)


@pytest.mark.parametrize("seed", range(60))
def test_a_leaf_is_left_out_if_a_part_around_it_is_neither_enough_nor_begun(seed):
    rng, spec = drawn_spec(seed)
    for _ in range(30):
        pods = {leaf.name: rng.randint(0, leaf.pods) for leaf in spec.leaves()}
        settled = {name: rng.choice([0, 0, count]) for name, count in pods.items()}

        def begun(part, settled=settled):
            if isinstance(part, LeafSpec):
                return bool(settled[part.name])
            return any(map(begun, part.members))

        def out(part, pods=pods, begun=begun):
            """The leaves at or below a part that is left out, or below it."""
            if isinstance(part, LeafSpec):
                return set()
            found = set()
            for each in part.members:
                if enough(each, pods) or begun(each):
                    found |= out(each)
                else:
                    below = spec_of(GroupSpec("", (each,))).leaves()
                    found |= {leaf.name for leaf in below}
            return found

        assert minimum.left_out(spec, pods, settled) == out(spec.root)


def test_pods_that_name_no_leaf_are_of_the_leaf_without_a_name():
    spec = spec_of(GroupSpec("g", (LeafSpec("", 2, needed=1), LeafSpec("a", 2))))
    assert minimum.by_leaf(spec, ["a", "x", "", "a"]) == {"a": 2, "": 2}


def test_groups_a_thousand_deep_are_no_trouble():
    root = GroupSpec("0", (LeafSpec("a", 2, needed=1),))
    for depth in range(5_000):
        root = GroupSpec(str(depth), (root,))
    spec = spec_of(root)
    assert spec.is_elastic
    assert minimum.has_enough(spec, {"a": 1})
    assert minimum.left_out(spec, {}, {}) == {"a"}
