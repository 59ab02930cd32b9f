"""Gangs that a StatefulSet owns: its pods start together.

With `podManagementPolicy: OrderedReady`, which is the default, a pod is made only once the one
before it runs, so that nothing can wait for all of them. There the first pod reserves places for
the rest, and each one that follows finds its own.
Source: kubernetes pkg/controller/statefulset (v1.36).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

import msgspec

from app.dialects.rules import whole_number
from app.dialects.spec import GangKey, GangSpec, Index, LeafSpec
from app.dialects.workloads.kind import Place, Reads, WorkloadKind, gang_of
from app.dialects.workloads.record import NULL, Templates, WorkloadRecord, or_one, record_of
from app.dialects.workloads.templates import TemplatePlace
from app.kube.core.objects import PodRecord
from app.kube.decoding import wire
from app.kube.decoding.decode import Json, Keep, decoded
from topology.pod_set.gaps import NO_GAPS, Gaps

POD_INDEX = "apps.kubernetes.io/pod-index"
SOURCE = "statefulset"


class _Ordinals(wire.Wire):
    start: wire.Int32 | None = None


class _Spec(wire.Wire):
    replicas: wire.Int32 | None = None
    ordinals: _Ordinals | None = None
    pod_management_policy: wire.Text = None
    template: msgspec.Raw = NULL


class _StatefulSet(wire.Wire):
    metadata: wire.Metadata | None = None
    spec: _Spec | None = None


_STATEFUL_SET = msgspec.json.Decoder(_StatefulSet)


def decode_stateful_set(raw: Json, keep: Keep) -> WorkloadRecord:
    """Return the record of an apps/v1 StatefulSet.

    Raises: DecodeError naming the object and the field.
    """
    found = decoded(_STATEFUL_SET, raw, "StatefulSet")
    spec = found.spec or _Spec()
    templates = Templates("StatefulSet", found.metadata, keep)
    return record_of(
        "StatefulSet",
        found.metadata,
        keep,
        [templates.read("", or_one(spec.replicas), spec.template)],
        is_gradual=spec.pod_management_policy != "Parallel",
        gaps=_numbered_from((spec.ordinals and spec.ordinals.start) or 0),
    )


def _numbered_from(start: int) -> Gaps:
    """The numbers that its pods do not have."""
    return Gaps.of([(0, start - 1)]) if start > 0 else NO_GAPS


def place_of(pod: PodRecord) -> Place | None:
    """The pod's place in the gang of its StatefulSet; None: no StatefulSet owns it."""
    owner = pod.owner
    if owner is None or owner.kind != "StatefulSet" or not owner.api_version.startswith("apps/"):
        return None
    # Clusters older than the label have the number in the name alone.
    text = pod.labels.get(POD_INDEX, pod.name.removeprefix(f"{owner.name}-"))
    index = whole_number(text)
    key = GangKey(pod.namespace, owner.name, SOURCE, owner.uid)
    return Place(key, None if index is None else Index(index))


def keys_of(record: WorkloadRecord) -> Iterator[GangKey]:
    """The gang of a StatefulSet."""
    if record.kind == "StatefulSet":
        yield GangKey(record.namespace, record.name, SOURCE, record.uid)


def spec_of(key: GangKey, owners: Collection[WorkloadRecord], reads: Reads) -> GangSpec | None:
    """What the StatefulSet declares."""
    for record in owners:
        leaves, where = (
            [LeafSpec("", record.pods, gaps=record.gaps)],
            f"replicas of StatefulSet {record.name}",
        )
        if record.is_gradual:
            return gang_of(key, where, leaves, starts_with=1, reserves_all=True)
        return gang_of(key, where, leaves)
    return None


STATEFUL_SET = WorkloadKind(
    "StatefulSet",
    "apps",
    "v1",
    decode_stateful_set,
    place_of,
    keys_of,
    spec_of,
    SOURCE,
    # A StatefulSet that a LeaderWorkerSet made has one of its pod sets only.
    (TemplatePlace("spec", "template", (("replicas",),), is_grouped=False),),
    kept=(POD_INDEX,),
)
