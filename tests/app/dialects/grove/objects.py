"""Grove's PodGangs and topologies as its operator writes them; and their records."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from app.dialects.grove.pod_gangs import PodGangRecord, decode_pod_gang
from app.dialects.grove.topology import ClusterTopologyRecord, decode_topology
from app.kube.core.objects import PodRecord
from tests.records import pod

POD_GANG, POD_CLIQUE = "grove.io/podgang", "grove.io/podclique"  # labels of a pod
TOPOLOGY = "grove.io/topology-name"  # annotation of a PodGang
GATE = "grove.io/podgang-pending-creation"
CREATED: dict[str, Any] = {
    "type": "Initialized",
    "status": "True",
    "reason": "PodGangPodsCreated",
    "message": "",
    "lastTransitionTime": "2026-01-01T00:00:00Z",
}
# What levels are called until v0.1.0-alpha.8, which takes no other names.
LEVELS = dict(enumerate(("region", "zone", "datacenter", "block", "rack", "host", "numa")))
Json = dict[str, Any]


def within(required: str = "", preferred: str = "") -> Json:
    """A topologyConstraint."""
    said = {"required": required, "preferred": preferred}
    return {"packConstraint": {key: value for key, value in said.items() if value}}


def pod_group(name: str, least: int, on: Json | None = None, *, names: Iterable[str] = ()) -> Json:
    """One of podgroups: `least` is its minReplicas; `names`: the pods that it names."""
    named = [{"namespace": "default", "name": each} for each in names]
    said = {"name": name, "minReplicas": least, "podReferences": named, "topologyConstraint": on}
    return {key: value for key, value in said.items() if value is not None}


def together(name: str, *pod_groups: str, on: Json | None = None) -> Json:
    """One of topologyConstraintGroupConfigs."""
    said = {"name": name, "podGroupNames": list(pod_groups), "topologyConstraint": on}
    return {key: value for key, value in said.items() if value is not None}


def pod_gang(
    name: str,
    *pod_groups: Json,
    groups: tuple[Json, ...] = (),
    on: Json | None = None,
    topology: str = "grove-topology",
) -> Json:
    """`on`: its topologyConstraint; `topology`: "" for none that it names."""
    said = {
        "podgroups": list(pod_groups),
        "topologyConstraint": on,
        "topologyConstraintGroupConfigs": list(groups) or None,
    }
    return {
        "apiVersion": "scheduler.grove.io/v1alpha1",
        "kind": "PodGang",
        "metadata": {
            "name": name,
            "namespace": "default",
            "uid": f"uid-podgang-{name}",
            "resourceVersion": "7",
            "annotations": {TOPOLOGY: topology} if topology else {},
        },
        "spec": {key: value for key, value in said.items() if value is not None},
        "status": {"phase": "Pending", "conditions": [CREATED]},
    }


def cluster_topology(name: str, *levels: str, kind: str = "ClusterTopology") -> Json:
    return {
        "apiVersion": "grove.io/v1alpha1",
        "kind": kind,
        "metadata": {"name": name, "uid": f"uid-grove-{name}", "resourceVersion": "7"},
        "spec": {
            "levels": [
                {"domain": LEVELS.get(at, f"d{at}"), "key": key} for at, key in enumerate(levels)
            ]
        },
    }


def gang(name: str, *pod_groups: Json, **more: Any) -> PodGangRecord:
    return decode_pod_gang(msgspec.json.encode(pod_gang(name, *pod_groups, **more)))


def topology_record(
    name: str, *levels: str, kind: str = "ClusterTopology"
) -> ClusterTopologyRecord:
    made = cluster_topology(name, *levels, kind=kind)
    return decode_topology(msgspec.json.encode(made), kind=kind)


def member(name: str, pod_group: str, *, of: str = "g", **more: Any) -> PodRecord:
    """A pod of a PodGang."""
    labels = {POD_GANG: of, POD_CLIQUE: pod_group, **more.pop("labels", {})}
    return pod(name, labels=labels, **more)
