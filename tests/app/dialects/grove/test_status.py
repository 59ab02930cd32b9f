"""What is written on a PodGang."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from app.dialects.grove import DIALECT
from app.dialects.grove.pod_gangs import decode_pod_gang
from app.dialects.spec import AT_WRITE, GangKey, GangView, StatusPatch
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
WAITS = GangView("waiting", 2, 0, WHY)
BINDS = GangView("binding", 2, 0, "")
RUNS = GangView("running", 2, 2, "", is_scheduled=True)
LACKS = GangView("repairing", 2, 1, "one node is gone")


def written(
    view: GangView, *there: dict[str, Any], phase: str = "Pending", least: int = 2
) -> StatusPatch | None:
    made = pod_gang("g", pod_group("w", least))
    made["status"] = {"phase": phase, "conditions": list(there)}
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
            RUNS, "Starting", [], {"phase": "Running", "conditions": [RIGHT]}, id="running"
        ),
        pytest.param(
            RUNS, "Running", [condition()], {"conditions": [RIGHT]}, id="it_waits_no_more"
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
        pytest.param(RUNS, "Running", [RIGHT], id="running"),
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
    patch = written(RUNS, theirs)
    assert patch is not None
    assert patch.status == {"phase": "Running"}


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
