"""Which nodes are annotated for a gang that is about to start there, for how long, and whose."""

from __future__ import annotations

import msgspec
import pytest

from app.dialects import autoscalers
from app.dialects.registry import DIALECTS
from app.settings import EngineOptions
from app.state.autoscaling import held_nodes
from app.state.effects import Effect, ProtectNode
from tests.app.state.autoscaling.protecting import (
    CA,
    KARPENTER,
    NOTE,
    Crash,
    Protecting,
    four_racks,
    with_annotations,
)
from tests.app.state.world import members
from tests.records import pod

BOTH = {CA: "true", KARPENTER: "true"}
LINGER = held_nodes.UNHELD_SECONDS
RACK_0 = ["n00", "n01", "n02", "n03"]


class Away(Protecting):
    """Its API server takes no write on nodes."""

    is_away = True


def started(world, pods):
    assert len(world.schedule(*pods)) == len(pods)


def test_the_nodes_of_a_plan_are_annotated_each_by_one_write():
    world = Protecting(four_racks(), members("g", 4))
    assert sorted(each.node for each in world.first) == RACK_0
    assert sorted(world.annotated) == RACK_0
    for said in world.annotated.values():
        assert said == {**BOTH, NOTE: "cluster-autoscaler,karpenter: default/g"}
    assert world.wait(15) == []


def test_they_are_as_before_soon_after_the_last_bind():
    waiting = members("g", 4)
    world = Protecting(four_racks(), waiting)
    started(world, waiting)
    assert world.wait(LINGER - 1) == []
    assert sorted(each.node for each in world.wait(3)) == RACK_0
    assert world.annotated == {}
    assert world.wait(100) == []
    assert world.engine.held_nodes._sent == {}


def test_a_gang_that_waits_for_a_member_at_bind_keeps_its_nodes():
    waiting = members("g", 4)
    world = Protecting(four_racks(), waiting, hold_seconds=9e3, gang_bind_seconds=9e3)
    assert world.schedule(*waiting[:3]) == {}
    world.wait(100)
    assert sorted(world.annotated) == RACK_0


def test_a_lost_plan_frees_its_nodes():
    waiting = members("g", 4)
    world = Protecting(four_racks(), waiting)
    world.delete(waiting[0])
    world.wait(LINGER + 2)
    assert world.annotated == {}


def test_a_plan_made_again_at_once_costs_no_write():
    waiting = members("g", 4)
    world = Protecting(four_racks(), waiting)
    world.delete(waiting[0])
    world.tick(1.0)
    world.put(members("g", 4)[0])
    assert world.wait(20) == []
    assert sorted(world.annotated) == RACK_0


def test_a_node_that_is_planned_no_more_is_freed_and_the_one_instead_of_it_is_kept():
    world = Protecting(four_racks(), members("g", 4))
    world.delete(world.engine.books.nodes["n00"])
    world.wait(60)
    kept = set(world.annotated)
    assert kept == set(world.gang("g").plan.nodes.values())
    assert kept.isdisjoint(RACK_0)


def test_with_off_there_is_no_effect_and_nothing_is_remembered():
    said = {**BOTH, NOTE: "cluster-autoscaler,karpenter: default/g"}
    waiting = members("g", 4)
    world = Protecting(four_racks(n00=said, n33=said), waiting, protect_held_nodes=False)
    world.wait(20)
    started(world, waiting)
    world.wait(100)
    assert world.told(ProtectNode) == []
    assert sorted(world.annotated) == ["n00", "n33"]
    held = world.engine.held_nodes
    assert (held._held, len(held._due), len(held._later)) == ({}, 0, 0)


