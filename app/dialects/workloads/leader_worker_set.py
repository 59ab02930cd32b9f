"""Gangs that a LeaderWorkerSet owns: each of its groups, a leader and its workers, is one.

The leader has number 0, workers count on from 1. A leader with a template of its own is a leaf of
its own as soon as it requests other resources or nodes; `podset-group-name` keeps the two
together, as in Kueue. The LeaderWorkerSet says how large a group is, less the pods whose template
requests no topology: these are another scheduler's. Once a group has workers they know better, in
their annotation: `size` may change, and a group that the rolling update has not come to stays as
its workers were made. What a leader says does not count before that: it is the size of its
revision, and its workers are made by the `size` of that time, whatever its revision.

Workers that are made only once the leader runs (`startupPolicy: LeaderReady`, or its own exclusive
placement) cannot be waited for: the leader starts alone, and reserves their places.
Source: labels as its controller and webhook write them, lws
api/leaderworkerset/v1/leaderworkerset_types.go, and how workers are made,
pkg/controllers/pod_controller.go, constructWorkerStatefulSetApplyConfiguration (v0.9).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

import msgspec

from app.dialects.flaw import Flaw
from app.dialects.rules import annotation, whole_number
from app.dialects.spec import GangKey, GangSpec, Index, LeafSpec, Lifecycle, Numbers
from app.dialects.workloads.kind import (
    Place,
    Reads,
    WorkloadKind,
    asking,
    gang_of,
    leaf_to_come,
)
from app.dialects.workloads.record import (
    NULL,
    Template,
    Templates,
    WorkloadRecord,
    is_there,
    or_one,
    record_of,
)
from app.dialects.workloads.templates import TemplatePlace
from app.kube.core.objects import PodRecord
from app.kube.decoding import wire
from app.kube.decoding.decode import Json, Keep, decoded

PREFIX = "leaderworkerset.sigs.k8s.io/"
NAME = PREFIX + "name"
GROUP_INDEX = PREFIX + "group-index"
WORKER_INDEX = PREFIX + "worker-index"
SIZE = PREFIX + "size"
EXCLUSIVE = PREFIX + "exclusive-topology"
SOURCE = "leaderworkerset"
WORKER = "worker"
_DEFAULT_POLICY = "RecreateGroupOnPodRestart"
_RECREATE = (_DEFAULT_POLICY, "RecreateGroupAfterStart")
# Of one LeaderWorkerSet; each has a key of its own, of 0.5 KB and 5 us. Groups beyond are what
# their pods say.
MOST_GANGS = 1_000


class _Template(wire.Wire):
    size: wire.Int32 | None = None
    leader_template: msgspec.Raw = NULL
    worker_template: msgspec.Raw = NULL
    restart_policy: wire.Text = None


class _RollingUpdate(wire.Wire):
    max_surge: int | str | None = None


class _RolloutStrategy(wire.Wire):
    rolling_update_configuration: _RollingUpdate | None = None


class _Spec(wire.Wire):
    replicas: wire.Int32 | None = None
    leader_worker_template: _Template | None = None
    startup_policy: wire.Text = None
    rollout_strategy: _RolloutStrategy | None = None


class _LeaderWorkerSet(wire.Wire):
    metadata: wire.Metadata | None = None
    spec: _Spec | None = None


_LEADER_WORKER_SET = msgspec.json.Decoder(_LeaderWorkerSet)


def decode_leader_worker_set(raw: Json, keep: Keep) -> WorkloadRecord:
    """Return the record of a leaderworkerset.x-k8s.io LeaderWorkerSet.

    During a rolling update there may be more groups than `replicas`: the most there may be are
    counted.
    Raises: DecodeError naming the object and the field.
    """
    found = decoded(_LEADER_WORKER_SET, raw, "LeaderWorkerSet")
    spec = found.spec or _Spec()
    pods = spec.leader_worker_template or _Template()
    size, groups = or_one(pods.size), or_one(spec.replicas)
    rollout = spec.rollout_strategy and spec.rollout_strategy.rolling_update_configuration
    surge = (rollout and rollout.max_surge) or 0
    annotations = (found.metadata and found.metadata.annotations) or {}
    is_gradual = spec.startup_policy == "LeaderReady" or EXCLUSIVE in annotations
    read = Templates("LeaderWorkerSet", found.metadata, keep).read
    if is_there(pods.leader_template):
        templates = [
            read("leader", 1, pods.leader_template),
            read(WORKER, size - 1, pods.worker_template, comes_later=is_gradual),
        ]
    else:
        templates = [read(WORKER, size, pods.worker_template)]
    return record_of(
        "LeaderWorkerSet",
        found.metadata,
        keep,
        templates,
        # A surge in percent is at most as many groups again.
        gangs=min(groups + (surge if isinstance(surge, int) else groups), MOST_GANGS),
        is_gradual=is_gradual,
        restarts_together=(pods.restart_policy or _DEFAULT_POLICY) in _RECREATE,
    )


def place_of(pod: PodRecord) -> Place | None:
    """The pod's place in its group; None: no LeaderWorkerSet made it."""
    name, group = pod.labels.get(NAME), pod.labels.get(GROUP_INDEX)
    if not name or group is None:
        return None
    key, text = _key(pod.namespace, name, group), pod.annotations.get(SIZE)
    size = whole_number(text)
    if not size:
        problem = "must be a whole number from 1"
        return Place(key, flaw=Flaw(annotation(SIZE), "Invalid value", problem, text or ""))
    index = whole_number(pod.labels.get(WORKER_INDEX))
    return Place(
        key,
        None if index is None else Index(index, is_across=True),
        pods=size,
        where=f"annotation {SIZE}",
        is_sure=bool(index),
    )


