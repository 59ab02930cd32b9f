"""What the job controller does for a gang's job."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from app.sandbox import Sandbox
from app.sandbox.apiserver.storage.kinds import JOB, POD
from app.sandbox.cluster.jobs import INDEX
from tests.app.sandbox.http import MERGE, Client, until
from tests.app.sandbox.objects import pod


def create_job(sandbox: Sandbox, **spec: Any) -> None:
    template = {"metadata": {"labels": {"app": "x"}}, "spec": pod("t")["spec"]}
    body = {"metadata": {"name": "train"}, "spec": {"template": template} | spec}
    sandbox.registry.create(JOB, "default", body)


def pods(sandbox: Sandbox) -> list[dict[str, Any]]:
    return [stored.body for stored in sandbox.store.values(POD)]


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
    assert status(sandbox).get("failed", 0) == (0 if is_deleted else 1)


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
