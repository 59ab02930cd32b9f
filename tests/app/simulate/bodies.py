"""Objects as users write them, drawn at random: every vocabulary, levels and sizes of all kinds."""

from __future__ import annotations

import json
from random import Random
from typing import Any

from tests.records import BLOCK, GPU, PREFERRED, RACK, REQUIRED, SLICE_LEVEL, SLICE_SIZE
from tests.sim.grove.pod_clique_set import Clique, Pack, PodCliqueSet

Object = dict[str, Any]
GROUP, TOTAL = "kueue.x-k8s.io/pod-group-name", "kueue.x-k8s.io/pod-group-total-count"
LEVELS = (BLOCK, RACK, "kubernetes.io/hostname")
KUBEFLOW = {
    "PyTorchJob": "pytorch", "TFJob": "tf", "XGBoostJob": "xgb", "PaddleJob": "paddle",
    "JAXJob": "jax",
}  # fmt: skip


def wishes(rng: Random, pods: int = 1) -> dict[str, str]:
    """What annotations of a template request."""
    match rng.choice(("rack", "rack", "block", "host", "prefer", "slices", "none", "unknown")):
        case "rack":
            return {REQUIRED: RACK}
        case "block":
            return {REQUIRED: BLOCK}
        case "host":
            return {REQUIRED: "kubernetes.io/hostname"}
        case "prefer":
            return {PREFERRED: rng.choice(LEVELS)}
        case "slices" if pods % 2 == 0:
            return {REQUIRED: BLOCK, SLICE_LEVEL: RACK, SLICE_SIZE: "2"}
        case "unknown" if rng.random() < 0.2:
            return {REQUIRED: "example.com/row"}
    return {REQUIRED: rng.choice(LEVELS)}


def pod_spec(rng: Random, gpus: int | None = None) -> Object:
    """The spec of a template."""
    amounts: Object = {"cpu": rng.choice(("500m", "1", "4"))}
    amounts[GPU] = rng.choice((1, 1, 2, 4, 8)) if gpus is None else gpus
    key = rng.choice(("requests", "limits"))
    spec: Object = {
        "schedulerName": "corral",
        "containers": [{"name": "main", "resources": {key: amounts}}],
    }
    if rng.random() < 0.2:
        spec["nodeSelector"] = {"pool": "a"}
    if rng.random() < 0.2:
        spec["tolerations"] = [{"key": "dedicated", "operator": "Exists"}]
    return spec


def template(rng: Random, said: dict[str, str]) -> Object:
    return {"metadata": {"annotations": said}, "spec": pod_spec(rng)}


def drawn(rng: Random, name: str) -> list[Object]:
    """One workload: an object, or several that belong together."""
    make = rng.choice(KINDS)
    return make(rng, name, rng.choice((0, 0, 0, 5)))


def _metadata(name: str, **more: Any) -> Object:
    return {"name": name, **more}


def _with_priority(thing: Object, priority: int) -> Object:
    """The same with a priority in every template: the API server sets it by the class."""
    if isinstance(thing, dict):
        return {
            key: {**_with_priority(value, priority), "priority": priority}
            if key in ("spec", "podSpec") and isinstance(value, dict) and "containers" in value
            else _with_priority(value, priority)
            for key, value in thing.items()
        }
    if isinstance(thing, list):
        return [_with_priority(each, priority) for each in thing]  # type: ignore[return-value]
    return thing


def pods(rng: Random, name: str, priority: int) -> list[Object]:
    size, there = rng.randint(1, 5), None
    if rng.random() < 0.15:
        there = max(size - 1, 1)  # one of them does not exist
    spec = pod_spec(rng)
    said = {GROUP: name, TOTAL: str(size), **wishes(rng, size)}
    made = [
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": _metadata(f"{name}-{at}", annotations=said),
            "spec": spec,
        }
        for at in range(size if there is None else there)
    ]
    return [_with_priority(each, priority) for each in made]


def job(rng: Random, name: str, priority: int) -> list[Object]:
    size = rng.randint(1, 6)
    spec: Object = {"parallelism": size, "template": template(rng, wishes(rng, size))}
    if rng.random() < 0.7:
        spec["completions"] = rng.choice((size, size, size + 2, max(size - 1, 1)))
        spec["completionMode"] = rng.choice(("Indexed", "NonIndexed"))
    made = {"apiVersion": "batch/v1", "kind": "Job", "metadata": _metadata(name), "spec": spec}
    return [_with_priority(made, priority)]


