"""Where a pod belongs in its PodGang: in the pod group that its label names, or that names it.

    label grove.io/podgang on the pod     its PodGang, whatever others say of it
    podReferences of a PodGang            of pods without that label

Grove's operator writes the PodGang after its first pods, and names its pods there. The same labels
are on the pods from the start, so that they wait for the PodGang.
Source: grove operator/internal/controller/podclique/components/pod/pod.go (v0.1.0-alpha.8).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from app.dialects.flaw import Flaw
from app.dialects.gang_objects import object_of, said_of
from app.dialects.grove import keys
from app.dialects.grove.pod_gangs import PodGangRecord
from app.dialects.rules import forbidden, invalid, label, of_spec, required
from app.dialects.spec import Claim, Family, GangKey, Said
from app.kube.core.cached import KIB, cached
from app.kube.core.objects import ObjectRecord, PodRecord

SOURCE = "grove"


def gang_of(pod: PodRecord) -> GangKey | None:
    """The gang of a pod's PodGang; None: it is in none."""
    name = pod.labels.get(keys.POD_GANG, "")[: keys.LONGEST_NAME]
    return GangKey(pod.namespace, name, SOURCE) if name else None


def claim(pod: PodRecord, objects: Collection[ObjectRecord]) -> Claim | None:
    """Where the pod belongs, as its labels say, or the PodGang that names it; None: in none."""
    gang = gang_of(pod)
    if gang is None:
        return _named(pod, objects)
    if pod.problem:
        return Claim(gang, flaw=pod.problem)
    its = pod_gang_in(gang, objects)
    if its is None:
        return Claim(gang)
    if its.flaw:
        return Claim(gang, flaw=its.flaw)
    flaw = _group_flaw(pod, its)
    if flaw is not None:
        return Claim(gang, flaw=f"pod {pod.name}: {flaw}")
    return Claim(gang, pod.labels[keys.POD_CLIQUE], said=_with_family(said_of(pod), *_place(pod)))


def _named(pod: PodRecord, objects: Collection[ObjectRecord]) -> Claim | None:
    """Where a pod belongs that says nothing of it; of two PodGangs that name it, in neither."""
    naming = {
        each.name: each
        for each in objects
        if isinstance(each, PodGangRecord) and each.namespace == pod.namespace
        if pod.name in each.pods
    }
    if not naming:
        return None
    first, *others = sorted(naming)
    its = naming[first]
    gang, groups = GangKey(pod.namespace, first, SOURCE), its.pods[pod.name]
    if pod.problem or its.flaw:
        return Claim(gang, flaw=pod.problem or its.flaw)
    if others or len(groups) > 1:
        flaw = next(of_spec([_named_twice(first, others, groups)]))
        return Claim(gang, flaw=f"pod {pod.namespace}/{pod.name}: {flaw}")
    return Claim(gang, groups[0], said=_with_family(said_of(pod), *_place(pod)))


def _named_twice(first: str, others: Sequence[str], groups: Sequence[str]) -> Flaw:
    if others:
        more = f" and {len(others) - 1} more" if len(others) > 1 else ""
        text = f"PodGangs {first} and {others[0]}{more} name it, and a pod is in one"
    else:
        text = f"PodGang {first} names it in pod groups {' and '.join(groups)}"
    return forbidden("podgroups.podReferences", text)


def pod_gang_in(gang: GangKey, objects: Collection[ObjectRecord]) -> PodGangRecord | None:
    """The PodGang of a gang; of two while one is made anew, either."""
    return object_of(gang, PodGangRecord, objects)


def _place(pod: PodRecord) -> tuple[str, str, bool]:
    """The PodCliqueSet of a pod, the replica of that, and whether its PodGang is a scaled one."""
    labels = pod.labels
    name = labels.get(keys.PART_OF, "")[: keys.LONGEST_LABEL]
    replica = labels.get(keys.REPLICA, "")[: keys.LONGEST_LABEL]
    return name, replica, bool(labels.get(keys.BASE_POD_GANG))


@cached(512, 4 * KIB)  # the pods of a PodGang share one
def _with_family(said: Said, pod_clique_set: str, replica: str, is_scaled: bool) -> Said:
    """What the pods of one PodGang say."""
    if not (pod_clique_set and replica):
        return said
    name = f"replica {replica} of PodCliqueSet {pod_clique_set}"
    return replace(said, family=Family(name, is_leader=not is_scaled))


def _group_flaw(pod: PodRecord, its: PodGangRecord) -> Flaw | None:
    """Why a pod is in no pod group of its PodGang."""
    name, field = pod.labels.get(keys.POD_CLIQUE, ""), label(keys.POD_CLIQUE)
    if not name:
        return required(field, "pods are in the pod groups of their PodGang")
    if all(each.name != name for each in its.pod_groups):
        return invalid(field, name, "its PodGang has no pod group of this name")
    return None
