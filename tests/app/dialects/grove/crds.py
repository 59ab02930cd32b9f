"""CustomResourceDefinitions of Grove's kinds with what is read of them, for API servers of tests.

Fields, types and bounds are Grove's (v0.1.0-alpha.8); what is not read here is taken as it comes.
"""

from __future__ import annotations

from typing import Any

Json = dict[str, Any]

_TEXT: Json = {"type": "string"}
_PACK: Json = {"type": "object", "properties": {"required": _TEXT, "preferred": _TEXT}}
_CONSTRAINT: Json = {"type": "object", "properties": {"packConstraint": _PACK}}
_REFERENCE: Json = {
    "type": "object",
    "required": ["name", "namespace"],
    "properties": {"namespace": _TEXT, "name": _TEXT},
}
_POD_GROUP: Json = {
    "type": "object",
    "required": ["minReplicas", "name", "podReferences"],
    "properties": {
        "name": _TEXT,
        "minReplicas": {"type": "integer", "format": "int32"},
        "podReferences": {"type": "array", "items": _REFERENCE},
        "topologyConstraint": _CONSTRAINT,
    },
}
_TOGETHER: Json = {
    "type": "object",
    "required": ["name", "podGroupNames"],
    "properties": {
        "name": _TEXT,
        "podGroupNames": {"type": "array", "items": _TEXT},
        "topologyConstraint": _CONSTRAINT,
    },
}
_POD_GANG: Json = {
    "type": "object",
    "required": ["podgroups"],
    "properties": {
        "podgroups": {"type": "array", "items": _POD_GROUP},
        "topologyConstraint": _CONSTRAINT,
        "topologyConstraintGroupConfigs": {"type": "array", "items": _TOGETHER},
        "priorityClassName": _TEXT,
        "reuseReservationRef": _REFERENCE,
    },
}
_CONDITION: Json = {
    "type": "object",
    "required": ["lastTransitionTime", "message", "reason", "status", "type"],
    "properties": {
        "type": _TEXT,
        "status": {"type": "string", "enum": ["True", "False", "Unknown"]},
        "reason": {"type": "string", "minLength": 1, "maxLength": 1024},
        "message": {"type": "string", "maxLength": 32768},
        "lastTransitionTime": {"type": "string", "format": "date-time"},
        "observedGeneration": {"type": "integer", "format": "int64", "minimum": 0},
    },
}
_STATUS: Json = {
    "type": "object",
    "required": ["phase"],
    "properties": {
        "phase": _TEXT,
        "conditions": {"type": "array", "items": _CONDITION},
        "placementScore": {"type": "number"},
    },
}
_LEVEL: Json = {
    "type": "object",
    "required": ["domain", "key"],
    "properties": {"domain": _TEXT, "key": {"type": "string", "minLength": 1, "maxLength": 63}},
}
_LEVELS: Json = {
    "type": "object",
    "properties": {"levels": {"type": "array", "minItems": 1, "items": _LEVEL}},
}


def _crd(group: str, kind: str, plural: str, spec: Json, status: Json | None, scope: str) -> Json:
    parts = {"spec": spec, **({"status": status} if status else {})}
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
                    "name": "v1alpha1",
                    "served": True,
                    "storage": True,
                    "subresources": {"status": {}} if status else {},
                    "schema": {"openAPIV3Schema": {"type": "object", "properties": parts}},
                }
            ],
        },
    }


POD_GANG = _crd("scheduler.grove.io", "PodGang", "podgangs", _POD_GANG, _STATUS, "Namespaced")
CLUSTER_TOPOLOGY = _crd(
    "grove.io", "ClusterTopology", "clustertopologies", _LEVELS, None, "Cluster"
)
_AS_IT_COMES: Json = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
CLUSTER_TOPOLOGY_BINDING = _crd(
    *("grove.io", "ClusterTopologyBinding", "clustertopologybindings"),
    {**_LEVELS, "x-kubernetes-preserve-unknown-fields": True},
    _AS_IT_COMES,
    "Cluster",
)
POD_CLIQUE_SET = _crd(
    "grove.io", "PodCliqueSet", "podcliquesets", _AS_IT_COMES, _AS_IT_COMES, "Namespaced"
)
