"""Whether a place that was found on books as they were is still there."""

from __future__ import annotations

from collections.abc import Hashable, Mapping

import numpy as np

from topology.fit.view import Options, View
from topology.model.answer import Placement
from topology.model.capacity import Capacity
from topology.model.request import Gang, Leader, PodSet
from topology.model.resources import Mask
from topology.pod_set.unplaced import Kept, added


def fits_still(
    capacity: Capacity,
    gang: Gang,
    masks: Mapping[Hashable, Mask],
    kept: Mapping[str, Kept],
    options: Options,
    placement: Placement,
) -> bool:
    """Whether nodes are still open to these pods, and have room for all of them together.

    These nodes are in the same domains as when it was found, so that it keeps to what is required.
    `kept`: pods of the gang that are on the books, as `complete` has them.
    """
    view = View(capacity.tree, capacity, masks, options.without_allowance)
    asked = {one.name: one for one in _all_pods(gang)}
    for placed in placement.pod_sets:
        new, pods = added(placed, kept), asked[placed.pod_set]
        if not view.may_host(pods.shape)[new.indices].all():
            return False
        view.assume(pods.request, new)
    for placed in placement.pod_sets:
        request, slots = asked[placed.pod_set].request, added(placed, kept).indices
        rows = [row for row, amount in enumerate(request) if amount]
        if any((left < 0).any() for left in view.free(rows, np.asarray(slots))):
            return False
    return True


def _all_pods(gang: Gang) -> list[PodSet | Leader]:
    pod_sets = list(gang.pod_sets())
    return [*pod_sets, *(one.leader for one in pod_sets if one.leader is not None)]
