"""Volcano's own end-to-end cases: its controllers make the pods, and no scheduler of its runs.

Each is a vcjob beside pods that occupy some of eight nodes, in HyperNodes of three tiers: it is
bound where the case expects it, runs and completes, or stays pending and says why. Those of the
upstream cases that prove nothing are left out (`tests/parity/volcano/cases.py`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.app.dialects.volcano.objects import exact
from tests.app.dialects.volcano.workloads import partition_policy, task, vcjob
from tests.cluster import Cluster, Object, node, pod
from tests.controlplane.kubelet import end_running_pods, start_bound_pods
from tests.controlplane.plane import ControlPlane
from tests.controlplane.process import Process
from tests.controlplane.seen import START_SECONDS
from tests.controlplane.test_hyper_nodes import stored
from tests.controlplane.volcano import JOB, clear
from tests.controlplane.volcano_cluster import SOON, bound, group_of, phase_of
from tests.corral_process import scheduled
from tests.parity.tally import recorded
from tests.parity.volcano.cases import LEFT_OUT, Case, end_to_end_difference, read

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

UPSTREAM = {1: 3, 2: 3, 3: 1, 4: 3, 5: 6, 6: 3, 7: 2, 8: 1, 9: 6}  # how many of each number
NUMBERS = [
    number
    for chapter, cases in UPSTREAM.items()
    for at in range(1, cases + 1)
    if (number := f"{chapter}.{at}") not in LEFT_OUT
]
# What the daemons of the upstream cluster leave of a node of 8 CPUs and 8 GiB.
CPU, MEMORY = "7900m", "8142Mi"


@pytest.fixture(scope="module")
def cases() -> dict[str, Case]:
    found = read(recorded("volcano", "e2e_cases.json.gz", len(NUMBERS)))
    return {case.name.removeprefix("Case ").partition(":")[0]: case for case in found}


@pytest.fixture(scope="module")
def stage(
    plane: ControlPlane,
    volcano_controllers: Process,
    cases: dict[str, Case],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Cluster]:
    """The cluster of all cases, with kube-scheduler and Corral; each leaves it empty again."""
    cluster, tree = plane.cluster(), cases[NUMBERS[0]].tree
    assert tree is not None
    folder = tmp_path_factory.mktemp("cases")
    for tier, domains in sorted(tree["tiers"].items(), key=lambda each: int(each[0])):
        kind = "Node" if int(tier) == 1 else "HyperNode"
        for name, members in domains.items():
            cluster.create(stored(name, int(tier), exact(kind, *members)))
            if kind == "Node":
                plane.nodes([node(member, cpu=CPU, memory=MEMORY) for member in members])
    with scheduled(plane, folder, levels=()) as corral:
        yield cluster
        assert corral.bugs() == {}
    volcano_controllers.check()
    plane.stop_scheduler()
    clear(cluster)
    cluster.delete_all("Node")


def job_of(name: str, job: dict[str, Any]) -> Object:
    tasks = []
    for each in job["tasks"]:
        partition, least, fields = each["partitionPolicy"], each["min"], {}
        if partition is not None:
            size, minimum = partition["partitionSize"], partition["minPartitions"]
            least = least if least is not None else minimum * size or None
            fields["partitionPolicy"] = partition_policy(
                partition["totalPartitions"],
                size,
                min_partitions=minimum,
                topology=partition["networkTopology"],
            )
        requests = amounts_of(each)
        tasks.append(
            task(each["name"], each["replicas"], min_available=least, requests=requests, **fields)
        )
    if job["networkTopology"] is None:
        return vcjob(name, *tasks, min_available=job["minAvailable"])
    topology = job["networkTopology"]
    return vcjob(name, *tasks, min_available=job["minAvailable"], networkTopology=topology)


def amounts_of(thing: dict[str, Any]) -> dict[str, str | int]:
    return {"cpu": thing["cpu"], "memory": f"{thing['memoryGi']}Gi"}


def is_unschedulable(cluster: Cluster, name: str) -> bool:
    conditions = group_of(cluster, name).get("status", {}).get("conditions", ())
    return any(each["type"] == "Unschedulable" and each["message"] for each in conditions)


@pytest.mark.parametrize("number", NUMBERS)
def test_a_case_of_volcanos_own(stage: Cluster, cases: dict[str, Case], number: str) -> None:
    case = cases[number]
    expect, name = case.scenario["expect"], f"case-{number.replace('.', '-')}"
    for each in case.scenario["occupied"]:
        stage.create(pod(each["name"], requests=amounts_of(each), nodeName=each["node"]))
    stage.create(job_of(name, case.scenario["job"]))

    def difference(turn: int = 0) -> str:
        assert case.tree is not None
        nodes = list(bound(stage, f"{name}-task").values())
        return end_to_end_difference(case.scenario, case.tree, nodes, turn)

    if not expect["jobReady"]:
        stage.wait(lambda: is_unschedulable(stage, name), START_SECONDS, "it says why it waits")
        assert difference() == ""
    else:
        stage.wait(lambda: difference() == "", START_SECONDS, "it is where it is expected")
        start_bound_pods(stage)
        stage.wait(lambda: phase_of(stage, name) == "Running", SOON, "it runs")
        if expect["killsPods"]:
            before = bound(stage, f"{name}-task")
            for killed in sorted(before)[: expect["killsPods"]]:
                stage.delete("Pod", killed)
            stage.wait(
                lambda: len(bound(stage, f"{name}-task")) == len(before) and not difference(1),
                START_SECONDS,
                "the pods that were killed are back where they are expected",
            )
        assert difference(expect["killsPods"] and 1) == ""
        stage.wait(lambda: has_completed(stage, name), START_SECONDS, "it completes")
    leave_empty(stage, name)


def has_completed(cluster: Cluster, name: str) -> bool:
    """Whether the job has, with kubelets that take no time."""
    start_bound_pods(cluster)
    end_running_pods(cluster)
    return phase_of(cluster, name) == "Completed"


def leave_empty(cluster: Cluster, name: str) -> None:
    cluster.delete(JOB, name)
    cluster.clear("Pod")
