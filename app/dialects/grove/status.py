"""What is written on a PodGang: its phase, three conditions and its placement score.

    Pending     no pod of it has a node
    Starting    its pods are being bound, or fewer have nodes than it takes
    Running     all pods that it takes have nodes; whether they are ready is in the conditions

    Scheduled   True while it is Running; False, with the reason, while pods that it takes wait
    Ready       True while minReplicas pods of each pod group are ready; like the next one it is
                there from when the PodGang is Running for the first time
    Unhealthy   True while it is Running and fewer than minReplicas pods of a pod group are ready or
                starting: from then on Grove may terminate it. A pod that is not ready is starting
                unless a container of it has ended with an error, or has started and is not ready
    placementScore    how near its pods are to what it prefers, while it is Running (`nearness.py`)

Grove's operator writes Initialized, which stays as it is, with the phase Pending and without the
conditions of others: what that takes away is written again. Newer operators plan to write Scheduled
and Ready themselves: a condition with a reason that is not from here is left alone. Grove's own
termination goes by conditions of PodCliques. DisruptionTarget is for what terminates the PodGang.
Source: grove scheduler/api/core/v1alpha1/podgang.go, PodGangPhase, PodGangConditionType,
PlacementScore; operator/internal/controller/podcliqueset/components/podgang/syncflow.go and
podclique/reconcilestatus.go, MinAvailableBreached (v0.1.0-alpha.8); GREP-393 "PodGang.MinReplicas
lifecycle and conditions".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from app.dialects.gang_objects import path_of, since
from app.dialects.grove.pod_gangs import PATH, PodGangRecord
from app.dialects.written import GangView, StatusPatch

PENDING, STARTING, RUNNING = "Pending", "Starting", "Running"
SCHEDULED, READY, UNHEALTHY = "Scheduled", "Ready", "Unhealthy"
# Their reasons, when True and when False. Grove has the first of all, and GREP-393 "PodGangReady":
# with another one it is known whose condition it is.
REASONS = {
    SCHEDULED: ("PodGangScheduled", "Unschedulable"),
    READY: ("PodGroupsReady", "PodGroupsNotReady"),
    UNHEALTHY: ("PodGroupsUnhealthy", "PodGroupsHealthy"),
}
LACKING = "fewer pods have nodes than it takes"
UNREADY = "fewer pods are ready than it takes"
FAILING = "fewer pods are ready or starting than it takes"
DIGITS = 4  # of a score


def status_of(gang: PodGangRecord, view: GangView) -> StatusPatch | None:
    """The status that a PodGang with pods should have; None: it has it."""
    phase = _phase(gang, view)
    if not phase:
        return None
    status: dict[str, object] = {} if phase == gang.phase else {"phase": phase}
    conditions = _conditions(gang, phase, view)
    if conditions is not None:
        status["conditions"] = conditions
    score = None if view.nearness is None else round(view.nearness, DIGITS)
    if score != gang.score and phase != STARTING:
        status["placementScore"] = score  # null takes it away
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
    if not view.phase:  # it has no pods, or none any more
        return PENDING if gang.phase in (STARTING, RUNNING) else ""
    if view.bound or view.phase == "binding":
        return RUNNING if view.is_scheduled else STARTING
    is_told = view.phase == "waiting" or (
        view.phase == "gathering" and (gang.flaw or gang.phase in (STARTING, RUNNING))
    )
    return PENDING if is_told else ""


def _conditions(gang: PodGangRecord, phase: str, view: GangView) -> list[dict[str, Any]] | None:
    """All conditions, with those that are true now; None: they stay as they are."""
    if gang.conditions is None:
        return None  # a merge patch would put these in the place of ones that are not known
    there = {str(each.get("type")): each for each in gang.conditions}
    found: dict[str, dict[str, Any]] = {}
    for name, is_true, message in _said(phase, view, there):
        before = there.get(name, {})
        reason = REASONS[name][0 if is_true else 1]
        if before and before.get("reason") not in REASONS[name]:
            continue
        status = "True" if is_true else "False"
        said = (status, reason, message)
        if (before.get("status"), before.get("reason"), before.get("message")) != said:
            found[name] = {
                "type": name,
                "status": status,
                "reason": reason,
                "message": message,
                "lastTransitionTime": since(status, before),
            }
    if not found:
        return None
    others = (each for each in gang.conditions if str(each.get("type")) not in found)
    return [*others, *found.values()]


def _said(
    phase: str, view: GangView, there: Mapping[str, object]
) -> Iterator[tuple[str, bool, str]]:
    """(type, whether it is true, message) of the conditions of which something is to be said."""
    is_running = phase == RUNNING
    if is_running or view.phase != "binding":  # then it stays until the pods have their nodes
        yield SCHEDULED, is_running, "" if is_running else view.message or LACKING
    is_ready = is_running and view.is_ready
    if is_running or READY in there:
        yield READY, is_ready, "" if is_ready else UNREADY
    if is_running or UNHEALTHY in there:
        yield UNHEALTHY, view.is_unhealthy, FAILING if view.is_unhealthy else ""
