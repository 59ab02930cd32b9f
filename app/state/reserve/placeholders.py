"""Placeholders: reserved capacity for pods that do not exist, not yet or not any more.

    a member is lost              its node is held for its replacement, for `owed_seconds`
    a node fails under a member   another node is held before the replacement exists
    fast admission                the first pod of a group has capacity held for all
    workers that come later       capacity is held for them while the first pods start
    spares                        capacity beside that of the members, for the next loss

Each is a member of the plan without being a pod: it has a uid of ours and stands for one pod of
its role. The first pod of that role to join takes it over, together with the node. A pod that
exists comes before those that do not: where it has no other place, theirs are searched too.

No capacity is kept from others for pods that never come: once the gang has started, the places
of pods to come end `absent_seconds` after the last of them came, until another one comes. They stay
for as long when all that ran have done their work: the next may be made because of that.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import islice

from app.dialects.spec import LeafSpec
from app.state.gang.gang import Gang
from app.state.gang.members.member import Member
from app.state.gang.parts import Placeholder
from app.state.reserve.pods_to_come import as_absent, from_leaf, likenesses, numbers_absent


def keep_place(gang: Gang, lost: Member, until: float) -> str:
    """Add a placeholder for the replacement of a member; returns its uid."""
    return _add(gang, lost, until, instead_of=lost.pod.uid)


def prolong(gang: Gang, lost: Member, until: float) -> bool:
    """Keep a lost member's placeholder until then; False if there is none."""
    for place in gang.placeholders.values():
        if place.instead_of == lost.pod.uid:
            place.until = until
            return True
    return False


def forget(gang: Gang, uid: str) -> None:
    """Drop one placeholder: its pod has come, or was not lost."""
    del gang.placeholders[uid]


def review(gang: Gang, now: float, seconds: float, most: int) -> int:
    """Make the placeholders fit the last roll call, and end those whose time is up.

    `seconds`: how long a place is held for a pod to come, where the gang does not say; `most`: for
    how many at most. Returns the number of pods to come whose places were held until now, and are
    not any more.
    """
    absent = gang.absent
    absent.is_between = _is_between(gang, now)
    is_idle = not (gang.membership.members_live or absent.is_between)
    is_over = is_idle or bool(gang.membership.problem or gang.ending)
    _renew(gang, now, seconds)
    over = [uid for uid, each in gang.placeholders.items() if is_over or _is_late(gang, each, now)]
    given_up = [uid for uid in over if gang.placeholders[uid].is_to_come and uid in gang.plan.nodes]
    for uid in over:
        del gang.placeholders[uid]
    absent.too_many, absent.is_cut = 0, False
    if is_over:
        return 0
    _drop_spares(gang, most)
    if now < gang.absent.until:
        _expect_declared(gang, most)
    _expect_spares(gang, most)
    _drop_surplus(gang)
    ends = (_end_of(gang, each) for each in gang.placeholders.values())
    gang.absent.due_at = min(ends, default=math.inf)
    return len(given_up)


def foresee(gang: Gang, founder: Member, now: float, most: int) -> None:
    """Make placeholders for all pods of a gang, of which this one is being created."""
    review(gang, now, math.inf, most)
    _add(gang, founder, math.inf)


def await_again(gang: Gang, member: Member) -> str:
    """Add a placeholder for a pod that was taken for one that exists; returns its uid."""
    return _add(gang, member, math.inf)


def forget_to_come(gang: Gang) -> None:
    """Drop the placeholders of pods to come."""
    for uid in [uid for uid, each in gang.placeholders.items() if each.is_to_come]:
        del gang.placeholders[uid]


def is_cut(gang: Gang, most: int) -> bool:
    """Whether there were no placeholders for all, and now there may be more of them."""
    absent = gang.absent
    return absent.is_cut and len(gang.placeholders) < most and absent.too_many <= most


