"""Where a pod belongs by its owner and its labels, and which objects have a say in that.

What follows from it for gangs is in test_workloads.py.
"""

from __future__ import annotations

import msgspec
import pytest

from app.dialects.kueue import claims
from app.dialects.spec import GangKey
from app.dialects.workloads import KINDS, kubeflow
from app.dialects.workloads import job as jobs
from app.dialects.workloads import job_set as job_sets
from app.dialects.workloads import leader_worker_set as leader_worker_sets
from app.dialects.workloads import stateful_set as stateful_sets
from app.kube.core.objects import Owner
from tests.records import RACK, job_owner, pod
from tests.workload_pods import (
    COMPLETION_INDEX,
    JOBSET,
    LWS,
    POD_INDEX,
    group_pods,
    job_set,
    mpi_pods,
    stateful_pods,
    training_pods,
    workload,
)


def of(made, **changes):
    return msgspec.structs.replace(made, **changes)


def without(made, *labels):
    return of(made, labels={key: made.labels[key] for key in made.labels if key not in labels})


JOB_SET_POD = job_set("js", {"w": (1, 1)}, RACK)[1][0]
GROUP_POD = group_pods("lws", 0, 1, RACK)[0]
STATEFUL_POD = stateful_pods("db", 1, RACK)[0]
TRAINING_POD = training_pods("TFJob", "t", {"PS": 1}, RACK)[0]
LAUNCHER = mpi_pods("m", 1, RACK)[0]
JOB_POD = pod("j-0", owner=job_owner("j"))
OTHER_API = "example.com/v1"


@pytest.mark.parametrize(
    ("place_of", "made"),
    [
        pytest.param(jobs.place_of, of(JOB_POD, owner=None), id="job_no_owner"),
        pytest.param(
            jobs.place_of, of(JOB_POD, owner=Owner(OTHER_API, "Job", "j", "u")), id="job_other_api"
        ),
        pytest.param(
            jobs.place_of, of(JOB_POD, owner=Owner("batch/v1", "CronJob", "j", "u")), id="cron_job"
        ),
        pytest.param(
            job_sets.place_of, without(JOB_SET_POD, f"{JOBSET}jobset-name"), id="job_set_no_label"
        ),
        pytest.param(job_sets.place_of, of(JOB_SET_POD, owner=None), id="job_set_no_owner"),
        pytest.param(
            leader_worker_sets.place_of, without(GROUP_POD, f"{LWS}name"), id="group_no_name"
        ),
        pytest.param(
            leader_worker_sets.place_of,
            of(GROUP_POD, labels={**GROUP_POD.labels, f"{LWS}name": ""}),
            id="group_empty_name",
        ),
        pytest.param(
            leader_worker_sets.place_of,
            without(GROUP_POD, f"{LWS}group-index"),
            id="group_no_index",
        ),
        pytest.param(stateful_sets.place_of, of(STATEFUL_POD, owner=None), id="stateful_no_owner"),
        pytest.param(
            stateful_sets.place_of,
            of(STATEFUL_POD, owner=Owner(OTHER_API, "StatefulSet", "db", "u")),
            id="stateful_other_api",
        ),
        pytest.param(
            stateful_sets.place_of,
            of(STATEFUL_POD, owner=Owner("apps/v1", "ReplicaSet", "db", "u")),
            id="replica_set",
        ),
        pytest.param(kubeflow.place_of, of(TRAINING_POD, owner=None), id="training_no_owner"),
        pytest.param(
            kubeflow.place_of,
            of(TRAINING_POD, owner=Owner(OTHER_API, "TFJob", "t", "u")),
            id="training_other_api",
        ),
        pytest.param(
            kubeflow.place_of,
            of(TRAINING_POD, owner=Owner("kubeflow.org/v1", "Notebook", "t", "u")),
            id="notebook",
        ),
        pytest.param(kubeflow.place_of, of(LAUNCHER, owner=None), id="launcher_no_owner"),
        pytest.param(
            kubeflow.place_of,
            of(LAUNCHER, owner=Owner(OTHER_API, "Job", "m-launcher", "u")),
            id="launcher_other_api",
        ),
        pytest.param(
            kubeflow.place_of, without(LAUNCHER, kubeflow.JOB_NAME), id="launcher_no_job_name"
        ),
        pytest.param(
            kubeflow.place_of,
            of(LAUNCHER, labels={**LAUNCHER.labels, kubeflow.JOB_NAME: ""}),
            id="launcher_empty_job_name",
        ),
        pytest.param(
            kubeflow.place_of, without(LAUNCHER, kubeflow.OPERATOR), id="launcher_no_operator"
        ),
        pytest.param(
            kubeflow.place_of,
            of(LAUNCHER, labels={**LAUNCHER.labels, kubeflow.OPERATOR: "other"}),
            id="launcher_other_operator",
        ),
    ],
)
def test_a_pod_of_another_controller_has_no_place(place_of, made):
    assert place_of(made) is None


