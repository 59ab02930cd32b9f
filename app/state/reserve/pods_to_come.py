"""What pods will be like that do not exist: members in the place of pods to come.

    its leaves are not told apart   like the first pod there, or one of the pod set that lacks it
    a leaf is declared              like those of its pods that exist, or as declared

Which of them get a place is for `placeholders.py`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import repeat

import msgspec

from app.dialects.spec import Index, LeafSpec
from app.state.gang.gang import Gang
from app.state.gang.members.member import Member
from topology.pod_set.gaps import NO_GAPS


def likenesses(gang: Gang, present: list[Member]) -> Iterator[Member]:
    """What the placeholders stand for: members with foreign gates, then pods to come."""
    kept = {each.member.index for each in gang.placeholders.values()}
    kept_of = Counter(
        each.member.pod_set for each in gang.placeholders.values() if not each.is_spare
    )
    for member in gang.membership.joining:
        if member.is_ready:
            continue
        if kept_of[member.pod_set] > 0 if member.index is None else member.index in kept:
            kept_of[member.pod_set] -= 1
        else:
            yield member
    for like, number in zip(
        _likes(gang, present, kept_of), _numbers_left(gang, present), strict=False
    ):
        yield replace(like, index=number)


def _likes(gang: Gang, present: list[Member], kept_of: Counter[str]) -> Iterator[Member]:
    """What each pod to come is like: the first one, or one of the pod set that lacks it.

    Of a pod set that has no pod at all it is not known what its pods request. While none of the
    gang runs, the first one stands for them too, as before any other has come; later none does.
    """
    if gang.membership.lacking is None:
        yield from repeat(present[0])
        return
    unknown = 0
    for pod_set, pods in gang.membership.lacking.items():
        like = next((each for each in gang.members.values() if each.pod_set == pod_set), None)
        if like is None:
            unknown += pods - kept_of[pod_set]
        else:
            yield from repeat(like, max(pods - kept_of[pod_set], 0))
            unknown -= max(kept_of[pod_set] - pods, 0)  # these stand for others
    if not gang.membership.bound:
        yield from repeat(present[0], max(unknown, 0))


def _numbers_left(gang: Gang, present: list[Member]) -> Iterator[Index | None]:
    """The numbers of the pods to come, if the pods that exist have numbers."""
    first = present[0].index
    if first is None:
        yield from repeat(None)
        return
    taken = {member.index for member in present}
    taken.update(each.member.index for each in gang.placeholders.values())
    spec = gang.membership.spec
    gaps = NO_GAPS if spec is None or first.parts else spec.gaps_of(present[0].leaf)
    for index in gaps.numbers(first.offset):
        number = replace(first, index=index)
        if number not in taken:
            yield number


def numbers_absent(leaf: LeafSpec, there: Sequence[Member], gone: int) -> Iterator[Index | None]:
    """The numbers of a leaf's pods that are to come; None for a pod without one."""
    if leaf.like is not None and leaf.like.numbers:
        taken = {member.index for member in there}
        yield from (index for index in leaf.like.numbers if index not in taken)
    else:
        yield from repeat(None, max(leaf.pods - len(there) - gone, 0))


def from_leaf(first: Member, leaf: LeafSpec, index: Index | None) -> Member:
    """What a pod of this leaf will be like, beside the first member of its gang."""
    assert leaf.like is not None  # no place is reserved for pods of which nothing is known
    like, said = leaf.like.pod, leaf.like.said
    pod = msgspec.structs.replace(
        like,
        namespace=first.pod.namespace,
        name=leaf.name or like.name or first.pod.name,
        priority=first.pod.priority,
        owner=first.pod.owner,
    )
    return Member(
        pod,
        said,
        leaf.name,
        index,
        constraint=said.constraint if leaf.constraint is None else leaf.constraint,
        slices=said.slices if leaf.constraint is None else leaf.slices,
        shape=like.shape,
    )


def as_absent(uid: str, like: Member) -> Member:
    """A member of this uid that does not exist, like one that does or did."""
    pod = msgspec.structs.replace(
        like.pod, uid=uid, node="", phase="Pending", gates=(), is_terminating=False
    )
    return replace(like, pod=pod, allowed=None, narrowed_by=())
