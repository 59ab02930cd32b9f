"""Rank i on the planned node, whatever made the pods, through the real API server and scheduler.

The Job controller is real. JobSet, LeaderWorkerSet and StatefulSet have none here: what theirs
would create is created as they write it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.cluster import BLOCK, GPU, Cluster, Object, Refused, collection, grid, job, pod
from tests.controlplane.plane import ControlPlane
from tests.controlplane.seen import START_SECONDS
from tests.corral_process import CorralProcess
from tests.workloads import asking

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

PODS = 8
HALF_A_NODE = {GPU: 4}
IN_BLOCK = asking(required=BLOCK)
# Two pods to a node, in the order of the tree: what `grid` makes of 2 racks of 2 nodes.
PLANNED = [f"b0-r{rack}-n{place}" for rack in (0, 1) for place in (0, 1) for _ in (0, 1)]

JOB_SET = "jobset.x-k8s.io/v1alpha2"
LEADER_WORKER_SET = "leaderworkerset.x-k8s.io/v1"
LWS = "leaderworkerset.sigs.k8s.io/"


@pytest.fixture
def served(plane: ControlPlane, cluster: Cluster, tmp_path: Path) -> Iterator[Cluster]:
    """A cluster whose API knows JobSets and LeaderWorkerSets, with Corral at work in it."""
    kinds = {"JobSet": JOB_SET, "LeaderWorkerSet": LEADER_WORKER_SET}
    for kind, version in kinds.items():
        cluster.create(definition(kind, version))
    for kind, version in kinds.items():
        cluster.wait(serves(cluster, kind, version), 10, f"{kind} is served")
    plane.nodes(grid(racks=2, nodes=2, gpus=8))
    with CorralProcess(plane.kubeconfig("corral"), tmp_path) as corral:
        plane.start_scheduler(extender=corral.url)
        yield cluster
    cluster.request("DELETE", collection("StatefulSet", "default", "apps/v1"))
    for kind, version in kinds.items():
        name = definition(kind, version)["metadata"]["name"]
        cluster.delete("CustomResourceDefinition", name)
        # Its objects go first, and until then there is no new one of that name.
        cluster.wait(is_gone(cluster, "CustomResourceDefinition", name), 10, f"{name} is gone")


def test_a_job_by_its_completion_indexes(served: Cluster) -> None:
    served.create(job("j", pods=PODS, requests=HALF_A_NODE, annotations=IN_BLOCK))
    assert nodes_by(served, index_of("batch.kubernetes.io/job-completion-index")) == PLANNED


def test_a_job_set_by_its_jobs_and_their_indexes(served: Cluster) -> None:
    owner = served.create(workload(JOB_SET, "JobSet", "js", {"replicatedJobs": []}))
    jobs = [child_of(owner, index, jobs=4, pods=2) for index in range(4)]
    for one in reversed(jobs):
        served.create(one)

    def rank(one: Object) -> int:
        labels = one["metadata"]["labels"]
        index = labels["batch.kubernetes.io/job-completion-index"]
        return 2 * int(labels["jobset.sigs.k8s.io/job-index"]) + int(index)

    assert nodes_by(served, rank) == PLANNED


def test_a_group_of_a_leader_worker_set_by_its_worker_indexes(served: Cluster) -> None:
    template = {"size": PODS, "workerTemplate": {"metadata": {"annotations": IN_BLOCK}}}
    spec = {"replicas": 1, "leaderWorkerTemplate": template}
    served.create(workload(LEADER_WORKER_SET, "LeaderWorkerSet", "lws", spec))
    for index in reversed(range(PODS)):
        labels = {
            f"{LWS}name": "lws",
            f"{LWS}group-index": "0",
            f"{LWS}worker-index": str(index),
        }
        annotations = {f"{LWS}size": str(PODS), **IN_BLOCK}
        name = f"lws-0-{index}" if index else "lws-0"
        served.create(pod(name, requests=HALF_A_NODE, labels=labels, annotations=annotations))
    assert nodes_by(served, index_of(f"{LWS}worker-index")) == PLANNED


@pytest.mark.parametrize("policy", ["Parallel", "OrderedReady"])
def test_a_stateful_set_by_its_ordinals(served: Cluster, policy: str) -> None:
    spec = {
        "replicas": PODS,
        "serviceName": "db",
        "podManagementPolicy": policy,
        "selector": {"matchLabels": {"app": "db"}},
        "template": {
            "metadata": {"labels": {"app": "db"}, "annotations": IN_BLOCK},
            "spec": {"containers": [{"name": "db", "image": "example.invalid/db"}]},
        },
    }
    owner = served.create(workload("apps/v1", "StatefulSet", "db", spec))
    is_ordered = policy == "OrderedReady"
    for index in range(PODS) if is_ordered else reversed(range(PODS)):
        labels = {"app": "db", "apps.kubernetes.io/pod-index": str(index)}
        one = pod(f"db-{index}", requests=HALF_A_NODE, labels=labels, annotations=IN_BLOCK)
        one["metadata"]["ownerReferences"] = [owned_by(owner)]
        served.create(one)
        if is_ordered:  # the next one is only made once this one runs
            served.wait(is_bound(served, f"db-{index}"), START_SECONDS, f"db-{index} runs")
    assert nodes_by(served, index_of("apps.kubernetes.io/pod-index")) == PLANNED


# -- what the controllers would write ----------------------------------------------------------


def child_of(job_set: Object, index: int, *, jobs: int, pods: int) -> Object:
    """Job `index` of a JobSet with one replicated Job."""
    prefix, metadata = "jobset.sigs.k8s.io/", job_set["metadata"]
    labels = {
        f"{prefix}jobset-name": metadata["name"],
        f"{prefix}jobset-uid": metadata["uid"],
        f"{prefix}restart-attempt": "0",
        f"{prefix}replicatedjob-name": "w",
        f"{prefix}replicatedjob-replicas": str(jobs),
        f"{prefix}global-replicas": str(jobs),
        f"{prefix}job-index": str(index),
    }
    name = f"{metadata['name']}-w-{index}"
    one = job(name, pods=pods, requests=HALF_A_NODE, labels=labels, annotations=IN_BLOCK)
    one["metadata"] |= {"labels": labels, "ownerReferences": [owned_by(job_set)]}
    return one


def owned_by(owner: Object) -> Object:
    return {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"],
        "controller": True,
    }


def workload(version: str, kind: str, name: str, spec: Object) -> Object:
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": version, "kind": kind, "metadata": metadata, "spec": spec}


def definition(kind: str, version: str) -> Object:
    """A CRD that takes whatever its objects say."""
    group, _, name = version.partition("/")
    plural = f"{kind.lower()}s"
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": f"{plural}.{group}",
            "annotations": {"api-approved.kubernetes.io": "unapproved, for a test"},
        },
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"kind": kind, "listKind": f"{kind}List", "plural": plural,
                      "singular": kind.lower()},
            "versions": [
                {"name": name, "served": True, "storage": True,
                 "schema": {"openAPIV3Schema": schema}},
            ],
        },
    }  # fmt: skip


# -- what is seen of it ------------------------------------------------------------------------


def serves(cluster: Cluster, kind: str, version: str) -> Callable[[], bool]:
    def answers() -> bool:
        try:
            cluster.request("GET", collection(kind, "default", version))
        except Refused:
            return False
        return True

    return answers


def is_gone(cluster: Cluster, kind: str, name: str) -> Callable[[], bool]:
    return lambda: cluster.get(kind, name) is None


def is_bound(cluster: Cluster, name: str) -> Callable[[], bool]:
    return lambda: name in cluster.bound()


def index_of(label: str) -> Callable[[Object], int]:
    return lambda one: int(one["metadata"]["labels"][label])


def nodes_by(cluster: Cluster, rank: Callable[[Object], int]) -> list[str]:
    """The nodes of all pods once they run, in the order of their ranks."""
    cluster.wait(lambda: len(cluster.bound()) == PODS, START_SECONDS, "the gang's start")
    return [one["spec"]["nodeName"] for one in sorted(cluster.list("Pod", "default"), key=rank)]