def job_set(rng: Random, name: str, priority: int) -> list[Object]:
    parts = []
    level = {REQUIRED: rng.choice(LEVELS)}
    for part in ("leader", "workers")[: rng.randint(1, 2)]:
        size = 1 if part == "leader" else rng.randint(1, 3)
        said = level if rng.random() < 0.6 else wishes(rng)
        its = {"parallelism": size, "completions": size, "template": template(rng, said)}
        replicas = 1 if part == "leader" else rng.randint(1, 2)
        parts.append({"name": part, "replicas": replicas, "template": {"spec": its}})
    spec: Object = {"replicatedJobs": parts}
    if rng.random() < 0.2:
        spec["startupPolicy"] = {"startupPolicyOrder": "InOrder"}
    api = "jobset.x-k8s.io/v1alpha2"
    made = {"apiVersion": api, "kind": "JobSet", "metadata": _metadata(name), "spec": spec}
    return [_with_priority(made, priority)]


def leader_worker_set(rng: Random, name: str, priority: int) -> list[Object]:
    size = rng.randint(1, 4)
    said = wishes(rng, size)
    its: Object = {"size": size, "workerTemplate": template(rng, said)}
    if size > 1 and rng.random() < 0.4:
        its["leaderTemplate"] = template(rng, said)
    spec: Object = {"replicas": rng.randint(1, 2), "leaderWorkerTemplate": its}
    if rng.random() < 0.2:
        spec["startupPolicy"] = "LeaderReady"
    api = "leaderworkerset.x-k8s.io/v1"
    made = {"apiVersion": api, "kind": "LeaderWorkerSet", "metadata": _metadata(name), "spec": spec}
    return [_with_priority(made, priority)]


def stateful_set(rng: Random, name: str, priority: int) -> list[Object]:
    size = rng.randint(1, 4)
    spec: Object = {"replicas": size, "template": template(rng, wishes(rng, size))}
    if rng.random() < 0.6:
        spec["podManagementPolicy"] = "Parallel"
    made = {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": _metadata(name),
        "spec": spec,
    }
    return [_with_priority(made, priority)]


def training_job(rng: Random, name: str, priority: int) -> list[Object]:
    kind = rng.choice(sorted(KUBEFLOW))
    said = wishes(rng)
    specs = {"Worker": {"replicas": rng.randint(1, 3), "template": template(rng, said)}}
    if rng.random() < 0.7:
        specs["Master"] = {"replicas": 1, "template": template(rng, said)}
    made = {
        "apiVersion": "kubeflow.org/v1",
        "kind": kind,
        "metadata": _metadata(name),
        "spec": {f"{KUBEFLOW[kind]}ReplicaSpecs": specs},
    }
    return [_with_priority(made, priority)]


def mpi_job(rng: Random, name: str, priority: int) -> list[Object]:
    said = wishes(rng)
    specs = {
        "Launcher": {"replicas": 1, "template": template(rng, said)},
        "Worker": {"replicas": rng.randint(1, 3), "template": template(rng, said)},
    }
    spec: Object = {"mpiReplicaSpecs": specs}
    if rng.random() < 0.4:
        spec["runLauncherAsWorker"] = True
    if rng.random() < 0.3:
        spec["launcherCreationPolicy"] = "WaitForWorkersReady"
    made = {
        "apiVersion": "kubeflow.org/v2beta1",
        "kind": "MPIJob",
        "metadata": _metadata(name),
        "spec": spec,
    }
    return [_with_priority(made, priority)]


def _within(rng: Random) -> Object:
    return {"mode": rng.choice(("hard", "hard", "soft")), "highestTierAllowed": rng.choice((1, 2))}


def volcano_job(rng: Random, name: str, priority: int) -> list[Object]:
    tasks: list[Object] = []
    for part in ("master", "worker")[: rng.randint(1, 2)]:
        replicas = 1 if part == "master" else rng.choice((2, 4))
        its: Object = {"name": part, "replicas": replicas, "minAvailable": replicas}
        its["template"] = {"spec": pod_spec(rng)}
        if replicas == 4 and rng.random() < 0.5:
            its["partitionPolicy"] = {
                "totalPartitions": 2, "partitionSize": 2, "minPartitions": 2,
                "networkTopology": {"mode": "hard", "highestTierAllowed": 1},
            }  # fmt: skip
        tasks.append(its)
    spec: Object = {"schedulerName": "corral", "tasks": tasks, "queue": "default"}
    spec["minAvailable"] = sum(each["replicas"] for each in tasks)
    if rng.random() < 0.7:
        spec["networkTopology"] = _within(rng)
    api = "batch.volcano.sh/v1alpha1"
    made = {"apiVersion": api, "kind": "Job", "metadata": _metadata(name), "spec": spec}
    return [_with_priority(made, priority)]


