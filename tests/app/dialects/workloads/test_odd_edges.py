"""What controllers do at their edges, and the gangs that follow."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import partial
from typing import Any

import msgspec
import pytest

from app.dialects.registry import DIALECTS
from app.dialects.spec import Claim, GangKey, GangSpec
from app.dialects.workloads import Template, WorkloadRecord
from app.dialects.workloads.job import decode_job
from app.dialects.workloads.job_set import decode_job_set
from app.dialects.workloads.job_set_failures import MOST_RULES
from app.dialects.workloads.kubeflow import FIELDS, decode_training_job
from app.dialects.workloads.leader_worker_set import decode_leader_worker_set
from app.dialects.workloads.record import FailureRule, failure_limit_of
from app.dialects.workloads.stateful_set import decode_stateful_set
from app.kube.core.objects import Owner, PodRecord
from app.kube.watch.events import Listed
from app.state.effects import Delete
from tests.app.dialects.claims import claim_of
from tests.app.state.world import World, four_racks
from tests.records import BLOCK, GPU, RACK, REQUIRED, job, job_owner, job_pods, pod
from tests.workload_pods import (
    COMPLETION_INDEX,
    LWS,
    POD_INDEX,
    group_pods,
    job_set,
    training_pods,
    workload,
)
from topology.pod_set.gaps import NO_GAPS

Thing = dict[str, Any]


def everything(_key: str) -> bool:
    return True


def read(decode: Any, spec: Thing, status: Thing | None = None, **metadata: Any) -> WorkloadRecord:
    """The record of an object `w`."""
    named = {"namespace": "default", "name": "w", "uid": "uid-w", **metadata}
    thing = {"metadata": named, "spec": spec, "status": status or {}}
    found = decode(json.dumps(thing).encode(), everything)
    assert isinstance(found, WorkloadRecord)
    return found


def spec_of(key: GangKey, *records: WorkloadRecord) -> GangSpec:
    owners = [each for each in records if key in DIALECTS.keys_of(each)]
    found = DIALECTS.spec(key, owners, (), ())
    assert found is not None
    return found


def template(**resources: Thing) -> Thing:
    containers = [{"name": "c", "resources": resources}]
    spec = {"schedulerName": "corral", "containers": containers}
    return {"metadata": {"annotations": {REQUIRED: RACK}}, "spec": spec}


# -- Job -------------------------------------------------------------------------------------------


def policy(action: str, status: str = "True") -> Thing:
    on = [{"type": "DisruptionTarget", "status": status}]
    return {"podFailurePolicy": {"rules": [{"action": action, "onPodConditions": on}]}}


@pytest.mark.parametrize("action", ["FailJob", "FailIndex"])
def test_a_job_that_ends_with_the_first_pod_that_is_evicted_may_lose_none(action: str) -> None:
    """Source: kubernetes v1.36 pkg/controller/job/pod_failure_policy.go, matchPodFailurePolicy."""
    more = {"backoffLimitPerIndex": 3} if action == "FailIndex" else {}
    limit = failure_limit_of(read(decode_job, {"parallelism": 4, **policy(action), **more}), None)
    assert limit is not None
    assert limit.left == 0


def test_a_rule_for_pods_that_are_not_evicted_is_none_for_those_that_are() -> None:
    limit = failure_limit_of(
        read(decode_job, {"parallelism": 4, **policy("Ignore", "False")}), None
    )
    assert limit is not None


def test_an_index_that_has_failed_for_good_has_no_pod_any_more() -> None:
    """Resumed or evicted as a whole such a Job makes pods of the other indexes, and never more.

    Source: kubernetes v1.36 pkg/controller/job/indexed_job_utils.go, firstPendingIndexes.
    """
    said = {"parallelism": 4, "completions": 4, "completionMode": "Indexed"}
    record = read(decode_job, {**said, "backoffLimitPerIndex": 0}, {"failedIndexes": "2"})
    assert spec_of(GangKey("default", "w", "job", "uid-w"), record).pods == 3


def test_the_rest_of_a_job_is_placed_by_its_numbers_when_it_is_resumed() -> None:
    """Indexes 1 to 3, as 0 has succeeded: nothing is wrong with them."""
    world = World(four_racks())
    said = {"parallelism": 4, "completions": 4, "completionMode": "Indexed"}
    world.put(read(decode_job, said, {"succeeded": 1, "completedIndexes": "0"}, uid="uid-job-w"))
    owner = job_owner("w")
    for at in (1, 2, 3):
        labels = {COMPLETION_INDEX: str(at)}
        world.put(pod(f"w-{at}", owner=owner, labels=labels, annotations={REQUIRED: RACK}))
    world.tick()
    assert world.reports == []


INDEXED = {"parallelism": 4, "completions": 12, "completionMode": "Indexed"}


def indexed_pods(*numbers: int) -> list[PodRecord]:
    """Pods of Job `w` by their numbers, two of them to a node."""
    owner, said = job_owner("w"), {REQUIRED: BLOCK}
    return [
        pod(f"w-{at}", gpus=4, owner=owner, labels={COMPLETION_INDEX: str(at)}, annotations=said)
        for at in numbers
    ]


def two_by_two(placed: Mapping[str, str], pods: list[PodRecord]) -> bool:
    """Whether these pods, in their order, share the nodes in pairs."""
    nodes = [placed.get(each.name) for each in pods]
    return None not in nodes and nodes[0::2] == nodes[1::2] and nodes == sorted(map(str, nodes))


def test_pods_that_come_after_others_have_ended_are_placed_by_the_numbers_that_are_left() -> None:
    """Fewer run at a time than there are: 0, 2 and 3 have succeeded, 5 has failed for good."""
    world = World(four_racks())
    ended = {"succeeded": 3, "completedIndexes": "0,2,3", "failedIndexes": "5"}
    said = {**INDEXED, "backoffLimitPerIndex": 0}
    world.put(read(decode_job, said, ended, uid="uid-job-w"))
    pods = indexed_pods(1, 4, 6, 7)
    world.put(*reversed(pods))
    world.tick()
    assert two_by_two(world.schedule(*pods), pods)
    assert world.reports == []


def test_a_pod_that_comes_again_gets_its_place_whatever_has_ended() -> None:
    world = World(four_racks())
    ended = {"succeeded": 4, "completedIndexes": "0-3"}
    world.put(read(decode_job, INDEXED, ended, uid="uid-job-w"))
    pods = indexed_pods(4, 5, 6, 7)
    world.put(*pods)
    world.tick()
    placed = world.schedule(*pods)
    world.delete(world.pods[pods[2].uid])
    again = msgspec.structs.replace(pods[2], uid="uid-again")
    world.put(again)
    world.tick()
    assert world.schedule(again)[again.name] == placed[pods[2].name]
    assert world.reports == []


def test_numbers_count_only_where_pods_have_some() -> None:
    """A Job that was indexed once and is not may say what it said; no pod of it has a number."""
    said = {"parallelism": 4, "completions": 12}
    found = read(decode_job, said, {"completedIndexes": "0-3", "failedIndexes": "4-11"})
    (leaf,) = spec_of(GangKey("default", "w", "job", "uid-w"), found).leaves()
    assert (leaf.pods, leaf.gaps) == (4, NO_GAPS)


def test_a_job_whose_last_indexes_have_failed_has_no_pods_any_more() -> None:
    said = {**INDEXED, "backoffLimitPerIndex": 0}
    found = read(decode_job, said, {"succeeded": 2, "failedIndexes": "1-40"})
    assert spec_of(GangKey("default", "w", "job", "uid-w"), found).pods == 0


def test_pods_of_a_job_that_grows_may_come_before_it_is_known_to_have_grown() -> None:
    """They are of two watches. A pod that is deleted counts as failed in its Job (backoffLimit)."""
    world = World(four_racks(), delete_excess_pods=True)
    world.put(job("j", 2), *job_pods("j", 4, **{REQUIRED: RACK}))
    world.tick()
    world.put(job("j", 4))
    world.tick()
    assert world.told(Delete) == []


# -- JobSet ----------------------------------------------------------------------------------------


def in_order(**resources: Thing) -> Thing:
    its = template(**(resources or {"requests": {GPU: 8}}))
    parts = [
        {"name": name, "template": {"spec": {"parallelism": 2, "completions": 2, "template": its}}}
        for name in ("a", "b")
    ]
    return {"startupPolicy": {"startupPolicyOrder": "InOrder"}, "replicatedJobs": parts}


def test_a_job_set_in_order_that_is_resumed_starts_with_the_jobs_that_are() -> None:
    """It makes all Jobs while it is suspended, and has the next go on once the one before is ready.

    Source: jobset v0.12 pkg/controllers/jobset_controller.go, resumeJobsIfNecessary.
    """
    world = World(four_racks(), kinds=("Topology", "Job", "JobSet", "Node", "Pod"))
    whole = read(decode_job_set, in_order(), name="js", uid="uid-JobSet-js")
    world.apply(Listed("JobSet", (whole,)))
    (first, second), pods = job_set("js", {"a": (1, 2), "b": (1, 2)}, RACK)
    world.put(first, msgspec.structs.replace(second, is_suspended=True))
    world.put(*pods[:2])
    world.tick()
    assert len(world.schedule(*pods[:2])) == 2


Parts = dict[str, tuple[int, int]]
ONE_THEN_TWO: Parts = {"a": (1, 2), "b": (2, 1)}


def of_two(parts: Parts = ONE_THEN_TWO) -> tuple[World, list[WorkloadRecord], list[PodRecord]]:
    """A world with a JobSet in order, its Jobs, which are not there yet, and their pods."""
    world = World(four_racks(), kinds=("Topology", "Job", "JobSet", "Node", "Pod"))
    spec = in_order()
    for part, (replicas, pods) in zip(spec["replicatedJobs"], parts.values(), strict=True):
        part["replicas"] = replicas
        part["template"]["spec"].update(parallelism=pods, completions=pods)
    whole = read(decode_job_set, spec, name="js", uid="uid-JobSet-js")
    world.apply(Listed("JobSet", (whole,)))
    return (world, *job_set("js", parts, RACK))


def suspended(*jobs: WorkloadRecord) -> list[WorkloadRecord]:
    return [msgspec.structs.replace(each, is_suspended=True) for each in jobs]


def test_the_jobs_that_are_resumed_later_keep_their_places_all_the_while() -> None:
    """Also while only some of them are resumed, and until their pods are there."""
    world, jobs, pods = of_two()
    world.put(*suspended(*jobs), jobs[0], *pods[:2])
    world.tick()
    world.schedule(*pods[:2])
    kept = sorted(world.held.values())
    assert len(kept) == 2
    for each in jobs[1:]:
        world.put(each)
        world.tick()
        assert sorted(world.held.values()) == kept
    world.put(*pods[2:])
    world.tick()
    assert sorted(world.schedule(*pods[2:]).values()) == kept


def test_the_jobs_that_are_made_later_keep_their_places_while_they_are_made() -> None:
    world, jobs, pods = of_two()
    world.put(jobs[0], *pods[:2])
    world.tick()
    world.schedule(*pods[:2])
    kept = sorted(world.held.values())
    assert len(kept) == 2
    for each in (jobs[1], pods[2], jobs[2]):
        world.put(each)
        world.tick()
        assert sorted(world.held.values()) == kept
    world.put(pods[3])
    world.tick()
    assert sorted(world.schedule(*pods[2:]).values()) == kept


def test_places_are_not_kept_for_pods_of_jobs_in_order_that_have_succeeded() -> None:
    world, jobs, pods = of_two()
    world.put(*jobs, *pods)
    world.tick()
    world.schedule(*pods)
    world.put(msgspec.structs.replace(world.pods[pods[0].uid], phase="Succeeded"))
    world.put(msgspec.structs.replace(jobs[0], completions=2, succeeded=1))
    world.delete(world.pods[pods[0].uid])
    world.tick()
    assert world.held == {}


@pytest.mark.parametrize("first", [0, 1])
def test_of_jobs_that_start_together_none_starts_before_all_are_resumed(first: int) -> None:
    world, jobs, pods = of_two({"a": (2, 1), "b": (1, 2)})
    world.put(*suspended(*jobs), jobs[first], pods[first])
    world.tick()
    assert world.schedule(pods[first]) == {}
    world.put(jobs[1 - first], pods[1 - first])
    world.tick()
    assert len(world.schedule(*pods[:2])) == 2
    assert len(world.held) == 2


def test_pods_that_come_before_their_job_is_known_to_be_resumed_wait_for_that() -> None:
    world, jobs, pods = of_two()
    world.put(*suspended(*jobs), *pods[:2])
    world.tick()
    assert world.schedule(*pods[:2]) == {}
    assert world.held == {}
    world.put(jobs[0])
    world.tick()
    assert len(world.schedule(*pods[:2])) == 2


def test_jobs_that_are_done_before_a_job_set_is_suspended_do_not_start_the_others() -> None:
    """The first is done, and one of the next two: the last one has a turn of its own."""
    world, jobs, pods = of_two()
    first, second = (
        msgspec.structs.replace(each, is_finished=True, completions=each.pods, succeeded=each.pods)
        for each in jobs[:2]
    )
    world.put(first, second, *suspended(jobs[2]), pods[3])
    world.tick()
    assert world.schedule(pods[3]) == {}
    world.put(jobs[2])
    world.tick()
    assert len(world.schedule(pods[3])) == 1


def test_without_an_order_the_jobs_of_a_job_set_are_resumed_at_once_and_all_awaited() -> None:
    world, jobs, pods = of_two()
    whole = world.engine.objects.by_uid["uid-JobSet-js"]
    world.put(msgspec.structs.replace(whole, is_gradual=False))
    world.put(jobs[0], *suspended(*jobs[1:]), *pods[:2])
    world.tick()
    assert world.schedule(*pods[:2]) == {}
    world.put(*jobs[1:], *pods[2:])
    world.tick()
    assert len(world.schedule(*pods)) == 4


def test_the_places_of_a_job_set_that_its_user_suspends_are_free_once_its_pods_are_gone() -> None:
    world, jobs, pods = of_two()
    world.put(jobs[0], *pods[:2])
    world.tick()
    world.schedule(*pods[:2])
    world.put(*suspended(*jobs))
    world.tick()
    world.delete(*pods[:2])
    world.tick()
    assert world.held == {}


def with_limits_alone(kind: str) -> WorkloadRecord:
    its = template(limits={GPU: 8})
    match kind:
        case "JobSet":
            return read(decode_job_set, in_order(limits={GPU: 8}))
        case "LeaderWorkerSet":
            pods = {"size": 4, "leaderTemplate": its, "workerTemplate": its}
            said = {"startupPolicy": "LeaderReady", "leaderWorkerTemplate": pods}
            return read(decode_leader_worker_set, said)
        case _:
            parts = {"Launcher": {"template": its}, "Worker": {"replicas": 2, "template": its}}
            said = {"launcherCreationPolicy": "WaitForWorkersReady", "mpiReplicaSpecs": parts}
            return read(partial(decode_training_job, kind="MPIJob"), said)


@pytest.mark.parametrize("kind", ["JobSet", "LeaderWorkerSet", "MPIJob"])
def test_pods_that_come_later_request_what_they_are_limited_to(kind: str) -> None:
    """As every pod does once it is stored; GPUs are mostly said so. Templates have no defaults."""
    later = [each.like for each in with_limits_alone(kind).templates if each.like is not None]
    assert later
    assert all((GPU, 8) in each.request for each in later)


@pytest.mark.parametrize(
    ("action", "restarts", "ends"),
    [
        pytest.param("FailJobSet", 3, True, id="fails_at_once"),
        pytest.param("RestartJobSetAndIgnoreMaxRestarts", 0, False, id="restarts_for_ever"),
    ],
)
def test_rules_say_whether_a_job_set_survives_a_job_that_fails(
    action: str, restarts: int, ends: bool
) -> None:
    """Source: jobset v0.12 pkg/controllers/failure_policy.go."""
    said = {**in_order(), "failurePolicy": {"maxRestarts": restarts, "rules": [{"action": action}]}}
    whole = read(decode_job_set, said)
    of_it = read(decode_job, {"parallelism": 8, "backoffLimit": 0})
    assert (failure_limit_of(of_it, whole) is not None) is ends


FAILS, RESTARTS, ALWAYS = "FailJobSet", "RestartJobSet", "RestartJobSetAndIgnoreMaxRestarts"


def rule(action: str, **on: Any) -> Thing:
    return {"action": action, **on}


@pytest.mark.parametrize(
    ("rules", "restarts", "lives_on"),
    [
        pytest.param([], 1, True, id="restarts_without_a_rule"),
        pytest.param([], 0, False, id="fails_without_a_restart"),
        pytest.param([rule(RESTARTS)], 1, True, id="restarts"),
        pytest.param([rule(RESTARTS)], 0, False, id="restarts_no_more"),
        pytest.param([rule("RestartJob")], 1, True, id="restarts_the_job"),
        pytest.param([rule("RestartJobAndIgnoreMaxRestarts")], 0, True, id="the_job_for_ever"),
        pytest.param([rule(FAILS), rule(ALWAYS)], 3, False, id="the_first_rule_counts"),
        pytest.param([None, rule(ALWAYS), rule(FAILS)], 0, True, id="whichever_it_is"),
        pytest.param([rule("Later")], 3, False, id="an_action_that_is_not_known"),
        pytest.param(
            [rule(FAILS, onJobFailureReasons=["PodFailurePolicy"])], 3, True, id="other_reason"
        ),
        pytest.param(
            [rule(FAILS, onJobFailureReasons=["DeadlineExceeded", "BackoffLimitExceeded"])], 3,
            False, id="its_reason",
        ),
        pytest.param([rule(FAILS, targetReplicatedJobs=["b"])], 3, True, id="other_part"),
        pytest.param([rule(FAILS, targetReplicatedJobs=["c", "a"])], 3, False, id="its_part"),
        pytest.param([rule(FAILS, targetReplicatedJobs=["c"])], 3, True, id="no_such_part"),
        pytest.param(
            [rule(FAILS, onJobFailureMessagePatterns=["x"]), rule(ALWAYS)], 3, False,
            id="it_may_fail",
        ),
        pytest.param(
            [rule(ALWAYS, onJobFailureMessagePatterns=["x"]), rule(FAILS)], 3, False,
            id="it_may_not_restart",
        ),
        pytest.param(
            [rule(ALWAYS, onJobFailureMessagePatterns=["x"])], 3, True, id="it_restarts_anyway"
        ),
    ],
)  # fmt: skip
def test_the_first_rule_of_a_job_that_fails_says_what_becomes_of_its_job_set(
    rules: list[Thing | None], restarts: int, lives_on: bool
) -> None:
    """Alike where victims are chosen among its gang, and among pods of its Jobs that are in none.

    Source: jobset v0.12 pkg/controllers/failure_policy.go, findFirstFailedPolicyRuleAndJob.
    """
    said = {**in_order(), "failurePolicy": {"maxRestarts": restarts, "rules": rules}}
    whole = read(decode_job_set, said, name="js", uid="uid-JobSet-js")
    jobs, pods = job_set("js", {"a": (1, 2), "b": (1, 2)}, RACK)
    of_a = msgspec.structs.replace(
        jobs[0], failures_left=0, failure_reasons=("BackoffLimitExceeded",)
    )
    assert (failure_limit_of(of_a, whole) is None) is lives_on
    found = spec_of(claim_of(pods[0]).gang, whole, of_a, jobs[1])
    assert (found.lifecycle.failures is None) is lives_on


def test_a_job_that_may_fail_for_two_reasons_lives_on_if_it_does_with_either() -> None:
    rules = [rule(FAILS, onJobFailureReasons=["MaxFailedIndexesExceeded"])]
    said = {**in_order(), "failurePolicy": {"maxRestarts": 1, "rules": rules}}
    whole = read(decode_job_set, said)
    per_index = {"parallelism": 4, "backoffLimitPerIndex": 0}
    assert failure_limit_of(read(decode_job, per_index), whole) is None
    bounded = read(decode_job, {**per_index, "maxFailedIndexes": 1})
    assert failure_limit_of(bounded, whole) is not None


def test_of_more_rules_than_any_real_job_set_has_none_is_trusted() -> None:
    names = [f"p{at}" for at in range(100)]
    parts = [{"name": each} for each in names]
    rules = [rule(ALWAYS, targetReplicatedJobs=[each]) for each in (names[0], *names)]
    said = {"replicatedJobs": parts, "failurePolicy": {"maxRestarts": 1, "rules": rules}}
    found = read(decode_job_set, said).failure_rules
    assert len(found) == MOST_RULES
    assert [each.parts for each in found[:2]] == [("p0",), ("p1",)], "each once"
    assert found[-1] == FailureRule("fails")


def test_restarts_that_do_not_count_leave_a_job_set_as_many_as_before() -> None:
    said = {**in_order(), "failurePolicy": {"maxRestarts": 3}}
    found = read(decode_job_set, said, {"restarts": 5, "restartsCountTowardsMax": 1})
    assert found.restarts_left == 2


def orphaned(jobs: list[WorkloadRecord]) -> list[WorkloadRecord]:
    return [msgspec.structs.replace(each, owner=None) for each in jobs]


def test_jobs_that_outlive_their_job_set_keep_their_pods_together() -> None:
    """kubectl delete jobset --cascade=orphan: the Jobs go on, and make their pods anew."""
    world = World(four_racks())
    jobs, pods = job_set("js", {"a": (1, 2), "b": (1, 2)}, RACK)
    world.put(*orphaned(jobs), *pods)
    world.tick()
    assert len(world.schedule(*pods)) == 4


def outlived() -> tuple[World, list[WorkloadRecord], list[PodRecord]]:
    """A world where a JobSet in order has started, and its Jobs go on without it."""
    world, jobs, pods = of_two()
    world.put(jobs[0], *pods[:2])
    world.tick()
    world.schedule(*pods[:2])
    whole = world.engine.objects.by_uid["uid-JobSet-js"]
    world.put(*orphaned(jobs[:1]))
    world.delete(whole)
    world.tick()
    return world, jobs, pods


def test_no_other_jobs_are_made_once_a_job_set_is_outlived() -> None:
    world, _, pods = outlived()
    assert world.held == {}, "for no pod to come"
    world.delete(*(world.pods[each.uid] for each in pods[:2]))
    world.put(*(again(each) for each in pods[:2]))
    world.tick()
    assert len(world.schedule(*world.pods.values())) == 2


def test_a_job_that_nobody_resumes_is_not_awaited_once_its_job_set_is_outlived() -> None:
    world, jobs, pods = outlived()
    world.put(*suspended(*orphaned(jobs[1:])))
    world.delete(*(world.pods[each.uid] for each in pods[:2]))
    world.put(*(again(each) for each in pods[:2]))
    world.tick()
    assert len(world.schedule(*world.pods.values())) == 2
    world.put(*orphaned(jobs[1:]), *pods[2:])
    world.tick()
    assert len(world.schedule(*world.pods.values())) == 4, "resumed by hand they join it"


def test_a_job_that_is_deleted_by_hand_is_not_awaited_either() -> None:
    world = World(four_racks())
    jobs, pods = job_set("js", {"a": (1, 2), "b": (1, 2)}, RACK)
    world.put(*orphaned(jobs), *pods[:2])
    world.tick()
    assert world.schedule(*pods[:2]) == {}
    world.delete(jobs[1])
    world.tick()
    assert len(world.schedule(*pods[:2])) == 2


# -- LeaderWorkerSet -------------------------------------------------------------------------------


def groups(size: int, policy: str = "LeaderCreated", **more: Thing) -> World:
    """A world with a LeaderWorkerSet of two groups; `size` is the newest one."""
    world = World(
        four_racks(),
        kinds=("Topology", "Job", "LeaderWorkerSet", "Node", "Pod"),
        delete_excess_pods=True,
    )
    its = template(requests={GPU: 8})
    made = {"size": size, "workerTemplate": its, **more}
    said = {"replicas": 2, "startupPolicy": policy, "leaderWorkerTemplate": made}
    whole = read(decode_leader_worker_set, said, name="lw")
    world.apply(Listed("LeaderWorkerSet", (whole,)))
    return world


def again(each: PodRecord, size: int | None = None) -> PodRecord:
    """The pod that is made instead, in a group of this size."""
    said = {**each.annotations, f"{LWS}size": str(size)} if size else each.annotations
    return msgspec.structs.replace(each, uid=f"{each.uid}-2", annotations=said)


@pytest.mark.parametrize("newest", [1, 4])
@pytest.mark.parametrize("leader", [{}, {"leaderTemplate": template(requests={GPU: 8})}])
def test_a_group_of_the_revision_before_is_as_large_as_its_workers_say(
    newest: int, leader: Thing
) -> None:
    """`size` may change; a group that the rolling update has not come to stays as it was."""
    world = groups(newest, **leader)
    pods = group_pods("lw", 0, 2, RACK)
    world.put(*pods)
    world.tick()
    assert len(world.schedule(*pods)) == 2
    assert world.told(Delete) == []
    assert spec_at(world).where == f"annotation {LWS}size"


def spec_at(world: World) -> GangSpec:
    spec = world.gang().membership.spec
    assert spec is not None
    return spec


def test_a_pod_of_a_group_that_is_larger_than_the_newest_is_made_anew() -> None:
    world = groups(2)
    pods = group_pods("lw", 0, 4, RACK)
    world.put(*pods)
    world.tick()
    world.schedule(*pods)
    world.delete(world.pods[pods[3].uid])
    world.put(again(pods[3]))
    world.tick()
    assert world.schedule(again(pods[3])) != {}
    assert world.told(Delete) == []


@pytest.mark.parametrize(("before", "newest"), [(2, 4), (4, 2), (4, 1)])
def test_a_leader_that_is_made_anew_has_as_many_workers_as_the_newest_size_says(
    before: int, newest: int
) -> None:
    """It says what its revision did.

    Source: lws v0.9 pkg/controllers/pod_controller.go, constructWorkerStatefulSetApplyConfiguration
    reads `size` of the LeaderWorkerSet, and only the template of the leader's revision.
    """
    world = groups(newest)
    leader, *_ = group_pods("lw", 0, before, RACK)
    world.put(leader)
    world.tick()
    assert (world.held == {}) is (newest > 1)
    world.put(*group_pods("lw", 0, newest, RACK)[1:])
    world.tick()
    assert len(world.schedule(*world.pods.values())) == newest
    assert world.told(Delete) == []


@pytest.mark.parametrize(
    ("before", "after", "is_terminating"), [(2, 4, False), (2, 4, True), (4, 2, True)]
)
def test_workers_that_are_made_while_those_before_them_end_say_how_large_the_group_is(
    before: int, after: int, is_terminating: bool
) -> None:
    """What owns those is deleted first, and they after it."""
    world = groups(after)
    pods = group_pods("lw", 0, before, RACK)
    world.put(*pods)
    world.tick()
    world.schedule(*pods)
    world.delete(*pods[:-1])
    ending = world.pods[pods[-1].uid]
    world.put(msgspec.structs.replace(ending, is_terminating=is_terminating))
    # They have their names once those are gone; any other one is there at once.
    made = [again(each) for each in group_pods("lw", 0, after, RACK) if each.name != ending.name]
    later = [msgspec.structs.replace(each, created="2026-01-02T00:00:00Z") for each in made]
    world.put(*later)
    world.tick()
    assert spec_at(world).pods == after
    world.delete(ending)
    world.put(*(again(each) for each in group_pods("lw", 0, after, RACK)))
    for _ in range(3):
        world.tick(5)
    assert len(world.schedule(*world.pods.values())) == after
    assert world.told(Delete) == []


@pytest.mark.parametrize(("newest", "fits"), [(4, True), (5, False)])
def test_a_leader_that_starts_alone_has_room_beside_it_for_the_workers_it_will_have(
    newest: int, fits: bool
) -> None:
    world = groups(newest, "LeaderReady")
    leader, *_ = group_pods("lw", 0, 2, RACK)
    world.put(leader)
    world.tick()
    assert len(world.held) == (newest if fits else 0)


def test_only_the_pods_of_templates_that_ask_count_in_a_group_of_the_revision_before() -> None:
    silent = {"spec": {"schedulerName": "default-scheduler", "containers": []}}
    world = groups(4, leaderTemplate=silent)
    _, *workers = group_pods("lw", 0, 3, RACK)
    world.put(*workers)
    world.tick()
    assert len(world.schedule(*workers)) == 2
    assert spec_at(world).pods == 2


# -- StatefulSet -----------------------------------------------------------------------------------


def test_ordinals_may_begin_anywhere() -> None:
    world = World(four_racks(), kinds=("Topology", "Job", "StatefulSet", "Node", "Pod"))
    said = {"replicas": 4, "podManagementPolicy": "Parallel", "ordinals": {"start": 5}}
    world.apply(Listed("StatefulSet", (read(decode_stateful_set, said),)))
    owner = Owner("apps/v1", "StatefulSet", "w", "uid-w")
    for at in range(5, 9):
        labels = {POD_INDEX: str(at)}
        world.put(pod(f"w-{at}", owner=owner, labels=labels, annotations={REQUIRED: RACK}))
    world.tick()
    assert world.reports == []


def started_at(start: int, pods: int, **more: Any) -> tuple[World, list[PodRecord]]:
    """A world with StatefulSet `w`, and its pods, which do not exist yet; two go on a node."""
    world = World(four_racks(), kinds=("Topology", "Job", "StatefulSet", "Node", "Pod"))
    said = {"replicas": pods, "ordinals": {"start": start}, **more}
    world.apply(Listed("StatefulSet", (read(decode_stateful_set, said),)))
    owner, asks = Owner("apps/v1", "StatefulSet", "w", "uid-w"), {REQUIRED: BLOCK}
    return world, [
        pod(f"w-{at}", gpus=4, owner=owner, labels={POD_INDEX: str(at)}, annotations=asks)
        for at in range(start, start + pods)
    ]


def test_pods_in_turn_have_their_places_by_ordinals_that_begin_later() -> None:
    world, pods = started_at(5, 4)
    for each in pods:
        world.put(each)
        world.tick()
        world.schedule(each)
        assert sorted(
            place.member.index.index
            for place in world.gang().placeholders.values()
            if place.member.index is not None
        ) == list(range(int(each.name[2:]) + 1, 9))
    assert two_by_two(world.schedule(*pods), pods)
    assert world.reports == []


def test_a_number_below_the_first_ordinal_is_told() -> None:
    """While the controller moves a StatefulSet's pods to other ordinals both are there."""
    world, pods = started_at(5, 4, podManagementPolicy="Parallel")
    world.put(msgspec.structs.replace(pods[0], labels={POD_INDEX: "4"}), *pods[1:])
    world.tick()
    (report,) = world.reports
    assert "pod w-5 has index 4, its 4 pods count from 5" in str(report)


