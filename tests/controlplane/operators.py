"""What the controllers of JobSet and LeaderWorkerSet do about their objects, step by step.

    JobSet ──job_set_step──▶ Jobs ──the real Job controller──▶ pods
    LeaderWorkerSet ──leader_worker_set_step──▶ StatefulSets ──the real controller──▶ pods

Each step makes what can be made now and is repeated until nothing more is to do, as a controller
does; names, labels, annotations and owners are those of the real ones. Left out is what no
scheduler reads: headless Services, ControllerRevisions, environment variables, statuses.
Source: jobset v0.10 (jobset_controller.go), lws v0.7 (leaderworkerset_controller.go,
pod_controller.go, pod_webhook.go).
"""

from __future__ import annotations

import copy
import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests.cluster import Cluster, Object, Objects, Refused, collection

JOBSET = "jobset.sigs.k8s.io/"
LWS = "leaderworkerset.sigs.k8s.io/"
POLICY = "MutatingAdmissionPolicy"
BINDING = "MutatingAdmissionPolicyBinding"
EFFECTIVE_SECONDS = 20.0  # until an API server applies a new policy


# -- JobSet ------------------------------------------------------------------------------------


def job_set_step(cluster: Cluster, job_set: Object) -> None:
    """Creates the Jobs that are to be there; with `InOrder` one replicated Job after the other."""
    parts = job_set["spec"]["replicatedJobs"]
    is_in_order = job_set["spec"]["startupPolicy"]["startupPolicyOrder"] == "InOrder"
    made = {one["metadata"]["name"]: one for one in cluster.list("Job", "default")}
    for part in parts:
        wanted = [job_of(job_set, part, index) for index in range(part["replicas"])]
        names = [one["metadata"]["name"] for one in wanted]
        # The real one makes them in parallel, thus in any order.
        for one in reversed(wanted):
            if one["metadata"]["name"] not in made:
                cluster.create(one)
        if is_in_order and not all(name in made and _has_started(made[name]) for name in names):
            return


def job_of(job_set: Object, part: Object, index: int) -> Object:
    """Job `index` of one of the JobSet's replicated Jobs."""
    name = f"{job_set['metadata']['name']}-{part['name']}-{index}"
    spec = copy.deepcopy(part["template"]["spec"])
    said = _of_job(job_set, part, index, name)
    metadata = {**part["template"].get("metadata", {}), "name": name, "namespace": "default"}
    for each in (metadata, spec["template"]["metadata"]):
        for field in ("labels", "annotations"):
            each[field] = {**each.get(field, {}), **said}
    metadata["ownerReferences"] = [owned_by(job_set)]
    spec["suspend"] = job_set["spec"]["suspend"]
    spec["template"]["spec"]["subdomain"] = job_set["metadata"]["name"]
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": spec}


def _of_job(job_set: Object, part: Object, index: int, name: str) -> dict[str, str]:
    """What stands on a Job and on its pods, as labels and as annotations too."""
    parts = job_set["spec"]["replicatedJobs"]
    group = part.get("groupName", "")
    grouped = [one for one in parts if one.get("groupName", "") == group]
    values = {
        "jobset-name": job_set["metadata"]["name"],
        "jobset-uid": job_set["metadata"]["uid"],
        "replicatedjob-name": part["name"],
        "restart-attempt": job_set.get("status", {}).get("restarts", 0),
        "replicatedjob-replicas": part["replicas"],
        "global-replicas": sum(one["replicas"] for one in parts),
        "job-index": index,
        "job-key": _sha1(f"default/{name}"),
        "job-global-index": _before(parts, part) + index,
        "group-name": group,
        "group-replicas": sum(one["replicas"] for one in grouped),
        "job-group-index": _before(grouped, part) + index,
    }
    return {JOBSET + key: str(value) for key, value in values.items()}


def _before(parts: Objects, part: Object) -> int:
    """The Jobs of those before this one."""
    return sum(one["replicas"] for one in parts[: parts.index(part)])


def _has_started(job: Object) -> bool:
    status = job.get("status", {})
    pods = sum(status.get(field, 0) for field in ("ready", "succeeded", "failed"))
    return bool(pods >= job["spec"]["parallelism"])


# -- LeaderWorkerSet ---------------------------------------------------------------------------


def leader_worker_set_step(cluster: Cluster, whole: Object) -> None:
    """Creates the StatefulSet of the leaders, then that of the workers of each leader there is."""
    name = whole["metadata"]["name"]
    _create_once(cluster, leaders_of(whole))
    for one in cluster.list("Pod", "default"):
        labels = one["metadata"]["labels"]
        if labels.get(f"{LWS}name") != name or labels.get(f"{LWS}worker-index") != "0":
            continue
        if whole["spec"]["startupPolicy"] == "LeaderCreated" or _is_ready(one):
            _create_once(cluster, workers_of(whole, one))


def leaders_of(whole: Object) -> Object:
    """The StatefulSet whose pods are the leaders, one for each group."""
    name, spec = whole["metadata"]["name"], whole["spec"]
    pods = spec["leaderWorkerTemplate"]
    selected = {f"{LWS}name": name, f"{LWS}worker-index": "0"}
    revision = {f"{LWS}template-revision-hash": _revision(whole)}
    made = _stateful_set(
        name,
        owner=whole,
        replicas=spec["replicas"],
        service=name,
        template=pods.get("leaderTemplate", pods["workerTemplate"]),
        selected=selected,
        labels=revision,
        annotations={f"{LWS}size": str(pods["size"])},
    )
    made["metadata"]["labels"] = {f"{LWS}name": name, **revision}
    made["metadata"]["annotations"] = {f"{LWS}replicas": str(spec["replicas"])}
    return made


