"""KAI's vocabulary as a dialect."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import ClassVar

from app.dialects.declared import Join, TopologySpec
from app.dialects.dialect import Dialect, ObjectRules, PodSetClaim, TemplateOwner
from app.dialects.flaw import Flaw
from app.dialects.kai import claims, gangs, keys, pod_groups, status, topology
from app.dialects.kai.pod_groups import PodGroupRecord
from app.dialects.spec import NO_PODS, Claim, GangKey, GangSpec, LeafPods, Said
from app.dialects.written import GangView, StatusPatch
from app.kube.core.objects import ObjectRecord, PodRecord
from app.kube.decoding.decode import Keep
from app.kube.watch.resource import Resource
from app.settings import EngineOptions


class KaiDialect(Dialect):
    """PodGroups as gangs, whose sub-groups have sub-groups, on KAI's Topologies."""

    name: ClassVar[str] = "kai"
    sources: ClassVar[frozenset[str]] = frozenset((claims.SOURCE,))
    writes_status: ClassVar[bool] = True

    def __init__(self, grouped: Collection[str] = ()) -> None:
        self._grouped = grouped

    def configured(self, options: EngineOptions) -> KaiDialect:
        return KaiDialect(options.kai_grouped_schedulers)

    @property
    def words(self) -> tuple[str, ...]:
        return (keys.GROUP_NAME, keys.PREFIX)

    def resources(self, keep: Keep) -> tuple[Resource, ...]:
        return (topology.RESOURCE, pod_groups.RESOURCE)

    def object_rules(self) -> tuple[ObjectRules, ...]:
        return (topology.RULES, pod_groups.RULES)

    def keeps(self, key: str) -> bool:
        return key in keys.KEPT

    def topologies(self, record: ObjectRecord) -> Iterable[TopologySpec]:
        return topology.specs_of(record)

    def joins(self, record: ObjectRecord) -> Iterable[Join]:
        if isinstance(record, PodGroupRecord):
            joins = (record.join, *(part.join for part in record.parts))
            yield from (each for each in joins if each is not None)

    # -- gangs ---------------------------------------------------------------------------------

    def sorted_by(self, pod: PodRecord) -> GangKey | None:
        return claims.gang_of(pod)

    def sorts(self, record: ObjectRecord) -> object:
        if isinstance(record, PodGroupRecord):
            names = frozenset((each.name, each.is_leaf) for each in record.sub_groups)
            return (names, record.topology, record.flaw)
        return None

    def claim(self, pod: PodRecord, objects: Collection[ObjectRecord] = ()) -> Claim | None:
        return claims.claim(pod, objects, self._grouped)

    def is_silent(self, pod: PodRecord) -> bool:
        return claims.claim(pod, (), self._grouped) is None

    def asked_in(self, pod: PodRecord, objects: Collection[ObjectRecord] = ()) -> str | None:
        return claims.asked_in(pod, objects)

    def keys_of(self, record: ObjectRecord) -> Iterable[GangKey]:
        if isinstance(record, PodGroupRecord):
            yield GangKey(record.namespace, record.name, claims.SOURCE)

    def awaited(self, key: GangKey) -> str:
        if key.epoch:
            return f"KAI's pod-grouper names its PodGroup in annotation {keys.GROUP_NAME}"
        return f"PodGroup {key.name} is there"

    def spec(
        self,
        key: GangKey,
        objects: Collection[ObjectRecord],
        said: Sequence[Said],
        ended: Sequence[Said],
        pods: Mapping[str, LeafPods] = NO_PODS,
    ) -> GangSpec | None:
        group = claims.group_in(key, objects)
        return None if group is None else gangs.spec_of(key, group, said, pods)

    def rules(self, pod: PodRecord, pods: int | None) -> Iterator[Flaw]:
        return claims.flaws_of(pod, self._grouped)

    def rules_together(self, owner: TemplateOwner) -> Iterator[tuple[PodSetClaim, Flaw]]:
        if owner.kind == "Pod":
            return  # its own annotations, of which `rules` says the same
        for each in owner.pod_sets:
            flaw = claims.owner_flaw(owner.annotations, each.scheduler, self._grouped)
            if flaw is not None:
                yield replace(each, path="metadata"), flaw
                return

    def status(
        self, spec: GangSpec, objects: Collection[ObjectRecord], view: GangView
    ) -> StatusPatch | None:
        return status.status_of(spec.key, objects, view)
