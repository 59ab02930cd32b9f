"""Grove's vocabulary as a dialect."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import repeat
from typing import ClassVar

from app.dialects.declared import TopologySpec
from app.dialects.dialect import Dialect, NamedPod, ObjectRules
from app.dialects.grove import (
    claims,
    gangs,
    keys,
    pod_clique_sets,
    pod_gangs,
    priority_classes,
    status,
    topology,
)
from app.dialects.grove.pod_gangs import PodGangRecord
from app.dialects.grove.priority_classes import PriorityClassRecord
from app.dialects.rules import label
from app.dialects.spec import NO_PODS, Claim, GangKey, GangSpec, LeafPods, Said
from app.dialects.written import GangView, StatusPatch
from app.kube.core.objects import ObjectRecord, PodRecord
from app.kube.decoding.decode import Keep
from app.kube.watch.resource import Resource


class GroveDialect(Dialect):
    """PodGangs as gangs, of pod groups in groups, on Grove's topologies."""

    name: ClassVar[str] = "grove"
    # Its operator, and controllers of these, write PodGroups of theirs for its pods.
    speaks_for: ClassVar[frozenset[str]] = frozenset(("native", "volcano", "kai"))
    sources: ClassVar[frozenset[str]] = frozenset((claims.SOURCE,))
    writes_status: ClassVar[bool] = True
    reads_health: ClassVar[bool] = True
    writes_last: ClassVar[bool] = True

    @property
    def words(self) -> tuple[str, ...]:
        return (keys.POD_GANG,)

    def resources(self, keep: Keep) -> tuple[Resource, ...]:
        return (*topology.RESOURCES, priority_classes.RESOURCE, pod_gangs.RESOURCE)

    def object_rules(self) -> tuple[ObjectRules, ...]:
        return (pod_clique_sets.RULES,)

    def keeps(self, key: str) -> bool:
        return key in keys.KEPT

    def topologies(self, record: ObjectRecord) -> Iterable[TopologySpec]:
        return topology.specs_of(record)

    def levels_named(self, record: ObjectRecord) -> Iterable[str]:
        if isinstance(record, PodGangRecord) and not record.topology:
            groups = [each.constraint for each in record.together]
            parts = [each.constraint for each in record.pod_groups]
            for each in (record.constraint, *groups, *parts):
                yield from filter(None, (each.required, each.preferred))

    # -- gangs ---------------------------------------------------------------------------------

    def sorted_by(self, pod: PodRecord) -> GangKey | None:
        return claims.gang_of(pod)

    def sorts(self, record: ObjectRecord) -> object:
        if isinstance(record, PodGangRecord):
            return (frozenset(each.name for each in record.pod_groups), record.flaw)
        return None

    def claim(self, pod: PodRecord, objects: Collection[ObjectRecord] = ()) -> Claim | None:
        return claims.claim(pod, objects)

    def is_silent(self, pod: PodRecord) -> bool:
        return claims.gang_of(pod) is None

    def may_name(self, pod: PodRecord) -> bool:
        # Pods of these belong to nodes.
        return pod.owner is None or pod.owner.kind not in ("DaemonSet", "Node")

    def pods_named(self, record: ObjectRecord) -> Iterator[NamedPod]:
        if isinstance(record, PodGangRecord):
            says = {groups: (groups, record.flaw) for groups in set(record.pods.values())}
            each = map(says.__getitem__, record.pods.values())
            yield from map(NamedPod, repeat(record.namespace), record.pods, each)
            if record.foreign is not None:
                yield NamedPod(*record.foreign)

    def pods_unread(self, record: ObjectRecord) -> str:
        return record.unread if isinstance(record, PodGangRecord) else ""

    def asked_in(self, pod: PodRecord, objects: Collection[ObjectRecord] = ()) -> str | None:
        return f"metadata.{label(keys.POD_GANG)}" if claims.gang_of(pod) is not None else ""

    def lifts_gates(self, pod: PodRecord) -> bool:
        # With its own: a merge patch of schedulingGates, which leaves none.
        return keys.is_groves(pod.labels)

    def keys_of(self, record: ObjectRecord) -> Iterable[GangKey]:
        if isinstance(record, PodGangRecord):
            yield GangKey(record.namespace, record.name, claims.SOURCE)

    def refers_to(self, record: ObjectRecord) -> str:
        return record.priority_class if isinstance(record, PodGangRecord) else ""

    def referred(self, record: ObjectRecord) -> str:
        return record.name if isinstance(record, PriorityClassRecord) else ""

    def awaited(self, key: GangKey) -> str:
        return f"PodGang {key.name} is there"

    def spec(
        self,
        key: GangKey,
        objects: Collection[ObjectRecord],
        said: Sequence[Said],
        ended: Sequence[Said],
        pods: Mapping[str, LeafPods] = NO_PODS,
    ) -> GangSpec | None:
        gang = claims.pod_gang_in(key, objects)
        if gang is None:
            return None
        named = (each for each in objects if isinstance(each, PriorityClassRecord))
        its = next((each for each in named if each.name == gang.priority_class), None)
        return gangs.spec_of(key, gang, said, pods, priority=None if its is None else its.value)

    def status(
        self, spec: GangSpec, objects: Collection[ObjectRecord], view: GangView
    ) -> StatusPatch | None:
        gang = claims.pod_gang_in(spec.key, objects)
        return None if gang is None else status.status_of(gang, view)
