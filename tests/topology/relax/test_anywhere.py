"""Pods without what holds them together are as many as before."""

from __future__ import annotations

from topology.model.request import Constraint, Gang, Group, Leader, PodSet, Slice
from topology.relax.anywhere import anywhere

RACK = Constraint(required="rack")


def test_nothing_holds_the_pods_together_and_none_is_lost() -> None:
    leader = Leader("l", (1, 4), "big")
    workers = PodSet("w", 6, (1,), constraint=RACK, slices=(Slice(3, "rack"),), leader=leader)
    others = PodSet("o", 2, (1, 1), constraint=RACK, needed=1)
    inner = Group("one", (workers, others), RACK, needed=1)
    gang = Gang("g", Group("root", (inner,), RACK), 7)
    apart = anywhere(gang)
    assert (apart.key, apart.priority) == (gang.key, gang.priority)
    assert sorted(apart.names()) == ["l", "o", "w"]
    found = {each.name: each for each in apart.pod_sets()}
    assert (found["l"].pods, found["l"].request, found["l"].shape) == (1, (1, 4), "big")
    assert (found["w"].pods, found["o"].pods, found["o"].needed) == (6, 2, 1)
    for each in found.values():
        assert (each.constraint, each.slices, each.leader) == (Constraint(), (), None)
    groups, seen = [apart.root], 0
    while groups:
        group = groups.pop()
        seen += 1
        assert group.constraint == Constraint()
        groups += [each for each in group.members if isinstance(each, Group)]
    assert seen == 3, "the group that was, and one for the workers and their leader"
