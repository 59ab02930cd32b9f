"""What controllers make of objects at their edges."""

from __future__ import annotations

from typing import Any

import pytest

from app.dialects.making import MAKERS, Misfit

Thing = dict[str, Any]
MOST = 2**31 - 1


def made(api: str, kind: str, spec: Thing) -> list[Thing]:
    metadata = {"namespace": "default", "name": "w", "uid": "u"}
    of = {"apiVersion": api, "kind": kind, "metadata": metadata, "spec": spec}
    return [each.content for each in MAKERS[api.rpartition("/")[0], kind](of)]


def names_of_pods(things: list[Thing]) -> list[str]:
    return [each["metadata"]["name"] for each in things if each["kind"] == "Pod"]


def test_the_pods_of_a_stateful_set_are_numbered_from_where_it_says() -> None:
    spec = {"replicas": 2, "podManagementPolicy": "Parallel", "ordinals": {"start": 5}}
    assert names_of_pods(made("apps/v1", "StatefulSet", spec)) == ["w-5", "w-6"]
    assert names_of_pods(made("apps/v1", "StatefulSet", {**spec, "podManagementPolicy": ""})) == [
        "w-5"
    ]


@pytest.mark.parametrize("ordinals", [None, {}, {"start": None}, {"start": 0}])
def test_ordinals_begin_with_0_where_nothing_else_is_said(ordinals: object) -> None:
    assert names_of_pods(made("apps/v1", "StatefulSet", {"ordinals": ordinals})) == ["w-0"]


@pytest.mark.parametrize("ordinals", [{"start": -1}, {"start": "5"}, 5])
def test_ordinals_that_are_no_numbers_are_told(ordinals: object) -> None:
    with pytest.raises(Misfit, match=r"spec\.ordinals"):
        made("apps/v1", "StatefulSet", {"ordinals": ordinals})


def test_a_job_that_says_how_its_pods_are_scheduled_has_a_pod_group() -> None:
    """Simulated, its pods are no gang. Source: KEP-5547 "Job API Changes" (v1.37)."""
    said = {"schedulingPolicy": {"gang": {"minCount": 2}}}
    spec = {"parallelism": 2, "completions": 2, "completionMode": "Indexed", "scheduling": said}
    things = made("batch/v1", "Job", spec)
    assert "PodGroup" in [each["kind"] for each in things]
    assert all("schedulingGroup" in each["spec"] for each in things if each["kind"] == "Pod")


FIXED = {"parallelism": 4, "completions": 4, "completionMode": "Indexed"}
GANG_OF_4 = {"schedulingPolicy": {"gang": {"minCount": 4}}}
IN_RACK = {"schedulingConstraints": {"topology": [{"key": "rack"}]}}


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param(
            {**FIXED, "scheduling": {"schedulingPolicy": {"gang": {}}}}, GANG_OF_4, id="all"
        ),
        pytest.param({**FIXED, "scheduling": {}}, GANG_OF_4, id="a_fixed_number_of_pods"),
        pytest.param(
            {"parallelism": 4, "scheduling": IN_RACK},
            {**IN_RACK, "schedulingPolicy": {"basic": {}}},
            id="pods_that_others_follow",
        ),
        pytest.param(
            {**FIXED, "scheduling": {**GANG_OF_4, "disruptionMode": {"all": {}}, "other": 1}},
            {**GANG_OF_4, "disruptionMode": {"all": {}}},
            id="what_a_pod_group_has_too",
        ),
    ],
)
def test_the_pod_group_says_what_the_job_does(spec: Thing, expected: Thing) -> None:
    """It comes before the pods, and is of the Job."""
    job, group, *pods = made("batch/v1", "Job", spec)
    assert (group["kind"], group["spec"]) == ("PodGroup", expected)
    assert group["metadata"]["ownerReferences"][0]["kind"] == job["kind"] == "Job"
    named = {each["spec"]["schedulingGroup"]["podGroupName"] for each in pods}
    assert named == {group["metadata"]["name"]}


@pytest.mark.parametrize(
    "spec",
    [
        pytest.param(FIXED, id="nothing_said"),
        pytest.param({**FIXED, "scheduling": None}, id="null"),
        pytest.param(
            {
                **FIXED,
                "scheduling": GANG_OF_4,
                "template": {"spec": {"schedulingGroup": {"podGroupName": "own"}}},
            },
            id="in_another",
        ),
    ],
)
def test_no_pod_group_is_made_of_a_job_that_has_none_or_another(spec: Thing) -> None:
    things = made("batch/v1", "Job", spec)
    assert [each["kind"] for each in things] == ["Job", *["Pod"] * 4]
    own = mapping_of(spec, "template", "spec").get("schedulingGroup")
    assert all(each["spec"].get("schedulingGroup") == own for each in things[1:])


