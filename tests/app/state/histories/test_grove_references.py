"""Pods that only the podReferences of a PodGang name, whichever of the two comes first."""

from __future__ import annotations

from itertools import permutations

import msgspec
import pytest

from app.kube.watch.events import Listed
from app.state.effects import BindFailed, Evict
from app.state.filter_result import Passed, Rejected
from tests.app.dialects.grove.objects import gang, pod_group, within
from tests.app.state.histories.test_grove import (
    KINDS,
    NET,
    TOPOLOGIES,
    fill,
    on,
    racks,
    started,
    world_of,
)
from tests.app.state.histories.test_grove import members as labelled
from tests.app.state.stories import finish, sentence
from tests.app.state.world import World, four_racks
from tests.records import RACK, node, pod


def plain(*names, **more):
    """Pods that say nothing of PodGangs."""
    return [pod(name, gpus=1, **more) for name in names]


def naming(*names, least=2, name="g", **more):
    """A PodGang that names these pods."""
    return gang(name, pod_group("worker", least, names=names), on=within(RACK), **more)


def leaves(world):
    """The pod group of each member, by pod."""
    return {
        each.pod.name: f"{its.key.name}/{each.leaf}"
        for its in world.engine.gangs.by_key.values()
        for each in its.members.values()
    }


AB = {"a": "g/worker", "b": "g/worker"}


@pytest.mark.parametrize("order", list(permutations(range(3))))
def test_whatever_comes_first_the_named_pods_start_together_in_a_rack(order):
    world, things = world_of(), [*plain("a", "b"), naming("a", "b")]
    world.put(*(things[at] for at in order))
    assert leaves(world) == AB
    finish(world)
    assert (len(on(world)), len(racks(on(world)))) == (2, 1)


def test_named_pods_wait_until_as_many_are_there_as_the_gang_takes():
    world = world_of(naming("a", "b", least=2))
    assert started(world, *plain("a")) == {}
    assert "waits until" in sentence(world, "uid-a")
    assert len(started(world, *plain("b"))) == 2


@pytest.mark.parametrize("kinds", list(permutations(("Node", "Pod", "PodGang"))))
def test_lists_in_any_order_after_a_restart_give_the_same_members(kinds):
    world = world_of(naming("a", "b", "c", least=2))
    placed = started(world, *plain("a", "b"))
    world.put(*plain("c"))
    again = World(kinds=KINDS, levels=())
    again.engine, again.pods = again.built(), dict(world.pods)
    listed = {
        "Node": four_racks(gpus=1),
        "Pod": list(world.pods.values()),
        "PodGang": [naming("a", "b", "c", least=2)],
        "ClusterTopology": [NET],
    }
    for kind in (*TOPOLOGIES, "Topology", "Job", *kinds):
        again.apply(Listed(kind, tuple(listed.get(kind, ()))))
    again.tick()
    assert leaves(again) == {**AB, "c": "g/worker"}
    finish(again)
    assert on(again).items() >= placed.items()
    assert (len(on(again)), len(racks(on(again)))) == (3, 1)


def test_a_pod_that_is_named_no_longer_is_an_ordinary_one_until_it_is_again():
    world = world_of(naming("a", "b"), *plain("a", "b"))
    world.put(naming("a"))
    assert leaves(world) == {"a": "g/worker"}
    assert world.held == {}
    assert isinstance(world.filter(world.pods["uid-b"]), Passed)
    world.put(naming("a", "b"))
    assert leaves(world) == AB


def test_a_pod_that_runs_is_a_member_from_when_it_is_named():
    world = world_of(*plain("a", on="n20", phase="Running"))
    placed = started(world, naming("a", "b"), *plain("b"))
    assert leaves(world) == AB
    assert racks(placed) == {"n2"}


def test_a_pod_gang_that_goes_leaves_its_pods_where_they_run():
    world = world_of(naming("a", "b"))
    before = started(world, *plain("a", "b"))
    world.delete(naming("a", "b"))
    assert leaves(world) == {}
    assert started(world) == before
    assert world.told(Evict) == []
    world.put(naming("a", "b"))
    assert leaves(world) == AB
    assert started(world) == before


def test_a_pod_moves_from_the_pod_gang_that_drops_it_to_the_one_that_names_it():
    world = world_of(naming("a", "b", least=1), *plain("a", "b"))
    world.put(naming("a", least=1))
    world.put(naming("b", least=1, name="h"))
    assert leaves(world) == {"a": "g/worker", "b": "h/worker"}


def test_a_pod_that_two_pod_gangs_name_waits_and_is_told_both():
    world = world_of(naming("a", "b"), *plain("a", "b"))
    world.put(naming("b", "c", name="h"))
    finish(world)
    assert on(world) == {}
    told = "pod default/b: spec.podgroups.podReferences: Forbidden: PodGangs g and h name it"
    assert told in sentence(world, "uid-b")
    world.put(naming("c", name="h"))
    finish(world)
    assert len(on(world)) == 2


# -- named while it is being bound -----------------------------------------------------------------


def named_late():
    """A gang has a plan when its PodGang names a pod that is being bound in another rack."""
    world = world_of(naming("b", least=1), *plain("a", "b"))
    world.tick()
    planned = world.held["uid-b"]
    first, elsewhere = world.pods["uid-a"], "n30" if planned[:2] != "n3" else "n00"
    assert isinstance(world.filter(first), Passed)
    (bind,) = world.bind(first, elsewhere)
    world.put(naming("a", "b", least=1))
    assert leaves(world) == {"b": "g/worker"}
    return world, bind, planned


