"""What would fit instead of a gang that does not: the nearest relaxations.

| what changes                          | found by                                               |
|---------------------------------------|--------------------------------------------------------|
| `WiderLevel`    a required level      | one level wider at a time, of as few as need it        |
| `WiderLevel`    the level of slices   | the same; at last they are no slices                   |
| `FewerMembers`  groups of a group     | the largest number that fits                           |
| `FewerPods`     pods of one pod set   | the same, in whole slices                              |
| `NodesBack`     nodes that are away   | as few as can be found (`fewest`)                      |
| `Never`                               | all nodes open and empty; no node or pod would help    |

Which pods would have to go is another question, asked of `topology.victims`: who may, and whose
going matters least, is more than a change of the books.

Each row changes one thing and leaves the rest as requested. Everything that is reported has been
placed by `walk.find`, with the changed capacity or for the changed gang (`feasibility`).

The budget counts searches. Each row gets an equal share of what is left, and needs at most: for
M members with a level, levels + log M + M; for a pod set or group, log of its size, or 16; for n
changes, log n for each of 8 domains, then one for each change that is still in question. A search
on changed books adds a few passes over all nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from topology.fit.fit import NOT_OPEN
from topology.fit.view import Options
from topology.model.answer import (
    FewerMembers,
    FewerPods,
    Never,
    NodesBack,
    NoFit,
    Placement,
    Relaxation,
    WiderLevel,
)
from topology.model.capacity import Capacity
from topology.model.changed.capacity import Changes, Masks, emptied, returning
from topology.model.request import Gang, Group, PodSet
from topology.model.tree import Tree
from topology.relax.feasibility import Feasibility
from topology.relax.fewest import fewest

_NO_OPTIONS = Options()


@dataclass(frozen=True, slots=True)
class Leeway:
    """What may change, and how long it may be looked for."""

    away: Mapping[int, str] | None = None
    """Slot -> why it is away, of nodes that may return; None: every closed node."""
    masks_back: Masks | None = None
    """What else nodes that are away may host once they are back; None: what the search's masks say.

    A search does not look at what masks say of closed nodes, so they may say it already.
    """
    budget: int = 200
    """Searches at most."""

    def __post_init__(self) -> None:
        if self.budget < 1:
            raise ValueError(f"leeway: budget {self.budget} is less than one search")


_NO_LEEWAY = Leeway()


@dataclass(frozen=True, slots=True)
class Relaxations:
    """What would fit, in the order of the table above; nothing for a gang that fits."""

    found: tuple[Relaxation, ...] = ()
    searches: int = 0
    is_cut_short: bool = False
    """The budget ended before everything was tried: more, or smaller changes, may help."""


def relaxations(
    tree: Tree,
    capacity: Capacity,
    gang: Gang,
    masks: Masks,
    options: Options = _NO_OPTIONS,
    leeway: Leeway = _NO_LEEWAY,
) -> Relaxations:
    """The nearest relaxations under which the gang fits; the books stay as they are.

    Each search may cost what one of `walk.find` does with these options; give few `tries`.
    Raises: as `walk.find`; ValueError for a slot that is not in the tree.
    """
    away = _away(capacity, leeway.away)
    back = returning(capacity, list(away), masks, leeway.masks_back)
    feasibility = Feasibility(tree, capacity, gang, masks, options, leeway.budget)
    if isinstance(feasibility.answer(), Placement):
        return Relaxations((), leeway.budget - feasibility.left)
    never = _never(feasibility, back)
    is_cut_short = feasibility.is_cut_short
    rows = [
        _wider_levels(feasibility),
        _wider_slices(feasibility),
        _fewer_members(feasibility),
        _fewer_pods(feasibility),
    ]
    if not never:
        rows.append(_nodes_back(feasibility, away, back))
    found: list[Relaxation] = []
    for index, row in enumerate(rows):
        feasibility.begin(len(rows) - index)
        found += row
        is_cut_short |= feasibility.is_cut_short
    return Relaxations((*found, *never), leeway.budget - feasibility.left, is_cut_short)


# Another request


def _wider_levels(feasibility: Feasibility) -> Iterator[Relaxation]:
    levels = feasibility.tree.levels
    owners = [
        (levels.index(member.constraint.required), member)
        for member in _members(feasibility.gang.root)
        if member.constraint.required is not None
    ]

    def widened(member: Group | PodSet, level: int) -> Group | PodSet:
        asked = member.constraint
        if level >= 0:
            return replace(member, constraint=replace(asked, required=levels[level]))
        nearest = asked.preferred or asked.required
        return replace(member, constraint=replace(asked, required=None, preferred=nearest))

    return _wider(feasibility, owners, widened, of_slices=False)


def _wider_slices(feasibility: Feasibility) -> Iterator[Relaxation]:
    levels = feasibility.tree.levels
    owners = [
        (levels.index(pod_set.slices[-1].level), pod_set)
        for pod_set in feasibility.gang.pod_sets()
        if pod_set.slices
    ]

    def widened(member: Group | PodSet, level: int) -> Group | PodSet:
        assert isinstance(member, PodSet), "only pod sets have slices"
        layers = [layer for layer in member.slices if levels.index(layer.level) <= level]
        if level >= 0 and (not layers or layers[-1].level != levels[level]):
            # Of the layers that would share the level, the coarsest says it all.
            layers.append(replace(member.slices[len(layers)], level=levels[level]))
        return replace(member, slices=tuple(layers))

    return _wider(feasibility, owners, widened, of_slices=True)


def _wider(
    feasibility: Feasibility,
    owners: Sequence[tuple[int, Group | PodSet]],
    widened: Callable[[Group | PodSet, int], Group | PodSet],
    *,
    of_slices: bool,
) -> Iterator[Relaxation]:
    """The narrowest level that is wide enough for all that must be widened; at last none."""

    def placed(level: int, chosen: Sequence[Group | PodSet]) -> Placement | None:
        instead = {id(member): widened(member, level) for member in chosen}
        return feasibility.place(_edited(feasibility.gang, instead))

    for level in range(max((its for its, _ in owners), default=0) - 1, -2, -1):
        narrower = [member for its, member in owners if its > level]
        place = partial(placed, level)
        found = feasibility.first(narrower, place)
        if found is not None:
            names = tuple(member.name for member in feasibility.thinned(found[0], place))
            key = feasibility.tree.levels[level] if level >= 0 else ""
            yield WiderLevel(names, key, of_slices, feasibility.is_cut_short)
            return


def _fewer_members(feasibility: Feasibility) -> Iterator[Relaxation]:
    for group in _members(feasibility.gang.root):
        if not isinstance(group, Group) or any(isinstance(one, PodSet) for one in group.members):
            continue  # pod sets are the parts of one thing; groups are often copies of it
        needed = len(group.members) if group.needed is None else group.needed

        def fits(members: int, group: Group = group) -> bool:
            return _fits_with(feasibility, group, replace(group, needed=members))

        members = feasibility.most(needed - 1, fits, is_monotone=False)
        if members:
            yield FewerMembers(group.name, members, needed, feasibility.is_cut_short)


def _fewer_pods(feasibility: Feasibility) -> Iterator[Relaxation]:
    pod_sets = tuple(feasibility.gang.pod_sets())
    for pod_set in pod_sets:
        size = pod_set.slices[0].pods if pod_set.slices else 1
        needed = pod_set.pods if pod_set.needed is None else pod_set.needed

        def fits(slices: int, pod_set: PodSet = pod_set, size: int = size) -> bool:
            return _fits_with(
                feasibility, pod_set, replace(pod_set, pods=slices * size, needed=None)
            )

        is_alone = len(pod_sets) == 1 and pod_set.leader is None
        slices = feasibility.most(-(-needed // size) - 1, fits, is_monotone=is_alone)
        if slices:
            yield FewerPods(pod_set.name, slices * size, needed, feasibility.is_cut_short)


def _fits_with(feasibility: Feasibility, member: Group | PodSet, instead: Group | PodSet) -> bool:
    return feasibility.place(_edited(feasibility.gang, {id(member): instead})) is not None


def _members(group: Group) -> Iterator[Group | PodSet]:
    """The group and everything in it, as written."""
    yield group
    for member in group.members:
        if isinstance(member, Group):
            yield from _members(member)
        else:
            yield member


def _edited(gang: Gang, instead: Mapping[int, Group | PodSet]) -> Gang:
    """The gang with others instead of some members, by their id; a group keeps its members."""

    def edited(member: Group | PodSet) -> Group | PodSet:
        changed = instead.get(id(member), member)
        if isinstance(member, Group) and isinstance(changed, Group):
            return replace(changed, members=tuple(map(edited, member.members)))
        return changed

    root = edited(gang.root)
    assert isinstance(root, Group), "a group stays one"
    return replace(gang, root=root)


# Other books


def _never(feasibility: Feasibility, back: Changes) -> tuple[Never, ...]:
    capacity = feasibility.capacity
    books = emptied(capacity, np.ones_like(capacity.is_open))
    masks = back.allowed(feasibility.masks, range(back.number))
    answer = feasibility.answer(capacity=books, masks=masks)
    return (Never(answer),) if isinstance(answer, NoFit) else ()


def _nodes_back(
    feasibility: Feasibility, away: Mapping[int, str], back: Changes
) -> Iterator[Relaxation]:
    chosen = fewest(feasibility, back)
    if chosen is not None:
        slots = back.slots[chosen].tolist()
        nodes = tuple((slot, feasibility.tree.nodes[slot], away[slot]) for slot in slots)
        yield NodesBack(nodes, feasibility.is_cut_short)


def _away(capacity: Capacity, away: Mapping[int, str] | None) -> dict[int, str]:
    """Slot -> why, ascending."""
    if away is None:
        return dict.fromkeys(np.flatnonzero(~capacity.is_open).tolist(), NOT_OPEN)
    return dict(sorted(away.items()))
