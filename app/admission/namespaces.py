"""Which namespaces the webhook's namespace selector selects.

An AdmissionReview names the namespace of its object and does not bring the namespace's labels. The
label kubernetes.io/metadata.name is always the name itself; where the selector has no other key,
that is enough. For any other key the namespaces are watched, and the names of those selected kept.

A namespace that the watch has not shown yet is not selected: its pods start gateless, which works
too, while a gate on a pod that is not selected would be a mistake of ours.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from app.kube.core.objects import ObjectRecord, Record
from app.kube.decoding import wire
from app.kube.decoding.decode import Json, decoded, kept
from app.kube.watch.events import Applied, Deleted, Event, Listed
from app.kube.watch.resource import Resource
from app.labels import LabelSelector

KIND = "Namespace"
METADATA_NAME = "kubernetes.io/metadata.name"  # the API server writes it on every namespace


class NamespaceRecord(ObjectRecord, frozen=True, gc=False):
    """One namespace; of its labels only those the selector looks at."""

    labels: Mapping[str, str] = {}


class _Namespace(wire.Wire):
    metadata: wire.Metadata | None = None


_NAMESPACE = msgspec.json.Decoder(_Namespace)


class Namespaces:
    """The namespaces that one selector selects; the watch writes, the webhook asks."""

    def __init__(self, selector: LabelSelector) -> None:
        self._selector = selector
        self._are_watched = not selector.keys <= {METADATA_NAME}
        self._selected: set[str] = set()

    def resources(self) -> tuple[Resource, ...]:
        """What to watch; nothing where a namespace's name is all that matters.

        It is optional: where Corral may not read namespaces none is selected, and the log says why.
        """
        if not self._are_watched:
            return ()
        path = "/api/v1/namespaces"
        return (Resource(KIND, path, NamespaceRecord, self._decode, is_optional=True),)

    def apply(self, event: Event) -> None:
        """Learn what the watch shows."""
        if isinstance(event, Listed):
            self._selected.clear()
            for record in event.records:
                self._put(record)
        elif isinstance(event, Applied):
            self._put(event.record)
        elif isinstance(event, Deleted):
            self._selected.discard(event.record.name)

    def selects(self, name: str) -> bool:
        """Whether the namespace of this name is selected."""
        if self._are_watched:
            return name in self._selected
        return self._selector.matches({METADATA_NAME: name})

    def _put(self, record: Record) -> None:
        labels = record.labels if isinstance(record, NamespaceRecord) else {}
        if self._selector.matches({**labels, METADATA_NAME: record.name}):
            self._selected.add(record.name)
        else:
            self._selected.discard(record.name)

    def _decode(self, raw: Json) -> NamespaceRecord:
        metadata = decoded(_NAMESPACE, raw, KIND).metadata or wire.Metadata()
        return NamespaceRecord(
            kind=KIND,
            namespace="",
            name=metadata.name or "",
            uid=metadata.uid or "",
            version=metadata.resource_version or "",
            labels=kept(metadata.labels, self._selector.keys.__contains__),
        )
