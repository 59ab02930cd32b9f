"""List, watch, resume, relist: what a sink hears over real HTTP, and at what pace."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from itertools import pairwise
from random import Random

import pytest

from app.dialects.kueue import topology as of_kueue
from app.dialects.registry import DIALECTS
from app.errors import (
    ApiError,
    CorralError,
    Forbidden,
    NotFound,
    NotListening,
    TooLong,
    TooManyRequests,
    Unreachable,
)
from app.kube.client.transport import LONGEST_OBJECT
from app.kube.core.aside import LARGE_BYTES
from app.kube.decoding.label_keys import LabelKeys
from app.kube.watch.events import Applied, Deleted, Event, Listed
from app.kube.watch.pages import MOST_PAGE_BYTES, MOST_TRIES, PAGE_BYTES
from app.kube.watch.reflector import (
    BYTES_PER_TURN,
    EVENTS_PER_TURN,
    NOT_LISTENING_SECONDS,
    Pace,
    Reflector,
    _Turn,
)
from app.kube.watch.resource import Resource, nodes, pods
from app.process.parts import SILENT_SECONDS
from tests.app.kube.apiserver import Server, page, refusal, reply

TOPOLOGIES = replace(of_kueue.RESOURCE, older=())  # a kind that may be absent, in one version


def node(name: str, version: int, **labels: str) -> dict:
    """A node as the API server writes it."""
    return {"metadata": {"name": name, "resourceVersion": str(version), "labels": labels}}


def line(kind: str, name: str, version: int) -> dict:
    """A line of a watch about one node."""
    return {"type": kind, "object": node(name, version)}


def bookmark(version: int | str) -> dict:
    """A line that says only how far the server is."""
    return {"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": str(version)}}}


def error(code: int, reason: str) -> dict:
    """The line with which a server gives a watch up."""
    status = {"kind": "Status", "status": "Failure", "code": code, "reason": reason}
    return {"type": "ERROR", "object": status}


class Heard:
    """A sink that can be waited for."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.problems: list[CorralError] = []
        self.pauses: list[float] = []
        self._something = asyncio.Event()

    def __call__(self, event: Event) -> None:
        self.events.append(event)
        self._something.set()

    def problem(self, _kind: str, problem: CorralError) -> None:
        self.problems.append(problem)
        self._something.set()

    async def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self._something.set()
        await asyncio.sleep(0)

    async def wait_until(self, is_true: Callable[[], bool]) -> None:
        async with asyncio.timeout(5):
            while not is_true():
                self._something.clear()
                await self._something.wait()

    @property
    def said(self) -> list[str]:
        """The events in short: "listed a b", "applied c@7"."""
        return [told(event) for event in self.events]


def told(event: Event) -> str:
    match event:
        case Listed(_, records):
            return " ".join(["listed", *(record.name for record in records)])
        case Applied(record):
            return f"applied {record.name}@{record.version}"
        case Deleted(record):
            return f"deleted {record.name}@{record.version}"


@asynccontextmanager
async def reflecting(transport, heard: Heard, resource: Resource | None = None, **pace):
    """Run a reflector until the block ends; its pauses are noted, not spent."""
    settings = {"sleep": heard.sleep, "rng": Random(1), **pace}
    reflector = Reflector(
        transport,
        resource or nodes(),
        heard,
        pace=Pace(**settings),
        on_problem=heard.problem,
    )
    running = asyncio.create_task(reflector.run())
    try:
        yield reflector
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


def queries(server: Server, key: str) -> list[str | None]:
    return [asked.query.get(key) for asked in server.asked]


async def test_pages_become_one_listed_event_then_the_watch_follows(server, transport):
    heard = Heard()
    server.script = [
        page([node("a", 1), node("b", 2)], "10", more="next"),
        page([node("c", 3)], "10"),
        server.watch([line("ADDED", "d", 11), line("DELETED", "a", 12)], then="hold"),
    ]
    async with reflecting(transport, heard) as reflector:
        await heard.wait_until(lambda: len(heard.events) == 3)
        assert reflector.is_synced
        assert reflector.seconds_since_last_byte < 5
    assert heard.said == ["listed a b c", "applied d@11", "deleted a@12"]
    first, second, watch = (asked.query for asked in server.asked)
    assert first == {"limit": "500"}
    assert second == {"limit": "500", "continue": "next"}
    assert 240 <= int(watch.pop("timeoutSeconds")) <= 300
    assert watch == {"watch": "true", "allowWatchBookmarks": "true", "resourceVersion": "10"}


async def test_what_is_large_is_read_beside_the_loop_and_told_in_its_turn(server, transport):
    on: list[tuple[str, int]] = []

    def decode(raw):
        record = served.decode(raw)
        on.append((record.name, threading.get_ident()))
        return record

    served = nodes()
    large = {"padding": "x" * LARGE_BYTES}
    added = [line("ADDED", "c", 11), {"type": "ADDED", "object": node("d", 12, **large)}]
    server.script = [
        page([node("a", 1), node("b", 2, **large)], "10"),
        server.watch([*added, line("DELETED", "d", 13)], then="hold"),
    ]
    heard = Heard()
    async with reflecting(transport, heard, replace(served, decode=decode)):
        await heard.wait_until(lambda: len(heard.events) == 4)
    assert heard.said == ["listed a b", "applied c@11", "applied d@12", "deleted d@13"]
    here = threading.get_ident()
    assert {name for name, thread in on if thread != here} == {"b", "d"}


async def test_every_line_of_a_watch_counts_as_heard(server, transport):
    heard, now = Heard(), 0.0
    going_on = asyncio.Event()

    async def watched(request):
        await going_on.wait()
        return await server.watch([line("ADDED", "a", 11)], then="hold")(request)

    server.script = [page([], "10"), watched]
    async with reflecting(transport, heard, clock=lambda: now) as reflector:
        await heard.wait_until(lambda: reflector.is_synced)
        now = 100.0
        assert reflector.seconds_since_last_byte == 100.0
        going_on.set()
        await heard.wait_until(lambda: len(heard.events) == 2)
        assert reflector.seconds_since_last_byte == 0.0


