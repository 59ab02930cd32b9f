"""A gang of every vocabulary at once, made by its own operator, all wanting the same few racks.

Volcano's controllers name PodGroups on pods of the others meanwhile, and so does Kubeflow's
operator; KAI's pod-grouper does where its scheduler is named.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass

import pytest

from app.dialects import corral as annotations
from tests.app.dialects.kai.objects import topology
from tests.app.dialects.native.objects import pod_group
from tests.app.dialects.volcano.objects import exact
from tests.app.dialects.volcano.workloads import network_topology, task, vcjob
from tests.cluster import GPU, RACK, Cluster, Object, collection, grid, job, pod
from tests.controlplane import jobset_lws, kubeflow, volcano
from tests.controlplane.built import skip_unless_built
from tests.controlplane.grove import clique, grove_operator, pod_clique_set
from tests.controlplane.kai import NET, REQUIRED, TOPOLOGY, pod_grouper
from tests.controlplane.kai import SCHEDULER as KAIS
from tests.controlplane.kinds import job_set, leader_worker_set, served, training_job
from tests.controlplane.kubelet import kubelets
from tests.controlplane.plane import ControlPlane
from tests.controlplane.seen import unschedulable
from tests.controlplane.test_hyper_nodes import stored
from tests.controlplane.test_native import SERVED
from tests.corral_process import CorralProcess, scheduled
from tests.workloads import asking, members

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.timeout(600)]

RACKS, PODS = 3, 4  # of as many nodes each, which a pod fills
SCHEDULERS = f"corral,default-scheduler,{KAIS}"  # the second is Grove's
NODE = {GPU: 8}
IN_RACK = asking(required=RACK)
ALL_IN_RACK = {annotations.WORKLOAD_REQUIRED: RACK}
WHOLE_SECONDS = 60.0  # until one more of them runs
SOAK_SECONDS = 300.0


def training(name: str, scheduler: str, said: dict[str, str], on_job: dict[str, str]) -> Object:
    """A PyTorchJob; `said` stands on its pods."""
    types = {"Master": (said, 1), "Worker": (said, PODS - 1)}
    made = training_job("PyTorchJob", "pytorchReplicaSpecs", name, types)
    made["metadata"]["annotations"] = on_job
    for part in made["spec"]["pytorchReplicaSpecs"].values():
        spec = part["template"]["spec"]
        spec["schedulerName"] = scheduler
        spec["containers"][0] |= {"name": "pytorch", "resources": {"limits": NODE}}
    return made


def whole_job_set(name: str) -> Object:
    """A driver without a GPU beside its workers, one less than a rack has nodes."""
    return job_set(name, ALL_IN_RACK, NODE, driver=ALL_IN_RACK, jobs=PODS - 1, pods=1)


def native_pods(name: str) -> list[Object]:
    group = {"schedulingGroup": {"podGroupName": name}}
    return [pod_group(name, PODS, key=RACK)] + [
        pod(f"{name}-{at}", requests=NODE, **group) for at in range(PODS)
    ]


def of_volcano(name: str) -> Object:
    worker = task("worker", PODS, requests=NODE)
    return vcjob(name, worker, networkTopology=network_topology(1))


# What users write, by the vocabulary they write it in; each has PODS pods in one rack.
GANGS: dict[str, Callable[[str], list[Object]]] = {
    "kueue": lambda name: [job(name, pods=PODS, requests=NODE, annotations=IN_RACK)],
    "group": lambda name: members(name, PODS, requests=NODE, annotations=IN_RACK),
    "jobset": lambda name: [whole_job_set(name)],
    "lws": lambda name: [leader_worker_set(name, IN_RACK, NODE, size=PODS)],
    "pytorch": lambda name: [training(name, "corral", ALL_IN_RACK, {})],
    "vcjob": lambda name: [of_volcano(name)],
    "grove": lambda name: [pod_clique_set(name, clique("worker", PODS), pack="rack")],
    "kai": lambda name: [training(name, KAIS, {}, {NET: "net", REQUIRED: RACK})],
    "native": native_pods,
}


@dataclass(frozen=True)
class Stage:
    """A control plane with all operators, and a Corral for all their schedulers."""

    cluster: Cluster
    corral: CorralProcess

    def create(self, vocabulary: str, name: str) -> None:
        for one in GANGS[vocabulary](name):
            self.cluster.create(one)

    def end(self, vocabulary: str, name: str) -> None:
        """Deletes what the user wrote, and waits until no pod of it is left."""
        for one in reversed(GANGS[vocabulary](name)):
            path = collection(one["kind"], "default", one["apiVersion"])
            name_of_it = one["metadata"]["name"]
            # A Job's pods are left to themselves if nothing is said.
            body = {"propagationPolicy": "Background"}
            self.cluster.request("DELETE", f"{path}/{name_of_it}", body=body)
        self.cluster.wait(lambda: not self.pods(name), WHOLE_SECONDS, f"no pod of {name}")

    def pods(self, name: str) -> list[Object]:
        every = self.cluster.list("Pod", "default")
        return [each for each in every if each["metadata"]["name"].startswith(f"{name}-")]

    def nodes(self, name: str) -> list[str]:
        """Where its pods are, of those that have a node."""
        return [node for each in self.pods(name) if (node := each["spec"].get("nodeName"))]

    def racks(self, name: str) -> set[str]:
        return {node.rpartition("-")[0] for node in self.nodes(name)}


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    skip_unless_built()
    folder = tmp_path_factory.mktemp("mixed")
    with ExitStack() as stack:
        enter = stack.enter_context
        plane = enter(
            ControlPlane(folder, has_controllers=True, is_audited=True, apiserver_flags=SERVED)
        )
        cluster = plane.cluster()
        plane.nodes(grid(racks=RACKS, nodes=PODS, gpus=8))
        enter(jobset_lws.controllers(plane, folder))
        enter(volcano.controllers(plane, volcano.QUEUES))
        enter(served(cluster, kubeflow.KINDS))
        enter(kubeflow.training_operator(plane, folder))
        enter(pod_grouper(plane, folder))
        enter(grove_operator(plane, folder, {"rack": RACK}))
        cluster.create({**topology("net", RACK), "metadata": {"name": "net"}})
        stack.callback(cluster.delete, TOPOLOGY, "net")
        for rack in range(RACKS):
            names = [f"b0-r{rack}-n{at}" for at in range(PODS)]
            cluster.create(stored(f"rack-{rack}", 1, exact("Node", *names)))
        enter(kubelets(cluster))
        enter(plane.granted("corral-native-pod-groups"))
        settings = {"native_pod_groups": "on"}
        corral = enter(scheduled(plane, folder, SCHEDULERS, **settings))
        yield Stage(cluster, corral)
        assert corral.bugs() == {}
        assert plane.denials() == []


def test_one_gang_of_each_is_whole_in_one_rack_though_corral_is_killed_twice(stage: Stage) -> None:
    waiting = {f"{each}-a": each for each in GANGS}
    for name, vocabulary in waiting.items():
        stage.create(vocabulary, name)
    ended = 0
    while waiting:
        for name in whole_of(stage, waiting):
            assert len(stage.racks(name)) == 1, name
            stage.end(waiting.pop(name), name)
            ended += 1
            if ended in (2, 5):
                stage.corral.kill()
                stage.corral.start()


@pytest.mark.operators
def test_gangs_of_all_kinds_come_and_go_for_five_minutes(stage: Stage) -> None:
    dice = random.Random(1)
    until, kill_at, number = time.monotonic() + SOAK_SECONDS, 0.0, 0
    there: dict[str, str] = {}
    started: dict[str, int] = dict.fromkeys(GANGS, 0)
    while time.monotonic() < until:
        while len(there) < 2 * RACKS:
            fewest = min(GANGS, key=lambda each: (started[each], dice.random()))
            name, number = f"{fewest}-s{number}", number + 1
            stage.create(fewest, name)
            there[name] = fewest
            started[fewest] += 1
        if time.monotonic() > kill_at:
            stage.corral.kill()
            stage.corral.start()
            kill_at = time.monotonic() + dice.uniform(10, 30)
        for name in whole_of(stage, there):
            assert len(stage.racks(name)) == 1, name
            stage.end(there.pop(name), name)
    for name, vocabulary in list(there.items()):
        stage.end(vocabulary, name)
    assert min(started.values()) >= 5


def whole_of(stage: Stage, names: dict[str, str]) -> list[str]:
    """Waits until some of them run whole: those. Meanwhile each has pods in one rack at most."""

    def found() -> list[str]:
        for name in names:
            assert len(stage.racks(name)) <= 1, f"{name} is in {stage.racks(name)}"
        return [name for name in names if len(stage.nodes(name)) == PODS]

    try:
        return stage.cluster.wait(found, WHOLE_SECONDS, "one more gang runs")
    except TimeoutError as error:
        there = {name: [len(stage.pods(name)), len(stage.nodes(name))] for name in names}
        told = f"(pods, bound) {there}; {unschedulable(stage.cluster)}"
        raise TimeoutError(f"{error}: {told}") from error
