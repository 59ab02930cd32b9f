"""Who gets the nodes that were made while gangs asked for some, and for how long they are kept."""

from __future__ import annotations

import msgspec
import pytest

from app.kube.core.objects import Shape, Taint, Toleration
from app.kube.watch.events import Applied
from app.state.effects import Bind, EmitEvent, RejectBind
from app.state.filter_result import Passed
from app.state.pods.nominations import Nomination
from tests.app.state.autoscaling.marking import OURS, Marking, gated
from tests.app.state.world import members, racks
from tests.records import RACK, group, node, pod

HOLD, SETTLE = 100.0, 60.0
SETTINGS = {"needs_nodes_hold_seconds": HOLD, "node_settle_seconds": SETTLE}


def rack(number, nodes=4, first=0):
    return [node(f"b0/r{number}/n{number}{i}") for i in range(first, first + nodes)]


def asking(*waiting, nodes=(), **settings):
    """A world in which these gangs have asked for nodes."""
    world = Marking(nodes, waiting, **{**SETTINGS, **settings})
    world.wait(40)
    assert set(world.marked) == {each.name for each in waiting}
    return world


def started(world, name):
    """The pods of this gang that have nodes, by kube-scheduler; name -> node."""
    world.patch(world.tick())
    world.patch([each for each in world.effects if type(each).__name__ == "Ungate"])
    own = [each for each in world.pods.values() if each.name.startswith(name)]
    return world.schedule(*[each for each in own if not each.node])


def alone(name, **more):
    """A pod in no gang that takes a whole node."""
    return pod(name, **more)


def passes(world, one):
    """The nodes that /filter leaves a pod."""
    world.put(one)
    answer = world.filter(one)
    assert isinstance(answer, Passed)
    return sorted(world.engine.books.nodes.keys() - answer.without)


def test_a_smaller_gang_behind_does_not_take_nodes_that_came_for_the_first():
    world = asking(*gated("g", 4), *gated("late", 2))
    world.put(*rack(0, nodes=3))
    assert started(world, "late") == {}
    world.put(*rack(0, nodes=1, first=3))
    assert racks(started(world, "g")) == {"n0"}
    assert started(world, "late") == {}, "its own come later"
    world.put(*rack(1, nodes=2))
    assert racks(started(world, "late")) == {"n1"}


def test_of_two_gangs_that_ask_each_has_a_rack_of_its_own():
    world = asking(*gated("a", 4), *gated("b", 4))
    world.put(*rack(0, nodes=2), *rack(1, nodes=3))
    world.tick()
    kept = {key.name: each.nodes for key, each in world.engine.new_nodes.of.items()}
    assert kept == {"a": {"n10", "n11", "n12"}, "b": {"n00", "n01"}}


def test_for_pods_of_a_gang_that_runs_only_new_nodes_of_its_domain_are_kept():
    world = Marking(rack(1), **SETTINGS)
    pods = members("g", 4)
    world.put(*pods)
    world.tick()
    placed = world.schedule(*pods)
    gone = rack(1, nodes=2)
    world.delete(*gone)
    world.delete(*[each for each in pods if placed[each.name] in {node.name for node in gone}])
    world.put(*[pod(f"again{i}", annotations=group("g", 4, RACK), gates=OURS) for i in range(2)])
    world.wait(40)
    assert world.marked == ["again0", "again1"]
    world.put(node("b0/r0/elsewhere"))
    world.tick()
    assert world.engine.new_nodes.nodes() == frozenset()
    world.put(node("b0/r1/beside"))
    world.tick()
    assert world.engine.new_nodes.nodes() == {"beside"}


def test_an_ordinary_pod_that_passed_before_corral_saw_the_node_is_not_bound_there():
    """kube-scheduler may hear of a node, or that it is ready, a moment before Corral does."""
    world = asking(*gated("g", 4))
    early, small, above = alone("early"), alone("small", gpus=0), alone("above", priority=10)
    world.put(early, small, above)
    assert all(world.filter(each, ["n00"]) == Passed() for each in (early, small, above))
    engine = world.engine  # by itself: in the world each new node is followed by a look at it
    for each in rack(0, nodes=3):
        engine.apply(Applied(each), world.now)
    sent = [
        engine.bind_arrived("default", each.name, each.uid, "n00", world.now)
        for each in (early, small, above)
    ]
    assert [type(effects[0]) for effects in sent] == [RejectBind, Bind, Bind]