async def test_nothing_is_synced_before_the_last_page(server, transport):
    heard = Heard()
    second_page_is_asked_for = asyncio.Event()

    async def never_answer(request):
        second_page_is_asked_for.set()
        return await server.watch([], then="hold")(request)

    server.script = [page([node("a", 1)], "10", more="next"), never_answer]
    async with reflecting(transport, heard) as reflector:
        await asyncio.wait_for(second_page_is_asked_for.wait(), 5)
        assert not reflector.is_synced
    assert heard.events == []


@pytest.mark.parametrize("then", ["end", "cut"])
async def test_a_watch_that_ends_is_resumed_from_the_last_version(server, transport, then):
    heard = Heard()
    server.script = [
        page([], "10"),
        server.watch([line("ADDED", "a", 11), bookmark(20)], then=then),
        server.watch([line("ADDED", "b", 21)], then=then),
        server.watch([line("ADDED", "c", 22)], then="hold"),
    ]
    async with reflecting(transport, heard):
        await heard.wait_until(lambda: len(heard.events) == 4)
    assert heard.said == ["listed", "applied a@11", "applied b@21", "applied c@22"]
    assert queries(server, "resourceVersion") == [None, "10", "20", "21"]


async def test_a_line_cut_in_the_middle_is_asked_for_again(server, transport):
    heard = Heard()
    server.script = [
        page([], "10"),
        server.watch([line("ADDED", "a", 11), b'{"type":"ADDED","object":{"met'], then="cut"),
        server.watch([line("ADDED", "b", 12)], then="hold"),
    ]
    async with reflecting(transport, heard):
        await heard.wait_until(lambda: len(heard.events) == 3)
    assert heard.said == ["listed", "applied a@11", "applied b@12"]
    assert queries(server, "resourceVersion") == [None, "10", "11"]


async def test_a_watch_that_is_not_answered_is_asked_for_again(server, transport):
    heard = Heard()

    async def never_answer(_request):
        await asyncio.Event().wait()

    server.script = [
        page([], "10"),
        never_answer,
        server.watch([line("ADDED", "a", 11)], then="hold"),
    ]
    async with reflecting(transport, heard, silence_seconds=0.05):
        await heard.wait_until(lambda: len(heard.events) == 2)
    assert queries(server, "resourceVersion")[:3] == [None, "10", "10"]
    assert isinstance(heard.problems[0], Unreachable)


async def test_a_silent_watch_is_resumed_long_before_it_would_end(server, transport):
    heard = Heard()
    server.script = [
        page([], "10"),
        server.watch([line("ADDED", "a", 11)], then="hold"),
        server.watch([line("ADDED", "b", 12)], then="hold"),
    ]
    async with reflecting(transport, heard, silence_seconds=0.05):
        await heard.wait_until(lambda: len(heard.events) == 3)
    assert queries(server, "resourceVersion")[:3] == [None, "10", "11"]
    assert isinstance(heard.problems[0], Unreachable)


@pytest.mark.parametrize(
    "failure",
    [
        pytest.param([error(410, "Expired")], id="an_error_event_410"),
        pytest.param([error(500, "InternalError")], id="any_error_event"),
        pytest.param([error(503, "ServiceUnavailable")], id="an_error_event_that_sounds_mild"),
        pytest.param([{"type": "ERROR", "object": "what"}], id="an_unreadable_error_event"),
        pytest.param([b"garbage\n"], id="a_line_that_is_not_json"),
        pytest.param([b'{"type":"ADDED","object":{"metadata":\n'], id="half_a_line"),
        pytest.param([b"\n"], id="an_empty_line"),
        pytest.param([{"type": "MOVED", "object": {}}], id="an_unknown_event_type"),
        pytest.param([{"object": {}}], id="no_event_type"),
        pytest.param([bookmark(9)], id="a_bookmark_from_before_a_restored_backup"),
    ],
)
async def test_a_watch_that_cannot_go_on_is_listed_anew(server, transport, failure):
    heard = Heard()
    server.script = [
        page([node("a", 1), node("b", 2)], "10"),
        server.watch([line("ADDED", "c", 11), *failure, line("ADDED", "never", 12)], then="hold"),
        page([node("b", 2), node("d", 20)], "30"),
        server.watch([line("ADDED", "e", 31)], then="hold"),
    ]
    async with reflecting(transport, heard):
        await heard.wait_until(lambda: len(heard.events) == 4)
    assert heard.said == ["listed a b", "applied c@11", "listed b d", "applied e@31"]
    assert queries(server, "resourceVersion") == [None, "10", None, "30"]
    assert len(heard.problems) == 1
    assert 0.5 <= heard.pauses[0] <= 1.0


@pytest.mark.parametrize(
    ("seen", "said"),
    [
        pytest.param("10", "a-9", id="no_number"),
        pytest.param("z-10", "9", id="no_number_before"),
        pytest.param("10", "\u0669", id="digits_of_another_script"),
        pytest.param("9" * 20, "9", id="more_digits_than_a_version_has"),
    ],
)
async def test_versions_that_are_no_numbers_are_not_compared(server, transport, seen, said):
    heard = Heard()
    server.script = [
        page([], seen),
        server.watch([bookmark(said)], then="end"),
        server.watch([line("ADDED", "a", 11)], then="hold"),
    ]
    async with reflecting(transport, heard):
        await heard.wait_until(lambda: len(heard.events) == 2)
    assert queries(server, "resourceVersion") == [None, seen, said]
    assert heard.problems == []


async def test_a_forgotten_version_is_listed_anew(server, transport):
    heard = Heard()
    server.script = [
        page([node("a", 1)], "10"),
        refusal(410, "Expired"),
        page([node("b", 2)], "30"),
    ]
    async with reflecting(transport, heard):
        await heard.wait_until(lambda: len(heard.events) == 2)
    assert heard.said == ["listed a", "listed b"]


@pytest.mark.parametrize(
    ("status", "told"),
    [
        pytest.param(
            {"code": 410, "reason": "Expired", "message": "old"},
            (410, "Expired", "old"),
            id="whole",
        ),
        pytest.param({}, (410, "", ""), id="empty"),
        pytest.param({"code": 500, "reason": None, "message": None}, (500, "", ""), id="null"),
        pytest.param(7, (410, "", "unreadable ERROR event"), id="no_status"),
    ],
)
async def test_what_a_server_says_as_it_gives_a_watch_up_is_told(server, transport, status, told):
    heard = Heard()
    server.script = [
        page([], "10"),
        server.watch([{"type": "ERROR", "object": status}], then="hold"),
        page([], "20"),
        server.watch([], then="hold"),
    ]
    async with reflecting(transport, heard):
        await heard.wait_until(lambda: len(heard.events) == 2)
    (problem,) = heard.problems
    assert (problem.status, problem.reason, problem.message) == told


