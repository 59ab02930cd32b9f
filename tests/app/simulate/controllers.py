"""What becomes of objects once they are created: their controllers, the webhook, and the watch.

The controllers are those of `tests/workload_pods.py` in JSON: written apart from
`app/dialects/making`, which says the same.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator
from copy import deepcopy
from typing import Any

import msgspec

from app.admission import review
from app.admission.routes import Desk, mutated, validated
from app.admission.scope import Scope
from app.dialects.registry import DIALECTS
from app.kube.watch.events import Applied
from app.metrics import Metrics
from app.sandbox.apiserver.storage.json_patch import apply as patched
from app.state.engine import Engine
from tests.app.simulate.bodies import KUBEFLOW
from tests.sim.grove.pod_clique_set import Clique, Pack, PodCliqueSet

Object = dict[str, Any]
JOBSET, LWS = "jobset.sigs.k8s.io/", "leaderworkerset.sigs.k8s.io/"
TRAINING, COMPLETION = "training.kubeflow.org/", "batch.kubernetes.io/job-completion-index"
_METRICS = Metrics(DIALECTS.kinds)


Refusals = dict[str, list[tuple[str, str]]]
"""By object: (field, message) of each cause that the webhook refuses it for."""


def create(engine: Engine, things: list[Object], now: float) -> tuple[float, Refusals]:
    """Create the objects one after another; returns when that was done, and what was refused."""
    refused: Refusals = {}
    for at, thing in enumerate(things, 1):
        whole = deepcopy(thing)
        whole["metadata"] = {"namespace": "default", **whole["metadata"], "uid": f"simulated-{at}"}
        response = _asked(engine, whole, validated)
        if not response["allowed"]:
            causes = response["status"]["details"]["causes"]
            name = f"{whole['kind']} default/{whole['metadata']['name']}"
            refused[name] = [(each["field"], each["message"]) for each in causes]
            continue
        for each in controlled(whole):
            if each["kind"] == "Pod":
                _create_pod(engine, each, now)
            else:
                _apply(engine, each, now)
        now += 1e-6
    return now, refused


def _asked(engine: Engine, made: Object, answer: Callable[[Desk, review.Request], bytes]) -> Object:
    """What the webhook answers when the object is created."""
    roles, declared = engine.settings.pod_group_roles, engine.topologies.declared
    desk = Desk(Scope("corral"), engine.dialects, _METRICS, 1 << 20, roles, declared)
    raw, (group, _, version) = msgspec.json.encode(made), made["apiVersion"].rpartition("/")
    kind = review.GroupVersionKind(group, version, made["kind"])
    name = made["metadata"]["name"]
    asked = review.Request("uid", kind, "", "default", name, "CREATE", msgspec.Raw(raw))
    response: Object = json.loads(answer(desk, asked))["response"]
    return response


def _create_pod(engine: Engine, made: Object, now: float) -> None:
    spec = made["spec"]
    for each in spec["containers"]:  # as the API server fills it in
        resources = each["resources"]
        resources["requests"] = {**resources.get("limits", {}), **resources.get("requests", {})}
    response = _asked(engine, made, mutated)
    assert response["allowed"]
    if "patch" in response:
        made = patched(made, json.loads(base64.b64decode(response["patch"])))
    _apply(engine, made, now)


def _apply(engine: Engine, made: Object, now: float) -> None:
    dialects, keys = engine.dialects, engine.kept_keys
    resources = dialects.resources(dialects.keeps, keys.labels, engine.books.axis)
    group = made["apiVersion"].rpartition("/")[0]
    api = f"/apis/{group}/" if group else "/api/"
    for each in resources:
        if each.kind.partition(".")[0] == made["kind"] and each.path.startswith(api):
            engine.apply(Applied(each.decode(msgspec.json.encode(made))), now)
    if made["kind"] != "Pod":
        keys.pods_read(keys.labels.edition)  # the pods that there are have none of these labels


def controlled(of: Object) -> Iterator[Object]:
    """The object itself, where it is watched, and all that its controller creates at once."""
    match of["kind"], of["apiVersion"]:
        case "Job", "batch/v1":
            yield of
            yield from _job_pods(of)
        case "JobSet", _:
            yield of
            yield from _of_job_set(of)
        case "LeaderWorkerSet", _:
            yield of
            yield from _of_groups(of)
        case "StatefulSet", _:
            yield of
            is_ordered = of["spec"].get("podManagementPolicy", "OrderedReady") == "OrderedReady"
            for at in range(1 if is_ordered else of["spec"]["replicas"]):
                labels = {"apps.kubernetes.io/pod-index": str(at)}
                yield _pod(of, f"{of['metadata']['name']}-{at}", of["spec"]["template"], labels)
        case "MPIJob", _:
            yield of
            yield from _of_mpi_job(of)
        case kind, _ if kind in KUBEFLOW:
            yield of
            yield from _of_training_job(of)
        case "Job", "batch.volcano.sh/v1alpha1":
            yield of
            yield from _of_volcano_job(of)
        case "PodCliqueSet", _:
            yield from _of_clique_set(of)
        case _:
            yield of


def _owned(of: Object, **more: Any) -> Object:
    reference = {
        "apiVersion": of["apiVersion"],
        "kind": of["kind"],
        "name": of["metadata"]["name"],
        "uid": of["metadata"].get("uid", ""),
        "controller": True,
    }
    return {"namespace": "default", "ownerReferences": [reference], **more}


def _pod(
    of: Object,
    name: str,
    template: Object,
    labels: dict[str, str],
    annotations: dict[str, str] | None = None,
) -> Object:
    written = template.get("metadata", {})
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": _owned(
            of,
            name=name,
            uid=f"uid-{name}",
            labels={**written.get("labels", {}), **labels},
            annotations={**written.get("annotations", {}), **(annotations or {})},
        ),
        "spec": deepcopy(template["spec"]),
    }


def _job_pods(job: Object) -> Iterator[Object]:
    spec, name = job["spec"], job["metadata"]["name"]
    size = min(spec["parallelism"], spec.get("completions", spec["parallelism"]))
    for at in range(size):
        index = {COMPLETION: str(at)} if spec.get("completionMode") == "Indexed" else {}
        yield _pod(job, f"{name}-{at}-x{at}", spec["template"], index, index)


def _of_job_set(of: Object) -> Iterator[Object]:
    name, parts = of["metadata"]["name"], of["spec"]["replicatedJobs"]
    total = sum(part["replicas"] for part in parts)
    in_order = "startupPolicy" in of["spec"]
    for part in parts[:1] if in_order else parts:
        for index in range(part["replicas"]):
            labels = {
                f"{JOBSET}jobset-name": name,
                f"{JOBSET}jobset-uid": of["metadata"]["uid"],
                f"{JOBSET}restart-attempt": "0",
                f"{JOBSET}replicatedjob-name": part["name"],
                f"{JOBSET}replicatedjob-replicas": str(part["replicas"]),
                f"{JOBSET}global-replicas": str(total),
                f"{JOBSET}job-index": str(index),
            }
            named = f"{name}-{part['name']}-{index}"
            template = deepcopy(part["template"]["spec"]["template"])
            template["metadata"]["labels"] = labels
            job = {
                "apiVersion": "batch/v1",
                "kind": "Job",
                "metadata": _owned(of, name=named, uid=f"uid-{named}", labels=labels),
                "spec": {
                    **part["template"]["spec"],
                    "completionMode": "Indexed",
                    "template": template,
                },
            }
            yield job
            yield from _job_pods(job)


def _of_groups(of: Object) -> Iterator[Object]:
    name, spec = of["metadata"]["name"], of["spec"]
    its = spec["leaderWorkerTemplate"]
    is_late = spec.get("startupPolicy") == "LeaderReady"
    for group in range(spec["replicas"]):
        for at in range(1 if is_late else its["size"]):
            template = its["workerTemplate"] if at else its.get("leaderTemplate")
            labels = {
                f"{LWS}name": name,
                f"{LWS}group-index": str(group),
                f"{LWS}worker-index": str(at),
            }
            owner = f"{name}-{group}" if at else name
            stateful: Object = {"apiVersion": "apps/v1", "kind": "StatefulSet"}
            stateful["metadata"] = {"name": owner, "uid": f"uid-{owner}"}
            named = f"{name}-{group}-{at}" if at else f"{name}-{group}"
            size = {f"{LWS}size": str(its["size"])}
            yield _pod(stateful, named, template or its["workerTemplate"], labels, size)


def _of_training_job(of: Object) -> Iterator[Object]:
    name = of["metadata"]["name"]
    for part, its in of["spec"][f"{KUBEFLOW[of['kind']]}ReplicaSpecs"].items():
        for at in range(its["replicas"]):
            labels = {
                f"{TRAINING}job-name": name,
                f"{TRAINING}replica-type": part.lower(),
                f"{TRAINING}replica-index": str(at),
            }
            yield _pod(of, f"{name}-{part.lower()}-{at}", its["template"], labels)


def _of_mpi_job(of: Object) -> Iterator[Object]:
    name, spec = of["metadata"]["name"], of["spec"]
    specs, first = spec["mpiReplicaSpecs"], int(spec.get("runLauncherAsWorker", False))
    common = {f"{TRAINING}job-name": name, f"{TRAINING}operator-name": "mpi-operator"}
    if spec.get("launcherCreationPolicy") != "WaitForWorkersReady":
        job: Object = {"apiVersion": "batch/v1", "kind": "Job"}
        job["metadata"] = {"name": f"{name}-launcher", "uid": f"uid-job-{name}"}
        labels = {**common, f"{TRAINING}job-role": "launcher"}
        if first:
            labels[f"{TRAINING}replica-index"] = "0"
        yield _pod(job, f"{name}-launcher-x", specs["Launcher"]["template"], labels)
    for at in range(specs["Worker"]["replicas"]):
        labels = {
            **common,
            f"{TRAINING}job-role": "worker",
            f"{TRAINING}replica-index": str(at + first),
        }
        yield _pod(of, f"{name}-worker-{at}", specs["Worker"]["template"], labels)


def _of_volcano_job(of: Object) -> Iterator[Object]:
    name, spec = of["metadata"]["name"], of["spec"]
    group = f"{name}-{of['metadata']['uid']}"
    policies = [
        {
            "name": task["name"],
            "subGroupSize": said["partitionSize"],
            "minSubGroups": said["minPartitions"],
            "labelSelector": {"matchLabels": {"volcano.sh/task-spec": task["name"]}},
            "matchLabelKeys": ["volcano.sh/partition-id"],
            "networkTopology": said["networkTopology"],
        }
        for task in spec["tasks"]
        if (said := task.get("partitionPolicy"))
    ]
    body: Object = {
        "minMember": spec["minAvailable"],
        "minTaskMember": {task["name"]: task["minAvailable"] for task in spec["tasks"]},
        "queue": spec["queue"],
    }
    if "networkTopology" in spec:
        body["networkTopology"] = spec["networkTopology"]
    if policies:
        body["subGroupPolicy"] = policies
    yield {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "metadata": _owned(of, name=group, uid=f"uid-{group}"),
        "spec": body,
        "status": {"phase": "Inqueue"},
    }
    for task in spec["tasks"]:
        for at in range(task["replicas"]):
            both = {"volcano.sh/task-spec": task["name"], "volcano.sh/task-index": str(at)}
            labels = dict(both)
            if said := task.get("partitionPolicy"):
                labels["volcano.sh/partition-id"] = str(at // said["partitionSize"])
            template = deepcopy(task["template"])
            template["spec"].setdefault("schedulerName", spec["schedulerName"])
            annotations = {**both, "scheduling.k8s.io/group-name": group}
            yield _pod(of, f"{name}-{task['name']}-{at}", template, labels, annotations)


def _pack(said: Object) -> Pack:
    pack = said.get("topologyConstraint", {}).get("pack", {})
    return Pack(pack.get("required", ""), pack.get("preferred", ""))


def _of_clique_set(of: Object) -> Iterator[Object]:
    """By the tests' own picture of Grove's operator."""
    name, body = of["metadata"]["name"], of["spec"]["template"]
    group = next(iter(body.get("podCliqueScalingGroups", [])), {})
    scaled = group.get("cliqueNames", [])
    its = PodCliqueSet(
        tuple(
            Clique(
                each["name"],
                each["spec"]["minAvailable"],
                _pack(each),
                is_scaled=each["name"] in scaled,
            )
            for each in body["cliques"]
        ),
        _pack(body),
        _pack(group),
        group.get("replicas", 0),
        group.get("minAvailable", 0),
    )
    specs = {each["name"]: each["spec"] for each in body["cliques"]}
    for gang, parts in its.gangs().items():
        spec = its.spec(name, gang, ("block", "rack", "host"), {})
        yield {
            "apiVersion": "scheduler.grove.io/v1alpha1",
            "kind": "PodGang",
            "metadata": _owned(
                of,
                name=f"{name}-{gang}",
                uid=f"uid-{name}-{gang}",
                annotations={"grove.io/topology-name": "grove-topology"}
                if "topologyConstraint" in json.dumps(spec)
                else {},
            ),
            "spec": spec,
        }
        for part in parts:
            clique: Object = {"apiVersion": "grove.io/v1alpha1", "kind": "PodClique"}
            clique["metadata"] = {"name": f"{name}-{part.name}", "uid": f"uid-c-{part.name}"}
            labels = {
                "app.kubernetes.io/part-of": name,
                "grove.io/podclique": f"{name}-{part.name}",
                "grove.io/podgang": f"{name}-{gang}",
                "grove.io/podcliqueset-replica-index": "0",
            }
            if gang != "0":
                labels["grove.io/base-podgang"] = f"{name}-0"
            template = {"spec": specs[part.clique.name]["podSpec"]}
            for at in range(specs[part.clique.name]["replicas"]):
                yield _pod(clique, f"{name}-{part.name}-{at}", template, labels)
