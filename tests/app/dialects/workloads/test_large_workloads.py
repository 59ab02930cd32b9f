"""Workloads that are as large as the API server takes: read, or refused by name."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from app.dialects.registry import DIALECTS
from app.dialects.spec import GangKey
from app.dialects.workloads import job_set
from app.dialects.workloads.record import MOST_OBJECTS, MOST_TEMPLATES, MOST_VALUES, WorkloadRecord
from app.errors import DecodeError
from app.kube.core.objects import Owner
from tests.work import lines_run

TOPOLOGY = "kueue.x-k8s.io/podset-required-topology"
DECODERS = {each.kind: each.decode for each in DIALECTS.resources()}


def template(annotations: object = None, **spec: object) -> dict[str, Any]:
    containers = [{"name": "c", "image": "a", "resources": {"requests": {"cpu": "1"}}}]
    metadata = {"annotations": annotations or {TOPOLOGY: "rack"}}
    return {"metadata": metadata, "spec": {"containers": containers, **spec}}


def variables(values: int) -> list[dict[str, str]]:
    """Environment variables that are so many values: an object and four strings each."""
    return [{"name": "A", "value": ""}] * (values // 5)


def workload(kind: str, spec: object) -> bytes:
    metadata = {"namespace": "team", "name": "large"}
    return json.dumps({"kind": kind, "metadata": metadata, "spec": spec}).encode()


def a_job_set(parts: list[dict[str, Any]], order: str = "InOrder") -> bytes:
    jobs = [
        {"name": f"r{at}", "template": {"spec": {"template": part}}}
        for at, part in enumerate(parts)
    ]
    spec = {"replicatedJobs": jobs, "startupPolicy": {"startupPolicyOrder": order}}
    return workload("JobSet", spec)


def an_mpi_job(parts: list[dict[str, Any]]) -> bytes:
    specs = {f"Type{at}": {"template": part} for at, part in enumerate(parts)}
    return workload("MPIJob", {"mpiReplicaSpecs": specs})


@pytest.mark.parametrize(
    ("kind", "made", "field"),
    [
        ("JobSet", a_job_set, "spec.replicatedJobs"),
        ("MPIJob", an_mpi_job, "spec.mpiReplicaSpecs"),
    ],
)
def test_more_templates_than_are_read_are_refused_before_one_is(
    kind: str, made: Callable[[list[dict[str, Any]]], bytes], field: str
) -> None:
    record = DECODERS[kind](made([template()] * MOST_TEMPLATES))
    assert isinstance(record, WorkloadRecord)
    assert len(record.templates) == MOST_TEMPLATES
    told = rf"{kind} team/large: {field} is not read: it has {{}} entries, more than 256"
    steps = []
    for parts in (750, 3_000):
        body = made([template()] * parts)

        def refuse(body: bytes = body, parts: int = parts) -> None:
            with pytest.raises(DecodeError, match=told.format(parts)):
                DECODERS[kind](body)

        steps.append(lines_run(refuse))
    assert steps[1] < 1.5 * steps[0]


def test_templates_of_pods_that_come_later_are_read_up_to_a_bound_of_them_all() -> None:
    container = {"name": "c", "env": variables(MOST_VALUES // 8)}
    part = template(containers=[container])
    record = DECODERS["JobSet"](a_job_set([part] * 7))
    assert isinstance(record, WorkloadRecord)
    assert all(each.like is not None for each in record.templates)
    with pytest.raises(
        DecodeError, match=r"JobSet team/large: pod template r\d: not read: with it"
    ):
        DECODERS["JobSet"](a_job_set([part] * 9))
    DECODERS["JobSet"](a_job_set([part] * 9, order="AnyOrder"))


@pytest.mark.parametrize(
    ("kind", "spec"),
    [
        pytest.param("Job", lambda part: {"template": part}, id="Job"),
        pytest.param("StatefulSet", lambda part: {"template": part}, id="StatefulSet"),
        pytest.param(
            "LeaderWorkerSet",
            lambda part: {"leaderWorkerTemplate": {"workerTemplate": part}},
            id="LeaderWorkerSet",
        ),
        pytest.param(
            "TFJob", lambda part: {"tfReplicaSpecs": {"Worker": {"template": part}}}, id="TFJob"
        ),
    ],
)
def test_annotations_of_a_template_are_read_up_to_a_bound(kind, spec) -> None:
    containers = [{"name": f"c{at}", "image": "a"} for at in range(10_000)]
    few = {f"a{at}": "" for at in range(1_000)} | {TOPOLOGY: "rack"}
    record = DECODERS[kind](workload(kind, spec(template(few, containers=containers))))
    assert isinstance(record, WorkloadRecord)
    assert record.templates[0].annotations == {TOPOLOGY: "rack"}
    many = {f"a{at}": "" for at in range(60_000)}
    with pytest.raises(DecodeError, match=rf"{kind} team/large: pod template \w*: not read: "):
        DECODERS[kind](workload(kind, spec(template(many))))


@pytest.mark.parametrize(
    ("kind", "spec", "field"),
    [
        (
            "JobSet",
            {"replicatedJobs": [{}, {"replicas": "x"}]},
            "$.spec.replicatedJobs[1].replicas",
        ),
        (
            "TFJob",
            {"tfReplicaSpecs": {"PS": {"replicas": "x"}}},
            "$.spec.tfReplicaSpecs[PS].replicas",
        ),
    ],
)
def test_a_part_of_another_type_is_named(kind, spec, field) -> None:
    with pytest.raises(DecodeError) as told:
        DECODERS[kind](workload(kind, spec))
    assert str(told.value).startswith(f"{kind} team/large: ")
    assert f"`{field}`" in str(told.value)


def test_jobs_of_a_job_set_are_counted_once() -> None:
    """A tenant may make as many Jobs with a JobSet's labels as he likes."""

    def steps(jobs: int) -> int:
        whole = DECODERS["JobSet"](a_job_set([template()]))
        assert isinstance(whole, WorkloadRecord)
        owner = Owner("jobset.x-k8s.io/v1alpha2", "JobSet", "large", "u")
        made = [
            WorkloadRecord(
                kind="Job",
                namespace="team",
                name=f"j{at}",
                uid=f"j{at}",
                version="1",
                owner=owner,
                labels={
                    job_set.NAME: "large",
                    job_set.REPLICATED_JOB: Text(f"r{at}"),
                    job_set.REPLICAS: "1",
                    job_set.GLOBAL_REPLICAS: "1000000",
                },
            )
            for at in range(jobs)
        ]
        Text.compared = 0
        job_set.spec_of(
            GangKey("team", "large", job_set.SOURCE, "u/0"), [whole, *made], lambda _: None
        )
        return Text.compared

    assert steps(200) < 5 * 200