async def test_a_page_that_is_forgotten_restarts_the_list(server, transport):
    heard = Heard()
    server.script = [
        page([node("a", 1)], "10", more="next"),
        refusal(410, "Expired"),
        page([node("b", 1)], "12", more="other"),
        page([node("c", 1)], "12"),
    ]
    async with reflecting(transport, heard):
        await heard.wait_until(lambda: len(heard.events) == 1)
    assert heard.said == ["listed b c"]
    assert queries(server, "continue")[:4] == [None, "next", None, "other"]


async def test_a_page_that_is_refused_for_now_is_asked_for_again_and_not_those_before_it(
    server, transport
):
    heard = Heard()
    server.script = [
        page([node("a", 1)], "10", more="next"),
        refusal(429, "TooManyRequests", Retry_After="7"),
        refusal(503, "ServiceUnavailable"),
        page([node("b", 1)], "10", more="other"),
        refusal(500, "InternalError"),
        page([node("c", 1)], "10"),
    ]
    async with reflecting(transport, heard):
        await heard.wait_until(lambda: len(heard.events) == 1)
    assert heard.said == ["listed a b c"]
    assert queries(server, "continue")[:6] == [None, "next", "next", "next", "other", "other"]
    assert [problem.status for problem in heard.problems] == [429, 503, 500]
    assert heard.pauses[0] == 7.0
    assert all(0.5 <= pause <= 8.0 for pause in heard.pauses)


async def test_a_page_that_is_refused_again_and_again_restarts_the_list(server, transport):
    heard = Heard()
    server.script = [
        page([node("a", 1)], "10", more="next"),
        *[refusal(503, "ServiceUnavailable")] * MOST_TRIES,
        page([node("b", 1)], "12"),
    ]
    async with reflecting(transport, heard):
        await heard.wait_until(lambda: len(heard.events) == 1)
    assert heard.said == ["listed b"]
    assert len(heard.problems) == MOST_TRIES


@pytest.mark.parametrize("is_cut", [True, False])
async def test_a_page_that_is_not_answered_or_only_much_later_restarts_the_list(
    server, transport, is_cut
):
    heard = Heard()
    late = refusal(503, "ServiceUnavailable", Retry_After="120")
    server.script = [
        page([node("a", 1)], "10", more="next"),
        server.watch([b"{"], then="cut") if is_cut else late,
        page([node("b", 1)], "12"),
    ]
    async with reflecting(transport, heard):
        await heard.wait_until(lambda: len(heard.events) == 1)
    assert heard.said == ["listed b"]


@pytest.mark.parametrize(
    ("body", "why"),
    [
        pytest.param("not json", "malformed", id="text"),
        pytest.param({"items": []}, "no metadata.resourceVersion", id="no_version"),
        pytest.param({"items": {}}, "items", id="items_is_no_list"),
    ],
)
async def test_a_list_that_cannot_be_read_is_asked_for_again(server, transport, body, why):
    heard = Heard()
    server.script = [reply(200, body), page([node("a", 1)], "10")]
    async with reflecting(transport, heard):
        await heard.wait_until(lambda: len(heard.events) == 1)
    assert heard.said == ["listed a"]
    assert why in str(heard.problems[0])


async def test_one_object_that_cannot_be_read_does_not_hide_the_others(server, transport):
    heard = Heard()
    broken = {"metadata": {"name": 7}}
    server.script = [
        page([node("a", 1), broken, node("b", 2)], "10"),
        server.watch(
            [{"type": "ADDED", "object": broken}, line("ADDED", "c", 12)],
            then="hold",
        ),
    ]
    async with reflecting(transport, heard):
        await heard.wait_until(lambda: len(heard.events) == 2)
    assert heard.said == ["listed a b", "applied c@12"]
    assert ["$.metadata.name" in str(problem) for problem in heard.problems] == [True, True]
    assert len(server.asked) == 2


async def test_a_request_to_slow_down_is_honoured_without_a_relist(server, transport):
    heard = Heard()
    server.script = [
        page([], "10"),
        refusal(429, "TooManyRequests", Retry_After="17"),
        server.watch([line("ADDED", "a", 11)], then="hold"),
    ]
    async with reflecting(transport, heard):
        await heard.wait_until(lambda: len(heard.events) == 2)
    assert heard.pauses == [17.0]
    assert isinstance(heard.problems[0], TooManyRequests)
    assert queries(server, "resourceVersion") == [None, "10", "10"]


async def test_an_absent_crd_is_an_empty_list_and_looked_for_calmly(server, transport):
    heard = Heard()
    topology = {"metadata": {"name": "t", "resourceVersion": "3"}, "spec": {"levels": []}}
    server.script = [refusal(404, "NotFound"), refusal(404, "NotFound"), page([topology], "9")]
    async with reflecting(transport, heard, TOPOLOGIES) as reflector:
        await heard.wait_until(lambda: len(heard.events) == 2)
        assert reflector.is_synced
    assert heard.said == ["listed", "listed t"]
    assert heard.events[0] == Listed("Topology", ())
    assert heard.pauses == [30.0, 30.0]
    assert heard.problems == []


async def test_an_optional_kind_our_role_does_not_know_is_told_and_keeps_nobody_waiting(
    server, transport
):
    heard = Heard()
    topology = {"metadata": {"name": "t", "resourceVersion": "3"}}
    server.script = [refusal(403, "Forbidden"), page([topology], "9")]
    async with reflecting(transport, heard, TOPOLOGIES):
        await heard.wait_until(lambda: len(heard.events) == 2)
    assert heard.said == ["listed", "listed t"]
    assert [type(problem) for problem in heard.problems] == [Forbidden]
    assert heard.pauses[0] == 30.0


