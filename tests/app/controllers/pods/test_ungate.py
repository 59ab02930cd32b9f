"""Ungating against a scripted API server: one patch each, in order, and one outcome each."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager

import pytest

from app.controllers.pods.ungate import GateTimes, UngateController
from app.errors import ApiError, Conflict, Forbidden, NotFound, TooManyRequests, Unreachable
from app.state.effects import Ungate, Ungated, UngateFailed
from tests.app.polling import until
from tests.app.running import running

GATE = "corral.dev/gang"
# As kube-apiserver v1.36 has it: apiserver pkg/endpoints/handlers/responsewriters/errors.go.
NO_RIGHT = (
    'pods "a" is forbidden: User "system:serviceaccount:corral-system:corral" cannot patch resource'
    ' "pods" in API group "" in the namespace "team": RBAC: clusterrole "corral" not found'
)


class Patches:
    """Remembers patches; fails with the error a name stands for; waits while `gate` is set."""

    def __init__(self, errors=None):
        self.errors = errors or {}
        self.patched = []
        self.open, self.most_open = 0, 0
        self.gate = None

    async def ungate_pod(self, namespace, name, uid, gate, nodes, selector, annotations):
        self.patched.append((namespace, name, uid, gate, nodes, selector, annotations))
        self.open += 1
        self.most_open = max(self.most_open, self.open)
        try:
            if self.gate is not None:
                await self.gate.wait()
        finally:
            self.open -= 1
        if name in self.errors:
            raise self.errors[name]

    @property
    def names(self):
        return [call[1] for call in self.patched]


def ungate(name, **narrowing):
    return Ungate("team", name, f"uid-{name}", GATE, **narrowing)


@asynccontextmanager
async def controller(client, *, concurrency=4, **knobs):
    outcomes = []
    ungates = UngateController(
        client, lambda *outcome: outcomes.append(outcome), concurrency=concurrency, **knobs
    )
    async with running(ungates):
        yield ungates, outcomes


async def test_a_patch_carries_gate_nodes_selector_and_annotations():
    client = Patches()
    asked = [
        ungate("a", nodes=("n1", "n2"), annotations=(("corral.dev/narrowed", "nodes"),)),
        ungate("b", selector=(("rack", "r1"),)),
    ]
    async with controller(client) as (ungates, outcomes):
        for one in asked:
            ungates.take(one)
        await until(lambda: len(outcomes) == 2)
    assert client.patched == [
        ("team", "a", "uid-a", GATE, ("n1", "n2"), {}, {"corral.dev/narrowed": "nodes"}),
        ("team", "b", "uid-b", GATE, (), {"rack": "r1"}, {}),
    ]
    assert outcomes == [(one, Ungated()) for one in asked]


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        pytest.param(NotFound(404, "NotFound"), {"is_gone": True}, id="deleted"),
        pytest.param(Conflict(409, "Conflict"), {"is_gone": True}, id="recreated"),
        pytest.param(ApiError(422, "Invalid"), {"is_forbidden": True}, id="not_narrower"),
        pytest.param(Forbidden(403, "Forbidden"), {"is_forbidden": True}, id="a_policy_says_no"),
        pytest.param(Forbidden(403, "Forbidden", NO_RIGHT), {}, id="who_may_what_is_not_read_yet"),
        pytest.param(TooManyRequests(429, "TooManyRequests"), {}, id="busy"),
        pytest.param(ApiError(500, "InternalError"), {}, id="broken"),
        pytest.param(Unreachable("no route"), {}, id="nobody_knows"),
        pytest.param(RuntimeError("bug"), {}, id="our_bug"),
    ],
)
async def test_a_failure_is_told_once_and_not_tried_again(error, expected):
    client = Patches({"a": error})
    async with controller(client) as (ungates, outcomes):
        ungates.take(ungate("a"))
        await until(lambda: outcomes)
        ungates.take(ungate("b"))
        await until(lambda: len(outcomes) == 2)
    (_, failed), (_, next_one) = outcomes
    assert client.names == ["a", "b"]
    assert isinstance(failed, UngateFailed)
    assert (failed.is_gone, failed.is_forbidden) == (
        expected.get("is_gone", False),
        expected.get("is_forbidden", False),
    )
    assert next_one == Ungated()


async def test_a_server_that_never_answers_is_given_up_in_time():
    client = Patches()
    client.gate = asyncio.Event()
    async with controller(client, patch_seconds=0.02) as (ungates, outcomes):
        ungates.take(ungate("a"))
        await until(lambda: outcomes)
    assert outcomes == [(ungate("a"), UngateFailed("the API server did not answer the patch"))]


async def test_patches_begin_in_the_order_they_came_up_to_the_bound():
    client = Patches()
    client.gate = asyncio.Event()
    names = [f"p{number}" for number in range(50)]
    async with controller(client, concurrency=8) as (ungates, outcomes):
        for name in names:
            ungates.take(ungate(name))
        await until(lambda: client.open == 8)
        client.gate.set()
        await until(lambda: len(outcomes) == 50)
    assert client.most_open == 8
    assert client.names == names


async def test_newer_nodes_take_the_place_of_those_that_still_wait():
    client = Patches()
    client.gate = asyncio.Event()
    async with controller(client, concurrency=1) as (ungates, outcomes):
        ungates.take(ungate("first"))
        await until(lambda: client.open == 1)
        for one in (ungate("a", nodes=("old",)), ungate("b"), ungate("a", nodes=("new",))):
            ungates.take(one)
        client.gate.set()
        await until(lambda: len(outcomes) == 3)
    assert [(call[1], call[4]) for call in client.patched[1:]] == [("a", ("new",)), ("b", ())]


async def test_a_full_queue_fails_later_not_inside_take():
    outcomes = []
    ungates = UngateController(
        Patches(), lambda *outcome: outcomes.append(outcome), concurrency=1, most_queued=1
    )
    ungates.take(ungate("a"))
    ungates.take(ungate("b"))
    assert outcomes == []
    await asyncio.sleep(0)
    assert [one.name for one, _ in outcomes] == ["b"]
    assert "too many" in outcomes[0][1].sentence


async def test_an_outcome_nobody_can_take_does_not_stop_the_next():
    told = []

    def tell(one, outcome):
        told.append(one.name)
        raise RuntimeError("bug in the receiver")

    ungates = UngateController(Patches(), tell, concurrency=1)
    task = asyncio.create_task(ungates.run())
    for name in ("a", "b"):
        ungates.take(ungate(name))
    await until(lambda: len(told) == 2)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert told == ["a", "b"]


def test_the_time_from_gate_to_binding_runs_from_the_first_try():
    times = GateTimes(most=2)
    times.ungated("a", 1.0)
    times.ungated("a", 5.0)
    assert times.bound("a", 7.5) == 6.5
    assert times.bound("a", 8.0) is None
    for number, uid in enumerate("xyz"):
        times.ungated(uid, float(number))
    assert [times.bound(uid, 10.0) for uid in "xyz"] == [None, 9.0, 8.0]


async def test_once_it_stops_it_finishes_what_is_under_way_and_sends_nothing_more():
    client = Patches()
    client.gate = asyncio.Event()
    async with controller(client, concurrency=1) as (ungates, outcomes):
        for name in ("a", "b"):
            ungates.take(ungate(name))
        await until(lambda: client.names == ["a"])
        stopping = asyncio.create_task(ungates.stop())
        ungates.take(ungate("c"))
        await asyncio.sleep(0.01)
        assert not stopping.done()
        client.gate.set()
        await stopping
        refused = UngateFailed("Corral is stopping")
        assert outcomes == [
            (ungate("a"), Ungated()),
            (ungate("b"), refused),
            (ungate("c"), refused),
        ]
        assert client.names == ["a"]
