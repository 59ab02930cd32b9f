"""What the webhook refuses of PodGroups, CompositePodGroups, and Jobs that are to have one."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from app.admission.validating.validate import Thing, Validator
from app.dialects.registry import DIALECTS, Dialects
from tests.app.admission.port import SCOPE
from tests.app.dialects.native.composites import composite_object
from tests.app.dialects.native.objects import ON, pod_group
from tests.records import GROUP, PREFERRED, RACK, REQUIRED

Json = dict[str, Any]
OWNERS = [{"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "u", "controller": True}]
OFF = "kube-scheduler starts its pods, as native_pod_groups is off, and does not read"


def job(
    scheduling: Json | None,
    annotations: dict[str, str] | None = None,
    labels: dict[str, str] | None = None,
    **spec: Any,
) -> Json:
    """A Job of four pods."""
    metadata = {"annotations": annotations or {}, "labels": labels or {}}
    template = {"metadata": metadata, "spec": {"schedulerName": "corral", **spec}}
    made: Json = {"parallelism": 4, "completions": 4, "template": template}
    if scheduling is not None:
        made["scheduling"] = scheduling
    metadata = {"name": "j", "namespace": "team"}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": made}


def errors(made: Json, before: Json | None = None, dialects: Dialects = ON) -> list[str]:
    group = made["apiVersion"].rpartition("/")[0]
    thing = Thing(group, made["kind"], "team", made)
    return [str(each) for each in Validator(SCOPE, dialects).errors(thing, before)]


GANG: Json = {"schedulingPolicy": {"gang": {}}}
WRONG = "schedulingPolicy.gang.minCount: Invalid value: 0: must be greater than or equal to 1"


# -- objects ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("made", "error"),
    [
        pytest.param(pod_group(least=0), f"spec.{WRONG}", id="PodGroup"),
        pytest.param(
            pod_group(least=2, annotations={REQUIRED: "/"}),
            "metadata.annotations[kueue.x-k8s.io/podset-required-topology]: Invalid value:"
            ' "/": must be the key of a node label, such as topology.kubernetes.io/rack',
            id="annotation_of_a_PodGroup",
        ),
        pytest.param(
            pod_group(least=2, annotations={"kueue.x-k8s.io/podset-group-name": "workers"}),
            "metadata.annotations[kueue.x-k8s.io/podset-group-name]: Forbidden: a PodGroup has no"
            " leader that is placed with its workers",
            id="a_leader_and_its_workers_in_a_PodGroup",
        ),
        pytest.param(
            composite_object("all", 0),
            "spec.schedulingPolicy.gang.minGroupCount: Invalid value: 0: must be greater than or"
            " equal to 1",
            id="CompositePodGroup",
        ),
        pytest.param(
            composite_object("all", 1, annotations={PREFERRED: "/"}),
            "metadata.annotations[kueue.x-k8s.io/podset-preferred-topology]: Invalid value:"
            ' "/": must be the key of a node label, such as topology.kubernetes.io/rack',
            id="annotation_of_a_CompositePodGroup",
        ),
        pytest.param(
            composite_object("all", 1, annotations={"kueue.x-k8s.io/podset-slice-size": "2"}),
            "metadata.annotations[kueue.x-k8s.io/podset-slice-size]: Forbidden: slices are of the"
            " pods of a PodGroup: set it on those inside, or on their pods",
            id="slices_of_a_CompositePodGroup",
        ),
    ],
)
def test_what_pods_would_wait_for_is_refused_if_a_user_writes_it(made, error):
    assert errors(made) == [error]
    assert errors(made, before=made) == []
    owned = copy.deepcopy(made)
    owned["metadata"]["ownerReferences"] = OWNERS
    assert errors(owned) == []
    assert errors(made, dialects=DIALECTS) == []  # kube-scheduler's business


@pytest.mark.parametrize("made", [pod_group(least=2, key=RACK), composite_object("all", 2)])
def test_what_is_right_is_let_in(made):
    assert errors(made) == []


# -- Jobs ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("made", "found"),
    [
        pytest.param(
            job({"schedulingPolicy": {"gang": {"minCount": 0}}}),
            f"spec.scheduling.{WRONG}",
            id="no_pods",
        ),
        pytest.param(
            job({"schedulingPolicy": {}}),
            "spec.scheduling.schedulingPolicy: Required value: must have either basic or gang",
            id="no_policy",
        ),
        pytest.param(
            job({**GANG, "schedulingConstraints": {"topology": [{"key": "a b"}]}}),
            'spec.scheduling.schedulingConstraints.topology[0].key: Invalid value: "a b": must be'
            " the key of a node label, such as topology.kubernetes.io/rack",
            id="no_key",
        ),
        pytest.param(
            job(GANG, labels={GROUP: "g"}),
            "spec.scheduling: Forbidden: may not be set together with"
            " kueue.x-k8s.io/pod-group-name, which names pod group g",
            id="another_gang",
        ),
        pytest.param(
            job(GANG, {REQUIRED: RACK, "kueue.x-k8s.io/podset-group-name": "g"}),
            "spec.scheduling: Forbidden: a PodGroup has no leader that is placed with its workers,"
            " as podset-group-name asks",
            id="a_leader",
        ),
        pytest.param(
            job(GANG, schedulingGroup={"podGroupName": "mine"}),
            "spec.scheduling: Forbidden: its template names PodGroup mine, and none is made of it",
            id="a_pod_group_of_its_own",
        ),
        pytest.param(
            job({"schedulingPolicy": {"basic": {}}}, {REQUIRED: RACK}),
            "spec.scheduling.schedulingPolicy.basic: Forbidden: may not be set together with"
            " kueue.x-k8s.io/podset-required-topology, for which all pods start together",
            id="basic_for_a_gang",
        ),
    ],
)
def test_a_job_whose_pod_group_could_not_be_kept_is_refused(made, found):
    assert found in errors(made)


@pytest.mark.parametrize(
    "scheduling",
    [
        pytest.param(None, id="none"),
        pytest.param(GANG, id="as_many_as_run_at_a_time"),
        pytest.param({"schedulingPolicy": {"gang": {"minCount": 3}}}, id="fewer"),
        pytest.param({"disruptionMode": {"all": {}}}, id="no_policy"),
        pytest.param({"schedulingConstraints": {"topology": [{"key": RACK}]}}, id="a_level"),
        pytest.param([7], id="what_the_api_server_refuses"),
    ],
)
def test_a_job_that_is_right_is_let_in(scheduling):
    assert errors(job(scheduling, {PREFERRED: RACK})) == []


def test_a_basic_group_without_annotations_is_right():
    assert errors(job({"schedulingPolicy": {"basic": {}}})) == []


def test_what_kube_scheduler_would_not_keep_is_refused_while_it_starts_the_pods():
    assert errors(job(GANG, {REQUIRED: RACK}), dialects=DIALECTS) == [
        f"spec.scheduling: Forbidden: {OFF} kueue.x-k8s.io/podset-required-topology"
    ]
    assert errors(job(None, {REQUIRED: RACK}), dialects=DIALECTS) == []
    wrong = job({"schedulingPolicy": {"gang": {"minCount": 0}}})
    assert errors(wrong, dialects=DIALECTS) == []


def test_jobs_of_other_schedulers_and_of_controllers_are_not_looked_at():
    other = job({"schedulingPolicy": {}}, schedulerName="default-scheduler")
    assert errors(other) == []
    made = job({"schedulingPolicy": {}})
    made["metadata"]["ownerReferences"] = OWNERS
    assert errors(made) == []