async def test_an_optional_kind_that_stays_forbidden_is_looked_for_calmly_and_is_not_silent(
    server, transport
):
    heard, now = Heard(), 0.0

    async def sleep(seconds: float) -> None:
        nonlocal now
        now += seconds
        await heard.sleep(seconds)

    server.script = [refusal(403, "Forbidden")] * 8
    pace = {"sleep": sleep, "clock": lambda: now}
    async with reflecting(transport, heard, TOPOLOGIES, **pace) as reflector:
        await heard.wait_until(lambda: len(heard.problems) == 8)
        assert reflector.is_synced
        assert reflector.seconds_since_last_byte <= 30.0
    assert heard.pauses[:7] == [30.0] * 7
    assert heard.said == ["listed"]


async def test_a_right_that_is_lost_later_does_not_take_the_objects_away(server, transport):
    heard = Heard()
    topology = {"metadata": {"name": "t", "resourceVersion": "3"}}
    server.script = [page([topology], "9"), refusal(403, "Forbidden"), refusal(403, "Forbidden")]
    async with reflecting(transport, heard, TOPOLOGIES):
        await heard.wait_until(lambda: len(heard.problems) == 2)
    assert heard.said == ["listed t"]


@pytest.mark.parametrize(("is_optional", "silent"), [(True, 0.0), (False, 100.0)])
async def test_a_right_that_is_lost_is_no_silence_where_one_can_do_without(
    server, transport, is_optional, silent
):
    heard, now = Heard(), 0.0

    async def refused_later(request):
        nonlocal now
        now = 100.0
        return await refusal(403, "Forbidden")(request)

    server.script = [page([], "9"), refused_later]
    resource = replace(TOPOLOGIES, is_optional=is_optional)
    async with reflecting(transport, heard, resource, clock=lambda: now) as reflector:
        await heard.wait_until(lambda: bool(heard.problems))
        assert reflector.seconds_since_last_byte == silent


async def test_a_crd_that_is_removed_takes_its_objects_with_it(server, transport):
    heard = Heard()
    topology = {"metadata": {"name": "t", "resourceVersion": "3"}}
    server.script = [page([topology], "9"), refusal(404, "NotFound"), refusal(404, "NotFound")]
    async with reflecting(transport, heard, TOPOLOGIES):
        await heard.wait_until(lambda: len(heard.pauses) == 2)
    assert heard.said == ["listed t", "listed"]
    assert [type(problem) for problem in heard.problems] == [NotFound]  # once


async def test_a_kind_is_read_in_the_newest_version_that_is_served(server, transport):
    heard = Heard()
    newest = replace(TOPOLOGIES, path="/new", older=(replace(TOPOLOGIES, path="/old"),))
    absent = refusal(404, "NotFound")
    old = {"metadata": {"name": "old", "resourceVersion": "3"}}
    new = {"metadata": {"name": "new", "resourceVersion": "4"}}
    server.script = [
        *(absent, absent),  # none is served
        *(absent, page([old], "9"), server.watch([]), absent),  # the older one, until it goes
        page([new], "10"),
    ]
    async with reflecting(transport, heard, newest):
        await heard.wait_until(lambda: len(heard.events) == 3)
    assert heard.said == ["listed", "listed old", "listed new"]
    paths = [asked.path for asked in server.asked[:7]]
    assert paths == ["/new", "/old", "/new", "/old", "/old", "/old", "/new"]
    assert heard.problems == []


async def test_a_missing_resource_that_is_not_optional_is_a_problem(server, transport):
    heard = Heard()
    server.script = [refusal(404, "NotFound"), page([node("a", 1)], "10")]
    async with reflecting(transport, heard) as reflector:
        await heard.wait_until(lambda: len(heard.problems) == 1)
        assert not reflector.is_synced
        await heard.wait_until(lambda: len(heard.events) == 1)
    assert heard.said == ["listed a"]


async def test_an_outage_ends_in_the_state_of_the_server(server, transport):
    heard = Heard()
    server.script = [
        page([node("a", 1)], "10"),
        refusal(503, "ServiceUnavailable"),
        refusal(500, "InternalError"),
        refusal(503, "ServiceUnavailable"),
        page([node("b", 12)], "13"),
    ]
    async with reflecting(transport, heard):
        await heard.wait_until(lambda: len(heard.events) == 2)
    assert heard.said == ["listed a", "listed b"]
    assert heard.pauses == sorted(heard.pauses)


async def test_a_relist_ends_the_watch_and_lists_once_more(server, transport):
    heard = Heard()
    server.script = [
        page([node("a", 1)], "10"),
        server.watch([line("ADDED", "b", 11)], then="hold"),
        page([node("c", 12)], "20"),
        server.watch([line("ADDED", "d", 21)], then="hold"),
    ]
    async with reflecting(transport, heard) as reflector:
        await heard.wait_until(lambda: len(heard.events) == 2)
        reflector.relist()
        await heard.wait_until(lambda: len(heard.events) == 4)
    assert heard.said == ["listed a", "applied b@11", "listed c", "applied d@21"]
    assert queries(server, "resourceVersion") == [None, "10", None, "20"]
    assert heard.problems == []


async def test_relists_asked_for_twice_in_a_row_are_one_list(server, transport):
    heard = Heard()
    server.script = [
        page([], "10"),
        server.watch([line("ADDED", "a", 11)], then="hold"),
        page([], "20"),
        server.watch([line("ADDED", "b", 21)], then="hold"),
        page([node("never", 1)], "30"),
    ]
    async with reflecting(transport, heard) as reflector:
        await heard.wait_until(lambda: len(heard.events) == 2)
        reflector.relist()
        await asyncio.sleep(0)  # the watch has been told to end
        reflector.relist()
        await heard.wait_until(lambda: len(heard.events) == 4)
    assert heard.said == ["listed", "applied a@11", "listed", "applied b@21"]
    assert len(server.asked) == 4


async def test_a_list_under_way_is_delivered_and_another_one_follows_a_relist(server, transport):
    heard = Heard()
    second_page_is_asked_for, may_answer = asyncio.Event(), asyncio.Event()

    async def answer_late(request):
        second_page_is_asked_for.set()
        await may_answer.wait()
        return await page([node("b", 2)], "10")(request)

    server.script = [
        page([node("a", 1)], "10", more="next"),
        answer_late,
        page([node("c", 12)], "20"),
    ]
    async with reflecting(transport, heard) as reflector:
        await asyncio.wait_for(second_page_is_asked_for.wait(), 5)
        reflector.relist()
        may_answer.set()
        await heard.wait_until(lambda: len(heard.events) == 2)
    assert heard.said == ["listed a b", "listed c"]
    assert [asked.query.get("watch") for asked in server.asked[:3]] == [None, None, None]


