"""A pod that is being resized takes what kube-scheduler counts, whatever it asks for.

Source: k8s.io/component-helpers/resource/helpers_test.go (v0.36).
"""

from __future__ import annotations

import json

import pytest

from app.kube.decoding.decode import decode_pod
from app.kube.decoding.large.parts import LARGE

INFEASIBLE = {"type": "PodResizePending", "status": "True", "reason": "Infeasible"}
DEFERRED = {"type": "PodResizePending", "status": "True", "reason": "Deferred"}
IN_PROGRESS = {"type": "PodResizeInProgress", "status": "True"}


def container(name: str, cpu: str, always: bool = False) -> dict:
    policy = {"restartPolicy": "Always"} if always else {}
    return {"name": name, "resources": {"requests": {"cpu": cpu, "example.com/gpu": "1"}}, **policy}


def state(name: str, in_force: str, allocated: str) -> dict:
    said = {"requests": {"cpu": in_force}}
    return {"name": name, "resources": said, "allocatedResources": {"cpu": allocated}}


def request_of(spec: dict, *conditions: dict, **status: object) -> dict[str, int]:
    said = {"conditions": conditions, **status}
    raw = json.dumps({"metadata": {"name": "p"}, "spec": spec, "status": said}).encode()
    record = decode_pod(raw, keep=lambda _key: False)
    assert record.problem == ""
    return dict(record.request)


@pytest.mark.parametrize(
    ("condition", "asked", "in_force", "allocated", "counted"),
    [
        pytest.param(INFEASIBLE, "4000", "1", "1", 1_000, id="what_is_infeasible_will_not_be"),
        pytest.param(INFEASIBLE, "4000", "2", "1", 2_000, id="but_what_is_in_force_is"),
        pytest.param(INFEASIBLE, "100m", "1", "2", 2_000, id="and_what_is_allocated"),
        pytest.param(DEFERRED, "4", "1", "1", 4_000, id="what_is_deferred_may_be_at_any_time"),
        pytest.param(IN_PROGRESS, "1", "4", "1", 4_000, id="less_only_counts_once_it_is_in_force"),
        pytest.param(IN_PROGRESS, "4", "1", "4", 4_000, id="more_counts_at_once"),
        pytest.param(IN_PROGRESS, "1", "no", "2", 2_000, id="what_cannot_be_read_says_nothing"),
    ],
)
@pytest.mark.parametrize("padding", ["", "x" * LARGE], ids=["small", "large"])
def test_a_container_that_is_resized(condition, asked, in_force, allocated, counted, padding):
    spec = {"containers": [{**container("c", asked), "image": padding}, container("other", "500m")]}
    found = request_of(spec, condition, containerStatuses=[state("c", in_force, allocated)])
    assert found == {"cpu": counted + 500, "example.com/gpu": 2, "pods": 1}


def test_a_sidecar_is_resized_and_what_ran_before_it_is_not():
    spec = {
        "containers": [container("c", "1")],
        "initContainers": [container("first", "3"), container("side", "8", always=True)],
    }
    states = [state("first", "1", "1"), state("side", "1", "1")]
    found = request_of(spec, INFEASIBLE, initContainerStatuses=states)
    assert found["cpu"] == 3_000


def test_what_a_pod_requests_as_a_whole_is_resized_too():
    spec = {"containers": [container("c", "1")], "resources": {"requests": {"cpu": "64"}}}
    whole = {"resources": {"requests": {"cpu": "2"}}, "allocatedResources": {"cpu": "2"}}
    assert request_of(spec, INFEASIBLE, **whole)["cpu"] == 2_000
    assert request_of(spec, DEFERRED, **whole)["cpu"] == 64_000


@pytest.mark.parametrize("states", [[], [{"name": "c"}], [None], None, [{"name": "other"}]])
def test_what_a_kubelet_has_not_said_yet_changes_nothing(states):
    spec = {"containers": [container("c", "4")]}
    assert request_of(spec, INFEASIBLE, containerStatuses=states)["cpu"] == 4_000


@pytest.mark.parametrize("status", [{"containerStatuses": 7}, {"resources": [7]}])
def test_a_status_that_cannot_be_read_changes_nothing(status):
    spec = {"containers": [container("c", "4")]}
    assert request_of(spec, INFEASIBLE, **status)["cpu"] == 4_000


def test_a_status_without_a_resize_is_not_read():
    spec = {"containers": [container("c", "4")]}
    ready = {"type": "Ready", "status": "True"}
    assert request_of(spec, ready, containerStatuses=[state("c", "1", "1")])["cpu"] == 4_000


def test_of_many_containers_each_counts_with_its_own():
    names = [f"c{at}" for at in range(3_000)]
    spec = {"containers": [container(each, "64") for each in names]}
    states = [state(each, "100m", "100m") for each in names]
    assert request_of(spec, INFEASIBLE, containerStatuses=states)["cpu"] == 300_000
