"""What a gang's spec says of itself: what it needs, and where a leaf is in it."""

from __future__ import annotations

from app.dialects.spec import GangKey, GangSpec, GroupSpec, LeafSpec


def spec_of(root):
    return GangSpec(GangKey("default", "g", "test"), root, "a test")


def test_a_gang_that_needs_all_of_its_pods_is_not_elastic():
    whole = spec_of(GroupSpec("g", (LeafSpec("a", 2), LeafSpec("b", 1, needed=1)), needed=2))
    assert not whole.is_elastic
    assert spec_of(GroupSpec("g", (LeafSpec("a", 2), LeafSpec("b", 1)), needed=1)).is_elastic
    assert spec_of(GroupSpec("g", (LeafSpec("a", 2, needed=1),))).is_elastic


def test_a_need_outside_of_what_there_is_means_the_nearest_that_there_is():
    assert LeafSpec("a", 2, needed=5).least == 2
    assert LeafSpec("a", 2, needed=-1).least == 0
    assert GroupSpec("g", (LeafSpec("a", 2),), needed=3).least == 1


def test_a_leaf_is_inside_all_groups_around_it():
    inner = GroupSpec("inner", (LeafSpec("a", 1),))
    outer = GroupSpec("outer", (LeafSpec("b", 1), inner))
    root = GroupSpec("root", (outer, LeafSpec("c", 1)))
    spec = spec_of(root)
    assert [leaf.name for leaf in spec.leaves()] == ["b", "a", "c"]
    assert [spec.path_to(name) for name in "abc"] == [(root, outer, inner), (root, outer), (root,)]


def test_a_name_that_no_leaf_has_is_of_the_leaf_without_one_or_of_the_gang():
    inner = GroupSpec("inner", (LeafSpec("", 1),))
    root = GroupSpec("root", (LeafSpec("a", 1), inner))
    assert spec_of(root).path_to("x") == (root, inner)
    whole = GroupSpec("whole", (GroupSpec("inner", (LeafSpec("a", 1),)),))
    assert spec_of(whole).path_to("x") == (whole,)
