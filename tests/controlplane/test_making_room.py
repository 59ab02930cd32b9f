"""With `preempt: on` the pods of lower priority go as a whole, and the gang that waits starts.

Nodes of 8 GPUs and pods of 8; `t` is a gang of four of priority 1000, which requires a rack. No
kubelet runs here: pods without a grace period are gone at once; others end when the test says so.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from tests.cluster import GPU, RACK, Cluster, Object, collection, grid, job, pod
from tests.controlplane import kubelet, node_faults
from tests.controlplane.plane import ControlPlane
from tests.controlplane.seen import START_SECONDS
from tests.controlplane.test_preemption import (
    QUIET_SECONDS,
    SECONDS,
    URGENT,
    classes,
    is_bound,
    live,
    start,
    urgent,
)
from tests.controlplane.test_preemption_scenarios import begin, protect
from tests.controlplane.test_room import TOLD_SECONDS, labelled, told, train
from tests.corral_process import CorralProcess, scheduled
from tests.workloads import asking

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.usefixtures("classes", "corral")]

__all__ = ["classes"]
MADE_SECONDS = TOLD_SECONDS + 15  # until all that goes is gone, and the gang has begun
SOON = {"preempt": "on", "bare_victims": True, "preempt_after_seconds": 1}
FIRST, SECOND = (tuple(f"b0-r{rack}-n{place}" for place in range(4)) for rack in range(2))


@pytest.fixture
def corral(plane: ControlPlane, cluster: Cluster, tmp_path: Path) -> Iterator[CorralProcess]:
    """Pods without a controller may go, too: most of the tests' have none."""
    plane.nodes(grid(racks=2, nodes=4, gpus=8))
    with (
        plane.granted("corral-evict"),
        scheduled(plane, tmp_path, **SOON) as corral,
    ):
        yield corral
        assert corral.bugs() == {}
    cluster.delete_all("Job")


def singles(cluster: Cluster, *nodes: str, **spec: object) -> set[str]:
    """A pod of its own on each of these nodes."""
    for on in nodes:
        one = pod(f"single-{on}", requests={GPU: 8}, terminationGracePeriodSeconds=0, **spec)
        one["spec"]["nodeName"] = on
        cluster.create(one)
    return {f"single-{on}" for on in nodes}


def gone(cluster: Cluster, *names: str) -> None:
    """These pods have ended, as their kubelet confirms."""
    for name in names:
        path = f"{collection('Pod', 'default')}/{name}"
        cluster.request("DELETE", path, body={"gracePeriodSeconds": 0})


def started(cluster: Cluster, waiting: set[str]) -> bool:
    return waiting <= cluster.bound().keys()


def racks(cluster: Cluster, names: set[str]) -> set[str]:
    return {cluster.bound()[name].rpartition("-")[0] for name in names}


def test_four_single_pods_go_and_the_gang_beside_them_stays(cluster: Cluster) -> None:
    """7: of two racks the one where no gang is broken."""
    gang = start(cluster, "a", 4)
    (rack,) = racks(cluster, gang)
    others = SECOND if FIRST[0].startswith(rack) else FIRST
    singles(cluster, *others)
    waiting = train(cluster)
    cluster.wait(partial(started, cluster, waiting), MADE_SECONDS, "the gang in the freed rack")
    assert live(cluster, "a-") == gang
    assert live(cluster, "single-") == set()
    assert {cluster.bound()[name] for name in waiting} == set(others)


def test_the_smaller_gang_goes_whole_and_both_sides_are_told(cluster: Cluster) -> None:
    """8: two free nodes beside a gang of two, or a gang of four."""
    large = start(cluster, "b", 4)
    start(cluster, "a", 2)
    waiting = train(cluster)
    cluster.wait(partial(started, cluster, waiting), MADE_SECONDS, "the gang in the freed rack")
    assert live(cluster, "b-") == large
    assert live(cluster, "a-") == set()
    assert "evicts 2 pods of 1 gang: gang default/a (priority 0)" in told(cluster, "Preempting")
    assert "gang default/a (priority 0) gives way to gang default/t (priority 1000)" in told(
        cluster, "Preempted"
    )


def test_a_gang_that_its_budget_keeps_stays_and_two_smaller_ones_go(cluster: Cluster) -> None:
    """11."""
    kept = start(cluster, "a", 4, labelled)
    start(cluster, "b", 2)
    start(cluster, "c", 2)
    for name in kept:
        begin(cluster, name, "2026-01-01T00:00:00Z")
    protect(cluster, "kept", 1)
    waiting = train(cluster)
    cluster.wait(partial(started, cluster, waiting), MADE_SECONDS, "the gang in the freed rack")
    assert live(cluster, "a-") == kept
    assert live(cluster, "b-") | live(cluster, "c-") == set()


