"""What becomes of a vcjob after its start: it grows and shrinks, one task waits for another, and
pods fail. Volcano's controllers make and delete the pods; those that run stay where they are.

On the cluster of `volcano_cluster`: four HyperNodes of tier 1 with two nodes each.
"""

from __future__ import annotations

import pytest

from tests.app.dialects.volcano.workloads import network_topology, task, vcjob
from tests.cluster import GPU, STRATEGIC, Cluster, Object
from tests.controlplane.kubelet import start_bound_pods
from tests.controlplane.seen import START_SECONDS
from tests.controlplane.volcano import JOB
from tests.controlplane.volcano_cluster import LEAF_OF, SOON, SPINE_OF, bound, phase_of, uids

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.usefixtures("volcano_corral")]

JSON = "application/json-patch+json"
NODE = {GPU: 8}  # all of one


def runs(cluster: Cluster, made: Object, pods: int) -> dict[str, str]:
    """Create a vcjob and wait until so many of its pods run: uid -> node."""
    name = made["metadata"]["name"]
    cluster.create(made)
    cluster.wait(lambda: len(bound(cluster, name)) == pods, START_SECONDS, f"{name} starts")
    start_bound_pods(cluster)
    cluster.wait(lambda: phase_of(cluster, name) == "Running", SOON, f"{name} runs")
    return uids(cluster, name)


def resized(cluster: Cluster, name: str, replicas: int) -> dict[str, str]:
    """Give the first task so many pods, and wait until that many are bound: uid -> node."""
    change = [{"op": "replace", "path": "/spec/tasks/0/replicas", "value": replicas}]
    cluster.patch(JOB, name, change, content_type=JSON)
    cluster.wait(lambda: len(uids(cluster, name)) == replicas, START_SECONDS, f"{replicas} pods")
    start_bound_pods(cluster)
    return uids(cluster, name)


def test_a_vcjob_that_grows_and_shrinks_keeps_what_runs_in_its_hyper_node(
    cluster: Cluster,
) -> None:
    workers = task("worker", 2, min_available=2, requests=NODE)
    two = runs(cluster, vcjob("train", workers, networkTopology=network_topology(2)), 2)
    assert len({LEAF_OF[each] for each in two.values()}) == 1
    four = resized(cluster, "train", 4)
    assert two.items() <= four.items()
    assert len({SPINE_OF[LEAF_OF[each]] for each in four.values()}) == 1
    assert resized(cluster, "train", 2).items() <= four.items()


def test_a_task_that_waits_for_another_starts_beside_it(cluster: Cluster) -> None:
    made = vcjob(
        "train",
        task("master", 1, requests={GPU: 4}),
        task("worker", 3, requests={GPU: 4}, dependsOn={"name": ["master"]}),
        min_available=1,
        networkTopology=network_topology(1),
    )
    master = runs(cluster, made, 1)
    cluster.wait(lambda: len(uids(cluster, "train")) == 4, START_SECONDS, "the workers start")
    everyone = uids(cluster, "train")
    assert master.items() <= everyone.items()
    assert len({LEAF_OF[each] for each in everyone.values()}) == 1


@pytest.mark.parametrize(
    ("action", "stay"),
    [
        pytest.param("RestartJob", 0, id="all_are_made_anew"),
        pytest.param("RestartPod", 1, id="one_is_made_anew"),
    ],
)
def test_a_vcjob_of_which_a_pod_fails_starts_again_in_one_hyper_node(
    cluster: Cluster, action: str, stay: int
) -> None:
    workers = task("worker", 2, requests=NODE)
    made = vcjob(
        "train",
        workers,
        networkTopology=network_topology(1),
        policies=[{"event": "PodFailed", "action": action}],
    )
    before = runs(cluster, made, 2)
    failed = {"status": {"phase": "Failed"}}
    cluster.patch("Pod", "train-worker-0/status", failed, content_type=STRATEGIC)

    def is_whole_again() -> bool:
        now = uids(cluster, "train")
        return len(now) == 2 and len(before.keys() & now.keys()) == stay

    cluster.wait(is_whole_again, START_SECONDS, "train starts again")
    now = uids(cluster, "train")
    assert len({LEAF_OF[each] for each in now.values()}) == 1
    assert before.items() & now.items() == {item for item in before.items() if item[0] in now}
