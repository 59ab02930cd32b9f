"""Builders of CompositePodGroups, as controllers write them and as the watch shows them."""

from __future__ import annotations

from typing import Any

import msgspec

from app.dialects.native.composites import CompositeRecord, decode_composite
from app.dialects.native.pod_groups import PodGroupRecord
from app.dialects.spec import GangKey
from tests.app.dialects.native.objects import BETA, ON, group

KIND = "CompositePodGroup"


def root(name: str = "all") -> GangKey:
    """The key of the gang of a CompositePodGroup."""
    return GangKey("default", name, "composite")


def composite_object(
    name: str = "all",
    least: int | None = None,
    *,
    inside: str = "",
    key: str = "",
    annotations: dict[str, str] | None = None,
    **spec: Any,
) -> dict[str, Any]:
    """One that starts `least` groups together; None: the policy `basic`."""
    policy = {"basic": {}} if least is None else {"gang": {"minGroupCount": least}}
    reference = {"workloadName": "w", "templateName": name}
    made: dict[str, Any] = {"schedulingPolicy": policy, "workloadRef": reference, **spec}
    if inside:
        made["parentCompositePodGroupName"] = inside
    if key:
        made["schedulingConstraints"] = {"topology": [{"key": key}]}
    return {
        "apiVersion": "scheduling.k8s.io/v1alpha3",
        "kind": KIND,
        "metadata": {"name": name, "namespace": "default", "annotations": annotations or {}},
        "spec": made,
    }


def composite(name: str = "all", least: int | None = None, **more: Any) -> CompositeRecord:
    """The record of one."""
    made = composite_object(name, least, **more)
    metadata = {**made["metadata"], "uid": f"uid-of-{name}", "resourceVersion": "1"}
    raw = msgspec.json.encode({**made, "metadata": metadata})
    return decode_composite(raw, keep=ON.keeps)


def inner(name: str, least: int | None, inside: str = "all", **more: Any) -> PodGroupRecord:
    """A PodGroup that is inside a CompositePodGroup."""
    return group(name, least, api=BETA, parentCompositePodGroupName=inside, **more)
