"""Pods of workloads: which gang, which pod set, which number, and how large the gang is.

Label names are those of the JobSet, LeaderWorkerSet, training and MPI operators' own sources.
"""

from __future__ import annotations

import msgspec
import pytest

from app.dialects.registry import DIALECTS
from app.dialects.spec import MOST_PODS, GangKey, GangSpec, Index
from app.dialects.workloads import KINDS, kubeflow
from app.kube.core.objects import Owner
from app.settings import EngineOptions
from tests.app.dialects.claims import claim_of
from tests.records import GROUP, RACK, REQUIRED, TOTAL, group, job, job_owner, pod
from tests.work import lines_run
from tests.workload_pods import (
    COMPLETION_INDEX,
    JOBSET,
    LWS,
    group_pods,
    job_set,
    mpi_pods,
    stateful_pods,
    training_pods,
    workload,
)

EXCLUSIVE = {"alpha.jobset.sigs.k8s.io/exclusive-topology": RACK}


def claims(records) -> list[tuple[GangKey, str, Index | None]]:
    return [(c.gang, c.leaf, c.index) for c in map(claim_of, records)]


def spec(key: GangKey, *records) -> GangSpec | None:
    """What records of workloads say about a gang, found by the key its pods carry."""
    owners = [record for record in records if key in DIALECTS.keys_of(record)]
    return DIALECTS.spec(key, owners, (), ())


def declared(key: GangKey, *records) -> tuple[int, str, int | None, bool]:
    """How many pods they say it has, where, how many it starts with, and whether all are alike."""
    found = spec(key, *records)
    assert found is not None
    return found.pods, found.where, found.starts_with, found.reserves_all


# -- Job ---------------------------------------------------------------------------------------


def test_pods_of_a_job_are_numbered_by_their_completion_index():
    pods = [
        pod("a", owner=job_owner("j"), labels={COMPLETION_INDEX: "3"}, annotations={REQUIRED: RACK})
    ]
    key = GangKey("default", "j", "job", "uid-job-j")
    assert claims(pods) == [(key, "", Index(3))]
    records = job("j", 4), job("other", 9)
    assert declared(key, *records) == (4, "parallelism of Job j", None, False)


@pytest.mark.parametrize(
    ("record", "pods"),
    [
        pytest.param(job("j", 4), 4, id="parallelism"),
        pytest.param(job("j", 4, completions=10, succeeded=3), 4, id="many_left"),
        pytest.param(job("j", 4, completions=10, succeeded=8), 2, id="few_left"),
        pytest.param(job("j", 4, completions=2, succeeded=3), 0, id="none_left"),
    ],
)
def test_a_job_has_as_many_pods_as_run_at_a_time(record, pods):
    assert declared(GangKey("default", "j", "job", "uid-job-j"), record)[0] == pods


# -- JobSet ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("said", "seconds"), [((600, 900), 900), ((600, 0), 0), ((0, 0), 0)])
def test_the_pods_of_a_job_set_end_with_the_last_of_its_jobs(said, seconds):
    jobs, _ = job_set("js", {"workers": (2, 2)}, RACK)
    made = [
        msgspec.structs.replace(each, deadline_seconds=deadline)
        for each, deadline in zip(jobs, said, strict=True)
    ]
    found = spec(GangKey("default", "js", "jobset", "uid-JobSet-js/0"), *made)
    assert found is not None
    assert found.lifecycle.deadline_seconds == seconds


@pytest.mark.parametrize(
    ("left", "restarts_left", "expected"),
    [
        pytest.param((None, None), 0, None, id="all_ignore_disruptions"),
        pytest.param((8, 8), 0, None, id="enough_for_all_pods"),
        pytest.param((8, 1), 0, 0, id="one_job_would_fail"),
        pytest.param((0, 0), 1, None, id="the_job_set_would_restart"),
    ],
)
def test_a_job_set_ends_when_one_of_its_jobs_fails_and_it_restarts_no_more(
    left, restarts_left, expected
):
    jobs, _ = job_set("js", {"workers": (2, 2)}, RACK)
    made = [
        msgspec.structs.replace(each, failures_left=most)
        for each, most in zip(jobs, left, strict=True)
    ]
    whole = msgspec.structs.replace(
        workload("JobSet", "js", {"workers": 4}, level=RACK), restarts_left=restarts_left
    )
    found = spec(GangKey("default", "js", "jobset", "uid-JobSet-js/0"), whole, *made)
    assert found is not None
    limit = found.lifecycle.failures
    assert (None if limit is None else limit.left) == expected
    assert found.lifecycle.restarts_together is (0 in left)


