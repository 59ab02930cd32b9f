"""What members are told at /filter before the watch has shown them."""

from __future__ import annotations

import msgspec
import pytest

from app.state.answers.filtering.members import MOST_EARLY
from tests.app.state.world import Names, World, four_racks, members


def test_a_pod_that_asked_before_the_watch_showed_it_is_remembered_until_then():
    world = World(four_racks())
    first, second = members("g", 2)
    told = world.filter(first).sentence
    assert world.engine.filtering.forget_early(first.uid) == told
    assert world.engine.filtering.forget_early(first.uid) == ""
    assert world.engine.filtering.forget_early(second.uid) == ""


@pytest.mark.slow
def test_of_the_pods_that_the_watch_never_shows_so_many_are_remembered_the_latest():
    world = World(four_racks())
    (pod,) = members("g", 1)
    engine, names = world.engine, Names(["n00"])
    for number in range(MOST_EARLY + 2):
        engine.filter(msgspec.structs.replace(pod, uid=f"uid-{number}"), names, world.now)
    assert len(engine.filtering._early) == MOST_EARLY
    known = [bool(engine.filtering.forget_early(f"uid-{number}")) for number in range(4)]
    assert known == [False, False, True, True]
