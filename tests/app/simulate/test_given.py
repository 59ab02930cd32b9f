"""Objects are created anew, also those that were read of a cluster a moment ago."""

from __future__ import annotations

import json
from typing import Any

import pytest

from app.simulate.body import objects_in
from app.simulate.copying import Copy
from app.simulate.given import all_given
from app.simulate.simulating import simulate
from app.simulate.view import Simulated, Verdict
from tests.app.simulate.clusters import engine_of
from tests.app.simulate.test_as_created import AT, RULES
from tests.records import GPU, RACK, REQUIRED, node

Thing = dict[str, Any]
READ = {
    "creationTimestamp": "2026-01-01T00:00:00Z",
    "deletionTimestamp": "2026-01-01T01:00:00Z",
    "deletionGracePeriodSeconds": 30,
    "generation": 3,
    "resourceVersion": "4711",
    "uid": "5a6c",
}


def simulated(*things: Thing) -> Simulated:
    engine = engine_of([node(f"b0/r0/n{at}") for at in range(4)])
    given = all_given(objects_in(json.dumps(things).encode()), "default")
    return simulate(given, Copy.of(engine, AT), RULES).gangs[0]


def template() -> Thing:
    containers = [{"name": "m", "resources": {"requests": {GPU: 8}}}]
    spec = {"schedulerName": "corral", "containers": containers}
    return {"metadata": {"annotations": {REQUIRED: RACK}}, "spec": spec}


def job() -> Thing:
    spec = {"parallelism": 4, "completions": 4, "template": template()}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j"}, "spec": spec}


def job_set() -> Thing:
    parts = [
        {"name": name, "template": {"spec": {"parallelism": 2, "template": template()}}}
        for name in ("driver", "workers")
    ]
    spec = {"startupPolicy": {"startupPolicyOrder": "InOrder"}, "replicatedJobs": parts}
    api = "jobset.x-k8s.io/v1alpha2"
    return {"apiVersion": api, "kind": "JobSet", "metadata": {"name": "s"}, "spec": spec}


def pod() -> Thing:
    made = template()
    return {
        **made,
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", **made["metadata"]},
    }


@pytest.mark.parametrize(
    ("thing", "status", "pods"),
    [
        pytest.param(job(), {"succeeded": 2, "active": 2}, 4, id="job_that_runs"),
        pytest.param(job(), {"succeeded": 4}, 4, id="job_that_is_complete"),
        pytest.param(job_set(), {"restarts": 3}, 4, id="job_set_that_has_restarted"),
        pytest.param(pod(), {"phase": "Succeeded"}, 1, id="pod_that_has_ended"),
    ],
)
def test_what_was_read_of_a_cluster_is_created_without_its_status(
    thing: Thing, status: Thing, pods: int
) -> None:
    metadata = {**thing["metadata"], **READ}
    found = simulated({**thing, "metadata": metadata, "status": status})
    assert (found.verdict, len(found.places)) == (Verdict.FITS, pods)


def test_the_status_of_an_object_that_has_it_as_a_part_of_its_own_stays() -> None:
    """Volcano's PodGroup: the API server stores what its creator writes there."""
    api = "scheduling.volcano.sh/v1beta1"
    group = {"apiVersion": api, "kind": "PodGroup", "metadata": {"name": "g"}, "status": {"a": 1}}
    (given,) = all_given([group], "default")
    assert given.content["status"] == {"a": 1}


@pytest.mark.parametrize(
    ("is_of_policy", "is_suspended"), [(False, True), (True, True), (False, False), (True, False)]
)
def test_what_is_suspended_is_told_wherever_its_kind_says_so(
    is_of_policy: bool, is_suspended: bool
) -> None:
    thing, said = job(), {"suspend": is_suspended}
    if is_of_policy:
        spec = {"pytorchReplicaSpecs": {"Worker": {"replicas": 4, "template": template()}}}
        thing = {**thing, "apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "spec": spec}
    thing["spec"] = {**thing["spec"], **({"runPolicy": said} if is_of_policy else said)}
    found = simulated(thing)
    assert found.verdict is Verdict.FITS
    assert any("is suspended" in each for each in found.notes) is is_suspended


@pytest.mark.parametrize(
    ("resources", "container", "needs"),
    [
        pytest.param({"limits": {"cpu": "65"}}, {}, True, id="limit_of_the_pod"),
        pytest.param({"limits": {"cpu": "65"}}, {"requests": {"cpu": "1"}}, False, id="container"),
        pytest.param(
            {"limits": {"cpu": "65"}, "requests": {"cpu": "1"}}, {}, False, id="request_of_the_pod"
        ),
        pytest.param({"limits": {"cpu": "65"}}, {"limits": {"cpu": "2"}}, False, id="filled_in"),
        pytest.param({"limits": {"example.com/x": "9"}}, {}, False, id="no_resource_of_pods"),
        pytest.param({"limits": {"hugepages-2Mi": "2Mi"}}, {}, True, id="huge_pages"),
        pytest.param({"limits": 3}, {}, False, id="no_limits"),
    ],
)
def test_a_pod_requests_what_it_is_limited_to_as_a_whole(
    resources: Thing, container: Thing, needs: bool
) -> None:
    """On nodes of 64 CPUs, without huge pages."""
    thing = pod()
    thing["spec"] = {**thing["spec"], "containers": [{"name": "m", "resources": container}]}
    thing["spec"]["resources"] = resources
    found = simulated(thing).verdict
    assert found is (Verdict.DOES_NOT_FIT if needs else Verdict.FITS)