def test_a_job_set_is_one_gang_with_a_pod_set_per_replicated_job():
    _, pods = job_set("js", {"driver": (1, 1), "workers": (2, 2)}, RACK)
    key = GangKey("default", "js", "jobset", "uid-JobSet-js/0")
    assert claims(pods) == [
        (key, "driver", Index(0, part=0, parts=1)),
        (key, "workers", Index(0, part=0, parts=2)),
        (key, "workers", Index(1, part=0, parts=2)),
        (key, "workers", Index(0, part=1, parts=2)),
        (key, "workers", Index(1, part=1, parts=2)),
    ]


def test_the_next_attempt_of_a_job_set_is_another_gang():
    _, (before, *_) = job_set("js", {"w": (1, 2)}, RACK)
    labels = {**before.labels, f"{JOBSET}restart-attempt": "1"}
    after = msgspec.structs.replace(before, labels=labels)
    assert claim_of(before).gang != claim_of(after).gang


def test_a_job_set_is_as_large_as_all_its_jobs_once_all_are_known():
    jobs, pods = job_set("js", {"driver": (1, 1), "workers": (2, 4)}, RACK)
    key = claim_of(pods[0]).gang
    assert spec(key, *jobs[:-1]) is None
    assert declared(key, *jobs) == (9, "parallelism of all Jobs of JobSet js", None, False)


def test_jobs_of_another_attempt_do_not_count():
    jobs, pods = job_set("js", {"workers": (2, 4)}, RACK)
    labels = {**jobs[0].labels, f"{JOBSET}restart-attempt": "1"}
    assert spec(claim_of(pods[0]).gang, msgspec.structs.replace(jobs[0], labels=labels)) is None


OURS = DIALECTS.configured(EngineOptions(scheduler_name="corral"))
SAY_NOTHING = "annotations: Required value: must contain one of"


def ours(record, silent="", its="corral"):
    """A workload whose pods name our scheduler; of one template they say nothing, and name this."""
    templates = tuple(
        msgspec.structs.replace(each, annotations={}, scheduler=its)
        if each.name == silent
        else msgspec.structs.replace(each, scheduler="corral")
        for each in record.templates
    )
    return msgspec.structs.replace(record, templates=templates)


def flaw(key: GangKey, *records) -> str:
    """What keeps the gang from starting, as these records say it."""
    found = OURS.spec(key, records, (), ())
    assert found is not None
    return found.flaw


def driver_and_workers(its="corral"):
    """A JobSet whose driver says nothing, its Jobs, and the key of their gang."""
    parts = {"driver": (1, 1), "workers": (2, 4)}
    jobs, pods = job_set("js", parts, RACK)
    jobs = [ours(each, "" if at == 0 else "none", its) for at, each in enumerate(jobs)]
    whole = workload("JobSet", "js", {"driver": 1, "workers": 8}, level=RACK)
    return ours(whole, "driver", its), jobs, claim_of(pods[-1]).gang


def test_a_replicated_job_that_says_nothing_beside_one_that_does_is_a_mistake():
    whole, jobs, key = driver_and_workers()
    path = "spec.replicatedJobs[{}].template.spec.template.metadata.annotations"
    told = flaw(key, whole, *jobs)
    assert told.startswith(f"JobSet default/js: {path.format(0)}: Required value: must contain one")
    assert told.endswith(f"as '{path.format(1)}' does")


def test_it_is_one_before_the_job_set_itself_has_been_read():
    _, jobs, key = driver_and_workers()
    told = flaw(key, *jobs)
    assert told.startswith(f"Job default/js-driver-0: spec.template.metadata.{SAY_NOTHING}")
    assert "as 'Job default/js-workers-0: spec.template.metadata.annotations' does" in told


def test_a_replicated_job_of_another_scheduler_is_no_part_of_the_gang():
    whole, jobs, key = driver_and_workers(its="default-scheduler")
    for records in ((whole, *jobs), jobs):
        assert flaw(key, *records) == ""
        assert declared(key, *records)[0] == 8


