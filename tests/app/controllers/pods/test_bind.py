"""Bindings against a scripted API server: the truth in a bounded number of calls."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager

import pytest

from app.controllers.pods.bind import MOST_POSTS, BindController
from app.errors import (
    ApiError,
    Conflict,
    DecodeError,
    Forbidden,
    Gone,
    NotFound,
    NotLeading,
    TooManyRequests,
    Unreachable,
)
from app.state.effects import Bind, BindFailed, Bound
from tests.app.polling import until
from tests.app.running import running
from tests.records import pod

BIND = Bind("default", "p", "uid-p", "n1", (("corral.dev/gang", "g"),))
CONFLICT = Conflict(409, "Conflict", "already assigned")
BUSY = TooManyRequests(429, "TooManyRequests", "", 0.0)
BROKEN = ApiError(500, "InternalError", "etcd")
SILENT = Unreachable("timed out")
FORBIDDEN = Forbidden(403, "Forbidden")


class Scripted:
    """Each POST and GET takes the next entry of its script; an error is raised."""

    def __init__(self, posts=(), gets=()):
        self.posts, self.gets = list(posts), list(gets)
        self.calls = []
        self.open, self.most_open = 0, 0
        self.gate = None

    async def bind(self, namespace, name, uid, node, annotations):
        self.calls.append(("POST", namespace, name, uid, node, dict(annotations)))
        self.open += 1
        self.most_open = max(self.most_open, self.open)
        try:
            if self.gate is not None:
                await self.gate.wait()
            said = self.posts.pop(0) if self.posts else None
        finally:
            self.open -= 1
        if isinstance(said, BaseException):
            raise said

    async def get_pod(self, namespace, name):
        self.calls.append(("GET", namespace, name))
        said = self.gets.pop(0)
        if isinstance(said, BaseException):
            raise said
        return said

    @property
    def methods(self):
        return [call[0] for call in self.calls]


@asynccontextmanager
async def controller(client, *, concurrency=4, bind_seconds=5.0, retry_seconds=0.001):
    """A running controller and the outcomes it reports."""
    outcomes = []
    binds = BindController(
        client,
        lambda bind, outcome, seconds: outcomes.append((bind, outcome)),
        concurrency=concurrency,
        bind_seconds=bind_seconds,
        retry_seconds=retry_seconds,
    )
    async with running(binds):
        yield binds, outcomes


async def outcome_of(client, **knobs):
    async with controller(client, **knobs) as (binds, outcomes):
        binds.take(BIND)
        await asyncio.wait_for(binds.wait_idle(), 5)
    assert [each for each, _ in outcomes] == [BIND]
    return outcomes[0][1]


async def test_a_binding_carries_uid_node_and_annotations():
    client = Scripted()
    assert await outcome_of(client) == Bound()
    assert client.calls == [("POST", "default", "p", "uid-p", "n1", {"corral.dev/gang": "g"})]


HERE = pod("p", on="n1")
THERE = pod("p", on="n2")
UNBOUND = pod("p")
RECREATED = pod("p", on="n1", uid="uid-other")


@pytest.mark.parametrize(
    ("posts", "gets", "expected", "methods"),
    [
        pytest.param([CONFLICT], [HERE], Bound(), "POST GET", id="bound_there_already"),
        pytest.param([CONFLICT], [THERE], "bound to node n2", "POST GET", id="bound_elsewhere"),
        pytest.param([CONFLICT], [UNBOUND], "409 Conflict", "POST GET", id="gated_or_terminating"),
        pytest.param([CONFLICT], [None], "gone", "POST GET", id="deleted_meanwhile"),
        pytest.param([CONFLICT], [RECREATED], "gone", "POST GET", id="recreated_meanwhile"),
        pytest.param([CONFLICT], [SILENT], "409", "POST GET", id="nobody_tells"),
        pytest.param([CONFLICT], [DecodeError("x")], "409", "POST GET", id="unreadable_pod"),
        pytest.param([NotFound(404, "NotFound")], [], "gone", "POST", id="gone"),
        pytest.param([FORBIDDEN], [], "403 Forbidden", "POST", id="forbidden"),
        pytest.param([ApiError(422, "Invalid")], [], "422 Invalid", "POST", id="invalid"),
        pytest.param([Gone(410, "Gone")], [], "410 Gone", "POST", id="some_other_4xx"),
        pytest.param([BUSY, None], [], Bound(), "POST POST", id="busy_once"),
        pytest.param([BROKEN, None], [], Bound(), "POST POST", id="broken_once"),
        pytest.param([SILENT, CONFLICT], [HERE], Bound(), "POST POST GET", id="lost_success"),
        pytest.param([BROKEN, CONFLICT], [HERE], Bound(), "POST POST GET", id="broken_success"),
        pytest.param([SILENT] * 3 + [CONFLICT], [HERE], Bound(), "POST " * 4 + "GET", id="restart"),
        pytest.param([SILENT, FORBIDDEN, None], [], Bound(), "POST " * 3, id="rights_not_read_yet"),
        pytest.param([BUSY, FORBIDDEN], [], "403 Forbidden", "POST POST", id="busy_and_forbidden"),
        pytest.param([NotLeading(), None], [], Bound(), "POST POST", id="leads_in_a_moment"),
        pytest.param([SILENT, NotFound(404, "")], [], "gone", "POST POST", id="gone_meanwhile"),
        pytest.param(
            [SILENT, NotLeading(), CONFLICT], [HERE], Bound(), "POST " * 3 + "GET", id="led_before"
        ),
        pytest.param([RuntimeError("bug")], [], "RuntimeError", "POST", id="our_bug"),
    ],
)
async def test_what_becomes_of_a_binding(posts, gets, expected, methods):
    client = Scripted(posts, gets)
    outcome = await outcome_of(client)
    if isinstance(expected, str):
        assert isinstance(outcome, BindFailed)
        assert expected in outcome.sentence
        assert outcome.is_gone == ("gone" in expected)
    else:
        assert outcome == expected
    assert client.methods == methods.split()


@pytest.mark.parametrize(
    ("posts", "gets", "expected", "calls"),
    [
        pytest.param(BUSY, [], "429 TooManyRequests", MOST_POSTS, id="busy"),
        pytest.param(NotLeading(), [], "does not lead", MOST_POSTS, id="never_leads"),
        pytest.param(SILENT, [UNBOUND], "did not answer", MOST_POSTS + 1, id="never_arrived"),
        pytest.param(SILENT, [SILENT], "did not answer", MOST_POSTS + 1, id="outage"),
        pytest.param(SILENT, [HERE], Bound(), MOST_POSTS + 1, id="every_answer_lost"),
    ],
)
async def test_the_number_of_calls_is_bounded(monkeypatch, posts, gets, expected, calls):
    monkeypatch.setattr("app.controllers.pods.bind.LONGEST_RETRY_SECONDS", 0.001)
    client = Scripted([posts] * 2 * MOST_POSTS, gets)
    outcome = await outcome_of(client)
    assert outcome == expected if isinstance(expected, Bound) else expected in outcome.sentence
    assert len(client.calls) == calls


async def test_a_binding_is_not_posted_again_without_time_for_the_look_back():
    client = Scripted([SILENT] * MOST_POSTS, [UNBOUND])
    began = asyncio.get_running_loop().time()
    outcome = await outcome_of(client, bind_seconds=0.3, retry_seconds=0.2)
    assert isinstance(outcome, BindFailed)
    assert client.methods[-1] == "GET"
    assert asyncio.get_running_loop().time() - began < 0.3


async def test_a_server_that_never_answers_is_given_up_in_time():
    client = Scripted(gets=[SILENT])
    client.gate = asyncio.Event()
    outcome = await outcome_of(client, bind_seconds=0.4)
    assert isinstance(outcome, BindFailed)
    assert client.methods == ["POST", "GET"]


class Refusing(Scripted):
    """Every binding of one namespace gets a 500, as of a webhook of its own."""

    async def bind(self, namespace, name, uid, node, annotations):
        await super().bind(namespace, name, uid, node, annotations)
        await asyncio.sleep(0)
        if namespace == "refused":
            raise BROKEN


async def test_bindings_that_are_refused_for_long_keep_no_worker_from_those_of_others():
    client = Refusing(gets=[UNBOUND] * 8)
    async with controller(client, concurrency=2, retry_seconds=0.1) as (
        binds,
        outcomes,
    ):
        for number in range(8):
            binds.take(Bind("refused", f"r{number}", f"r{number}", "n1"))
        await until(lambda: len(client.calls) >= 8)
        for number in range(50):
            binds.take(Bind("default", f"p{number}", f"u{number}", "n1"))
        await asyncio.wait_for(binds.wait_idle(), 10)
    order = [bind.namespace for bind, _ in outcomes]
    assert order == ["default"] * 50 + ["refused"] * 8


async def test_one_that_is_crowded_out_while_it_pauses_has_one_outcome_and_is_forgotten():
    client = Refusing()
    outcomes = []
    binds = BindController(
        client,
        lambda bind, outcome, _: outcomes.append((bind.uid, outcome)),
        concurrency=1,
        bind_seconds=15,
        retry_seconds=1.9,
        most_queued=2,
    )
    task = asyncio.create_task(binds.run())
    for number in range(2):
        binds.take(Bind("refused", f"r{number}", f"r{number}", "n1"))
        await until(lambda tried=number + 1: len(client.calls) == tried)
        await asyncio.sleep(0.01)
    binds.take(Bind("default", "p", "p", "n1"))
    await until(lambda: len(outcomes) == 2)
    assert sorted(uid for uid, _ in outcomes) in (["p", "r0"], ["p", "r1"])
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def test_many_bindings_run_side_by_side_up_to_the_bound():
    client = Scripted()
    client.gate = asyncio.Event()
    async with controller(client, concurrency=8) as (binds, outcomes):
        for number in range(50):
            binds.take(Bind("default", f"p{number}", f"u{number}", "n1"))
        await until(lambda: client.open == 8)
        client.gate.set()
        await asyncio.wait_for(binds.wait_idle(), 5)
    assert client.most_open == 8
    assert sorted(bind.uid for bind, _ in outcomes) == sorted(f"u{n}" for n in range(50))
    assert all(outcome == Bound() for _, outcome in outcomes)


async def test_a_binding_that_is_asked_for_again_while_it_waits_is_posted_once():
    client = Scripted()
    client.gate = asyncio.Event()
    async with controller(client, concurrency=1) as (binds, outcomes):
        for uid in ("u1", "u2", "u1", "u2"):
            binds.take(Bind("default", uid, uid, "n1"))
        await until(lambda: client.open == 1)
        client.gate.set()
        await asyncio.wait_for(binds.wait_idle(), 5)
        assert [bind.uid for bind, _ in outcomes] == ["u1", "u2"]
        binds.take(Bind("default", "u1", "u1", "n1"))  # its outcome has been told
        await asyncio.wait_for(binds.wait_idle(), 5)
    assert client.methods == ["POST", "POST", "POST"]


async def test_a_full_queue_fails_the_bind_later_not_inside_take():
    outcomes = []
    binds = BindController(
        Scripted(),
        lambda *outcome: outcomes.append(outcome),
        concurrency=1,
        bind_seconds=1,
        most_queued=1,
    )
    binds.take(BIND)
    binds.take(Bind("default", "other", "uid-other", "n1"))
    assert outcomes == []
    await asyncio.sleep(0)
    assert len(outcomes) == 1
    assert "too many" in outcomes[0][1].sentence


async def test_an_outcome_nobody_can_take_does_not_stop_the_next():
    taken = []

    def take(bind, outcome, seconds):
        taken.append(bind.uid)
        raise RuntimeError("bug in the receiver")

    binds = BindController(Scripted(), take, concurrency=1, bind_seconds=1)
    task = asyncio.create_task(binds.run())
    for uid in ("u1", "u2"):
        binds.take(Bind("default", "p", uid, "n1"))
    await asyncio.wait_for(binds.wait_idle(), 5)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert taken == ["u1", "u2"]
