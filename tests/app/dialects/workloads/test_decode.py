"""Workloads: how many pods, from which templates, and whether all at once.

The documents are as their APIs write them, cut to what matters.
"""

from __future__ import annotations

import json
from functools import partial
from typing import Any

import pytest

from app.dialects.registry import DIALECTS
from app.dialects.spec import FailureLimit
from app.dialects.workloads import Template, WorkloadRecord
from app.dialects.workloads.job import decode_job
from app.dialects.workloads.job_set import (
    EXCLUSIVE,
    NODE_SELECTOR,
    decode_job_set,
    keys_of,
)
from app.dialects.workloads.kubeflow import decode_training_job
from app.dialects.workloads.leader_worker_set import MOST_GANGS, decode_leader_worker_set
from app.dialects.workloads.stateful_set import decode_stateful_set
from app.errors import DecodeError

METADATA = {
    "namespace": "team",
    "name": "w",
    "uid": "u",
    "resourceVersion": "5",
    "labels": {"ours": "l", "noise": "x"},
    "annotations": {"ours": "a", "noise": "y"},
}
TEMPLATE = {"metadata": {"annotations": {"ours": "t", "noise": "z"}}, "spec": {"containers": []}}
OURS = {"ours": "t"}


def ours(key: str) -> bool:
    return key == "ours"


def record_of(decode: Any, spec: object, **status: object) -> WorkloadRecord:
    document = {"metadata": METADATA, "spec": spec, "status": status}
    record: WorkloadRecord = decode(json.dumps(document).encode(), ours)
    return record


@pytest.mark.parametrize(
    ("decode", "pods"),
    [
        pytest.param(decode_stateful_set, 1, id="StatefulSet"),
        pytest.param(decode_job, 1, id="Job"),
        pytest.param(decode_job_set, 0, id="JobSet"),
        pytest.param(decode_leader_worker_set, 1, id="LeaderWorkerSet"),
        pytest.param(partial(decode_training_job, kind="MPIJob"), 0, id="MPIJob"),
    ],
)
def test_a_workload_whose_spec_is_null_has_the_pods_of_an_empty_one(decode, pods):
    assert record_of(decode, None).pods == record_of(decode, {}).pods == pods


COMPLETE = {"type": "Complete", "status": "True"}
ALL_KINDS = [
    pytest.param(decode_job, ("Complete", "Failed"), id="Job"),
    pytest.param(decode_job_set, ("Completed", "Failed"), id="JobSet"),
    pytest.param(partial(decode_training_job, kind="TFJob"), ("Succeeded", "Failed"), id="TFJob"),
    pytest.param(decode_stateful_set, (), id="StatefulSet"),
    pytest.param(decode_leader_worker_set, (), id="LeaderWorkerSet"),
]


@pytest.mark.parametrize(("decode", "ends"), ALL_KINDS)
def test_a_workload_is_finished_once_a_condition_says_so(decode, ends):
    def is_finished(*conditions):
        return record_of(decode, {}, conditions=list(conditions)).is_finished

    for kind in ("Complete", "Completed", "Succeeded", "Failed", "Suspended"):
        for status in ("True", "False", "Unknown", None):
            expected = kind in ends and status == "True"
            assert is_finished({"type": kind, "status": status}) is expected
    assert is_finished(None, {"type": "Suspended", "status": "True"}) is False
    assert not record_of(decode, {}, conditions=None).is_finished


@pytest.mark.parametrize(("decode", "ends"), ALL_KINDS)
def test_a_workload_without_metadata_status_or_numbers_has_the_defaults(decode, ends):
    bare = decode(b'{"spec": null, "status": null}', ours)
    assert (bare.namespace, bare.name, bare.uid, bare.version) == ("", "", "", "")
    assert (bare.labels, bare.annotations, bare.owner) == ({}, {}, None)
    assert (bare.succeeded, bare.failures, bare.restarts, bare.restarts_left) == (0, 0, 0, 0)
    assert (bare.is_suspended, bare.is_finished, bare.completions) == (False, False, None)