def test_a_job_set_whose_jobs_come_in_order_may_start_with_those_there_are():
    jobs, pods = job_set("js", {"driver": (1, 1), "workers": (2, 4)}, RACK)
    whole = workload("JobSet", "js", {"driver": 1, "workers": 8}, level=RACK, is_gradual=True)
    key = claim_of(pods[0]).gang
    assert declared(key, whole, jobs[0]) == (9, "spec of JobSet js", 1, False)
    # The second replicated Job is being made: its pods are awaited as well.
    assert declared(key, whole, *jobs[:2]) == (9, "spec of JobSet js", 9, False)
    assert declared(key, whole, *jobs) == (9, "parallelism of all Jobs of JobSet js", None, False)


def test_pods_of_jobs_that_come_later_are_expected_by_their_numbers():
    jobs, pods = job_set("js", {"driver": (1, 1), "workers": (2, 4)}, RACK)
    like = pod("like")
    whole = workload("JobSet", "js", {"workers": 8}, level=RACK, like=like, jobs=2, is_gradual=True)
    found = spec(claim_of(pods[0]).gang, whole, jobs[0])
    there, later = found.leaves()
    assert (there.name, there.like) == ("driver", None)
    assert (later.name, later.pods, later.like.pod) == ("workers", 8, like)
    assert later.like.said.constraint.required == RACK
    assert tuple(later.like.numbers) == tuple(claim_of(each).index for each in pods[1:])


@pytest.mark.parametrize("is_in_order", [False, True])
def test_jobs_that_are_to_be_alone_in_a_domain_start_with_the_first_pod_of_each(is_in_order):
    jobs, pods = job_set("js", {"driver": (1, 1), "w": (2, 4), "x": (1, 4)}, RACK)
    jobs[1:3] = [msgspec.structs.replace(each, annotations=EXCLUSIVE) for each in jobs[1:3]]
    like, parts = pod("like"), {"driver": 1, "w": 8, "x": 4}
    whole = workload("JobSet", "js", parts, level=RACK, like=like, jobs=2, is_gradual=is_in_order)
    key = claim_of(pods[0]).gang
    assert declared(key, whole, *jobs)[::2] == (13, 1 + 2 + 4)
    driver, workers, others = spec(key, whole, *jobs).leaves()
    assert workers.like.pod == like
    # Of Jobs that come in order places are kept from when they are made to when their pods are.
    assert [each.like is not None for each in (driver, others)] == [is_in_order] * 2
    assert tuple(workers.like.numbers) == tuple(claim_of(each).index for each in pods[1:9])
    if is_in_order:
        assert declared(key, whole, *jobs[:3])[::2] == (13, 1 + 2)


def test_jobs_that_are_alone_by_their_nodes_labels_have_all_their_pods_at_once():
    jobs, pods = job_set("js", {"w": (1, 4)}, RACK)
    by_labels = {**EXCLUSIVE, "alpha.jobset.sigs.k8s.io/node-selector": "true"}
    jobs = [msgspec.structs.replace(each, annotations=by_labels) for each in jobs]
    assert declared(claim_of(pods[0]).gang, *jobs)[2] is None


@pytest.mark.parametrize(
    "missing", ["job-index", "replicatedjob-replicas", COMPLETION_INDEX.removeprefix(JOBSET)]
)
def test_a_pod_of_a_job_set_without_all_its_numbers_has_none(missing):
    _, (first, *_) = job_set("js", {"w": (1, 2)}, RACK)
    labels = {
        key: text for key, text in first.labels.items() if key not in (JOBSET + missing, missing)
    }
    assert claim_of(msgspec.structs.replace(first, labels=labels)).index is None


def test_the_label_of_a_job_set_alone_makes_no_gang_of_it():
    claim = claim_of(pod("p", labels={f"{JOBSET}jobset-name": "js"}, annotations={REQUIRED: RACK}))
    assert claim.gang.source == "pod"


# -- LeaderWorkerSet ---------------------------------------------------------------------------


