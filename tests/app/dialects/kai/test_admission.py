"""What the webhook makes of KAI's pods, their owners and KAI's objects."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from app.admission.mutating.mutate import mutate
from app.admission.scope import Scope
from app.admission.validating.validate import Thing, Validator
from app.dialects.registry import DIALECTS
from app.settings import EngineOptions
from tests.app.dialects.kai.objects import GROUP_NAME, pod_group, sub_group, topology, within
from tests.cluster import RACK, Object, job, pod
from tests.workloads import GATE

SCOPE = Scope("corral,kai-scheduler")
CONFIGURED = DIALECTS.configured(EngineOptions())
WANTS = {"kai.scheduler/topology": "net", "kai.scheduler/topology-required-placement": RACK}


def gates(made: Object) -> list[Any]:
    operations = mutate(msgspec.json.encode(made), "default", SCOPE, CONFIGURED).operations
    return [each.value for each in operations if each.path.startswith("/spec/schedulingGates")]


def errors(made: Object, before: Object | None = None) -> list[str]:
    group = made["apiVersion"].rpartition("/")[0]
    thing = Thing(group, made["kind"], made["metadata"].get("namespace", ""), made)
    return [str(error) for error in Validator(SCOPE, CONFIGURED).errors(thing, before)]


@pytest.mark.parametrize(
    ("made", "is_gated"),
    [
        pytest.param(pod("p", annotations={GROUP_NAME: "pg"}), True, id="of_a_pod_group"),
        pytest.param(pod("p", scheduler="kai-scheduler"), True, id="to_be_grouped"),
        pytest.param(pod("p"), False, id="ordinary"),
        pytest.param(
            pod(
                "p",
                scheduler="kai-scheduler",
                annotations={"kai.scheduler/skip-podgrouper": "true"},
            ),
            False,
            id="not_to_be_grouped",
        ),
        pytest.param(
            pod("p", scheduler="stock", annotations={GROUP_NAME: "pg"}), False, id="anothers"
        ),
    ],
)
def test_pods_of_gangs_are_gated_and_others_are_not(made: Object, is_gated: bool) -> None:
    assert gates(made) == ([[{"name": GATE}]] if is_gated else [])


def owner_of(scheduler: str, annotations: dict[str, str] = WANTS) -> Object:
    made = job("train", pods=2, scheduler=scheduler)
    made["metadata"]["annotations"] = annotations
    return made


def test_what_only_the_pod_grouper_reads_is_refused_on_an_owner_of_other_pods() -> None:
    assert errors(owner_of("corral")) == [
        "metadata.annotations[kai.scheduler/topology]: Forbidden: only KAI's pod-grouper reads it,"
        " and it takes no pods of scheduler corral"
    ]
    assert errors(owner_of("kai-scheduler")) == []
    assert errors(owner_of("stock")) == []
    assert errors(owner_of("corral", {"kai.scheduler/queue": "q"})) == []
    assert errors(owner_of("corral"), owner_of("corral")) == []  # it was there before


def test_on_a_pod_it_is_one_error() -> None:
    (error,) = errors(pod("p", annotations={"kai.scheduler/topology": "net"}))
    assert "metadata.annotations[kai.scheduler/topology]: Forbidden" in error
    assert errors(pod("p", scheduler="kai-scheduler", annotations=WANTS)) == []


def test_a_pod_group_and_a_topology_are_checked_whoevers_pods_they_are_for() -> None:
    bad = pod_group("pg", None, sub_group("a", 1, parent="b"), on=within(RACK))
    assert [each.partition(":")[0] for each in errors(bad)] == ["spec.subGroups[0].parent"]
    assert [each.partition(":")[0] for each in errors(topology("net", RACK, RACK))] == [
        "spec.levels[1].nodeLabel"
    ]


def test_a_change_is_refused_only_for_what_it_brings_in() -> None:
    bad = pod_group("pg", None, sub_group("a", 1, parent="b"))
    assert errors(bad, bad) == []
    worse = pod_group("pg", None, sub_group("c", 1), sub_group("a", 1, parent="b"), minSubGroup=9)
    assert [each.partition(":")[0] for each in errors(worse, bad)] == ["spec.minSubGroup"]
