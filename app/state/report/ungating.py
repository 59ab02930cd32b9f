"""Which gates to take off now, and what to narrow each pod to in the same patch.

A planned member behind our gate gets one Ungate: gate off, and only a few nodes of its domain
left for kube-scheduler to look at. Until the watch shows the pod without its gate no second one is
sent, but for one that failed, or one nobody has heard of for a while.

    no required affinity of its own     the domain's nodes, planned ones first, at most so many
    else                                the labels of the domain: terms can't be added to its own
    else                                nothing: /filter names the node

All pods of a pod set are narrowed alike, to all the domains it was placed in: should the plan be
lost when some are ungated, they can still be placed together.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import replace

from app.dialects import corral
from app.state.effects import Ungate
from app.state.gang.gang import Gang
from app.state.gang.membership import Member
from app.state.settings import EngineSettings

UNSEEN_SECONDS = 10.0  # an Ungate whose result the watch does not show is sent again …
WRITE_SECONDS = 2e-3  # … but not while it may wait for those of its gang's other members
PUSH_SECONDS = 1.0  # between two looks for gates that are still there …
PUSH_REST_SECONDS = 5e-4  # … but for each planned member so much; a look at one takes 3e-7


def ungate(
    gang: Gang, settings: EngineSettings, now: float, uids: Iterable[str] | None = None
) -> Iterator[Ungate]:
    """Have kube-scheduler ask for planned members that are still behind our gate.

    `uids`: which of them; None: every one.
    """
    narrowed: dict[tuple[object, ...], tuple[str, ...]] = {}
    asked = gang.plan.nodes if uids is None else uids
    unseen = now - UNSEEN_SECONDS - WRITE_SECONDS * len(gang.ungating.sent)
    for uid in sorted(uid for uid in asked if _is_due(gang, uid, unseen)):
        member = gang.members[uid]
        gang.ungating.sent[uid] = now
        is_bare = uid in gang.ungating.unnarrowed
        if member.role not in narrowed and not is_bare:
            narrowed[member.role] = _planned_first(gang, member, settings.narrow_nodes)
        nodes = () if is_bare else narrowed[member.role]
        patch = _patch(gang, member, nodes, settings.narrow_nodes)
        # What the patch will leave the pod, though the watch does not show it yet.
        narrow(gang, member, frozenset(patch.nodes) or None)
        yield patch


def _is_due(gang: Gang, uid: str, unseen: float) -> bool:
    """`unseen`: when an Ungate was sent that the watch should show by now."""
    member = gang.members.get(uid)
    if member is None or not member.is_gated or uid not in gang.plan.nodes:
        return False
    return gang.ungating.sent.get(uid, -math.inf) <= unseen


def has_seen(gang: Gang, before: Member | None, member: Member) -> bool:
    """Compare a member with what was known of it: True if its gate has just gone."""
    uid = member.pod.uid
    if member.is_gated:
        if before is not None and uid in gang.ungating.sent:
            member.allowed = before.allowed
        return False
    return gang.ungating.sent.pop(uid, None) is not None


def allows(member: Member, node: str | None) -> bool:
    """Whether the member may still go to the node planned for it, if there is one."""
    return node is None or member.allowed is None or node in member.allowed


def narrow(gang: Gang, member: Member, allowed: frozenset[str] | None) -> None:
    """Learn which nodes a member is narrowed to, though the watch may not show it; None: all."""
    member.allowed = allowed
    gang.ungating.version += 1


def forget(gang: Gang, uid: str) -> None:
    """Forget a member that is gone."""
    gang.ungating.sent.pop(uid, None)
    gang.ungating.unnarrowed.discard(uid)


def is_push_due(gang: Gang, now: float) -> bool:
    """Whether it is time to look for gates that should be gone by now."""
    rest = max(PUSH_SECONDS, PUSH_REST_SECONDS * len(gang.plan.nodes))
    return now >= gang.ungating.pushed_at + rest


def push(gang: Gang, now: float) -> None:
    """Note that the gang was looked at for gates that should be gone."""
    gang.ungating.pushed_at = now


def has_failed(gang: Gang, uid: str, *, is_forbidden: bool) -> None:
    """The API server did not take an Ungate: it is due again, as a bare one if it was refused."""
    if uid in gang.ungating.sent:
        del gang.ungating.sent[uid]
        narrow(gang, gang.members[uid], None)
        if is_forbidden:
            gang.ungating.unnarrowed.add(uid)


def _patch(gang: Gang, member: Member, nodes: tuple[str, ...], most: int) -> Ungate:
    pod, uid = member.pod, member.pod.uid
    bare = Ungate(pod.namespace, pod.name, uid, corral.GATE)
    if uid in gang.ungating.unnarrowed or not most:
        return bare
    if not member.shape.terms:
        node = gang.plan.nodes[uid]
        own = nodes if node in nodes else (node, *nodes[: most - 1])
        return replace(bare, nodes=own, annotations=((corral.NARROWED, corral.NODES),))
    own_keys = {key for key, _ in member.shape.selector}
    labels = tuple(pair for pair in gang.plan.domain_nodes[uid].labels if pair[0] not in own_keys)
    if not labels:
        return bare
    keys = ",".join(key for key, _ in labels)
    return replace(bare, selector=labels, annotations=((corral.NARROWED, keys),))


def _planned_first(gang: Gang, like: Member, most: int) -> tuple[str, ...]:
    """The nodes planned for a member's pod set, then the others of their domains."""
    uids = [uid for uid in gang.plan.nodes if gang.member(uid).role == like.role]
    planned = dict.fromkeys(sorted(gang.plan.nodes[uid] for uid in uids))
    others: dict[str, None] = {}
    for domain in {
        id(gang.plan.domain_nodes[uid]): gang.plan.domain_nodes[uid] for uid in uids
    }.values():
        # A domain of one node is no domain to repair in.
        others |= dict.fromkeys(domain.nodes if len(domain.nodes) > 1 else ())
    return tuple({**planned, **others})[:most]
