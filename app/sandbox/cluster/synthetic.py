"""Synthetic clusters in the schema of the recorded ones, from a few numbers and a seed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from app.sandbox.apiserver.storage.kinds import Object
from app.sandbox.cluster.snapshot import BLOCK, RACK, SCHEMA

ZONE = "topology.kubernetes.io/zone"
GPU = "nvidia.com/gpu"


@dataclass(frozen=True, slots=True)
class NodeShape:
    """What one machine offers. Units: cores, GiB, devices."""

    name: str
    cpu: int
    memory: int
    gpus: int = 0
    weight: int = 1  # how many racks of this shape among all
    pods: int = 110


GPU_NODE = NodeShape("gpu8", cpu=96, memory=768, gpus=8)
CPU_NODE = NodeShape("cpu", cpu=64, memory=256)


@dataclass(frozen=True, slots=True)
class ClusterPlan:
    """nodes_per_rack, racks_per_block, blocks_per_zone: sizes; the last of each may be smaller.

    Racks hold one shape; the shapes take turns by weight. load: the share of each node that
    single pods use on average, 0..1.
    """

    nodes: int
    nodes_per_rack: int = 16
    racks_per_block: int = 8
    blocks_per_zone: int = 0  # 0: no zones
    shapes: Sequence[NodeShape] = (GPU_NODE,)
    load: float = 0.0
    seed: int = 0


def synthetic_snapshot(plan: ClusterPlan) -> Object:
    """A `cluster-snapshot/v1`: nodes with level labels, and pods that name their node.

    The same plan gives the same snapshot. Raises: ValueError for a plan without sense.
    """
    if plan.nodes < 0 or plan.nodes_per_rack < 1 or plan.racks_per_block < 1:
        raise ValueError(f"no cluster of {plan.nodes} nodes in racks of {plan.nodes_per_rack}")
    if not 0.0 <= plan.load <= 1.0:
        raise ValueError(f"load {plan.load} is not between 0 and 1")
    rng = Random(f"{plan.seed}/cluster")
    turns = [shape for shape in plan.shapes for _ in range(shape.weight)]
    nodes: list[Object] = []
    pods: list[Object] = []
    for place in range(plan.nodes):
        shape = turns[place // plan.nodes_per_rack % len(turns)]
        node = _node(plan, place, shape)
        nodes.append(node)
        pods += _pods(node["metadata"]["name"], shape, plan.load, rng)
    return {
        "schema": SCHEMA,
        "name": f"synthetic-{plan.nodes}",
        "synthetic": True,
        "nodes": nodes,
        "pods": pods,
    }


def _node(plan: ClusterPlan, place: int, shape: NodeShape) -> Object:
    rack = place // plan.nodes_per_rack
    block = rack // plan.racks_per_block
    name = f"node-{place:05d}"
    labels = {
        "kubernetes.io/hostname": name,
        BLOCK: f"block-{block:03d}",
        RACK: f"block-{block:03d}-rack-{rack % plan.racks_per_block:02d}",
        "node.kubernetes.io/instance-type": shape.name,
    }
    if plan.blocks_per_zone:
        labels[ZONE] = f"zone-{block // plan.blocks_per_zone:02d}"
    allocatable = {
        "cpu": str(shape.cpu),
        "memory": f"{shape.memory}Gi",
        "pods": str(shape.pods),
    }
    if shape.gpus:
        allocatable[GPU] = str(shape.gpus)
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "status": {
            "allocatable": allocatable,
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


def _pods(node: str, shape: NodeShape, load: float, rng: Random) -> list[Object]:
    """Single pods of one unit each: a GPU with its share of the node, or an eighth of a node."""
    units = shape.gpus or 8
    used = sum(rng.random() < load for _ in range(units))
    requests = {"cpu": f"{shape.cpu * 1000 // units}m", "memory": f"{shape.memory // units}Gi"}
    if shape.gpus:
        requests[GPU] = "1"
    return [
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": f"load-{node}-{unit}", "namespace": "load"},
            "spec": {
                "nodeName": node,
                "containers": [
                    {
                        "name": "main",
                        "image": "load",
                        "resources": {"requests": requests, "limits": requests},
                    }
                ],
            },
            "status": {"phase": "Running"},
        }
        for unit in range(used)
    ]
