"""A place for the pods of a gang that have none, beside those that stay where they are.

Pods lost with a node, pods that are added to a gang that grows, and a leader that is gone are
all the same: some pods are kept, the rest is missing. Where the missing ones may go follows
from the kept ones.

    slices    a slice that lost pods is completed where the rest of it is; slices lost whole are
              placed as new ones
    required  in the domain the kept pods are in
    else      anywhere

Several nodes may be lost at once. If in every slice layer at most one domain is incomplete,
that is Kueue's case of one lost node, and this is its answer. Else each incomplete domain is
completed on its own, from the innermost layer outwards, and whole slices come last.
Source: kueue.md 2.8.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace

from topology import search
from topology.answer import NoFit, Placement, PodSetPlacement
from topology.capacity import Capacity
from topology.errors import InvalidRequest
from topology.request import Gang, PodSet
from topology.resources import Mask
from topology.room import Options, Room
from topology.tree import Tree
from topology.unit import Lead, Unit, part_of, units_of

Kept = Sequence[tuple[int, int]]
"""(slot, pods that stay on it), in the order in which they are kept if there are too many."""

_NO_OPTIONS = Options()


def complete(
    tree: Tree,
    capacity: Capacity,
    gang: Gang,
    masks: Mapping[Hashable, Mask],
    kept: Mapping[str, Kept],
    options: Options = _NO_OPTIONS,
) -> Placement | NoFit:
    """A place for every pod of the gang that leaves the kept ones where they are.

    `kept` names pod sets and leaders. The kept pods are on the books already; where more are
    kept than the gang has pods, the first of them stay.
    Raises: as `search.find`; InvalidRequest also if kept pods cannot be made whole slices.
    """
    search.check_generation(tree, capacity)
    units = units_of(tree, gang, options.unconstrained)
    room = Room(tree, capacity, masks, options)
    placed: list[PodSetPlacement] = []
    for unit in units:
        answer = _complete(room, unit, kept)
        if isinstance(answer, NoFit):
            return replace(answer, is_proven=not placed and not any(kept.values()))
        placed += answer
    return Placement(gang=gang.key, generation=tree.generation, pod_sets=tuple(placed))


@dataclass(frozen=True, slots=True)
class _Part:
    """Some of the missing pods, and the slots they are confined to."""

    unit: Unit
    inside: slice | None


def _complete(
    room: Room, unit: Unit, kept: Mapping[str, Kept]
) -> tuple[PodSetPlacement, ...] | NoFit:
    """Places what is missing of one unit and adds it to what is kept."""
    stays = {unit.workers.name: _first(kept.get(unit.workers.name, ()), unit.workers.pods)}
    if unit.leader is not None:
        stays[unit.leader.name] = _first(kept.get(unit.leader.name, ()), 1)
    found: dict[str, list[PodSetPlacement]] = {name: [] for name in stays}
    for part in _parts(room, unit, stays):
        room.confine(part.inside)
        answer = search.place(room, part.unit)
        room.confine(None)
        if isinstance(answer, NoFit):
            return answer
        search.assume(room, part.unit, answer)
        for pod_set in answer:
            found[pod_set.pod_set].append(pod_set)
    placed = [_merged(room.tree, unit, name, stays[name], found[name]) for name in stays]
    return tuple(reversed(placed) if unit.is_leader_first else placed)


def _first(kept: Kept, pods: int) -> list[tuple[int, int]]:
    """The kept pods, no more than so many of them."""
    stays: list[tuple[int, int]] = []
    for slot, here in kept:
        if pods > 0 and here > 0:
            stays.append((slot, min(here, pods)))
            pods -= here
    return stays


def _parts(room: Room, unit: Unit, stays: Mapping[str, Kept]) -> list[_Part]:
    """What is missing of a unit, in the order it is placed."""
    tree, workers = room.tree, unit.workers
    here = stays[workers.name]
    missing = workers.pods - sum(pods for _, pods in here)
    lead = unit.leader if unit.leader is not None and not stays[unit.leader.name] else None
    anyone = [*here, *(stays[unit.leader.name] if unit.leader is not None else ())]
    around = _required_domain(room, unit, anyone)
    parts: list[_Part] = []
    if missing and workers.slices and anyone and room.options.kept_bind:
        parts = _slice_parts(tree, unit, here, missing, around)
    elif missing:
        parts = [_Part(part_of(tree, unit, missing, workers.slices, None), around)]
    return parts if lead is None else _with_leader(tree, unit, parts, lead, around)


def _with_leader(
    tree: Tree, unit: Unit, parts: list[_Part], lead: Lead, around: slice | None
) -> list[_Part]:
    """The parts and the leader: beside workers that may go where it may, else alone."""
    if parts and parts[-1].inside == around:
        last = parts[-1].unit
        joint = part_of(tree, last, last.workers.pods, last.workers.slices, lead)
        return [*parts[:-1], _Part(joint, around)]
    pod = replace(unit, workers=PodSet(lead.name, 1, lead.request, lead.shape))
    return [*parts, _Part(part_of(tree, pod, 1, (), None), around)]


def _required_domain(room: Room, unit: Unit, stays: Kept) -> slice | None:
    """The slots of the required domain the first kept pod is in."""
    if unit.may_spread or not stays or not room.options.kept_bind:
        return None
    tree = room.tree
    return tree.slots(unit.last, int(tree.domain_of[unit.last][stays[0][0]]))


def _slice_parts(
    tree: Tree, unit: Unit, stays: Kept, missing: int, around: slice | None
) -> list[_Part]:
    """What is missing of a unit with slices."""
    slices = unit.workers.slices
    incomplete = [
        [domain for domain, pods in _by_domain(tree, level, stays).items() if pods % size]
        for level, size in unit.layers.named
    ]
    if max(map(len, incomplete)) > 1:
        return _each_completed(tree, unit, stays, missing, around)
    if missing % slices[0].pods == 0:
        return [_Part(part_of(tree, unit, missing, slices, None), around)]
    # 2.8, step 2: the innermost layer the missing pods do not fill, where they complete it.
    level, size = next(layer for layer in reversed(unit.layers.named) if missing % layer[1])
    for domain, pods in sorted(_by_domain(tree, level, stays).items()):
        if (pods + missing) % size == 0:
            # 2.8, step 3: the innermost layer whose size divides them.
            finest = [layer for layer in slices if missing % layer.pods == 0][-1:]
            part = part_of(tree, unit, missing, tuple(finest), None)
            return [_Part(part, tree.slots(level, domain))]
    return [_Part(part_of(tree, unit, missing, slices, None), around)]


def _each_completed(
    tree: Tree, unit: Unit, stays: Kept, missing: int, around: slice | None
) -> list[_Part]:
    """Each incomplete domain completed on its own, innermost layer first, then whole slices."""
    parts: list[_Part] = []
    planned = list(stays)
    slices = unit.workers.slices
    for index, (level, size) in reversed(list(enumerate(unit.layers.named))):
        for domain, pods in sorted(_by_domain(tree, level, planned).items()):
            lack = -pods % size
            if lack:
                part = part_of(tree, unit, lack, slices[index + 1 :], None)
                parts.append(_Part(part, tree.slots(level, domain)))
                # Which node of the domain it will be does not matter to the layers around it.
                planned.append((int(tree.starts[level][domain]), lack))
                missing -= lack
    if missing < 0:
        raise InvalidRequest(
            f"pod set {unit.workers.name}: {-missing} more pods are needed to make whole slices "
            "of the pods that stay"
        )
    if missing:
        parts.append(_Part(part_of(tree, unit, missing, slices, None), around))
    return parts


def _by_domain(tree: Tree, level: int, stays: Kept) -> Counter[int]:
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
    domains = _by_domain(tree, level, list(slots.items()))
    return PodSetPlacement(
        name, level, tuple(sorted(domains.items())), tuple(sorted(slots.items()))
    )