def test_each_group_of_a_leader_worker_set_is_a_gang():
    pods = [*group_pods("lws", 0, 3, RACK), *group_pods("lws", 1, 3, RACK)]
    keys = [GangKey("default", f"lws-{group}", "leaderworkerset") for group in (0, 1)]
    assert claims(pods) == [
        (key, "", Index(index, is_across=True)) for key in keys for index in range(3)
    ]
    said = [claim_of(each).said for each in pods]
    assert {(each.pods, each.where) for each in said} == {(3, f"annotation {LWS}size")}
    assert [each.is_sure for each in said] == [False, True, True] * 2, "workers, not their leader"


@pytest.mark.parametrize(
    ("replicas", "levels", "more", "expected"),
    [
        pytest.param({"worker": 4}, RACK, {}, (4, None, False), id="at_once"),
        pytest.param({"leader": 1, "worker": 3}, RACK, {}, (4, None, False), id="two_templates"),
        pytest.param({"worker": 4}, RACK, {"is_gradual": True}, (4, 1, True), id="leader_ready"),
        pytest.param(
            {"leader": 1, "worker": 3}, RACK, {"is_gradual": True}, (4, 1, False),
            id="leader_ready_and_unlike_its_workers",
        ),
    ],
)  # fmt: skip
def test_what_a_leader_worker_set_declares_of_its_groups(replicas, levels, more, expected):
    record = workload("LeaderWorkerSet", "lws", replicas, level=levels, gangs=2, **more)
    for number in (0, 1):
        pods, where, *rest = declared(claim_of(group_pods("lws", number, 4, RACK)[0]).gang, record)
        assert (pods, *rest) == expected
        assert where == "spec of LeaderWorkerSet lws"


@pytest.mark.parametrize("is_gradual", [False, True])
@pytest.mark.parametrize("restarts_together", [False, True])
def test_a_group_that_is_made_anew_with_each_lost_pod_restarts_together(
    is_gradual, restarts_together
):
    record = msgspec.structs.replace(
        workload("LeaderWorkerSet", "lws", {"worker": 4}, level=RACK, is_gradual=is_gradual),
        restarts_together=restarts_together,
    )
    found = spec(claim_of(group_pods("lws", 0, 4, RACK)[0]).gang, record)
    assert found is not None
    assert found.lifecycle.restarts_together is restarts_together


def test_workers_that_come_after_their_leader_are_expected_by_their_numbers():
    workers = group_pods("lws", 0, 4, RACK)[1:]
    record = workload(
        "LeaderWorkerSet", "lws", {"leader": 1, "worker": 3}, level=RACK, is_gradual=True
    )
    like = pod("like")
    leader, worker = record.templates
    templates = (leader, msgspec.structs.replace(worker, like=like))
    found = spec(claim_of(workers[0]).gang, msgspec.structs.replace(record, templates=templates))
    first, later = found.leaves()
    assert (first.pods, first.like) == (1, None)
    assert (later.pods, later.like.pod) == (3, like)
    claims_of_workers = [claim_of(each) for each in workers]
    assert tuple(later.like.numbers) == tuple(claim.index for claim in claims_of_workers)
    assert {claim.leaf for claim in claims_of_workers} == {later.name}


@pytest.mark.parametrize(("its", "is_flawed"), [("corral", True), ("default-scheduler", False)])
def test_a_leader_that_says_nothing_is_a_mistake_unless_another_scheduler_has_it(its, is_flawed):
    record = workload("LeaderWorkerSet", "lws", {"leader": 1, "worker": 3}, level=RACK)
    record, key = ours(record, "leader", its), claim_of(group_pods("lws", 0, 4, RACK)[1]).gang
    assert declared(key, record)[0] == 3
    assert (f"leaderTemplate.metadata.{SAY_NOTHING}" in flaw(key, record)) is is_flawed


@pytest.mark.parametrize("workers", [0, 3])
def test_a_template_without_pods_now_need_say_nothing(workers):
    record = workload("LeaderWorkerSet", "lws", {"leader": 1, "worker": workers}, level=RACK)
    key = claim_of(group_pods("lws", 0, 4, RACK)[1]).gang
    assert bool(flaw(key, ours(record, "worker"))) is (workers > 0)


def test_where_no_template_says_anything_something_else_says_it_on_the_pods():
    record = workload("LeaderWorkerSet", "lws", {"leader": 1, "worker": 3})
    key = claim_of(group_pods("lws", 0, 4, RACK)[1]).gang
    assert flaw(key, ours(record, "none")) == ""
    assert declared(key, record)[0] == 4


