"""What the priorityClassName of a PodGang says: whose turn it is, and who goes for whom.

Source: grove scheduler/api/core/v1alpha1/podgang.go, PriorityClassName: "the name of the
PriorityClass for the PodGang"; api/core/v1alpha1/podcliqueset.go: it "indicates the priority of the
PodCliqueSet". Its operator does not write it on pods.
"""

from __future__ import annotations

import msgspec
import pytest

from app.dialects.grove.pod_gangs import decode_pod_gang
from app.dialects.grove.priority_classes import KIND, decode_priority_class
from app.kube.watch.events import Listed
from tests.app.dialects.grove.objects import member, pod_gang, pod_group, within
from tests.app.state.histories.test_grove import KINDS, fill, on, racks
from tests.app.state.histories.test_grove import world_of as world_without
from tests.app.state.preempt.test_room_in_every_vocabulary import VOCABULARIES
from tests.app.state.preempt.test_room_in_every_vocabulary import members as waiting_or_running
from tests.app.state.preempt.test_room_plans import Evicting
from tests.app.state.stories import finish
from tests.records import RACK, node


def priority_class(name, value):
    made = {"metadata": {"name": name, "uid": f"uid-class-{name}"}, "value": value}
    return decode_priority_class(msgspec.json.encode(made))


def world_of(*classes):
    """All racks are full but one node of two racks each: no gang of two has room."""
    world = world_without(kinds=(*KINDS, KIND))
    world.apply(Listed(KIND, classes))
    fill(world, *(f"n{rack}{at}" for rack in range(4) for at in range(4)))
    return world


def gang(name, of_class=""):
    made = pod_gang(name, pod_group("w", 2), on=within(RACK))
    made["spec"] |= {"priorityClassName": of_class} if of_class else {}
    return decode_pod_gang(msgspec.json.encode(made))


def wait(world, name, of_class="", **more):
    """A PodGang of two pods, for which there is no room."""
    pods = [member(f"{name}-{at}", "w", of=name, gpus=1, **more) for at in (0, 1)]
    world.put(gang(name, of_class), *pods)
    finish(world)
    assert on(world, name) == {}


def make_room(world):
    """Of two nodes of a rack."""
    world.delete(*(world.pods[f"uid-other-{node}"] for node in ("n00", "n01")))
    finish(world)


@pytest.mark.parametrize(("of_class", "first"), [("", "a"), ("high", "b"), ("low", "a")])
def test_of_two_pod_gangs_that_wait_the_one_of_the_higher_class_is_tried_first(of_class, first):
    world = world_of(priority_class("high", 1000), priority_class("low", -5))
    wait(world, "a")
    wait(world, "b", of_class)
    make_room(world)
    assert {name[0] for name in on(world)} == {first}
    assert racks(on(world)) == {"n0"}


def test_the_class_counts_before_the_priority_of_the_pods():
    world = world_of(priority_class("high", 1000))
    wait(world, "a", priority=500)
    wait(world, "b", "high", priority=10)
    make_room(world)
    assert {name[0] for name in on(world)} == {"b"}


def test_a_class_that_is_not_there_leaves_the_priority_to_the_pods_until_it_is():
    world = world_of()
    wait(world, "a", priority=5)
    wait(world, "b", "high")
    world.put(priority_class("high", 1000))
    world.tick()
    make_room(world)
    assert {name[0] for name in on(world)} == {"b"}


def test_a_class_that_goes_or_is_made_anew_counts_as_it_is():
    world = world_of(priority_class("high", 1000))
    wait(world, "a", priority=5)
    wait(world, "b", "high")
    world.delete(priority_class("high", 1000))
    world.tick()
    assert [world.gang(name).priority for name in "ab"] == [5, 0]
    world.put(priority_class("high", 7))
    world.tick()
    assert [world.gang(name).priority for name in "ab"] == [5, 7]


def test_a_list_without_a_class_is_as_good_as_its_deletion():
    world = world_of(priority_class("high", 1000))
    wait(world, "b", "high")
    world.apply(Listed(KIND, ()))
    world.tick()
    assert world.gang("b").priority == 0


def test_a_pod_gang_that_names_another_class_has_that_one_from_then_on():
    world = world_of(priority_class("high", 1000), priority_class("low", -5))
    wait(world, "b", "high")
    world.put(gang("b", "low"))
    world.tick()
    assert world.gang("b").priority == -5
    world.put(priority_class("high", 2000))
    world.tick()
    assert world.gang("b").priority == -5


@pytest.mark.parametrize(
    ("of_class", "evicted"),
    [("", ["low0", "low1"]), ("high", ["middle0", "middle1"]), ("lower", ["low0", "low1"])],
)
def test_a_running_pod_gang_goes_for_others_by_its_class_and_not_below_its_pods(of_class, evicted):
    gangs = {"low": of_class, "middle": "", "high": ""}
    pods = [each for name in gangs for each in waiting_or_running(VOCABULARIES["grove"], name)]
    world = Evicting(
        [node(f"b0/r{rack}/n{rack}{at}", gpus=1) for rack in range(2) for at in range(2)],
        [],
        waiting=[
            *VOCABULARIES["grove"].objects,
            priority_class("high", 500),
            priority_class("lower", -500),
            *(gang(name, said) for name, said in gangs.items()),
            *pods,
        ],
    )
    assert sorted(world.evicted) == evicted