def mapping_of(thing: Thing, *names: str) -> Thing:
    for name in names:
        thing = thing.get(name, {})
    return thing


@pytest.mark.parametrize(
    "scheduling", ["x", {"schedulingPolicy": []}, {"schedulingPolicy": {"gang": 1}}]
)
def test_scheduling_of_another_type_is_named(scheduling: object) -> None:
    with pytest.raises(Misfit, match=r"spec\.scheduling.*must be an object"):
        made("batch/v1", "Job", {**FIXED, "scheduling": scheduling})


def test_each_job_of_a_job_set_has_its_own() -> None:
    part = {"name": "a", "replicas": 2, "template": {"spec": {"scheduling": GANG_OF_4, **FIXED}}}
    things = made("jobset.x-k8s.io/v1alpha2", "JobSet", {"replicatedJobs": [part]})
    kinds = [each["kind"] for each in things]
    assert kinds == ["JobSet", *["Job", "PodGroup", *["Pod"] * 4] * 2]
    groups = [each["metadata"]["name"] for each in things if each["kind"] == "PodGroup"]
    assert groups == ["w-a-0-w-a-0-pgt-0", "w-a-1-w-a-1-pgt-0"]


def test_the_first_jobs_that_there_are_come_first_in_order() -> None:
    """Source: jobset v0.12 pkg/controllers/startup_policy.go, allReplicasStarted."""
    parts = [{"name": "a", "replicas": 0}, {"name": "b"}, {"name": "c"}]
    spec = {"startupPolicy": {"startupPolicyOrder": "InOrder"}, "replicatedJobs": parts}
    assert names_of_pods(made("jobset.x-k8s.io/v1alpha2", "JobSet", spec)) == ["w-b-0-0"]


def test_jobs_without_pods_are_ready_at_once() -> None:
    """Source: jobset v0.12 pkg/controllers/jobset_controller.go, calculateReplicatedJobStatuses."""
    none = {"spec": {"parallelism": 0}}
    parts = [{"name": "a", "replicas": 2, "template": none}, {"name": "b"}, {"name": "c"}]
    spec = {"startupPolicy": {"startupPolicyOrder": "InOrder"}, "replicatedJobs": parts}
    things = made("jobset.x-k8s.io/v1alpha2", "JobSet", spec)
    jobs = [each["metadata"]["name"] for each in things if each["kind"] == "Job"]
    assert (jobs, names_of_pods(things)) == (["w-a-0", "w-a-1", "w-b-0"], ["w-b-0-0"])


@pytest.mark.parametrize(("replicas", "pods"), [(0, ["w-b-0-0"]), (1, ["w-a-0-0"])])
def test_what_depends_on_no_jobs_waits_for_none(replicas: int, pods: list[str]) -> None:
    """Source: jobset v0.12 pkg/controllers/depends_on.go, dependencyReachedStatus."""
    on = [{"name": "a", "status": "Ready"}]
    parts = [{"name": "a", "replicas": replicas}, {"name": "b", "dependsOn": on}]
    assert names_of_pods(made("jobset.x-k8s.io/v1alpha2", "JobSet", {"replicatedJobs": parts})) == (
        pods
    )


def test_a_task_of_partitions_needs_as_many_of_them_as_it_says() -> None:
    """Source: volcano v1.14 pkg/webhooks/admission/jobs/mutate/mutate_job.go, mutateSpec."""
    policy = {"totalPartitions": 4, "partitionSize": 2, "minPartitions": 1}
    spec = {"tasks": [{"name": "t", "replicas": 8, "partitionPolicy": policy}]}
    things = made("batch.volcano.sh/v1alpha1", "Job", spec)
    (group,) = [each["spec"] for each in things if each["kind"] == "PodGroup"]
    assert (group["minMember"], group["minTaskMember"]) == (2, {"t": 2})