@pytest.mark.parametrize("is_on", [False, True])
def test_annotations_of_nodes_are_kept_with_the_setting_only(is_on):
    raw = b"""{"metadata": {"name": "n", "annotations": {"a": "b",
        "karpenter.sh/do-not-disrupt": "x", "corral.dev/protected": "y",
        "cluster-autoscaler.kubernetes.io/scale-down-disabled": "z"}}}"""
    of_nodes, *_ = DIALECTS.configured(EngineOptions(protect_held_nodes=is_on)).resources()
    said = of_nodes.decode(raw).annotations
    assert said == ({KARPENTER: "x", NOTE: "y", CA: "z"} if is_on else {})


def test_a_change_of_annotations_is_no_news_to_planning(monkeypatch):
    world = Protecting(four_racks(), members("g", 17))
    world.wait(3)
    news = []
    monkeypatch.setattr(type(world.engine.reservations), "capacity_grew", lambda *_: news.append(1))
    world.annotate("n01", {CA: "true"})
    assert news == []
    world.put(msgspec.structs.replace(world.engine.books.nodes["n01"], is_unschedulable=True))
    assert news != [], "what is news would show"


# -- somebody else's -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("theirs", "ours", "name"),
    [
        ({CA: "true"}, KARPENTER, "karpenter"),
        ({CA: "false"}, KARPENTER, "karpenter"),
        ({KARPENTER: "true"}, CA, "cluster-autoscaler"),
    ],
)
def test_what_was_there_before_is_neither_written_nor_removed(theirs, ours, name):
    waiting = members("g", 4)
    world = Protecting(four_racks(n01=theirs), waiting)
    assert world.said("n01") == {**theirs, ours: "true", NOTE: f"{name}: default/g"}
    started(world, waiting)
    world.wait(20)
    assert world.annotated == {"n01": theirs}


def test_a_node_that_has_both_is_not_touched():
    waiting = members("g", 4)
    world = Protecting(four_racks(n01=BOTH), waiting)
    assert sorted(each.node for each in world.first) == ["n00", "n02", "n03"]
    started(world, waiting)
    world.wait(20)
    assert world.annotated == {"n01": BOTH}


def test_what_somebody_changes_meanwhile_is_his():
    waiting = members("g", 4)
    world = Protecting(four_racks(), waiting, hold_seconds=9e3)
    world.annotate("n01", {CA: "false"})
    world.annotate("n02", {CA: None})
    assert world.wait(100) == []
    started(world, waiting)
    world.wait(20)
    assert world.annotated == {"n01": {CA: "false"}}


def test_a_change_of_the_node_before_the_write_makes_it_look_again():
    world = Away(four_racks(), members("g", 4))
    world.is_away = False
    world.annotate("n01", {KARPENTER: "true"})
    world.wait(5)
    assert world.said("n01")[NOTE] == "cluster-autoscaler: default/g"


def test_a_note_that_is_taken_away_each_time_is_written_ever_more_rarely():
    world = Protecting(four_racks(), members("g", 4), hold_seconds=9e3)
    sent = 0
    for _ in range(600):
        if NOTE in world.said("n01"):
            world.annotate("n01", dict.fromkeys((CA, KARPENTER, NOTE)))
        sent += len(world.wait(1))
    assert sent <= 600 / held_nodes.MOST_UNSEEN_SECONDS + 6


# -- several gangs -------------------------------------------------------------------------------


def test_a_node_of_two_gangs_is_kept_until_both_have_started_there():
    first, second = members("a", 4, gpus=6), members("b", 4, gpus=2)
    world = Protecting(four_racks(), first)
    world.put(*second)
    assert world.wait(2) == [], "it is kept already"
    shared = set(world.gang("a").plan.nodes.values()) & set(world.gang("b").plan.nodes.values())
    assert shared, "the test wants a node of both"
    started(world, first)
    world.wait(20)
    for name in shared:
        assert world.said(name) == {**BOTH, NOTE: "cluster-autoscaler,karpenter: default/b"}
    started(world, second)
    world.wait(20)
    assert world.annotated == {}


