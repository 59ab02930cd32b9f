"""How the containers of a pod are: as Grove's operator sorts pods."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from app.kube.core.objects import PodRecord
from app.kube.decoding.decode import decode_pod

Json = dict[str, Any]
READY = {"type": "Ready", "status": "True"}
UNREADY = {"type": "Ready", "status": "False", "reason": "ContainersNotReady"}
# Every pod whose containers are ready has this one too, and its name ends alike.
CONTAINERS = {"type": "ContainersReady", "status": "True"}


def read(status: Json, *, node: str = "n1") -> PodRecord:
    made = {"metadata": {"name": "p"}, "spec": {"nodeName": node}, "status": status}
    return decode_pod(msgspec.json.encode(made), keep=lambda _: False)


def ended(code: int, **more: Any) -> Json:
    return {"name": "c", "lastState": {"terminated": {"exitCode": code}}, **more}


@pytest.mark.parametrize(
    ("status", "health"),
    [
        pytest.param({}, "", id="nothing_said"),
        pytest.param({"conditions": [CONTAINERS, READY]}, "ready", id="ready"),
        pytest.param({"conditions": [CONTAINERS]}, "", id="only_its_containers_are_ready"),
        pytest.param({"conditions": [UNREADY]}, "", id="starting"),
        pytest.param(
            {"conditions": [UNREADY], "containerStatuses": [{"started": False, "ready": False}]},
            "",
            id="its_startup_probe_has_not_succeeded",
        ),
        pytest.param(
            {"conditions": [UNREADY], "containerStatuses": [{"started": True, "ready": False}]},
            "failing",
            id="started_and_not_ready",
        ),
        pytest.param(
            {"conditions": [UNREADY], "containerStatuses": [ended(1)]}, "failing", id="has_erred"
        ),
        pytest.param(
            {"conditions": [UNREADY], "initContainerStatuses": [ended(2)]},
            "failing",
            id="an_init_container_has_erred",
        ),
        pytest.param(
            {"conditions": [UNREADY], "containerStatuses": [ended(0)]}, "", id="has_ended_well"
        ),
        pytest.param(
            {"conditions": [READY], "containerStatuses": [ended(1, started=True, ready=True)]},
            "ready",
            id="ready_again",
        ),
        pytest.param(
            {"conditions": [UNREADY], "containerStatuses": [None, {"lastState": None}]},
            "",
            id="nulls",
        ),
        pytest.param({"containerStatuses": "none"}, "", id="not_readable"),
        pytest.param({"conditions": {"type": "Ready"}}, "", id="conditions_not_readable"),
    ],
)
def test_a_pod_is_ready_or_failing_or_starts(status: Json, health: str) -> None:
    assert read(status).health == health


def test_of_a_pod_without_a_node_nothing_is_said() -> None:
    assert read({"conditions": [READY]}, node="").health == ""


def test_statuses_that_are_too_many_are_not_read() -> None:
    many = [ended(1) for _ in range(100_000)]
    assert read({"conditions": [UNREADY], "containerStatuses": many}).health == ""


def test_a_pod_that_becomes_ready_repeats_what_is_known() -> None:
    assert read({"conditions": [READY]}).repeats(read({"conditions": [UNREADY]}))