def test_where_budgets_keep_all_none_goes_and_they_are_named(cluster: Cluster) -> None:
    """11, without the other rack."""
    kept = start(cluster, "a", 4, labelled) | start(cluster, "b", 4, labelled)
    for name in kept:
        begin(cluster, name, "2026-01-01T00:00:00Z")
    protect(cluster, "kept", 1)
    train(cluster)
    said = told(cluster, "NoRoomByPreemption")
    assert said.endswith("that disruption budgets keep: default/kept")
    time.sleep(QUIET_SECONDS)
    assert live(cluster, "a-") | live(cluster, "b-") == kept


def test_the_room_of_pods_that_end_already_is_kept_and_no_other_pod_goes(cluster: Cluster) -> None:
    """12: a pod of lower priority that comes meanwhile does not get it."""
    ending = start(cluster, "a", 4, grace=300)
    stays = start(cluster, "b", 4)
    node_faults.begin_deletion(cluster, ending)
    waiting = train(cluster)
    told(cluster, "Preempting")
    one, *rest = sorted(ending)
    gone(cluster, one)
    late = pod("late", requests={GPU: 8}, terminationGracePeriodSeconds=0)
    cluster.create(late)
    time.sleep(QUIET_SECONDS)
    assert not is_bound(cluster, "late")
    gone(cluster, *rest)
    cluster.wait(partial(started, cluster, waiting), MADE_SECONDS, "the gang in the freed rack")
    assert live(cluster, "b-") == stays
    assert not is_bound(cluster, "late")


def test_a_job_that_makes_its_pods_anew_loses_them_once_and_comes_back_after(
    cluster: Cluster,
) -> None:
    """17, with the real Job controller; all other nodes are of the gang's own priority."""
    singles(cluster, *FIRST[:2], *SECOND, priorityClassName=URGENT)
    cluster.create(a_job("a", 2))
    cluster.wait(lambda: len(cluster.bound()) == 8, START_SECONDS, "the Job's start")
    before = live(cluster, "a-")
    waiting = train(cluster, pods=2)
    cluster.wait(partial(started, cluster, waiting), MADE_SECONDS, "the gang in the Job's place")
    # After two failed pods the Job controller waits for 20 s.
    cluster.wait(lambda: live(cluster, "a-") - before, 60, "the Job's next pods")
    time.sleep(QUIET_SECONDS)
    assert started(cluster, waiting), "no pod of the Job takes it back"
    for name in waiting:
        cluster.delete("Pod", name)
    again = partial(live, cluster, "a-")
    cluster.wait(lambda: again() <= cluster.bound().keys(), 90, "the Job, with room again")


