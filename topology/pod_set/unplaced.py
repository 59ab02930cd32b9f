"""What is missing of one pod set beside its pods that stay, and where that may go.

    slices    a slice that lost pods is completed where the rest of it is; slices lost whole are
              placed as new ones
    required  in the domain the kept pods are in
    else      anywhere

Several nodes may be lost at once. If in every slice layer at most one domain is incomplete,
that is Kueue's case of one lost node, and this is its answer. Else each incomplete domain is
completed on its own, from the innermost layer outwards, and whole slices come last, then what
is left as a smaller one. Kept pods of slices that may be smaller may be too many to complete: then
those that lack least are.
Source: kueue pkg/cache/scheduler/tas_flavor_snapshot.go (v0.16), replacement of a node
and elastic workload slices.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from topology.errors import InvalidRequest
from topology.fit.unit import Lead, Unit, part_of
from topology.fit.view import View
from topology.model.answer import NoFit, Pairs, PodSetPlacement
from topology.model.request import PodSet, Slice
from topology.model.tree import Tree
from topology.pod_set import assign, search

Kept = Sequence[tuple[int, int]]
"""(slot, pods that stay on it), in the order in which they are kept if there are too many."""


@dataclass(frozen=True, slots=True)
class _Part:
    """Some of the missing pods, and the slots they are confined to."""

    unit: Unit
    inside: slice | None


def completed(
    view: View, unit: Unit, kept: Mapping[str, Kept], within: slice | None = None
) -> tuple[PodSetPlacement, ...] | NoFit:
    """Places what is missing of one unit, inside some slots, and adds it to what is kept.

    The view assumes nothing more afterwards: `added` says what the caller has to assume.
    """
    stays = staying(unit, kept)
    found: dict[str, list[PodSetPlacement]] = {name: [] for name in stays}
    assumed: list[tuple[Unit, tuple[PodSetPlacement, ...]]] = []
    try:
        for part in _parts(view, unit, stays):
            view.confine(_both(part.inside, within))
            answer = search.place(view, part.unit)
            if isinstance(answer, NoFit):
                return answer
            search.assume(view, part.unit, answer)
            assumed.append((part.unit, answer))
            for pod_set in answer:
                found[pod_set.pod_set].append(pod_set)
    finally:
        view.confine(None)
        for assumed_unit, answer in assumed:
            search.assume(view, assumed_unit, answer, -1)
    placed = [_merged(view.tree, unit, name, stays[name], found[name]) for name in stays]
    return tuple(reversed(placed) if unit.is_leader_first else placed)


def staying(unit: Unit, kept: Mapping[str, Kept]) -> dict[str, list[tuple[int, int]]]:
    """The kept pods of a unit by pod set, the workers first; no more than it has pods."""
    return {one.name: _first(kept.get(one.name, ()), one.pods) for one in unit.pod_sets}


def added(placed: PodSetPlacement, kept: Mapping[str, Kept]) -> Pairs:
    """(slot, pods) of a placement that are not kept there: those that are not on the books."""
    stays = kept.get(placed.pod_set)
    if not stays:
        return placed.slots
    pods_on = Counter(dict(placed.slots))
    for slot, pods in stays:
        pods_on[slot] -= pods
    return Pairs.of([(slot, pods) for slot, pods in pods_on.items() if pods > 0])


def _both(one: slice | None, other: slice | None) -> slice | None:
    """The slots in both ranges; None is all of them."""
    if one is None or other is None:
        return other if one is None else one
    return slice(
        max(one.start, other.start), max(one.start, other.start, min(one.stop, other.stop))
    )


def _first(kept: Kept, pods: int) -> list[tuple[int, int]]:
    """The kept pods, no more than so many of them: the gang may have shrunk."""
    stays: list[tuple[int, int]] = []
    for slot, here in kept:
        if pods > 0 and here > 0:
            stays.append((slot, min(here, pods)))
            pods -= here
    return stays


def _parts(view: View, unit: Unit, stays: Mapping[str, Kept]) -> list[_Part]:
    """What is missing of a unit, in the order it is placed."""
    tree, workers = view.tree, unit.workers
    here = stays[workers.name]
    missing = workers.pods - sum(pods for _, pods in here)
    lead = unit.leader if unit.leader is not None and not stays[unit.leader.name] else None
    anyone = [*here, *(stays[unit.leader.name] if unit.leader is not None else ())]
    around = _required_domain(view, unit, anyone)
    unit = replace(unit, leader=lead)
    parts: list[_Part] = []
    if missing and workers.slices and anyone and view.options.kept_bind:
        parts = _slice_parts(tree, unit, here, missing, around)
    elif missing:
        parts = _as_new(tree, unit, missing, around)
    return parts if lead is None else _with_leader(tree, unit, parts, lead, around)


def _with_leader(
    tree: Tree, unit: Unit, parts: list[_Part], lead: Lead, around: slice | None
) -> list[_Part]:
    """The parts and the leader: beside workers that may go where it may, else alone."""
    if parts and parts[-1].inside == around:
        last = parts[-1].unit
        joint = part_of(tree, last, last.workers.pods, last.workers.slices, lead)
        return [*parts[:-1], _Part(joint, around)]
    pod = replace(
        unit, workers=PodSet(lead.name, 1, lead.request, lead.shape, lacking=lead.lacking)
    )
    return [*parts, _Part(part_of(tree, pod, 1, (), None), around)]


def _required_domain(view: View, unit: Unit, stays: Kept) -> slice | None:
    """The slots of the required domain the first kept pod is in."""
    if unit.may_spread or not stays or not view.options.kept_bind:
        return None
    tree = view.tree
    return tree.slots(unit.last, int(tree.domain_of[unit.last][stays[0][0]]))


def _slice_parts(
    tree: Tree, unit: Unit, stays: Kept, missing: int, around: slice | None
) -> list[_Part]:
    """What is missing of a unit with slices."""
    slices = unit.workers.slices
    incomplete = [
        [domain for domain, pods in by_domain(tree, level, stays).items() if pods % size]
        for level, size in unit.layers.named
    ]
    if max(map(len, incomplete)) > 1:
        return _each_completed(tree, unit, stays, missing, around)
    if missing % slices[0].pods == 0:
        return _as_new(tree, unit, missing, around)
    # As Kueue: the innermost layer the missing pods do not fill, where they complete it.
    level, size = next(layer for layer in reversed(unit.layers.named) if missing % layer[1])
    for domain, pods in sorted(by_domain(tree, level, stays).items()):
        if (pods + missing) % size == 0:
            # As Kueue: the innermost layer whose size divides them.
            finest = [layer for layer in slices if missing % layer.pods == 0][-1:]
            part = part_of(tree, unit, missing, tuple(finest), None)
            return [_Part(part, tree.slots(level, domain))]
    return _as_new(tree, unit, missing, around)


def _as_new(tree: Tree, unit: Unit, missing: int, around: slice | None) -> list[_Part]:
    """Pods that complete no slice: slices of their own, a smaller one for those that are left.

    Where these cannot be searched for at once (`Unit.check_remainder`), the smaller one comes last.
    """
    slices = unit.workers.slices
    rest = missing % slices[0].pods if slices else 0
    if unit.leader is None and len(slices) < 2 and not unit.is_balanced:
        rest = 0  # both in one search
    parts = []
    if missing > rest:
        parts.append(_Part(part_of(tree, unit, missing - rest, slices, None), around))
    if rest:
        inner = [layer for layer in slices[1:] if rest % layer.pods == 0]
        last = (Slice(rest, slices[0].level), *inner)
        parts.append(_Part(part_of(tree, unit, rest, last, None), around))
    return parts


def _each_completed(
    tree: Tree, unit: Unit, stays: Kept, missing: int, around: slice | None
) -> list[_Part]:
    """Each incomplete domain completed on its own, innermost layer first, then whole slices.

    Where slices may be smaller and not all can be completed, those that lack least are.
    """
    parts: list[_Part] = []
    planned = list(stays)
    slices = unit.workers.slices
    may_lack = unit.workers.partial_last_slice
    for index, (level, size) in reversed(list(enumerate(unit.layers.named))):
        lacks = [(domain, -pods % size) for domain, pods in by_domain(tree, level, planned).items()]
        is_short = may_lack and sum(lack for _, lack in lacks) > missing
        for domain, lack in sorted(lacks, key=lambda each: each[::-1] if is_short else each):
            lack = min(lack, missing) if is_short else lack
            if lack:
                inner = tuple(layer for layer in slices[index + 1 :] if lack % layer.pods == 0)
                part = part_of(tree, unit, lack, inner, None)
                parts.append(_Part(part, tree.slots(level, domain)))
                # Which node of the domain it will be does not matter to the layers around it.
                planned.append((int(tree.starts[level][domain]), lack))
                missing -= lack
    if missing < 0:
        raise InvalidRequest(
            f"pod set {unit.workers.name}: {-missing} more pods are needed to make whole slices "
            "of the pods that stay"
        )
    return [*parts, *_as_new(tree, unit, missing, around)]


def by_domain(tree: Tree, level: int, stays: Kept) -> Counter[int]:
    """Kept pods in each domain of a level that has any."""
    by_domain: Counter[int] = Counter()
    for slot, pods in stays:
        by_domain[int(tree.domain_of[level][slot])] += pods
    return by_domain


def _merged(
    tree: Tree, unit: Unit, name: str, stays: Kept, found: list[PodSetPlacement]
) -> PodSetPlacement:
    """Kept and placed pods of one pod set together."""
    level = min((placed.level for placed in found), default=unit.first)
    slots: Counter[int] = Counter()
    for slot, pods in stays:
        slots[slot] += pods
    for placed in found:
        for slot, pods in placed.slots:
            slots[slot] += pods
    return assign.placement(tree, name, level, Pairs.of(sorted(slots.items())))
