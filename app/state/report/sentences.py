"""What is said of a gang as it is now, put together from its record."""

from __future__ import annotations

from collections import Counter

from app.state.gang.gang import Gang, Phase
from app.state.gang.members.member import Member
from app.state.plan.verdict import NoPlan
from app.state.report.messages import gangs as messages


def not_joining(gang: Gang, member: Member, *, is_excess: bool) -> str:
    """Why a live pod is not part of its gang: it is in excess, or declares another size."""
    membership = gang.membership
    assert membership.spec is not None  # without a declared size no pod is in excess
    if membership.is_over:
        return messages.over(gang.key, member.pod)
    if is_excess:
        return messages.in_excess(gang.key, member.pod, membership.spec)
    return messages.mismatched(gang.key, member.pod, member.said, membership.spec)


def incomplete(gang: Gang) -> str:
    """What a gang waits for before it is tried: members, or what declares them; "": nothing."""
    membership = gang.membership
    if gang.phase is not Phase.GATHERING or membership.problem or membership.bound:
        return ""
    if membership.is_unread:
        return ""  # for a moment
    if membership.spec is None or membership.spec.awaits:
        return gang.reporting.sentence
    members = sum(member.is_ready for member in membership.joining)
    return messages.incomplete(gang.key, members, membership.spec, first_pods(gang))


def first_pods(gang: Gang) -> int | None:
    """How many pods a gang starts with that need not have all; 0: any of them; None: with all."""
    spec = gang.membership.spec
    if spec is None or (gang.birth is not None and gang.birth.starts_whole):
        return None
    if spec.starts_with:
        return spec.starts_with if spec.starts_with < spec.pods else None
    return 0 if spec.reserves_all or spec.starts_with == 0 else None


def placed(gang: Gang) -> str:
    """For how many of its pods there are nodes, and for how many places for pods to come."""
    spares = {uid for uid, each in gang.placeholders.items() if each.is_spare}
    planned = Counter(uid in gang.members for uid in gang.plan.nodes.keys() - spares)
    left = sum(member.pod.uid in gang.members for member in gang.unplanned())
    return messages.placed(gang.key, planned[True], left, planned[False])


def verdict_of(gang: Gang, verdict: NoPlan) -> str:
    """A verdict in the words that events and /filter use."""
    if verdict.is_mistake:
        return messages.mistaken(gang.key, str(verdict))
    if gang.membership.bound:
        return messages.not_repaired(gang.key, len(gang.unplanned()), str(verdict))
    return messages.no_place(gang.key, str(verdict))
