"""Whether a gang that has no place would have one otherwise: three questions, a search each.

What they cost is counted for the gang's namespace, as of every search.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from app.state.gang.gang import Gang
from app.state.plan.planner import Planner
from app.state.plan.question.request import SearchRequest
from topology.errors import InvalidRequest
from topology.model.changed_capacity import as_if
from topology.relax.anywhere import anywhere


def fits_unreserved(planner: Planner, gang: Gang) -> bool:
    """Whether it fits on nodes that are kept for other gangs, or that refused pods like its own.

    Then it is not for lack of capacity that it waits.
    """
    if not planner.is_kept_off(gang):
        return False
    return any(_fits(planner, request) for request in planner.requests(gang, is_free=True))


def fits_empty(planner: Planner, gang: Gang) -> bool:
    """Whether it fits on the nodes that there are once no pod runs on them, as far as is known."""
    return any(
        _fits(planner, _emptied(request), if_unknown=True)
        for request in planner.requests(gang, is_free=True)
    )


def fits_anywhere(planner: Planner, gang: Gang) -> bool:
    """Whether its pods fit as they are, if they need not be together.

    Autoscalers see no more than that: they make no node for it.
    """
    return any(
        _fits(planner, replace(request, gang=anywhere(request.gang), roomy=None, kept={}))
        for request in planner.requests(gang, is_free=True)
    )


def _emptied(request: SearchRequest) -> SearchRequest:
    capacity = request.capacity
    books = as_if(capacity, np.zeros_like(capacity.used), capacity.is_open)
    return replace(
        request, capacity=books, roomy=None, options=replace(request.options, arriving=())
    )


def _fits(planner: Planner, request: SearchRequest, *, if_unknown: bool = False) -> bool:
    """Whether there is a place; `if_unknown`: where that would take the loop too long."""
    try:
        found = planner.finds(request)
    except InvalidRequest:
        return False
    return if_unknown if found is None else found
