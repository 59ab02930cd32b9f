"""What one pod says in Kueue's vocabulary, read once.

| a pod                       | with a topology annotation: its gang | with a queue name alone    |
|-----------------------------|--------------------------------------|----------------------------|
| in a pod group              | the group                            | the group                  |
| of a workload that is known | the workload (`dialects.workloads`)  | none, it is ordinary       |
| of no controller            | it alone                             | it alone                   |
| of another controller       | not known, it is refused             | it alone; see `in_charge`  |

The first row that holds counts. Of another controller it is not known how many pods there are: each
would be a gang of its own, and nothing that they request together would be kept. A queue name alone
requests nothing together. Groups need neither. A pod that breaks a rule belongs to its gang
and cannot join it; the first rule that it breaks is reported. Nor can one of which not all is read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from app.dialects import corral
from app.dialects.flaw import Flaw
from app.dialects.kueue import annotations as topology
from app.dialects.kueue import driver_sets, group_rules, in_charge, pod_groups, rules
from app.dialects.kueue.annotations import LONGEST_NAME, ROLE_HASH, Strings
from app.dialects.rules import BadValue, annotation, boolean, invalid, label, whole_number
from app.dialects.spec import ANYWHERE, Claim, GangKey, Index, LeafSpec, Said
from app.dialects.workloads import KINDS, Place
from app.kube.core.cached import KIB, cached
from app.kube.core.objects import Owner, PodRecord

ALONE = "a pod of no group and no Job"
MOST_CACHED_TEXT = 2_048  # characters of annotations; longer ones are read anew for each pod

_PLACES = tuple(dict.fromkeys(kind.place for kind in KINDS))


@dataclass(frozen=True, slots=True)
class _Read:
    """What the annotations of a template mean, and the rules they break."""

    said: Said
    flaws: tuple[Flaw, ...] = ()

    @property
    def flaw(self) -> Flaw | None:
        """The first rule that is broken so that nothing else counts."""
        return _first(self.flaws)


def claim(pod: PodRecord) -> Claim | None:
    """Where the pod belongs; None for an ordinary pod."""
    said = _claim(pod)
    if not pod.problem:
        return said
    # What was not read may be what makes it a member: it is refused, not taken for an ordinary pod.
    return Claim(said.gang if said else _own_gang(pod), flaw=pod.problem)


def asked_in(pod: PodRecord) -> str | None:
    """Where a pod says which gang it is in, or what that requests; None: it only queues."""
    for where, path in ((pod.labels, label), (pod.annotations, annotation)):
        if pod_groups.GROUP_NAME in where:
            return f"metadata.{path(pod_groups.GROUP_NAME)}"
    key = topology.asking(pod.annotations)
    if not key and pod_groups.TOTAL_COUNT in pod.annotations:
        key = pod_groups.TOTAL_COUNT
    return f"metadata.{annotation(key)}" if key else None


def _claim(pod: PodRecord) -> Claim | None:
    names = pod_groups.group_names(pod.labels, pod.annotations)
    if len(names) == 1 and names[0]:
        return _of_group(pod, names[0])
    if names or pod_groups.TOTAL_COUNT in pod.annotations:
        return _alone(pod)  # of which group is not known; the rules say so
    asks = topology.asks_for_topology(pod.annotations)
    if not asks and not in_charge.is_queued_alone(pod):
        return None
    place = _place(pod)
    if place is not None:
        return _of_workload(pod, place) if asks else None
    claim = _alone(pod)
    asks_together = asks or claim.said.together != ANYWHERE
    if pod.owner is None or claim.flaw or not asks_together:
        return claim
    return replace(claim, flaw=_told(pod, _unread(pod.owner)))


def _unread(owner: Owner) -> str:
    """Why a pod of an owner that is not read is not taken for a gang of its own."""
    return (
        f"its controller is the {owner.kind} {owner.name}, whose size Corral does not read: set"
        f" {pod_groups.GROUP_NAME} and {pod_groups.TOTAL_COUNT} in its pod template"
    )


def _place(pod: PodRecord) -> Place | None:
    """The pod's place in the gang of its owner."""
    return next((place for place_of in _PLACES if (place := place_of(pod))), None)


def _of_group(pod: PodRecord, group: str) -> Claim:
    key = GangKey(pod.namespace, group, pod_groups.SOURCE)
    read, flaw, leaves = _read(pod)
    if flaw is not None:
        return Claim(key, flaw=_told(pod, str(flaw)))
    said = _with_size(pod, read.said, leaves)
    if leaves:
        total = pod.annotations.get(pod_groups.TOTAL_COUNT)
        pods = sum(leaf.pods for leaf in leaves)
        if total is not None and int(total) != pods:
            problem = f"must be {pods}, the pods that {driver_sets.SETS} declares, or left out"
            contradiction = invalid(annotation(pod_groups.TOTAL_COUNT), total, problem)
            return Claim(key, flaw=_told(pod, str(contradiction)))
    leaf = pod_groups.role(pod, leaves) or pod.annotations.get(ROLE_HASH, "")[:LONGEST_NAME]
    return Claim(key, leaf, _shifted(pod_groups.index(pod), read.said.offset), said)


def _with_size(pod: PodRecord, said: Said, leaves: tuple[LeafSpec, ...]) -> Said:
    """What a pod of a group says, its size included; a driver's workers leave that to it."""
    if leaves:
        where = f"annotation {driver_sets.SETS}"
        pods = sum(leaf.pods for leaf in leaves)
        return replace(said, pods=pods, where=where, leaves=leaves)
    total = pod.annotations.get(pod_groups.TOTAL_COUNT)
    if total is None:
        return said
    return _sized(said, int(total), f"annotation {pod_groups.TOTAL_COUNT}")


