"""Workloads that are no Jobs: how many pods, from which templates, and whether all at once.

The documents are as their APIs write them, cut to what matters.
"""

from __future__ import annotations

import json
from functools import partial
from typing import Any

import pytest

from app.errors import DecodeError
from app.kube.core.decode_workloads import (
    MOST_GANGS,
    decode_job_set,
    decode_leader_worker_set,
    decode_stateful_set,
    decode_training_job,
)
from app.kube.core.objects import JobRecord, Replicas
from app.kube.watch.reflector import training_jobs

METADATA = {
    "namespace": "team",
    "name": "w",
    "uid": "u",
    "resourceVersion": "5",
    "labels": {"ours": "l", "noise": "x"},
    "annotations": {"ours": "a", "noise": "y"},
}
TEMPLATE = {"metadata": {"annotations": {"ours": "t", "noise": "z"}}, "spec": {"containers": []}}
OURS = {"ours": "t"}


def ours(key: str) -> bool:
    return key == "ours"


def record_of(decode: Any, spec: object, **status: object) -> JobRecord:
    document = {"metadata": METADATA, "spec": spec, "status": status}
    record: JobRecord = decode(json.dumps(document).encode(), ours)
    return record


def test_what_all_workloads_have_in_common():
    record = record_of(decode_stateful_set, {"replicas": 3, "template": TEMPLATE})
    assert record == JobRecord(
        namespace="team",
        name="w",
        uid="u",
        parallelism=3,
        completions=None,
        succeeded=0,
        is_suspended=False,
        is_finished=False,
        annotations={"ours": "a"},
        owner=None,
        version="5",
        kind="StatefulSet",
        labels={"ours": "l"},
        replicas=(Replicas("", 3, OURS),),
        is_gradual=True,
    )


@pytest.mark.parametrize(
    ("spec", "pods", "is_gradual"),
    [
        pytest.param({}, 1, True, id="defaults"),
        pytest.param({"replicas": 0}, 0, True, id="scaled_to_nothing"),
        pytest.param(
            {"replicas": 4, "podManagementPolicy": "OrderedReady"}, 4, True, id="one_by_one"
        ),
        pytest.param({"replicas": 4, "podManagementPolicy": "Parallel"}, 4, False, id="at_once"),
    ],
)
def test_a_stateful_set(spec, pods, is_gradual):
    record = record_of(decode_stateful_set, spec)
    assert (record.parallelism, record.is_gradual) == (pods, is_gradual)


def replicated(name: str, replicas: int | None, **job: object) -> dict[str, object]:
    return {"name": name, "replicas": replicas, "template": {"spec": {**job, "template": TEMPLATE}}}


def test_a_job_set_has_the_pods_of_all_its_jobs():
    spec = {
        "suspend": True,
        "replicatedJobs": [
            replicated("driver", 1),
            replicated("workers", 2, parallelism=4, completions=4),
            replicated("few", None, parallelism=4, completions=3),
        ],
    }
    record = record_of(decode_job_set, spec, restarts=2)
    assert record.replicas == (
        Replicas("driver", 1, OURS),
        Replicas("workers", 8, OURS),
        Replicas("few", 3, OURS),
    )
    assert (record.parallelism, record.restarts) == (12, 2)
    assert (record.is_suspended, record.is_gradual, record.is_finished) == (True, False, False)


@pytest.mark.parametrize(
    ("spec", "is_gradual"),
    [
        pytest.param({"startupPolicy": {"startupPolicyOrder": "AnyOrder"}}, False, id="any_order"),
        pytest.param({"startupPolicy": {"startupPolicyOrder": "InOrder"}}, True, id="in_order"),
        pytest.param(
            {"replicatedJobs": [{"name": "b", "dependsOn": [{"name": "a", "status": "Ready"}]}]},
            True,
            id="depends_on",
        ),
        pytest.param(
            {"replicatedJobs": [{"name": "b", "dependsOn": []}]}, False, id="depends_on_nothing"
        ),
    ],
)
def test_a_job_set_that_makes_some_jobs_later(spec, is_gradual):
    assert record_of(decode_job_set, spec).is_gradual is is_gradual


