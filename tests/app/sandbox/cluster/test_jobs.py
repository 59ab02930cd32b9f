"""What the job controller does for a gang's job."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from app.sandbox import Sandbox
from app.sandbox.apiserver.rules.pod_actions import bind, evict
from app.sandbox.apiserver.storage.kinds import JOB, POD
from app.sandbox.cluster.jobs import INDEX
from tests.app.sandbox.http import MERGE, Client, until
from tests.app.sandbox.objects import pod

TO_N0 = {"target": {"kind": "Node", "name": "n0"}}


def create_job(sandbox: Sandbox, name: str = "train", **spec: Any) -> None:
    template = {"metadata": {"labels": {"app": "x"}}, "spec": pod("t")["spec"]}
    body = {"metadata": {"name": name}, "spec": {"template": template} | spec}
    sandbox.registry.create(JOB, "default", body)


def pods(sandbox: Sandbox, job: str = "train") -> list[dict[str, Any]]:
    found = [stored.body for stored in sandbox.store.values(POD)]
    return [each for each in found if each["metadata"]["labels"]["job-name"] == job]


def lose(sandbox: Sandbox, body: dict[str, Any], how: str) -> None:
    key = ("default", body["metadata"]["name"])
    if how == "failed":
        finish(sandbox, body, "Failed")
    elif how == "evicted":
        evict(sandbox.registry, key, {})
    else:
        sandbox.registry.delete(POD, key)


def status(sandbox: Sandbox) -> dict[str, Any]:
    job: dict[str, Any] = sandbox.registry.read(JOB, ("default", "train")).body
    return dict(job["status"])


def finish(sandbox: Sandbox, body: dict[str, Any], phase: str) -> None:
    key = ("default", body["metadata"]["name"])
    sandbox.registry.patch(POD, key, {"status": {"phase": phase}}, MERGE, "status")


async def test_an_indexed_job_has_one_pod_per_rank(sandbox: Sandbox) -> None:
    create_job(sandbox, parallelism=3, completions=3, completionMode="Indexed")
    created = pods(sandbox)
    assert sorted(each["metadata"]["annotations"][INDEX] for each in created) == ["0", "1", "2"]
    assert sorted(each["metadata"]["labels"][INDEX] for each in created) == ["0", "1", "2"]
    assert len({each["metadata"]["name"] for each in created}) == 3
    assert status(sandbox)["active"] == 3


async def test_a_pod_names_its_job_as_controller(sandbox: Sandbox) -> None:
    create_job(sandbox, parallelism=1, completions=1)
    (created,) = pods(sandbox)
    uid = sandbox.registry.read(JOB, ("default", "train")).body["metadata"]["uid"]
    (owner,) = created["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["name"], owner["uid"]) == ("Job", "train", uid)
    assert owner["controller"]
    labels = created["metadata"]["labels"]
    assert labels["batch.kubernetes.io/job-name"] == labels["job-name"] == "train"
    assert labels["controller-uid"] == uid
    assert labels["app"] == "x"


@pytest.mark.parametrize("is_deleted", [True, False], ids=["deleted", "failed"])
async def test_a_lost_pod_is_replaced_at_its_rank(sandbox: Sandbox, is_deleted: bool) -> None:
    create_job(sandbox, parallelism=2, completions=2, completionMode="Indexed")
    lost = next(each for each in pods(sandbox) if each["metadata"]["annotations"][INDEX] == "1")
    if is_deleted:
        sandbox.registry.delete(POD, ("default", lost["metadata"]["name"]))
    else:
        finish(sandbox, lost, "Failed")
    living = [each for each in pods(sandbox) if each["status"]["phase"] == "Pending"]
    assert sorted(each["metadata"]["annotations"][INDEX] for each in living) == ["0", "1"]
    assert lost["metadata"]["uid"] not in {each["metadata"]["uid"] for each in living}
    assert status(sandbox)["failed"] == 1


async def test_a_job_is_complete_when_all_its_ranks_succeeded(sandbox: Sandbox) -> None:
    create_job(sandbox, parallelism=2, completions=3, completionMode="Indexed")
    while living := [each for each in pods(sandbox) if each["status"]["phase"] == "Pending"]:
        assert len(living) <= 2
        finish(sandbox, living[0], "Succeeded")
    assert status(sandbox)["succeeded"] == 3
    assert "active" not in status(sandbox)
    assert status(sandbox)["conditions"][0]["type"] == "Complete"


async def test_a_suspended_job_has_no_pods(sandbox: Sandbox) -> None:
    create_job(sandbox, parallelism=2, completions=2, suspend=True)
    assert pods(sandbox) == []
    sandbox.registry.patch(JOB, ("default", "train"), {"spec": {"suspend": False}}, MERGE)
    assert len(pods(sandbox)) == 2
    sandbox.registry.patch(JOB, ("default", "train"), {"spec": {"suspend": True}}, MERGE)
    assert pods(sandbox) == []


async def test_a_pod_that_succeeded_is_not_made_again_once_it_is_deleted(sandbox: Sandbox) -> None:
    create_job(sandbox, parallelism=2, completions=2, completionMode="Indexed")
    done = pods(sandbox)[0]
    finish(sandbox, done, "Succeeded")
    sandbox.registry.delete(POD, ("default", done["metadata"]["name"]))
    assert len(pods(sandbox)) == 1
    assert (status(sandbox)["succeeded"], status(sandbox)["active"]) == (1, 1)


@pytest.mark.parametrize("how", ["deleted", "evicted", "failed"])
async def test_a_job_that_lost_too_many_pods_fails_for_good(sandbox: Sandbox, how: str) -> None:
    create_job(sandbox, parallelism=4, completions=4, completionMode="Indexed", backoffLimit=2)
    lost = pods(sandbox)[:3]
    for each in lost:
        lose(sandbox, each, how)
    assert status(sandbox)["failed"] == 3 + 3, "those that are deleted for it count too"
    conditions = status(sandbox)["conditions"]
    assert [each["type"] for each in conditions] == ["FailureTarget", "Failed"]
    assert conditions[-1]["reason"] == "BackoffLimitExceeded"
    assert [each for each in pods(sandbox) if each["status"]["phase"] == "Pending"] == []


async def test_evictions_that_its_policy_ignores_do_not_fail_a_job(sandbox: Sandbox) -> None:
    target = {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]}
    policy = {"rules": [target]}
    create_job(sandbox, parallelism=2, completions=2, backoffLimit=0, podFailurePolicy=policy)
    for each in pods(sandbox):
        bind(sandbox.registry, "default", each["metadata"]["name"], TO_N0)
        lose(sandbox, each, "evicted")
        finish(sandbox, each, "Failed")
    assert len(pods(sandbox)) == 2
    assert "failed" not in status(sandbox)
    assert "conditions" not in status(sandbox)


async def test_pods_that_a_job_takes_away_itself_do_not_count_as_failed(sandbox: Sandbox) -> None:
    create_job(sandbox, parallelism=4, completions=4, backoffLimit=0)
    for change in ({"parallelism": 2}, {"suspend": True}):
        sandbox.registry.patch(JOB, ("default", "train"), {"spec": change}, MERGE)
    assert pods(sandbox) == []
    assert "failed" not in status(sandbox)
    (suspended,) = status(sandbox)["conditions"]
    assert (suspended["type"], suspended["status"]) == ("Suspended", "True")
    assert "startTime" not in status(sandbox)
    sandbox.registry.patch(JOB, ("default", "train"), {"spec": {"suspend": False}}, MERGE)
    assert len(pods(sandbox)) == 2
    assert status(sandbox)["conditions"][0]["status"] == "False"
    assert status(sandbox)["startTime"]


async def test_a_pod_that_ends_is_replaced_before_it_is_gone(sandbox: Sandbox) -> None:
    """Unless the job says `podReplacementPolicy: Failed`."""
    for name, policy, pods_then in (("train", "TerminatingOrFailed", 2), ("late", "Failed", 1)):
        template = pod("t", terminationGracePeriodSeconds=30)["spec"]
        create_job(sandbox, name=name, template={"spec": template}, podReplacementPolicy=policy)
        (first,) = pods(sandbox, name)
        bind(sandbox.registry, "default", first["metadata"]["name"], TO_N0)
        sandbox.registry.delete(POD, ("default", first["metadata"]["name"]))
        assert len(pods(sandbox, name)) == pods_then


async def test_a_deleted_job_takes_its_pods_along(sandbox: Sandbox) -> None:
    create_job(sandbox, parallelism=2, completions=2)
    sandbox.registry.delete(JOB, ("default", "train"))
    assert pods(sandbox) == []


async def test_a_watcher_hears_of_the_job_before_its_status(
    sandbox: Sandbox, client: Client
) -> None:
    begin = sandbox.store.version
    path = "/apis/batch/v1/namespaces/default/jobs"
    watching = asyncio.create_task(client.watch(path, f"resourceVersion={begin}"))
    await until(lambda: sandbox.faults.open_watches)
    create_job(sandbox, parallelism=2, completions=2)
    sandbox.faults.cut_watches()
    events = await watching
    versions = [int(each["object"]["metadata"]["resourceVersion"]) for each in events]
    assert [each["type"] for each in events] == ["ADDED", "MODIFIED"]
    assert versions == sorted(versions)