def workers_of(whole: Object, leader: Object) -> Object:
    """The StatefulSet whose pods are the workers of that leader; their numbers begin with 1."""
    pods, written = whole["spec"]["leaderWorkerTemplate"], leader["metadata"]["labels"]
    keys = ("group-index", "name", "group-key")
    selected = {LWS + key: written[LWS + key] for key in keys}
    revision = {f"{LWS}template-revision-hash": written[f"{LWS}template-revision-hash"]}
    made = _stateful_set(
        leader["metadata"]["name"],
        owner={"apiVersion": "v1", "kind": "Pod", **leader},
        replicas=pods["size"] - 1,
        service=whole["metadata"]["name"],
        template=pods["workerTemplate"],
        selected=selected,
        labels=revision,
        annotations={
            f"{LWS}size": str(pods["size"]),
            f"{LWS}leader-name": leader["metadata"]["name"],
        },
    )
    made["metadata"]["labels"] = {**selected, **revision}
    made["spec"]["ordinals"] = {"start": 1}
    return made


def _stateful_set(
    name: str,
    *,
    owner: Object,
    replicas: int,
    service: str,
    template: Object,
    selected: dict[str, str],
    labels: dict[str, str],
    annotations: dict[str, str],
) -> Object:
    pods = copy.deepcopy(template)
    metadata = pods.setdefault("metadata", {})
    metadata["labels"] = {**metadata.get("labels", {}), **selected, **labels}
    metadata["annotations"] = {**metadata.get("annotations", {}), **annotations}
    return {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": name, "namespace": "default", "ownerReferences": [owned_by(owner)]},
        "spec": {
            "replicas": replicas,
            "serviceName": service,
            "podManagementPolicy": "Parallel",
            "selector": {"matchLabels": selected},
            "template": pods,
        },
    }


@contextmanager
def leader_worker_set_webhook(cluster: Cluster, name: str, groups: int) -> Iterator[None]:
    """Pods of that LeaderWorkerSet get the labels its webhook writes, from their own names.

    An admission policy does it in the API server; it cannot hash, so it is told the hashes.
    """
    version = "admissionregistration.k8s.io/v1"
    documents = [
        {
            "apiVersion": version,
            "kind": POLICY,
            "metadata": {"name": "leader-worker-set"},
            "spec": _policy(name, groups),
        },
        {
            "apiVersion": version,
            "kind": BINDING,
            "metadata": {"name": "leader-worker-set"},
            "spec": {"policyName": "leader-worker-set"},
        },
    ]
    paths = [collection(kind, None, version) for kind in (POLICY, BINDING)]
    try:
        for path, one in zip(paths, documents, strict=True):
            cluster.request("POST", path, body=one)
        cluster.wait(lambda: _is_labelled(cluster, name), EFFECTIVE_SECONDS, POLICY)
        yield
    finally:
        for path in reversed(paths):
            try:
                cluster.request("DELETE", f"{path}/leader-worker-set")
            except Refused as refused:
                if refused.status != 404:
                    raise


def _policy(name: str, groups: int) -> Object:
    hashes = {f"{name}-{group}": _sha1(f"default/{name}-{group}") for group in range(groups)}
    is_leader = f"object.metadata.labels[?'{LWS}worker-index'].orValue('') == '0'"
    pods: dict[str, Any] = {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"]}
    label = (
        "JSONPatch{{op: 'add', path: '/metadata/labels/' + jsonpatch.escapeKey('{key}'), "
        "value: {value}}}"
    )
    number = "variables.parts[size(variables.parts) - 1]"
    group = label.format(key=f"{LWS}group-index", value=number)
    key = label.format(key=f"{LWS}group-key", value=f"{json.dumps(hashes)}[object.metadata.name]")
    worker = label.format(key=f"{LWS}worker-index", value=number)
    return {
        "failurePolicy": "Fail",
        "reinvocationPolicy": "Never",
        "matchConstraints": {"resourceRules": [{**pods, "operations": ["CREATE"]}]},
        "matchConditions": [
            {
                "name": "of-the-set",
                "expression": f"object.metadata.?labels[?'{LWS}name'].orValue('') == '{name}'",
            }
        ],
        "variables": [{"name": "parts", "expression": "object.metadata.name.split('-')"}],
        "mutations": [
            {
                "patchType": "JSONPatch",
                "jsonPatch": {"expression": f"{is_leader} ? [{group}, {key}] : [{worker}]"},
            }
        ],
    }


def _is_labelled(cluster: Cluster, name: str) -> bool:
    """Whether a leader of that name would be labelled."""
    labels = {f"{LWS}name": name, f"{LWS}worker-index": "0"}
    probe = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": f"{name}-0", "namespace": "default", "labels": labels},
        "spec": {"containers": [{"name": "probe", "image": "example.invalid/probe"}]},
    }
    path = collection("Pod", "default")
    answer = cluster.request("POST", path, body=probe, params={"dryRun": "All"})
    return f"{LWS}group-index" in answer.json()["metadata"]["labels"]


# -- both --------------------------------------------------------------------------------------


def owned_by(owner: Object) -> Object:
    """The reference of what its controller has made for that object."""
    return {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }


def _create_once(cluster: Cluster, thing: Object) -> None:
    try:
        cluster.create(thing)
    except Refused as refused:
        if refused.reason != "AlreadyExists":
            raise


def _is_ready(pod: Object) -> bool:
    conditions = pod["status"].get("conditions", [])
    return any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)


def _revision(whole: Object) -> str:
    pods = json.dumps(whole["spec"]["leaderWorkerTemplate"], sort_keys=True)
    return _sha1(pods)[:10]


def _sha1(text: str) -> str:
    return hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()
