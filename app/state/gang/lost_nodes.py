"""Whether a gang lacks pods because a node of it has failed, and not because it is to have more.

What it had is noted as the node fails. Since then it may have been declared to need more pods, or
have needed more already: pods that it never had are no loss.
"""

from __future__ import annotations

from collections.abc import Iterator

from app.dialects.spec import GangSpec
from app.state.gang.gang import Gang
from app.state.gang.members import minimum
from app.state.gang.members.member import Member
from app.state.gang.parts import FailedNode


def had(gang: Gang, lost: Member | None, *, is_known: bool) -> FailedNode:
    """What a gang has as a node fails; `lost`: its pod there, which may not live any more.

    is_known: whether all its pods have been read.
    """
    if not is_known or gang.membership.spec is None:
        return FailedNode()
    spec = gang.membership.spec
    uids = {uid for uid, _ in _with_node(gang, spec)}
    # Those that end there end one after the other, and some may be gone by now.
    for uid, place in gang.placeholders.items():
        if place.instead_of:
            uids.discard(uid)
            uids.add(place.instead_of)
    for uid, each in gang.members.items():
        if each.pod.node and each.pod.is_terminating:
            uids.add(uid)
    if lost is not None:
        uids.add(lost.pod.uid)
    return FailedNode(len(uids) + sum(gang.membership.gone.values()), spec)


def lacks_lost_pods(gang: Gang) -> bool:
    """Whether a gang lacks pods that it had when a node of it failed, and that it needed then."""
    return gang.is_short and any(
        each.spec is None or _lacks(gang, each.spec, each.pods)
        for each in gang.failed_nodes.values()
    )


def _lacks(gang: Gang, spec: GangSpec, pods: int) -> bool:
    leaves = [leaf for _, leaf in _with_node(gang, spec)]
    leaves += [name for name, gone in gang.membership.gone.items() for _ in range(gone)]
    if len(leaves) >= pods:
        return False
    if spec.counts_by_leaf:
        return not minimum.has_enough(spec, minimum.by_leaf(spec, leaves))
    return len(leaves) < minimum.least_pods(spec)


def _with_node(gang: Gang, spec: GangSpec) -> Iterator[tuple[str, str]]:
    """The uid and the leaf of each pod that has a node or has done its work.

    Not of one that another has a place instead of, or is to have.
    """
    replaced = {each.instead_of for each in gang.placeholders.values()}
    for member, _ in gang.settled():
        if member.pod.uid not in replaced:
            yield member.pod.uid, member.leaf
    if spec.lifecycle.counts_succeeded:
        for member in gang.members.values():
            if member.is_done:
                yield member.pod.uid, member.leaf
