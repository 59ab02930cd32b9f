"""The kinds that make gangs as their projects define them: the real CRDs, and whole objects.

    with served(cluster):                               # the API server checks them from here on
        cluster.create(job_set("train", annotations=asking(required=RACK)))

The objects say all that a careful user would. What the webhooks of their projects fill in is
written out, since most tests run without those; the defaults of the CRDs come from the API server.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import yaml

from tests.cluster import Cluster, Object, Refused, job, pod
from tests.controlplane.plane import HERE, binaries

STATEFUL_SET = "apps/v1"
JOB_SET = "jobset.x-k8s.io/v1alpha2"
LEADER_WORKER_SET = "leaderworkerset.x-k8s.io/v1"
TRAINING = "kubeflow.org/v1"
MPI = "kubeflow.org/v2beta1"
VERSIONS = {
    "JobSet": JOB_SET,
    "LeaderWorkerSet": LEADER_WORKER_SET,
    "PyTorchJob": TRAINING,
    "TFJob": TRAINING,
    "XGBoostJob": TRAINING,
    "PaddleJob": TRAINING,
    "JAXJob": TRAINING,
    "MPIJob": MPI,
}
RAY = "ray.io/v1"
APP_WRAPPER = "workload.codeflare.dev/v1beta2"
SERVED_SECONDS = 30.0  # until an API server serves a new CRD, or has forgotten one; 4 s for all

Strings = Mapping[str, str]


@contextmanager
def served(cluster: Cluster, kinds: Iterable[str] = tuple(VERSIONS)) -> Iterator[None]:
    """The API server knows these kinds; afterwards neither them nor objects of theirs."""
    with defined(cluster, map(definition, kinds)):
        yield


@contextmanager
def defined(cluster: Cluster, definitions: Iterable[Object]) -> Iterator[None]:
    """The same of the kinds of these CRDs."""
    by_name = {one["metadata"]["name"]: one for one in definitions}
    names = list(by_name)
    try:
        cluster.create_all(by_name.values())
        for name, one in by_name.items():
            cluster.wait(partial(is_served, cluster, one), SERVED_SECONDS, f"{name} is served")
        yield
    finally:
        for name in names:
            if not is_undefined(cluster, name):
                cluster.delete("CustomResourceDefinition", name)
        for name in names:
            # Its objects go first, and until then there is no new one of that name.
            cluster.wait(partial(is_undefined, cluster, name), SERVED_SECONDS, f"{name} is gone")


def definition(kind: str) -> Object:
    """The CRD of that kind, of the version crds.txt names. Raises: KeyError; BinariesMissing."""
    # The loader in C takes 50 ms for a megabyte; the other one takes seconds.
    with crd_files()[kind].open(encoding="utf-8") as file:
        content: Object = yaml.load(file, yaml.CSafeLoader)
    return content


def crd_files() -> dict[str, Path]:
    """Kind -> the file of its CRD. Raises: BinariesMissing."""
    folder = binaries() / "crds"
    lines = (HERE / "crds.txt").read_text(encoding="utf-8").splitlines()
    named = (line.split() for line in lines if line and not line.startswith("#"))
    return {kind: folder / f"{kind}-{version}.yaml" for kind, _, version, _ in named}


def is_served(cluster: Cluster, definition: Object) -> bool:
    """Whether the API server answers for objects of the kind that a CRD defines."""
    spec = definition["spec"]
    version = next(each["name"] for each in spec["versions"] if each["served"])
    try:
        cluster.request("GET", f"/apis/{spec['group']}/{version}/{spec['names']['plural']}")
    except Refused:  # 404 before it is known, 429 while its storage is being made
        return False
    return True


def is_undefined(cluster: Cluster, name: str) -> bool:
    """Whether there is no CRD of that name."""
    return cluster.get("CustomResourceDefinition", name) is None


def template(annotations: Strings, requests: Strings | None = None, **spec: Any) -> Object:
    """A pod template that is complete but for the labels of its controller."""
    one = pod("", requests=requests, annotations=annotations, labels={"app": "train"}, **spec)
    metadata = {name: one["metadata"][name] for name in ("labels", "annotations")}
    return {"metadata": metadata, "spec": one["spec"]}


def stateful_set(
    name: str,
    pods: int,
    annotations: Strings,
    requests: Strings | None = None,
    *,
    policy: str = "Parallel",
) -> Object:
    """A StatefulSet. policy: its podManagementPolicy."""
    return _object(
        STATEFUL_SET,
        "StatefulSet",
        name,
        {
            "replicas": pods,
            "serviceName": name,
            "podManagementPolicy": policy,
            "selector": {"matchLabels": {"app": "train"}},
            "template": template(annotations, requests),
        },
    )


def job_set(
    name: str,
    annotations: Strings,
    requests: Strings | None = None,
    *,
    driver: Strings,
    jobs: int = 4,
    pods: int = 2,
    order: str = "AnyOrder",
) -> Object:
    """A JobSet of a driver pod and `jobs` Jobs `w` of that many pods each.

    driver: the annotations of the driver's pod, which asks for no GPU. order: startupPolicyOrder.
    """
    drivers = job("", pods=1, annotations=driver)["spec"]
    workers = job("", pods=pods, requests=requests, annotations=annotations)["spec"]
    return _object(
        JOB_SET,
        "JobSet",
        name,
        {
            "replicatedJobs": [
                {"name": "driver", "replicas": 1, "template": {"spec": drivers}},
                {"name": "w", "replicas": jobs, "template": {"spec": workers}},
            ],
            "network": {"enableDNSHostnames": True, "publishNotReadyAddresses": True},
            "startupPolicy": {"startupPolicyOrder": order},
            "successPolicy": {"operator": "All", "targetReplicatedJobs": ["driver"]},
            "failurePolicy": {"maxRestarts": 3, "restartStrategy": "Recreate"},
            "suspend": False,
            "ttlSecondsAfterFinished": 3600,
        },
    )


def leader_worker_set(
    name: str,
    annotations: Strings,
    requests: Strings | None = None,
    *,
    groups: int = 1,
    size: int = 4,
    leader: Strings | None = None,
    startup: str = "LeaderCreated",
) -> Object:
    """A LeaderWorkerSet of groups of that size, the leader counted in.

    leader: the annotations of a leader template of its own; None: there is none.
    """
    leaders = {} if leader is None else {"leaderTemplate": template(leader, requests)}
    update = {"maxUnavailable": 1, "maxSurge": 0, "partition": 0}
    return _object(
        LEADER_WORKER_SET,
        "LeaderWorkerSet",
        name,
        {
            "replicas": groups,
            "startupPolicy": startup,
            "networkConfig": {"subdomainPolicy": "Shared"},
            "rolloutStrategy": {"type": "RollingUpdate", "rollingUpdateConfiguration": update},
            "leaderWorkerTemplate": {
                "size": size,
                "restartPolicy": "RecreateGroupOnPodRestart",
                "workerTemplate": template(annotations, requests),
                **leaders,
            },
        },
    )


def training_job(
    kind: str, field: str, name: str, types: Mapping[str, tuple[Strings, int]]
) -> Object:
    """One of Kubeflow's jobs; types: replica type -> annotations of its pods, how many there are.

    field: where its kind keeps the replica types.
    """
    replicas = {
        replica_type: {
            "replicas": pods,
            "restartPolicy": "Never",
            "template": template(annotations),
        }
        for replica_type, (annotations, pods) in types.items()
    }
    policy = {"cleanPodPolicy": "Running", "backoffLimit": 3, "suspend": False}
    return _object(VERSIONS[kind], kind, name, {"runPolicy": policy, field: replicas})


def ray_cluster(
    name: str, annotations: Strings, requests: Strings, *, workers: int, hosts: int = 1
) -> Object:
    """A RayCluster of a head, which asks for no GPU, and `workers` pods, `hosts` to a replica.

    annotations: of the head and the workers alike.
    """
    return _object(RAY, "RayCluster", name, _ray_cluster(annotations, requests, workers, hosts))


def ray_job(name: str, annotations: Strings, requests: Strings, *, workers: int) -> Object:
    """A RayJob that makes a RayCluster like that of `ray_cluster`."""
    cluster = _ray_cluster(annotations, requests, workers, 1)
    return _object(RAY, "RayJob", name, {"entrypoint": "train", "rayClusterSpec": cluster})


def _ray_cluster(annotations: Strings, requests: Strings, workers: int, hosts: int) -> Object:
    replicas = workers // hosts
    group = {
        "groupName": "workers",
        "replicas": replicas,
        "minReplicas": replicas,
        "maxReplicas": replicas,
        "numOfHosts": hosts,
        "rayStartParams": {},
        "template": template(annotations, requests),
    }
    return {
        "rayVersion": "2.46.0",
        "headGroupSpec": {"rayStartParams": {}, "template": template(annotations)},
        "workerGroupSpecs": [group],
    }


def app_wrapper(name: str, *components: Object) -> Object:
    """An AppWrapper that makes these objects."""
    wrapped = [{"template": one} for one in components]
    return _object(APP_WRAPPER, "AppWrapper", name, {"components": wrapped})


def _object(version: str, kind: str, name: str, spec: Object) -> Object:
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": version, "kind": kind, "metadata": metadata, "spec": spec}