def test_an_offset_that_says_the_same_as_the_ordinals_counts_once() -> None:
    world, pods = started_at(5, 4, podManagementPolicy="Parallel")
    said = {REQUIRED: BLOCK, "kueue.x-k8s.io/pod-index-offset": "5"}
    pods = [msgspec.structs.replace(each, annotations=said) for each in pods]
    world.put(*pods)
    world.tick()
    assert two_by_two(world.schedule(*pods), pods)
    assert world.reports == []


# -- Kubeflow --------------------------------------------------------------------------------------


def training(evaluators: int, workers: int) -> WorkloadRecord:
    """A job of four workers, and an evaluator of another scheduler; so many of them are done."""
    templates = (
        Template("Evaluator", 1, {}, scheduler="default-scheduler", succeeded=evaluators),
        Template("Worker", 4, {REQUIRED: RACK}, scheduler="corral", succeeded=workers),
    )
    return workload("TFJob", "t", {}, templates=templates)


@pytest.mark.parametrize(
    ("evaluators", "workers", "left"), [(1, 0, 4), (1, 1, 3), (0, 1, 3), (0, 9, 0)]
)
def test_a_pod_of_another_scheduler_that_has_succeeded_is_none_of_the_gang(
    evaluators: int, workers: int, left: int
) -> None:
    """A worker that is made anew would be one too many."""
    record = training(evaluators, workers)
    claim: Claim = claim_of(training_pods("TFJob", "t", {"Worker": 4}, RACK)[0])
    assert spec_of(claim.gang, record).pods == left