def test_a_gang_starts_nowhere_while_a_pod_named_since_is_being_bound():
    world, bind, planned = named_late()
    world.bind(world.pods["uid-b"], planned)
    assert world.refused == ["uid-b"]
    world.tick(20.0)
    assert world.held.keys() == {"uid-a"}
    waits = "gang default/g waits until the binding of pod a has ended"
    assert world.filter(world.pods["uid-b"]).sentence == waits
    world.confirm([bind])
    finish(world)
    assert leaves(world) == AB
    assert racks(on(world)) == {bind.node[:2]} != {planned[:2]}


def _fails(world, bind):
    world.engine.bind_finished(bind.uid, BindFailed("503"), world.now)


def _is_never_heard_of(world, bind):
    world.tick(61.0)


def _goes(world, bind):
    world.delete(world.pods["uid-a"])


def _is_named_no_longer(world, bind):
    world.put(naming("b", least=1))


@pytest.mark.parametrize("end", [_fails, _is_never_heard_of, _goes, _is_named_no_longer])
def test_a_gang_waits_no_longer_for_a_binding_that_has_ended_or_is_not_its_own(end):
    world, bind, _ = named_late()
    end(world, bind)
    world.tick(10.0)
    assert "uid-b" in world.held


def test_a_gang_that_has_started_goes_on_while_a_pod_named_since_is_being_bound():
    world = world_of(naming("b", least=1))
    started(world, *plain("b"))
    late, last = plain("a", "c")
    world.put(late)
    world.filter(late)
    world.bind(late, "n30")
    world.put(last, naming("a", "b", "c", least=1))
    world.tick()
    assert "uid-c" in world.held


# -- whose word counts -----------------------------------------------------------------------------


def test_a_pod_gang_takes_no_pods_of_another_gang_in_its_namespace():
    """Neither those of a PodGang, nor those of a Job in Kueue's words."""
    group = {"kueue.x-k8s.io/pod-group-name": "train"}
    total = {"kueue.x-k8s.io/pod-group-total-count": "2"}
    trained = plain("t0", "t1", labels=group, annotations=total)
    own = gang("g", pod_group("worker", 2))
    hostile = naming("t0", "t1", "worker-0", "worker-1", name="a", least=100)
    for things in permutations(((own, *labelled(2, "worker")), trained, (hostile,))):
        world = world_of()
        for each in things:
            world.put(*each)
        finish(world)
        gangs = {name: where.partition("/")[0] for name, where in leaves(world).items()}
        assert gangs == {"t0": "train", "t1": "train", "worker-0": "g", "worker-1": "g"}
        assert len(on(world)) == 4


def test_a_pod_gang_takes_no_pods_of_other_namespaces_and_that_is_told():
    made = naming("a")
    foreign = msgspec.structs.replace(made, pods={}, foreign=("other", "b"))
    world = world_of(foreign, msgspec.structs.replace(plain("b")[0], namespace="other"))
    assert leaves(world) == {}
    assert isinstance(world.filter(world.pods["uid-b"]), Passed)
    (told,) = world.engine.warnings()
    assert told == "PodGang default/g names pods of other namespaces, which are not read"


def test_a_pod_of_a_scheduler_that_is_not_ours_is_no_member():
    world = world_of(naming("a"), *plain("a", scheduler="other"))
    assert leaves(world) == {}
    assert world.engine.named_pods.unclaimed == {}


def test_a_pod_gang_with_a_flaw_keeps_the_pods_that_it_names():
    wrong = gang("g", pod_group("worker", -1, names=["a"]))
    world = world_of(wrong, *plain("a"))
    finish(world)
    assert on(world) == {}
    assert "spec.podgroups[0].minReplicas" in sentence(world, "uid-a")
    world.put(naming("a", least=1))
    finish(world)
    assert set(on(world)) == {"a"}


def test_references_that_are_too_many_to_be_read_are_told():
    world = world_of(msgspec.structs.replace(naming(), unread="spec.podgroups: Too many"))
    (told,) = world.engine.warnings()
    assert told == "PodGang default/g names pods that are not read: spec.podgroups: Too many"


# -- bounds ----------------------------------------------------------------------------------------


def test_pods_with_a_node_are_remembered_up_to_a_number_and_those_without_always():
    nodes = [node(f"b0/r0/n{at}", gpus=8) for at in range(2)]
    world = world_of(nodes=nodes)
    world.engine.named_pods.most_unclaimed = 2
    world.put(*plain("r0", "r1", "r2", on="n0", phase="Running"), *plain("a"))
    assert set(world.engine.named_pods.unclaimed) == {"uid-r0", "uid-r1", "uid-a"}
    assert "in no gang" in world.engine.warnings()[0]
    world.put(naming("r2", "a", least=1))
    assert leaves(world) == {"a": "g/worker"}
    world.delete(world.pods["uid-r0"], world.pods["uid-r1"])
    world.put(msgspec.structs.replace(world.pods["uid-r2"], version="9"))
    assert set(leaves(world)) == {"a", "r2"}


def test_pods_that_name_no_pod_gang_do_not_wait_for_one():
    world = world_of(naming("a", "b"))
    fill(world, "n00")
    (other,) = plain("other")
    world.put(other)
    assert not isinstance(world.filter(other), Rejected)
