"""Grove's operator on the control plane: PodCliqueSets, and the PodGangs and pods of them.

    with grove_operator(plane, folder, {"block": BLOCK, "rack": RACK}):
        cluster.create(pod_clique_set("llm", clique("worker", 4, pack="rack"), pack="block"))
        with kubelets(plane):                   # else it never lets pods of scaled gangs go
            ...

Its webhooks are installed: they fill in what users leave out, and check what they write.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import yaml

from tests.certificates import pair
from tests.cluster import GPU, HOSTNAME, Cluster, Object, Refused, pod
from tests.controlplane.kinds import served
from tests.controlplane.plane import START_SECONDS, ControlPlane, free_ports, operator
from tests.controlplane.process import Process
from tests.controlplane.webhook import MUTATING, VALIDATING, path_of

KINDS = ("PodCliqueSet", "PodClique", "PodCliqueScalingGroup", "ClusterTopology", "PodGang")
VERSION = "grove.io/v1alpha1"
TOPOLOGY = "grove-topology"  # the one that it makes of its configuration
SCHEDULER = "default-scheduler"  # what it writes on pods; it refuses the name of any other
QUEUE = "kai.scheduler/queue"
CLEAR_SECONDS = 20.0

# Labels of its pods.
POD_GANG = "grove.io/podgang"
POD_CLIQUE = "grove.io/podclique"
BASE_POD_GANG = "grove.io/base-podgang"  # of a scaled gang alone
PART_OF = "app.kubernetes.io/part-of"
REPLICA = "grove.io/podcliqueset-replica-index"
SCALING_GROUP = "grove.io/podcliquescalinggroup"
SCALING_GROUP_REPLICA = "grove.io/podcliquescalinggroup-replica-index"


@contextmanager
def grove_operator(
    plane: ControlPlane, folder: Path, levels: Mapping[str, str], scheduler: str = SCHEDULER
) -> Iterator[Process]:
    """The operator while the block lasts; afterwards neither Grove's kinds nor objects of theirs.

    levels: name -> key of the label, widest first, without the node's. Raises: BinariesMissing.
    """
    cluster = plane.cluster()
    port, probes, metrics = free_ports(3)
    certificates = folder / "grove-certificates"
    certificates.mkdir()
    pair("grove").write(certificates)
    config = folder / "grove.yaml"
    server = {"bindAddress": "127.0.0.1"}
    profiles = [{"name": name} for name in dict.fromkeys((SCHEDULER, scheduler))]
    syncs = {"concurrentSyncs": 3}
    named = [{"domain": name, "key": key} for name, key in {**levels, "host": HOSTNAME}.items()]
    config.write_text(
        yaml.safe_dump(
            {
                "apiVersion": "operator.config.grove.io/v1alpha1",
                "kind": "OperatorConfiguration",
                "runtimeClientConnection": {"qps": 100, "burst": 150},
                "leaderElection": {"enabled": False},
                "server": {
                    "webhooks": {
                        **server,
                        "port": port,
                        "serverCertDir": str(certificates),
                        "certProvisionMode": "manual",
                    },
                    "healthProbes": {**server, "port": probes},
                    "metrics": {**server, "port": metrics},
                },
                "controllers": {
                    kind: syncs
                    for kind in ("podCliqueSet", "podClique", "podCliqueScalingGroup", "podGang")
                },
                "scheduler": {"defaultProfileName": scheduler, "profiles": profiles},
                "logLevel": "info",
                "logFormat": "text",
                "authorizer": {"enabled": False},
                "topologyAwareScheduling": {"enabled": True, "levels": named},
            }
        ),
        encoding="utf-8",
    )
    environment = ["GROVE_INIT_CONTAINER_IMAGE=none", f"KUBECONFIG={plane.kubeconfig()}"]
    with served(cluster, KINDS), ExitStack() as removals:
        process = Process(
            ["env", *environment, operator("grove-operator"), "--config", config],
            folder / "grove-operator.log",
        )
        try:
            for one in _configurations(f"https://127.0.0.1:{port}"):
                path = path_of(one["kind"])
                cluster.request("POST", path, body=one)
                its = f"{path}/{one['metadata']['name']}"
                removals.callback(partial(cluster.request, "DELETE", its))
            cluster.wait(partial(_is_effective, cluster, process), START_SECONDS, "Grove's start")
            yield process
            process.check()
        finally:
            try:
                clear(cluster)  # while it is there to take its finalizers off
            finally:
                process.stop()


def _configurations(url: str) -> Iterator[Object]:
    """Its webhooks, as its chart has them but for where they are."""
    rule = {
        "apiGroups": ["grove.io"],
        "apiVersions": ["v1alpha1"],
        "operations": ["CREATE", "UPDATE"],
        "resources": ["podcliquesets"],
        "scope": "Namespaced",
    }
    bundle = base64.b64encode(pair("grove").certificate).decode()
    for kind, name, path in (
        (MUTATING, "defaulting", "default-podcliqueset"),
        (VALIDATING, "validating", "validate-podcliqueset"),
    ):
        webhook = {
            "name": f"pcs.{name}.webhooks.grove.io",
            "admissionReviewVersions": ["v1"],
            "clientConfig": {"url": f"{url}/webhooks/{path}", "caBundle": bundle},
            "failurePolicy": "Fail",
            "matchPolicy": "Exact",
            "rules": [rule],
            "sideEffects": "None",
            "timeoutSeconds": 10,
        }
        yield {
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": kind,
            "metadata": {"name": f"podcliqueset-{name}-webhook"},
            "webhooks": [webhook],
        }


def _is_effective(cluster: Cluster, process: Process) -> bool:
    """Whether it has made its topology, and its webhooks answer."""
    process.check()
    probe = pod_clique_set("probe", clique("any", 1))
    path = f"/apis/{VERSION}/namespaces/default/podcliquesets"
    try:
        made = cluster.request("POST", path, body=probe, params={"dryRun": "All"}).json()
    except Refused:
        return False
    is_filled_in = "terminationDelay" in made["spec"]["template"]
    return is_filled_in and cluster.get("ClusterTopology", TOPOLOGY) is not None


def clear(cluster: Cluster) -> None:
    """Nothing but its topology is left. Raises: TimeoutError."""
    clear_pods(cluster)
    for kind in ("PodCliqueSet", "PodGang"):
        cluster.clear(kind, CLEAR_SECONDS)


def clear_pods(cluster: Cluster) -> None:
    """Its pods are gone, and objects that it takes seconds to take its finalizers off will be."""
    cluster.delete_all("PodCliqueSet")
    cluster.wait(lambda: not cluster.list("Pod", "default"), CLEAR_SECONDS, "no pods left")


# -- what users write --------------------------------------------------------------------------


def clique(
    name: str, pods: int, *, gpus: int = 8, least: int | None = None, pack: str = "", **spec: Any
) -> Object:
    """A clique of pods of as many GPUs; `least` is its minAvailable, None: all of them."""
    made = pod("", requests={GPU: gpus} if gpus else None)["spec"]
    del made["schedulerName"]  # a name that Grove does not know is refused
    made["containers"][0]["name"] = name
    said: Object = {"roleName": name, "replicas": pods, "podSpec": {**made, **spec}}
    if least is not None:
        said["minAvailable"] = least
    return {"name": name, "spec": said, **_packed(pack)}


def scaling_group(
    name: str, *cliques: str, replicas: int, least: int = 1, pack: str = ""
) -> Object:
    """Cliques, by name, that are scaled together; `least` is its minAvailable."""
    said = {"cliqueNames": list(cliques), "replicas": replicas, "minAvailable": least}
    return {"name": name, **said, **_packed(pack)}


def pod_clique_set(
    name: str,
    *cliques: Object,
    groups: Sequence[Object] = (),
    replicas: int = 1,
    pack: str = "",
    termination_delay: str = "",
) -> Object:
    """A PodCliqueSet; `groups` are its scaling groups."""
    template: Object = {"cliques": list(cliques), **_packed(pack)}
    if groups:
        template["podCliqueScalingGroups"] = list(groups)
    if termination_delay:
        template["terminationDelay"] = termination_delay
    return {
        "apiVersion": VERSION,
        "kind": "PodCliqueSet",
        "metadata": {"name": name, "namespace": "default", "labels": {QUEUE: "default-queue"}},
        "spec": {"replicas": replicas, "template": template},
    }


def _packed(pack: str) -> Object:
    return {"topologyConstraint": {"packDomain": pack}} if pack else {}


# -- what it makes of that ---------------------------------------------------------------------


def pods_of(cluster: Cluster, name: str) -> list[Object]:
    """The pods of a PodCliqueSet that are not being deleted."""
    found = cluster.list("Pod", "default", labelSelector=f"{PART_OF}={name}")
    return [each for each in found if "deletionTimestamp" not in each["metadata"]]


def bound(cluster: Cluster, name: str) -> dict[str, str]:
    """Those of its pods that have a node: name -> node."""
    return {
        each["metadata"]["name"]: each["spec"]["nodeName"]
        for each in pods_of(cluster, name)
        if each["spec"].get("nodeName")
    }


def why(cluster: Cluster, name: str) -> dict[str, str]:
    """PodGang -> what it says of why it is not scheduled; of a PodCliqueSet's, those that do."""
    said = {}
    for each in cluster.list("PodGang", "default", labelSelector=f"{PART_OF}={name}"):
        for one in each.get("status", {}).get("conditions", ()):
            if one["type"] == "Scheduled" and one["status"] == "False":
                said[each["metadata"]["name"]] = one["message"]
    return said
