"""What a watch promises: every change once, in order, from where the client left off."""

from __future__ import annotations

import asyncio
from typing import Any

import aiohttp
import pytest

from app.sandbox import Sandbox
from app.sandbox.apiserver.storage.kinds import NODE
from tests.app.sandbox.http import NODES, PODS, Client, until
from tests.app.sandbox.objects import fill, node, pod

ONE_SECOND = "timeoutSeconds=1"


def told(events: list[dict[str, Any]]) -> list[tuple[str, str]]:
    return [
        (event["type"], event["object"]["metadata"].get("name", ""))
        for event in events
        if event["type"] != "BOOKMARK"
    ]


async def test_a_watch_resumes_exactly_behind_the_version(client: Client, sandbox: Sandbox) -> None:
    fill(sandbox, 1)
    version = sandbox.store.version
    await client.create(NODES, node("n1"))
    await client.patch(f"{NODES}/n0", {"metadata": {"labels": {"a": "b"}}})
    await client.delete(f"{NODES}/n1")
    watching = asyncio.create_task(client.watch(NODES, f"resourceVersion={version}"))
    await until(lambda: sandbox.faults.open_watches)
    sandbox.registry.create(NODE, "", node("n2"))
    await client.get(NODES)
    sandbox.faults.cut_watches()
    assert told(await watching) == [
        ("ADDED", "n1"),
        ("MODIFIED", "n0"),
        ("DELETED", "n1"),
        ("ADDED", "n2"),
    ]


async def test_a_deletion_carries_its_own_version(client: Client, sandbox: Sandbox) -> None:
    fill(sandbox, 1)
    before = sandbox.store.version
    await client.delete(f"{NODES}/n0")
    watching = asyncio.create_task(client.watch(NODES, f"resourceVersion={before}"))
    await until(lambda: sandbox.faults.open_watches)
    await client.get(NODES)
    sandbox.faults.cut_watches()
    (event,) = await watching
    assert int(event["object"]["metadata"]["resourceVersion"]) == before + 1


async def test_a_watch_behind_the_compaction_gets_200_and_an_error_event(
    client: Client, sandbox: Sandbox
) -> None:
    fill(sandbox, 2)
    version = sandbox.store.version
    fill_later = sandbox.registry.create(NODE, "", node("later"))
    sandbox.faults.compact(NODE)
    (event,) = await client.watch(NODES, f"resourceVersion={version}")
    assert fill_later.version > version
    assert event["type"] == "ERROR"
    assert (event["object"]["code"], event["object"]["reason"]) == (410, "Expired")


async def test_a_log_that_grows_too_long_compacts_itself() -> None:
    async with Sandbox(log_length=10) as sandbox:
        fill(sandbox, 30)
        with pytest.raises(Exception, match="too old resource version"):
            sandbox.store.changes_after(NODE, 1)
        assert len(sandbox.store.changes_after(NODE, sandbox.store.version - 3)) == 3


@pytest.mark.slow
async def test_a_watch_ends_at_its_timeout_with_a_bookmark(
    client: Client, sandbox: Sandbox
) -> None:
    fill(sandbox, 1)
    version = sandbox.store.version
    await client.create(PODS, pod("a"))
    events = await client.watch(
        NODES, f"resourceVersion={version}&allowWatchBookmarks=true&{ONE_SECOND}"
    )
    assert [event["type"] for event in events] == ["BOOKMARK"]
    assert events[0]["object"]["kind"] == "Node"
    assert int(events[0]["object"]["metadata"]["resourceVersion"]) == sandbox.store.version


async def test_a_watch_without_a_version_begins_with_what_there_is(
    client: Client, sandbox: Sandbox
) -> None:
    fill(sandbox, 2)
    watching = asyncio.create_task(
        client.watch(
            NODES,
            "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true",
        )
    )
    await until(lambda: sandbox.faults.open_watches)
    await client.get(NODES)
    sandbox.faults.cut_watches()
    events = await watching
    assert [event["type"] for event in events] == ["ADDED", "ADDED", "BOOKMARK"]
    annotations = events[-1]["object"]["metadata"]["annotations"]
    assert annotations == {"k8s.io/initial-events-end": "true"}


async def test_an_object_that_begins_or_stops_matching_comes_and_goes(
    client: Client, sandbox: Sandbox
) -> None:
    await client.create(PODS, pod("a"))
    version = sandbox.store.version
    await client.patch(f"{PODS}/a", {"metadata": {"labels": {"app": "x"}}})
    await client.patch(f"{PODS}/a", {"metadata": {"labels": {"more": "y"}}})
    await client.patch(f"{PODS}/a", {"metadata": {"labels": {"app": None}}})
    watching = asyncio.create_task(
        client.watch(PODS, f"resourceVersion={version}&labelSelector=app=x")
    )
    await until(lambda: sandbox.faults.open_watches)
    await client.get(PODS)
    sandbox.faults.cut_watches()
    assert told(await watching) == [("ADDED", "a"), ("MODIFIED", "a"), ("DELETED", "a")]


async def test_a_watch_on_demand_is_refused_once(client: Client, sandbox: Sandbox) -> None:
    sandbox.faults.expire_next_watches(resource="nodes")
    version = sandbox.store.version
    (event,) = await client.watch(NODES, f"resourceVersion={version}")
    assert event["object"]["code"] == 410
    watching = asyncio.create_task(client.watch(NODES, f"resourceVersion={version}"))
    await until(lambda: sandbox.faults.open_watches)
    sandbox.faults.cut_watches()
    assert await watching == []


async def test_a_stalled_watch_is_silent_until_it_is_let_go(
    client: Client, sandbox: Sandbox
) -> None:
    version = sandbox.store.version
    watching = asyncio.create_task(client.watch(NODES, f"resourceVersion={version}"))
    await until(lambda: sandbox.faults.open_watches)
    assert sandbox.faults.stall_watches() == 1
    fill(sandbox, 1)
    await client.get(NODES)
    sandbox.faults.unstall_watches()
    await client.get(NODES)
    sandbox.faults.cut_watches()
    assert told(await watching) == [("ADDED", "n0")]


async def test_a_torn_watch_breaks_in_the_middle_of_the_answer(
    client: Client, sandbox: Sandbox
) -> None:
    watching = asyncio.create_task(client.watch(NODES, "resourceVersion=5"))
    await until(lambda: sandbox.faults.open_watches)
    sandbox.faults.cut_watches(tears=True)
    with pytest.raises(aiohttp.ClientError):
        await watching


async def test_a_client_that_leaves_takes_its_watch_along(client: Client, sandbox: Sandbox) -> None:
    watching = asyncio.create_task(client.watch(NODES, "resourceVersion=5"))
    await until(lambda: sandbox.faults.open_watches)
    watching.cancel()
    await until(lambda: not sandbox.faults.open_watches)
    assert watching.cancelled() or watching.cancelling()
