"""How pods end: at once, or as long after their deletion as their grace period says."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from app.sandbox import Sandbox
from app.sandbox.apiserver.storage.kinds import POD
from tests.app.sandbox.http import MERGE, PODS, Client, client_of, until
from tests.app.sandbox.objects import add_pod, pod, pod_of


def runs(sandbox: Sandbox, name: str, grace: int, node: str = "n0") -> None:
    """A pod of this grace period that has a node."""
    add_pod(sandbox, pod(name, nodeName=node, terminationGracePeriodSeconds=grace))


def is_there(sandbox: Sandbox, name: str) -> bool:
    return sandbox.store.get(POD, ("default", name)) is not None


async def test_a_pod_with_a_node_stays_until_its_kubelet_deletes_it(
    sandbox: Sandbox, client: Client
) -> None:
    runs(sandbox, "a", 30)
    before = pod_of(sandbox, "a")["metadata"]
    asked_at = datetime.now(UTC)
    own = (await client.delete(f"{PODS}/a")).body["metadata"]
    seconds = (datetime.fromisoformat(own["deletionTimestamp"]) - asked_at).total_seconds()
    assert own["deletionGracePeriodSeconds"] == 30
    assert own["generation"] == before["generation"] + 1
    assert 28 < seconds < 40
    again = await client.delete(f"{PODS}/a")
    assert (again.status, again.body["metadata"]) == (200, own)
    await client.delete(f"{PODS}/a", {"gracePeriodSeconds": 0})
    assert not is_there(sandbox, "a")


@pytest.mark.parametrize(
    "case",
    [
        pytest.param({"terminationGracePeriodSeconds": 30}, id="without_a_node"),
        pytest.param({"terminationGracePeriodSeconds": 0, "nodeName": "n0"}, id="without_grace"),
    ],
)
async def test_any_other_is_seen_to_go_and_gone(
    sandbox: Sandbox, client: Client, case: dict[str, object]
) -> None:
    begin = sandbox.store.version
    add_pod(sandbox, pod("a", **case))
    assert (await client.delete(f"{PODS}/a")).status == 200
    events = await client.watch(PODS, f"resourceVersion={begin}&timeoutSeconds=1")
    seen = [(each["type"], "deletionTimestamp" in each["object"]["metadata"]) for each in events]
    assert seen == [("ADDED", False), ("MODIFIED", True), ("DELETED", True)]


async def test_a_pod_that_has_ended_goes_at_once(sandbox: Sandbox, client: Client) -> None:
    runs(sandbox, "a", 30)
    sandbox.registry.patch(POD, ("default", "a"), {"status": {"phase": "Failed"}}, MERGE, "status")
    await client.delete(f"{PODS}/a")
    assert not is_there(sandbox, "a")


async def test_a_grace_period_may_only_be_shortened(sandbox: Sandbox, client: Client) -> None:
    runs(sandbox, "a", 30)
    for asked, left in ((None, 30), (60, 30), (10, 10), (20, 10)):
        await client.delete(f"{PODS}/a?gracePeriodSeconds={asked}" if asked else f"{PODS}/a")
        assert pod_of(sandbox, "a")["metadata"]["deletionGracePeriodSeconds"] == left


async def test_a_finalizer_that_goes_does_not_end_the_grace_period(
    sandbox: Sandbox, client: Client
) -> None:
    body = pod("a", nodeName="n0", terminationGracePeriodSeconds=30)
    body["metadata"]["finalizers"] = ["example.org/hold"]
    add_pod(sandbox, body)
    await client.delete(f"{PODS}/a")
    await client.patch(f"{PODS}/a", {"metadata": {"finalizers": None}}, MERGE)
    assert is_there(sandbox, "a")
    await client.delete(f"{PODS}/a", {"gracePeriodSeconds": 0})
    assert not is_there(sandbox, "a")


async def test_an_evicted_pod_ends_as_a_deleted_one_does(sandbox: Sandbox, client: Client) -> None:
    runs(sandbox, "a", 30)
    assert (await client.create(f"{PODS}/a/eviction", {})).status == 201
    assert pod_of(sandbox, "a")["metadata"]["deletionGracePeriodSeconds"] == 30
    runs(sandbox, "b", 30)
    options = {"deleteOptions": {"gracePeriodSeconds": 0}}
    assert (await client.create(f"{PODS}/b/eviction", options)).status == 201
    assert not is_there(sandbox, "b")


async def test_a_dry_run_marks_nothing(sandbox: Sandbox, client: Client) -> None:
    runs(sandbox, "a", 30)
    answer = await client.delete(f"{PODS}/a?dryRun=All")
    assert "deletionTimestamp" in answer.body["metadata"]
    assert "deletionTimestamp" not in pod_of(sandbox, "a")["metadata"]


@pytest.mark.parametrize("takes_grace", [False, True])
async def test_a_kubelet_says_that_a_pod_has_ended_before_it_is_gone(takes_grace: bool) -> None:
    own = Sandbox(run_pods=True, takes_grace=takes_grace)
    async with own as sandbox, client_of(sandbox) as client:
        begin = sandbox.store.version
        runs(sandbox, "a", 1)
        await until(lambda: pod_of(sandbox, "a")["status"]["phase"] == "Running")
        await client.delete(f"{PODS}/a")
        assert is_there(sandbox, "a") or not takes_grace
        events = await client.watch(PODS, f"resourceVersion={begin}&timeoutSeconds=2")
    last = events[-1]["object"]
    assert (events[-1]["type"], last["status"]["phase"]) == ("DELETED", "Failed")
    assert last["metadata"]["deletionGracePeriodSeconds"] == 0
