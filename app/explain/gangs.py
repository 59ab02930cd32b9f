"""Gangs as they are known, without a search."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from itertools import islice

from app.explain.elsewhere import LED, of_follower
from app.explain.view import GangPage, GangView, NeedsNodes, Pods
from app.kube.core.objects import PodRecord
from app.state.autoscaling.requests import REQUEST
from app.state.engine import Engine
from app.state.gang.gang import PLANNABLE, Gang, Phase
from app.state.gang.reasons import Reason

MOST_DOMAINS = 8  # shown
MOST_LOOKED_AT = 5_000  # pods, for one of some name: 2 ms


def listed(
    engine: Engine,
    now: float,
    *,
    namespace: str = "",
    phase: Phase | None = None,
    reason: Reason | None = None,
    after: str = "",
    limit: int,
    whose: str = "",
) -> GangPage:
    """The first gangs after one, in the order of namespaces, names and sources.

    `whose`: the Lease, in words, if another Corral leads.
    """
    led = LED if whose else ()
    found = {
        _place(each): each
        for each in engine.gangs.by_key.values()
        if namespace in ("", each.key.namespace)
        and phase in (None, each.phase)
        and (
            reason is None
            or reason is (Reason.NOT_LEADING if each.phase in led else reason_of(each, now))
        )
    }
    last = tuple(after.split("/")) if after else ()
    first = heapq.nsmallest(limit + 1, (place for place in found if place > last))
    page = tuple(of_follower(view(found[place], now), whose) for place in first[:limit])
    return GangPage(gangs=page, next="/".join(first[limit - 1]) if len(first) > limit else "")


def _place(gang: Gang) -> tuple[str, ...]:
    """Where it comes in a list, in words without a slash."""
    key = gang.key
    return key.namespace, key.name, key.source, key.epoch


def named(engine: Engine, namespace: str, name: str, source: str = "") -> list[Gang]:
    """The gangs of this name, or of a pod or an owner of this name; the newest epoch of each.

    `source`: of one vocabulary's kind alone; "": of all. MOST_LOOKED_AT pods are looked at, which
    takes some milliseconds: first those of gangs whose name the pod's begins with, as it mostly is.
    """
    gangs = [each for key, each in engine.gangs.by_key.items() if key.namespace == namespace]
    found = [each for each in gangs if each.key.name == name]
    found = found or _with_pod_or_owner(gangs, name)
    newest: dict[tuple[str, str], Gang] = {}
    for each in found:
        at = each.key.name, each.key.source
        if source in ("", each.key.source) and (
            at not in newest or each.number > newest[at].number
        ):
            newest[at] = each
    return [newest[at] for at in sorted(newest)]


def _with_pod_or_owner(gangs: Sequence[Gang], name: str) -> list[Gang]:
    """The gangs with a pod of this name, or with pods that an owner of this name has made."""
    likely = [each for each in gangs if name.startswith(each.key.name)]
    firsts = ((each, next(iter(each.members.values()), None)) for each in gangs)
    # Pods of a gang have one owner, or a few: the first says which, for all gangs alike.
    found = {each.key: each for each, first in firsts if first and _is_of(first.pod, name)}
    members = ((each, member) for each in (*likely, *gangs) for member in each.members.values())
    looked_at = islice(members, MOST_LOOKED_AT)
    found.update((each.key, each) for each, member in looked_at if _is_of(member.pod, name))
    return list(found.values())


def _is_of(pod: PodRecord, name: str) -> bool:
    return pod.name == name or (pod.owner is not None and pod.owner.name == name)


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