def is_due(gang: Gang, now: float) -> bool:
    """Whether the time of some placeholder may be up; `review` tells."""
    return gang.absent.due_at <= now


def _is_late(gang: Gang, place: Placeholder, now: float) -> bool:
    return _end_of(gang, place) <= now


def _end_of(gang: Gang, place: Placeholder) -> float:
    """When its time is up."""
    return min(place.until, gang.absent.until) if place.is_to_come else place.until


def _is_between(gang: Gang, now: float) -> bool:
    """Whether the pods that ran have done their work, and others are made once they have."""
    if gang.has_started or not gang.membership.to_come:
        return False
    is_timed = now < gang.absent.until < math.inf
    return is_timed and any(each.is_done for each in gang.members.values())


def _renew(gang: Gang, now: float, seconds: float) -> None:
    """Let the time of places for pods to come begin when the gang starts or one of them comes."""
    spec, absent = gang.membership.spec, gang.absent
    present = 0 if spec is None else spec.pods - gang.membership.vacant
    if absent.is_between and not gang.membership.members_live:
        absent.most_present = present  # the next ones are others
    elif not (gang.has_started or absent.is_between):
        absent.until, absent.most_present = math.inf, present
    elif absent.until == math.inf or present > absent.most_present:
        said = None if spec is None else spec.lifecycle.absent_seconds
        absent.until = now + (seconds if said is None else said)
        absent.most_present = present
    elif spec is not None:
        absent.most_present = min(absent.most_present, spec.pods)


def exchange_with_spare(gang: Gang, uid: str) -> str:
    """Let a spare that has a node take this placeholder's part, which becomes a spare instead.

    Returns the uid of that spare, "" if none has a node.
    """
    kept = gang.placeholders[uid]
    for other, spare in gang.placeholders.items():
        if spare.is_spare and other in gang.plan.nodes and spare.member.role == kept.member.role:
            spare.member = replace(spare.member, index=kept.member.index)
            spare.until, spare.instead_of, spare.is_spare = kept.until, kept.instead_of, False
            spare.lost_on = kept.lost_on
            kept.until, kept.instead_of, kept.lost_on, kept.is_spare = math.inf, "", "", True
            return other
    return ""


def end_for(gang: Gang, done: Member) -> list[str]:
    """Drop the placeholders of a member that has succeeded; returns their uids."""
    uid = done.pod.uid
    ended = [kept for kept, each in gang.placeholders.items() if each.instead_of == uid]
    for kept in ended:
        del gang.placeholders[kept]
    return ended


def forget_lost(gang: Gang) -> None:
    """Drop the placeholders of lost members: the gang starts again as a whole."""
    for uid in [uid for uid, each in gang.placeholders.items() if each.instead_of]:
        del gang.placeholders[uid]


def place_for(gang: Gang, newcomer: Member) -> str:
    """The placeholder that this pod takes over, "" if there is none.

    One with its number comes first, then one with a node, then that of a lost member, whose time
    would begin anew with each loss otherwise, then the oldest.

    Source: KEP-976, "Retrying Failed Pods": a new pod replaces the one that failed first.
    """
    best: tuple[tuple[bool, ...], str] = ((), "")
    role = newcomer.role
    for uid, each in gang.placeholders.items():  # in the order of their age
        unlike = (
            each.member.index != newcomer.index,
            uid not in gang.plan.nodes,
            each.is_spare,
            each.is_to_come,
        )
        if best[1] and unlike >= best[0]:
            continue  # comparing roles costs most
        if each.member.role == role or _is_declared_as(each, newcomer):
            if not any(unlike):
                return uid
            best = (unlike, uid)
    return best[1]


def _is_declared_as(place: Placeholder, newcomer: Member) -> bool:
    """Whether this pod is the one that a template declares, whatever was written on it since."""
    leaf, index = place.member.leaf, place.member.index
    is_told_apart = bool(leaf) or index is not None
    return place.is_declared and is_told_apart and (leaf, index) == (newcomer.leaf, newcomer.index)