def test_ordinary_pods_take_no_node_that_came_for_a_gang_until_it_is_kept_no_more():
    world = asking(*gated("g", 4))
    world.put(*rack(0, nodes=2), *rack(7, nodes=1))
    assert passes(world, alone("o1")) == ["n70"]
    assert passes(world, alone("above", priority=10)) == ["n00", "n01", "n70"]
    assert passes(world, alone("small", gpus=0)) == ["n00", "n01", "n70"]
    world.wait(HOLD + 10)
    assert passes(world, alone("o2")) == ["n00", "n01", "n70"]


def test_a_gang_of_a_higher_priority_takes_nodes_that_came_for_another():
    world = asking(*gated("g", 4))
    world.put(*rack(0, nodes=2))
    world.put(*gated("equal", 2))
    assert started(world, "equal") == {}
    world.put(*gated("above", 2, priority=10))
    assert racks(started(world, "above")) == {"n0"}


def test_no_more_nodes_are_kept_than_the_gang_needs():
    world = asking(*gated("g", 2))
    world.put(*rack(0, nodes=1))
    world.put(node("b0/r0/small", gpus=4))  # takes none of its pods
    world.tick()
    assert world.engine.new_nodes.nodes() == {"n00"}


def test_of_large_nodes_as_few_are_kept_as_take_all_pods():
    world = asking(*gated("g", 4, gpus=4), *gated("never", 9))
    world.put(*rack(0, nodes=1))
    world.tick()
    world.put(*[node(f"b0/r1/m{i}", gpus=4) for i in range(4)])
    world.tick()
    kept = {key.name: each.nodes for key, each in world.engine.new_nodes.of.items()}
    assert kept["g"] == {f"m{i}" for i in range(4)}
    assert kept["never"] == {"n00"}


def test_nodes_that_were_there_before_it_asked_are_anybodys():
    world = asking(*gated("g", 4), nodes=rack(0, nodes=2))
    assert passes(world, alone("o")) == ["n00", "n01"]


def test_nodes_that_came_for_one_gang_are_not_kept_for_another_that_asks_later():
    world = asking(*gated("never", 9))
    world.put(*rack(0))
    world.wait(HOLD + 10)
    world.put(*gated("late", 5))
    world.wait(40)
    assert world.pods["uid-late0"].is_marked
    assert world.engine.new_nodes.nodes() == frozenset()


def test_each_new_node_prolongs_the_hold_up_to_thrice_its_time():
    world = asking(*gated("g", 20))
    for i in range(9):
        world.put(*rack(0, nodes=1, first=i))
        world.wait(HOLD * 0.4)
        is_kept = bool(world.engine.new_nodes.nodes())
        assert is_kept == (HOLD * 0.4 * (i + 1) < 3 * HOLD), i


def test_what_came_is_told_once_when_it_is_kept_no_more_and_a_smaller_gang_gets_it():
    world = asking(*gated("g", 4), *gated("small", 2))
    world.put(*rack(0, nodes=3))
    world.wait(HOLD + 10)
    told = [each for each in world.told(EmitEvent) if each.reason == "NewNodesReleased"]
    assert [each.gang.name for each in told] == ["g"]
    assert "3 nodes" in told[0].sentence
    assert racks(started(world, "small")) == {"n0"}
    assert world.pods["uid-g0"].is_marked, "it asks on"