@pytest.mark.parametrize("status", [500, 503])
async def test_a_relist_while_the_server_is_down_is_made_up_for(server, transport, status):
    heard = Heard()
    server.script = [
        page([node("a", 1)], "10"),
        server.watch([line("ADDED", "b", 11)], then="hold"),
        refusal(status),
        refusal(status),
        page([node("c", 12)], "20"),
        server.watch([line("ADDED", "d", 21)], then="hold"),
    ]
    async with reflecting(transport, heard) as reflector:
        await heard.wait_until(lambda: len(heard.events) == 2)
        reflector.relist()
        await heard.wait_until(lambda: len(heard.problems) == 1)
        reflector.relist()
        await heard.wait_until(lambda: len(heard.events) == 4)
    assert heard.said == ["listed a", "applied b@11", "listed c", "applied d@21"]
    assert len(heard.problems) == 2


async def test_a_relist_before_the_first_list_is_that_list(server, transport):
    heard = Heard()
    server.script = [page([node("a", 1)], "10"), server.watch([line("ADDED", "b", 11)], "hold")]
    reflector = Reflector(transport, nodes(), heard, on_problem=heard.problem)
    reflector.relist()
    running = asyncio.create_task(reflector.run())
    await heard.wait_until(lambda: len(heard.events) == 2)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    assert heard.said == ["listed a", "applied b@11"]


async def test_a_reflector_is_cancelled_as_well_right_after_a_relist(server, transport):
    heard = Heard()
    server.script = [page([], "10"), server.watch([line("ADDED", "a", 11)], then="hold")]
    async with reflecting(transport, heard) as reflector:
        await heard.wait_until(lambda: len(heard.events) == 2)
        reflector.relist()
    assert heard.said == ["listed", "applied a@11"]


async def test_a_list_is_of_the_edition_with_which_it_began(server, transport):
    heard, labels = Heard(), LabelKeys(lambda key: key == "gang")
    items = [
        {"metadata": {"name": name, "resourceVersion": "1", "labels": {"part": name}}}
        for name in ("a", "b")
    ]

    async def meanwhile_the_key_is_named(request):
        labels.add("part")
        return await page(items[1:], "10")(request)

    server.script = [
        page(items[:1], "10", more="next"),
        meanwhile_the_key_is_named,
        server.watch([{"type": "ADDED", "object": items[1]}], then="hold"),
        page(items, "20"),
    ]
    async with reflecting(transport, heard, pods(labels.always, labels)) as reflector:
        await heard.wait_until(lambda: len(heard.events) == 2)
        reflector.relist()
        await heard.wait_until(lambda: len(heard.events) == 3)
    seen = [
        (listed.edition, *(each.labels.get("part") for each in listed.records))
        for listed in heard.events
        if isinstance(listed, Listed)
    ]
    assert seen == [(0, None, "b"), (1, "a", "b")]


async def test_a_time_out_of_the_sink_is_not_taken_for_a_relist(server, transport):
    server.script = [page([], "10"), server.watch([line("ADDED", "a", 11)], then="hold")]

    def sink(event: Event) -> None:
        if isinstance(event, Applied):
            raise TimeoutError("a bug")

    reflector = Reflector(transport, nodes(), sink)
    with pytest.raises(TimeoutError, match="a bug"):
        await asyncio.wait_for(reflector.run(), 5)


async def test_each_resource_is_read_where_the_api_has_it(server, transport):
    everything = DIALECTS.resources(lambda _key: True)
    item = {"metadata": {"namespace": "team", "name": "x", "resourceVersion": "1"}}
    for resource in everything:
        server.script.append(page([item], "5"))
        heard = Heard()
        async with reflecting(transport, heard, resource):
            await heard.wait_until(lambda heard=heard: len(heard.events) == 1)
        (listed,) = heard.events
        assert listed.kind == resource.kind
        (record,) = listed.records
        assert type(record) is resource.record
        assert getattr(record, "kind", resource.kind) == resource.kind
        server.script.clear()
    lists = [asked.path for asked in server.asked if "watch" not in asked.query]
    assert sorted(lists) == [
        "/api/v1/nodes",
        "/api/v1/pods",
        "/api/v1/resourcequotas",
        "/apis/apps/v1/statefulsets",
        "/apis/batch.volcano.sh/v1alpha1/jobs",
        "/apis/batch/v1/jobs",
        "/apis/grove.io/v1alpha1/clustertopologies",
        "/apis/grove.io/v1alpha1/clustertopologybindings",
        "/apis/jobset.x-k8s.io/v1alpha2/jobsets",
        "/apis/kai.scheduler/v1alpha1/topologies",
        "/apis/kubeflow.org/v1/jaxjobs",
        "/apis/kubeflow.org/v1/paddlejobs",
        "/apis/kubeflow.org/v1/pytorchjobs",
        "/apis/kubeflow.org/v1/tfjobs",
        "/apis/kubeflow.org/v1/xgboostjobs",
        "/apis/kubeflow.org/v2beta1/mpijobs",
        "/apis/kueue.x-k8s.io/v1beta2/topologies",
        "/apis/leaderworkerset.x-k8s.io/v1/leaderworkersets",
        "/apis/policy/v1/poddisruptionbudgets",
        "/apis/resource.k8s.io/v1/deviceclasses",
        "/apis/scheduler.grove.io/v1alpha1/podgangs",
        "/apis/scheduling.k8s.io/v1/priorityclasses",
        "/apis/scheduling.run.ai/v2alpha2/podgroups",
        "/apis/scheduling.volcano.sh/v1beta1/podgroups",
        "/apis/scheduling.volcano.sh/v1beta1/queues",
        "/apis/topology.volcano.sh/v1alpha1/hypernodes",
    ]


def test_what_every_api_server_serves_is_there_or_something_is_wrong():
    optional = {each.kind: each.is_optional for each in DIALECTS.resources()}
    assert [kind for kind, may_be_absent in optional.items() if not may_be_absent] == [
        "Node",
        "Pod",
        "Job",
        "ResourceQuota",
    ]


