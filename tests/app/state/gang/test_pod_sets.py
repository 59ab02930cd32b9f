"""Pods that are one too many are counted by pod set (KEP-976 "Retrying Failed Pods")."""

from __future__ import annotations

import msgspec

from app.dialects.corral import POD_SETS
from app.kube.core.objects import PodRecord
from app.state.effects import Bind, Delete
from tests.app.state.stories import finish, go, turn
from tests.app.state.world import World, four_racks
from tests.records import RACK, group, pod

ROLE_HASH = "kueue.x-k8s.io/role-hash"


def driver(name="driver", **more):
    return pod(name, cpu=2000, gpus=0, annotations=group("g", 3, RACK), **more)


def worker(name, **more):
    return pod(name, cpu=1000, gpus=1, annotations=group("g", 3, RACK), **more)


def started(**settings):
    """A driver and two workers run."""
    world = World(four_racks(), [driver(), worker("w0"), worker("w1")], **settings)
    go(world)
    assert all(each.node for each in world.pods.values())
    return world


def of_roles(start: str, **pods: int) -> list[PodRecord]:
    """Pods of a group of four, so many of each role."""
    return [
        pod(f"{start}{role}{at}", annotations={**group("g", 4, RACK), ROLE_HASH: role})
        for role, count in pods.items()
        for at in range(count)
    ]


def fail(world, name):
    lost = world.pods[f"uid-{name}"]
    world.put(msgspec.structs.replace(lost, phase="Failed"))
    return world.pods[lost.uid]


def test_kep_976_a_third_worker_does_not_take_the_slot_of_a_failed_driver():
    world = started(delete_excess_pods=True)
    fail(world, "driver")
    world.put(worker("w2", created="2026-01-01T00:01:00Z"))
    go(world)
    assert [effect.name for effect in world.told(Delete)] == ["w2"]
    world.put(driver("driver-again", created="2026-01-01T00:02:00Z"))
    go(world)
    assert world.pods["uid-driver-again"].node


def test_what_a_gang_started_with_survives_a_restart_and_the_deletion_of_the_failed_pod():
    world = started()
    world.delete(fail(world, "driver"))
    again = World(four_racks(), world.pods.values())
    again.put(worker("w2", created="2026-01-01T00:01:00Z"))
    go(again)
    assert not again.pods["uid-w2"].node
    assert "is one more than" in again.filter(again.pods["uid-w2"]).sentence
    again.put(driver("driver-again", created="2026-01-01T00:02:00Z"))
    go(again)
    assert again.pods["uid-driver-again"].node


def test_a_gang_of_equal_pods_writes_down_no_pod_sets():
    annotations = group("g", 2, RACK)
    world = World(four_racks(), [pod(f"g{i}", gpus=1, annotations=annotations) for i in range(2)])
    go(world)
    binds = world.told(Bind)
    assert len(binds) == 2
    assert all(POD_SETS not in dict(bind.annotations) for bind in binds)


def test_a_pod_of_another_shape_may_stand_in_for_a_lost_one():
    world = started()
    fail(world, "driver")
    larger = pod(
        "driver-again",
        cpu=4000,
        gpus=0,
        annotations=group("g", 3, RACK),
        created="2026-01-01T00:01:00Z",
    )
    world.put(larger)
    go(world)
    assert world.pods[larger.uid].node


def test_pod_sets_of_a_size_the_gang_no_longer_has_are_not_counted():
    world = started()
    for each in list(world.pods.values()):
        grown = {**each.annotations, **group("g", 4, RACK)}
        world.put(msgspec.structs.replace(each, annotations=grown))
    world.put(pod("w2", cpu=1000, gpus=1, annotations=group("g", 4, RACK)))
    go(world)
    assert world.pods["uid-w2"].node


def test_kep_976_with_indexes_the_youngest_is_one_too_many_not_the_highest_index():
    def numbered(index, second, name):
        labels = {"kueue.x-k8s.io/pod-group-pod-index": str(index)}
        created = f"2026-01-01T00:00:0{second}Z"
        return pod(name, labels=labels, annotations=group("g", 2, RACK), created=created)

    pods = [numbered(1, 0, "oldest"), numbered(0, 1, "second"), numbered(0, 2, "youngest")]
    world = World(four_racks(), pods, delete_excess_pods=True)
    assert [effect.name for effect in world.told(Delete)] == ["youngest"]


def test_a_group_that_starts_anew_with_other_pod_sets_counts_those():
    """Pods of its earlier start have failed, and are still there."""
    world = World(four_racks(), of_roles("a", d=1, w=3))
    finish(world)
    for uid in list(world.pods):
        turn(world, uid, "Failed")
    world.put(*of_roles("b", d=2, w=2))
    finish(world)
    assert all(world.pods[f"uid-b{name}"].node for name in ("d0", "d1", "w0", "w1"))
    world.delete(world.pods["uid-bd0"])
    world.put(*of_roles("c", d=1))
    finish(world)
    assert world.pods["uid-cd0"].node
