"""A gang that runs, and what may become of its pods and of the nodes under them."""

from __future__ import annotations

import msgspec
import pytest

from app.kube.core.objects import Taint
from tests.app.state.world import World, four_racks, members
from tests.records import RACK, group, pod

BROKEN = Taint("example.com/broken", "", "NoExecute")
FULL = Taint("example.com/broken", "", "NoSchedule")
CORDON = Taint("node.kubernetes.io/unschedulable", "", "NoSchedule")


def running(pods=2, nodes=None, shape=None, **settings):
    """A gang of pods of 8 GPUs that runs in one rack of four nodes."""
    world = World(nodes or four_racks(), members("g", pods, shape=shape), **settings)
    world.schedule(*world.pods.values())
    world.tick()
    assert all(each.node for each in world.pods.values())
    assert world.held == {}
    return world


def where(world, name="g1"):
    return world.pods[f"uid-{name}"].node


def change(world, name, **fields):
    world.put(msgspec.structs.replace(world.engine.books.nodes[name], **fields))


def remove(world, name):
    world.delete(world.engine.books.nodes[name])


def terminate(world, name="g1"):
    world.put(msgspec.structs.replace(world.pods[f"uid-{name}"], is_terminating=True))


def fail(world, name="g1"):
    world.put(msgspec.structs.replace(world.pods[f"uid-{name}"], phase="Failed"))


def replace(world, name="g1", total=2, gpus=8, **more):
    """The owner makes a new pod; name -> node once it is bound."""
    annotations = more.pop("annotations", None) or group("g", total, RACK)
    fresh = pod(f"{name}-new", annotations=annotations, gpus=gpus, **more)
    world.put(fresh)
    world.tick()
    return world.schedule(fresh)


TRIGGERS = {
    "deleted": lambda world, name: remove(world, name),
    "not_ready": lambda world, name: change(world, name, is_ready=False),
    "no_execute_taint": lambda world, name: change(world, name, taints=(BROKEN,)),
    "no_schedule_taint": lambda world, name: change(world, name, taints=(FULL,)),
    "cordon": lambda world, name: change(world, name, is_unschedulable=True, taints=(CORDON,)),
}
SLOW = {name: trigger for name, trigger in TRIGGERS.items() if name != "deleted"}
each_trigger = pytest.mark.parametrize("trigger", TRIGGERS.values(), ids=TRIGGERS)
each_slow_trigger = pytest.mark.parametrize("trigger", SLOW.values(), ids=SLOW)
