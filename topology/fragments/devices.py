"""Devices that pods share: which whole ones, and which parts of one, a node still has.

    9,000 of 16,000 parts free     0 of 16 GPUs may be free, and no half of any

A resource such as gpu-milli is one sum per node, of WHOLE parts to a device. A pod that requests
fewer stands on one device; one that requests whole ones has them alone. Which pod has which device
is not known here. It is taken to be as tight as it can be done in order of size, and that is near
enough to choose nodes by; whether a pod fits is for others to say.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from topology.model.resources import Counts

MOST_DEVICES = 16  # of a node; those of one with more are not told apart


def left(devices: int, parts: int, taken: Iterable[int]) -> list[int]:
    """What is left of each device beside pods that request so many parts, the most first.

    Order: the largest pod first, each on the fullest device that has room for it. One that has no
    room anywhere takes the emptiest device whole.
    """
    found = [parts] * devices
    for amount in sorted(taken, reverse=True):
        for one in _each(amount, parts):
            fits = [free for free in found if free >= one]
            if not found:
                break
            free = min(fits, default=max(found))
            found[found.index(free)] = max(0, free - one)
    return sorted(found, reverse=True)


def _each(amount: int, parts: int) -> Iterable[int]:
    """What a pod takes of each of its devices."""
    if amount < parts:
        return (amount,) if amount > 0 else ()
    return (parts,) * min(-(-amount // parts), MOST_DEVICES)


def asked(amount: int, parts: int) -> tuple[int, int]:
    """What a pod requests as parts of whole devices, and as part of one; one of them is 0."""
    return (amount, 0) if amount >= parts else (0, amount)


@dataclass(frozen=True, slots=True, eq=False)
class Devices:
    """The devices of one resource, node by node."""

    row: int
    """The resource, which counts parts."""
    parts: int
    """To a device."""
    left: Counts
    """(D + 1, N) of each device, the most first; 0 where a node has fewer, and in the last row."""

    def free(self) -> Counts:
        """Parts of wholly free devices, and the most that is free of one. Shapes: (2, N)."""
        free = np.zeros((2, self.left.shape[1]), dtype=np.int64)
        for device in self.left:
            free[0] += device >= self.parts
        free[0] *= self.parts
        free[1] = self.left[0]
        return free

    def beside(self, request: Sequence[int]) -> Counts:
        """As `free`, with such a pod on each node that has room for it."""
        amount = request[self.row] if self.row < len(request) else 0
        free = self.free()
        if amount <= 0:
            return free
        if amount < self.parts:
            return self._beside_part(free, amount)
        free[0] -= min(-(-amount // self.parts) * self.parts, MOST_DEVICES * self.parts)
        np.maximum(free[0], 0, out=free[0])
        partly = np.where(self.left < self.parts, self.left, 0).max(axis=0)
        free[1] = np.where(free[0] > 0, self.parts, partly)
        return free

    def _beside_part(self, free: Counts, amount: int) -> Counts:
        fullest = self.left[0].copy()
        for device in self.left[1:]:
            np.copyto(fullest, device, where=device >= amount)
        free[0] -= np.where(fullest >= self.parts, self.parts, 0)
        emptiest = np.maximum(self.left[1], fullest - amount)
        free[1] = np.where(fullest == self.left[0], emptiest, self.left[0])
        return free