@pytest.mark.parametrize(
    ("template", "replicas"),
    [
        pytest.param(
            {"size": 4, "workerTemplate": TEMPLATE},
            (Replicas("worker", 4, OURS),),
            id="one_template",
        ),
        pytest.param(
            {"size": 4, "workerTemplate": TEMPLATE, "leaderTemplate": {"metadata": {}}},
            (Replicas("leader", 1, {}), Replicas("worker", 3, OURS)),
            id="leader_of_its_own",
        ),
        pytest.param({}, (Replicas("worker", 1, {}),), id="defaults"),
    ],
)
def test_each_group_of_a_leader_worker_set(template, replicas):
    record = record_of(decode_leader_worker_set, {"leaderWorkerTemplate": template, "replicas": 2})
    assert record.replicas == replicas
    assert record.parallelism == sum(part.pods for part in replicas)
    assert (record.gangs, record.is_gradual) == (2, False)


@pytest.mark.parametrize(
    ("surge", "groups"), [(None, 3), (0, 3), (2, 5), ("50%", 6), (10**9, MOST_GANGS)]
)
def test_a_surge_makes_more_groups_for_a_while(surge, groups):
    rollout = {"rollingUpdateConfiguration": {"maxSurge": surge}}
    spec = {"replicas": 3, "rolloutStrategy": rollout, "startupPolicy": "LeaderReady"}
    record = record_of(decode_leader_worker_set, spec)
    assert record.gangs == groups
    assert record.is_gradual


@pytest.mark.parametrize(
    ("kind", "field"),
    [
        ("PyTorchJob", "pytorchReplicaSpecs"),
        ("TFJob", "tfReplicaSpecs"),
        ("XGBoostJob", "xgbReplicaSpecs"),
        ("PaddleJob", "paddleReplicaSpecs"),
        ("JAXJob", "jaxReplicaSpecs"),
        ("MPIJob", "mpiReplicaSpecs"),
    ],
)
def test_a_training_job_has_pods_by_replica_type(kind, field):
    parts = {"Master": {"template": TEMPLATE}, "Worker": {"replicas": 3}, "PS": None}
    status = {
        "replicaStatuses": {"Master": {"succeeded": 1}, "Worker": {"active": 3}},
        "conditions": [{"type": "Succeeded", "status": "True"}],
    }
    spec = {field: parts, "runPolicy": {"suspend": True}}
    record = record_of(partial(decode_training_job, kind=kind), spec, **status)
    assert record.kind == kind
    assert record.replicas == (Replicas("Master", 1, OURS), Replicas("Worker", 3, {}))
    assert (record.parallelism, record.succeeded, record.is_gradual) == (4, 1, False)
    assert record.is_suspended
    assert record.is_finished


def test_a_launcher_that_waits_for_its_workers_comes_later():
    spec = {"launcherCreationPolicy": "WaitForWorkersReady"}
    assert record_of(partial(decode_training_job, kind="MPIJob"), spec).is_gradual


def test_a_wrong_field_names_the_workload_and_the_field():
    raw = json.dumps({"metadata": METADATA, "spec": {"replicas": "3"}}).encode()
    with pytest.raises(DecodeError) as refused:
        decode_stateful_set(raw, ours)
    assert "StatefulSet team/w" in str(refused.value)
    assert "$.spec.replicas" in str(refused.value)


def test_every_training_job_is_watched_where_its_operator_serves_it():
    paths = {resource.kind: resource.path for resource in training_jobs(ours)}
    assert paths["PyTorchJob"] == "/apis/kubeflow.org/v1/pytorchjobs"
    assert paths["MPIJob"] == "/apis/kubeflow.org/v2beta1/mpijobs"
    assert all(resource.is_optional for resource in training_jobs(ours))