class Text(str):
    """A label's value that counts how often it is compared."""

    compared = 0
    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        Text.compared += 1
        return str.__eq__(self, other)

    __hash__ = str.__hash__


def nothing(count: int) -> list[dict[str, Any]]:
    """Objects that a decoder takes long to build, three bytes each."""
    return [{}] * count


PARTS: list[tuple[str, str, Callable[[list[dict[str, Any]]], dict[str, Any]]]] = [
    ("Job", "status.conditions", lambda many: {"status": {"conditions": many}}),
    ("JobSet", "status.conditions", lambda many: {"status": {"conditions": many}}),
    ("MPIJob", "status.conditions", lambda many: {"status": {"conditions": many}}),
    (
        "MPIJob",
        "status.replicaStatuses",
        lambda many: {"status": {"replicaStatuses": dict(enumerate(many))}},
    ),
    (
        "Job",
        "spec.podFailurePolicy.rules",
        lambda many: {"spec": {"podFailurePolicy": {"rules": many}}},
    ),
    (
        "Job",
        "spec.podFailurePolicy.rules",
        lambda many: {"spec": {"podFailurePolicy": {"rules": [{"onPodConditions": many}]}}},
    ),
    ("JobSet", "spec.replicatedJobs", lambda many: {"spec": {"replicatedJobs": many}}),
    (
        "JobSet",
        "spec.replicatedJobs",
        lambda many: {"spec": {"replicatedJobs": [{"name": "a", "dependsOn": many}]}},
    ),
]


@pytest.mark.parametrize(("kind", "field", "made"), PARTS)
def test_a_list_of_more_than_any_real_one_has_is_not_built(kind, field, made):
    metadata = {"namespace": "team", "name": "large"}

    def refused(count: int) -> None:
        thing = {"metadata": metadata, **made(nothing(count))}
        with pytest.raises(DecodeError, match=f"{kind} team/large: {field} is not read: it has"):
            DECODERS[kind](json.dumps(thing, separators=(",", ":")).encode())

    refused(MOST_OBJECTS + 1)
    assert lines_run(lambda: refused(400_000)) < 1.5 * lines_run(lambda: refused(40_000))


def test_a_job_set_whose_jobs_depend_on_others_is_gradual_and_one_with_empty_lists_is_not():
    for depends, is_gradual in (([{"name": "a"}], True), ([], False), (None, False)):
        jobs = [{"name": "b", "dependsOn": depends, "template": {"spec": {}}}]
        assert DECODERS["JobSet"](workload("JobSet", {"replicatedJobs": jobs})).is_gradual is (
            is_gradual
        )


def counted(pods: int, **more: Any) -> dict[str, Any]:
    """A template of so many pods, wherever a kind has the number."""
    return {"replicas": pods, "template": template(), **more}


NEGATIVE = {
    "JobSet": {
        "startupPolicy": {"startupPolicyOrder": "InOrder"},
        "replicatedJobs": [
            {"name": "a", "template": {"spec": counted(1)}},
            {"name": "b", "replicas": 2**31 - 1, "template": {"spec": counted(1)}},
            {"name": "c", "template": {"spec": {**counted(1), "parallelism": -(2**31)}}},
        ],
    },
    "MPIJob": {
        "launcherCreationPolicy": "WaitForWorkersReady",
        "mpiReplicaSpecs": {
            "Launcher": counted(1),
            "Worker": counted(2**31 - 1),
            "Other": counted(-(2**31)),
        },
    },
    "LeaderWorkerSet": {
        "startupPolicy": "LeaderReady",
        "leaderWorkerTemplate": {
            "size": -5,
            "leaderTemplate": template(),
            "workerTemplate": template(),
        },
    },
    "StatefulSet": counted(-3),
    "Job": {"parallelism": -3, "template": template()},
}


@pytest.mark.parametrize("kind", NEGATIVE)
def test_pods_below_zero_do_not_make_up_for_others(kind):
    """Custom resources may say so: the sum is the bound of what is numbered and reserved."""
    record = DECODERS[kind](workload(kind, NEGATIVE[kind]))
    assert all(each.pods >= 0 and each.jobs >= 0 for each in record.templates)
    assert record.pods >= max(each.pods for each in record.templates)
