"""Rank i on the planned node, whatever made the pods, through the real API server and scheduler.

All controllers are real: Kubernetes' own, JobSet's and LeaderWorkerSet's.
"""

from __future__ import annotations

import pytest

from tests.cluster import (
    BLOCK,
    GPU,
    RACK,
    Cluster,
    Object,
    Objects,
    grid,
    job,
    node,
)
from tests.controlplane import kinds
from tests.controlplane.kubelet import start_bound_pods
from tests.controlplane.plane import ControlPlane
from tests.controlplane.seen import START_SECONDS, unschedulable
from tests.corral_process import CorralProcess
from tests.workloads import asking

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

PODS = 8
HALF_A_NODE = {GPU: "4"}
IN_BLOCK = asking(required=BLOCK)
IN_RACK = asking(required=RACK)
# Two pods to a node, in the order of the tree: what `grid` makes of 2 racks of 2 nodes.
PLANNED = [f"b0-r{rack}-n{place}" for rack in (0, 1) for place in (0, 1) for _ in (0, 1)]

COMPLETION_INDEX = "batch.kubernetes.io/job-completion-index"
JOB_INDEX = "jobset.sigs.k8s.io/job-index"
REPLICATED_JOB = "jobset.sigs.k8s.io/replicatedjob-name"
GROUP_INDEX = "leaderworkerset.sigs.k8s.io/group-index"
WORKER_INDEX = "leaderworkerset.sigs.k8s.io/worker-index"
POD_INDEX = "apps.kubernetes.io/pod-index"


@pytest.fixture
def served(plane: ControlPlane, job_sets: None, corral: CorralProcess, cluster: Cluster) -> Cluster:
    """A cluster of two racks with Corral at work in it."""
    plane.nodes(grid(racks=2, nodes=2, gpus=8))
    return cluster


def test_a_job_by_its_completion_indexes(served: Cluster) -> None:
    served.create(job("j", pods=PODS, requests=HALF_A_NODE, annotations=IN_BLOCK))
    assert nodes_by(COMPLETION_INDEX, pods=run(served, pods=PODS)) == PLANNED


def test_a_job_set_by_its_jobs_and_their_indexes(served: Cluster) -> None:
    served.create(kinds.job_set("js", IN_BLOCK, HALF_A_NODE, driver=IN_BLOCK))
    pods = run(served, pods=1 + PODS)
    assert nodes_by(JOB_INDEX, COMPLETION_INDEX, pods=workers_of(pods)) == PLANNED


def test_the_jobs_a_job_set_makes_later_are_in_the_rack_of_those_that_run(
    served: Cluster,
) -> None:
    thing = kinds.job_set("js", IN_RACK, HALF_A_NODE, driver=IN_RACK, jobs=2, order="InOrder")
    served.create(thing)
    pods = run(served, pods=1 + PODS // 2)
    assert len(workers_of(pods)) == PODS // 2
    assert len({one["spec"]["nodeName"].rsplit("-", 1)[0] for one in pods}) == 1


def test_the_first_job_of_a_job_set_in_order_waits_until_the_others_fit_too(
    served: Cluster,
) -> None:
    # Each of the racks has room for the driver and for four of the eight workers.
    thing = kinds.job_set(
        "js", IN_RACK, HALF_A_NODE, driver=IN_RACK, jobs=1, pods=PODS, order="InOrder"
    )
    served.create(thing)
    driver = "js-driver-0-"

    def refusal() -> str:
        return next((why for name, why in unschedulable(served).items() if driver in name), "")

    served.wait(lambda: "cannot be placed" in refusal(), START_SECONDS, "a verdict")
    served.create(node("b0-r0-more-0", labels={BLOCK: "b0", RACK: "b0-r0"}, gpus=8))
    served.create(node("b0-r0-more-1", labels={BLOCK: "b0", RACK: "b0-r0"}, gpus=8))
    pods = run(served, pods=1 + PODS)
    assert {one["spec"]["nodeName"].split("-")[1] for one in workers_of(pods)} == {"r0"}


@pytest.mark.parametrize(
    ("startup", "leader"),
    [
        pytest.param("LeaderCreated", None, id="made_at_once"),
        pytest.param("LeaderCreated", IN_RACK, id="of_two_templates"),
        # A leader that runs before its workers exist reserves their places.
        pytest.param("LeaderReady", None, id="leader_first"),
        pytest.param("LeaderReady", IN_RACK, id="leader_first_of_two_templates"),
    ],
)
def test_each_group_of_a_leader_worker_set_by_its_worker_indexes(
    served: Cluster, startup: str, leader: dict[str, str] | None
) -> None:
    thing = kinds.leader_worker_set(
        "lws", IN_RACK, HALF_A_NODE, groups=2, size=PODS // 2, leader=leader, startup=startup
    )
    served.create(thing)
    pods = run(served, pods=PODS)
    seen = [
        nodes_by(WORKER_INDEX, pods=[one for one in pods if index_of(GROUP_INDEX, one) == group])
        for group in (0, 1)
    ]
    # Which group has which rack is decided by whose pods come first.
    assert sorted(seen) == [PLANNED[: PODS // 2], PLANNED[PODS // 2 :]]


@pytest.mark.parametrize("policy", ["Parallel", "OrderedReady"])
def test_a_stateful_set_by_its_ordinals(served: Cluster, policy: str) -> None:
    served.create(kinds.stateful_set("db", PODS, IN_BLOCK, HALF_A_NODE, policy=policy))
    assert nodes_by(POD_INDEX, pods=run(served, pods=PODS)) == PLANNED


# -- what is seen of it ------------------------------------------------------------------------


def run(cluster: Cluster, *, pods: int) -> Objects:
    """All pods once that many run; until then each bound one is started."""

    def all_run() -> bool:
        start_bound_pods(cluster)
        return len(cluster.bound()) == pods

    cluster.wait(all_run, START_SECONDS, f"{pods} bindings")
    return cluster.list("Pod", "default")


def workers_of(pods: Objects) -> Objects:
    """Those of the replicated Job `w`."""
    return [one for one in pods if one["metadata"]["labels"][REPLICATED_JOB] == "w"]


def index_of(label: str, pod: Object) -> int:
    return int(pod["metadata"]["labels"][label])


def nodes_by(*labels: str, pods: Objects) -> list[str]:
    """The nodes of the pods, in the order of those labels' numbers."""
    ordered = sorted(pods, key=lambda one: [index_of(label, one) for label in labels])
    return [one["spec"]["nodeName"] for one in ordered]
