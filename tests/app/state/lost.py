"""A gang that runs, a member of it that is lost, and who comes instead."""

from __future__ import annotations

import msgspec

from tests.app.state.world import World, four_racks, members
from tests.records import RACK, group, node, pod

PREFIX = "kueue.x-k8s.io/"


def started(name="g", total=4, **settings):
    """A world where a gang of pods of 8 GPUs runs in one rack."""
    more = {key: settings.pop(key) for key in ("annotations",) if key in settings}
    pods = members(name, total)
    if more:
        extra = {**pods[0].annotations, **more["annotations"]}
        pods = [msgspec.structs.replace(each, annotations=extra) for each in pods]
    world = World(four_racks(), pods, **settings)
    world.schedule(*pods)
    assert all(world.pods[each.uid].node for each in pods)
    world.tick()
    return world


def replacement(name="g9", total=4, **more):
    return pod(name, annotations=group("g", total, RACK), uid=f"uid-{name}", **more)


def failed(world, uid):
    return msgspec.structs.replace(world.pods[uid], phase="Failed")


def not_ready(name):
    """A node of four_racks() that has gone down."""
    return node(f"b{int(name[1]) // 2}/r{name[1]}/{name}", is_ready=False)
