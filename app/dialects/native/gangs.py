"""Which PodGroup a pod is in, and what a PodGroup is as a gang.

    gang {minCount}   so many pods start together, the others follow as they fit
    basic {}          each pod starts as it fits, which is a gang that needs one pod; where the
                      PodGroup says nothing else, annotations on a Job's pods make that Job a gang
    topology [key]    all pods that exist are in one domain of that level, in either case

A PodGroup says how many pods it takes to start and not how many there are: its pods are those that
exist. One that is inside a CompositePodGroup is a leaf of that one's gang (`trees.py`).

What native PodGroups have no field for may be said in annotations, in the words of Kueue, on the
PodGroup or on its pods: a preferred level, and slices with a level of their own, both inside the
domain that the PodGroup requires.
Source: KEP-4671 "Scheduling policies", KEP-5732 "Basic policy"; kubernetes
pkg/scheduler/framework/plugins/gangscheduling (v1.36).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from app.dialects import corral
from app.dialects.flaw import Flaw
from app.dialects.gang_objects import object_of
from app.dialects.kueue import annotations as keys_of_topology
from app.dialects.kueue.annotations import Strings
from app.dialects.kueue.claims import read_annotations
from app.dialects.kueue.pod_groups import GROUP_NAME, group_names
from app.dialects.native import trees
from app.dialects.native.pod_groups import NO_LEADER, PodGroupRecord
from app.dialects.native.scheduling import LONGEST_NAME
from app.dialects.rules import forbidden, of_spec
from app.dialects.spec import (
    ANYWHERE,
    Claim,
    GangKey,
    GangSpec,
    GroupSpec,
    Index,
    LeafPods,
    Lifecycle,
    Said,
    ends_together,
)
from app.dialects.workloads.job import completion_index, owning_job
from app.kube.core.objects import ObjectRecord, PodRecord

SOURCE = "native"
WORD = "schedulingGroup"
FIELD = f"{WORD}.podGroupName"
GROUP_FIELD = f"spec.{FIELD}"


def gang_of(pod: PodRecord) -> GangKey | None:
    """The gang of the pod's PodGroup, which is in the pod's own namespace; None: it has none."""
    return GangKey(pod.namespace, pod.pod_group[:LONGEST_NAME], SOURCE) if pod.pod_group else None


def claim(pod: PodRecord, objects: Collection[ObjectRecord]) -> Claim | None:
    """Where the pod belongs; None for a pod that names no PodGroup."""
    gang = gang_of(pod)
    if gang is None:
        return None
    if pod.problem:
        return Claim(gang, flaw=pod.problem)
    group, leaf = group_in(gang, objects), ""
    if group is not None and is_left_to_job(group, pod):
        return None
    if group is not None and group.parent:
        outer = trees.around(group, objects)
        if outer.flaw:
            return Claim(gang, flaw=outer.flaw)
        gang, leaf = outer.gang, group.name
    wrong = next(_flaws_around(group, objects), "") if group is not None else ""
    if wrong:
        return Claim(gang, flaw=wrong)
    said, flaw = read_annotations(pod.annotations)
    flaw = flaw or contradiction(pod, said)
    if flaw is not None:
        return Claim(gang, flaw=f"pod {pod.namespace}/{pod.name}: {flaw}")
    number = completion_index(pod)
    index = None if number is None else Index(number, is_across=not leaf)
    return Claim(gang, leaf, index, said)


def is_left_to_job(group: PodGroupRecord, pod: PodRecord) -> bool:
    """Whether the annotations on a Job's pods say more than the PodGroup that was made for it.

    One without a gang or a level says nothing of how the pods start, and the Job controller may
    make it unasked. To the annotations the Job is a gang, which starts whole.
    """
    is_bare = group.is_basic and not (group.flaw or group.parent or group.level or group.slices)
    return (
        is_bare
        and {group.constraint, group.together} == {ANYWHERE}
        and owning_job(pod) is not None
        and keys_of_topology.asks_for_topology(pod.annotations)
    )


def _flaws_around(group: PodGroupRecord, objects: Collection[ObjectRecord]) -> Iterator[str]:
    """What of a PodGroup, and of what it is inside, cannot be kept."""
    if group.flaw:
        yield group.flaw
    yield from trees.flaws_around(group, objects)


def asked_in(pod: PodRecord, objects: Collection[ObjectRecord]) -> str:
    """Where it says that a pod is placed with others; "": the Job controller may have put it there.

    It does so with the pods of any Indexed Job, in PodGroups without a level.
    Source: kubernetes pkg/controller/job (v1.36), the feature gate WorkloadWithJob.
    """
    gang = gang_of(pod)
    group = None if gang is None else group_in(gang, objects)
    asks = bool(asked_besides(pod.labels, pod.annotations))
    if group is not None:
        asks |= bool(group.level or group.slices)
        asks |= {group.constraint, group.together} != {ANYWHERE}
        asks |= bool(group.parent) and trees.levels_around(group, objects)
    return GROUP_FIELD if asks else ""


def refused(pod: PodRecord) -> Claim | None:
    """The claim of a pod while kube-scheduler starts its PodGroup; None: it has it.

    It would start the pod and not keep what annotations request, so that pod does not start.
    """
    gang = gang_of(pod)
    asked = gang and asked_besides(pod.labels, pod.annotations)
    if gang is None or not asked:
        return None
    flaw = next(of_spec([forbidden(FIELD, _is_off(asked))]))
    return Claim(gang, flaw=f"pod {pod.namespace}/{pod.name}: {flaw}")


def _is_off(asked: str) -> str:
    return f"kube-scheduler starts its pods, as native_pod_groups is off, and does not read {asked}"


def asked_besides(labels: Strings, annotations: Strings) -> str:
    """The first key by which a pod requests what kube-scheduler does not read; "" if none does."""
    if group_names(labels, annotations):
        return GROUP_NAME
    keys = (each for each in (*keys_of_topology.KEPT, *corral.WORKLOAD) if each in annotations)
    asks = keys_of_topology.asks_for_topology(annotations)
    return next((each for each in keys if asks or each in corral.WORKLOAD), "")


def contradiction(pod: PodRecord, said: Said) -> Flaw | None:
    """What the pod says besides that names another gang, or other parts of one."""
    text = _contradicts(pod, said)
    return next(of_spec([forbidden(FIELD, text)])) if text else None


def contradicts(pod: PodRecord, *, is_on: bool) -> str:
    """Why pods of a template could be in no PodGroup for what they say besides; "": they can."""
    asked = asked_besides(pod.labels, pod.annotations)
    if not is_on:
        return _is_off(asked) if asked else ""
    return _contradicts(pod, read_annotations(pod.annotations)[0])


def _contradicts(pod: PodRecord, said: Said) -> str:
    names = group_names(pod.labels, pod.annotations)
    if names:
        return f"may not be set together with {GROUP_NAME}, which names pod group {names[0]}"
    if said.pod_set_group:
        return f"{NO_LEADER}, as podset-group-name asks"
    return ""


def group_in(gang: GangKey, objects: Collection[ObjectRecord]) -> PodGroupRecord | None:
    """The PodGroup of a gang; of two while one is made anew, either."""
    return object_of(gang, PodGroupRecord, objects)


def spec_of(
    key: GangKey, group: PodGroupRecord, said: Sequence[Said], pods: Mapping[str, LeafPods]
) -> GangSpec:
    """The spec of a PodGroup whose live pods say this, and of which so many are there, by leaf."""
    leaf = trees.leaf_of(group, "", sum(each.pods for each in pods.values()), said)
    root = GroupSpec(key.name, (leaf,), trees.around_leaf(group, leaf))
    named = trees.levels_named((group,))
    together = trees.together(named, said)
    if together != ANYWHERE:
        root = GroupSpec(key.name, (root,), together)
    said_of_pods = ends_together(said)
    whole = group.ends_together if said_of_pods is None else said_of_pods
    return GangSpec(
        key,
        root,
        f"PodGroup {key}",
        policy=trees.POLICY,
        lifecycle=Lifecycle(counts_succeeded=True, ends_together=whole),
        levels_named=named,
    )
