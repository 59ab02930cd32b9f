"""How far kube-scheduler has brought each planned member: the only writer of `Gang.binding`.

    /filter ──▶ answered    /bind ──▶ arrived, held there ──all have arrived──▶ posted

All of it is about one plan: what is known of a member ends with its reservation. What a first
answer or a first arrival changes counts as progress; a member that comes again does not.
"""

from __future__ import annotations

from collections.abc import Iterable

from app.state.gang.gang import Gang


def progress(gang: Gang, at: float) -> None:
    """Note that the plan was made, or is one step nearer to a start."""
    gang.binding.moved_at = at


def answer(gang: Gang, uid: str, now: float) -> None:
    """Note that /filter answered with the member's node."""
    if uid not in gang.binding.answered:
        gang.binding.answered.add(uid)
        progress(gang, now)


def arrive(gang: Gang, uid: str, now: float) -> bool:
    """Hold a member at /bind; False if its binding is under way already."""
    binding = gang.binding
    binding.answered.add(uid)  # perhaps with an older plan: kube-scheduler has decided
    if uid in binding.posted:
        return False
    binding.at_bind.pop(uid, None)  # its older request is answered already
    binding.at_bind[uid] = now
    if uid not in binding.arrived:
        binding.arrived.add(uid)
        progress(gang, now)
    else:
        binding.again_at = now
    return True


def release(gang: Gang, uids: Iterable[str]) -> None:
    """End the hold of these requests at /bind; that the members arrived stays known."""
    for uid in uids:
        del gang.binding.at_bind[uid]


def post(gang: Gang, uids: Iterable[str]) -> None:
    """Count these members that are held at /bind as being bound."""
    for uid in uids:
        del gang.binding.at_bind[uid]
        gang.binding.posted.add(uid)


def start_with(gang: Gang, pod_sets: str, after: str) -> None:
    """Remember how many pods of each pod set the gang starts with; "" where all are alike.

    `after`: when the last pod that it ended for began to end; "" if it did not.
    """
    gang.binding.started_with, gang.binding.started_after = pod_sets, after


def outdate(gang: Gang) -> None:
    """Note that the plan is given up, also for members that are being bound by it."""
    gang.binding.outdated |= gang.binding.posted


def fail(gang: Gang, uid: str) -> bool:
    """Note that a member's binding did not happen: kube-scheduler has to bring it again.

    True if its plan was given up while it was being bound.
    """
    is_outdated = uid in gang.binding.outdated
    gang.binding.outdated.discard(uid)
    gang.binding.posted.discard(uid)
    gang.binding.answered.discard(uid)
    return is_outdated


def forget(gang: Gang, uid: str) -> None:
    """Drop what is known of a member whose reservation has ended."""
    binding = gang.binding
    binding.at_bind.pop(uid, None)
    for some in (binding.answered, binding.arrived, binding.posted, binding.outdated):
        some.discard(uid)


def wait_for(gang: Gang, uids: set[str], until: float) -> None:
    """Note which members must come to /filter before the gang is planned again, or until when."""
    gang.binding.awaited, gang.binding.awaited_until = uids, until
    gang.binding.awaits_rest = gang.has_started


def stop_waiting_for(gang: Gang, uids: Iterable[str]) -> bool:
    """Note that these members have come to /filter, or need not; True if no other is awaited."""
    if gang.binding.awaited.isdisjoint(uids):
        return False
    gang.binding.awaited.difference_update(uids)
    return not gang.binding.awaited
