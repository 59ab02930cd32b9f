"""Every tie-break and preference: which domain comes first.

Counts come in domain order, which is the lexicographic order of the domains' paths.
Ties break by the lowest index, everywhere; so equal inputs give equal answers.

    tightest            the smallest domain that still takes all of it
    most_free_first     few domains: the roomiest whole, the last one the tightest that
                        takes what is left (Kueue's BestFit)
    least_free_first    leave the large holes alone: the smallest first (LeastFreeCapacity)

A descending stable sort is not needed to take a prefix of one. The counts alone are
sorted; where their running sum reaches the pods is the edge count; domains beyond the edge
are taken whole, and those at the edge by index until it is enough.

`packing_scores` is the same concern for a single ordinary pod, as kube-scheduler scores.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from topology.capacity import Capacity
from topology.resources import Counts
from topology.tree import Tree

SCORE_MAX = 10  # of an extender's prioritize answer


def tightest(pods_by_domain: Counts, pods: int) -> int | None:
    """The domain with the smallest count of at least `pods`; None if there is none.

    Source: kueue.md 2.5, bestFit, and 2.6, steps 1 to 3.
    """
    if pods_by_domain.size == 0 or pods_by_domain.max() < pods:
        return None
    fits = (pods_by_domain >= pods).nonzero()[0]
    return int(fits[pods_by_domain[fits].argmin()])


def most_free_first(pods_by_domain: Counts, pods: int) -> Counts:
    """Pods to take from each domain so that few domains are touched.

    Shapes: (D,) -> (D,), at most what each has, adding up to `pods`.
    Raises: ValueError if they do not suffice.
    Source: kueue.md 2.6, step 4 (greedy), and 2.7, `assign`, for BestFit.
    """
    ordered = np.sort(pods_by_domain)[::-1]
    edge, left, at_edge = _edge(ordered, pods)
    taken = pods_by_domain * (pods_by_domain > edge)
    if at_edge:
        taken[(pods_by_domain == edge).nonzero()[0][:at_edge]] = edge
    last = tightest(pods_by_domain - taken, left)  # nothing is left of those taken whole
    assert last is not None, "the next domain in order alone takes what is left"
    taken[last] = left
    return taken


def least_free_first(pods_by_domain: Counts, pods: int) -> Counts:
    """Pods to take from each domain so that large free domains stay whole.

    Shapes: (D,) -> (D,), at most what each has, adding up to `pods`.
    Raises: ValueError if they do not suffice.
    Source: kueue.md 2.6, step 4 (greedy), and 2.7, `assign`, for LeastFreeCapacity.
    """
    edge, left, at_edge = _edge(np.sort(pods_by_domain), pods)
    taken = pods_by_domain * (pods_by_domain < edge)
    of_edge = (pods_by_domain == edge).nonzero()[0]
    taken[of_edge[:at_edge]] = edge
    taken[of_edge[at_edge]] = left
    return taken


def _edge(ordered: Counts, pods: int) -> tuple[int, int, int]:
    """Where a running sum over ordered counts reaches `pods`.

    Returns the count at that place, the pods still missing before it (at least 1), and how many
    domains of that same count come before it.
    """
    running = ordered.cumsum()
    place = int(running.searchsorted(pods))
    if place == running.size:
        raise ValueError(f"{int(ordered.sum())} pods fit, {pods} to place")
    edge = int(ordered[place])
    before = int(running[place]) - edge
    at_edge = int(np.count_nonzero(ordered[:place] == edge))
    return edge, pods - before, at_edge


def packing_scores(tree: Tree, capacity: Capacity, request: Sequence[int]) -> Counts:
    """Scores nodes for one ordinary pod, higher where it keeps whole domains free.

    Every node of a wholly free domain, one level above the nodes, gets 0, or 1 if a wider
    domain around it is in use. Every other node gets 2 to SCORE_MAX by how much of its domains
    is used, each level weighing twice the next wider one. A closed node, and one that lacks
    room for the pod, gets 0.
    Shapes: request (R,) -> (N,), 0 to SCORE_MAX.
    """
    if not tree.nodes:
        return np.zeros(0, dtype=np.int64)
    used = used_by_domain(tree, capacity)
    weighted = np.zeros(len(tree.nodes), dtype=np.int64)
    for level, (shares, domain_of) in enumerate(zip(used, tree.domain_of, strict=True)):
        weighted += (shares << level)[domain_of]
    most = _WHOLE * (2 ** len(tree.levels) - 1)
    scores: Counts = 2 + weighted * (SCORE_MAX - 2) // most
    around = max(0, tree.node_level - 1)
    is_free = (used[around] == 0)[tree.domain_of[around]]
    np.copyto(scores, weighted > 0, where=is_free)
    scores[~capacity.may_cover(tree.node_level, request)] = 0
    return scores


_WHOLE = 1000  # shares are in thousandths: finer than a score, and exact in integers


def used_by_domain(tree: Tree, capacity: Capacity) -> list[Counts]:
    """The share of each domain that is used or held: of its scarcest resource, open nodes only.

    Shapes: per level (D,), of a tree with nodes.
    Units: thousandths, 0 to 1000.
    """
    offered = np.clip(capacity.allocatable, 0, capacity.counted_max)
    offered[:, ~capacity.is_open] = 0
    shares: list[Counts] = []
    for starts, free in zip(tree.starts, capacity.free_by_domain, strict=True):
        has = (
            offered if starts.size == offered.shape[1] else np.add.reduceat(offered, starts, axis=1)
        )
        share = np.zeros(starts.size, dtype=np.int64)
        for row in range(has.shape[0]):
            most = int(has[row].max())
            if most == 0:
                continue
            # Large amounts lose low bits, or a thousand times them would leave an int64.
            shift = max(0, most.bit_length() - 52)
            used = (has[row] - free[row]) >> shift
            np.maximum(share, used * _WHOLE // np.maximum(has[row] >> shift, 1), out=share)
        shares.append(np.minimum(share, _WHOLE))
    return shares
