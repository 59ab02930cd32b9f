"""The store of gangs: what it takes for news of a member."""

from __future__ import annotations

import msgspec

from tests.app.state.lost import started


def test_an_event_that_says_nothing_new_brings_the_record_up_to_date_and_does_no_more():
    world = started()
    gang = world.gang()
    version, effects = gang.version, len(world.effects)
    said = world.pods["uid-g1"]
    world.put(msgspec.structs.replace(said, phase="Running", version="99"))
    world.tick()
    assert gang.members["uid-g1"].pod.version == "99"
    assert (gang.version, len(world.effects)) == (version, effects)


def test_an_event_that_says_something_new_leads_to_a_roll_call():
    world = started()
    gang = world.gang()
    version = gang.version
    world.put(msgspec.structs.replace(world.pods["uid-g1"], is_terminating=True))
    world.tick()
    assert gang.version != version
