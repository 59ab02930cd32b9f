"""What is written on a PodGroup: its phase, its pods by phase, and one condition.

    ""/Pending ──▶ Inqueue ──▶ Running ──▶ Completed      Unknown: some of its pods run, and too few
        its queue has room

Volcano's controllers make a vcjob's pods only when the phase is neither "" nor Pending, and so does
Kubeflow's operator with --gang-scheduler-name=volcano; kube-scheduler's gangs need the pods to be
placed, so a PodGroup of ours is Inqueue as soon as its queue has room for it. Whose it is before it
has pods, the job says.
Source: volcano pkg/scheduler/framework/session.go, `jobStatus`; pkg/controllers/job/
job_controller_actions.go, `syncJob` (v1.14); training-operator pkg/controller.v1/common/
scheduling.go and job.go (v1.9).
"""

from __future__ import annotations

from collections.abc import Collection

from app.dialects.declared import Draw
from app.dialects.gang_objects import path_of, since
from app.dialects.spec import GangKey
from app.dialects.volcano.claims import group_in
from app.dialects.volcano.jobs import VolcanoJobRecord
from app.dialects.volcano.pod_groups import PATH, PodGroupRecord
from app.dialects.volcano.queues import pool_name
from app.dialects.workloads import WorkloadRecord
from app.dialects.written import GangView, StatusPatch
from app.kube.core.objects import ObjectRecord
from app.settings import is_named

SCHEDULED, UNSCHEDULABLE = "Scheduled", "Unschedulable"
READY = ("tasks in gang are ready to be scheduled", "")  # reason and message, as Volcano has them
_OWN = (SCHEDULED, UNSCHEDULABLE)


def draw_of(group: PodGroupRecord) -> Draw | None:
    """What a PodGroup has of its queue, or waits for; None: nothing."""
    if group.phase == "Completed" or not group.least_requests:
        return None
    is_drawn = group.phase not in ("", "Pending")
    return Draw(pool_name(group.queue), group.least_requests, is_drawn, group.created)


def status_of(
    key: GangKey, objects: Collection[ObjectRecord], view: GangView, scheduler: str
) -> StatusPatch | None:
    """The status that a PodGroup should have; None: it has it, or the PodGroup is not ours.

    `scheduler`: the schedulerName of our pods, several with commas, "": any.
    """
    group = group_in(key, objects)
    if group is None or not (view.phase or _will_be_ours(group, objects, scheduler)):
        return None
    phase, counted = _phase(group, view), (view.bound, view.succeeded, view.failed)
    condition = _condition(phase, view)
    if (group.phase, group.counted, _said(group)) == (phase, counted, condition):
        return None
    conditions = [each for each in group.conditions if each.get("type") not in _OWN]
    others = bool(conditions)
    if condition is not None:
        conditions.append(_written(group, *condition))
    status: dict[str, object] = {
        "phase": phase,
        **dict(zip(("running", "succeeded", "failed"), counted, strict=True)),
        "conditions": conditions,
    }
    # It has no status subresource. Without conditions of others nothing is lost by a later write.
    return StatusPatch(path_of(group, PATH), group.uid, status, group.version if others else "")


def _will_be_ours(group: PodGroupRecord, objects: Collection[ObjectRecord], scheduler: str) -> bool:
    """Whether the pods are to be scheduled by us, of a PodGroup that has none yet."""
    return any(
        (isinstance(each, VolcanoJobRecord) and _names(each, scheduler))
        or (isinstance(each, WorkloadRecord) and _is_for(group, each) and each.names(scheduler))
        for each in objects
    )


def _names(job: VolcanoJobRecord, scheduler: str) -> bool:
    """Whether some of a vcjob's pods are to be scheduled by us."""
    return any(is_named(each, scheduler) for each in job.schedulers)


def _is_for(group: PodGroupRecord, job: WorkloadRecord) -> bool:
    """Whether the PodGroup is the job's: another one may have its name."""
    return group.made_for == job.uid


def _phase(group: PodGroupRecord, view: GangView) -> str:
    ready = view.bound + view.succeeded
    if view.phase == "done" and view.succeeded and ready >= group.least:
        return "Completed"
    if view.bound and ready >= group.least:
        return "Running"
    # While its pods are being bound, Unknown would be an event to which a vcjob may restart.
    if view.bound and (not view.is_binding or group.phase == "Unknown"):
        return "Unknown"
    if group.phase == "Completed" and not view.phase:
        return "Completed"
    return "Pending" if view.no_room else "Inqueue"


def _condition(phase: str, view: GangView) -> tuple[str, str, str] | None:
    """Type, reason and message of what is true now."""
    if phase in ("Running", "Completed"):
        return (SCHEDULED, *READY)
    if view.message or view.no_room:
        return UNSCHEDULABLE, "NotEnoughResources", view.message or view.no_room
    return None


def _said(group: PodGroupRecord) -> tuple[str, str, str] | None:
    """The condition of ours that the PodGroup has."""
    for each in group.conditions:
        if each.get("type") in _OWN and each.get("status") == "True":
            return str(each["type"]), str(each.get("reason", "")), str(each.get("message", ""))
    return None


def _written(group: PodGroupRecord, kind: str, reason: str, message: str) -> dict[str, object]:
    before = next((each for each in group.conditions if each.get("type") == kind), {})
    return {
        "type": kind,
        "status": "True",
        "reason": reason,
        "message": message,
        "lastTransitionTime": since("True", before),
    }
