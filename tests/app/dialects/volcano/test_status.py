"""What is written on a PodGroup, by what its pods do and what it says already."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from app.dialects.spec import GangKey
from app.dialects.volcano.jobs import VolcanoJobRecord
from app.dialects.volcano.pod_groups import decode_pod_group
from app.dialects.volcano.status import status_of
from app.dialects.written import AT_WRITE, GangView, StatusPatch
from tests.app.dialects.volcano.workloads import pod_group

KEY = GangKey("default", "pg", "volcano")
PATH = "/apis/scheduling.volcano.sh/v1beta1/namespaces/default/podgroups/pg"
READY = "tasks in gang are ready to be scheduled"
OURS = VolcanoJobRecord(
    kind="Job", namespace="default", name="j", uid="u", version="1", schedulers=("corral",)
)


def patch_of(view: GangView, least: int = 2, **status: Any) -> StatusPatch | None:
    made = pod_group("pg", least)
    made["metadata"] |= {"uid": "uid-pg", "resourceVersion": "7"}
    made["status"] = status
    group = decode_pod_group(msgspec.json.encode(made))
    return status_of(KEY, [group, OURS], view, "corral")


def condition(kind: str, reason: str, message: str = "", at: str = AT_WRITE) -> dict[str, str]:
    return {
        "type": kind,
        "status": "True",
        "reason": reason,
        "message": message,
        "lastTransitionTime": at,
    }


def counts(running: int = 0, succeeded: int = 0, failed: int = 0) -> dict[str, int]:
    return {"running": running, "succeeded": succeeded, "failed": failed}


@pytest.mark.parametrize(
    ("view", "phase", "conditions"),
    [
        pytest.param(GangView("", 0, 0, ""), "Inqueue", [], id="no_pods"),
        pytest.param(
            GangView("waiting", 2, 0, "no room"),
            "Inqueue",
            [condition("Unschedulable", "NotEnoughResources", "no room")],
            id="it_waits",
        ),
        pytest.param(GangView("placed", 2, 0, ""), "Inqueue", [], id="planned"),
        pytest.param(
            GangView("binding", 2, 1, "", is_binding=True), "Inqueue", [], id="some_are_bound_first"
        ),
        pytest.param(GangView("repairing", 2, 1, ""), "Unknown", [], id="too_few_run"),
        pytest.param(
            GangView("running", 2, 2, ""), "Running", [condition("Scheduled", READY)], id="runs"
        ),
        pytest.param(
            GangView("running", 1, 1, "", succeeded=1),
            "Running",
            [condition("Scheduled", READY)],
            id="one_has_succeeded",
        ),
        pytest.param(
            GangView("done", 0, 0, "", succeeded=2),
            "Completed",
            [condition("Scheduled", READY)],
            id="all_have_succeeded",
        ),
        pytest.param(GangView("done", 0, 0, "", failed=2), "Inqueue", [], id="all_have_failed"),
    ],
)
def test_a_pod_group_says_how_its_pods_do(
    view: GangView, phase: str, conditions: list[dict[str, str]]
) -> None:
    patch = patch_of(view)
    assert patch is not None
    assert (patch.path, patch.uid, patch.version) == (PATH, "uid-pg", "")
    counted = counts(view.bound, view.succeeded, view.failed)
    assert patch.status == {"phase": phase, **counted, "conditions": conditions}
    shown = [{**each, "lastTransitionTime": "2026-01-01T00:00:00Z"} for each in conditions]
    assert patch_of(view, phase=phase, **counted, conditions=shown) is None  # it is there


def test_a_pod_group_that_has_completed_stays_so_without_its_pods() -> None:
    patch = patch_of(GangView("", 0, 0, ""), phase="Completed", **counts(succeeded=2))
    assert patch is not None
    assert patch.status["phase"] == "Completed"


def test_the_conditions_of_others_stay_and_nothing_newer_is_written_over() -> None:
    other = {"type": "Audited", "status": "True"}
    patch = patch_of(
        GangView("running", 2, 2, ""),
        phase="Inqueue",
        conditions=[other, condition("Unschedulable", "NotEnoughResources", at="then")],
    )
    assert patch is not None
    assert patch.status["conditions"] == [other, condition("Scheduled", READY)]
    assert patch.version == "7"


def test_a_condition_that_goes_on_keeps_its_time() -> None:
    said = condition("Unschedulable", "NotEnoughResources", "1 of 2 fit", at="then")
    patch = patch_of(GangView("waiting", 2, 0, "0 of 2 fit"), phase="Inqueue", conditions=[said])
    assert patch is not None
    (now,) = patch.status["conditions"]  # type: ignore[misc]
    assert (now["message"], now["lastTransitionTime"]) == ("0 of 2 fit", "then")


def test_the_pod_groups_of_other_schedulers_are_left_as_they_are() -> None:
    made = pod_group("pg", 2)
    made["metadata"]["uid"] = "uid-pg"
    group = decode_pod_group(msgspec.json.encode(made))
    nobody = GangView("", 0, 0, "")
    assert status_of(KEY, [group], nobody, "corral") is None
    assert status_of(KEY, [group, OURS], nobody, "volcano") is None
    assert status_of(KEY, [OURS], nobody, "corral") is None
    assert status_of(KEY, [group, OURS], nobody, "") is not None
    assert status_of(KEY, [group], GangView("waiting", 1, 0, ""), "corral") is not None
