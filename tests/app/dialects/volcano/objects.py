"""HyperNodes as kube-apiserver sends them."""

from __future__ import annotations

from typing import Any

import msgspec

from app.dialects.volcano.hyper_nodes import HyperNodeRecord, decode_hyper_node

Json = dict[str, Any]


def exact(kind: str, *names: str) -> list[Json]:
    return [{"type": kind, "selector": {"exactMatch": {"name": name}}} for name in names]


def by_pattern(pattern: str, kind: str = "Node") -> list[Json]:
    return [{"type": kind, "selector": {"regexMatch": {"pattern": pattern}}}]


def by_labels(*expressions: Json, **labels: str) -> list[Json]:
    selector: Json = {}
    if labels:
        selector["matchLabels"] = labels
    if expressions:
        selector["matchExpressions"] = list(expressions)
    return [{"type": "Node", "selector": {"labelMatch": selector}}]


def hyper_node(name: str, tier: int | None, members: list[Json], **more: Any) -> Json:
    spec: Json = {"members": members} if tier is None else {"tier": tier, "members": members}
    return {
        "apiVersion": "topology.volcano.sh/v1alpha1",
        "kind": "HyperNode",
        "metadata": {"name": name, "uid": f"uid-{name}", "resourceVersion": "7"},
        "spec": spec,
        **more,
    }


def record(name: str, tier: int | None, members: list[Json], **more: Any) -> HyperNodeRecord:
    return decode_hyper_node(msgspec.json.encode(hyper_node(name, tier, members, **more)))