@pytest.mark.parametrize(("decode", "ends"), ALL_KINDS)
def test_a_workload_knows_the_object_that_controls_it(decode, ends):
    owners = [
        {"apiVersion": "v1", "kind": "Other", "name": "x", "uid": "ux"},
        {"apiVersion": "v2", "kind": "Parent", "name": "y", "uid": "uy", "controller": True},
    ]
    document = {"metadata": {**METADATA, "ownerReferences": owners}}
    owner = decode(json.dumps(document).encode(), ours).owner
    assert (owner.api_version, owner.kind, owner.name, owner.uid) == ("v2", "Parent", "y", "uy")


def test_what_all_workloads_have_in_common():
    record = record_of(decode_stateful_set, {"replicas": 3, "template": TEMPLATE})
    assert record == WorkloadRecord(
        kind="StatefulSet",
        namespace="team",
        name="w",
        uid="u",
        version="5",
        annotations={"ours": "a"},
        labels={"ours": "l"},
        owner=None,
        templates=(Template("", 3, OURS),),
        succeeded=0,
        completions=None,
        is_suspended=False,
        is_finished=False,
        is_gradual=True,
    )
    assert record.pods == 3


def test_a_job_keeps_the_size_of_its_gang():
    spec = {"completions": 8, "suspend": True, "template": TEMPLATE}
    conditions = [{"type": "Failed", "status": "True"}]
    assert record_of(decode_job, spec, succeeded=2, conditions=conditions) == WorkloadRecord(
        kind="Job",
        namespace="team",
        name="w",
        uid="u",
        version="5",
        annotations={"ours": "a"},
        labels={"ours": "l"},
        owner=None,
        templates=(Template("", 1, OURS),),
        failure_reasons=("BackoffLimitExceeded",),
        succeeded=2,
        completions=8,
        is_suspended=True,
        is_finished=True,
        failures_left=6,  # the API's default
    )


@pytest.mark.parametrize(("said", "seconds"), [(None, 0), (600, 600), (-5, 0)])
def test_jobs_say_when_their_pods_end(said, seconds):
    spec = {"activeDeadlineSeconds": said, "template": TEMPLATE}
    assert record_of(decode_job, spec).deadline_seconds == seconds
    policy = {"runPolicy": {"activeDeadlineSeconds": said}}
    read = partial(decode_training_job, kind="PyTorchJob")
    assert record_of(read, policy).deadline_seconds == seconds


@pytest.mark.parametrize(
    ("managed_by", "seconds"),
    [(None, 600), ("", 600), ("kubernetes.io/job-controller", 600), ("example.com/none", 0)],
)
def test_the_deadline_of_a_job_that_another_controller_manages_does_not_count(managed_by, seconds):
    spec = {"activeDeadlineSeconds": 600, "managedBy": managed_by, "template": TEMPLATE}
    assert record_of(decode_job, spec).deadline_seconds == seconds


@pytest.mark.parametrize(
    ("kind", "policy", "seconds"),
    [
        ("PyTorchJob", {"managedBy": "kubeflow.org/training-operator"}, 600),
        ("PyTorchJob", {"managedBy": "kueue.x-k8s.io/multikueue"}, 0),
        ("MPIJob", {}, 0),
        ("MPIJob", {"cleanPodPolicy": "None"}, 0),
        ("MPIJob", {"cleanPodPolicy": "Running"}, 600),
        ("MPIJob", {"cleanPodPolicy": "All", "managedBy": "kubeflow.org/mpi-operator"}, 600),
        ("MPIJob", {"cleanPodPolicy": "All", "managedBy": "kubeflow.org/training-operator"}, 0),
    ],
)
def test_the_deadline_of_a_training_job_counts_where_its_operator_ends_all_pods(
    kind, policy, seconds
):
    spec = {"runPolicy": {"activeDeadlineSeconds": 600, **policy}}
    read = partial(decode_training_job, kind=kind)
    assert record_of(read, spec).deadline_seconds == seconds


def failure_rule(action, **on):
    return {"podFailurePolicy": {"rules": [{"action": action, **on}]}}


def on_condition(kind):
    return {"onPodConditions": [{"type": kind, "status": "True"}]}


