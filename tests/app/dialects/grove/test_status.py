"""What is written on a PodGang."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import msgspec
import pytest

from app.dialects.grove import DIALECT
from app.dialects.grove.pod_gangs import decode_pod_gang
from app.dialects.spec import GangKey
from app.dialects.written import AT_WRITE, GangView, StatusPatch
from tests.app.dialects.grove.objects import CREATED, pod_gang, pod_group

KEY = GangKey("default", "g", "grove")
WHY = "gang default/g cannot be placed: 1 of 2 pods fit in one rack"
PATH = "/apis/scheduler.grove.io/v1alpha1/namespaces/default/podgangs/g/status"


def condition(**more: Any) -> dict[str, Any]:
    return {
        "type": "Scheduled",
        "status": "False",
        "reason": "Unschedulable",
        "message": WHY,
        "lastTransitionTime": AT_WRITE,
        **more,
    }


RIGHT = condition(status="True", reason="PodGangScheduled", message="")
UNREADY = condition(
    type="Ready", reason="PodGroupsNotReady", message="fewer pods are ready than it takes"
)
READY = condition(type="Ready", status="True", reason="PodGroupsReady", message="")
HEALTHY = condition(type="Unhealthy", reason="PodGroupsHealthy", message="")
UNHEALTHY = condition(
    type="Unhealthy",
    status="True",
    reason="PodGroupsUnhealthy",
    message="fewer pods are ready or starting than it takes",
)
WAITS = GangView("waiting", 2, 0, WHY)
BINDS = GangView("binding", 2, 0, "")
RUNS = GangView("running", 2, 2, "", is_scheduled=True)
SERVES = replace(RUNS, is_ready=True)
FAILS = replace(RUNS, is_unhealthy=True)
LACKS = GangView("repairing", 2, 1, "one node is gone")


def written(
    view: GangView,
    *there: dict[str, Any],
    phase: str = "Pending",
    least: int = 2,
    score: float | None = None,
) -> StatusPatch | None:
    made = pod_gang("g", pod_group("w", least))
    made["status"] = {"phase": phase, "conditions": list(there), "placementScore": score}
    record = decode_pod_gang(msgspec.json.encode(made))
    spec = DIALECT.spec(KEY, [record], (), ())
    assert spec is not None
    return DIALECT.status(spec, [record], view)


def test_why_its_pods_wait_is_a_condition_beside_those_of_the_operator() -> None:
    status: dict[str, object] = {"conditions": [CREATED, condition()]}
    assert written(WAITS, CREATED) == StatusPatch(PATH, "uid-podgang-g", status, "7")
    # The phase alone takes nothing from others.
    assert written(BINDS, CREATED) == StatusPatch(PATH, "uid-podgang-g", {"phase": "Starting"})


@pytest.mark.parametrize(
    ("view", "phase", "there", "status"),
    [
        pytest.param(BINDS, "Pending", [], {"phase": "Starting"}, id="binding"),
        pytest.param(
            RUNS,
            "Starting",
            [],
            {"phase": "Running", "conditions": [RIGHT, UNREADY, HEALTHY]},
            id="running",
        ),
        pytest.param(
            RUNS,
            "Running",
            [condition(), UNREADY, HEALTHY],
            {"conditions": [UNREADY, HEALTHY, RIGHT]},
            id="it_waits_no_more",
        ),
        pytest.param(
            SERVES,
            "Running",
            [RIGHT, UNREADY, HEALTHY],
            {"conditions": [RIGHT, HEALTHY, READY]},
            id="its_pods_are_ready",
        ),
        pytest.param(
            FAILS,
            "Running",
            [RIGHT, READY, HEALTHY],
            {"conditions": [RIGHT, UNREADY, UNHEALTHY]},
            id="its_pods_fail",
        ),
        pytest.param(
            BINDS,
            "Starting",
            [RIGHT, READY, HEALTHY],
            {"conditions": [RIGHT, HEALTHY, UNREADY]},
            id="its_pods_come_again",
        ),
        pytest.param(
            LACKS,
            "Running",
            [RIGHT, READY, UNHEALTHY],
            {
                "phase": "Starting",
                "conditions": [condition(message="one node is gone"), UNREADY, HEALTHY],
            },
            id="a_pod_of_an_unhealthy_one_is_lost",
        ),
        pytest.param(
            LACKS,
            "Running",
            [RIGHT],
            {"phase": "Starting", "conditions": [condition(message="one node is gone")]},
            id="a_pod_is_lost",
        ),
        pytest.param(
            GangView("running", 1, 1, ""),
            "Running",
            [RIGHT],
            {
                "phase": "Starting",
                "conditions": [condition(message="fewer pods have nodes than it takes")],
            },
            id="a_pod_has_gone",
        ),
        pytest.param(
            GangView("gathering", 1, 0, "it waits until 2 are there"),
            "Running",
            [RIGHT],
            {
                "phase": "Pending",
                "conditions": [condition(message="it waits until 2 are there")],
            },
            id="all_have_gone",
        ),
    ],
)
def test_phase_and_condition_say_what_is_true_now(
    view: GangView, phase: str, there: list[dict[str, Any]], status: dict[str, Any]
) -> None:
    patch = written(view, *there, phase=phase)
    assert patch is not None
    assert patch.status == status


@pytest.mark.parametrize(
    ("view", "phase", "there"),
    [
        pytest.param(WAITS, "Pending", [condition(lastTransitionTime="x")], id="waiting"),
        pytest.param(BINDS, "Starting", [], id="binding"),
        pytest.param(RUNS, "Running", [RIGHT, UNREADY, HEALTHY], id="running"),
        pytest.param(SERVES, "Running", [READY, HEALTHY, RIGHT], id="ready"),
        pytest.param(BINDS, "Starting", [RIGHT, UNREADY, HEALTHY], id="binding_again"),
        pytest.param(GangView("gathering", 1, 0, WHY), "Pending", [], id="pods_are_missing"),
        pytest.param(GangView("placed", 2, 0, ""), "Pending", [], id="placed"),
        pytest.param(GangView("done", 0, 0, "", 2), "Running", [RIGHT], id="done"),
        pytest.param(GangView("", 0, 0, ""), "Pending", [], id="no_pods_of_ours"),
    ],
)
def test_what_it_says_already_is_not_written_again(
    view: GangView, phase: str, there: list[dict[str, Any]]
) -> None:
    assert written(view, *there, phase=phase) is None


def test_the_time_of_a_condition_is_that_of_its_last_change() -> None:
    patch = written(WAITS, condition(message="no", lastTransitionTime="then"))
    assert patch is not None
    assert patch.status == {"conditions": [condition(lastTransitionTime="then")]}


def test_a_condition_that_groves_operator_writes_is_left_alone() -> None:
    theirs = condition(reason="PodGangNotScheduled")
    assert written(WAITS, theirs) is None
    others = [
        condition(type="Ready", status="True", reason="PodGangReady"),
        condition(type="Unhealthy", status="True", reason="MinAvailableBreached"),
    ]
    patch = written(RUNS, theirs, *others)
    assert patch is not None
    assert patch.status == {"phase": "Running"}
    patch = written(RUNS, others[0])
    assert patch is not None
    assert patch.status["conditions"] == [others[0], RIGHT, HEALTHY]


def test_the_score_is_there_while_the_gang_runs() -> None:
    near = replace(RUNS, nearness=2 / 3)
    there = (RIGHT, UNREADY, HEALTHY)
    patch = written(near, *there, phase="Running")
    assert patch is not None
    assert (patch.status, patch.version) == ({"placementScore": 0.6667}, "")
    assert written(near, *there, phase="Running", score=0.6667) is None
    patch = written(LACKS, *there, phase="Running", score=0.5)
    assert patch is not None
    assert "placementScore" not in patch.status  # of a gang that lacks a pod it stays
    patch = written(WAITS, condition(), phase="Running", score=0.5)
    assert patch is not None
    assert patch.status == {"phase": "Pending", "placementScore": None}
    assert written(WAITS, condition(), score=None) is None


def test_conditions_that_cannot_be_read_are_not_written_over() -> None:
    for there in ({"type": 5, "padding": "x" * 20_000}, "none"):
        patch = written(RUNS, there)  # type: ignore[arg-type]
        assert patch is not None
        assert patch.status == {"phase": "Running"}


def test_pods_that_are_missing_are_no_condition_unless_none_that_come_would_help() -> None:
    gathers = GangView("gathering", 1, 0, "not valid")
    assert written(gathers) is None
    patch = written(gathers, least=-1)
    assert patch is not None
    assert patch.status == {"conditions": [condition(message="not valid")]}


@pytest.mark.parametrize("kind", [{"a": 1}, ["Scheduled"], 5, None])
def test_a_condition_of_no_known_type_is_left_as_it_is(kind: object) -> None:
    """A definition without a schema lets anything be stored."""
    other = condition(type=kind)
    patch = written(WAITS, other)
    assert patch is not None
    assert patch.status["conditions"] == [other, condition()]
