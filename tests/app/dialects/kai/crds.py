"""CustomResourceDefinitions of KAI's kinds with what is read of them, for API servers of tests.

Fields, types and bounds are KAI's (v0.17); what is not read here is taken as it comes.
"""

from __future__ import annotations

from typing import Any

Json = dict[str, Any]

_TEXT: Json = {"type": "string"}
_NUMBER: Json = {"type": "integer", "format": "int32"}
_CONSTRAINT: Json = {
    "type": "object",
    "properties": {
        "topology": _TEXT,
        "requiredTopologyLevel": _TEXT,
        "preferredTopologyLevel": _TEXT,
    },
}
_SUB_GROUP: Json = {
    "type": "object",
    "required": ["name"],
    "properties": {
        "name": {"type": "string", "minLength": 1},
        "parent": _TEXT,
        "minMember": _NUMBER,
        "minSubGroup": _NUMBER,
        "topologyConstraint": _CONSTRAINT,
    },
}
_POD_GROUP: Json = {
    "minMember": _NUMBER,
    "minSubGroup": _NUMBER,
    "queue": _TEXT,
    "priorityClassName": _TEXT,
    "topologyConstraint": _CONSTRAINT,
    "subGroups": {"type": "array", "items": _SUB_GROUP},
}
_LEVEL: Json = {
    "type": "object",
    "required": ["nodeLabel"],
    "properties": {"nodeLabel": {"type": "string", "minLength": 1}, "alias": _TEXT},
}
_TOPOLOGY: Json = {"levels": {"type": "array", "minItems": 1, "maxItems": 16, "items": _LEVEL}}


def _crd(group: str, version: str, kind: str, plural: str, spec: Json, *, scope: str) -> Json:
    open_ended: Json = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    schema = {
        "type": "object",
        "properties": {"spec": {"type": "object", "properties": spec}, "status": open_ended},
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "scope": scope,
            "names": {"kind": kind, "plural": plural, "singular": kind.lower()},
            "versions": [
                {
                    "name": version,
                    "served": True,
                    "storage": True,
                    "subresources": {"status": {}} if kind == "PodGroup" else {},
                    "schema": {"openAPIV3Schema": schema},
                }
            ],
        },
    }


POD_GROUP = _crd(
    "scheduling.run.ai", "v2alpha2", "PodGroup", "podgroups", _POD_GROUP, scope="Namespaced"
)
TOPOLOGY = _crd("kai.scheduler", "v1alpha1", "Topology", "topologies", _TOPOLOGY, scope="Cluster")