@cached(512, 4 * KIB)
def _sized(said: Said, pods: int, where: str, is_sure: bool = False) -> Said:
    return replace(said, pods=pods, where=where, is_sure=is_sure)


def _of_workload(pod: PodRecord, place: Place) -> Claim:
    read, flaw, _ = _read(pod)
    flaw = flaw or place.flaw
    if flaw is not None:
        return Claim(place.gang, flaw=_told(pod, str(flaw)))
    said = read.said
    if place.pods is not None:
        said = _sized(said, place.pods, place.where, place.is_sure)
    return Claim(place.gang, place.leaf, _shifted(place.index, read.said.offset), said)


def _alone(pod: PodRecord) -> Claim:
    key = _own_gang(pod)
    read, flaw, _ = _read(pod)
    if flaw is not None:
        return Claim(key, flaw=_told(pod, str(flaw)))
    return Claim(key, said=_sized(read.said, 1, ALONE))


def _own_gang(pod: PodRecord) -> GangKey:
    return GangKey(pod.namespace, pod.name, "pod", pod.uid)


def _shifted(index: Index | None, offset: int) -> Index | None:
    return replace(index, offset=offset) if index is not None and offset else index


def _told(pod: PodRecord, problem: str) -> str:
    return f"pod {pod.namespace}/{pod.name}: {problem}"


# -- annotations ---------------------------------------------------------------------------------


def _read(pod: PodRecord) -> tuple[_Read, Flaw | None, tuple[LeafSpec, ...]]:
    """What the pod's annotations mean, the first rule it breaks, the pod sets it declares."""
    annotations = pod.annotations
    read = _read_annotations(annotations)
    flaw = read.flaw or _first(group_rules.flaws(pod.labels, annotations))
    leaves: tuple[LeafSpec, ...] = ()
    if flaw is None and driver_sets.SETS in annotations:
        try:
            said = pod_groups.said_role(pod.labels, annotations)
            leaves = driver_sets.pod_sets(pod, said)
        except BadValue as error:
            flaw = _sets_flaw(annotations, str(error))
    return read, flaw, leaves


def _sets_flaw(annotations: Strings, problem: str) -> Flaw:
    return invalid(annotation(driver_sets.SETS), annotations[driver_sets.SETS], problem)


def said_in(annotations: Strings) -> Said | None:
    """What the annotations of a template request; None: no topology.

    Invalid ones request nothing: an event about the pods made from it says what is wrong.
    """
    return _read_annotations(annotations).said if topology.asks_for_topology(annotations) else None


def read_annotations(annotations: Strings) -> tuple[Said, Flaw | None]:
    """What the annotations of a template request of its pods, or the first rule that they break."""
    read = _read_annotations(annotations)
    return read.said, read.flaw


def _read_annotations(annotations: Strings) -> _Read:
    items = tuple(annotations.items())
    is_short = sum(len(value) for _, value in items) <= MOST_CACHED_TEXT
    return _cached(items) if is_short else _of_annotations(annotations)


@cached(512, 8 * KIB)  # the pods of a template share one, and so do the events of a pod
def _cached(items: tuple[tuple[str, str], ...]) -> _Read:
    return _of_annotations(dict(items))


def _of_annotations(annotations: Strings) -> _Read:
    flaws = tuple(rules.pod_set_flaws(annotations, None))
    if _first(flaws) is not None:
        return _Read(Said(), flaws)
    flag = {key: boolean(annotations.get(key, "")) for key in pod_groups.FLAGS}
    said = Said(
        topology.constraint(annotations),
        topology.slices(annotations),
        topology.index_offset(annotations),
        annotations.get(topology.POD_SET_GROUP, ""),
        topology.together(annotations),
        is_retriable=flag[pod_groups.RETRIABLE] is not False,
        is_serving=flag[pod_groups.SERVING] is True,
        reserves_all=flag[pod_groups.FAST] is True,
        spares=whole_number(annotations.get(pod_groups.SPARES)) or 0,
        absent_seconds=whole_number(annotations.get(pod_groups.ABSENT_SECONDS)),
        ends_together=corral.ENDS_TOGETHER.get(annotations.get(corral.DISRUPTION, "")),
    )
    return _Read(said, flaws)


def _first(flaws: Iterable[Flaw]) -> Flaw | None:
    return next((flaw for flaw in flaws if flaw.is_fatal), None)


def all_flaws(pod: PodRecord, pods: int | None) -> Iterator[Flaw]:
    """Every rule that one pod, or one template of so many pods, breaks; None: not known."""
    is_readable = True
    of_pod_set: Iterable[Flaw] = (
        _read_annotations(pod.annotations).flaws
        if pods is None
        else rules.pod_set_flaws(pod.annotations, pods)
    )
    for flaw in (*of_pod_set, *group_rules.flaws(pod.labels, pod.annotations)):
        is_readable = is_readable and not flaw.is_fatal
        yield flaw
    if not is_readable:
        return
    asks = topology.asks_for_topology(pod.annotations)
    is_grouped = bool(pod_groups.group_names(pod.labels, pod.annotations))
    if driver_sets.SETS in pod.annotations and (asks or is_grouped):
        try:
            driver_sets.pod_sets(pod)
        except BadValue as error:
            yield _sets_flaw(pod.annotations, str(error))
    place = _place(pod) if pod.name and asks else None
    if place is not None and place.flaw is not None:
        yield place.flaw
