"""What controllers make of objects at their edges.

A test with the mark `REPORTED` says what is right and is not so yet; it goes when that is mended.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from app.dialects.making import MAKERS

REPORTED = partial(pytest.mark.xfail, strict=True)
Thing = dict[str, Any]


def made(api: str, kind: str, spec: Thing) -> list[Thing]:
    metadata = {"namespace": "default", "name": "w", "uid": "u"}
    of = {"apiVersion": api, "kind": kind, "metadata": metadata, "spec": spec}
    return [each.content for each in MAKERS[api.rpartition("/")[0], kind](of)]


def names_of_pods(things: list[Thing]) -> list[str]:
    return [each["metadata"]["name"] for each in things if each["kind"] == "Pod"]


@REPORTED(reason="spec.ordinals is not read")
def test_the_pods_of_a_stateful_set_are_numbered_from_where_it_says() -> None:
    spec = {"replicas": 2, "podManagementPolicy": "Parallel", "ordinals": {"start": 5}}
    assert names_of_pods(made("apps/v1", "StatefulSet", spec)) == ["w-5", "w-6"]


@REPORTED(reason="spec.scheduling of a Job is read by the webhook alone")
def test_a_job_that_says_how_its_pods_are_scheduled_has_a_pod_group() -> None:
    """Simulated, its pods are no gang. Source: KEP-5547 "Job API Changes" (v1.37)."""
    said = {"schedulingPolicy": {"gang": {"minCount": 2}}}
    spec = {"parallelism": 2, "completions": 2, "completionMode": "Indexed", "scheduling": said}
    things = made("batch/v1", "Job", spec)
    assert "PodGroup" in [each["kind"] for each in things]
    assert all("schedulingGroup" in each["spec"] for each in things if each["kind"] == "Pod")


@REPORTED(reason="the first replicated Job counts as the one to wait for, though it has no Jobs")
def test_the_first_jobs_that_there_are_come_first_in_order() -> None:
    """Source: jobset v0.12 pkg/controllers/startup_policy.go, allReplicasStarted."""
    parts = [{"name": "a", "replicas": 0}, {"name": "b"}, {"name": "c"}]
    spec = {"startupPolicy": {"startupPolicyOrder": "InOrder"}, "replicatedJobs": parts}
    assert names_of_pods(made("jobset.x-k8s.io/v1alpha2", "JobSet", spec)) == ["w-b-0-0"]


@REPORTED(reason="minPartitions is not read where a task says no minAvailable")
def test_a_task_of_partitions_needs_as_many_of_them_as_it_says() -> None:
    """Source: volcano v1.14 pkg/webhooks/admission/jobs/mutate/mutate_job.go, mutateSpec."""
    policy = {"totalPartitions": 4, "partitionSize": 2, "minPartitions": 1}
    spec = {"tasks": [{"name": "t", "replicas": 8, "partitionPolicy": policy}]}
    things = made("batch.volcano.sh/v1alpha1", "Job", spec)
    (group,) = [each["spec"] for each in things if each["kind"] == "PodGroup"]
    assert (group["minMember"], group["minTaskMember"]) == (2, {"t": 2})


@REPORTED(reason="dependsOn of tasks is not read")
def test_a_task_that_depends_on_another_has_no_pods_at_first() -> None:
    """Source: volcano v1.14 pkg/controllers/job/job_controller_actions.go, syncJob."""
    one = {"replicas": 1, "minAvailable": 1}
    tasks = [{"name": "a", **one}, {"name": "b", "dependsOn": {"name": ["a"]}, **one}]
    pods = names_of_pods(made("batch.volcano.sh/v1alpha1", "Job", {"tasks": tasks}))
    assert pods == ["w-a-0"]


@REPORTED(reason="what says no number of replicas has one, of whichever kind")
@pytest.mark.parametrize(
    ("api", "kind", "spec"),
    [
        pytest.param(
            "grove.io/v1alpha1",
            "PodCliqueSet",
            {"template": {"cliques": [{"name": "c", "spec": {"replicas": 1}}]}},
            id="pod_clique_set",
        ),
        pytest.param("batch.volcano.sh/v1alpha1", "Job", {"tasks": [{"name": "t"}]}, id="vcjob"),
        pytest.param(
            "kubeflow.org/v2beta1",
            "MPIJob",
            {"mpiReplicaSpecs": {"Worker": {"template": {}}}},
            id="mpi_workers",
        ),
    ],
)
def test_some_kinds_have_no_pods_where_they_say_no_number(api: str, kind: str, spec: Thing) -> None:
    """Source: grove v0.1.0-alpha.8 operator/api/core/v1alpha1/podcliqueset.go; volcano v1.14
    config/crd; mpi-operator v0.7 pkg/apis/kubeflow/v2beta1/default.go."""
    assert names_of_pods(made(api, kind, spec)) == []