@pytest.mark.parametrize(
    ("labelled", "said"),
    [
        (0, f"the 3 nodes that came have no {RACK} and are kept for it no longer"),
        (2, f"the 3 nodes that came, 1 of them without {RACK}, are too few and kept"),
        (3, "the 3 nodes that came are too few and kept"),
    ],
)
def test_of_nodes_that_came_without_the_level_that_is_said(labelled, said):
    """A node group that lacks the label: the nodes are there, and the gang waits on."""
    world = asking(*gated("g", 4), node_settle_seconds=HOLD)
    world.put(*rack(0, nodes=labelled), *[node(f"bare{n}") for n in range(3 - labelled)])
    world.wait(HOLD + 20)
    (told,) = [each for each in world.told(EmitEvent) if each.reason == "NewNodesReleased"]
    assert said in told.sentence


def test_after_that_it_has_none_kept_for_as_long_as_it_had_some():
    world = asking(*gated("g", 4))
    world.put(*rack(0, nodes=1))
    world.wait(HOLD + 10)
    world.put(*rack(0, nodes=1, first=1))
    world.wait(5)
    assert world.engine.new_nodes.nodes() == frozenset()
    world.wait(HOLD + 20)
    world.put(*rack(0, nodes=1, first=2))
    world.wait(5)
    assert "n02" in world.engine.new_nodes.nodes()


def test_a_node_whose_labels_come_late_is_kept_for_the_gang_that_needs_them():
    anywhere = pod("later0", annotations=group("later", 1), gates=OURS)
    world = asking(*gated("g", 4), anywhere)
    world.put(node("n00"))
    world.tick()
    assert world.engine.new_nodes.nodes() == {"n00"}
    assert started(world, "later") == {}
    assert passes(world, alone("o")) == []
    world.wait(SETTLE + 10)
    assert world.engine.new_nodes.nodes() == frozenset()
    assert started(world, "later") == {"later0": "n00"}


def test_a_new_node_is_looked_at_again_as_soon_as_it_changes():
    world = asking(*gated("g", 4))
    bare = node("n00")
    world.put(bare)
    world.tick()
    assert not world.engine.new_nodes.is_due(world.now)
    world.put(*rack(0, nodes=1))
    assert world.engine.new_nodes.is_due(world.now)


def test_a_gang_starts_when_the_last_label_is_there():
    world = asking(*gated("g", 4))
    world.put(*[node(f"n0{i}") for i in range(4)])
    world.wait(5)
    world.put(*rack(0, nodes=3))
    assert started(world, "g") == {}
    world.put(*rack(0, nodes=1, first=3))
    assert len(started(world, "g")) == 4


def test_a_node_without_its_gpus_yet_is_not_used_and_then_is():
    world = asking(*gated("g", 2))
    world.put(*[node(f"b0/r0/n0{i}", gpus=0) for i in range(2)])
    assert started(world, "g") == {}
    world.put(*rack(0, nodes=2))
    assert len(started(world, "g")) == 2


def test_a_node_whose_gpus_corral_does_not_see_yet_is_closed_to_who_sees_them_before():
    """kube-scheduler may hear of the GPUs first, and at once tries the pods that request some."""
    world = asking(*gated("g", 4))
    world.put(*[node(f"b0/r0/n0{i}", gpus=0) for i in range(2)])
    assert passes(world, alone("o1")) == []
    assert passes(world, alone("above", priority=10)) == ["n00", "n01"]
    world.wait(HOLD + 10)
    assert passes(world, alone("o2")) == [], "it takes as long as it takes"
    world.put(*rack(0, nodes=1))
    assert passes(world, alone("o3")) == []
    for i in range(4):
        world.delete(world.pods[f"uid-g{i}"])
    world.wait(6)
    assert passes(world, alone("o4")) == ["n00", "n01"]


def test_a_node_that_has_no_gpus_is_kept_from_nobody_who_requests_none():
    world = asking(*gated("g", 4))
    world.put(*[node(f"b0/r0/n0{i}", gpus=0) for i in range(2)])
    assert passes(world, alone("small", gpus=0)) == ["n00", "n01"]
    world.put(*gated("behind", 2, gpus=0))
    assert racks(started(world, "behind")) == {"n0"}


