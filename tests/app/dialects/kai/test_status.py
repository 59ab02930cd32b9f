"""What is written on a PodGroup of KAI's."""

from __future__ import annotations

from typing import Any

import msgspec

from app.dialects.kai import DIALECT
from app.dialects.kai.pod_groups import decode_pod_group
from app.dialects.spec import GangKey
from app.dialects.written import AT_WRITE, GangView, StatusPatch
from tests.app.dialects.kai.objects import pod_group

KEY = GangKey("default", "pg", "kai")
WHY = "gang default/pg cannot be placed: 1 of 2 pods fit in one rack"
PATH = "/apis/scheduling.run.ai/v2alpha2/namespaces/default/podgroups/pg/status"


def condition(**more: Any) -> dict[str, Any]:
    return {
        "type": "UnschedulableOnNodePool",
        "nodePool": "default",
        "status": "True",
        "reason": "Unschedulable",
        "message": WHY,
        "reasons": [{"reason": "Unschedulable", "message": WHY}],
        "transitionID": "1",
        "lastTransitionTime": AT_WRITE,
        **more,
    }


def written(view: GangView, *there: dict[str, Any], pool: str = "") -> StatusPatch | None:
    made = pod_group("pg", 2)
    if pool:
        made["metadata"]["labels"] = {"kai.scheduler/node-pool": pool}
    if there:
        made["status"] = {"schedulingConditions": list(there)}
    record = decode_pod_group(msgspec.json.encode(made))
    spec = DIALECT.spec(KEY, [record], (), ())
    assert spec is not None
    return DIALECT.status(spec, [record], view)


WAITS, RUNS = GangView("waiting", 2, 0, WHY), GangView("running", 2, 2, "")


def test_why_its_pods_wait_is_a_condition_of_its_node_pool() -> None:
    assert written(WAITS) == StatusPatch(PATH, "uid-pg", {"schedulingConditions": [condition()]})
    patch = written(WAITS, pool="gpus")
    assert patch is not None
    assert patch.status == {"schedulingConditions": [condition(nodePool="gpus")]}


def test_what_it_says_already_is_not_written_again() -> None:
    assert written(WAITS, condition(lastTransitionTime="2026-01-01T00:00:00Z")) is None


def test_another_reason_is_written_with_the_next_id_at_the_end() -> None:
    other = condition(nodePool="other", transitionID="7")
    patch = written(WAITS, condition(message="no"), other)
    assert patch is not None
    assert patch.status == {"schedulingConditions": [other, condition(transitionID="8")]}
    assert patch.version == "7"  # what another scheduler writes meanwhile is not lost


def test_once_it_starts_the_condition_is_false() -> None:
    patch = written(RUNS, condition())
    assert patch is not None
    assert patch.status == {
        "schedulingConditions": [
            condition(status="False", reason="Scheduled", message="", reasons=[], transitionID="2")
        ]
    }
    assert written(RUNS, condition(status="False", reason="Scheduled", message="")) is None


def test_a_pod_group_that_never_waited_gets_no_condition() -> None:
    assert written(RUNS) is None
    assert written(GangView("placed", 2, 0, "")) is None


def test_pods_that_are_missing_are_no_condition_unless_none_that_come_would_help() -> None:
    gathers = GangView("gathering", 1, 0, "gang default/pg waits until 2 pods are there")
    assert written(gathers) is None
    bad = decode_pod_group(msgspec.json.encode(pod_group("pg", -1)))
    spec = DIALECT.spec(KEY, [bad], (), ())
    assert spec is not None
    assert DIALECT.status(spec, [bad], gathers) is not None


def test_a_pod_group_without_pods_of_ours_is_left_alone() -> None:
    assert written(GangView("", 0, 0, "")) is None


def test_an_id_that_is_no_number_counts_as_none() -> None:
    for text in ("", "-4", "9" * 30, "x"):
        patch = written(WAITS, condition(message="no", transitionID=text))
        assert patch is not None
        assert patch.status["schedulingConditions"][0]["transitionID"] == "1"  # type: ignore[index]
