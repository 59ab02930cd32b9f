"""Kueue's vocabulary as a dialect."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import ClassVar

from app.dialects import corral, workloads
from app.dialects.declared import TopologySpec
from app.dialects.dialect import Dialect, PodSetClaim, Strings, TemplateOwner
from app.dialects.flaw import Flaw
from app.dialects.kueue import annotations as keys
from app.dialects.kueue import (
    claims,
    group_rules,
    in_charge,
    owners,
    pod_groups,
    rules,
    topology,
)
from app.dialects.spec import (
    ANYWHERE,
    NO_PODS,
    Claim,
    FailureLimit,
    GangKey,
    GangSpec,
    GroupSpec,
    LeafPods,
    LeafSpec,
    Lifecycle,
    Said,
    Suspension,
    ends_together,
)
from app.dialects.workloads import TemplatePlace, WorkloadRecord, job_set
from app.dialects.workloads.record import failure_limit_of, is_suspended_by_us
from app.kube.core.objects import ObjectRecord, PodRecord
from app.kube.decoding.decode import Keep
from app.kube.watch.resource import Resource
from app.settings import EngineOptions, RoleRules

_BY_SOURCE = {kind.source: kind for kind in workloads.KINDS}
_BY_KIND = {kind.kind: kind for kind in workloads.KINDS}
_KEYS_OF = tuple(dict.fromkeys(kind.keys for kind in workloads.KINDS))
_KEPT = frozenset(
    (
        *keys.KEPT,
        *pod_groups.KEPT,
        *in_charge.KEPT,
        *corral.KEPT,
        rules.ELASTIC,
        *(key for kind in workloads.KINDS for key in kind.kept),
    )
)
_TEMPLATES = {(kind.group, kind.kind): kind.templates for kind in workloads.KINDS}


class KueueDialect(Dialect):
    """Topology annotations and pod groups, on every kind of workload."""

    name: ClassVar[str] = "kueue"
    sources: ClassVar[frozenset[str]] = frozenset((pod_groups.SOURCE, "pod", *_BY_SOURCE))

    def __init__(
        self,
        roles: RoleRules = "kueue",
        *,
        is_kueue_here: bool = False,
        scheduler_name: str = "",
    ) -> None:
        self._most_roles = pod_groups.MOST_ROLES[roles]
        self._is_kueue_here = is_kueue_here
        self._scheduler_name = scheduler_name

    def configured(self, options: EngineOptions) -> KueueDialect:
        return KueueDialect(
            options.pod_group_roles,
            is_kueue_here=options.kueue_manages,
            scheduler_name=options.scheduler_name,
        )

    @property
    def words(self) -> tuple[str, ...]:
        return (keys.PREFIX, corral.WORKLOAD_PREFIX)

    def resources(self, keep: Keep) -> tuple[Resource, ...]:
        return (topology.RESOURCE, *(kind.resource(keep) for kind in workloads.KINDS))

    def keeps(self, key: str) -> bool:
        return key in _KEPT

    def claim(self, pod: PodRecord, objects: Collection[ObjectRecord] = ()) -> Claim | None:
        return claims.claim(pod)

    def is_silent(self, pod: PodRecord) -> bool:
        # Where a queue name tells, the pod's own name may count as well.
        return in_charge.QUEUE_NAME not in pod.labels and claims.claim(pod) is None

    def asked_in(self, pod: PodRecord, objects: Collection[ObjectRecord] = ()) -> str | None:
        return claims.asked_in(pod)

    def is_managed(
        self, labels: Strings, annotations: Strings, gates: Sequence[str] = (), pod_group: str = ""
    ) -> bool:
        return in_charge.is_kueues(labels, annotations, gates, by_queue=self._is_kueue_here)

    def keys_of(self, record: ObjectRecord) -> Iterable[GangKey]:
        if isinstance(record, WorkloadRecord):
            for keys_of in _KEYS_OF:
                yield from keys_of(record)

    def spec(
        self,
        key: GangKey,
        objects: Collection[ObjectRecord],
        said: Sequence[Said],
        ended: Sequence[Said],
        pods: Mapping[str, LeafPods] = NO_PODS,
    ) -> GangSpec | None:
        spec = _declared(key, objects, said) or _as_said(key, said, ended, self._most_roles)
        if spec is None:
            return None
        flaw = owners.flaw(key, objects, self._scheduler_name)
        spec = _with_lifecycle(_together(spec, objects, said), said)
        return replace(spec, flaw=flaw) if flaw else spec

    def failure_limit(
        self, record: ObjectRecord, owner: ObjectRecord | None
    ) -> FailureLimit | None:
        return failure_limit_of(record, owner) if isinstance(record, WorkloadRecord) else None

    def suspended(self, record: ObjectRecord) -> Suspension | None:
        if isinstance(record, WorkloadRecord) and is_suspended_by_us(record):
            return _BY_KIND[record.kind].suspension(record)
        return None

    def awaited(self, key: GangKey) -> str:
        if key.source == pod_groups.SOURCE:
            return "the pod that declares its members is there"
        if key.source == job_set.SOURCE:
            return "all Jobs of its JobSet are known"
        kind = _BY_SOURCE.get(key.source)
        return super().awaited(key) if kind is None else f"its {kind.kind} is known"

    def topologies(self, record: ObjectRecord) -> Iterable[TopologySpec]:
        return topology.specs_of(record)

    def templates(self, group: str, kind: str) -> tuple[TemplatePlace, ...]:
        return _TEMPLATES.get((group, kind), ())

    def rules(self, pod: PodRecord, pods: int | None) -> Iterator[Flaw]:
        return claims.all_flaws(pod, pods)

    def rules_together(self, owner: TemplateOwner) -> Iterator[tuple[PodSetClaim, Flaw]]:
        return rules.together(owner)

    def change(self, before: PodRecord, after: PodRecord) -> Iterator[Flaw]:
        return group_rules.change(before, after)


def _declared(
    key: GangKey, objects: Collection[ObjectRecord], said: Sequence[Said]
) -> GangSpec | None:
    """What the gang's workload declares; it knows better than pods that are not sure."""
    kind = _BY_SOURCE.get(key.source)
    if kind is None:
        return None
    records = [record for record in objects if isinstance(record, WorkloadRecord)]
    # The youngest pod knows best: those before it may be of what its gang was until now.
    sure = next((each for each in reversed(said) if each.is_sure), None)
    if sure is None or sure.pods is None:
        return kind.spec(key, records, claims.said_in)
    resized = [kind.resized(record, sure.pods) for record in records]
    spec = kind.spec(key, resized, claims.said_in)
    return spec if spec is None or resized == records else replace(spec, where=sure.where)


