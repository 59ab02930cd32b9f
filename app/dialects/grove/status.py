"""What is written on a PodGang: its phase, and whether it is scheduled.

    Pending     no pod of it has a node
    Starting    its pods are being bound, or fewer have nodes than it takes
    Running     all pods that it takes have nodes; whether their containers run is not looked at

The condition Scheduled is True in the last case, and False with the reason while pods that it takes
wait. Grove's operator writes Initialized, which stays as it is, with the phase Pending and without
the conditions of others: what that takes away is written again. Newer operators plan to write
Scheduled themselves: one with a reason that is not from here is left alone.
Source: grove scheduler/api/core/v1alpha1/podgang.go, PodGangPhase, PodGangConditionTypeScheduled;
operator/internal/controller/podcliqueset/components/podgang/syncflow.go (v0.1.0-alpha.8).
"""

from __future__ import annotations

from typing import Any

from app.dialects.gang_objects import path_of, since
from app.dialects.grove.pod_gangs import PATH, PodGangRecord
from app.dialects.spec import GangView, StatusPatch

TYPE = "Scheduled"
SCHEDULED, UNSCHEDULABLE = "PodGangScheduled", "Unschedulable"  # reasons; Grove has the first
LACKING = "fewer pods have nodes than it takes"
PENDING, STARTING, RUNNING = "Pending", "Starting", "Running"


def status_of(gang: PodGangRecord, view: GangView) -> StatusPatch | None:
    """The status that a PodGang with pods should have; None: it has it."""
    phase = _phase(gang, view)
    if not phase:
        return None
    status: dict[str, object] = {} if phase == gang.phase else {"phase": phase}
    conditions = _conditions(gang, phase, view)
    if conditions is not None:
        status["conditions"] = conditions
    if not status:
        return None
    # The list is written whole: with the version, what Grove writes in between is not lost.
    version = "" if conditions is None else gang.version
    return StatusPatch(f"{path_of(gang, PATH)}/status", gang.uid, status, version)


def _phase(gang: PodGangRecord, view: GangView) -> str:
    """The phase that is true now; "" where nothing is to be said.

    Nothing is as long as pods are missing, unless none that come would help, or some had nodes.
    """
    if view.phase == "done":
        return ""
    if view.bound or view.phase == "binding":
        return RUNNING if view.is_scheduled else STARTING
    is_told = view.phase == "waiting" or (
        view.phase == "gathering" and (gang.flaw or gang.phase in (STARTING, RUNNING))
    )
    return PENDING if is_told else ""


def _conditions(gang: PodGangRecord, phase: str, view: GangView) -> list[dict[str, Any]] | None:
    """All conditions, with the one that is true now; None: they stay as they are."""
    if gang.conditions is None:
        return None  # a merge patch would put these in the place of ones that are not known
    before = next((each for each in gang.conditions if each.get("type") == TYPE), {})
    if before and before.get("reason") not in (SCHEDULED, UNSCHEDULABLE):
        return None
    if phase == RUNNING:
        said = ("True", SCHEDULED, "")
    elif view.phase != "binding":
        said = ("False", UNSCHEDULABLE, view.message or LACKING)
    else:
        return None
    if (before.get("status"), before.get("reason"), before.get("message")) == said:
        return None
    status, reason, message = said
    condition = {
        "type": TYPE,
        "status": status,
        "reason": reason,
        "message": message,
        "lastTransitionTime": since(status, before),
    }
    return [*(each for each in gang.conditions if each.get("type") != TYPE), condition]
