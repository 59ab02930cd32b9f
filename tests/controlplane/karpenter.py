"""Karpenter as it is released, with its own kwok provider: the nodes it makes are Node objects.

    with karpenter(plane, folder):                    # knows one kind of machine, with 8 GPUs
        create_pool(cluster, labels={RACK: "r0"})     # from here on it makes nodes
        with kubelets_of_nodes(cluster):              # … which become Ready
            cluster.wait(lambda: cluster.bound(), 20)

A node stays as its NodePool makes it until `kubelets_of_nodes` or `label_nodes` do something to it.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from tests.cluster import GPU, STRATEGIC, Cluster, Object, Objects, Refused, collection
from tests.controlplane.kinds import served
from tests.controlplane.plane import ControlPlane, free_ports, operator, wait_ready
from tests.controlplane.process import Process

KINDS = ("NodePool", "NodeClaim", "KWOKNodeClass")
POOL = "karpenter.sh/nodepool"  # label of its nodes
DO_NOT_DISRUPT = "karpenter.sh/do-not-disrupt"
GPUS = 8  # of the only machine it can have

LOOK_SECONDS = 0.1  # between two looks at the nodes
GONE_SECONDS = 30.0  # until nodes that are deleted are gone; 2 s as a rule

_ZONE = {"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["zone-a"]}
_ON_DEMAND = {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["on-demand"]}
MACHINES = [
    {
        "name": "gpu-8",
        "offerings": [{"Price": 1.0, "Available": True, "Requirements": [_ON_DEMAND, _ZONE]}],
        "architecture": "amd64",
        "operatingSystems": ["linux"],
        "resources": {"cpu": "64", "memory": "512Gi", GPU: str(GPUS)},
    }
]


@contextmanager
def karpenter(plane: ControlPlane, folder: Path) -> Iterator[Process]:
    """Karpenter while the block lasts; afterwards neither its kinds nor objects of theirs.

    Its two ports are free ones, but on every address of the machine: it has no flag for that.
    Raises: BinariesMissing.
    """
    machines = folder / "machines.json"
    machines.write_text(json.dumps(MACHINES), encoding="utf-8")
    health, metrics = free_ports(2)
    with served(plane.cluster(), KINDS):
        process = Process(
            [
                "env",
                f"KUBECONFIG={plane.kubeconfig()}",
                operator("karpenter"),
                "--disable-leader-election=true",
                # Twice as long it leaves a node alone that it has made for a pod.
                "--batch-max-duration=5s",
                f"--instance-types-file-path={machines}",
                f"--health-probe-port={health}",
                f"--metrics-port={metrics}",
            ],
            folder / "karpenter.log",
        )
        process.name = "karpenter"
        try:
            wait_ready(process, f"http://127.0.0.1:{health}/readyz")
            yield process
            process.check()
        finally:
            process.stop()


def create_pool(
    cluster: Cluster, *, labels: Mapping[str, str] | None = None, disrupt_after: str = "Never"
) -> None:
    """A NodePool `gpu`, with labels for its nodes.

    disrupt_after: how long a node that is empty, or not needed, stays so; a duration or "Never".
    """
    of_class = {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "gpu"}
    spec = {
        "template": {
            "metadata": {"labels": dict(labels or {})},
            "spec": {
                "requirements": [_ON_DEMAND],
                "nodeClassRef": of_class,
                "expireAfter": "Never",
            },
        },
        "disruption": {
            "consolidationPolicy": "WhenEmptyOrUnderutilized",
            "consolidateAfter": disrupt_after,
            "budgets": [{"nodes": "100%"}],
        },
    }
    cluster.create(_object("karpenter.kwok.sh/v1alpha1", "KWOKNodeClass", {}))
    cluster.create(_object("karpenter.sh/v1", "NodePool", spec))


def clear(cluster: Cluster) -> None:
    """No NodePool, no node of one and no pod; Karpenter has to run."""
    cluster.delete_all("NodePool")
    cluster.delete_all("KWOKNodeClass")
    cluster.clear("Pod")
    for one in machines(cluster):
        # Karpenter does not drain a machine that is gone, which takes it seconds.
        _report(cluster, one, is_ready=False)
    cluster.wait(lambda: _is_clear(cluster), GONE_SECONDS, "no node of Karpenter's left")


def _is_clear(cluster: Cluster) -> bool:
    """Whether nothing of Karpenter's is left; what is, is deleted."""
    if cluster.list("NodeClaim"):
        cluster.delete_all("NodeClaim")
        return False
    # Its provider forgets those whose NodeClaim has gone before Karpenter knew the node.
    cluster.request("DELETE", collection("Node"), params={"labelSelector": POOL})
    return not machines(cluster)


def machines(cluster: Cluster) -> Objects:
    """The nodes that Karpenter has made."""
    return cluster.list("Node", labelSelector=POOL)


def label_nodes(cluster: Cluster, nodes: Objects, labels: Mapping[str, str]) -> None:
    """These nodes get labels, as a provider adds those of its network once they run."""
    for one in nodes:
        cluster.patch("Node", one["metadata"]["name"], {"metadata": {"labels": dict(labels)}})


@contextmanager
def kubelets_of_nodes(cluster: Cluster) -> Iterator[None]:
    """While the block lasts, the nodes that Karpenter makes become Ready."""
    over = threading.Event()

    def run() -> None:
        while not over.wait(LOOK_SECONDS):
            for one in machines(cluster):
                if not is_ready(one):
                    _report(cluster, one, is_ready=True)

    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(run)
        try:
            yield
        finally:
            over.set()
            running.result()


def is_ready(node: Object) -> bool:
    """Whether its kubelet has reported."""
    conditions = node["status"].get("conditions", [])
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)


def is_initialized(node: Object) -> bool:
    """Whether Karpenter takes it for a node that pods can use."""
    return node["metadata"]["labels"].get("karpenter.sh/initialized") == "true"


def _report(cluster: Cluster, node: Object, *, is_ready: bool) -> None:
    """Writes that into the node's status, unless it has gone meanwhile."""
    condition = {"type": "Ready", "status": str(is_ready), "reason": "Test"}
    name = f"{node['metadata']['name']}/status"
    try:
        cluster.patch("Node", name, {"status": {"conditions": [condition]}}, content_type=STRATEGIC)
    except Refused as refused:
        if refused.status != 404:
            raise


def _object(version: str, kind: str, spec: Object) -> Object:
    metadata = {"name": "gpu"}
    return {"apiVersion": version, "kind": kind, "metadata": metadata, "spec": spec}