def a_job(name: str, pods: int, backoff_limit: int = 20) -> Object:
    made = job(name, pods=pods, requests={GPU: 8}, annotations=asking(required=RACK))
    made["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] = 0
    made["spec"]["backoffLimit"] = backoff_limit
    return made


def test_a_job_that_would_fail_for_good_is_the_last_choice(cluster: Cluster) -> None:
    """19: two gangs of two go instead, though they are one more."""
    cluster.create(a_job("a", 4, backoff_limit=2))
    cluster.wait(lambda: len(cluster.bound()) == 4, START_SECONDS, "the Job's start")
    stays = live(cluster, "a-")
    start(cluster, "b", 2)
    start(cluster, "c", 2)
    waiting = train(cluster)
    cluster.wait(partial(started, cluster, waiting), MADE_SECONDS, "the gang in the freed rack")
    assert live(cluster, "a-") == stays
    assert live(cluster, "b-") | live(cluster, "c-") == set()


def test_where_only_a_job_is_left_that_would_fail_for_good_it_goes_and_that_is_said(
    cluster: Cluster,
) -> None:
    """19, with nobody else who may go."""
    singles(cluster, *SECOND, priorityClassName=URGENT)
    cluster.create(a_job("a", 4, backoff_limit=2))
    cluster.wait(lambda: len(cluster.bound()) == 8, START_SECONDS, "the Job's start")
    waiting = train(cluster)
    cluster.wait(partial(started, cluster, waiting), MADE_SECONDS, "the gang in the Job's rack")
    assert "would count its pods as failed and give up" in told(cluster, "Preempting")
    assert len(live(cluster, "single-")) == 4


def test_a_gang_that_goes_away_keeps_no_room_and_no_further_pod_goes(cluster: Cluster) -> None:
    """15: what ends is gone, what is free is anybody's."""
    gang = start(cluster, "a", 4, grace=300) | start(cluster, "b", 4, grace=300)
    waiting = train(cluster)
    cluster.wait(lambda: len(live(cluster, "a-") | live(cluster, "b-")) == 4, MADE_SECONDS, "some")
    for name in waiting:
        cluster.delete("Pod", name)
    kubelet.end_deleted_pods(cluster)
    late = pod("late", requests={GPU: 8}, terminationGracePeriodSeconds=0)
    cluster.create(late)
    cluster.wait(partial(is_bound, cluster, "late"), SECONDS, "a pod on what is free")
    time.sleep(QUIET_SECONDS)
    assert len(live(cluster, "a-") | live(cluster, "b-")) == len(gang) - 4


def test_a_pod_of_higher_priority_takes_freed_room_and_one_more_pod_goes(
    cluster: Cluster, plane: ControlPlane
) -> None:
    """16: rack r0 has a gang of two, a pod of its own, and a node free."""
    cluster.create(
        {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": "above"},
            "value": 2000,
        }
    )
    try:
        singles(cluster, *SECOND, priorityClassName=URGENT)
        start(cluster, "a", 2, grace=300)
        free = sorted(set(FIRST) - set(cluster.bound().values()))
        singles(cluster, free[0])
        waiting = train(cluster)
        cluster.wait(lambda: not live(cluster, "a-"), MADE_SECONDS, "the eviction of the gang")
        hp = urgent("hp")
        hp["spec"]["priorityClassName"] = "above"
        cluster.create(hp)
        cluster.wait(partial(is_bound, cluster, "hp"), SECONDS, "the pod of higher priority")
        kubelet.end_deleted_pods(cluster)
        told(cluster, "RoomNotMade")
        assert waiting.isdisjoint(cluster.bound()), "its rack has three nodes left"
        cluster.delete("Pod", "hp")
        cluster.wait(partial(started, cluster, waiting), 2 * MADE_SECONDS, "the gang at last")
        assert len(live(cluster, "single-")) == 4
    finally:
        cluster.delete("PriorityClass", "above")


def test_after_two_thefts_no_pod_goes_there_for_a_while(cluster: Cluster) -> None:
    """26: pods of another scheduler are bound to what was freed, twice."""
    singles(cluster, *SECOND, priorityClassName=URGENT)
    start(cluster, "a", 4, grace=300)
    train(cluster)
    victims = "a-"
    for number in (1, 2):
        cluster.wait(partial(lambda own: not live(cluster, own), victims), MADE_SECONDS, "eviction")
        victims = f"thief{number}-"
        for on in FIRST:  # before the others are gone: the gang starts within a moment of that
            one = pod(f"{victims}{on}", requests={GPU: 8}, terminationGracePeriodSeconds=300)
            one["spec"] |= {"schedulerName": "another", "nodeName": on}
            cluster.create(one)
        kubelet.end_deleted_pods(cluster)
        cluster.wait(
            partial(
                lambda own: any(
                    each.get("reason") == "RoomNotMade" and own in each["message"]
                    for each in cluster.list("Event", "default")
                ),
                victims,
            ),
            SECONDS,
            "the word that it was taken",
        )
    time.sleep(3 * QUIET_SECONDS)
    assert live(cluster, victims) == {f"{victims}{on}" for on in FIRST}


def test_what_explain_says_is_what_goes_once_it_is_on(
    cluster: Cluster, corral: CorralProcess
) -> None:
    """Rack r0 has a gang of two, a pod of its own and a free node; the other one a gang of four."""
    corral.restart_with(preempt="explain")
    stays = start(cluster, "b", 4)
    (rack,) = racks(cluster, stays)
    other = FIRST if SECOND[0].startswith(rack) else SECOND
    start(cluster, "a", 2)
    free = sorted(set(other) - set(cluster.bound().values()))
    (alone,) = singles(cluster, free[0])
    before = live(cluster, "")
    waiting = train(cluster)
    said = told(cluster, "RoomByPreemption")
    assert "if 3 pods, those of 1 gang among them, went, and none is evicted" in said
    named = said.rpartition("preempt is explain: ")[2]
    assert named == f"gang default/a (priority 0), pod default/{alone} (priority 0)"
    time.sleep(QUIET_SECONDS)
    assert live(cluster, "") == before | waiting, "nothing is evicted"
    corral.restart_with(preempt="on")
    cluster.wait(partial(started, cluster, waiting), MADE_SECONDS, "the gang in the freed rack")
    assert told(cluster, "Preempting").endswith(f": {named}")
    time.sleep(QUIET_SECONDS)
    assert before - live(cluster, "") == {"a-0", "a-1", alone}


def test_a_corral_that_is_killed_while_pods_end_finds_the_same_place_and_no_other_victim(
    cluster: Cluster, corral: CorralProcess
) -> None:
    start(cluster, "a", 4, grace=300)
    start(cluster, "b", 4, grace=300)
    waiting = train(cluster)
    cluster.wait(lambda: len(live(cluster, "a-") | live(cluster, "b-")) == 4, MADE_SECONDS, "some")
    stays = live(cluster, "a-") | live(cluster, "b-")
    corral.kill()
    corral.start()
    time.sleep(QUIET_SECONDS)
    kubelet.end_deleted_pods(cluster)
    cluster.wait(partial(started, cluster, waiting), MADE_SECONDS, "the gang in the freed rack")
    assert live(cluster, "a-") | live(cluster, "b-") == stays