EVICTED, ELSE = on_condition("DisruptionTarget"), on_condition("ConfigIssue")
NOT_EVICTED = {"onPodConditions": [{"type": "DisruptionTarget", "status": "False"}]}


@pytest.mark.parametrize(
    ("spec", "left"),
    [
        pytest.param({}, 4, id="default"),
        pytest.param({"backoffLimit": 3}, 1, id="limit"),
        pytest.param({"backoffLimit": 0}, 0, id="none"),
        pytest.param({"backoffLimit": 1}, 0, id="below_none"),
        pytest.param(failure_rule("Ignore", **EVICTED), None, id="ignored"),
        pytest.param(failure_rule("Count", **EVICTED), 4, id="counted"),
        pytest.param(failure_rule("FailJob", **EVICTED), 0, id="fails_the_job"),
        pytest.param(
            {**failure_rule("FailIndex", **EVICTED), "backoffLimitPerIndex": 3},
            0,
            id="fails_an_index",
        ),
        pytest.param(failure_rule("Ignore", **ELSE), 4, id="other_condition"),
        pytest.param(failure_rule("Ignore", **NOT_EVICTED), 4, id="not_evicted"),
        pytest.param(
            failure_rule("Ignore", onPodConditions=[{"type": "DisruptionTarget"}]),
            None,
            id="true_where_nothing_is_said",
        ),
        pytest.param(
            failure_rule("FailJob", onExitCodes={"operator": "In", "values": [1]}), 4, id="codes"
        ),
        pytest.param(
            {
                "podFailurePolicy": {
                    "rules": [
                        None,
                        {"action": "FailJob", **EVICTED},
                        {"action": "Ignore", **EVICTED},
                    ]
                }
            },
            # As matchPodFailurePolicy returns with it: the Job fails.
            # Source: kubernetes v1.36 pkg/controller/job/pod_failure_policy.go.
            0,
            id="the_first_rule_counts",
        ),
        pytest.param({"backoffLimitPerIndex": 1}, None, id="of_each_index"),
        pytest.param({"backoffLimitPerIndex": 0}, 0, id="none_of_each_index"),
    ],
)
def test_how_many_pods_of_a_job_may_be_evicted_before_it_fails(spec, left):
    found = record_of(decode_job, spec, failed=2)
    assert (found.failures_left, found.failures) == (left, 2)


def codes(action, operator, *values):
    return {"action": action, "onExitCodes": {"operator": operator, "values": [*values]}}


IGNORED = {"action": "Ignore", **EVICTED}


@pytest.mark.parametrize(
    ("rules", "left"),
    [
        pytest.param([codes("FailJob", "In", 1, 2), IGNORED], None, id="other_codes"),
        pytest.param([codes("FailJob", "In", 1, 143), IGNORED], 0, id="terminated"),
        pytest.param([codes("FailJob", "In", 137), IGNORED], 0, id="killed"),
        pytest.param([codes("FailJob", "NotIn", 42), IGNORED], 0, id="all_but_one"),
        pytest.param([codes("FailJob", "NotIn", 137, 143), IGNORED], None, id="neither"),
        pytest.param([codes("FailIndex", "NotIn", 42), IGNORED], 0, id="an_index"),
        pytest.param([codes("Count", "In", 143), IGNORED], 6, id="counted"),
        pytest.param([IGNORED, codes("FailJob", "NotIn", 42)], None, id="ignored_before"),
        pytest.param([codes("Ignore", "In", 137, 143)], 6, id="another_code_is_possible"),
        pytest.param([codes("Count", "In", 143), codes("FailJob", "In", 143)], 6, id="the_first"),
        pytest.param([codes("Count", "In", 143), codes("FailJob", "In", 137)], 0, id="the_worst"),
        pytest.param([codes("FailJob", "Exists", 143), IGNORED], None, id="no_operator"),
        pytest.param([{"action": "FailJob", "onExitCodes": {}}, IGNORED], None, id="empty"),
    ],
)
def test_a_rule_of_exit_codes_is_of_pods_that_are_evicted_where_it_comes_first(rules, left):
    """Their containers end by SIGTERM, or SIGKILL after it.

    Source: kubernetes v1.36 pkg/controller/job/pod_failure_policy.go, matchPodFailurePolicy.
    """
    spec = {"podFailurePolicy": {"rules": rules}}
    assert record_of(decode_job, spec).failures_left == left


