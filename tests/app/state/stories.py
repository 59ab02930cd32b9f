"""Steps of a story: pods go as far as they may, end, and are told why they wait."""

from __future__ import annotations

import msgspec

from app.state.effects import Ungate
from app.state.filter_result import Rejected
from tests.app.state.world import World

GATED = ("corral.dev/gang",)


def go(world, *pods):
    """Patch what is to be patched, then take these pods, or all without a node, to their nodes."""
    world.tick()
    world.patch([effect for effect in world.told(Ungate) if is_gated(world, effect.uid)])
    uids = [each.uid for each in pods] or list(world.pods)
    waiting = [world.pods[uid] for uid in uids if not world.pods[uid].node]
    placed = world.schedule(*[each for each in waiting if each.phase == "Pending"])
    world.tick()
    return placed


def is_gated(world, uid):
    return uid in world.pods and GATED[0] in world.pods[uid].gates


def turn(world, uid, phase):
    world.put(msgspec.structs.replace(world.pods[uid], phase=phase))


def sentence(world, uid):
    answer = world.filter(world.pods[uid])
    assert isinstance(answer, Rejected)
    return answer.sentence


def finish(world: World) -> None:
    """What would happen from here on if everything went well."""
    for _ in range(40):
        world.tick(1.0)
        for record in list(world.pods.values()):
            if GATED[0] in record.gates:
                world.patch([e for e in world.told(Ungate) if e.uid == record.uid][-1:])
        world.schedule(*[p for p in world.pods.values() if not p.node and p.phase == "Pending"])
