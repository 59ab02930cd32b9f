"""What a pod would leave that no usual pod can use: the fragments of scarce resources.

    usual requests with weights ──┐
    free of some nodes ───────────┴─ unusable ──▶ before ─┐
    the same with the pod there ───── unusable ──▶ after ─┴─ growth ──▶ steps[S]

Of a node's free GPUs a fragment for a usual request is all of them where it does not fit, for want
of cores or of GPUs, and none where it does. The fragments of a node are the mean over the usual
requests that name the resource, by weight; a pod is best where they grow least. So a small pod
goes where a large one does not fit any more, and leaves cores beside free GPUs.

Where pods share devices, what is free of those that are in use is always a fragment for a pod
that requests whole ones.

Nothing depends on the order in which a machine adds floats: sums are of whole numbers that a float
holds exactly, and the rest is done node by node.
Source: "Beware of Fragmentation: Scheduling GPU-Sharing Workloads with Fragmentation Gradient
Descent" (FGD), USENIX ATC 2023, section 4.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
from numpy import typing as npt

from topology.model.resources import Counts

STEPS = 100  # of what a usual pod requests: with fewer the domains decide more, and fewer pods fit
STEPS_MAX = 2**20 - 1  # either way; a node has a few thousand times what a pod requests
WEIGHT_MAX = 2**24 - 1  # of all usual requests together: exact in a float32
NOT_SHARED: Mapping[int, int] = MappingProxyType({})
NOTHING = -(2**62)  # what is asked of a resource that is not: free is never less

Amounts = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Usual:
    """The requests that pods usually make, and of which resources fragments count.

    Invariant: each of the requests names one of the scarce resources.
    """

    requests: Counts
    """(requests, R) NOTHING where a resource is not named."""
    weights: npt.NDArray[np.float32]
    """(scarce, requests) whole numbers; 0 where a request does not name the resource."""
    rows: tuple[int, ...]
    """The scarce resources that some request names, in ascending order."""
    steps: tuple[float, ...]
    """For each of them: so many amounts times weights are one step."""
    always: tuple[int, ...]
    """For each of them: the weights of the requests that can use none of it, wherever they fit."""

    def __bool__(self) -> bool:
        return bool(self.rows)


def usual(
    weighted: Iterable[tuple[Sequence[int], int]],
    scarce: Iterable[int],
    whole: Mapping[int, int] = NOT_SHARED,
) -> Usual:
    """The usual requests with their weights; those that name nothing scarce are left out.

    `whole`: a scarce resource -> the row of what is free of wholly free devices, which requests
    for whole ones name too.
    Raises: ValueError if the weights pass WEIGHT_MAX.
    """
    given = [(tuple(request), weight) for request, weight in weighted if weight > 0]
    width = max((len(request) for request, _ in given), default=0)
    rows = sorted(row for row in scarce if row < width)
    kept = [each for each in given if any(each[0][row : row + 1] > (0,) for row in rows)]
    rows = [row for row in rows if any(request[row : row + 1] > (0,) for request, _ in kept)]
    if sum(weight for _, weight in kept) > WEIGHT_MAX:
        raise ValueError(f"the weights of {len(kept)} requests pass {WEIGHT_MAX}")
    requests = np.zeros((len(kept), width), dtype=np.int64)
    for index, (request, _) in enumerate(kept):
        requests[index, : len(request)] = request
    weights = np.array([weight for _, weight in kept], dtype=np.float32)
    # The mean that is asked, times all weights, is what all ask together.
    steps = [sum(r[row] * pods for r, pods in kept if len(r) > row) / STEPS for row in rows]
    by_row = np.where(requests[:, rows].T > 0, weights, np.float32(0))
    always = [0] * len(rows)
    for row, of_whole in whole.items():
        if row in rows and of_whole < width and requests[:, of_whole].any():
            mine = np.where(requests[:, of_whole] > 0, by_row[rows.index(row)], np.float32(0))
            by_row[rows.index(row)] -= mine
            by_row = np.vstack([by_row, mine])
            # All that is free less what whole devices have of it is of no use to them.
            always[rows.index(row)] += int(mine.sum())
            always.append(-int(mine.sum()))
            steps.append(steps[rows.index(row)])
            rows.append(of_whole)
    return Usual(
        np.where(requests > 0, requests, NOTHING), by_row, tuple(rows), tuple(steps), tuple(always)
    )


def unusable(free: Counts, of: Usual) -> Amounts:
    """How much of what is free the usual requests cannot use, in steps.

    Shapes: free (R, S), with every row of the scarce resources -> (S,).
    Units: STEPS to what the mean of the usual requests asks of a resource.
    """
    lacks = np.zeros((of.requests.shape[0], free.shape[1]), dtype=np.bool_)
    for row in range(of.requests.shape[1]):
        asked = of.requests[:, row, np.newaxis]
        if asked.max(initial=NOTHING) > NOTHING:
            lacks |= asked > (free[row] if row < free.shape[0] else 0)
    # Weights are whole and add up exactly. Numpy reads the processor's flags, which OpenBLAS sets
    # with what it does not use: https://github.com/numpy/numpy/issues/24067
    with np.errstate(invalid="ignore"):
        weights = of.weights @ lacks.astype(np.float32)
    found = np.zeros(free.shape[1])
    for row, without, step, always in zip(of.rows, weights, of.steps, of.always, strict=True):
        found += np.maximum(free[row], 0) * ((without.astype(np.float64) + always) / step)
    return found


def growth(before: Amounts, after: Amounts) -> Counts:
    """By how many steps the fragments of each node grow; less is better. Shapes: (S,) -> (S,)."""
    steps = np.floor(after - before)
    return np.clip(steps, -STEPS_MAX, STEPS_MAX).astype(np.int64)
