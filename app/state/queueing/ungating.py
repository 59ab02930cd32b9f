"""Which gates to remove now, and what to narrow each pod to in the same patch.

A planned member behind our gate gets one Ungate: it removes the gate, and leaves kube-scheduler
only a few nodes of the member's domain to look at. Until the watch shows the pod without its gate
no second one is sent, unless the first failed, or the watch has not shown it for a while.

    without required node affinity      narrowed to nodes of the domain, planned ones first
    else, if the domain has labels      to these labels: no term can be added to the pod's own
    else                                not narrowed: /filter answers with the node

Of a gang that is born in place no gate is removed before all its pods are there, if it needs them:
until then those behind the gate may go anywhere.

If nodes were asked for by a request, the same patch says that the pod takes these.

All pods of a pod set are narrowed alike, to all the domains it was placed in: if the plan is lost
after some of them were ungated, they can still be placed together.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import replace

from app.dialects import corral
from app.dialects.provisioning import keys
from app.state.effects import Ungate
from app.state.gang.gang import Gang
from app.state.gang.members.member import Member
from app.state.settings import EngineSettings

UNSEEN_SECONDS = 10.0  # an Ungate whose result the watch does not show is sent again …
WRITE_SECONDS = 2e-3  # … later by this for each other Ungate of the gang that is under way
PUSH_SECONDS = 1.0  # between two looks for gates that are still there …
PUSH_REST_SECONDS = 5e-4  # … or this for each planned member, if longer; a look takes 3e-7


def ungate(
    gang: Gang, settings: EngineSettings, now: float, uids: Iterable[str] | None = None
) -> Iterator[Ungate]:
    """An Ungate for every planned member behind our gate that has none under way.

    `uids`: only for these members; None: for all.
    """
    narrowed: dict[tuple[object, ...], tuple[str, ...]] = {}
    wanted = gang.plan.nodes if uids is None else uids
    unseen = now - UNSEEN_SECONDS - WRITE_SECONDS * len(gang.ungating.sent)
    for uid in sorted(uid for uid in wanted if _is_due(gang, uid, unseen)):
        member = gang.members[uid]
        gang.ungating.sent[uid] = now
        is_bare = uid in gang.ungating.unnarrowed
        if member.role not in narrowed and not is_bare:
            narrowed[member.role] = _planned_first(gang, member, settings.narrow_nodes)
        nodes = () if is_bare else narrowed[member.role]
        patch = _patch(gang, member, nodes, settings.narrow_nodes)
        # The watch shows it only later, and the next search must know it.
        narrow(gang, member, frozenset(patch.nodes) or None, patch.selector)
        yield patch


def _is_due(gang: Gang, uid: str, unseen: float) -> bool:
    """`unseen`: the watch should show an Ungate that was sent before this."""
    member = gang.members.get(uid)
    if member is None or not member.is_gated or uid not in gang.plan.nodes:
        return False
    if gang.is_being_born:
        return False  # it may go anywhere until all are there
    return gang.ungating.sent.get(uid, -math.inf) <= unseen


def has_seen(gang: Gang, before: Member | None, member: Member) -> bool:
    """Compare a member with its record before: True if the gate has just gone."""
    uid = member.pod.uid
    if member.is_gated:
        if before is not None and uid in gang.ungating.sent:
            member.allowed, member.narrowed_by = before.allowed, before.narrowed_by
        return False
    return gang.ungating.sent.pop(uid, None) is not None


def allows(member: Member, node: str | None) -> bool:
    """Whether the nodes a member is narrowed to include the node planned for it, if any."""
    return node is None or member.allowed is None or node in member.allowed


def narrow(
    gang: Gang,
    member: Member,
    allowed: frozenset[str] | None,
    labels: tuple[tuple[str, str], ...] = (),
) -> None:
    """Note which nodes a member is narrowed to, though the watch may not show it; None: all.

    `labels`: those of its nodes, where it is narrowed by these.
    """
    member.allowed, member.narrowed_by = allowed, labels
    gang.ungating.version += 1


def forget(gang: Gang, uid: str) -> None:
    """Forget a member that is gone."""
    gang.ungating.sent.pop(uid, None)
    gang.ungating.unnarrowed.discard(uid)


def widen(gang: Gang, beside: tuple[str, ...]) -> None:
    """Note nodes beside those of their domains that members are narrowed to, if there is room."""
    gang.ungating.beside = beside


def is_push_due(gang: Gang, now: float) -> bool:
    """Whether it is time to look for gates that should be gone by now."""
    rest = max(PUSH_SECONDS, PUSH_REST_SECONDS * len(gang.plan.nodes))
    return now >= gang.ungating.pushed_at + rest


def push(gang: Gang, now: float) -> None:
    """Note that the gang was looked at for gates that should be gone."""
    gang.ungating.pushed_at = now


def has_failed(gang: Gang, uid: str, *, is_forbidden: bool) -> None:
    """Note that an Ungate failed: it is due again, without narrowing if that is forbidden."""
    if uid in gang.ungating.sent:
        del gang.ungating.sent[uid]
        narrow(gang, gang.members[uid], None)
        if is_forbidden:
            gang.ungating.unnarrowed.add(uid)


def nodes_of_role(gang: Gang, member: Member, most: int) -> tuple[str, ...]:
    """The nodes that pods of a member's role are narrowed to; () where more are planned for it."""
    uids = (uid for uid in gang.plan.nodes if gang.member(uid).role == member.role)
    planned = {gang.plan.nodes[uid] for uid in uids}
    return _planned_first(gang, member, most) if len(planned) <= most else ()


def _patch(gang: Gang, member: Member, nodes: tuple[str, ...], most: int) -> Ungate:
    pod, uid = member.pod, member.pod.uid
    ask, bare = gang.ask, Ungate(pod.namespace, pod.name, uid, corral.GATE)
    if uid in gang.ungating.unnarrowed:
        return bare  # what else there was in the patch may be what is forbidden
    consuming = tuple(keys.consuming(ask.request, ask.class_name)) if ask.request else ()
    bare = replace(bare, annotations=consuming)
    if not most:
        return bare
    if not member.shape.terms:
        node = gang.plan.nodes[uid]
        own = nodes if node in nodes else (node, *nodes[: most - 1])
        return replace(bare, nodes=own, annotations=((corral.NARROWED, corral.NODES), *consuming))
    own_keys = {key for key, _ in member.shape.selector}
    labels = tuple(pair for pair in gang.plan.domain_nodes[uid].labels if pair[0] not in own_keys)
    if not labels:
        return bare
    names = ",".join(key for key, _ in labels)
    return replace(bare, selector=labels, annotations=((corral.NARROWED, names), *consuming))


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
    return tuple({**planned, **others, **dict.fromkeys(gang.ungating.beside)})[:most]
