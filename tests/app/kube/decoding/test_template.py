"""What pods request is what their template says, with the API server's defaults."""

from __future__ import annotations

import json
from typing import Any

import pytest

from app.errors import DecodeError
from app.kube.core.objects import PodRecord
from app.kube.decoding.template import decode_template

GPU = "nvidia.com/gpu"
PAGES = "hugepages-2Mi"
Thing = dict[str, Any]


def read(metadata: Thing | None = None, **spec: Any) -> PodRecord:
    template = {"metadata": metadata or {}, "spec": spec}
    return decode_template(json.dumps(template).encode(), lambda key: key == "kept")


def limited(requests: Thing | None = None, *, always: bool = False, **limits: Any) -> Thing:
    resources = {"limits": limits} if requests is None else {"limits": limits, "requests": requests}
    policy = {"restartPolicy": "Always"} if always else {}
    return {"name": "c", "resources": resources, **policy}


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param({"containers": [limited(**{GPU: 8})]}, {GPU: 8}, id="limits"),
        pytest.param(
            {"containers": [limited({"cpu": "1"}, cpu="2", **{GPU: "8"})]},
            {"cpu": 1000, GPU: 8},
            id="what_is_requested_counts",
        ),
        pytest.param(
            {"containers": [limited({"cpu": None}, cpu="2"), None, {"name": "d"}]},
            {},
            id="what_is_null_is_requested_as_zero",
        ),
        pytest.param(
            {"containers": [{"resources": {"limits": None}}, {"resources": {"limits": {}}}]},
            {},
            id="no_limits",
        ),
        pytest.param(
            {"containers": [limited(cpu="1")], "initContainers": [limited(cpu="3")]},
            {"cpu": 3000},
            id="an_init_container_runs_alone",
        ),
        pytest.param(
            {
                "containers": [limited(cpu="1")],
                "initContainers": [limited(always=True, cpu="2"), limited(cpu="2")],
                "overhead": {"cpu": "250m"},
            },
            {"cpu": 4250},
            id="a_sidecar_stays_and_overhead_comes_on_top",
        ),
        pytest.param(
            {"containers": [{"name": "c"}], "resources": {"limits": {"cpu": "4", GPU: 8}}},
            {"cpu": 4000},
            id="limits_of_the_pod",
        ),
        pytest.param(
            {"containers": [limited(cpu="1")], "resources": {"limits": {"cpu": "4"}}},
            {"cpu": 1000},
            id="a_container_that_is_limited_says_what_the_pod_requests",
        ),
        pytest.param(
            {
                "containers": [limited(cpu="1")],
                "resources": {"limits": {"cpu": "4"}, "requests": {"cpu": "2"}},
            },
            {"cpu": 2000},
            id="requests_of_the_pod",
        ),
        pytest.param(
            {"containers": [limited(**{PAGES: "2Mi"})], "resources": {"limits": {PAGES: "4Mi"}}},
            {PAGES: 4 * 2**20},
            id="huge_pages_of_the_pod",
        ),
    ],
)
def test_a_template_requests_what_its_pods_do(spec: Thing, expected: dict[str, int]) -> None:
    record = read(**spec)
    assert record.problem == ""
    assert dict(record.request) == {**expected, "pods": 1}


def test_a_template_is_read_in_all_else_as_a_pod() -> None:
    metadata = {"annotations": {"kept": "a", "other": "b"}}
    record = read(metadata, schedulerName="corral", nodeSelector={"zone": "a"})
    assert (record.annotations, record.scheduler) == ({"kept": "a"}, "corral")
    assert record.shape.selector == (("zone", "a"),)


def test_a_large_template_is_read_whole() -> None:
    containers = [{**limited(**{GPU: 1}), "args": ["x" * 100]} for _ in range(400)]
    assert dict(read(containers=containers).request)[GPU] == 400


@pytest.mark.parametrize(
    "spec",
    [
        pytest.param({"containers": [limited(cpu=["1"])]}, id="container"),
        pytest.param({"resources": {"limits": 3}}, id="pod"),
        pytest.param({"initContainers": {}}, id="no_list"),
    ],
)
def test_limits_that_cannot_be_read_are_told_with_their_place(spec: Thing) -> None:
    with pytest.raises(DecodeError, match=r"spec\."):
        read(**spec)


def test_a_limit_that_is_no_quantity_is_told_as_a_request_is() -> None:
    record = read(containers=[limited(cpu="many")])
    assert "spec.containers[0].resources.requests" in record.problem
