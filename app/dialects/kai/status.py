"""What is written on a PodGroup: why its pods are not scheduled, as KAI's scheduler says it.

One condition for each node pool, the last one written at the end of the list. KAI's scheduler
writes it with status True while no pod of the PodGroup has a node, and leaves it there afterwards;
here it becomes False once the gang starts, so that it says what is true now.
Source: KAI-Scheduler pkg/scheduler/cache/status_updater/default_status_updater.go (v0.13).
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from app.dialects.gang_objects import path_of
from app.dialects.kai.claims import group_in
from app.dialects.kai.pod_groups import PATH, PodGroupRecord
from app.dialects.spec import GangKey
from app.dialects.written import AT_WRITE, GangView, StatusPatch
from app.kube.core.objects import ObjectRecord

TYPE = "UnschedulableOnNodePool"
UNSCHEDULABLE, SCHEDULED = "Unschedulable", "Scheduled"  # reasons; KAI has the first


def status_of(
    key: GangKey, objects: Collection[ObjectRecord], view: GangView
) -> StatusPatch | None:
    """The status that a PodGroup should have; None: it has it, or its pods are not ours."""
    group = group_in(key, objects)
    if group is None or not view.phase:
        return None
    said = _condition_of(group)
    status, reason, message = _now(group, view, said)
    if not status or (said.get("status"), said.get("reason"), said.get("message")) == (
        status,
        reason,
        message,
    ):
        return None
    others = [each for each in group.conditions if each.get("nodePool") != group.node_pool]
    condition: dict[str, object] = {
        "type": TYPE,
        "nodePool": group.node_pool,
        "status": status,
        "reason": reason,
        "message": message,
        "reasons": [{"reason": reason, "message": message}] if status == "True" else [],
        "transitionID": str(_last_id(group) + 1),
        "lastTransitionTime": AT_WRITE,
    }
    path = f"{path_of(group, PATH)}/status"
    # Without conditions of other pools nothing is lost by a later write.
    version = group.version if others else ""
    return StatusPatch(path, group.uid, {"schedulingConditions": [*others, condition]}, version)


def _now(group: PodGroupRecord, view: GangView, said: dict[str, Any]) -> tuple[str, str, str]:
    """Status, reason and message of what is true now; "" where nothing is to be said.

    Nothing is as long as pods are missing, unless none that come would help.
    """
    if view.bound or view.phase == "done":
        is_told = said.get("status") == "True"
        return ("False", SCHEDULED, "") if is_told else ("", "", "")
    if not view.message or (view.phase == "gathering" and not group.flaw):
        return "", "", ""
    return "True", UNSCHEDULABLE, view.message


def _condition_of(group: PodGroupRecord) -> dict[str, Any]:
    """The condition of the PodGroup's own pool, {} if it has none."""
    its = (each for each in group.conditions if each.get("nodePool") == group.node_pool)
    return next((each for each in its if each.get("type") == TYPE), {})


def _last_id(group: PodGroupRecord) -> int:
    """The highest transitionID; what is no number counts as none, as in KAI."""
    texts = [str(each.get("transitionID", "")) for each in group.conditions]
    numbers = [
        int(text) for text in texts if text.isascii() and text.isdecimal() and len(text) < 10
    ]
    return max(numbers, default=0)
