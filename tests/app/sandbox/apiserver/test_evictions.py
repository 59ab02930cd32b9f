"""Evictions: with a budget that allows some, one that allows none, and none at all."""

from __future__ import annotations

from typing import Any

import pytest

from app.sandbox import Sandbox
from tests.app.sandbox.http import MERGE, PODS, Answer, Client
from tests.app.sandbox.objects import pod

BUDGETS = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"


async def runs(client: Client, name: str, *, is_ready: bool = True) -> str:
    """A pod of app "a" that runs; its uid."""
    body = pod(name)
    body["metadata"]["labels"] = {"app": "a"}
    created = await client.create(PODS, body)
    conditions = [{"type": "Ready", "status": "True" if is_ready else "False"}]
    change = {"status": {"phase": "Running", "conditions": conditions}}
    assert (await client.patch(f"{PODS}/{name}/status", change, MERGE)).status == 200
    return str(created.body["metadata"]["uid"])


async def budget(client: Client, name: str = "budget", **status: int) -> None:
    """A budget for app "a" whose controller has written this status."""
    spec = {"maxUnavailable": 1, "selector": {"matchLabels": {"app": "a"}}}
    assert (await client.create(BUDGETS, {"metadata": {"name": name}, "spec": spec})).status == 201
    change = {"status": {"observedGeneration": 1, "disruptionsAllowed": 0, **status}}
    assert (await client.patch(f"{BUDGETS}/{name}/status", change, MERGE)).status == 200


async def evict(client: Client, name: str, uid: str = "", *, is_dry_run: bool = False) -> Answer:
    eviction: dict[str, Any] = {"metadata": {"name": name, "namespace": "default"}}
    if uid:
        eviction["deleteOptions"] = {"preconditions": {"uid": uid}}
    if is_dry_run:
        eviction.setdefault("deleteOptions", {})["dryRun"] = ["All"]
    return await client.create(f"{PODS}/{name}/eviction", eviction)


async def is_gone(client: Client, name: str) -> bool:
    return (await client.get(f"{PODS}/{name}")).status == 404


async def test_without_a_budget_the_pod_goes(client: Client) -> None:
    uid = await runs(client, "a")
    assert (await evict(client, "a", uid)).status == 201
    assert await is_gone(client, "a")


async def test_another_uid_is_a_conflict(client: Client) -> None:
    await runs(client, "a")
    answer = await evict(client, "a", "other")
    assert (answer.status, answer.reason) == (409, "Conflict")
    assert not await is_gone(client, "a")


async def test_a_budget_is_counted_down_until_it_says_no(client: Client) -> None:
    for name in ("a", "b"):
        await runs(client, name)
    await budget(client, disruptionsAllowed=1, currentHealthy=2, desiredHealthy=2)
    assert (await evict(client, "a")).status == 201
    refused = await evict(client, "b")
    assert (refused.status, refused.reason) == (429, "TooManyRequests")
    (cause,) = refused.body["details"]["causes"]
    assert (
        cause["message"] == "The disruption budget budget needs 2 healthy pods and has 2 currently"
    )
    assert await is_gone(client, "a")
    assert not await is_gone(client, "b")


async def test_a_dry_run_says_what_would_be_and_changes_nothing(client: Client) -> None:
    uid = await runs(client, "a")
    await budget(client, disruptionsAllowed=1, currentHealthy=2, desiredHealthy=1)
    before = (await client.get(f"{BUDGETS}/budget")).body
    for _ in range(2):  # nothing is counted
        assert (await evict(client, "a", uid, is_dry_run=True)).status == 201
    assert (await evict(client, "a", "other", is_dry_run=True)).status == 409
    assert (await client.get(f"{BUDGETS}/budget")).body == before
    assert not await is_gone(client, "a")
    await client.patch(f"{BUDGETS}/budget/status", {"status": {"disruptionsAllowed": 0}}, MERGE)
    assert (await evict(client, "a", uid, is_dry_run=True)).status == 429


async def test_a_budget_nobody_has_looked_at_yet_asks_for_patience(client: Client) -> None:
    await runs(client, "a")
    await budget(client, disruptionsAllowed=1, observedGeneration=0)
    refused = await evict(client, "a")
    assert refused.status == 429
    assert refused.body["details"]["retryAfterSeconds"] == 10


async def test_two_budgets_are_an_error(client: Client) -> None:
    await runs(client, "a")
    await budget(client, "one", disruptionsAllowed=1)
    await budget(client, "two", disruptionsAllowed=1)
    assert (await evict(client, "a")).status == 500


@pytest.mark.parametrize(("healthy", "status"), [(2, 201), (1, 429)])
async def test_an_unready_pod_goes_while_its_application_is_whole(
    client: Client, healthy: int, status: int
) -> None:
    await runs(client, "a", is_ready=False)
    await budget(client, currentHealthy=healthy, desiredHealthy=2)
    assert (await evict(client, "a")).status == status


async def test_a_pod_that_does_not_run_is_not_guarded(client: Client) -> None:
    body = pod("a")
    body["metadata"]["labels"] = {"app": "a"}
    await client.create(PODS, body)
    await budget(client)
    assert (await evict(client, "a")).status == 201


async def test_an_evicted_pod_that_a_finalizer_holds_says_why_it_goes(
    sandbox: Sandbox, client: Client
) -> None:
    held = pod("a")
    held["metadata"]["finalizers"] = ["example.org/hold"]
    await client.create(PODS, held)
    assert (await evict(client, "a")).status == 201
    after = (await client.get(f"{PODS}/a")).body
    reasons = {each["type"]: each["reason"] for each in after["status"]["conditions"]}
    assert after["metadata"]["deletionTimestamp"]
    assert reasons["DisruptionTarget"] == "EvictionByEvictionAPI"
