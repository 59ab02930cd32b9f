"""The condition on a native PodGroup, by what its pods do and what it says already."""

from __future__ import annotations

from typing import Any

import pytest

from app.dialects.spec import LeafPods
from app.dialects.written import AT_WRITE, GangView, StatusPatch
from tests.app.dialects.native.objects import ALPHA, BETA, KEY, ON, pod_group, read

PATH = "/apis/scheduling.k8s.io/{}/namespaces/default/podgroups/train/status".format
TYPES = {ALPHA: "PodGroupScheduled", BETA: "PodGroupInitiallyScheduled"}
EARLIER = "2026-01-01T00:00:00Z"
OTHERS = {"type": "DisruptionTarget", "status": "True", "reason": "R", "message": "m"}


def patch_of(view: GangView, *conditions: Any, api: str = ALPHA, least: int = 2) -> Any:
    made = {**pod_group(least=least, api=api), "status": {"conditions": list(conditions)}}
    made["metadata"] = {**made["metadata"], "generation": 3}
    group = read(made)
    spec = ON.spec(KEY, [group], (), (), {"": LeafPods(view.pods)})
    assert spec is not None
    return next(iter(ON.of(KEY).statuses(spec, [group], view)), None)


def condition(api: str, status: str, message: str = "", at: str = AT_WRITE) -> dict[str, Any]:
    return {
        "type": TYPES[api],
        "status": status,
        "observedGeneration": 3,
        "reason": "Scheduled" if status == "True" else "Unschedulable",
        "message": message,
        "lastTransitionTime": at,
    }


@pytest.mark.parametrize("api", [ALPHA, BETA])
@pytest.mark.parametrize(
    ("view", "status", "message"),
    [
        pytest.param(GangView("gathering", 1, 0, "waits"), "False", "waits", id="pods_missing"),
        pytest.param(GangView("waiting", 2, 0, "no room"), "False", "no room", id="it_waits"),
        pytest.param(GangView("repairing", 2, 1, "no room"), "False", "no room", id="too_few_run"),
        pytest.param(GangView("running", 2, 2, ""), "True", "", id="it_runs"),
        pytest.param(GangView("repairing", 3, 2, "no room"), "True", "", id="one_more_waits"),
        pytest.param(GangView("done", 0, 0, "", succeeded=2), "True", "", id="it_has_succeeded"),
    ],
)
def test_a_pod_group_says_whether_its_pods_are_scheduled(api, view, status, message):
    expected = {"conditions": [condition(api, status, message)]}
    assert patch_of(view, api=api) == StatusPatch(PATH(api), "uid-train", expected)


@pytest.mark.parametrize(
    "view",
    [
        pytest.param(GangView("", 0, 0, ""), id="no_pods"),
        pytest.param(GangView("placed", 2, 0, ""), id="planned"),
        pytest.param(GangView("binding", 2, 1, ""), id="its_pods_are_being_bound"),
        pytest.param(GangView("done", 0, 0, "", failed=2), id="its_pods_have_failed"),
    ],
)
def test_nothing_is_said_where_kube_scheduler_would_say_nothing(view):
    assert patch_of(view) is None


@pytest.mark.parametrize("api", [ALPHA, BETA])
def test_what_is_said_already_is_not_written_again(api):
    waits = condition(api, "False", "no room", EARLIER)
    assert patch_of(GangView("waiting", 2, 0, "no room"), waits, api=api) is None
    runs = condition(api, "True", "", EARLIER)
    assert patch_of(GangView("running", 2, 2, ""), runs, api=api) is None


def test_another_reason_to_wait_keeps_the_time_since_when_it_does():
    patch = patch_of(
        GangView("waiting", 2, 0, "later"), condition(ALPHA, "False", "first", EARLIER)
    )
    assert patch.status == {"conditions": [condition(ALPHA, "False", "later", EARLIER)]}
    patch = patch_of(GangView("running", 2, 2, ""), condition(ALPHA, "False", "first", EARLIER))
    assert patch.status == {"conditions": [condition(ALPHA, "True")]}


@pytest.mark.parametrize("api", [ALPHA, BETA])
def test_what_is_true_once_stays_so(api):
    """Source: kubernetes v1.36 pkg/scheduler/schedule_one_podgroup.go, updatePodGroupCondition."""
    waits = GangView("repairing", 2, 1, "no room")
    assert patch_of(waits, condition(api, "True", "", EARLIER), api=api) is None


def test_of_a_spec_that_has_changed_the_reason_is_written_again():
    before = {**condition(ALPHA, "False", "no room", EARLIER), "observedGeneration": 2}
    patch = patch_of(GangView("waiting", 2, 0, "no room"), before)
    assert patch.status == {"conditions": [condition(ALPHA, "False", "no room", EARLIER)]}


def test_conditions_of_others_stay_and_are_not_written_over():
    patch = patch_of(GangView("running", 2, 2, ""), OTHERS)
    assert patch.status == {"conditions": [OTHERS, condition(ALPHA, "True")]}
    assert patch.version == "1"


def test_a_pod_group_that_is_mistaken_is_never_scheduled():
    patch = patch_of(GangView("running", 2, 2, "is invalid"), least=0)
    assert patch.status == {"conditions": [condition(ALPHA, "False", "is invalid")]}