def test_a_rule_whose_action_is_not_known_is_passed_over():
    rules = [{"action": "Later", **EVICTED}, {"action": "Ignore", **EVICTED}]
    spec = {"podFailurePolicy": {"rules": rules}}
    assert record_of(decode_job, spec).failures_left is None


@pytest.mark.parametrize(
    ("spec", "reasons"),
    [
        ({}, ["BackoffLimitExceeded"]),
        (failure_rule("FailJob", **EVICTED), ["PodFailurePolicy"]),
        (failure_rule("Count", **EVICTED), ["BackoffLimitExceeded"]),
        (failure_rule("Ignore", **EVICTED), []),
        ({"backoffLimitPerIndex": 0}, ["FailedIndexes"]),
        (
            {"backoffLimitPerIndex": 0, "maxFailedIndexes": 1},
            ["FailedIndexes", "MaxFailedIndexesExceeded"],
        ),
    ],
)
def test_what_a_job_says_when_it_fails_since_pods_of_it_were_evicted(spec, reasons):
    """Source: kubernetes v1.36 pkg/controller/job/job_controller.go, syncJob."""
    assert list(record_of(decode_job, spec).failure_reasons) == reasons


@pytest.mark.parametrize(
    ("status", "left"),
    [
        pytest.param({"restarts": 5, "restartsCountTowardsMax": 1}, 2, id="counted"),
        pytest.param({"restarts": 5}, 3, id="none_counts"),
        pytest.param(
            {
                "restarts": 2,
                "restartsCountTowardsMax": 1,
                "replicatedJobsStatus": [
                    None,
                    {"name": "a", "jobRestartsCountTowardsMax": [1, 0]},
                    {"name": "b"},
                ],
            },
            1,
            id="of_single_jobs_as_well",
        ),
    ],
)
def test_only_restarts_that_count_are_among_those_it_may_have(status, left):
    rules = [{"action": "RestartJobSetAndIgnoreMaxRestarts"}]
    spec = {"failurePolicy": {"maxRestarts": 3, "rules": rules}}
    assert record_of(decode_job_set, spec, **status).restarts_left == left


@pytest.mark.parametrize(
    ("spec", "restarts", "left"),
    [
        pytest.param({}, 0, 0, id="without_a_policy"),
        pytest.param({"failurePolicy": {}}, 0, 0, id="default"),
        pytest.param({"failurePolicy": {"maxRestarts": 3}}, 1, 2, id="some"),
        pytest.param({"failurePolicy": {"maxRestarts": 3}}, None, 3, id="never_restarted"),
        pytest.param({"failurePolicy": {"maxRestarts": 3}}, 3, 0, id="just_used_up"),
        pytest.param({"failurePolicy": {"maxRestarts": 3}}, 4, 0, id="used_up"),
    ],
)
def test_how_often_a_job_set_may_still_restart(spec, restarts, left):
    assert record_of(decode_job_set, spec, restarts=restarts).restarts_left == left


@pytest.mark.parametrize(
    ("spec", "pods", "is_gradual"),
    [
        pytest.param({}, 1, True, id="defaults"),
        pytest.param({"replicas": 0}, 0, True, id="scaled_to_nothing"),
        pytest.param(
            {"replicas": 4, "podManagementPolicy": "OrderedReady"}, 4, True, id="one_by_one"
        ),
        pytest.param({"replicas": 4, "podManagementPolicy": "Parallel"}, 4, False, id="at_once"),
    ],
)
def test_a_stateful_set(spec, pods, is_gradual):
    record = record_of(decode_stateful_set, spec)
    assert (record.pods, record.is_gradual) == (pods, is_gradual)


def replicated(name: str, replicas: int | None, **job: object) -> dict[str, object]:
    return {"name": name, "replicas": replicas, "template": {"spec": {**job, "template": TEMPLATE}}}


