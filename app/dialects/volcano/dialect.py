"""Volcano's vocabulary as a dialect."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import ClassVar

from app.dialects.declared import DomainView, Draw, Pool, TopologySpec
from app.dialects.dialect import Dialect, KeptKind, ObjectRules
from app.dialects.spec import (
    NO_PODS,
    Claim,
    FailureLimit,
    GangKey,
    GangSpec,
    LeafPods,
    Said,
    ends_together,
)
from app.dialects.volcano import claims, gangs, hyper_nodes, jobs, keys, pod_groups, queues, status
from app.dialects.volcano.from_labels.kept import KeptHyperNodes
from app.dialects.volcano.jobs import VolcanoJobRecord
from app.dialects.volcano.pod_groups import PodGroupRecord
from app.dialects.volcano.queues import QueueRecord
from app.dialects.workloads import KUBEFLOW
from app.dialects.written import GangView, Prerequisite, StatusPatch
from app.kube.core.objects import ObjectRecord, PodRecord
from app.kube.decoding.decode import Keep
from app.kube.watch.resource import Resource
from app.settings import EngineOptions

_KUBEFLOW = frozenset(kind.kind for kind in KUBEFLOW)  # each PodGroup has the name of its job


class VolcanoDialect(Dialect):
    """PodGroups as gangs, and HyperNodes as a topology with a level for each tier."""

    name: ClassVar[str] = "volcano"
    sources: ClassVar[frozenset[str]] = frozenset((claims.SOURCE,))
    writes_status: ClassVar[bool] = True
    writes_first: ClassVar[bool] = True  # pods are made once it has

    def __init__(
        self,
        scheduler: str = "",
        queues: Sequence[str] = (),
        hyper_nodes_from: tuple[str, ...] = (),
    ) -> None:
        self._scheduler = scheduler
        self._queues = queues
        self._hyper_nodes_from = hyper_nodes_from

    def configured(self, options: EngineOptions) -> VolcanoDialect:
        return VolcanoDialect(
            options.scheduler_name, options.volcano_queues, options.hyper_nodes_from
        )

    def prerequisites(self) -> tuple[Prerequisite, ...]:
        return tuple(map(queues.queue, self._queues))

    @property
    def words(self) -> tuple[str, ...]:
        return (keys.GROUP_NAME, keys.MIN_MEMBER, keys.ASKING_PREFIX)

    def resources(self, keep: Keep) -> tuple[Resource, ...]:
        of_kubeflow = (kind.resource(keep) for kind in KUBEFLOW)
        own = (hyper_nodes.RESOURCE, pod_groups.RESOURCE, jobs.RESOURCE, queues.RESOURCE)
        return (*own, *of_kubeflow)

    def object_rules(self) -> tuple[ObjectRules, ...]:
        return (hyper_nodes.RULES, pod_groups.RULES, jobs.RULES)

    def keeps(self, key: str) -> bool:
        return key in keys.KEPT

    def keys_named(self, record: ObjectRecord) -> Iterable[str]:
        if isinstance(record, PodGroupRecord):
            for policy in record.policies:
                yield from policy.keys
                yield from sorted(policy.selector.keys)

    # -- gangs ---------------------------------------------------------------------------------

    def sorted_by(self, pod: PodRecord) -> GangKey | None:
        return claims.gang_of(pod)

    def sorts(self, record: ObjectRecord) -> object:
        if isinstance(record, PodGroupRecord):
            tasks = frozenset(record.least_of)
            return (record.within is None, record.policies, tasks, record.flaw)
        return None

    def claim(self, pod: PodRecord, objects: Collection[ObjectRecord] = ()) -> Claim | None:
        return claims.claim(pod, objects)

    def is_silent(self, pod: PodRecord) -> bool:
        return claims.gang_of(pod) is None

    def asked_in(self, pod: PodRecord, objects: Collection[ObjectRecord] = ()) -> str | None:
        return claims.asked_in(pod, objects)

    def keys_of(self, record: ObjectRecord) -> Iterable[GangKey]:
        if isinstance(record, PodGroupRecord):
            yield GangKey(record.namespace, record.name, claims.SOURCE)
        elif isinstance(record, VolcanoJobRecord):
            yield GangKey(record.namespace, record.pod_group, claims.SOURCE)
        elif record.kind in _KUBEFLOW:
            yield GangKey(record.namespace, record.name, claims.SOURCE)

    def awaited(self, key: GangKey) -> str:
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
        if group is None:
            return None
        return gangs.spec_of(key, group, pods, ends_together=ends_together(said))

    def status(
        self, spec: GangSpec, objects: Collection[ObjectRecord], view: GangView
    ) -> StatusPatch | None:
        return status.status_of(spec.key, objects, view, self._scheduler)

    def failure_limit(
        self, record: ObjectRecord, owner: ObjectRecord | None
    ) -> FailureLimit | None:
        left = record.failures_left if isinstance(record, VolcanoJobRecord) else None
        return None if left is None else FailureLimit(left)

    def pool(self, record: ObjectRecord) -> Pool | None:
        return queues.pool_of(record) if isinstance(record, QueueRecord) else None

    def draw(self, record: ObjectRecord) -> Draw | None:
        return status.draw_of(record) if isinstance(record, PodGroupRecord) else None

    # -- topologies ----------------------------------------------------------------------------

    def topologies(self, record: ObjectRecord) -> Iterable[TopologySpec]:
        return hyper_nodes.specs_of(record)

    def kept_kinds(self) -> tuple[KeptKind, ...]:
        return (KeptHyperNodes(self._hyper_nodes_from),) if self._hyper_nodes_from else ()

    def domain_status(self, record: ObjectRecord, view: DomainView) -> StatusPatch | None:
        return hyper_nodes.status_of(record, view)