def _as_said(
    key: GangKey, said: Sequence[Said], ended: Sequence[Said], most_roles: int
) -> GangSpec | None:
    """What the pods themselves say of their gang: the first that says how many there are."""
    is_live = any(each.pods is not None for each in said)
    first = next((each for each in (said if is_live else ended) if each.pods is not None), None)
    if first is None or first.pods is None:
        return None
    return GangSpec(
        key,
        GroupSpec(key.name, first.leaves or (LeafSpec("", first.pods),)),
        first.where,
        # A driver that lives starts alone: its workers are made once it runs.
        starts_with=0 if is_live and first.leaves else None,
        lifecycle=Lifecycle(
            counts_succeeded=True,
            # The controller of other pods that say how many there are replaces those that end.
            remembers_succeeded=key.source == pod_groups.SOURCE,
        ),
        is_said=True,
        most_roles=most_roles,
    )


def _together(spec: GangSpec, objects: Collection[ObjectRecord], said: Sequence[Said]) -> GangSpec:
    """The spec with what the workload, or the first pod that does, requests for all pods."""
    named = owners.levels(objects)
    of_pods = (each.together for each in said if each.together != ANYWHERE)
    constraint = named[0][1] if named else next(of_pods, ANYWHERE)
    if constraint == ANYWHERE:
        return spec
    return replace(spec, root=replace(spec.root, constraint=constraint), levels_named=named)


def _with_lifecycle(spec: GangSpec, said: Sequence[Said]) -> GangSpec:
    """The spec with what live pods say of the time when pods end, taken together."""
    spares = max((each.spares for each in said), default=0)
    waits = (each.absent_seconds for each in said if each.absent_seconds is not None)
    absent_seconds = max(waits, default=None)
    lifecycle = replace(
        spec.lifecycle,
        spares=spares,
        absent_seconds=absent_seconds,
        ends_together=ends_together(said),
    )
    reserves_all = spec.reserves_all or any(each.reserves_all for each in said)
    if lifecycle == spec.lifecycle and reserves_all == spec.reserves_all:
        return spec
    return replace(spec, lifecycle=lifecycle, reserves_all=reserves_all)