@pytest.mark.parametrize("size", ["", "0", "-1", "x", "٣"])
def test_a_group_whose_size_is_none_is_a_mistake_that_names_it(size):
    (first,) = group_pods("lws", 0, 1, RACK)
    annotations = {**first.annotations, f"{LWS}size": size}
    claim = DIALECTS.claim(msgspec.structs.replace(first, annotations=annotations))
    assert claim is not None
    assert claim.flaw == (
        f"pod default/lws-0: metadata.annotations[{LWS}size]: "
        f'Invalid value: "{size}": must be a whole number from 1'
    )


# -- StatefulSet -------------------------------------------------------------------------------


def test_pods_of_a_stateful_set_are_numbered_by_their_ordinal():
    key = GangKey("default", "db", "statefulset", "uid-StatefulSet-db")
    assert claims(stateful_pods("db", 2, RACK)) == [(key, "", Index(0)), (key, "", Index(1))]


def test_where_the_label_is_missing_the_name_has_the_ordinal():
    pods = [msgspec.structs.replace(each, labels={}) for each in stateful_pods("a-1", 12, RACK)]
    assert claim_of(pods[11]).index == Index(11)


@pytest.mark.parametrize(("is_gradual", "needed"), [(False, None), (True, 1)])
def test_a_stateful_set_that_starts_one_by_one_is_not_waited_for(is_gradual, needed):
    record = workload("StatefulSet", "db", {"": 5}, is_gradual=is_gradual)
    assert declared(claim_of(stateful_pods("db", 1, RACK)[0]).gang, record) == (
        5,
        "replicas of StatefulSet db",
        needed,
        is_gradual,
    )


# -- Kubeflow ----------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [kind for kind in kubeflow.FIELDS if kind != kubeflow.MPI])
def test_a_training_job_is_one_gang_with_a_pod_set_per_replica_type(kind):
    key = GangKey("default", "t", kind.lower(), f"uid-{kind}-t")
    assert claims(training_pods(kind, "t", {"Master": 1, "Worker": 2}, RACK)) == [
        (key, "master", Index(0)),
        (key, "worker", Index(0)),
        (key, "worker", Index(1)),
    ]
    record = workload(kind, "t", {"Master": 1, "Worker": 2}, level=RACK)
    assert declared(key, record) == (3, f"spec of {kind} t", None, False)


@pytest.mark.parametrize(("its", "is_flawed"), [("corral", True), ("default-scheduler", False)])
def test_a_replica_type_that_says_nothing_is_a_mistake_unless_another_scheduler_has_it(
    its, is_flawed
):
    record = workload("PyTorchJob", "t", {"Master": 1, "Worker": 4}, level=RACK)
    record = ours(record, "Master", its)
    key, _of_its_pod_group = DIALECTS.keys_of(record)
    assert declared(key, record)[0] == 4
    path = "spec.pytorchReplicaSpecs[Master].template.metadata"
    assert (f"PyTorchJob default/t: {path}.{SAY_NOTHING}" in flaw(key, record)) is is_flawed


def done(record, **succeeded: int):
    """The same record, of whose types so many pods have succeeded."""
    templates = tuple(
        msgspec.structs.replace(each, succeeded=succeeded.get(each.name, 0))
        for each in record.templates
    )
    return msgspec.structs.replace(record, templates=templates)


def test_pods_of_a_training_job_that_are_done_do_not_count():
    record = done(workload("PyTorchJob", "t", {"Master": 1, "Worker": 4}, level=RACK), Worker=1)
    key, _of_its_pod_group = DIALECTS.keys_of(record)
    assert declared(key, record)[0] == 4


@pytest.mark.parametrize(("first", "launcher"), [(0, None), (1, Index(0, is_across=True))])
def test_the_launcher_of_an_mpi_job_is_one_of_its_gang(first, launcher):
    key = GangKey("default", "m", "mpijob")
    assert claims(mpi_pods("m", 2, RACK, first=first)) == [
        (key, "launcher", launcher),
        (key, "worker", Index(first, is_across=True)),
        (key, "worker", Index(first + 1, is_across=True)),
    ]


