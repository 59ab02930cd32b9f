"""When a gang's members are sorted out again, and who waits for it."""

from __future__ import annotations

import msgspec
import pytest

from app.dialects.corral import GATE
from app.state.filter_result import Pinned
from tests.app.state.world import World, four_racks, members
from tests.records import RACK, group, node


@pytest.mark.parametrize(
    ("changed", "is_pressing"),
    [
        pytest.param({"version": "2"}, None, id="nothing_but_its_version"),
        pytest.param({"phase": "Unknown"}, None, id="its_phase_while_it_is_alive"),
        pytest.param({"nominated_node": "n00"}, None, id="its_nominated_node"),
        pytest.param({"gates": ()}, False, id="its_gate_goes"),
        pytest.param({"gates": (GATE, "example.com/quota")}, True, id="a_foreign_gate"),
        pytest.param({"is_terminating": True}, True, id="it_is_deleted"),
        pytest.param({"phase": "Failed"}, True, id="it_fails"),
        pytest.param({"priority": 5}, True, id="its_priority"),
        pytest.param({"node": "n33"}, True, id="it_is_bound_by_others"),
        pytest.param({"annotations": group("g", 3, RACK)}, True, id="it_declares_another_size"),
        pytest.param({"annotations": group("g", 4)}, True, id="it_asks_for_no_rack_any_more"),
    ],
)
def test_a_change_of_a_member_owes_a_roll_call_only_if_others_depend_on_it(changed, is_pressing):
    some = members("g", 4, gates=(GATE,))[:2]  # two are missing: nothing is planned
    world = World(four_racks(), some)
    world.put(msgspec.structs.replace(some[0], **changed))
    key = world.gang().key
    assert world.engine.gangs.unreviewed.get(key) is is_pressing


def test_no_verb_waits_for_the_roll_call_of_a_member_that_was_bound_as_planned():
    world = World(four_racks(), members("g", 4))
    nodes = dict(world.held)
    effects = [
        effect
        for each in list(world.pods.values())
        for effect in world.bind(each, world.filter(each).node)
    ]
    gang, first = world.gang(), world.pods["uid-g0"]
    reviewed_at = gang.reviewed_at
    world.now += 0.01
    world.confirm(effects[:1])
    assert world.filter(world.pods["uid-g1"]) == Pinned(nodes["uid-g1"])
    assert gang.reviewed_at == reviewed_at
    world.tick()
    assert gang.reviewed_at == world.now
    assert first.uid not in gang.plan.nodes


def test_of_a_large_gang_the_roll_calls_of_ticks_leave_time_for_others():
    nodes = [node(f"b0/r{i // 16}/n{i}") for i in range(64)]
    gang = members("g", 512, required=None, gpus=1)
    world = World(nodes, gang[:509])
    world.put(gang[509])
    world.tick(1.0)
    assert world.gang().membership.members_live == 510
    world.put(gang[510])
    world.tick(0.02)
    assert world.gang().membership.members_live == 510
    world.tick(0.04)
    assert world.gang().membership.members_live == 511
    world.put(gang[511])  # the last one: at once
    assert len(world.held) == 512
