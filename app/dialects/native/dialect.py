"""Native PodGroups as a dialect."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import ClassVar

from app.dialects.dialect import Dialect, ObjectRules, PodSetClaim, Strings, TemplateOwner
from app.dialects.flaw import Flaw
from app.dialects.native import composites, gangs, pod_groups, rules, status, trees
from app.dialects.native.composites import CompositeRecord
from app.dialects.native.pod_groups import PodGroupRecord
from app.dialects.spec import NO_PODS, Claim, GangKey, GangSpec, LeafPods, Said
from app.dialects.written import GangView, StatusPatch
from app.kube.core.objects import ObjectRecord, PodRecord
from app.kube.decoding.decode import Keep
from app.kube.watch.resource import Resource
from app.settings import EngineOptions


class NativeDialect(Dialect):
    """PodGroups as gangs while it is on; else kube-scheduler has their pods.

    But for those that request what it would not keep: these are refused.
    """

    name: ClassVar[str] = "native"
    speaks_for: ClassVar[frozenset[str]] = frozenset(("kueue",))  # it reads its annotations itself
    sources: ClassVar[frozenset[str]] = frozenset((gangs.SOURCE, trees.SOURCE))
    writes_status: ClassVar[bool] = True

    def __init__(self, *, is_on: bool = False) -> None:
        self._is_on = is_on

    def configured(self, options: EngineOptions) -> NativeDialect:
        return NativeDialect(is_on=options.native_pod_groups == "on")

    @property
    def words(self) -> tuple[str, ...]:
        return (gangs.WORD,) if self._is_on else ()

    def resources(self, keep: Keep) -> tuple[Resource, ...]:
        return (pod_groups.resource(keep), composites.resource(keep)) if self._is_on else ()

    def object_rules(self) -> tuple[ObjectRules, ...]:
        return rules.RULES if self._is_on else ()

    def rules_together(self, owner: TemplateOwner) -> Iterator[tuple[PodSetClaim, Flaw]]:
        return rules.job_flaws(owner, is_on=self._is_on)

    def is_managed(
        self, labels: Strings, annotations: Strings, gates: Sequence[str] = (), pod_group: str = ""
    ) -> bool:
        return bool(pod_group) and not (self._is_on or gangs.asked_besides(labels, annotations))

    def sorted_by(self, pod: PodRecord) -> GangKey | None:
        return gangs.gang_of(pod) if self._is_on else None

    def sorts(self, record: ObjectRecord) -> object:
        if isinstance(record, PodGroupRecord):
            wants = record.level, record.constraint, record.together, record.slices
            return (*wants, record.is_basic, record.flaw, record.parent)
        if isinstance(record, CompositeRecord):
            return (trees.has_level(record), record.flaw, record.parent)
        return None

    def claim(self, pod: PodRecord, objects: Collection[ObjectRecord] = ()) -> Claim | None:
        return gangs.claim(pod, objects) if self._is_on else gangs.refused(pod)

    def is_silent(self, pod: PodRecord) -> bool:
        return not pod.pod_group

    def asked_in(self, pod: PodRecord, objects: Collection[ObjectRecord] = ()) -> str | None:
        return gangs.asked_in(pod, objects)

    def keys_of(self, record: ObjectRecord) -> Iterable[GangKey]:
        if isinstance(record, PodGroupRecord):
            yield GangKey(record.namespace, record.name, gangs.SOURCE)
        elif isinstance(record, CompositeRecord):
            yield trees.key_of(record.namespace, record.name)

    def inside(self, record: ObjectRecord) -> GangKey | None:
        if isinstance(record, PodGroupRecord | CompositeRecord) and record.parent:
            return trees.key_of(record.namespace, record.parent)
        return None

    def awaited(self, key: GangKey) -> str:
        kind = composites.KIND if key.source == trees.SOURCE else "PodGroup"
        return f"{kind} {key.name} is there"

    def spec(
        self,
        key: GangKey,
        objects: Collection[ObjectRecord],
        said: Sequence[Said],
        ended: Sequence[Said],
        pods: Mapping[str, LeafPods] = NO_PODS,
    ) -> GangSpec | None:
        if key.source == trees.SOURCE:
            return trees.spec_of(key, objects, said, pods)
        group = gangs.group_in(key, objects)
        return None if group is None else gangs.spec_of(key, group, said, pods)

    def levels_named(self, record: ObjectRecord) -> Iterable[str]:
        if isinstance(record, PodGroupRecord | CompositeRecord) and record.level:
            yield record.level

    def statuses(
        self, spec: GangSpec, objects: Collection[ObjectRecord], view: GangView
    ) -> Iterable[StatusPatch]:
        return status.of_gang(spec, objects, view) if view.phase else ()
