"""Builders of native PodGroups, as users write them and as the watch shows them."""

from __future__ import annotations

from typing import Any

import msgspec

from app.dialects.native.pod_groups import ALPHA, BETA, PodGroupRecord, decode_pod_group
from app.dialects.registry import DIALECTS
from app.dialects.spec import GangKey
from app.kube.core.objects import PodRecord
from app.settings import EngineOptions
from tests.records import pod

KIND = "PodGroup.scheduling.k8s.io"
KEY = GangKey("default", "train", "native")
ON = DIALECTS.configured(EngineOptions(native_pod_groups="on"))


def pod_group(
    name: str = "train",
    least: int | None = None,
    *,
    key: str = "",
    api: str = ALPHA,
    annotations: dict[str, str] | None = None,
    **spec: Any,
) -> dict[str, Any]:
    """One that starts `least` pods together; None: the policy `basic`."""
    policy = {"basic": {}} if least is None else {"gang": {"minCount": least}}
    made: dict[str, Any] = {"schedulingPolicy": policy, **spec}
    if key:
        made["schedulingConstraints"] = {"topology": [{"key": key}]}
    return {
        "apiVersion": f"scheduling.k8s.io/{api}",
        "kind": "PodGroup",
        "metadata": {"name": name, "namespace": "default", "annotations": annotations or {}},
        "spec": made,
    }


def read(made: dict[str, Any], *, version: str = "1", api: str = "") -> PodGroupRecord:
    """What the watch shows of it."""
    metadata = {**made["metadata"], "resourceVersion": version}
    metadata.setdefault("uid", f"uid-{metadata['name']}")
    raw = msgspec.json.encode({**made, "metadata": metadata})
    return decode_pod_group(raw, api=api or made["apiVersion"].split("/")[1], keep=ON.keeps)


def group(name: str = "train", least: int | None = None, **more: Any) -> PodGroupRecord:
    """The record of such a PodGroup."""
    return read(pod_group(name, least, **more))


def member(name: str, of: str = "train", **more: Any) -> PodRecord:
    """A pod that names a PodGroup."""
    return msgspec.structs.replace(pod(name, **more), pod_group=of)


def members(pods: int, of: str = "train", *, first: int = 0, **more: Any) -> list[PodRecord]:
    """Several such pods."""
    return [member(f"{of}-{at}", of, **more) for at in range(first, first + pods)]


__all__ = ["ALPHA", "BETA", "KEY", "KIND", "ON", "group", "member", "members", "pod_group", "read"]
