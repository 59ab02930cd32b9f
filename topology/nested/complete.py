"""A place for the pods of a gang that have none, beside those that stay where they are.

Pods lost with a node, pods that are added to a gang that grows, and a leader that is gone are
all the same: some pods are kept, the rest is missing. Where the missing ones of a pod set may go
follows from its kept ones (`pod_set.unplaced`); those of a group go where its kept pods are:

    required      in the domain the group's first kept pod is in
    preferred     in the narrowest domain, from that level on, that holds all its kept pods
    no kept pod   anywhere the group may be

Pod sets are completed in the order they are written, as Kueue does. Where that leaves a later one
or part of the slices without a place, and for groups in groups, `walk` searches, with members
that have kept pods before those that have none: a kept pod is part of the answer, also where
nothing beside it fits and its group does without.
Source: kueue pkg/cache/scheduler/tas_flavor_snapshot.go (v0.16), replacement of a node.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from contextlib import closing
from dataclasses import replace

from topology.fit.unit import Unit, units_of
from topology.fit.view import AllowanceSpent, Options, View
from topology.model.answer import NoFit, Placement, PodSetPlacement
from topology.model.capacity import Capacity
from topology.model.request import Gang
from topology.model.resources import Mask
from topology.model.tree import Tree
from topology.nested.parts import is_nested, root_of
from topology.nested.unplaced import remaining
from topology.nested.walk import Walk, find, is_too_varied, not_tried, unfinished
from topology.pod_set import search
from topology.pod_set.unplaced import Kept, added, completed, staying

__all__ = ["Kept", "complete"]

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
    kept than the gang has pods, the first of them stay. With none kept, it is a new gang.
    Order: pod sets as `Gang.names`.
    Raises: as `search.find`; InvalidRequest also if kept pods cannot be made whole slices.
    """
    if not any(kept.values()):
        return find(tree, capacity, gang, masks, options)
    search.check_generation(tree, capacity)
    first: NoFit | None = None
    if options.order.is_kueues and not is_nested(gang):
        view = View(tree, capacity, masks, options.without_allowance)
        placed, failed = _one_by_one(view, gang, kept)
        if failed is None:
            return Placement(gang=gang.key, generation=tree.generation, pod_sets=tuple(placed))
        unit, first = failed
        # Kueue puts all that is missing of slices into one domain if it can complete one there.
        if options.tries == 0 or not (placed or unit.workers.slices):
            return first
    root = remaining(tree, root_of(tree, gang, options.unconstrained), kept)
    if is_too_varied(tree, root):
        return not_tried(gang, first)
    stay = {
        name: slots
        for leaf in root.leaves()
        if leaf.unit is not None
        for name, slots in staying(leaf.unit, kept).items()
        if slots
    }
    try:
        with closing(Walk(View(tree, capacity, masks, options), root, stay)) as walk:
            if walk.run():
                return walk.placement(gang)
            why = walk.no_fit()
    except AllowanceSpent:
        return unfinished(gang)
    # Kept pods elsewhere might leave a place.
    return replace(first or why, is_proven=False, is_cut_short=why.is_cut_short)


def _one_by_one(
    view: View, gang: Gang, kept: Mapping[str, Kept]
) -> tuple[list[PodSetPlacement], tuple[Unit, NoFit] | None]:
    """Each unit completed as if the earlier ones were there already; and which is not, and why."""
    placed: list[PodSetPlacement] = []
    for unit in units_of(view.tree, gang, view.options.unconstrained):
        answer = completed(view, unit, kept)
        if isinstance(answer, NoFit):
            return placed, (unit, replace(answer, is_proven=False))
        search.assume(view, unit, [replace(one, slots=added(one, kept)) for one in answer])
        placed += answer
    return placed, None
