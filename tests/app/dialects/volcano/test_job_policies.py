"""What a vcjob makes of its pods that are evicted, as its policies say."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from app.dialects.registry import DIALECTS
from app.dialects.spec import FailureLimit
from app.dialects.volcano.jobs import decode_job

Thing = dict[str, Any]


def on(action: str, *events: str) -> Thing:
    return {"action": action, "events": [*events]}


def limit(spec: Thing, retries: int = 0) -> FailureLimit | None:
    made = {
        "metadata": {"namespace": "team", "name": "train", "uid": "u"},
        "spec": {"tasks": [{"name": "w", "replicas": 2}], **spec},
        "status": {"retryCount": retries},
    }
    return DIALECTS.failure_limit(decode_job(msgspec.json.encode(made)), None)


@pytest.mark.parametrize("action", ["AbortJob", "TerminateJob", "CompleteJob"])
@pytest.mark.parametrize("event", ["PodEvicted", "*"])
def test_one_that_ends_with_the_first_evicted_pod_may_lose_none(action: str, event: str) -> None:
    """Source: volcano v1.14 pkg/controllers/job/job_controller_util.go, applyPolicies."""
    assert limit({"policies": [on(action, event)]}) == FailureLimit(0)
    assert limit({"policies": [{"action": action, "event": event}]}) == FailureLimit(0)


@pytest.mark.parametrize(
    "spec",
    [
        pytest.param({}, id="makes_them_again"),
        pytest.param({"policies": None, "tasks": None}, id="nothing"),
        pytest.param({"policies": [None, {}, on("AbortJob", "PodFailed")]}, id="other_event"),
        pytest.param({"policies": [on("Later", "PodEvicted")]}, id="unknown_action"),
        pytest.param({"policies": [{"action": "AbortJob", "exitCode": 3}]}, id="exit_code"),
        pytest.param(
            {"policies": [on("RestartTask", "PodEvicted"), on("AbortJob", "*")]}, id="the_first"
        ),
    ],
)
def test_one_that_goes_on_may_lose_any_number(spec: Thing) -> None:
    assert limit(spec) is None


def test_a_policy_of_a_task_counts_before_that_of_the_vcjob() -> None:
    ends, restarts = on("TerminateJob", "PodEvicted"), on("RestartTask", "PodEvicted")
    task = {"name": "w", "replicas": 2}
    assert limit({"tasks": [{**task, "policies": [restarts]}], "policies": [ends]}) is None
    whole = {"tasks": [{**task, "policies": [ends]}, task], "policies": [restarts]}
    assert limit(whole) == FailureLimit(0)
    of_one = {"tasks": [{**task, "policies": [restarts]}, task], "policies": [ends]}
    assert limit(of_one) == FailureLimit(0)


@pytest.mark.parametrize("action", ["RestartJob", "RestartTask", "RestartPod", "RestartPartition"])
@pytest.mark.parametrize(
    ("most", "retries", "lives"),
    [(None, 1, True), (None, 2, False), (0, 1, True), (5, 3, True), (5, 4, False), (1, 0, False)],
)
def test_one_that_starts_again_does_so_as_often_as_it_may(
    action: str, most: int | None, retries: int, lives: bool
) -> None:
    """Source: volcano v1.14 pkg/controllers/job/state/{running,restarting}.go."""
    spec: Thing = {"policies": [on(action, "PodEvicted")]}
    if most is not None:
        spec["maxRetry"] = most
    assert limit(spec, retries) == (None if lives else FailureLimit(0))
