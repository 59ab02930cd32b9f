"""KAI's PodGroups and Topologies as users, and its pod-grouper, write them; and their records."""

from __future__ import annotations

from typing import Any

import msgspec

from app.dialects.kai.pod_groups import PodGroupRecord, decode_pod_group
from app.dialects.kai.topology import TopologyRecord, decode_topology
from app.kube.core.objects import PodRecord
from tests.records import pod

GROUP_NAME = "pod-group-name"  # annotation of a pod
SUB_GROUP = "kai.scheduler/subgroup-name"  # label of a pod
Json = dict[str, Any]


def within(required: str = "", preferred: str = "", topology: str = "net") -> Json:
    """A topologyConstraint."""
    said = {
        "topology": topology,
        "requiredTopologyLevel": required,
        "preferredTopologyLevel": preferred,
    }
    return {key: value for key, value in said.items() if value}


def sub_group(name: str, least: int | None = None, parent: str = "", **more: Any) -> Json:
    """One of subGroups: `least` is its minMember; further keywords are fields as they are."""
    said = {"name": name, "minMember": least, "parent": parent or None, **more}
    return {key: value for key, value in said.items() if value is not None}


def pod_group(
    name: str, least: int | None = None, *sub_groups: Json, on: Json | None = None, **spec: Any
) -> Json:
    """`least`: its minMember; `on`: its topologyConstraint; further keywords as they are."""
    said = {"minMember": least, "queue": "default-queue", "topologyConstraint": on or {}, **spec}
    if sub_groups:
        said["subGroups"] = list(sub_groups)
    return {
        "apiVersion": "scheduling.run.ai/v2alpha2",
        "kind": "PodGroup",
        "metadata": {
            "name": name,
            "namespace": "default",
            "uid": f"uid-{name}",
            "resourceVersion": "7",
        },
        "spec": {key: value for key, value in said.items() if value is not None},
    }


def topology(name: str, *levels: str, aliases: tuple[str, ...] = ()) -> Json:
    """`aliases`: of the first levels, "" for none."""
    names = [*aliases, *[""] * len(levels)][: len(levels)]
    made = [
        {"nodeLabel": level, **({"alias": alias} if alias else {})}
        for level, alias in zip(levels, names, strict=True)
    ]
    return {
        "apiVersion": "kai.scheduler/v1alpha1",
        "kind": "Topology",
        "metadata": {"name": name, "uid": f"uid-kai-{name}", "resourceVersion": "7"},
        "spec": {"levels": made},
    }


def group(name: str, least: int | None = None, *sub_groups: Json, **more: Any) -> PodGroupRecord:
    return decode_pod_group(msgspec.json.encode(pod_group(name, least, *sub_groups, **more)))


def topology_record(name: str, *levels: str, aliases: tuple[str, ...] = ()) -> TopologyRecord:
    return decode_topology(msgspec.json.encode(topology(name, *levels, aliases=aliases)))


def member(name: str, sub_group: str = "", *, of: str = "pg", **more: Any) -> PodRecord:
    """A pod of a PodGroup."""
    labels = {**more.pop("labels", {}), **({SUB_GROUP: sub_group} if sub_group else {})}
    annotations = {GROUP_NAME: of, **more.pop("annotations", {})}
    return pod(name, labels=labels, annotations=annotations, **more)
