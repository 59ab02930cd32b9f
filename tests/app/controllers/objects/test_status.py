"""Statuses reach the API server: the newest of each object, conflicts tried again."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from datetime import UTC, datetime

import pytest

from app.controllers.objects import status as status_module
from app.controllers.objects.status import MOST_TRIES, StatusController
from app.dialects.spec import GangKey
from app.dialects.written import AT_WRITE
from app.errors import ApiError, Conflict, Forbidden, NotFound, TooManyRequests, Unreachable
from app.kube.client.backoff import FIRST_SECONDS
from app.state.effects import WriteStatus
from tests.app.polling import until

GANG = GangKey("default", "trio", "band")
PATH = "/apis/toys.example.org/v1/namespaces/default/bands/trio"


class Written:
    """Keeps what is patched; fails first with these errors."""

    def __init__(self, *errors):
        self.errors = list(errors)
        self.patches = []
        self.versions = []

    async def patch_status(self, path, uid, status, version=""):
        self.patches.append((path, uid, status))
        self.versions.append(version)
        if self.errors:
            raise self.errors.pop(0)


async def outcomes_of(client, *statuses, lost=None, **knobs):
    outcomes = []
    lost = [] if lost is None else lost
    controller = StatusController(client, outcomes.append, lost.append, **knobs)
    for status in statuses:
        controller.take(status)
    running = asyncio.create_task(controller.run())
    try:
        await until(lambda: outcomes, seconds=60.0)
    finally:
        running.cancel()
        with suppress(asyncio.CancelledError):
            await running
    return outcomes


async def test_a_status_is_merged_into_its_object():
    client = Written()
    assert await outcomes_of(client, WriteStatus(GANG, PATH, "u", {"phase": "placed"})) == [
        "written"
    ]
    assert client.patches == [(PATH, "u", {"phase": "placed"})]


async def test_a_time_in_a_status_is_that_of_the_write():
    client = Written()
    said = {"since": AT_WRITE, "conditions": [{"type": "A", "lastTransitionTime": AT_WRITE}]}
    before = datetime.now(UTC).replace(microsecond=0)
    assert await outcomes_of(client, WriteStatus(GANG, PATH, "u", said)) == ["written"]
    ((_, _, written),) = client.patches
    at = datetime.strptime(written["since"], "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)
    assert before <= at <= datetime.now(UTC)
    assert written["conditions"] == [{"type": "A", "lastTransitionTime": written["since"]}]


async def test_of_two_statuses_that_wait_the_newer_is_written():
    client = Written()
    waiting = (WriteStatus(GANG, PATH, "u", {"phase": phase}) for phase in ("placed", "running"))
    assert await outcomes_of(client, *waiting) == ["written"]
    assert client.patches == [(PATH, "u", {"phase": "running"})]


@pytest.mark.slow
async def test_a_conflict_is_tried_again():
    client = Written(Conflict(409, "Conflict", "stale"))
    assert await outcomes_of(client, WriteStatus(GANG, PATH, "u", {"seated": 1})) == ["written"]
    assert len(client.patches) == 2


@pytest.mark.slow
async def test_a_write_that_is_not_answered_in_time_is_tried_again():
    class SilentAtFirst(Written):
        async def patch_status(self, path, uid, status, version=""):
            await super().patch_status(path, uid, status)
            if len(self.patches) == 1:
                await asyncio.Event().wait()

    client = SilentAtFirst()
    status = WriteStatus(GANG, PATH, "u", {"seated": 1})
    assert await outcomes_of(client, status, write_seconds=0.02) == ["written"]
    assert len(client.patches) == 2


@pytest.mark.slow
async def test_the_pause_the_server_asks_for_is_kept():
    client = Written(TooManyRequests(429, "TooManyRequests", "", 2.0))
    began = time.monotonic()
    assert await outcomes_of(client, WriteStatus(GANG, PATH, "u", {"seated": 1})) == ["written"]
    assert time.monotonic() - began >= 2.0 + FIRST_SECONDS / 2


async def test_what_was_said_of_an_older_version_is_not_tried_again_but_told_as_lost():
    client, lost = Written(Conflict(409, "Conflict", "stale")), []
    status = WriteStatus(GANG, PATH, "u", {"seated": 1}, version="7")
    assert await outcomes_of(client, status, lost=lost) == ["failed"]
    assert client.versions == ["7"]
    assert lost == [status]


async def test_an_object_that_is_gone_is_not_tried_again():
    client = Written(*[NotFound(404, "NotFound", "gone")] * MOST_TRIES)
    assert await outcomes_of(client, WriteStatus(GANG, PATH, "u", {})) == ["gone"]
    assert len(client.patches) == 1


@pytest.mark.parametrize(
    "error",
    [
        pytest.param(Forbidden(403, "Forbidden", "no"), id="forbidden"),
        pytest.param(ApiError(422, "Invalid", "no such field"), id="invalid"),
        pytest.param(RuntimeError("a bug of ours"), id="bug"),
    ],
)
async def test_what_cannot_succeed_is_neither_tried_again_nor_repeated(error):
    client, lost = Written(*[error] * MOST_TRIES), []
    status = WriteStatus(GANG, PATH, "u", {"seated": 1})
    assert await outcomes_of(client, status, lost=lost) == ["failed"]
    assert len(client.patches) == 1
    assert lost == []


async def test_what_does_not_fit_the_queue_is_told_as_lost_and_not_from_inside():
    outcomes, lost = [], []
    controller = StatusController(Written(), outcomes.append, lost.append, most_queued=1)
    first, second = (WriteStatus(GANG, PATH, uid, {}) for uid in "ab")
    controller.take(first)
    assert outcomes == []
    controller.take(second)
    assert (outcomes, lost) == (["dropped"], [])
    await until(lambda: lost)
    assert len(lost) == 1


@pytest.mark.slow
@pytest.mark.parametrize(
    "error",
    [
        pytest.param(Unreachable("away"), id="away"),
        pytest.param(Conflict(409, "Conflict", "stale"), id="conflict"),
        pytest.param(ApiError(500, "InternalError", "a bug of its"), id="broken"),
    ],
)
async def test_what_an_api_server_did_not_take_again_and_again_is_told_as_lost(monkeypatch, error):
    monkeypatch.setattr(status_module, "MOST_TRIES", 2)
    client, lost = Written(*[error] * 2), []
    status = WriteStatus(GANG, PATH, "u", {"seated": 1})
    assert await outcomes_of(client, status, lost=lost) == ["failed"]
    assert len(client.patches) == 2
    assert lost == [status]