def _key(namespace: str, name: str, group: str) -> GangKey:
    return GangKey(namespace, f"{name}-{group}", SOURCE)


def keys_of(record: WorkloadRecord) -> Iterator[GangKey]:
    """The gangs of a LeaderWorkerSet: its groups."""
    if record.kind == "LeaderWorkerSet":
        for group in range(record.gangs):
            yield _key(record.namespace, record.name, str(group))


def spec_of(key: GangKey, owners: Collection[WorkloadRecord], reads: Reads) -> GangSpec | None:
    """What the LeaderWorkerSet declares of each of its groups."""
    for record in owners:
        where, members = f"spec of LeaderWorkerSet {record.name}", asking(record, reads)
        lifecycle = Lifecycle(restarts_together=record.restarts_together)
        if not record.is_gradual:
            leaves = [LeafSpec("", each.pods) for each in members]
            return gang_of(key, where, leaves, lifecycle=lifecycle)
        # Workers made from the leader's template are like the leader: its pod says all of them.
        reserves_all = len(record.templates) == 1
        leaves = [_leaf(record, each, reads) for each in members]
        return gang_of(
            key, where, leaves, starts_with=1, reserves_all=reserves_all, lifecycle=lifecycle
        )
    return None


def resized(record: WorkloadRecord, size: int) -> WorkloadRecord:
    """The LeaderWorkerSet as it was when it made the workers of a group of this size."""
    if record.pods == size:
        return record
    *leaders, workers = record.templates
    pods = size - sum(each.pods for each in leaders)
    templates = (*leaders, msgspec.structs.replace(workers, pods=max(pods, 0)))
    return msgspec.structs.replace(record, templates=templates)


def _leaf(record: WorkloadRecord, template: Template, reads: Reads) -> LeafSpec:
    """The leaf of a template; pods do not say which it is, so it has no name."""
    return leaf_to_come("", record, template, reads, _workers)


def _workers(template: Template, offset: int) -> Numbers:
    """The numbers of a group's workers, which count on from their leader."""
    return Numbers(template.pods, first=1, offset=offset, is_across=True)


LEADER_WORKER_SET = WorkloadKind(
    "LeaderWorkerSet",
    "leaderworkerset.x-k8s.io",
    "v1",
    decode_leader_worker_set,
    place_of,
    keys_of,
    spec_of,
    SOURCE,
    (
        TemplatePlace("spec.leaderWorkerTemplate", "leaderTemplate"),
        TemplatePlace(
            "spec.leaderWorkerTemplate", "workerTemplate", (("size",),), apart="leaderTemplate"
        ),
    ),
    path_of=lambda template, _at: f"spec.leaderWorkerTemplate.{template.name}Template",
    resized=resized,
    kept=(NAME, GROUP_INDEX, WORKER_INDEX, SIZE, EXCLUSIVE),
)
