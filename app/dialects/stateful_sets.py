"""Gangs that a StatefulSet owns: its pods with a topology annotation start together.

With `podManagementPolicy: OrderedReady`, which is the default, a pod is only made once the one
before it runs: nobody can wait for all of them. There the first pod takes places for the rest
along, and each one that follows finds its own.
Source: kueue.md 3 (index label), the StatefulSet controller.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from app.dialects import kueue
from app.dialects.membership import Declared, GangKey, Number, Place
from app.kube.core.objects import JobRecord, PodRecord

POD_INDEX = "apps.kubernetes.io/pod-index"
KEPT = (POD_INDEX,)
SOURCE = "statefulset"


def place_of(pod: PodRecord) -> Place | None:
    """The pod's place in the gang of its StatefulSet; None: no StatefulSet owns it."""
    owner = pod.owner
    if owner is None or owner.kind != "StatefulSet" or not owner.api_version.startswith("apps/"):
        return None
    # Clusters older than the label have the number in the name alone.
    text = pod.labels.get(POD_INDEX, pod.name.removeprefix(f"{owner.name}-"))
    index = kueue.whole_number(text)
    number = None if index is None else Number(index)
    return Place(GangKey(pod.namespace, owner.name, SOURCE, owner.uid), number)


def keys_of(record: JobRecord) -> Iterator[GangKey]:
    """The gang of a StatefulSet."""
    if record.kind == "StatefulSet":
        yield GangKey(record.namespace, record.name, SOURCE, record.uid)


def declared_by(owners: Collection[JobRecord]) -> Declared | None:
    """What the StatefulSet declares."""
    for record in owners:
        where = f"replicas of StatefulSet {record.name}"
        if record.is_gradual:
            return Declared(record.parallelism, where, needed=1, are_alike=True)
        return Declared(record.parallelism, where)
    return None
