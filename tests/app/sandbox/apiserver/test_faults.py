"""What the faults do to a client."""

from __future__ import annotations

import asyncio
import time

import aiohttp
import pytest

from app.sandbox import Sandbox
from tests.app.sandbox.http import NODES, PODS, Client, until
from tests.app.sandbox.objects import fill, node_of, pod


async def test_the_next_requests_of_a_verb_fail_and_no_others(
    client: Client, sandbox: Sandbox
) -> None:
    fill(sandbox, 1)
    sandbox.faults.fail_next(
        2, verb="get", resource="nodes", status=429, reason="TooManyRequests", retry_after=3
    )
    assert (await client.get(NODES)).status == 200
    first = await client.get(f"{NODES}/n0")
    assert (first.status, first.body["details"]["retryAfterSeconds"]) == (429, 3)
    assert (await client.get(f"{NODES}/n0")).status == 429
    assert (await client.get(f"{NODES}/n0")).status == 200


async def test_a_failed_write_is_not_carried_out(client: Client, sandbox: Sandbox) -> None:
    sandbox.faults.fail_next(1, verb="create", status=503, reason="ServiceUnavailable")
    assert (await client.create(PODS, pod("a"))).status == 503
    assert (await client.get(f"{PODS}/a")).status == 404


async def test_a_dropped_answer_leaves_the_binding_done(client: Client, sandbox: Sandbox) -> None:
    await client.create(PODS, pod("a"))
    sandbox.faults.drop_answers(1)
    with pytest.raises(aiohttp.ServerDisconnectedError):
        await client.create(f"{PODS}/a/binding", {"target": {"name": "n1"}})
    assert node_of(sandbox, "a") == "n1"
    assert (await client.create(f"{PODS}/a/binding", {"target": {"name": "n1"}})).status == 409


async def test_a_delay_delays_until_it_is_taken_back(client: Client, sandbox: Sandbox) -> None:
    sandbox.faults.delay(0.05, verb="list", resource="nodes")
    began = time.monotonic()
    await client.get(NODES)
    assert time.monotonic() - began >= 0.05
    sandbox.faults.delay(0)
    assert sandbox.faults.judge("list", "nodes").seconds == 0


async def test_a_server_that_is_down_answers_nobody(client: Client, sandbox: Sandbox) -> None:
    watching = asyncio.create_task(client.watch(NODES, "resourceVersion=5"))
    await until(lambda: sandbox.faults.open_watches)
    sandbox.faults.go_down()
    with pytest.raises(aiohttp.ClientError):
        await watching
    with pytest.raises(aiohttp.ClientError):
        await client.get(NODES)
    sandbox.faults.come_back()
    assert (await client.get(NODES)).status == 200
