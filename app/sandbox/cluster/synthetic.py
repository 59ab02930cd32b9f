"""Synthetic clusters in the schema of the recorded ones, from a few numbers and a seed."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from app.sandbox.apiserver.storage.kinds import Object
from app.sandbox.cluster.snapshot import BLOCK, RACK, SCHEMA

GPU = "nvidia.com/gpu"
NODES_PER_RACK, RACKS_PER_BLOCK = 16, 8
# What every machine offers.
GPUS, _CORES, _GIBIBYTES, _PODS = 8, 96, 768, 110


@dataclass(frozen=True, slots=True)
class ClusterPlan:
    """load: the share of each node that single pods use on average, 0..1."""

    nodes: int
    load: float = 0.0
    seed: int = 0


def synthetic_snapshot(plan: ClusterPlan) -> Object:
    """A `cluster-snapshot/v1`: equal nodes with level labels, and pods that name their node.

    The last rack and the last block may be smaller. The same plan gives the same snapshot.
    """
    rng = Random(f"{plan.seed}/cluster")
    nodes = [_node(place) for place in range(plan.nodes)]
    pods = [pod for node in nodes for pod in _pods(node["metadata"]["name"], plan.load, rng)]
    return {
        "schema": SCHEMA,
        "name": f"synthetic-{plan.nodes}",
        "synthetic": True,
        "nodes": nodes,
        "pods": pods,
    }


def _node(place: int) -> Object:
    rack = place // NODES_PER_RACK
    block = rack // RACKS_PER_BLOCK
    name = f"node-{place:05d}"
    labels = {
        "kubernetes.io/hostname": name,
        BLOCK: f"block-{block:03d}",
        RACK: f"block-{block:03d}-rack-{rack % RACKS_PER_BLOCK:02d}",
    }
    allocatable = {
        "cpu": str(_CORES),
        "memory": f"{_GIBIBYTES}Gi",
        "pods": str(_PODS),
        GPU: str(GPUS),
    }
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "status": {
            "allocatable": allocatable,
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


def _pods(node: str, load: float, rng: Random) -> list[Object]:
    """Single pods of one GPU each, with its share of the node."""
    used = sum(rng.random() < load for _ in range(GPUS))
    requests = {
        "cpu": f"{_CORES * 1000 // GPUS}m",
        "memory": f"{_GIBIBYTES // GPUS}Gi",
        GPU: "1",
    }
    resources = {"requests": requests, "limits": requests}
    return [
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": f"load-{node}-{unit}", "namespace": "load"},
            "spec": {
                "nodeName": node,
                "containers": [{"name": "main", "image": "load", "resources": resources}],
            },
            "status": {"phase": "Running"},
        }
        for unit in range(used)
    ]
