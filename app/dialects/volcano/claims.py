"""Where a pod belongs in its PodGroup.

a sub-group, where a policy gives it one: "worker/1"    its task, where the PodGroup names that
else the leaf without a name: all other pods of the PodGroup
"""

from __future__ import annotations

from collections.abc import Collection

from app.dialects.gang_objects import object_of, said_of
from app.dialects.rules import annotation, whole_number
from app.dialects.spec import Claim, GangKey, Index
from app.dialects.volcano import jobs, keys
from app.dialects.volcano.pod_groups import PodGroupRecord, SubGroupPolicy
from app.dialects.workloads.job import completion_index
from app.kube.core.objects import ObjectRecord, PodRecord

SOURCE = "volcano"
SEPARATOR = "/"  # of a policy and the values: neither a task nor a value has one


def gang_of(pod: PodRecord) -> GangKey | None:
    """The gang of a pod's PodGroup; None: it has none."""
    name = keys.group_of(pod)
    return GangKey(pod.namespace, name, SOURCE) if name else None


def claim(pod: PodRecord, objects: Collection[ObjectRecord]) -> Claim | None:
    """Where the pod belongs, as its PodGroup says; None for a pod of none."""
    gang = gang_of(pod)
    if gang is None:
        return None
    if pod.problem:
        return Claim(gang, flaw=pod.problem)
    group = group_in(gang, objects)
    if group is None:
        return Claim(gang)
    if group.flaw:
        return Claim(gang, flaw=group.flaw)
    return Claim(gang, leaf_of(pod, group), _index(pod), said_of(pod))


def asked_in(pod: PodRecord, objects: Collection[ObjectRecord]) -> str:
    """Where its user has a pod placed; "": a controller may have made its PodGroup for any pod.

    Kubeflow's operator makes PodGroups as well, with tasks, for jobs that say nothing of it.
    """
    key = keys.asking(pod)
    if not key:
        gang = gang_of(pod)
        group = gang and group_in(gang, objects)
        is_asked = group and (group.within or group.policies)
        if is_asked or (pod.owner and pod.owner.api_version.startswith(f"{jobs.GROUP}/")):
            key = keys.GROUP_NAME
    return f"metadata.{annotation(key)}" if key else ""


def group_in(gang: GangKey, objects: Collection[ObjectRecord]) -> PodGroupRecord | None:
    """The PodGroup of a gang; of two while one is made anew, either."""
    return object_of(gang, PodGroupRecord, objects)


def leaf_of(pod: PodRecord, group: PodGroupRecord) -> str:
    """The leaf of the gang's spec that the pod is in."""
    for policy in group.policies:
        values = policy.values_of(pod.labels)
        if values:
            return sub_group(policy, values)
    task = keys.said(pod, keys.TASK)
    return task if task in group.least_of and SEPARATOR not in task else ""


def sub_group(policy: SubGroupPolicy, values: tuple[str, ...]) -> str:
    """The name of a sub-group; no other one of the PodGroup has it."""
    return f"{policy.name}{SEPARATOR}{','.join(values)}"


def _index(pod: PodRecord) -> Index | None:
    """The pod's number in its task, or in its Job."""
    number = whole_number(keys.said(pod, keys.TASK_INDEX))
    if number is None:
        number = completion_index(pod)
    return None if number is None else Index(number, is_across=True)
