"""Whether a gang that has no place would have one otherwise: four questions, a search each.

What they cost is counted for the gang's namespace, as of every search.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from app.state.gang.gang import Gang
from app.state.plan.planner import Planner
from app.state.plan.question.request import SearchRequest
from topology.model import request as topology
from topology.model.changed.capacity import emptied
from topology.relax.anywhere import anywhere, part_anywhere


def fits_unreserved(planner: Planner, gang: Gang) -> bool:
    """Whether it fits on nodes that are kept for other gangs, or that refused pods like its own.

    Then it is not for lack of capacity that it waits.
    """
    if not planner.is_kept_off(gang):
        return False
    return any(planner.finds(gang, lambda request: request))


def fits_empty(planner: Planner, gang: Gang) -> bool:
    """Whether it fits on the nodes that there are once no pod runs on them, as far as is known."""
    return any(found is not False for found in planner.finds(gang, _emptied))


def fits_anywhere(planner: Planner, gang: Gang) -> bool:
    """Whether its pods fit as they are, if they need not be together.

    Autoscalers see no more than that: they make no node for it.
    """
    return any(planner.finds(gang, partial(_asked_as, anywhere)))


def existing_fit(planner: Planner, gang: Gang) -> bool:
    """Whether those of its pods that exist would fit without the others, wherever they are.

    Autoscalers see no pod that does not exist. Of a gang on several topologies: not looked into.
    """
    if planner.serving.is_in_parts(gang):
        return False
    pods = {
        str(index): sum(each.pod.uid in gang.members for each in pod_set.unplanned)
        for index, pod_set in enumerate(planner.serving.pod_sets(gang))
    }
    return any(planner.finds(gang, partial(_asked_as, partial(part_anywhere, pods=pods))))


def _asked_as(
    change: Callable[[topology.Gang], topology.Gang], request: SearchRequest
) -> SearchRequest:
    """The same search for the gang as it is changed, without what its slices have already."""
    return replace(request, gang=change(request.gang), roomy=None, kept={})


def _emptied(request: SearchRequest) -> SearchRequest:
    capacity = request.capacity
    books = emptied(capacity, capacity.is_open)
    return replace(
        request, capacity=books, roomy=None, options=replace(request.options, arriving=())
    )