def _named_pods(rng: Random, name: str, size: int, priority: int, **more: Any) -> list[Object]:
    spec = {**pod_spec(rng), **more.pop("spec", {})}
    return [
        _with_priority(
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": _metadata(f"{name}-{at}", **more),
                "spec": spec,
            },
            priority,
        )
        for at in range(size)
    ]


def volcano_group(rng: Random, name: str, priority: int) -> list[Object]:
    size = rng.randint(1, 4)
    spec: Object = {"minMember": rng.randint(1, size)}
    if rng.random() < 0.8:
        spec["networkTopology"] = _within(rng)
    api = "scheduling.volcano.sh/v1beta1"
    made = {"apiVersion": api, "kind": "PodGroup", "metadata": _metadata(name), "spec": spec}
    said = {"scheduling.k8s.io/group-name": name}
    return [made, *_named_pods(rng, name, size, priority, annotations=said)]


def kai_group(rng: Random, name: str, priority: int) -> list[Object]:
    size = rng.randint(1, 4)
    spec: Object = {"minMember": rng.randint(1, size), "queue": "default"}
    if rng.random() < 0.8:
        level = rng.choice(("requiredTopologyLevel", "preferredTopologyLevel"))
        spec["topologyConstraint"] = {"topology": "net", level: rng.choice(LEVELS)}
    api = "scheduling.run.ai/v2alpha2"
    made = {"apiVersion": api, "kind": "PodGroup", "metadata": _metadata(name), "spec": spec}
    return [made, *_named_pods(rng, name, size, priority, annotations={"pod-group-name": name})]


def native_group(rng: Random, name: str, priority: int) -> list[Object]:
    size = rng.randint(1, 4)
    spec: Object = {"schedulingPolicy": {"gang": {"minCount": rng.randint(1, size)}}}
    if rng.random() < 0.8:
        spec["schedulingConstraints"] = {"topology": [{"key": rng.choice(LEVELS)}]}
    api = "scheduling.k8s.io/v1alpha2"
    made = {"apiVersion": api, "kind": "PodGroup", "metadata": _metadata(name), "spec": spec}
    more = {"spec": {"schedulingGroup": {"podGroupName": name}}}
    return [made, *_named_pods(rng, name, size, priority, **more)]


def grove_set(rng: Random) -> PodCliqueSet:
    """What a user of Grove may write."""

    def pack(share: float) -> Pack:
        if rng.random() > share:
            return Pack()
        level = rng.choice(("block", "rack"))
        return Pack(level) if rng.random() < 0.7 else Pack(preferred=level)

    cliques = [Clique("router", 1, pack(0.2))]
    is_scaled = rng.random() < 0.6
    cliques += [
        Clique(name, rng.randint(1, 2), pack(0.3), is_scaled=is_scaled)
        for name in ("pl", "pw")[: rng.randint(1, 2)]
    ]
    whole = Pack("block") if rng.random() < 0.5 else Pack()
    if not is_scaled:
        return PodCliqueSet(tuple(cliques), whole)
    least = rng.randint(1, 2)
    group = Pack("rack") if rng.random() < 0.5 else Pack()
    return PodCliqueSet(tuple(cliques), whole, group, least + rng.randint(0, 1), least)


def _said(pack: Pack) -> Object:
    both = {"required": pack.required, "preferred": pack.preferred}
    names = {field: level for field, level in both.items() if level}
    if not names:
        return {}
    return {"topologyConstraint": {"topologyName": "grove-topology", "pack": names}}


def pod_clique_set(rng: Random, name: str, priority: int) -> list[Object]:
    its = grove_set(rng)
    cliques = [
        {
            "name": each.name,
            "spec": {"replicas": each.least, "minAvailable": each.least, "podSpec": pod_spec(rng)},
            **_said(each.pack),
        }
        for each in its.cliques
    ]
    body: Object = {"cliques": cliques, **_said(its.pack)}
    if its.replicas:
        names = [each.name for each in its.cliques if each.is_scaled]
        body["podCliqueScalingGroups"] = [
            {
                "name": "sg", "cliqueNames": names, "replicas": its.replicas,
                "minAvailable": its.least, **_said(its.group_pack),
            }
        ]  # fmt: skip
    made = {
        "apiVersion": "grove.io/v1alpha1",
        "kind": "PodCliqueSet",
        "metadata": _metadata(name),
        "spec": {"replicas": 1, "template": body},
    }
    return [_with_priority(made, priority)]


KINDS = (
    pods, job, job, job_set, leader_worker_set, stateful_set, training_job, mpi_job, volcano_job,
    volcano_group, kai_group, native_group, pod_clique_set,
)  # fmt: skip


def text(things: list[Object]) -> bytes:
    """The body of a request."""
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": things}).encode()