@pytest.mark.parametrize(
    ("more", "least"),
    [
        pytest.param({}, 0, id="says_no_number"),
        pytest.param({"minPartitions": 3}, 6, id="some"),
        pytest.param(
            {"minPartitions": 2**31 - 1, "partitionSize": 2**31 - 1}, 2**31 - 1, id="many"
        ),
    ],
)
def test_what_a_task_of_partitions_needs_by_itself(more: Thing, least: int) -> None:
    policy = {"totalPartitions": 4, "partitionSize": 2, **more}
    spec = {"tasks": [{"name": "t", "replicas": 8, "partitionPolicy": policy}]}
    things = made("batch.volcano.sh/v1alpha1", "Job", spec)
    (group,) = [each["spec"] for each in things if each["kind"] == "PodGroup"]
    assert group["minTaskMember"] == {"t": least}


@pytest.mark.parametrize(
    ("least", "gpus"),
    [
        pytest.param(3, "3", id="fewer_than_the_tasks_need_are_the_first"),
        pytest.param(4, "22", id="what_the_tasks_need"),
        pytest.param(6, "24", id="and_then_the_first_others"),
    ],
)
def test_a_pod_group_counts_for_what_its_first_pods_request(least: int, gpus: str) -> None:
    """Source: volcano v1.14 pkg/controllers/job/job_controller_util.go, CalcPGMinResources."""
    tasks = [
        {
            "name": name,
            "replicas": 8,
            "minAvailable": 2,
            "template": {"spec": {"containers": [{"resources": {"requests": {"gpu": of_pod}}}]}},
        }
        for name, of_pod in (("a", 1), ("b", 10))
    ]
    spec = {"minAvailable": least, "tasks": tasks}
    things = made("batch.volcano.sh/v1alpha1", "Job", spec)
    (group,) = [each["spec"] for each in things if each["kind"] == "PodGroup"]
    assert group["minResources"]["gpu"] == gpus


def test_a_task_that_depends_on_another_has_no_pods_at_first() -> None:
    """Source: volcano v1.14 pkg/controllers/job/job_controller_actions.go, syncJob."""
    one = {"replicas": 1, "minAvailable": 1}
    tasks = [{"name": "a", **one}, {"name": "b", "dependsOn": {"name": ["a"]}, **one}]
    pods = names_of_pods(made("batch.volcano.sh/v1alpha1", "Job", {"tasks": tasks}))
    assert pods == ["w-a-0"]


@pytest.mark.parametrize(
    ("on", "has_pods"),
    [
        pytest.param({"name": []}, True, id="none"),
        pytest.param({"name": ["none"]}, True, id="one_that_needs_no_pods"),
        pytest.param({"name": ["none", "a"]}, False, id="all_of_two"),
        pytest.param({"name": ["none", "a"], "iteration": "any"}, True, id="any_of_two"),
        pytest.param({"name": ["a", "a"], "iteration": "any"}, False, id="neither"),
        pytest.param({"name": ["a"], "iteration": "any"}, False, id="any_of_one"),
        pytest.param({"name": ["gone"]}, False, id="one_that_is_not_there"),
        pytest.param(None, True, id="null"),
    ],
)
def test_a_task_waits_until_those_it_names_have_the_pods_they_need(
    on: Thing | None, has_pods: bool
) -> None:
    """Source: volcano v1.14 pkg/controllers/job/job_controller_actions.go,
    waitDependsOnTaskMeetCondition."""
    tasks = [
        {"name": "none", "replicas": 1, "minAvailable": 0},
        {"name": "a", "replicas": 1},
        {"name": "b", "replicas": 1, "dependsOn": on},
    ]
    pods = names_of_pods(made("batch.volcano.sh/v1alpha1", "Job", {"tasks": tasks}))
    assert pods == ["w-none-0", "w-a-0", *(["w-b-0"] if has_pods else [])]


@pytest.mark.parametrize("names", ["a", [1], {"a": "b"}, [None]])
def test_what_names_no_task_is_named(names: object) -> None:
    task = {"name": "t", "replicas": 1, "dependsOn": {"name": names}}
    with pytest.raises(Misfit, match=r"spec\.tasks\[0\]\.dependsOn\.name"):
        made("batch.volcano.sh/v1alpha1", "Job", {"tasks": [task]})


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


@pytest.mark.parametrize("said", [{}, {"replicas": 0}, {"replicas": 1}])
def test_a_clique_has_one_pod_at_least(said: Thing) -> None:
    """Source: grove v0.1.0-alpha.8 operator/internal/webhook/admission/pcs/defaulting."""
    spec = {"replicas": 1, "template": {"cliques": [{"name": "c", "spec": said}]}}
    assert names_of_pods(made("grove.io/v1alpha1", "PodCliqueSet", spec)) == ["w-0-c-0"]
