"""What is known of the pods that run, and of those whose containers have started."""

from __future__ import annotations

import msgspec

from app.state.pods.occupants import Occupants
from tests.records import pod
from tests.work import lines_run


def occupants_of(*pods):
    found = Occupants()
    for each in pods:
        found.put(each)
    return found


def test_a_pod_whose_containers_start_is_as_before_but_for_that():
    waits = pod("a", on="n1", phase="Pending", priority=5, labels={"app": "x"})
    runs = msgspec.structs.replace(waits, phase="Running")
    noted, put = occupants_of(waits), occupants_of(runs)
    assert not noted.by_uid[waits.uid].has_begun
    noted.note_phase(runs)
    assert noted.by_uid == put.by_uid
    noted.drop(waits.uid)
    assert not noted.any_below(6)  # it was counted once


def test_a_pod_starts_once_however_it_is_heard_of():
    waits = pod("a", on="n1", phase="Pending")
    runs = msgspec.structs.replace(waits, phase="Running")
    for hear in (Occupants.put, Occupants.note_phase):
        known = occupants_of(waits)
        assert [hear(known, each) for each in (waits, runs, runs)] == [False, True, False]
        known.drop(runs.uid)
        assert known.put(runs)  # as after a restart


def test_a_pod_that_has_begun_costs_nothing_to_hear_of_again():
    runs = pod("a", on="n1", phase="Running")
    known = occupants_of(runs)
    assert lines_run(lambda: known.note_phase(runs)) <= 4


def test_occupants_that_are_recalled_count_like_those_that_were_learned():
    known, copy = occupants_of(pod("a", on="n1", priority=5), pod("b", on="n1")), Occupants()
    copy.recall(known.by_uid, known.names)
    assert (copy.by_uid, copy.names) == (known.by_uid, known.names)
    assert copy.any_below(1)
    copy.drop("uid-b")
    assert not copy.any_below(5)
    assert copy.any_below(6)
