"""Marks reach the status of their pods: the newest of each, and none where they are forbidden."""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from app.controllers.pods.mark import GATED_MESSAGE, MOST_QUEUED, MarkController
from app.errors import ApiError, Conflict, NotFound, Unreachable
from app.kube.client.queue.one_try import WORKERS
from app.state.effects import Mark
from tests.app.polling import until
from tests.app.running import running

FORBIDDEN = ApiError(403, "Forbidden", "pods/status")


class Statuses:
    """Takes marks of pods; `problems`: what is raised for a pod, by its name."""

    def __init__(self, problems: dict[str, Exception] | None = None) -> None:
        self.problems = problems or {}
        self.written: list[tuple[str, str, str, str]] = []
        self.times: list[datetime] = []

    async def mark_pod(self, namespace, name, uid, version, *, reason, message, at):  # type: ignore[no-untyped-def]
        self.written.append((f"{namespace}/{name}", f"{uid} {version}", reason, message))
        self.times.append(at)
        if name in self.problems:
            raise self.problems[name]


def mark(name: str, sentence: str = "needs nodes") -> Mark:
    return Mark("team", name, f"uid-{name}", "7", sentence)


@asynccontextmanager
async def outcomes_of(client, *marks, **knobs):
    outcomes = []
    controller = MarkController(client, lambda how, what: outcomes.append((how, what)), **knobs)
    for each in marks:
        controller.take(each)
    async with running(controller):
        await until(lambda: outcomes)
        yield controller, outcomes


async def test_a_mark_says_what_autoscalers_look_for_and_when():
    client = Statuses()
    async with outcomes_of(client, mark("a")) as (_, outcomes):
        assert outcomes == [("mark", "written")]
    assert client.written == [("team/a", "uid-a 7", "Unschedulable", "needs nodes")]
    assert datetime.now(UTC) - client.times[0] < timedelta(minutes=1)


async def test_what_is_taken_back_is_what_the_api_server_wrote_at_first():
    client = Statuses()
    async with outcomes_of(client, mark("a", "")) as (_, outcomes):
        assert outcomes == [("unmark", "written")]
    assert client.written == [("team/a", "uid-a 7", "SchedulingGated", GATED_MESSAGE)]


async def test_of_two_marks_for_a_pod_the_newer_is_written():
    client = Statuses()
    async with outcomes_of(client, mark("a"), mark("a", "")) as (_, outcomes):
        assert outcomes == [("unmark", "written")]
    assert len(client.written) == 1


@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        (NotFound(404, "NotFound"), "gone"),
        (Conflict(409, "Conflict"), "conflict"),
        (ApiError(500, "InternalError"), "failed"),
        (Unreachable("no route"), "failed"),
        (RuntimeError("bug"), "failed"),
        (FORBIDDEN, "refused"),
    ],
)
async def test_a_mark_that_fails_is_counted_and_not_tried_again(error, outcome):
    client = Statuses({"a": error})
    async with outcomes_of(client, mark("a")) as (_, outcomes):
        assert outcomes == [("mark", outcome)]
    assert len(client.written) == 1


async def test_where_marks_are_forbidden_none_is_sent_for_a_while():
    client = Statuses({"a": FORBIDDEN})
    async with outcomes_of(client, mark("a"), refused_seconds=3600.0) as (controller, outcomes):
        for i in range(100):
            controller.take(mark(f"b{i}"))
        await until(lambda: len(outcomes) == 101)
        assert set(outcomes) == {("mark", "refused")}
    assert len(client.written) == 1


async def test_where_marks_are_forbidden_in_one_namespace_others_get_theirs():
    """An admission webhook of one tenant answers 403 as well."""
    client = Statuses({"a": FORBIDDEN})
    other = replace(mark("b"), namespace="other")
    async with outcomes_of(client, mark("a"), refused_seconds=3600.0) as (controller, outcomes):
        controller.take(other)
        await until(lambda: len(outcomes) == 2)
        assert outcomes == [("mark", "refused"), ("mark", "written")]


async def test_they_are_sent_again_after_that():
    client = Statuses({"a": FORBIDDEN})
    async with outcomes_of(client, mark("a"), refused_seconds=0.0) as (controller, outcomes):
        controller.take(mark("b"))
        await until(lambda: len(outcomes) == 2)
        assert outcomes[1] == ("mark", "written")


async def test_what_is_too_many_is_left_out():
    outcomes = []
    controller = MarkController(Statuses(), lambda *what: outcomes.append(what))
    for i in range(MOST_QUEUED + 1):
        controller.take(mark(f"p{i}"))
    assert outcomes == [("mark", "dropped")]
    assert WORKERS < MOST_QUEUED