@pytest.mark.parametrize("first", [0, 1], ids=["no_worker", "a_worker_as_well"])
def test_a_launcher_that_comes_later_is_expected(first):
    launcher, worker, _ = mpi_pods("m", 2, RACK, first=first)
    like = pod("like")
    record = workload(
        "MPIJob", "m", {"Launcher": 1, "Worker": 2}, level=RACK, like=like, jobs=first,
        is_gradual=True,
    )  # fmt: skip
    workers, later = spec(claim_of(worker).gang, record).leaves()
    assert (workers.pods, workers.like) == (2, None)
    assert (later.name, later.pods, later.like.pod) == (claim_of(launcher).leaf, 1, like)
    index = claim_of(launcher).index
    assert tuple(later.like.numbers) == (() if index is None else (index,))


@pytest.mark.parametrize(
    ("parts", "succeeded", "needed", "leaves"),
    [
        pytest.param({"Launcher": 1, "Worker": 1}, (0, 0), 1, 2, id="one_worker"),
        pytest.param({"Launcher": 1, "Worker": 0}, (0, 0), None, 1, id="no_worker"),
        pytest.param({"Launcher": 1}, (0, 0), None, 1, id="a_launcher_alone"),
        pytest.param({"Worker": 2}, (0, 0), None, 1, id="no_launcher"),
        pytest.param({"Launcher": 1, "Worker": 2}, (1, 0), None, 1, id="the_launcher_has_ended"),
        pytest.param({"Launcher": 1, "Worker": 2}, (0, 1), 1, 2, id="a_worker_has_ended"),
        pytest.param({"Launcher": 1, "Worker": 2}, (1, 2), None, 1, id="all_have_ended"),
    ],
)
def test_only_a_launcher_with_workers_before_it_comes_later(parts, succeeded, needed, leaves):
    record = workload("MPIJob", "m", parts, level=RACK, is_gradual=True)
    record = done(record, **dict(zip(("Launcher", "Worker"), succeeded, strict=True)))
    found = spec(claim_of(mpi_pods("m", 1, RACK)[0]).gang, record)
    assert (found.starts_with, len(list(found.leaves()))) == (needed, leaves)
    assert found.pods == sum(parts.values()) - sum(succeeded)


@pytest.mark.parametrize(("is_gradual", "needed"), [(False, None), (True, 2)])
def test_a_launcher_that_comes_later_is_not_waited_for(is_gradual, needed):
    record = workload(
        "MPIJob", "m", {"Launcher": 1, "Worker": 2}, level=RACK, is_gradual=is_gradual
    )
    key = claim_of(mpi_pods("m", 2, RACK)[0]).gang
    assert declared(key, record) == (3, "spec of MPIJob m", needed, False)


@pytest.mark.parametrize(
    "owner",
    [
        Owner("example.com/v1", "PyTorchJob", "t", "u"),
        Owner("apps/v1", "ReplicaSet", "t-5d9", "u"),
        Owner("workload.codeflare.dev/v1beta2", "AppWrapper", "t", "u"),
    ],
    ids=lambda owner: owner.kind,
)
def test_pods_of_a_controller_whose_size_is_not_read_are_refused_by_its_name(owner):
    claim = DIALECTS.claim(pod("p", owner=owner, annotations={REQUIRED: RACK}))
    assert claim is not None
    assert f"its controller is the {owner.kind} {owner.name}, whose size" in claim.flaw


def test_pods_of_any_controller_may_be_a_pod_group():
    owner = Owner("apps/v1", "ReplicaSet", "t-5d9", "u")
    claim = claim_of(pod("p", owner=owner, annotations=group("g", 2, RACK)))
    assert (claim.gang.source, claim.said.pods) == ("group", 2)


def test_pods_of_any_controller_that_ask_for_no_topology_are_ordinary():
    assert DIALECTS.claim(pod("p", owner=Owner("apps/v1", "ReplicaSet", "t", "u"))) is None


# -- what they share ---------------------------------------------------------------------------


def every_pod():
    _, of_job_set = job_set("js", {"w": (1, 1)}, RACK)
    return [
        of_job_set[0],
        group_pods("lws", 0, 1, RACK)[0],
        stateful_pods("db", 1, RACK)[0],
        training_pods("TFJob", "t", {"PS": 1}, RACK)[0],
        mpi_pods("m", 1, RACK)[0],
    ]


