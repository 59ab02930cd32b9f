"""The objects by which nodes are asked for, and a short definition of ProvisioningRequests.

The definition has the names, versions and rules of the real one and no more, for sandboxes on
machines where that has not been fetched; `tests/controlplane/crds.txt` names it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.cluster import Object, pod

GROUP = "autoscaling.x-k8s.io"
CHECK_CAPACITY = f"check-capacity.{GROUP}"
ATOMIC_SCALE_UP = f"best-effort-atomic-scale-up.{GROUP}"
CONSUME = f"{GROUP}/consume-provisioning-request"
CLASS_NAME = f"{GROUP}/provisioning-class-name"


def provisioning_request(
    name: str,
    pod_sets: Mapping[str, int],
    *,
    class_name: str = ATOMIC_SCALE_UP,
    parameters: Mapping[str, str] | None = None,
) -> Object:
    """A request for so many pods of each PodTemplate."""
    sets = [
        {"count": pods, "podTemplateRef": {"name": template}} for template, pods in pod_sets.items()
    ]
    spec: Object = {"provisioningClassName": class_name, "podSets": sets}
    if parameters:
        spec["parameters"] = dict(parameters)
    metadata = {"name": name, "namespace": "default"}
    return {
        "apiVersion": f"{GROUP}/v1",
        "kind": "ProvisioningRequest",
        "metadata": metadata,
        "spec": spec,
    }


def pod_template(name: str, **fields: Any) -> Object:
    """A PodTemplate of a pod that `tests.cluster.pod` makes of these fields."""
    one = pod("", **fields)
    metadata = {key: one["metadata"][key] for key in ("labels", "annotations")}
    return {
        "apiVersion": "v1",
        "kind": "PodTemplate",
        "metadata": {"name": name, "namespace": "default"},
        "template": {"metadata": metadata, "spec": one["spec"]},
    }


def definition() -> Object:
    """The CustomResourceDefinition of ProvisioningRequests."""
    names = {
        "kind": "ProvisioningRequest",
        "listKind": "ProvisioningRequestList",
        "plural": "provisioningrequests",
        "singular": "provisioningrequest",
        "shortNames": ["provreq", "provreqs"],
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"provisioningrequests.{GROUP}"},
        "spec": {
            "group": GROUP,
            "names": names,
            "scope": "Namespaced",
            "versions": [_version("v1", is_stored=True), _version("v1beta1", is_stored=False)],
        },
    }


def _version(name: str, *, is_stored: bool) -> Object:
    rest = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    immutable = {"x-kubernetes-validations": [{"rule": "self == oldSelf"}]}
    fields = {
        "provisioningClassName": {"type": "string", **immutable},
        "parameters": {"type": "object", "additionalProperties": {"type": "string"}, **immutable},
        "podSets": {"type": "array", "items": rest, **immutable},
    }
    spec = {"type": "object", "properties": fields}
    schema = {"type": "object", "properties": {"spec": spec, "status": rest}}
    return {
        "name": name,
        "served": True,
        "storage": is_stored,
        "schema": {"openAPIV3Schema": schema},
        "subresources": {"status": {}},
    }