def test_a_job_set_has_the_pods_of_all_its_jobs():
    spec = {
        "suspend": True,
        "replicatedJobs": [
            replicated("driver", 1),
            replicated("workers", 2, parallelism=4, completions=4),
            replicated("few", None, parallelism=4, completions=3),
        ],
    }
    record = record_of(decode_job_set, spec, restarts=2)
    assert record.templates == (
        Template("driver", 1, OURS, jobs=1),
        Template("workers", 8, OURS, jobs=2),
        Template("few", 3, OURS, jobs=1),
    )
    assert (record.pods, record.restarts) == (12, 2)
    assert (record.is_suspended, record.is_gradual, record.is_finished) == (True, False, False)


@pytest.mark.parametrize(
    ("spec", "is_gradual"),
    [
        pytest.param({"startupPolicy": {"startupPolicyOrder": "AnyOrder"}}, False, id="any_order"),
        pytest.param({"startupPolicy": {"startupPolicyOrder": "InOrder"}}, True, id="in_order"),
        pytest.param(
            {"replicatedJobs": [{"name": "b", "dependsOn": [{"name": "a", "status": "Ready"}]}]},
            True,
            id="depends_on",
        ),
        pytest.param(
            {"replicatedJobs": [{"name": "b", "dependsOn": []}]}, False, id="depends_on_nothing"
        ),
    ],
)
def test_a_job_set_that_makes_some_jobs_later(spec, is_gradual):
    assert record_of(decode_job_set, spec).is_gradual is is_gradual


@pytest.mark.parametrize(
    ("of_all", "of_workers", "names"),
    [
        pytest.param((), (EXCLUSIVE,), {"workers"}, id="of_its_own"),
        pytest.param((EXCLUSIVE,), (), {"driver", "workers"}, id="of_all"),
        pytest.param((EXCLUSIVE, NODE_SELECTOR), (), set(), id="by_labels_of_nodes"),
        pytest.param((), (), set(), id="not_said"),
    ],
)
def test_most_pods_of_jobs_that_are_to_be_alone_come_later(of_all, of_workers, names):
    parts = [replicated("driver", 1), replicated("workers", 2, parallelism=4)]
    parts[1]["template"]["metadata"] = {"annotations": dict.fromkeys(of_workers, "rack")}
    metadata = {**METADATA, "annotations": dict.fromkeys(of_all, "rack")}
    document = {"metadata": metadata, "spec": {"replicatedJobs": parts}}
    record = decode_job_set(json.dumps(document).encode(), ours)
    assert {each.name for each in record.templates if each.like} == names
    assert not record.is_gradual


ONE_GPU = {"name": "c", "resources": {"requests": {"cpu": "1", "nvidia.com/gpu": "1"}}}
LATER = {**TEMPLATE, "spec": {"containers": [ONE_GPU], "nodeSelector": {"pool": "gpu"}}}


def test_templates_whose_pods_come_later_say_what_these_will_be_like():
    jobs = [
        {"name": "b", "replicas": 2, "template": {"spec": {"parallelism": 3, "template": LATER}}}
    ]
    in_order = {"startupPolicy": {"startupPolicyOrder": "InOrder"}, "replicatedJobs": jobs}
    (template,) = record_of(decode_job_set, in_order).templates
    assert template.like.request == (("cpu", 1000), ("nvidia.com/gpu", 1), ("pods", 1))
    assert template.like.shape.selector == (("pool", "gpu"),)
    assert (template.pods, template.jobs) == (6, 2)
    assert record_of(decode_job_set, {"replicatedJobs": jobs}).templates[0].like is None


@pytest.mark.parametrize(
    ("mode", "jobs"), [(None, 2), ("", 2), ("Indexed", 2), ("NonIndexed", 0), ("indexed", 0)]
)
def test_only_jobs_whose_pods_have_a_completion_index_number_them(mode, jobs):
    made = {"completionMode": mode, "template": TEMPLATE}
    spec = {"replicatedJobs": [{"name": "b", "replicas": 2, "template": {"spec": made}}]}
    assert record_of(decode_job_set, spec).templates[0].jobs == jobs


