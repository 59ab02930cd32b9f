"""The condition that kube-scheduler would write on a PodGroup, and on a CompositePodGroup.

    PodGroup, v1alpha2             PodGroupScheduled                     True, Scheduled
    PodGroup, v1alpha3, v1beta1    PodGroupInitiallyScheduled            False, Unschedulable
    CompositePodGroup              CompositePodGroupInitiallyScheduled

Once it is True it stays: it says that the group has started, not that its pods run. Of groups
inside one another each says whether its own part has started, and why the whole of them waits.
kube-scheduler writes True before the pods are bound, also where a binding fails then. Here it is
true of the pods: as many as it takes have a node, or have succeeded. That of 1.37 writes nothing on
CompositePodGroups yet.
Source: kubernetes pkg/scheduler/schedule_one_podgroup.go, updatePodGroupCondition (v1.36);
staging/src/k8s.io/api/scheduling/v1beta1/types.go, v1alpha3/types.go (v1.37); KEP-6012 "Status".
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from app.dialects import gang_objects
from app.dialects.native import composites, gangs, trees
from app.dialects.native.composites import CompositeRecord
from app.dialects.native.pod_groups import ALPHA, PodGroupRecord, path_of
from app.dialects.native.trees import Group
from app.dialects.spec import GangSpec
from app.dialects.written import GangView, StatusPatch
from app.kube.core.objects import ObjectRecord

SCHEDULED = "Scheduled"
UNSCHEDULABLE = "Unschedulable"
Said = tuple[str, str, str]
"""Status, reason and message of a condition."""


def condition_of(api: str) -> str:
    """The type of the condition of PodGroups in a version of the API."""
    return "PodGroupScheduled" if api == ALPHA else "PodGroupInitiallyScheduled"


def of_gang(
    spec: GangSpec, objects: Collection[ObjectRecord], view: GangView
) -> Iterator[StatusPatch]:
    """The statuses that the objects of a gang with pods should have, of those that have others."""
    if spec.key.source != trees.SOURCE:
        group = gangs.group_in(spec.key, objects)
        if group is not None:
            is_started = not group.flaw and view.bound + view.succeeded >= group.least
            yield from _written(group, _said(view, has_started=is_started))
        return
    started = _started(spec, objects, view)
    for each in objects:
        if isinstance(each, PodGroupRecord | CompositeRecord):
            is_started = not spec.flaw and started.get(each.uid, False)
            yield from _written(each, _said(view, has_started=is_started))


def _started(
    spec: GangSpec, objects: Collection[ObjectRecord], view: GangView
) -> Mapping[str, bool]:
    """By the uid of each group: whether the pods that it takes have nodes."""
    root = trees.composite_in(spec.key, objects)
    if root is None:
        return {}
    if view.settled is None:
        return {each.uid: view.is_scheduled for each in objects}
    return trees.scheduled(root, objects, view.settled)


def _said(view: GangView, *, has_started: bool) -> Said | None:
    """What is true now; None: nothing that kube-scheduler would say."""
    if has_started:
        return "True", SCHEDULED, ""
    return ("False", UNSCHEDULABLE, view.message) if view.message else None


def _written(group: Group, said: Said | None) -> Iterator[StatusPatch]:
    """The status with this condition, if it has another."""
    if isinstance(group, PodGroupRecord):
        kind, every = condition_of(group.api), path_of(group.api)
    else:
        kind, every = "CompositePodGroupInitiallyScheduled", composites.PATH
    before = next((each for each in group.conditions if each.get("type") == kind), {})
    if said is None or before.get("status") == "True":
        return
    status, reason, message = said
    condition = {
        "type": kind,
        "status": status,
        "observedGeneration": group.generation,
        "reason": reason,
        "message": message,
        "lastTransitionTime": gang_objects.since(status, before),
    }
    if condition == before:
        return
    others = [each for each in group.conditions if each.get("type") != kind]
    path = f"{gang_objects.path_of(group, every)}/status"
    # Without conditions of others nothing is lost by a later write.
    version = group.version if others else ""
    yield StatusPatch(path, group.uid, {"conditions": [*others, condition]}, version)
