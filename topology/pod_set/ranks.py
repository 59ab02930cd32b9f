"""Which pod goes to which node of a placement: ranks where they can be trusted, else in order.

    labels of a pod ─rank_of─▶ rank ─┐
    placement ─assignment─▶ slot of each rank ─by_rank─▶ slot of each pod

The slots of a placement are in the order of the tree, so consecutive ranks are as close to each
other as the tree allows. Ranks are used for all pods of a pod set or for none: one missing or
doubtful rank, or one pod that runs elsewhere, and pods fill the slots in the order given. The
answer says why.
Source: kueue pkg/controller/tas/topology_ungater.go (v0.16).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from topology.model.answer import PodSetPlacement
from topology.model.resources import Rows
from topology.pod_set.assign import assignment
from topology.pod_set.gaps import NO_GAPS, Gaps

NO_SLOT = -1


@dataclass(frozen=True, slots=True)
class Numbering:
    """How the pods of one pod set are numbered by the controller that made them."""

    pods: int
    """Pods of the pod set."""
    offset: int = 0
    """Index of its first pod: workers count on from their leader."""
    parts: int = 0
    """Equal sub-groups that are each numbered from 0 (JobSet: replicas); 0: there are none."""
    gaps: Gaps = NO_GAPS
    """Numbers that none of them has, where there are no parts."""


def rank_of(numbering: Numbering, index: int | None, part: int | None = None) -> int | None:
    """The rank of a pod among `pods`, or None if its labels give none.

    `index` is the pod's own number, `part` that of its sub-group; None: no such label, or not a
    number.
    Source: kueue pkg/controller/tas/topology_ungater.go (v0.16), the rank of a pod.
    """
    if index is None or index < 0:
        return None
    if numbering.parts:
        size = numbering.pods // numbering.parts
        if part is None or not 0 <= part < numbering.parts or index >= size:
            return None
        index += part * size
    elif index in numbering.gaps:
        return None
    rank = index - numbering.offset
    if not numbering.parts:
        rank -= numbering.gaps.below(index) - numbering.gaps.below(numbering.offset)
    return rank if 0 <= rank < numbering.pods else None


@dataclass(frozen=True, slots=True)
class Member:
    """A pod that is not finished: its rank, and the slot it is on already."""

    rank: int | None
    slot: int | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Seats:
    """The slot of each pod."""

    slots: Rows
    """(pods,) in the order given; NO_SLOT: more pods than places."""
    fallback: str = ""
    """Why ranks were not used; empty: they were."""


def by_rank(placement: PodSetPlacement, members: Sequence[Member]) -> Seats:
    """A slot for each pod, by its rank if all ranks can be trusted.

    Pods that are on a slot keep it.
    """
    places = assignment(placement)
    fallback = _distrust(places, members)
    if fallback:
        return Seats(_in_order(placement, members), fallback)
    ranks = np.array([member.rank for member in members], dtype=np.intp)
    return Seats(places[ranks])


def _distrust(places: Rows, members: Sequence[Member]) -> str:
    """Why ranks are not used; empty if they are."""
    seen: set[int] = set()
    for number, member in enumerate(members):
        rank = member.rank
        if rank is None:
            return f"pod {number} has no rank"
        if not 0 <= rank < places.size:
            return f"pod {number} has rank {rank} of {places.size}"
        if rank in seen:
            return f"two pods have rank {rank}"
        seen.add(rank)
        if member.slot is not None and member.slot != places[rank]:
            return f"pod {number} is not where its rank {rank} belongs"
    return ""


def _in_order(placement: PodSetPlacement, members: Sequence[Member]) -> Rows:
    """Pods without a slot fill what the others leave of the placement, in the order given."""
    taken = Counter(member.slot for member in members if member.slot is not None)
    left = [
        slot for slot, pods in placement.slots for _ in range(max(0, pods - taken.get(slot, 0)))
    ]
    free = iter(left)
    return np.array(
        [next(free, NO_SLOT) if member.slot is None else member.slot for member in members],
        dtype=np.intp,
    )