@pytest.mark.parametrize(
    ("job", "pods"),
    [
        pytest.param({}, 2, id="neither"),
        pytest.param({"parallelism": 3}, 6, id="parallelism"),
        pytest.param({"completions": 3}, 2, id="completions_above_the_default"),
        pytest.param({"parallelism": 3, "completions": 2}, 4, id="completions_are_fewer"),
        pytest.param({"parallelism": 3, "completions": 5}, 6, id="completions_are_more"),
        pytest.param({"parallelism": 3, "completions": 0}, 0, id="no_completions"),
        pytest.param({"parallelism": 0}, 0, id="no_parallelism"),
    ],
)
def test_a_replicated_job_runs_no_more_pods_than_it_has_to_complete(job, pods):
    assert record_of(decode_job_set, {"replicatedJobs": [replicated("a", 2, **job)]}).pods == pods


def test_replicated_jobs_that_are_null_are_left_out_and_one_without_a_template_has_a_pod():
    spec = {"replicatedJobs": [None, {"name": "a"}, {"replicas": 3, "template": {"spec": None}}]}
    assert record_of(decode_job_set, spec).templates == (
        Template("a", 1, {}, jobs=1),
        Template("", 3, {}, jobs=3),
    )


@pytest.mark.parametrize(
    ("policy", "annotations"),
    [
        pytest.param("LeaderReady", {}, id="leader_ready"),
        pytest.param(
            "LeaderCreated",
            {"leaderworkerset.sigs.k8s.io/exclusive-topology": "rack"},
            id="exclusive",
        ),
    ],
)
def test_workers_that_wait_for_a_leader_of_its_own_template_come_later(policy, annotations):
    spec = {
        "startupPolicy": policy,
        "leaderWorkerTemplate": {"size": 3, "leaderTemplate": TEMPLATE, "workerTemplate": LATER},
    }
    document = {"metadata": {**METADATA, "annotations": annotations}, "spec": spec}
    record = decode_leader_worker_set(json.dumps(document).encode(), ours)
    leader, workers = record.templates
    assert (leader.like, workers.like.request[1]) == (None, ("nvidia.com/gpu", 1))
    assert record.is_gradual


def test_a_template_that_cannot_be_read_is_named():
    bad = {"spec": {"containers": [{"resources": {"requests": {"cpu": "a lot"}}}]}}
    jobs = [{"name": "b", "template": {"spec": {"template": bad}}}]
    in_order = {"startupPolicy": {"startupPolicyOrder": "InOrder"}, "replicatedJobs": jobs}
    with pytest.raises(DecodeError, match=r"pod template b: .*a lot"):
        record_of(decode_job_set, in_order)


@pytest.mark.parametrize(
    ("template", "replicas"),
    [
        pytest.param(
            {"size": 4, "workerTemplate": TEMPLATE},
            (Template("worker", 4, OURS),),
            id="one_template",
        ),
        pytest.param(
            {"size": 4, "workerTemplate": TEMPLATE, "leaderTemplate": {"metadata": {}}},
            (Template("leader", 1, {}), Template("worker", 3, OURS)),
            id="leader_of_its_own",
        ),
        pytest.param({}, (Template("worker", 1, {}),), id="defaults"),
    ],
)
def test_each_group_of_a_leader_worker_set(template, replicas):
    record = record_of(decode_leader_worker_set, {"leaderWorkerTemplate": template, "replicas": 2})
    assert record.templates == replicas
    assert record.pods == sum(part.pods for part in replicas)
    assert (record.gangs, record.is_gradual) == (2, False)


@pytest.mark.parametrize(
    ("policy", "restarts"),
    [
        pytest.param({}, True, id="default"),
        pytest.param({"restartPolicy": "RecreateGroupOnPodRestart"}, True, id="said"),
        pytest.param({"restartPolicy": "RecreateGroupAfterStart"}, True, id="once_all_run"),
        pytest.param({"restartPolicy": "None"}, False, id="none"),
    ],
)
def test_a_leader_worker_set_makes_all_pods_of_a_group_anew_when_one_is_lost(policy, restarts):
    record = record_of(decode_leader_worker_set, {"leaderWorkerTemplate": policy})
    assert record.restarts_together is restarts


