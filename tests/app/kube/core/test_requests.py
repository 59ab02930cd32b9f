"""A pod's request is what kube-scheduler would subtract from the node."""

from __future__ import annotations

import json

import pytest

from app.kube.core.decode import decode_node, decode_pod


def container(always: bool = False, **requests: str) -> dict:
    """One container asking for these; `always` makes an init container a sidecar."""
    policy = {"restartPolicy": "Always"} if always else {}
    return {"name": "c", "resources": {"requests": requests}, **policy}


def request_of(**spec: object) -> dict[str, int]:
    pod = {"metadata": {"namespace": "team", "name": "p"}, "spec": spec}
    record = decode_pod(json.dumps(pod).encode(), keep=lambda _key: False)
    assert record.problem == ""
    assert list(record.request) == sorted(record.request)
    return dict(record.request)


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param({}, {}, id="a_pod_without_containers_takes_one_pod_slot"),
        pytest.param(
            {"containers": [container(cpu="1", memory="1Ki"), container(cpu="500m")]},
            {"cpu": 1500, "memory": 1024},
            id="containers_add_up",
        ),
        pytest.param(
            {"containers": [container(memory="0.5"), container(memory="0.5")]},
            {"memory": 1},
            id="halves_are_added_before_rounding",
        ),
        pytest.param(
            {
                "containers": [container(cpu="1", memory="1Ki")],
                "initContainers": [container(cpu="3"), container(cpu="2", memory="2Ki")],
            },
            {"cpu": 3000, "memory": 2048},
            id="the_largest_init_container_counts_per_resource",
        ),
        pytest.param(
            {
                "containers": [container(cpu="1")],
                "initContainers": [container(True, cpu="2"), container(True, cpu="4")],
            },
            {"cpu": 7000},
            id="sidecars_stay_beside_the_containers",
        ),
        pytest.param(
            {
                "containers": [container(cpu="1")],
                "initContainers": [
                    container(cpu="8"),
                    container(True, cpu="2"),
                    container(cpu="7"),
                ],
            },
            {"cpu": 9000},
            id="an_init_container_runs_beside_the_sidecars_before_it",
        ),
        pytest.param(
            {
                "containers": [container(cpu="1")],
                "initContainers": [container(cpu="8"), container(True, cpu="2")],
            },
            {"cpu": 8000},
            id="an_init_container_does_not_run_beside_sidecars_after_it",
        ),
        pytest.param(
            {
                "containers": [container(cpu="4", memory="4Ki", **{"nvidia.com/gpu": "2"})],
                "resources": {"requests": {"cpu": "1", "nvidia.com/gpu": "9"}},
                "overhead": {"cpu": "250m"},
            },
            {"cpu": 1250, "memory": 4096, "nvidia.com/gpu": 2},
            id="pod_level_resources_replace_and_overhead_adds",
        ),
        pytest.param(
            {
                "containers": [container(**{"hugepages-2Mi": "4Mi"})],
                "resources": {"requests": {"hugepages-2Mi": "8Mi", "memory": "1Ki"}},
            },
            {"hugepages-2Mi": 8 * 2**20, "memory": 1024},
            id="pod_level_hugepages_and_memory",
        ),
        pytest.param(
            {"containers": [container(cpu="0", pods="5"), {"resources": None}, None]},
            {},
            id="nothing_asked_is_left_out_and_pods_cannot_be_asked_for",
        ),
        pytest.param(
            {"containers": [{"resources": {"limits": {"cpu": "8"}}}]},
            {},
            id="limits_are_not_requests",
        ),
    ],
)
def test_pod_request(spec, expected):
    assert request_of(**spec) == {**expected, "pods": 1}


def test_equal_requests_are_one_tuple():
    first, second = (
        decode_pod(
            json.dumps({"spec": {"containers": [container(cpu=cpu)]}}).encode(), lambda _: False
        )
        for cpu in ("1", "1000m")
    )
    assert first.request is second.request


def test_an_unreadable_amount_is_reported_and_counts_as_nothing():
    spec = {"containers": [container(cpu="1"), container(cpu="-5", memory="1Ki")]}
    pod = {"metadata": {"namespace": "team", "name": "p"}, "spec": spec}
    record = decode_pod(json.dumps(pod).encode(), keep=lambda _key: False)
    assert dict(record.request) == {"cpu": 1000, "memory": 1024, "pods": 1}
    where = "Pod team/p: spec.containers[1].resources.requests: cpu: '-5'"
    assert record.problem.startswith(where)


def test_ten_thousand_containers_are_added():
    spec = {"containers": [container(cpu="1m")] * 10_000}
    assert request_of(**spec) == {"cpu": 10_000, "pods": 1}


def test_allocatable_rounds_down_and_defaults_to_capacity():
    node = {"status": {"capacity": {"cpu": "1999.9m", "pods": "110", "memory": "1.9"}}}
    record = decode_node(json.dumps(node).encode())
    assert record.allocatable == (("cpu", 1999), ("memory", 1), ("pods", 110))


def test_a_node_with_an_unreadable_amount_says_so():
    node = {"metadata": {"name": "n1"}, "status": {"allocatable": {"cpu": "1", "memory": "1e99"}}}
    record = decode_node(json.dumps(node).encode())
    assert record.allocatable == (("cpu", 1000), ("memory", 0))
    assert record.problem.startswith("Node n1: status.allocatable: memory: '1e99'")