def test_when_the_gang_is_gone_its_nodes_are_anybodys():
    world = asking(*gated("g", 4))
    world.put(*rack(0, nodes=2))
    for i in range(4):
        world.delete(world.pods[f"uid-g{i}"])
    world.wait(6)
    assert passes(world, alone("o")) == ["n00", "n01"]
    assert world.engine.new_nodes._made == {}


def test_a_node_that_comes_back_is_not_new():
    nodes = rack(0, nodes=2)
    world = asking(*gated("g", 4), nodes=nodes)
    world.delete(nodes[0])
    world.wait(30)
    world.put(nodes[0])
    world.tick()
    assert world.engine.new_nodes.nodes() == frozenset()
    world.delete(nodes[0])
    world.wait(700)
    world.put(nodes[0])
    world.tick()
    assert world.engine.new_nodes.nodes() == {"n00"}


def test_a_node_that_went_before_the_gang_asked_is_new_when_it_comes():
    nodes = rack(0, nodes=2)
    world = asking(nodes=nodes)
    world.delete(nodes[0])
    world.wait(30)
    world.put(*gated("g", 4))
    world.wait(30)
    world.put(nodes[0])
    world.tick()
    assert world.engine.new_nodes.nodes() == {"n00"}


def test_who_has_nodes_kept_in_vain_again_and_again_has_them_ever_more_rarely():
    world = asking(*gated("g", 9))
    kept = 0
    for number in range(40):
        world.put(node(f"b0/r0/m{number}", gpus=8))
        for _ in range(8):
            world.wait(5)
            kept += bool(world.engine.new_nodes.nodes())
        world.delete(node(f"b0/r0/m{number}", gpus=8))
    assert 0 < kept < 40 * 8 / 2


def test_gangs_of_one_namespace_have_nodes_kept_for_two_of_them_at_most():
    world = asking(*[each for name in "abcd" for each in gated(name, 4)])
    world.put(*[each for number in range(4) for each in rack(number, nodes=2)])
    world.tick()
    assert [key.name for key in world.engine.new_nodes.of] == ["a", "b"]


@pytest.mark.parametrize(("priority", "kept"), [(-1, {"n00", "n01"}), (0, {"n01"})])
def test_no_node_is_kept_that_others_were_evicted_from_for_a_gang(priority, kept):
    """That gang would not get what was freed for it, where this one comes before it."""
    world = asking(*gated("g", 4))
    place = Nomination("n00", alone("T0").request, priority)
    world.engine.nominations.keep({"uid-T0": place})
    world.put(*rack(0, nodes=2))
    world.tick()
    assert world.engine.new_nodes.nodes() == kept


def looks(world, monkeypatch):
    """The names of the gangs that are looked at from now on."""
    found, look = [], type(world.engine.new_nodes)._mark

    def mark(self, gang, taken, now):
        found.append(gang.key.name)
        return look(self, gang, taken, now)

    monkeypatch.setattr(type(world.engine.new_nodes), "_mark", mark)
    return found


def test_what_a_new_node_costs_does_not_grow_with_the_gangs_that_ask(monkeypatch):
    monkeypatch.setattr("app.state.autoscaling.new_nodes.MOST_TRIED_IN_NAMESPACE", 3)
    mine = [each for i in range(9) for each in gated(f"g{i}", 2)]
    other = [msgspec.structs.replace(each, namespace="other") for each in gated("theirs", 2)]
    world = asking(*mine, *other)
    found = looks(world, monkeypatch)
    world.put(*rack(0, nodes=1))
    world.tick()
    assert set(found) == {"g0", "g1", "g2", "theirs"}
    assert [key.name for key in world.engine.new_nodes.of] == ["g0"]
    world.put(*gated("above", 4, priority=10))
    world.wait(40)
    found.clear()
    world.put(*rack(1, nodes=1))
    world.tick()
    assert set(found) == {"above", "g0", "theirs"}
    assert [key.name for key in world.engine.new_nodes.of] == ["above", "g0"]