@pytest.mark.parametrize(
    ("place_of", "made"),
    [
        pytest.param(jobs.place_of, JOB_POD, id="job"),
        pytest.param(
            leader_worker_sets.place_of, without(GROUP_POD, f"{LWS}worker-index"), id="group"
        ),
        pytest.param(
            stateful_sets.place_of, of(without(STATEFUL_POD, POD_INDEX), name="db-x"), id="stateful"
        ),
        pytest.param(
            kubeflow.place_of, without(TRAINING_POD, kubeflow.REPLICA_INDEX), id="training"
        ),
    ],
)
def test_a_pod_without_a_number_has_a_place_without_one(place_of, made):
    assert place_of(made).index is None


@pytest.mark.parametrize(
    ("labels", "annotations", "index"),
    [
        pytest.param({COMPLETION_INDEX: "3"}, {COMPLETION_INDEX: "4"}, 3, id="label_first"),
        pytest.param({}, {COMPLETION_INDEX: "4"}, 4, id="annotation"),
        pytest.param({COMPLETION_INDEX: "x"}, {COMPLETION_INDEX: "4"}, 4, id="label_is_none"),
        pytest.param({COMPLETION_INDEX: "0"}, {COMPLETION_INDEX: "4"}, 0, id="zero"),
        pytest.param({COMPLETION_INDEX: "x"}, {COMPLETION_INDEX: ""}, None, id="both_are_none"),
    ],
)
def test_the_completion_index_is_a_label_or_in_older_clusters_an_annotation(
    labels, annotations, index
):
    assert jobs.completion_index(pod("p", labels=labels, annotations=annotations)) == index


@pytest.mark.parametrize("kind", [kind.kind for kind in KINDS])
def test_a_kind_has_no_say_in_gangs_of_objects_of_other_kinds(kind):
    (reader,) = (each for each in KINDS if each.kind == kind)
    assert list(reader.keys(workload("ReplicaSet", "w", {"": 1}))) == []
    assert reader.spec(GangKey("default", "w", reader.source), (), lambda _: None) is None


def test_a_job_that_no_job_set_made_has_no_say_in_one():
    made, _ = job_set("js", {"w": (1, 1)}, RACK)
    other = Owner("example.com/v1", "Other", "js", "u")
    assert list(job_sets.keys_of(of(made[0], owner=other))) == []
    assert list(job_sets.keys_of(of(made[0], labels={}))) == []
    assert len(list(job_sets.keys_of(made[0]))) == 1


def test_a_job_of_no_owner_has_a_say_only_where_no_job_set_made_any():
    """Its labels may be a copy; or its JobSet is gone, and then all its Jobs are without owner."""
    made, _ = job_set("js", {"w": (2, 2)}, RACK)
    (key,) = job_sets.keys_of(made[0])
    copy = of(made[0], name="copy", owner=None)
    assert list(job_sets.keys_of(copy)) == [key]
    for records in ([*made, copy], [*made[:1], copy]):
        found = job_sets.spec_of(key, records, claims.said_in)
        assert (found and found.pods) == (4 if len(records) > 2 else None)
    found = job_sets.spec_of(key, [copy], claims.said_in)
    assert found is not None
    assert found.pods == 2


def test_a_job_set_is_found_by_pods_with_its_uid_and_by_those_of_older_versions_without():
    whole = workload("JobSet", "js", {"w": 1}, restarts=2)
    assert [key.epoch for key in job_sets.keys_of(whole)] == ["uid-JobSet-js/2", "/2"]