@pytest.mark.parametrize("made", every_pod(), ids=lambda made: made.name)
def test_only_pods_that_ask_for_topology_are_members(made):
    assert DIALECTS.claim(msgspec.structs.replace(made, annotations={})) is None


@pytest.mark.parametrize("made", every_pod(), ids=lambda made: made.name)
def test_a_groups_name_wins_over_whoever_made_the_pod(made):
    annotations = {**made.annotations, GROUP: "g", TOTAL: "2"}
    assert claim_of(msgspec.structs.replace(made, annotations=annotations)).gang.source == "group"


@pytest.mark.parametrize("made", every_pod(), ids=lambda made: made.name)
def test_every_label_that_is_read_is_kept(made):
    assert all(DIALECTS.keeps(key) for key in (*made.labels, *made.annotations))


@pytest.mark.parametrize("kind", [kind.kind for kind in KINDS])
def test_every_workload_that_is_watched_has_a_say_in_some_gang(kind):
    assert kind in DIALECTS.kinds
    assert list(DIALECTS.keys_of(workload(kind, "w", {"": 1})))


def test_a_workload_of_more_pods_than_a_gang_may_have_lists_no_numbers():
    _, (first, *_) = job_set("js", {"a": (1, 1)}, RACK)
    jobs, _ = job_set("js", {"a": (1, 1), "b": (1, 1)}, RACK)
    whole = workload(
        "JobSet", "js", {"b": 2**31 - 1}, level=RACK, like=pod("like"), jobs=1, is_gradual=True
    )
    *_, later = spec(claim_of(first).gang, whole, jobs[0]).leaves()
    assert (later.pods, later.like) == (2**31 - 1, None)


@pytest.mark.parametrize("pods", [10, MOST_PODS - 1])
def test_what_a_workload_says_of_later_pods_costs_the_same_however_many_they_are(pods):
    """It is read at each change of the workload, of a Job of it and of a pod of that."""
    jobs, made = job_set("js", {"driver": (1, 1)}, RACK)
    (driver,) = jobs
    labels = {**driver.labels, "jobset.sigs.k8s.io/global-replicas": str(pods + 1)}
    driver = msgspec.structs.replace(driver, labels=labels)
    later = {"workers": pods}
    like = pod("like")
    whole = workload("JobSet", "js", later, level=RACK, like=like, jobs=pods, is_gradual=True)
    key = claim_of(made[0]).gang
    found = spec(key, whole, driver)
    assert found.pods == pods + 1
    assert lines_run(lambda: spec(key, whole, driver)) < 1_000
    groups = workload(
        "LeaderWorkerSet", "lws", {"leader": 1, "worker": pods}, like=like, is_gradual=True
    )
    (leader,) = group_pods("lws", 0, 1, RACK)
    key = claim_of(leader).gang
    assert spec(key, groups).pods == pods + 1
    assert lines_run(lambda: spec(key, groups)) < 1_000


def test_a_job_of_a_job_set_costs_a_few_steps():
    """Each change of one has all of them looked at."""

    def lines(replicas: int) -> int:
        jobs, pods = job_set("js", {"workers": (replicas, 1)}, RACK)
        key = claim_of(pods[0]).gang
        assert spec(key, *jobs).pods == replicas
        return lines_run(lambda: DIALECTS.spec(key, jobs, (), ()))

    assert (lines(200) - lines(100)) / 100 < 45


def test_a_job_of_a_job_set_in_order_costs_little_more():
    """While some of them are suspended, and others are about to be made."""

    def lines(replicas: int) -> int:
        parts = {"first": (replicas, 1), "workers": (replicas, 1)}
        jobs, pods = job_set("js", parts, RACK)
        whole = workload("JobSet", "js", dict.fromkeys(parts, replicas), is_gradual=True)
        waiting = [msgspec.structs.replace(each, is_suspended=True) for each in jobs[-3:]]
        records = [whole, *jobs[:-5], *waiting]
        key = claim_of(pods[0]).gang
        assert spec(key, *records).pods == 2 * replicas
        return lines_run(lambda: DIALECTS.spec(key, records, (), ()))

    assert (lines(200) - lines(100)) / 200 < 90
