"""kube-scheduler keeps a node for a pod that we nominated, and that is not to go there any more."""

from __future__ import annotations

from app.kube.core.objects import PodRecord
from app.state.filter_result import Pinned, Rejected
from app.state.queueing.nominating import ENDED_SECONDS
from tests.app.state.queueing.test_nominating import left_its_gang, seen_nominated
from tests.app.state.world import World, members
from tests.records import node


def planned_where_another_was(world: World, **more: object) -> tuple[PodRecord, PodRecord]:
    """The first pod was nominated for n0, and is planned on n1 now; the second is planned on n0."""
    (first,) = members("a", 1, required=None)
    (second,) = members("b", 1, required=None, **more)
    world.put(node("b/r/n1", is_cordoned=True), first)
    world.tick()
    shown = seen_nominated(world, first, "n0")
    world.put(node("b/r/n0", is_cordoned=True), node("b/r/n1"))
    while world.held != {first.uid: "n1"}:
        world.tick(1.0)
    world.put(node("b/r/n0"), second)
    world.tick()
    assert world.held == {first.uid: "n1", second.uid: "n0"}
    return shown, second


TWO = [node("b/r/n0"), node("b/r/n1")]


def test_a_node_that_is_kept_for_a_plan_that_is_over_has_refused_no_pod():
    world = World(TWO)
    first, second = planned_where_another_was(world)
    assert isinstance(world.filter(second, ["n1"]), Rejected)
    assert world.held[second.uid] == "n0"
    world.effects.clear()
    world.tick()
    assert "b0" not in world.woken
    seen_nominated(world, first, "n1")
    world.tick(ENDED_SECONDS)
    assert "b0" in world.woken
    assert world.filter(second) == Pinned("n0")


def test_a_search_that_was_under_way_when_a_nomination_ended_says_nothing_of_the_node():
    world = World(TWO)
    first, second = planned_where_another_was(world)
    seen_nominated(world, first, "n1")
    assert isinstance(world.filter(second, ["n1"]), Rejected)
    assert world.held[second.uid] == "n0"


def test_a_node_is_kept_for_no_pod_of_lower_priority():
    world = World(TWO)
    _, second = planned_where_another_was(world, priority=5)
    world.filter(second, ["n1"])
    assert second.uid not in world.held  # it is taken for refused


def test_a_node_is_kept_for_a_pod_that_has_left_its_gang_as_well():
    world = World(TWO)
    first, second = planned_where_another_was(world)
    world.put(left_its_gang(first))
    assert isinstance(world.filter(second, ["n1"]), Rejected)
    assert world.held[second.uid] == "n0"


def test_a_node_of_which_a_nomination_may_not_be_taken_back_counts_as_refused():
    world = World(TWO)
    _, second = planned_where_another_was(world)
    world._take(world.inputs.nominating_forbidden("default", 600.0, world.now))
    world.filter(second, ["n1"])
    assert second.uid not in world.held