def test_an_ordinary_pod_at_bind_protects_no_node():
    world = Protecting(four_racks(), [single := pod("single")])
    world.filter(single)
    world.bind(single, "n00")
    world.wait(10)
    assert world.told(ProtectNode) == []


# -- what fails ----------------------------------------------------------------------------------


def test_what_does_not_show_is_sent_again_but_ever_later():
    world = Away(four_racks(), members("g", 4), hold_seconds=9e3)
    rounds = len(world.first + world.wait(600)) / 4
    assert rounds >= 600 / held_nodes.MOST_UNSEEN_SECONDS
    assert rounds <= 600 / held_nodes.MOST_UNSEEN_SECONDS + 6
    world.is_away = False
    world.wait(held_nodes.MOST_UNSEEN_SECONDS + 1)
    assert sorted(world.annotated) == RACK_0
    assert world.wait(200) == []


def test_a_tick_sends_few_and_no_namespace_waits_for_another(monkeypatch):
    monkeypatch.setattr(held_nodes, "MOST_WRITES", 2)
    world = Protecting(four_racks(), [*members("a", 4), *members("b", 4)])
    assert len(world.first) == 2
    assert [len(world.wait(1)) for _ in range(4)] == [2, 2, 2, 0]


def test_a_node_that_goes_and_comes_again_is_annotated_anew():
    waiting = members("g", 4)
    world = Protecting(four_racks()[:4], waiting)
    node = world.engine.books.nodes["n00"]
    world.delete(node)
    world.wait(20)
    assert world.annotated == {}
    world.put(with_annotations(node, {}))
    world.wait(60)
    assert sorted(world.annotated) == RACK_0


# -- a crash -------------------------------------------------------------------------------------


def test_after_a_restart_nodes_that_no_plan_holds_are_freed():
    said = {**BOTH, NOTE: "cluster-autoscaler,karpenter: default/gone"}
    partly = {CA: "true", KARPENTER: "true", NOTE: "karpenter: default/gone"}
    odd = {CA: "true", NOTE: "whatever"}
    world = Protecting(four_racks(n00=said, n11=partly, n22=odd))
    world.wait(LINGER + 2)
    assert world.annotated == {"n11": {CA: "true"}, "n22": {CA: "true"}}


def test_a_restart_writes_nothing_for_a_plan_that_is_made_again():
    before = Protecting(four_racks(), waiting := members("g", 4))
    world = Protecting(before.engine.books.nodes.values(), waiting)
    assert world.first + world.wait(60) == []
    assert sorted(world.annotated) == RACK_0


THEIRS = {"n01": {CA: "true"}, "n02": dict(BOTH), "n30": {KARPENTER: "false"}}


def story(world):
    """A gang starts, and its nodes are freed."""
    world.written(world.effects)
    world.wait(1)
    started(world, list(world.pods.values()))
    world.wait(20)


@pytest.mark.parametrize("writes", range(14))
def test_a_crash_after_any_write_ends_as_none_would(writes):
    class Crashing(Protecting):
        writes_left = writes

        def written(self, effects: list[Effect]) -> list[ProtectNode]:
            # Those of the constructor wait: a crash in it would leave nothing to look at.
            return super().written(effects) if hasattr(self, "first") else []

    world = Crashing(four_racks(**THEIRS), members("g", 4))
    try:
        story(world)
    except Crash:
        again = Protecting(world.engine.books.nodes.values(), world.pods.values())
        story(again)
        world = again
    else:
        assert writes > 4 + 3 + 3 - 1, "the story has fewer writes than was thought"
    assert world.annotated == THEIRS
    assert len({each.node for each in world.pods.values()}) == 4


def test_the_note_names_a_few_of_many_gangs():
    names = [f"default/g{each}" for each in range(100)]
    changes = autoscalers.node_changes({}, names)
    assert changes[NOTE] == "cluster-autoscaler,karpenter: " + ", ".join(names[:4])
    assert autoscalers.node_changes(changes, names) == {}