class Broken:
    """A source in virtual time: lists at once; each watch lasts as told, the last ones alike."""

    line = b'{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"2"}}}'

    def __init__(
        self,
        *watches_last: float,
        lines: int = 0,
        size: int = 0,
        failure: CorralError | None = None,
        list_lasts: float = 0.0,
    ) -> None:
        self.now = 0.0
        self.attempts: list[float] = []
        self.lists: list[float] = []
        self.unheard = 0.0  # for so long at most
        self._list_lasts = list_lasts
        self.turns = 0
        self._watches_last = list(watches_last or [0.0])
        self._lines = lines
        self._padding = b" " * size
        self._failure = failure

    async def request(
        self,
        _method: str,
        _path: str,
        *,
        params: Mapping[str, str],
        timeout: float,
        most_bytes: int,
    ) -> bytes:
        if self._failure is not None:
            self.attempts.append(self.now)
        self.now += self._list_lasts
        if self._failure is not None:
            raise self._failure
        self.lists.append(self.now)
        return b'{"metadata":{"resourceVersion":"1"},"items":[]}'

    async def stream(
        self, _path: str, params: Mapping[str, str], read_timeout: float
    ) -> AsyncGenerator[bytes, None]:
        self.attempts.append(self.now)
        for _ in range(self._lines):
            yield self.line + self._padding
        several = len(self._watches_last) > 1
        self.now += self._watches_last.pop(0) if several else self._watches_last[0]

    async def sleep(self, seconds: float) -> None:
        self.now += seconds
        await asyncio.sleep(0)

    async def run_until(self, end: float) -> None:
        """Mirror from this source until its clock says `end`."""
        pace = Pace(clock=lambda: self.now, sleep=self.sleep, rng=Random(3))
        heard = Heard()
        reflector = Reflector(self, nodes(), heard, pace=pace, on_problem=heard.problem)
        running = asyncio.create_task(reflector.run())
        while self.now < end:
            await asyncio.sleep(0)
            self.turns += 1
            self.unheard = max(self.unheard, reflector.seconds_since_last_byte)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


@pytest.mark.parametrize(
    "trouble",
    [
        pytest.param({}, id="every_watch_ends_at_once"),
        pytest.param({"lines": 1}, id="every_watch_ends_after_one_line"),
        pytest.param({"failure": Unreachable("no answer")}, id="nothing_answers"),
    ],
)
async def test_trouble_is_met_with_at_most_five_attempts_in_ten_seconds(trouble):
    source = Broken(**trouble)
    await source.run_until(60.0)
    assert sum(moment <= 10.0 for moment in source.attempts) <= 5
    assert 5 <= len(source.attempts) <= 20


async def test_where_nothing_listens_it_is_tried_every_other_second_at_least():
    source = Broken(failure=NotListening("refused"))
    await source.run_until(60.0)
    pauses = [after - before for before, after in pairwise(source.attempts)]
    assert max(pauses) <= NOT_LISTENING_SECONDS
    assert min(pauses) >= 0.5


async def test_an_outage_makes_no_pause_longer_that_comes_after_it(server, transport):
    heard = Heard()
    refused = [NotListening("refused")] * 5

    class Restarting:
        """Nothing listens there at first; then it is the server."""

        def stream(self, path, params, read_timeout):
            return transport.stream(path, params, read_timeout)

        async def request(self, method, path, **how):
            if refused:
                raise refused.pop()
            return await transport.request(method, path, **how)

    server.script = [refusal(503, "ServiceUnavailable"), page([node("a", 1)], "10")]
    async with reflecting(Restarting(), heard):
        await heard.wait_until(lambda: len(heard.events) == 1)
    assert len(heard.pauses) >= 6
    assert 0.5 <= heard.pauses[5] <= 1.0


@pytest.mark.parametrize("lasts", [20.0, 35.0, 50.0, 75.0])
async def test_watches_that_are_cut_before_they_say_anything_do_not_make_a_kind_silent(lasts):
    """As HAProxy does in front of API servers, after 35 s in the documentation of kubeadm."""
    source = Broken(lasts)
    await source.run_until(3600.0)
    assert source.unheard <= SILENT_SECONDS
    assert len(source.lists) <= 3600 / 100


async def test_watches_that_say_something_are_resumed_without_a_list():
    source = Broken(75.0, lines=1)
    await source.run_until(3600.0)
    assert len(source.lists) == 1


async def test_where_no_connection_is_made_no_list_is_asked_for_either():
    source = Broken(75.0, 10.0)  # a connection that dies, then none within ten seconds
    await source.run_until(600.0)
    assert len(source.lists) == 1


async def test_watches_that_last_are_resumed_at_once():
    source = Broken(270.0)
    await source.run_until(2700.0)
    assert source.attempts[:4] == [0.0, 270.0, 540.0, 810.0]


async def test_a_watch_that_lasted_makes_the_next_pause_short_again():
    source = Broken(0.0, 0.0, 0.0, 0.0, 30.0, 0.0)
    await source.run_until(120.0)
    steady, short, after = source.attempts[4:7]
    assert short == steady + 30.0
    assert 0.5 <= after - short <= 1.0


async def test_watches_cut_every_few_seconds_are_blind_for_less_than_a_second_each_time():
    source = Broken(*[4.0] * 40)
    await source.run_until(100.0)
    pauses = [after - before - 4.0 for before, after in pairwise(source.attempts)]
    assert len(pauses) >= 15
    assert max(pauses) <= 1.0


@pytest.mark.parametrize(
    ("lasts", "longest"),
    [
        pytest.param(10.0, 0.0, id="steady"),
        pytest.param(9.5, 1.0, id="not_steady"),
        pytest.param(2.0, 1.0, id="with_progress"),
        pytest.param(1.5, 10.0, id="without"),
    ],
)
async def test_how_long_a_watch_lasted_says_how_long_the_pause_after_it_is(lasts, longest):
    source = Broken(*[lasts] * 40)
    await source.run_until(100.0)
    pauses = [after - before - lasts for before, after in pairwise(source.attempts[:9])]
    assert longest / 2 <= max(pauses) <= longest


