"""Whose request is made next, where only so many may wait for their first answer."""

from __future__ import annotations

import msgspec

from app.state.autoscaling.requests import ACCEPT_SECONDS
from app.state.effects import AskNodes
from tests.app.state.autoscaling.marking import Marking, gated

SETTINGS = {"provisioning_class": "a.example", "provisioning_requests": 1}


def of(namespace, *names, **more):
    """Gangs of a namespace that fit nowhere; nobody serves their class."""
    return [
        msgspec.structs.replace(each, namespace=namespace)
        for name in names
        for each in gated(name, 2, **more)
    ]


def asked(world):
    """The gangs that asked, each once, in this order."""
    return list(dict.fromkeys(each.gang.name for each in world.told(AskNodes)))


def test_a_namespace_with_many_gangs_waits_behind_itself():
    many = [f"many{number}" for number in range(6)]
    world = Marking([], of("greedy", *many), **SETTINGS)
    world.wait(20)
    world.put(*of("modest", "one"))
    world.wait(ACCEPT_SECONDS)
    assert asked(world) == ["many0", "one"]
    world.wait(2 * ACCEPT_SECONDS)
    assert asked(world)[:4] == ["many0", "one", "many1", "many2"]


def test_a_namespace_that_makes_one_gang_after_the_other_does_not_come_first_each_time():
    world = Marking([], of("modest", "one0", "one1", "one2"), **SETTINGS)
    for number in range(4):
        world.put(*of("greedy", f"new{number}"))
        world.wait(ACCEPT_SECONDS + 10)
    assert asked(world)[:4] == ["one0", "new0", "one1", "new1"]


def test_a_higher_priority_comes_before_another_namespaces_turn():
    world = Marking([], of("first", "low0", "low1"), **SETTINGS)
    world.wait(20)
    world.put(*of("second", "low2"), *of("first", "high", priority=10))
    world.wait(2 * ACCEPT_SECONDS)
    assert asked(world) == ["low0", "high", "low2"]