def test_who_is_looked_at_beside_those_that_have_nodes_kept_has_a_bound(monkeypatch):
    monkeypatch.setattr("app.state.autoscaling.new_nodes.MOST_VISITS", 1)
    world = asking(*gated("a", 4), *gated("b", 4))
    found = looks(world, monkeypatch)
    world.put(*rack(0, nodes=2))
    world.tick()
    assert set(found) == {"a"}
    world.put(*rack(1, nodes=3))
    world.tick()
    kept = {key.name: each.nodes for key, each in world.engine.new_nodes.of.items()}
    assert kept["a"] == {"n10", "n11", "n12"}
    assert "b" in found


def test_of_thousands_that_ask_it_is_found_out_once_a_second_who_comes_first(monkeypatch):
    monkeypatch.setattr("app.state.autoscaling.new_nodes.MOST_RANKED", 1)
    world = asking(*gated("a", 4), *gated("b", 4))
    world.put(*rack(0, nodes=1))
    world.tick()
    ranked_at = world.engine.new_nodes._ranked_at
    world.put(*rack(0, nodes=1, first=1))
    world.tick()
    assert world.engine.new_nodes._ranked_at == ranked_at
    assert world.engine.new_nodes.nodes() == {"n00", "n01"}
    world.delete(*[world.pods[f"uid-a{i}"] for i in range(4)])
    world.put(*rack(0, nodes=1, first=2))
    world.tick(0.1)
    assert [key.name for key in world.engine.new_nodes.of] == ["b"]
    world.tick(1.0)
    world.put(*rack(0, nodes=1, first=3))
    world.tick()
    assert world.engine.new_nodes._ranked_at > ranked_at


def test_a_heartbeat_of_a_new_node_is_no_reason_to_look():
    world = asking(*gated("g", 4))
    fresh = rack(0, nodes=1)[0]
    world.put(fresh)
    world.tick()
    world.put(msgspec.structs.replace(fresh, version="2"))
    assert not world.engine.new_nodes.is_due(world.now)
    world.put(msgspec.structs.replace(fresh, is_unschedulable=True))
    assert world.engine.new_nodes.is_due(world.now)


def test_nodes_that_leave_are_kept_for_nobody():
    world = asking(*gated("g", 4))
    nodes = rack(0, nodes=2)
    world.put(*nodes)
    world.delete(nodes[0])
    world.tick()
    assert world.engine.new_nodes.nodes() == {"n01"}


LEAVING = ("ToBeDeletedByClusterAutoscaler", "karpenter.sh/disrupted")


def leaving(key, on):
    """The node with the taint that an autoscaler writes before it removes it."""
    return msgspec.structs.replace(on, taints=(Taint(key, "", "NoSchedule"),))


@pytest.mark.parametrize("key", LEAVING)
def test_a_node_that_is_about_to_be_removed_is_no_place_whatever_is_tolerated(key):
    shape = Shape(tolerations=(Toleration("", "Exists", "", ""),))
    world = Marking([leaving(key, each) for each in rack(0)], gated("g", 2, shape=shape))
    assert started(world, "g") == {}
    world.put(*rack(0))
    assert len(started(world, "g")) == 2


@pytest.mark.parametrize("key", LEAVING)
def test_a_plan_on_a_node_that_is_about_to_be_removed_is_made_anew(key):
    shape = Shape(tolerations=(Toleration("", "Exists", "", ""),))
    world = Marking([*rack(0), *rack(1)], members("g", 4, shape=shape))
    planned = set(world.held.values())
    one = sorted(planned)[0]
    (was,) = [each for each in (*rack(0), *rack(1)) if each.name == one]
    world.put(leaving(key, was))
    world.wait(5)
    held = set(world.held.values())
    assert one not in held
    assert len(held) == 4
    assert not held & planned, "all of it is in the other rack"


def test_a_node_that_may_be_removed_later_is_as_good_as_any():
    """cluster-autoscaler's DeletionCandidate… is PreferNoSchedule, and taken back."""
    mark = Taint("DeletionCandidateOfClusterAutoscaler", "1", "PreferNoSchedule")
    nodes = [msgspec.structs.replace(each, taints=(mark,)) for each in rack(0)]
    world = Marking(nodes, gated("g", 4))
    assert len(started(world, "g")) == 4