def is_spare(gang: Gang, uid: str) -> bool:
    """Whether this is the uid of a spare."""
    place = gang.placeholders.get(uid)
    return place is not None and place.is_spare


def planned(gang: Gang) -> list[str]:
    """The uids of those that have a node; the last of them is the first to be given up."""
    uids = [uid for uid in gang.placeholders if uid in gang.plan.nodes]

    def order(uid: str) -> tuple[bool, bool]:
        return (gang.placeholders[uid].is_spare, gang.placeholders[uid].is_to_come)

    return sorted(uids, key=order)


def spares(gang: Gang) -> tuple[Member, ...]:
    """The spares that have no node yet."""
    return tuple(
        each.member
        for uid, each in gang.placeholders.items()
        if each.is_spare and uid not in gang.plan.nodes
    )


def to_come(gang: Gang) -> list[str]:
    """The placeholders of pods to come that have no node yet."""
    return [
        uid
        for uid, each in gang.placeholders.items()
        if each.is_to_come and uid not in gang.plan.nodes
    ]


def _expect_declared(gang: Gang, most: int) -> None:
    """Add placeholders for declared pods that do not exist, if the gang may start without them.

    Where these are too many, there are none more: the gang is refused whatever they request, and
    does not start with those that it has.
    """
    membership = gang.membership
    present = [*membership.bound, *membership.joining]
    if membership.to_come:
        _expect_leaves(gang, membership.to_come, present, most)
    elif membership.spec is not None and membership.spec.reserves_all and present:
        expected = sum(
            not each.is_spare and not each.instead_of for each in gang.placeholders.values()
        )
        wanted = membership.vacant + _not_ready(gang) - _owed(gang)
        if wanted > most:
            gang.absent.too_many, gang.absent.is_cut = wanted, True
            return
        for like in islice(likenesses(gang, present), max(wanted - expected, 0)):
            _add(gang, like, math.inf)


def _expect_spares(gang: Gang, most: int) -> None:
    """Add the spares that the gang declares."""
    known = sum(each.is_spare for each in gang.placeholders.values())
    for _ in range(_spares_wanted(gang, most) - known):
        first = next(iter((*gang.membership.bound, *gang.membership.joining)))
        _add(gang, first, math.inf, is_spare=True)


def _spares_wanted(gang: Gang, most: int) -> int:
    membership = gang.membership
    if membership.spec is None or not (membership.is_complete or membership.bound):
        return 0
    wanted = membership.spec.lifecycle.spares
    others = sum(not each.is_spare for each in gang.placeholders.values())
    room = max(most - others, 0)
    gang.absent.is_cut = gang.absent.is_cut or wanted > room
    return min(wanted, room)


def _drop_spares(gang: Gang, most: int) -> None:
    """Drop spares beyond what the gang declares."""
    spares = [uid for uid, each in gang.placeholders.items() if each.is_spare]
    _drop_least(gang, spares, len(spares) - _spares_wanted(gang, most))


def _drop_least(gang: Gang, places: list[str], surplus: int) -> None:
    """Drop so many of these placeholders: those without a node first, then the youngest."""
    by_worth = sorted(reversed(places), key=lambda uid: uid in gang.plan.nodes)
    for uid in by_worth[: max(surplus, 0)]:
        del gang.placeholders[uid]


def _expect_leaves(
    gang: Gang, leaves: tuple[LeafSpec, ...], present: list[Member], most: int
) -> None:
    there = [
        *present,
        *(each.member for each in gang.placeholders.values() if not each.is_spare),
        *(member for member in gang.members.values() if member.is_done),
    ]
    wanted = sum(leaf.pods for leaf in leaves) - len(present)
    if wanted > most:
        gang.absent.too_many, gang.absent.is_cut = wanted, True
        return
    for leaf in leaves if present else ():
        of_leaf = [member for member in there if member.leaf == leaf.name]
        # Only a leaf's name says that its pods are of one template.
        like = next((each for each in present if each.leaf == leaf.name != ""), None)
        if like is not None:
            _resemble(gang, like)
        for index in numbers_absent(leaf, of_leaf, gang.membership.gone.get(leaf.name, 0)):
            known = replace(like, index=index) if like is not None else None
            member = known or from_leaf(present[0], leaf, index)
            _add(gang, member, math.inf, is_declared=True)


