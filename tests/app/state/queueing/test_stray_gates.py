"""Our gate goes from pods that the webhook took in for a gang, and that are in none any more."""

from __future__ import annotations

import msgspec
import pytest

from app.dialects import corral
from app.kube.watch.events import Listed
from app.state.effects import Ungate
from tests.app.dialects.grove import objects as grove
from tests.app.dialects.native import objects as native
from tests.app.state.stories import GATED
from tests.app.state.world import LISTED, World, four_racks
from tests.records import group, pod

TAKEN_IN = {corral.MANAGED: "true"}  # as the webhook and the policies label the pods that they gate
OF_QUEUE = {**TAKEN_IN, "kueue.x-k8s.io/queue-name": "team"}
WITH_GROVE = (*LISTED, "PodGang")


def gated(name="p", **more):
    return pod(name, gates=GATED, **{"labels": TAKEN_IN, **more})


def of_native_group():
    return native.member("train-0", gates=GATED, labels=TAKEN_IN)


def with_grove(pods):
    world = World(four_racks(), pods, kinds=WITH_GROVE)
    world.apply(Listed("PodGang", ()))
    assert world.engine.is_synced
    return world


def lifted(world, seconds=15.0, step=1.0):
    """The pods whose gate goes in that time."""
    before = len(world.effects)
    for _ in range(int(seconds / step)):
        world.tick(step)
    return [each.name for each in world.effects[before:] if isinstance(each, Ungate)]


@pytest.mark.parametrize(
    ("member", "settings"),
    [
        pytest.param(of_native_group(), {}, id="of_a_native_group_that_kube_scheduler_starts"),
        pytest.param(
            gated(annotations=group("g", 2)),
            {"scheduler_vocabularies": "corral=grove"},
            id="in_words_that_pods_of_its_scheduler_are_not_read_in",
        ),
        pytest.param(gated(labels=OF_QUEUE), {"kueue_manages": True}, id="that_is_left_to_Kueue"),
        pytest.param(gated(), {}, id="that_says_nothing_any_more"),
    ],
)
def test_a_pod_that_is_in_no_gang_by_the_settings_now_loses_our_gate_and_nothing_else(
    member, settings
):
    world = World(four_racks(), [member], **settings)
    assert world.engine.gangs.by_key == {}
    assert lifted(world) == [member.name]
    (patch,) = world.told(Ungate)
    assert (patch.uid, patch.gate) == (member.uid, corral.GATE)
    assert [*patch.nodes, *patch.selector, *patch.annotations] == []
    world.patch([patch])
    assert lifted(world, 30.0) == []


def test_it_is_sent_again_ever_later_for_as_long_as_the_gate_shows():
    """As one that an admission policy refuses: its owner may make many of them."""
    world = World(four_racks(), [gated()])
    assert lifted(world, 15.0) == ["p"]
    assert lifted(world, 10.0) == ["p"]
    assert len(lifted(world, 3_600.0, step=60.0)) < 15
    assert lifted(world, 600.0, step=60.0) == ["p"]


@pytest.mark.parametrize(
    "waits",
    [
        pytest.param(gated(labels={}), id="whose_gate_is_its_users"),
        pytest.param(gated(scheduler="another"), id="of_another_scheduler"),
        pytest.param(gated(annotations=group("g", 2)), id="whose_gang_is_not_complete"),
        pytest.param(pod("p", labels=TAKEN_IN, gates=("example.com/own",)), id="without_our_gate"),
    ],
)
def test_a_gate_stays_on_a_pod(waits):
    assert lifted(World(four_racks(), [waits]), 60.0, step=5.0) == []


def test_only_the_corral_that_leads_takes_them_off():
    world = World(four_racks(), [gated()])
    world._take(world.inputs.lead(False, world.now))
    assert lifted(world, 60.0) == []
    world._take(world.inputs.lead(True, world.now))
    assert lifted(world, 1.0) == ["p"]


def test_one_that_an_object_names_in_time_keeps_the_gate():
    world = with_grove([gated()])
    assert lifted(world, 5.0) == []
    world.put(grove.gang("g", grove.pod_group("a", 2, names=("p", "another"))))
    assert [key.name for key in world.engine.gangs.by_key] == ["g"]
    assert lifted(world, 60.0) == []


def test_one_that_its_object_leaves_out_is_an_ordinary_one():
    world = with_grove([gated()])
    world.put(grove.gang("g", grove.pod_group("a", 2, names=("p", "another"))))
    assert lifted(world, 20.0) == []
    world.put(grove.gang("g", grove.pod_group("a", 2, names=("another",))))
    assert lifted(world) == ["p"]


def test_a_pod_that_leaves_its_gang_behind_the_gate_is_an_ordinary_one():
    waits = gated(annotations=group("g", 2))
    world = World(four_racks(), [waits])
    assert lifted(world, 20.0) == []
    world.put(msgspec.structs.replace(waits, annotations={}))
    assert lifted(world) == ["p"]


def test_of_very_many_some_go_in_one_tick():
    world = World(four_racks(), [gated(f"p{at}") for at in range(600)])
    world.tick(15.0)
    assert len(world.ungated) == 256
    assert len(lifted(world, 2.0)) == 600 - 256
