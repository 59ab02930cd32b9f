"""Segments: the pods of a template cut into parts by their numbers, each in a domain of its own.

    segment-size 4, replica-index 9 ──▶ segment 2: the pods 8 to 11

The pod-grouper of newer versions makes a sub-group of each segment; then this is not needed. An
older one does not read these annotations, and what it writes has no sub-groups: the segments are
made here, so that the wish is not left out. Of what the PodGroup takes to start, the segments with
the lowest numbers have to be there first.
Source: KAI-Scheduler docs/developer/designs/segmented-subgroups.
"""

from __future__ import annotations

from collections.abc import Iterator

from app.dialects.flaw import Flaw
from app.dialects.kai import keys
from app.dialects.kai.pod_groups import PodGroupRecord
from app.dialects.kai.topology import LONGEST_KEY
from app.dialects.rules import (
    annotation,
    invalid,
    label,
    required,
    too_long,
    unsupported,
    whole_number,
)
from app.dialects.spec import Claim, GangKey, LeafSpec, Said
from app.kube.core.cached import KIB, cached
from app.kube.core.objects import PodRecord
from topology.model.request import Constraint

LEAST_SIZE = 2
SEPARATOR = "/"  # of a template and a number: no sub-group's name has one


def flaws_of(pod: PodRecord) -> Iterator[Flaw]:
    """Every rule that the segment annotations of a pod break, or of a template."""
    said = pod.annotations
    if keys.SEGMENT_SIZE not in said:
        return
    where, size = annotation(keys.SEGMENT_SIZE), said[keys.SEGMENT_SIZE]
    number = whole_number(size)
    if number is None or number < LEAST_SIZE:
        yield invalid(where, size, f"must be a number of pods, at least {LEAST_SIZE}")
    levels = [said.get(key, "") for key in (keys.SEGMENT_REQUIRED, keys.SEGMENT_PREFERRED)]
    if not any(levels):
        text = f"a segment is in one domain of this level, or of {keys.SEGMENT_PREFERRED}"
        yield required(annotation(keys.SEGMENT_REQUIRED), text)
    for key in (keys.SEGMENT_REQUIRED, keys.SEGMENT_PREFERRED):
        if len(said.get(key, "")) > LONGEST_KEY:
            yield too_long(annotation(key), LONGEST_KEY)
    named = said.get(keys.INDEX_LABEL)
    if named is not None and named not in keys.INDEXES:
        yield unsupported(annotation(keys.INDEX_LABEL), named, keys.INDEXES)


def flaw_in(pod: PodRecord, group: PodGroupRecord) -> Flaw | None:
    """Why a pod, whose annotations are valid, is in no segment of its PodGroup."""
    if keys.SEGMENT_SIZE not in pod.annotations:
        return None
    topology = pod.annotations.get(keys.TOPOLOGY, group.topology)
    if not group.topology or topology != group.topology:
        text = f"its PodGroup names {group.topology[:63] or 'none'} in spec.topologyConstraint"
        return invalid(annotation(keys.TOPOLOGY), topology, text)
    if _index(pod) is None:
        text = f"no number is there, nor in another of {', '.join(keys.INDEXES)}"
        return required(label(_index_label(pod)), text)
    return None


def claim(pod: PodRecord, gang: GangKey, said: Said) -> Claim:
    """Where a pod without a flaw belongs; `said`: what else it says of its gang."""
    index = _index(pod)
    if keys.SEGMENT_SIZE not in pod.annotations or index is None or index < 0:
        return Claim(gang, said=said)
    size = int(pod.annotations[keys.SEGMENT_SIZE])
    template = pod.labels.get(keys.REPLICA_TYPE, "segment")
    segment = _segment(
        f"{template}{SEPARATOR}{index // size}",
        size,
        pod.annotations.get(keys.SEGMENT_REQUIRED, ""),
        pod.annotations.get(keys.SEGMENT_PREFERRED, ""),
        said.ends_together,
    )
    return Claim(gang, segment.leaves[0].name, said=segment)


@cached(512, 4 * KIB)  # the pods of a segment share one
def _segment(name: str, size: int, needed: str, preferred: str, ends_together: bool | None) -> Said:
    constraint = Constraint(needed or None, preferred or None)
    return Said(ends_together=ends_together, leaves=(LeafSpec(name, size, constraint),))


def _index_label(pod: PodRecord) -> str:
    named = pod.annotations.get(keys.INDEX_LABEL, "")
    return named or next((key for key in keys.INDEXES if key in pod.labels), keys.INDEXES[0])


def _index(pod: PodRecord) -> int | None:
    """The pod's number in its template; -1 for the leader of a LeaderWorkerSet."""
    key = _index_label(pod)
    number = whole_number(pod.labels.get(key))
    return number if number is None or key != keys.WORKER_INDEX else number - 1
