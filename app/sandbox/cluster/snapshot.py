"""Loads a recorded or synthetic cluster (`cluster-snapshot/v1`) into the store.

The recorded one has no nodeName on its pods: `load` places the first pods of the list, best fit,
until that share of the cluster is in use; the rest is left out. Nothing is validated here: a
record may hold what today's API would refuse.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import orjson

from app.sandbox.apiserver.rules.quantity import amount
from app.sandbox.apiserver.rules.registry import Registry
from app.sandbox.apiserver.storage.kinds import NAMESPACE, NODE, POD, Object
from app.sandbox.apiserver.storage.store import Stored
from app.sandbox.scheduler.cycle.filters import filter_nodes
from app.sandbox.scheduler.facts.node_table import Columns, NodeTable
from app.sandbox.scheduler.facts.pod_facts import PodFacts, facts_of, pod_requests

SCHEMA = "cluster-snapshot/v1"
BLOCK, RACK = "cloud.provider.com/topology-block", "cloud.provider.com/topology-rack"
_PODS_PER_NODE = "110"  # the kubelet's default, for nodes recorded without it
# The second of the two names under which the recorded cluster counts its GPUs: counting both
# would count them twice.
_COUNTED_TWICE = "alibabacloud.com/gpu-milli"

Shares = npt.NDArray[np.float64]


class InvalidSnapshot(ValueError):
    """The file is not a snapshot, or an overlay does not belong to it."""


@dataclass(frozen=True, slots=True)
class LoadOptions:
    """overlay: node -> (block, rack), added as labels.

    load: None keeps the pods that name a node and creates the others unbound; a fraction 0..1
        binds the first pods of the list until the fullest resource is used that far; the rest
        is left out.
    """

    overlay: Mapping[str, Sequence[str]] | None = None
    load: float | None = None


@dataclass(frozen=True, slots=True)
class Loaded:
    """How much came in."""

    nodes: int
    pods_bound: int
    pods_waiting: int


def read(path: Path) -> Object:
    """The object in a JSON file, gzipped or not. Raises: InvalidSnapshot, OSError."""
    raw = path.read_bytes()
    try:
        if raw[:2] == b"\x1f\x8b":
            raw = gzip.decompress(raw)
        content: Object = orjson.loads(raw)
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise InvalidSnapshot(f"{path}: gzip: {error}") from error
    except orjson.JSONDecodeError as error:
        raise InvalidSnapshot(f"{path}: not JSON: {error}") from error
    if not isinstance(content, dict):
        raise InvalidSnapshot(f"{path}: not a JSON object")
    return content


def read_cluster(path: Path) -> Object:
    """A recorded cluster. Raises: InvalidSnapshot naming the file and the field; OSError."""
    content = read(path)
    try:
        _check(content)
    except InvalidSnapshot as error:
        raise InvalidSnapshot(f"{path}: {error}") from error
    return content


def _check(content: Object) -> None:
    """Nodes and pods are objects with names, of amounts that are quantities.

    Raises: InvalidSnapshot.
    """
    _check_schema(content)
    for field, listed in (("nodes", content.get("nodes")), ("pods", content.get("pods", []))):
        if not isinstance(listed, list):
            raise InvalidSnapshot(f"{field}: not a list")
        for at, body in enumerate(listed):
            metadata = body.get("metadata") if isinstance(body, dict) else None
            if not isinstance(metadata, dict) or not isinstance(metadata.get("name"), str):
                raise InvalidSnapshot(f"{field}[{at}]: metadata.name: not a text")
            if field == "pods" and not isinstance(body.get("spec"), dict):
                raise InvalidSnapshot(f"pods[{at}]: spec: not an object")
            _check_amounts(f"{field}[{at}]", body, is_node=field == "nodes")


def _check_amounts(where: str, body: Object, *, is_node: bool) -> None:
    """Raises: InvalidSnapshot for what the scheduler could not count, or read at all."""
    try:
        if is_node:
            allocatable = _node(body, LoadOptions())["status"]["allocatable"]
            for name, text in allocatable.items():
                amount(name, text)
        else:
            pod_requests(_pod(body)["spec"])
    except ValueError as error:
        raise InvalidSnapshot(f"{where}: {error}") from error
    except (AttributeError, KeyError, TypeError) as error:
        raise InvalidSnapshot(f"{where}: not as the API has it: {error}") from error


def _check_schema(content: Object) -> None:
    if content.get("schema") != SCHEMA:
        raise InvalidSnapshot(f"schema {content.get('schema')!r} is not {SCHEMA!r}")


def overlay_named(overlays: Object, name: str) -> Mapping[str, Sequence[str]]:
    """One overlay of a topology-overlay/v1 file. Raises: InvalidSnapshot naming those it has."""
    known = overlays.get("overlays") or {}
    if name not in known:
        raise InvalidSnapshot(f"overlay {name!r} is not one of {sorted(known)}")
    chosen = known[name]
    nodes: Mapping[str, Sequence[str]] = chosen.get("nodes", chosen)
    return nodes


def load(registry: Registry, snapshot: Object, options: LoadOptions) -> Loaded:
    """Store the snapshot's nodes and pods. Raises: InvalidSnapshot."""
    _check_schema(snapshot)
    for body in snapshot["nodes"]:
        registry.adopt(NODE, _node(body, options))
    pods = [_pod(body) for body in snapshot.get("pods", [])]
    for namespace in {pod["metadata"]["namespace"] for pod in pods}:
        if registry.store.get(NAMESPACE, ("", namespace)) is None:
            registry.create(NAMESPACE, "", {"metadata": {"name": namespace}})
    if options.load is not None:
        nodes = registry.store.values(NODE)
        pods = _placed(nodes, pods, options.load)
    bound = 0
    for pod in pods:
        node = pod["spec"].get("nodeName", "")
        registry.adopt(POD, pod | {"status": _status(pod, node)})
        bound += bool(node)
    return Loaded(len(snapshot["nodes"]), bound, len(pods) - bound)