@pytest.mark.parametrize(
    "rollout",
    [
        pytest.param(None, id="null"),
        pytest.param({}, id="empty"),
        pytest.param({"type": "RollingUpdate"}, id="without_its_configuration"),
        pytest.param({"rollingUpdateConfiguration": {}}, id="without_a_surge"),
    ],
)
def test_without_a_surge_there_are_as_many_groups_as_replicas(rollout):
    record = record_of(decode_leader_worker_set, {"replicas": 3, "rolloutStrategy": rollout})
    assert record.gangs == 3


@pytest.mark.parametrize(
    ("surge", "groups"), [(None, 3), (0, 3), (2, 5), ("50%", 6), (10**9, MOST_GANGS)]
)
def test_a_surge_makes_more_groups_for_a_while(surge, groups):
    rollout = {"rollingUpdateConfiguration": {"maxSurge": surge}}
    spec = {"replicas": 3, "rolloutStrategy": rollout, "startupPolicy": "LeaderReady"}
    record = record_of(decode_leader_worker_set, spec)
    assert record.gangs == groups
    assert record.is_gradual


@pytest.mark.parametrize(
    ("kind", "field"),
    [
        ("PyTorchJob", "pytorchReplicaSpecs"),
        ("TFJob", "tfReplicaSpecs"),
        ("XGBoostJob", "xgbReplicaSpecs"),
        ("PaddleJob", "paddleReplicaSpecs"),
        ("JAXJob", "jaxReplicaSpecs"),
        ("MPIJob", "mpiReplicaSpecs"),
    ],
)
def test_a_training_job_has_pods_by_replica_type(kind, field):
    parts = {"Master": {"template": TEMPLATE}, "Worker": {"replicas": 3}, "PS": None}
    status = {
        "replicaStatuses": {"Master": {"succeeded": 1}, "Worker": {"active": 3}},
        "conditions": [{"type": "Succeeded", "status": "True"}],
    }
    spec = {field: parts, "runPolicy": {"suspend": True}}
    record = record_of(partial(decode_training_job, kind=kind), spec, **status)
    assert record.kind == kind
    assert record.templates == (
        Template("Master", 1, OURS, succeeded=1),
        Template("Worker", 3, {}),
    )
    assert (record.pods, record.is_gradual) == (4, False)
    assert record.is_suspended
    assert record.is_finished


@pytest.mark.parametrize(
    ("kind", "field", "policies", "more", "left"),
    [
        pytest.param("PyTorchJob", "pytorch", ["OnFailure", "Never"], {}, 0, id="never"),
        pytest.param("PyTorchJob", "pytorch", ["OnFailure", "ExitCode"], {}, None, id="restarts"),
        pytest.param("PyTorchJob", "pytorch", [None, None], {}, None, id="pytorch_default"),
        pytest.param("PaddleJob", "paddle", [None, None], {}, None, id="paddle_default"),
        pytest.param("JAXJob", "jax", [None], {}, 0, id="jax_default"),
        pytest.param("JAXJob", "jax", ["OnFailure"], {}, None, id="jax_restarts"),
        pytest.param("XGBoostJob", "xgb", ["OnFailure", "ExitCode"], {}, 0, id="xgboost"),
        pytest.param("XGBoostJob", "xgb", ["ExitCode", "ExitCode"], {}, None, id="xgb_restarts"),
        pytest.param("TFJob", "tf", ["OnFailure", "OnFailure"], {}, 0, id="tf"),
        pytest.param("TFJob", "tf", ["OnFailure"], {"enableDynamicWorker": True}, None, id="dyn"),
        pytest.param("MPIJob", "mpi", ["Never", "Never"], {}, None, id="mpi"),
    ],
)
def test_a_training_job_may_fail_for_good_when_a_pod_of_it_that_runs_is_evicted(
    kind, field, policies, more, left
):
    """Source: training-operator v1.9 pkg/core/status.go, and UpdateJobStatus of each kind."""
    names = ("Worker", "Master")
    parts = {
        name: {"replicas": 2, **({} if policy is None else {"restartPolicy": policy})}
        for name, policy in zip(names, policies, strict=False)
    }
    spec = {f"{field}ReplicaSpecs": parts, **more}
    record = record_of(partial(decode_training_job, kind=kind), spec)
    assert record.failures_left == left
    limit = FailureLimit(0, of_running=True)
    assert record.failure_limit == (None if left is None else limit)


