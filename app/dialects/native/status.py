"""The condition that kube-scheduler would write on a PodGroup.

    v1alpha2   PodGroupScheduled            True, Scheduled    False, Unschedulable
    v1beta1    PodGroupInitiallyScheduled   the same

Once it is True it stays: it says that the PodGroup has started, not that its pods run.
kube-scheduler writes True before the pods are bound, also where a binding fails then. Here it is
true of the pods: as many as it takes have a node, or have succeeded.
Source: kubernetes pkg/scheduler/schedule_one_podgroup.go, updatePodGroupCondition (v1.36);
staging/src/k8s.io/api/scheduling/v1beta1/types.go (v1.37).
"""

from __future__ import annotations

from app.dialects import gang_objects
from app.dialects.native.pod_groups import ALPHA, PodGroupRecord, path_of
from app.dialects.spec import GangView, StatusPatch

SCHEDULED = "Scheduled"
UNSCHEDULABLE = "Unschedulable"
Said = tuple[str, str, str]
"""Status, reason and message of a condition."""


def condition_of(api: str) -> str:
    """The type of the condition in a version of the API."""
    return "PodGroupScheduled" if api == ALPHA else "PodGroupInitiallyScheduled"


def status_of(group: PodGroupRecord, view: GangView) -> StatusPatch | None:
    """The status that a PodGroup with pods should have; None: it has it."""
    kind, said = condition_of(group.api), _said(group, view)
    before = next((each for each in group.conditions if each.get("type") == kind), {})
    if said is None or before.get("status") == "True":
        return None
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
        return None
    others = [each for each in group.conditions if each.get("type") != kind]
    path = f"{gang_objects.path_of(group, path_of(group.api))}/status"
    # Without conditions of others nothing is lost by a later write.
    version = group.version if others else ""
    return StatusPatch(path, group.uid, {"conditions": [*others, condition]}, version)


def _said(group: PodGroupRecord, view: GangView) -> Said | None:
    """What is true now; None: nothing that kube-scheduler would say."""
    if not group.flaw and view.bound + view.succeeded >= group.least:
        return "True", SCHEDULED, ""
    return ("False", UNSCHEDULABLE, view.message) if view.message else None
