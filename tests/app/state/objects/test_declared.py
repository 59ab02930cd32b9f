"""What is kept of objects is what the cluster has now, whatever they have been before."""

from __future__ import annotations

import json

import msgspec
import pytest

from app.dialects.spec import GangKey
from app.dialects.workloads import WorkloadRecord
from app.dialects.workloads.leader_worker_set import decode_leader_worker_set
from app.kube.core.cached import weight
from app.state.objects.declared import MOST_AROUND, MOST_INSIDE
from tests.app.dialects.native.composites import composite, inner, root
from tests.app.state.world import World, four_racks
from tests.records import RACK
from tests.workload_pods import group_pods, job_set, workload


def restarted() -> list[WorkloadRecord]:
    whole = workload("JobSet", "js", {"w": 2}, level=RACK)
    return [msgspec.structs.replace(whole, restarts=at, version=str(at)) for at in range(5)]


def relabelled() -> list[WorkloadRecord]:
    (job,), _ = job_set("js", {"w": (1, 1)}, RACK)
    names = [{**job.labels, "jobset.sigs.k8s.io/jobset-name": f"js{at}"} for at in range(5)]
    return [msgspec.structs.replace(job, labels=labels) for labels in names]


def scaled_down() -> list[WorkloadRecord]:
    groups = workload("LeaderWorkerSet", "lws", {"worker": 2}, level=RACK)
    return [msgspec.structs.replace(groups, gangs=gangs) for gangs in (500, 2, 0)]


@pytest.mark.parametrize("changes", [restarted, relabelled, scaled_down])
def test_an_object_leaves_the_gangs_that_it_concerns_no_more(changes):
    world = World(four_racks())
    objects = world.engine.objects
    for record in changes():
        world.put(record)
        concerned = {key for key in objects.by_gang if record.uid in objects.by_gang[key]}
        assert concerned == set(objects.dialects.keys_of(record))
    world.delete(record)
    assert objects.by_gang == {}


def test_a_group_that_its_workload_declares_no_more_is_what_its_pods_say():
    groups = workload("LeaderWorkerSet", "lws", {"worker": 3}, level=RACK, gangs=2)
    leader, _ = group_pods("lws", 1, 2, RACK)  # workers know better
    world = World(four_racks(), [leader])
    world.put(groups)
    world.tick()
    assert world.gang().membership.pods == 3
    world.put(msgspec.structs.replace(groups, gangs=1))
    world.tick()
    assert world.gang().membership.pods == 2


def test_an_object_of_which_only_the_status_has_changed_concerns_no_gang():
    (job,), _ = job_set("js", {"w": (1, 1)}, RACK)
    world = World(four_racks(), jobs=[job])
    objects = world.engine.objects
    assert list(objects.put(msgspec.structs.replace(job, version="2"))) == []
    assert len(list(objects.put(msgspec.structs.replace(job, version="3", succeeded=1)))) > 0


def nested(*objects):
    world = World(four_racks(), native_pod_groups="on")
    world.put(*objects)
    return world.engine.objects


def test_objects_inside_one_another_are_found_from_outside_and_from_inside():
    parts = (composite("all", 1), composite("part", 1, inside="all"), inner("a", 1, "part"))
    objects = nested(*parts, composite("other", 1))
    assert {each.name for each in objects.of(root())} == {"all", "part", "a"}
    assert [each.name for each in objects.of(root("part"))] == ["part", "a"]
    key = GangKey("default", "a", "native")
    assert [each.name for each in objects.of(key)] == ["a"]
    assert objects.around(key) == [root("part"), root()]
    assert list(objects.within(root())) == [root(), root("part"), key]


def test_an_object_that_moves_concerns_what_it_was_inside_and_what_it_is_inside_now():
    before, after = composite("part", 1, inside="a"), composite("part", 1, inside="b")
    objects = nested(composite("top", 1), composite("a", 1, inside="top"), before)
    moved = msgspec.structs.replace(after, version="2")
    assert set(objects.put(moved)) == {root("part"), root("a"), root("top"), root("b")}
    assert [each.name for each in objects.of(root("b"))] == ["part"]
    assert set(objects.drop(after.uid)) == {root("part"), root("b")}


def test_a_circle_has_an_end():
    objects = nested(composite("a", 1, inside="b"), composite("b", 1, inside="a"))
    assert {each.name for each in objects.of(root("a"))} == {"a", "b"}
    assert objects.around(root("a")) == [root("b"), root("a")]


def test_of_countless_objects_inside_one_so_many_are_read():
    objects = nested(composite("all", 1), *(inner(f"g{at}", 1) for at in range(MOST_INSIDE + 9)))
    assert len(objects.of(root())) == MOST_INSIDE
    assert len(list(objects.within(root()))) == MOST_INSIDE + 10


def test_a_small_object_of_countless_groups_takes_little_memory():
    """A LeaderWorkerSet of some hundred bytes: its groups have keys with or without pods."""
    spec = {"replicas": 2**31 - 1, "leaderWorkerTemplate": {"size": 8, "workerTemplate": {}}}
    thing = {"metadata": {"namespace": "team", "name": "l", "uid": "u"}, "spec": spec}
    record = decode_leader_worker_set(json.dumps(thing).encode(), keep=lambda _key: True)
    world = World(four_racks())
    world.put(record)
    assert weight(world.engine.objects.by_gang, 2**30) < 2**20


def test_what_is_far_outside_is_not_looked_for_in_objects_far_inside_it():
    """A look down a chain of thousands for each one of them is one for each pair of them."""
    chain = [composite(f"c{at}", 1, inside=f"c{at + 1}") for at in range(3 * MOST_AROUND)]
    objects = nested(*chain)
    outermost = root(f"c{len(chain)}")
    found = list(objects.within(outermost))
    assert len(found) == MOST_AROUND + 1
    assert outermost in objects.around(found[-1])


def test_objects_inside_one_are_walked_through_once_for_all_pods_that_ask():
    objects = nested(composite("all", 1), *(inner(f"g{at}", 1) for at in range(9)))
    found = objects.of(root())
    assert objects.of(root()) is found
    objects.drop(inner("g3", 1).uid)
    assert len(objects.of(root())) == len(found) - 1
    changed = msgspec.structs.replace(inner("g4", 2), version="2")
    assert set(objects.put(changed))
    assert changed in objects.of(root())
    newer = msgspec.structs.replace(changed, version="3")
    assert not list(objects.put(newer)), "news of its status alone"
    assert newer in objects.of(root())
