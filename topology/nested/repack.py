"""Pod sets that lie in one domain, packed anew there so that one more has room beside them.

A domain may have enough free for a pod set and yet take none of it, as the ones before it lie.
Here these are packed together with it, exactly (`packing`). They stay in that domain, so each is
still where it must be. Members that need most are placed first (`by_demand`), since small ones
find room beside large ones more often than the other way round.

Pod sets with slices, and those with pods that stay, are never moved.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from topology.fit.unit import Unit
from topology.model.resources import Counts
from topology.nested.parts import Part
from topology.nested.state import Held, WalkState
from topology.nested.subtree import Subtree
from topology.nested.unplaced import has_kept
from topology.packing.pack import Packing

MOST_MOVED = 8  # pod sets: with more, a packing is seldom decided within its budget


def by_demand(state: WalkState, part: Part) -> Part:
    """The part with the members of each group in another order: those that need most first.

    Compared is the share that they need of all there is free of what they need most of. Those
    with pods that stay come before all others, as in `unplaced.remaining`: the first of these says
    where the group is.
    Order: of equal members, and of those with pods that stay, as they are written.
    """
    free = np.maximum(state.view.capacity.free_by_domain[0].sum(axis=1), 1)
    return _sorted(state, part, free)


def _sorted(state: WalkState, part: Part, free: Counts) -> Part:
    if not part.members:
        return part
    members = [_sorted(state, member, free) for member in part.members]
    members.sort(key=lambda one: (0, 0.0) if has_kept(one, state.kept) else (1, -_share(one, free)))
    return replace(part, members=tuple(members))


def _share(part: Part, free: Counts) -> float:
    asked = np.zeros(free.size)
    for (request, _), pods in part.demand:
        known = request[: free.size]
        asked[: len(known)] += np.array(known, dtype=np.float64) * pods
    return float((asked / free).max(initial=0.0))


def movable(
    state: WalkState, parts: Iterable[Part], domain: Subtree, around: Subtree
) -> tuple[Part, ...]:
    """The leaves that may be packed anew in a domain together with parts that have no place.

    Empty where there are none, or where the parts cannot be packed with others.
    `around`: the domain of the parts' group.
    """
    if not all(_may_be_packed(state, part, part.floor, domain, around) for part in parts):
        return ()
    found = tuple(_held_inside(state, domain))
    return found if len(found) <= MOST_MOVED else ()


def _held_inside(state: WalkState, domain: Subtree) -> Iterator[Part]:
    """Leaves of which all pods lie in a domain and may lie anywhere else in it."""
    first, end = domain.slots
    for part in state.root.leaves():
        held = state.held.get(id(part))
        if held is None:
            continue
        slots = [placed.slots.indices for placed in held.placed]
        if any(int(each.min()) < first or int(each.max()) >= end for each in slots):
            continue
        if _may_be_packed(state, part, held.unit, domain, held.inside):
            yield part


def _may_be_packed(
    state: WalkState, part: Part, unit: Unit | None, domain: Subtree, around: Subtree
) -> bool:
    return (
        unit is not None
        and unit is part.floor
        and not unit.workers.slices
        and (unit.may_spread or unit.last <= domain.level)
        and around.level <= domain.level
        and not has_kept(part, state.kept)
    )


def repacked(
    state: WalkState,
    parts: Sequence[Part],
    domain: Subtree,
    around: Subtree,
    before: Mapping[int, Held],
) -> list[tuple[Part, Held]]:
    """A place in a domain for all parts at once; none: no such place was found.

    `before`, by the id of a part: where those were that move. Nothing of the parts may be assumed
    to be there any more.
    """
    packing = state.packing(parts, domain)
    if not isinstance(packing, Packing):
        return []
    found = list[tuple[Part, Held]]()
    for part, placed in state.packed(parts, packing, domain):
        assert part.floor is not None, "only leaves are packed"
        inside = before[id(part)].inside if id(part) in before else around
        found.append((part, Held(part.floor, placed, inside)))
    return found