@pytest.mark.parametrize("list_lasts", [3.0, 12.0, 60.0])
@pytest.mark.parametrize("failure", [None, ApiError(504, "Timeout")], ids=["watch", "list"])
async def test_a_list_that_takes_long_makes_no_pause_shorter(list_lasts, failure):
    source = Broken(lines=1, failure=failure, list_lasts=list_lasts)
    source.line = b"garbage"
    await source.run_until(20 * list_lasts)
    pauses = [after - before - list_lasts for before, after in pairwise(source.attempts)]
    assert min(pauses) >= 0.5
    assert min(pauses[3:]) >= 4.0


async def test_a_burst_of_lines_leaves_turns_to_others():
    source = Broken(270.0, lines=3200)
    await source.run_until(260.0)
    assert source.turns >= 100


# -- large objects -------------------------------------------------------------------------------


def as_go_writes(kind: str, content: object, escaped: bytes = b"") -> bytes:
    """A line without blanks; `@` in the object stands for these bytes."""
    text = json.dumps(content, separators=(",", ":")).encode().replace(b"@", escaped)
    return b'{"type":"%b","object":%b}\n' % (kind.encode(), text)


def pod_of(name: str, version: int, argument: str) -> dict:
    metadata = {"namespace": "team", "name": name, "uid": name, "resourceVersion": str(version)}
    return {"metadata": metadata, "spec": {"containers": [{"name": "c", "args": [argument]}]}}


async def test_a_pod_that_is_all_escapes_is_one_event_and_no_relist(server, transport):
    """1.5 MiB of `<` in etcd: a line of 9 MiB."""
    heard = Heard()
    escaped = b"\\u003c" * (3 * 2**19)
    server.script = [
        page([], "10"),
        server.watch(
            [
                as_go_writes("ADDED", pod_of("huge", 11, "@"), escaped),
                as_go_writes("MODIFIED", pod_of("small", 12, "")),
                as_go_writes("DELETED", pod_of("huge", 13, "@"), escaped),
            ],
            then="hold",
        ),
    ]
    async with reflecting(transport, heard, pods(DIALECTS.keeps)):
        await heard.wait_until(lambda: len(heard.events) == 4)
    assert heard.said == ["listed", "applied huge@11", "applied small@12", "deleted huge@13"]
    assert heard.problems == []
    assert len(server.asked) == 2


@pytest.mark.parametrize(
    ("line", "said"),
    [
        pytest.param(as_go_writes("ADDED", node("a", 11)), "applied a@11", id="added"),
        pytest.param(as_go_writes("MODIFIED", node("a", 11)), "applied a@11", id="modified"),
        pytest.param(as_go_writes("DELETED", node("a", 11)), "deleted a@11", id="deleted"),
        pytest.param(
            as_go_writes("ADDED", node("a", 11))[:-2] + b',"type":"DELETED"}\n',
            "deleted a@11",
            id="another_type_follows",
        ),
        pytest.param(
            b'{"object":' + json.dumps(node("a", 11)).encode() + b',"type":"ADDED"}\n',
            "applied a@11",
            id="the_object_first",
        ),
    ],
)
async def test_a_line_says_the_same_however_it_is_written(server, transport, line, said):
    heard = Heard()
    server.script = [page([], "10"), server.watch([line], then="hold")]
    async with reflecting(transport, heard):
        await heard.wait_until(lambda: len(heard.events) == 2)
    assert heard.said == ["listed", said]


@pytest.mark.parametrize(
    "tail",
    [
        pytest.param(b"}}}\n", id="one_brace_too_many"),
        pytest.param(b"}\n", id="one_brace_too_few"),
        pytest.param(b'}},"x"}\n', id="a_key_without_value"),
    ],
)
async def test_a_line_that_only_begins_well_is_listed_anew(server, transport, tail):
    heard = Heard()
    broken = as_go_writes("ADDED", node("a", 11)).rstrip(b"}\n") + b"}}" + tail
    server.script = [page([], "10"), server.watch([broken], then="hold"), page([], "20")]
    async with reflecting(transport, heard):
        await heard.wait_until(lambda: len(heard.events) == 2)
    assert heard.said == ["listed", "listed"]
    assert len(heard.problems) == 1


async def test_an_object_that_cannot_be_read_is_told_once_and_the_watch_goes_on(server, transport):
    heard = Heard()
    lines = [as_go_writes("ADDED", {"metadata": {"name": 7}}), as_go_writes("ADDED", node("b", 12))]
    server.script = [page([], "10"), server.watch(lines, then="hold")]
    async with reflecting(transport, heard):
        await heard.wait_until(lambda: len(heard.events) == 2)
    assert heard.said == ["listed", "applied b@12"]
    assert ["$.metadata.name" in str(problem) for problem in heard.problems] == [True]


async def test_a_watch_has_come_past_what_it_left_out(server, transport):
    heard = Heard()
    metadata = {"name": "a", "resourceVersion": "13"}
    unread = as_go_writes("ADDED", {"metadata": metadata, "status": {"allocatable": 7}})
    server.script = [page([], "10"), server.watch([unread], then="hold")]
    async with reflecting(transport, heard) as reflector:
        assert reflector.version == ""
        await heard.wait_until(lambda: bool(heard.problems))
        assert reflector.version == "13"


JOBS = next(each for each in DIALECTS.resources() if each.kind == "Job")


def job(version: int, annotations: int = 0) -> dict:
    """A Job, with so many annotations."""
    said = {f"example.com/{number}": "" for number in range(annotations)}
    named = {"namespace": "default", "name": "j", "uid": "u", "resourceVersion": str(version)}
    return {"metadata": named | {"annotations": said}}


async def test_an_object_that_is_gone_is_forgotten_though_it_could_not_be_read(server, transport):
    heard = Heard()
    lines = [("ADDED", job(11)), ("MODIFIED", job(12, 3000)), ("DELETED", job(13, 3000))]
    server.script = [page([], "10"), server.watch([as_go_writes(*each) for each in lines], "hold")]
    async with reflecting(transport, heard, JOBS) as reflector:
        await heard.wait_until(lambda: len(heard.events) == 4)
        assert reflector.version == "13"
    assert heard.said == ["listed", "applied j@11", "deleted j@12", "deleted j@13"]
    gone = heard.events[-1]
    assert (type(gone.record), gone.record.key, gone.record.uid) == (JOBS.record, "default/j", "u")
    assert ["metadata.annotations" in str(problem) for problem in heard.problems] == [True, True]


