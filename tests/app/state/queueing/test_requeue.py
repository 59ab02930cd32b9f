"""Requeues that only show another reason: a few per tick, namespaces taking turns."""

from __future__ import annotations

import msgspec

from app.state.effects import Requeue
from app.state.queueing.requeue import MOST_CORRECTED_PER_TICK
from tests.app.state.world import World, four_racks
from tests.records import RACK, group, pod

GANGS = 10


def member(namespace, gang, number):
    record = pod(f"{gang}-{number}", annotations=group(gang, 2, RACK))
    return msgspec.structs.replace(record, namespace=namespace, uid=f"{namespace}/{gang}-{number}")


def test_a_tenant_with_many_outdated_reasons_leaves_another_its_turn():
    world = World(four_racks(is_cordoned=True))
    gangs = [("loud", f"g{number}") for number in range(GANGS)] + [("quiet", "g")]
    for namespace, gang in gangs:
        world.put(member(namespace, gang, 0))
        world.filter(member(namespace, gang, 0))  # told that the other half is missing
    for namespace, gang in gangs:
        world.put(member(namespace, gang, 1))  # now it is there, and no node is
    ticks = [world.tick() for _ in range(GANGS)]
    asked = [[each.uid for each in effects if isinstance(each, Requeue)] for effects in ticks]
    first, *_ = [uids for uids in asked if uids]
    assert len(first) == MOST_CORRECTED_PER_TICK
    assert "quiet/g-0" in first[:2]
    every = [uid for uids in asked for uid in uids]
    assert sorted(every) == sorted(f"{namespace}/{gang}-0" for namespace, gang in gangs)
