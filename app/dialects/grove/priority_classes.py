"""PriorityClasses of Kubernetes, which PodGangs name: whose turn it is first.

Grove's operator does not write the class on pods: their own priority is another matter. That is
written by the API server, and where pods are only simulated it follows from the same classes.
Source: kubernetes staging/src/k8s.io/api/scheduling/v1/types.go (v1.36), PriorityClass; grove
scheduler/api/core/v1alpha1/podgang.go, PriorityClassName (v0.1.0-alpha.8).
"""

from __future__ import annotations

import msgspec

from app.kube.core.objects import ObjectRecord
from app.kube.decoding import wire
from app.kube.decoding.decode import Json, decoded
from app.kube.watch.resource import Resource

KIND = "PriorityClass"
PATH = "/apis/scheduling.k8s.io/v1/priorityclasses"


class PriorityClassRecord(ObjectRecord, frozen=True, gc=False):
    """One PriorityClass."""

    value: int = 0
    """Larger ones come first."""
    is_default: bool = False
    """It is that of pods that name no class."""


class _PriorityClass(wire.Wire):
    metadata: wire.Metadata | None = None
    value: int | None = None
    global_default: bool | None = None


_PRIORITY_CLASS = msgspec.json.Decoder(_PriorityClass)


def decode_priority_class(raw: Json) -> PriorityClassRecord:
    """Return the record of a PriorityClass.

    Raises: DecodeError naming the PriorityClass and the field.
    """
    found = decoded(_PRIORITY_CLASS, raw, KIND)
    metadata = found.metadata or wire.Metadata()
    return PriorityClassRecord(
        kind=KIND,
        namespace="",
        name=metadata.name or "",
        uid=metadata.uid or "",
        version=metadata.resource_version or "",
        value=found.value or 0,
        is_default=bool(found.global_default),
    )


RESOURCE = Resource(KIND, PATH, PriorityClassRecord, decode_priority_class, is_optional=True)