async def test_an_object_that_cannot_be_read_any_more_is_forgotten_as_after_the_next_list(
    server, transport
):
    """What it said before is not what it says."""
    heard = Heard()
    lines = [("ADDED", job(11)), ("MODIFIED", job(12, 3000)), ("MODIFIED", job(13))]
    server.script = [page([], "10"), server.watch([as_go_writes(*each) for each in lines], "hold")]
    async with reflecting(transport, heard, JOBS):
        await heard.wait_until(lambda: len(heard.events) == 4)
    assert heard.said == ["listed", "applied j@11", "deleted j@12", "applied j@13"]


async def test_a_node_that_cannot_be_read_any_more_stays_as_it_was(server, transport):
    """Gangs run there: a node that is gone would have them repaired elsewhere."""
    heard = Heard()
    broken = {"metadata": node("a", 12)["metadata"] | {"uid": "u"}, "status": {"allocatable": 7}}
    lines = [as_go_writes("MODIFIED", broken), as_go_writes("MODIFIED", node("a", 13))]
    server.script = [page([node("a", 11)], "11"), server.watch(lines, "hold")]
    async with reflecting(transport, heard):
        await heard.wait_until(lambda: len(heard.events) == 2)
    assert heard.said == ["listed a", "applied a@13"]
    assert len(heard.problems) == 1


@pytest.mark.parametrize(
    "gone",
    [
        pytest.param({"metadata": {"name": "a", "uid": "u"}, "status": 7}, id="no_record"),
        pytest.param({"metadata": {"name": 7}}, id="no_name"),
    ],
)
async def test_where_it_is_not_known_what_is_gone_all_is_listed_anew(server, transport, gone):
    heard = Heard()
    lines = [as_go_writes("DELETED", gone)]
    server.script = [page([node("a", 1)], "10"), server.watch(lines, "hold"), page([], "12")]
    async with reflecting(transport, heard):
        await heard.wait_until(lambda: len(heard.events) == 2)
    assert heard.said == ["listed a", "listed"]


class Pages:
    """A list of nodes of these sizes, in pages; what is asked for in vain is noted as refused."""

    def __init__(self, sizes: Sequence[int]) -> None:
        self.nodes = [
            json.dumps({"metadata": {"name": f"n{at}"}, "padding": "x" * size}).encode()
            for at, size in enumerate(sizes)
        ]
        self.limits: list[int] = []
        self.refused: list[int] = []
        self.largest = 0
        self.turns = 0

    async def request(
        self,
        _method: str,
        _path: str,
        *,
        params: Mapping[str, str],
        timeout: float,
        most_bytes: int,
    ) -> bytes:
        begin, limit = int(params.get("continue", "0")), int(params["limit"])
        end = begin + limit
        more = f',"continue":"{end}"' if end < len(self.nodes) else ""
        head = b'{"metadata":{"resourceVersion":"1"%b},"items":[' % more.encode()
        body = head + b",".join(self.nodes[begin:end]) + b"]}"
        if len(body) > most_bytes:
            self.refused.append(limit)
            raise TooLong(f"answer over {most_bytes} bytes")
        self.limits.append(limit)
        self.largest = max(self.largest, len(body))
        return body

    async def stream(
        self, _path: str, params: Mapping[str, str], read_timeout: float
    ) -> AsyncGenerator[bytes, None]:
        await asyncio.Event().wait()
        yield b""

    async def listed(self) -> Heard:
        """What is heard of the list, while others count the turns they get."""
        heard = Heard()
        async with reflecting(self, heard):
            async with asyncio.timeout(10):
                while not heard.events:
                    await asyncio.sleep(0)
                    self.turns += 1
        return heard


async def test_pages_of_large_objects_shrink_and_grow_again():
    large, small = 3 * 2**19, 1_000
    source = Pages([*[small] * 600, *[large] * 40, *[small] * 2_000])
    heard = await source.listed()
    (listed,) = heard.events
    assert [record.name for record in listed.records] == [f"n{at}" for at in range(2_640)]
    assert heard.problems == []
    assert source.largest <= MOST_PAGE_BYTES
    assert source.limits[0] == source.limits[-1] == 500
    assert min(source.limits) <= PAGE_BYTES // large
    assert len(source.refused) <= 5
    assert len(source.limits) <= 60


async def test_a_page_that_is_too_large_is_asked_for_with_a_quarter_of_the_objects():
    source = Pages([MOST_PAGE_BYTES // 2] * 3)
    await source.listed()
    assert (source.refused, source.limits[0]) == ([500, 125, 31, 7], 1)


async def test_objects_larger_than_a_page_come_one_by_one_and_then_twice_as_many_each_time():
    source = Pages([*[PAGE_BYTES + 1] * 3, *[10] * 100])
    await source.listed()
    assert source.refused == [500, 125, 31, 7]
    assert source.limits == [1, 1, 1, 1, 2, 4, 8, 16, 32, 64]


async def test_one_object_of_any_size_that_is_possible_is_a_page_of_its_own():
    source = Pages([10, 7 * 3 * 2**19, 10])
    heard = await source.listed()
    (listed,) = heard.events
    assert len(listed.records) == 3
    assert 1 in source.limits


async def test_an_object_beyond_that_is_a_problem_and_no_endless_loop():
    heard = Heard()
    source = Pages([10, LONGEST_OBJECT])
    async with reflecting(source, heard):
        await heard.wait_until(lambda: len(heard.problems) == 2)
    assert heard.events == []
    assert heard.pauses[0] >= 0.5


async def test_each_large_object_of_a_page_leaves_a_turn_to_others():
    source = Pages([BYTES_PER_TURN] * 30)
    await source.listed()
    assert source.turns >= 30


def test_a_turn_ends_with_so_many_objects_or_so_many_bytes_and_another_begins():
    turn = _Turn()
    for _ in range(2):
        assert [turn.is_over(1) for _ in range(EVENTS_PER_TURN)].index(True) == EVENTS_PER_TURN - 1
        assert not turn.is_over(BYTES_PER_TURN - 1)
        assert turn.is_over(1)
        assert turn.is_over(BYTES_PER_TURN)


async def test_each_large_line_leaves_a_turn_to_others():
    source = Broken(270.0, lines=300, size=BYTES_PER_TURN)
    await source.run_until(260.0)
    assert source.turns >= 300
