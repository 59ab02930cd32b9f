"""Gangs that a LeaderWorkerSet owns: each of its groups, a leader and its workers, is one.

The leader has number 0, workers count on from 1. A leader with a template of its own is a pod set
of its own as soon as it asks for other resources or nodes; `podset-group-name` keeps the two
together, as in Kueue. The pods say how large a group is; the LeaderWorkerSet corrects them where a
template asks for no topology, since its pods are then no members.

Workers that are only made once the leader runs (`startupPolicy: LeaderReady`, or its own exclusive
placement) cannot be waited for: the leader starts alone. If they are like it, it takes their
places along.
Source: labels as its controller and webhook write them (leaderworkerset_types.go); kueue.md 3.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from app.dialects import kueue
from app.dialects.membership import Declared, GangKey, Number, Place
from app.kube.core.objects import JobRecord, PodRecord

PREFIX = "leaderworkerset.sigs.k8s.io/"
NAME = PREFIX + "name"
GROUP_INDEX = PREFIX + "group-index"
WORKER_INDEX = PREFIX + "worker-index"
SIZE = PREFIX + "size"
EXCLUSIVE = PREFIX + "exclusive-topology"
KEPT = (NAME, GROUP_INDEX, WORKER_INDEX, SIZE, EXCLUSIVE)
SOURCE = "leaderworkerset"


def place_of(pod: PodRecord) -> Place | None:
    """The pod's place in its group; None: no LeaderWorkerSet made it.

    Raises: kueue.WrongAnnotation for a size that is none.
    """
    name, group = pod.labels.get(NAME), pod.labels.get(GROUP_INDEX)
    if not name or group is None:
        return None
    size = kueue.whole_number(pod.annotations.get(SIZE))
    if not size:
        raise kueue.WrongAnnotation(
            f"annotation {SIZE}: must be a whole number from 1, got {pod.annotations.get(SIZE)!r}"
        )
    index = kueue.whole_number(pod.labels.get(WORKER_INDEX))
    return Place(
        _key(pod.namespace, name, group),
        None if index is None else Number(index, is_across=True),
        pod.annotations.get(kueue.ROLE_HASH, ""),
        Declared(size, f"annotation {SIZE}"),
    )


def _key(namespace: str, name: str, group: str) -> GangKey:
    return GangKey(namespace, f"{name}-{group}", SOURCE)


def keys_of(record: JobRecord) -> Iterator[GangKey]:
    """The gangs of a LeaderWorkerSet: its groups."""
    if record.kind == "LeaderWorkerSet":
        for group in range(record.gangs):
            yield _key(record.namespace, record.name, str(group))


def declared_by(owners: Collection[JobRecord]) -> Declared | None:
    """What the LeaderWorkerSet declares of each of its groups."""
    for record in owners:
        members = sum(part.pods for part in kueue.asking(record.replicas))
        where = f"spec of LeaderWorkerSet {record.name}"
        if not record.is_gradual and EXCLUSIVE not in record.annotations:
            return Declared(members, where)
        return Declared(members, where, needed=1, are_alike=len(record.replicas) == 1)
    return None
