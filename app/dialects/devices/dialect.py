"""DeviceClass objects: by which names pods request devices that no node counts.

Each class has one name that follows from its own, and may have another, such as nvidia.com/gpu.
Source: kubernetes v1.36 pkg/scheduler/framework/plugins/noderesources/fit.go,
shouldDelegateResourceToDRA; k8s.io/dynamic-resource-allocation
deviceclass/extendedresourcecache/extendedresourcecache.go (v0.36).
"""

from __future__ import annotations

import msgspec

from app.dialects.dialect import Dialect
from app.kube.core.objects import ObjectRecord
from app.kube.decoding import wire
from app.kube.decoding.decode import Json, Keep, decoded
from app.kube.watch.resource import Resource

KIND = "DeviceClass"
PATH = "/apis/resource.k8s.io/v1/deviceclasses"
BY_CLASS = "deviceclass.resource.kubernetes.io/"  # with the name of the class


class DeviceClassRecord(ObjectRecord, frozen=True, gc=False):
    """One DeviceClass; `resource` is its name as a resource beside that by class, or ""."""

    resource: str = ""


class _Spec(wire.Wire):
    extended_resource_name: str | None = None


class _DeviceClass(wire.Wire):
    metadata: wire.Metadata | None = None
    spec: _Spec | None = None


_DEVICE_CLASS = msgspec.json.Decoder(_DeviceClass)


def decode_device_class(raw: Json) -> DeviceClassRecord:
    """Return the record of a DeviceClass.

    Raises: DecodeError naming the class and the field.
    """
    its = decoded(_DEVICE_CLASS, raw, KIND)
    metadata, spec = its.metadata or wire.Metadata(), its.spec or _Spec()
    return DeviceClassRecord(
        kind=KIND,
        namespace="",
        name=metadata.name or "",
        uid=metadata.uid or "",
        version=metadata.resource_version or "",
        resource=spec.extended_resource_name or "",
    )


class DeviceDialect(Dialect):
    """Which resources are requested as devices of a class."""

    def resources(self, keep: Keep) -> tuple[Resource, ...]:
        # A ClusterRole older than we are does not name them, nor does Kubernetes before 1.34.
        return (Resource(KIND, PATH, DeviceClassRecord, decode_device_class, is_optional=True),)

    def claimed(self, record: ObjectRecord) -> tuple[str, ...]:
        if not isinstance(record, DeviceClassRecord):
            return ()
        by_class = f"{BY_CLASS}{record.name}"
        return (by_class, record.resource) if record.resource else (by_class,)


DIALECT = DeviceDialect()