def _resemble(gang: Gang, like: Member) -> None:
    """Give the places without a node, of this leaf, the role of its pods that exist.

    The API server and webhooks have written more on these than their template says.
    """
    for uid, place in gang.placeholders.items():
        member = place.member
        is_its_place = place.is_declared and member.leaf == like.leaf
        if is_its_place and member.role != like.role and uid not in gang.plan.nodes:
            place.member = as_absent(uid, replace(like, index=member.index))


def _drop_surplus(gang: Gang) -> None:
    """Drop placeholders beyond the pods that are missing."""
    expected = [uid for uid, each in gang.placeholders.items() if not each.is_spare]
    if gang.membership.spec is None:  # the object that declared them has gone
        for uid in [uid for uid in expected if not gang.placeholders[uid].instead_of]:
            del gang.placeholders[uid]
        return
    if gang.membership.lacking is not None:
        _drop_surplus_of_sets(gang, expected, gang.membership.lacking)
    expected = [uid for uid in expected if uid in gang.placeholders]
    surplus = len(expected) - gang.membership.vacant - _instead(gang, expected) - _not_ready(gang)
    _drop_least(gang, expected, surplus)


def _drop_surplus_of_sets(gang: Gang, expected: list[str], lacking: Mapping[str, int]) -> None:
    """Drop placeholders of pod sets that lack fewer pods.

    While none of the gang runs, those beyond stand for pods of sets that no pod shows.
    """
    unbound = {member.pod.uid for member in gang.membership.unbound}
    joining = gang.membership.joining
    waiting = Counter(each.pod_set for each in joining if each.pod.uid not in unbound)
    by_set: dict[str, list[str]] = {}
    for uid in expected:
        by_set.setdefault(gang.placeholders[uid].member.pod_set, []).append(uid)
    unknown = 0
    if not gang.membership.bound:
        known = by_set.keys() | {each.pod_set for each in gang.members.values()}
        unknown = sum(pods for pod_set, pods in lacking.items() if pod_set not in known)
    for pod_set, pods in lacking.items():
        places = by_set.get(pod_set, [])
        surplus = len(places) - pods - waiting[pod_set] - _instead(gang, places)
        stand_in = min(max(surplus, 0), unknown)
        unknown -= stand_in
        _drop_least(gang, places, surplus - stand_in)


def _instead(gang: Gang, places: Iterable[str]) -> int:
    """How many of these placeholders stand for members that still run, on nodes that failed."""
    lost = (gang.members.get(gang.placeholders[uid].instead_of) for uid in places)
    return sum(each is not None and each.is_live for each in lost)


def _not_ready(gang: Gang) -> int:
    """Members that are there, but behind foreign gates."""
    return len(gang.membership.joining) - len(gang.membership.unbound)


def _owed(gang: Gang) -> int:
    return sum(bool(each.instead_of) for each in gang.placeholders.values())


def _add(
    gang: Gang,
    like: Member,
    until: float,
    *,
    instead_of: str = "",
    is_spare: bool = False,
    is_declared: bool = False,
) -> str:
    gang.placeholders_made += 1
    # Not by the gang's name: it may be of any length, and another epoch has the same.
    uid = f"absent/{gang.number}/{gang.placeholders_made}"
    member = as_absent(uid, like)
    lost_on = like.pod.node if instead_of else ""
    gang.placeholders[uid] = Placeholder(member, until, instead_of, lost_on, is_spare, is_declared)
    gang.absent.due_at = min(gang.absent.due_at, until)
    return uid