def test_a_job_names_the_schedulers_of_its_templates():
    named = {"spec": {"schedulerName": "corral", "containers": [ONE_GPU]}}
    types = {"Master": {"template": TEMPLATE}, "Worker": {"template": named}}
    read = partial(decode_training_job, kind="PyTorchJob")
    record = record_of(read, {"pytorchReplicaSpecs": types})
    assert [each.scheduler for each in record.templates] == ["", "corral"]
    assert record.names("corral")
    assert record.names("")
    assert not record.names("volcano")
    types["Worker"] = {"template": {"spec": {"schedulerName": "s" * 2**20}}}
    record = record_of(read, {"pytorchReplicaSpecs": types})
    assert [len(each.scheduler) for each in record.templates] == [0, 253]


def test_a_launcher_that_waits_for_its_workers_comes_later():
    types = {"Launcher": {"template": LATER}, "Worker": {"replicas": 3, "template": LATER}}
    spec = {"launcherCreationPolicy": "WaitForWorkersReady", "mpiReplicaSpecs": types}
    record = record_of(partial(decode_training_job, kind="MPIJob"), spec)
    assert record.is_gradual
    launcher, workers = record.templates
    assert launcher.like.request[1] == ("nvidia.com/gpu", 1)
    assert workers.like is None
    spec["launcherCreationPolicy"] = "AtStartup"
    at_once = record_of(partial(decode_training_job, kind="MPIJob"), spec)
    assert (at_once.is_gradual, at_once.templates[0].like) == (False, None)


def test_pods_that_are_done_are_counted_by_replica_type_however_that_is_spelt():
    """Source: training-operator v1.9 pkg/apis/kubeflow.org/v1, setTypeNameToCamelCase."""
    parts = {"Chief": {}, "worker": {"replicas": 3}, "PS": {}, "Evaluator": {}}
    done = {"Worker": {"succeeded": 2}, "PS": {}, "Chief": None, "Other": {"succeeded": 1}}
    read = partial(decode_training_job, kind="TFJob")
    record = record_of(read, {"tfReplicaSpecs": parts}, replicaStatuses=done)
    assert [(each.name, each.succeeded) for each in record.templates] == [
        ("Chief", 0),
        ("worker", 2),
        ("PS", 0),
        ("Evaluator", 0),
    ]


@pytest.mark.parametrize("runs_as_worker", [True, False])
def test_only_a_launcher_that_runs_as_a_worker_has_a_number(runs_as_worker):
    types = {"Launcher": {}, "Worker": {"replicas": 3}}
    spec = {"mpiReplicaSpecs": types, "runLauncherAsWorker": runs_as_worker}
    record = record_of(partial(decode_training_job, kind="MPIJob"), spec)
    launcher = Template("Launcher", 1, {}, jobs=int(runs_as_worker))
    assert record.templates == (launcher, Template("Worker", 3, {}))


def test_a_wrong_field_names_the_workload_and_the_field():
    raw = json.dumps({"metadata": METADATA, "spec": {"replicas": "3"}}).encode()
    with pytest.raises(DecodeError) as refused:
        decode_stateful_set(raw, ours)
    assert "StatefulSet team/w" in str(refused.value)
    assert "$.spec.replicas" in str(refused.value)


def test_every_training_job_is_watched_where_its_operator_serves_it():
    watched = [each for each in DIALECTS.resources(ours) if "/kubeflow.org/" in each.path]
    paths = {resource.kind: resource.path for resource in watched}
    assert len(paths) == 6
    assert paths["PyTorchJob"] == "/apis/kubeflow.org/v1/pytorchjobs"
    assert paths["MPIJob"] == "/apis/kubeflow.org/v2beta1/mpijobs"
    assert all(resource.is_optional for resource in watched)


def test_a_job_set_without_a_uid_is_of_one_gang():
    """As a mutated one is; an API server sends none."""
    record = decode_job_set(b'{"metadata":{"name":"a","namespace":"b"}}', lambda _: True)
    assert len(list(keys_of(record))) == 1
