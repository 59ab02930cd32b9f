"""Whether a gang that has no place would have one otherwise: three questions, a search each.

What they cost is counted for the gang's namespace, as of every search.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from app.state.gang.gang import Gang
from app.state.plan.planner import Planner
from app.state.plan.request import SearchRequest, search
from topology.errors import InvalidRequest
from topology.model.answer import Placement
from topology.model.changed_capacity import as_if
from topology.relax.anywhere import anywhere


def fits_unreserved(planner: Planner, gang: Gang) -> bool:
    """Whether it fits on nodes that are kept for other gangs, or that refused pods like its own.

    Then it is not for lack of capacity that it waits.
    """
    if not planner.is_kept_off(gang):
        return False
    return any(_fits(request) for request in planner.requests(gang, is_free=True))


def fits_empty(planner: Planner, gang: Gang) -> bool:
    """Whether it fits on the nodes that there are once no pod runs on them."""
    return any(_fits(_emptied(request)) for request in planner.requests(gang, is_free=True))


def fits_anywhere(planner: Planner, gang: Gang) -> bool:
    """Whether its pods fit as they are, if they need not be together.

    Autoscalers see no more than that: they make no node for it.
    """
    return any(
        _fits(replace(request, gang=anywhere(request.gang), roomy=None, kept={}))
        for request in planner.requests(gang, is_free=True)
    )


def _emptied(request: SearchRequest) -> SearchRequest:
    capacity = request.capacity
    books = as_if(capacity, np.zeros_like(capacity.used), capacity.is_open)
    return replace(
        request, capacity=books, roomy=None, options=replace(request.options, arriving=())
    )


def _fits(request: SearchRequest) -> bool:
    try:
        return isinstance(search(request), Placement)
    except InvalidRequest:
        return False