def test_a_worker_is_made_anew_though_a_pod_that_is_no_member_has_succeeded() -> None:
    world = World(four_racks(), kinds=("Topology", "Job", "TFJob", "Node", "Pod"))
    world.apply(Listed("TFJob", (training(0, 0),)))
    pods = training_pods("TFJob", "t", {"Worker": 4}, RACK)
    world.put(*pods)
    world.tick()
    world.schedule(*pods)
    world.put(training(1, 0))
    world.delete(world.pods[pods[3].uid])
    world.put(again(pods[3]))
    world.tick()
    assert len(world.schedule(again(pods[3]))) == 1


def test_an_mpi_job_that_says_no_number_has_no_workers() -> None:
    """Its operator fills that in for itself alone, and never stores it.

    Source: mpi-operator v0.7 pkg/apis/kubeflow/v2beta1/default.go, setDefaultsTypeWorker.
    """
    parts = {name: {"template": template(requests={GPU: 8})} for name in ("Launcher", "Worker")}
    spec = {"mpiReplicaSpecs": parts}
    assert read(partial(decode_training_job, kind="MPIJob"), spec).pods == 1


@pytest.mark.parametrize("kind", [kind for kind in FIELDS if kind != "MPIJob"])
def test_a_job_of_the_training_operator_that_says_no_number_has_one_of_each(kind: str) -> None:
    """Source: training-operator v1.9 pkg/apis/kubeflow.org/v1, setDefaultReplicas of each kind."""
    spec = {f"{FIELDS[kind][0]}ReplicaSpecs": {"Worker": {"template": template(requests={GPU: 8})}}}
    assert read(partial(decode_training_job, kind=kind), spec).pods == 1
