"""Gangs as they are known, without a search."""

from __future__ import annotations

from app.explain.view import GangView, NeedsNodes, Pods
from app.state.autoscaling.requests import REQUEST
from app.state.gang.gang import PLANNABLE, Gang, Phase
from app.state.gang.reasons import Reason

MOST_DOMAINS = 8  # shown


def view(gang: Gang, now: float) -> GangView:
    """One gang in a word and a sentence."""
    key, membership = gang.key, gang.membership
    is_waiting = gang.phase in PLANNABLE
    return GangView(
        namespace=key.namespace,
        name=key.name,
        source=key.source,
        phase=gang.phase.value,
        reason=reason_of(gang, now),
        message=message_of(gang),
        priority=gang.priority,
        waiting_seconds=max(0.0, now - gang.complete_at) if is_waiting else None,
        pods=Pods(
            declared=membership.pods,
            there=membership.members_live,
            planned=len(gang.plan.nodes.keys() & gang.members.keys()),
            bound=len(membership.bound),
        ),
        domains=tuple(sorted(set(gang.plan.domains.values()))[:MOST_DOMAINS]),
        needs_nodes=_needs_nodes(gang, now) if is_waiting else None,
    )


def _needs_nodes(gang: Gang, now: float) -> NeedsNodes | None:
    need = gang.need
    if not need.is_open or need.lack is None:
        return None
    return NeedsNodes(
        reason=need.why,
        pods=len(gang.unplanned()),
        level=need.lack.level,
        largest=need.lack.available,
        ask="request" if gang.ask.how == REQUEST else "mark",
        request=gang.ask.request if gang.ask.how == REQUEST else "",
        message=gang.ask.shown if gang.ask.how == REQUEST else "",
        since_seconds=max(0.0, now - need.opened_at),
    )


def reason_of(gang: Gang, now: float) -> Reason:
    """Why the gang is where it is."""
    match gang.phase:
        case Phase.GATHERING:
            return _why_gathering(gang)
        case Phase.WAITING | Phase.REPAIRING:
            return _why_waiting(gang, now)
        case Phase.PLACED:
            return Reason.AWAITING_SCHEDULER
        case Phase.BINDING:
            return Reason.STARTING
        case Phase.RUNNING:
            return Reason.RUNNING
        case Phase.DONE:
            return Reason.ENDED


def _why_gathering(gang: Gang) -> Reason:
    membership = gang.membership
    if not gang.roll_calls:
        return Reason.QUEUED
    if membership.problem or any(each.flaw for each in gang.members.values()):
        return Reason.INVALID
    if membership.is_unread or (membership.spec is None and not membership.bound):
        return Reason.UNREAD
    if any(each.is_live and not each.is_ready for each in gang.members.values()):
        return Reason.GATED
    return Reason.INCOMPLETE


def _why_waiting(gang: Gang, now: float) -> Reason:
    if gang.binding.awaited:
        return Reason.REFUSED_BY_SCHEDULER
    if now < gang.back_off.not_before:
        return Reason.BACKING_OFF
    if gang.reporting.sentence_at is None:
        return Reason.QUEUED
    is_apart = gang.reporting.is_narrowed_apart and gang.reporting.reason is Reason.DOES_NOT_FIT
    return Reason.NARROWED_APART if is_apart else gang.reporting.reason


def message_of(gang: Gang) -> str:
    """The same in one sentence; of a gang that waits, the one that its pods are told."""
    pods, bound = len(gang.plan.nodes), len(gang.membership.bound)
    all_pods = "1 pod" if bound == 1 else f"{bound} pods"
    match gang.phase:
        case Phase.PLACED:
            came = len(gang.binding.arrived)
            return f"gang {gang.key} is placed; {came} of its {pods} pods have come to /bind"
        case Phase.BINDING:
            return f"gang {gang.key} starts: {bound} of its {bound + pods} pods are bound"
        case Phase.RUNNING:
            return f"gang {gang.key} runs with {all_pods}"
        case Phase.DONE:
            return f"gang {gang.key} has ended"
    return gang.reporting.sentence or f"gang {gang.key} has not been looked at yet"
