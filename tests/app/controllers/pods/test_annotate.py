"""Notes reach their pods: the newest of each, and what fails is only counted."""

from __future__ import annotations

from contextlib import asynccontextmanager

import pytest

from app.controllers.pods.annotate import MOST_QUEUED, WORKERS, AnnotateController
from app.errors import ApiError, Conflict, NotFound, Unreachable
from app.state.effects import Annotate
from tests.app.controllers.pods.test_wake import Patches
from tests.app.polling import until
from tests.app.running import running


def note(name: str, said: str) -> Annotate:
    return Annotate("team", name, f"uid-{name}", (("corral.dev/succeeded", said),))


@asynccontextmanager
async def outcomes_of(client, *notes, **knobs):
    outcomes = []
    controller = AnnotateController(client, outcomes.append, **knobs)
    for each in notes:
        controller.take(each)
    async with running(controller):
        await until(lambda: outcomes)
        yield outcomes


async def test_of_two_notes_for_a_pod_the_newer_is_written():
    client = Patches()
    async with outcomes_of(client, note("a", "w=1"), note("a", "w=2")) as outcomes:
        assert outcomes == ["written"]
    assert client.patched == [("team", "a", "uid-a", {"corral.dev/succeeded": "w=2"})]


async def test_of_two_notes_that_say_different_things_of_a_pod_both_are_written():
    client = Patches()
    room = Annotate("team", "a", "uid-a", (("corral.dev/room", "r1"),))
    async with outcomes_of(client, note("a", "w=1"), room) as outcomes:
        await until(lambda: len(outcomes) == 2)
    said = [annotations for *_, annotations in client.patched]
    assert said == [{"corral.dev/succeeded": "w=1"}, {"corral.dev/room": "r1"}]


@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        (NotFound(404, "NotFound"), "gone"),
        (Conflict(409, "Conflict"), "gone"),
        (ApiError(500, "InternalError"), "failed"),
        (Unreachable("no route"), "failed"),
        (RuntimeError("bug"), "failed"),
    ],
)
async def test_a_note_that_fails_is_counted_and_not_tried_again(error, outcome):
    client = Patches({"a": error})
    async with outcomes_of(client, note("a", "w=1")) as outcomes:
        assert outcomes == [outcome]
    assert len(client.patched) == 1


async def test_a_server_that_never_answers_is_given_up_in_time():
    client = Patches(is_silent=True)
    async with outcomes_of(client, note("a", "w=1"), patch_seconds=0.02) as outcomes:
        assert outcomes == ["failed"]
    assert len(client.patched) == 1


@pytest.mark.slow
async def test_the_queue_is_bounded_and_what_does_not_fit_is_counted():
    outcomes = []
    controller = AnnotateController(Patches(), outcomes.append)
    for number in range(MOST_QUEUED):
        controller.take(note(str(number), "w=1"))
    assert outcomes == []
    controller.take(note("0", "w=2"))  # it waits already
    controller.take(note("one-more", "w=1"))
    assert outcomes == ["dropped"]


async def test_so_many_notes_are_written_side_by_side():
    client = Patches(is_silent=True)
    notes = [note(str(number), "w=1") for number in range(WORKERS + 3)]
    controller = AnnotateController(client, lambda _: None)
    for each in notes:
        controller.take(each)
    async with running(controller):
        await until(lambda: len(client.patched) >= WORKERS)
        assert len(client.patched) == WORKERS