def _node(body: Object, options: LoadOptions) -> Object:
    name = body["metadata"]["name"]
    labels = {"kubernetes.io/hostname": name} | (body["metadata"].get("labels") or {})
    if options.overlay is not None and name in options.overlay:
        block, rack = options.overlay[name][:2]
        labels |= {BLOCK: block, RACK: rack}
    status = body.get("status") or {}
    allocatable = {"pods": _PODS_PER_NODE} | _counted_once(status.get("allocatable") or {})
    ready = [{"type": "Ready", "status": "True"}]
    status = {"conditions": ready} | status
    status |= {"allocatable": allocatable, "capacity": status.get("capacity") or allocatable}
    return body | {
        "metadata": body["metadata"] | {"labels": labels},
        "spec": body.get("spec") or {},
        "status": status,
    }


def _pod(body: Object) -> Object:
    metadata = {"namespace": "default"} | body["metadata"]
    spec = {"schedulerName": "default-scheduler", "priority": 0} | body["spec"]
    for field in ("containers", "initContainers"):
        if field in spec:
            spec[field] = [_container(each) for each in spec[field]]
    return body | {"metadata": metadata, "spec": spec}


def _container(container: Object) -> Object:
    resources = container.get("resources") or {}
    kept = {part: _counted_once(amounts) for part, amounts in resources.items()}
    return container | {"resources": kept}


def _counted_once(amounts: Object) -> Object:
    return {name: text for name, text in amounts.items() if name != _COUNTED_TWICE}


def _status(pod: Object, node: str) -> Object:
    """A pod with a node runs, whatever became of it when the cluster was recorded."""
    if not node:
        return {"phase": "Pending"}
    condition = {"type": "PodScheduled", "status": "True"}
    return (pod.get("status") or {}) | {"phase": "Running", "conditions": [condition]}


def _placed(nodes: list[Stored], pods: list[Object], load_wanted: float) -> list[Object]:
    """The pods of the list, in order, each on its best-fitting node, until the load is reached.

    Load: the largest used share over cpu, memory and every other resource the cluster has.
    Best fit: the node that keeps the smallest sum of free shares; ties by order.
    """
    table = NodeTable()
    table.set_nodes(nodes)
    totals = dict(zip(table.rows, table.allocatable.sum(axis=1).tolist(), strict=True))
    used = dict.fromkeys(totals, 0)
    every_node: Columns = np.arange(len(table), dtype=np.intp)
    placed: list[Object] = []
    reached = 0.0
    for place, pod in enumerate(pods):
        if reached >= load_wanted:
            break
        facts = _facts(pod, place)
        feasible = filter_nodes(table, facts, every_node, len(table)).feasible
        if not feasible.size:
            continue
        best = int(feasible[np.argmin(_free_shares(table, feasible))])
        node = table.names[best]
        table.add_pod(facts, node)
        placed.append(pod | {"spec": pod["spec"] | {"nodeName": node}})
        for name, wanted in facts.requests.items():
            used[name] += wanted
            reached = max(reached, used[name] / totals[name])
    return placed


def _free_shares(table: NodeTable, columns: Columns) -> Shares:
    total = np.maximum(table.allocatable[1:, columns], 1)
    free = (table.allocatable[1:, columns] - table.used[1:, columns]) / total
    shares: Shares = free.sum(axis=0)
    return shares


def _facts(pod: Object, place: int) -> PodFacts:
    metadata = pod["metadata"] | {"uid": f"placing-{place}"}
    return facts_of(Stored(pod | {"metadata": metadata}, 0))
