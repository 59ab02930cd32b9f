"""Which resource is which row: the first axis of every capacity matrix.

    "pods" -> 0    "cpu" -> 1    "nvidia.com/gpu" -> 2    ...   in order of first sight

Only what some node offers has a row: users name resources, and every row costs a number per node.
The rest of a request stands for one device in a row past the last, of which no node has any; but
what is `claimed` is no part of it, since no node counts that.
A resource that counts parts of devices which pods share is followed by its `device_rows`.

Units: pods and devices are counted, cpu is in millicores, everything else is in
its base unit (bytes). Requests are rounded up and allocatable amounts down before
they come here, so a fit found here is one the kubelet accepts.

Amounts stay within `AMOUNT_MAX`. Memory is never kept in thousandths: 2 TiB times
1000 times 100,000 nodes does not fit an int64.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType

import numpy as np
from numpy import typing as npt

from topology.model import device_rows

Counts = npt.NDArray[np.int64]
"""Amounts or numbers of pods, one per node, domain or resource."""
Rows = npt.NDArray[np.intp]
"""Indices: slots, domains or resource rows."""
Mask = npt.NDArray[np.bool_]
"""One claim per node or domain."""

PODS = "pods"
CPU = "cpu"
PODS_ROW = 0
CPU_ROW = 1

AMOUNT_MAX = 2**61  # 2 EiB in bytes: four of them still fit the arithmetic of an int64
NOT_SHARED: Mapping[str, int] = MappingProxyType({})


class ResourceAxis:
    """Resource names in row order; rows are only ever added, never moved."""

    __slots__ = ("_of_devices", "_parts", "_row_of", "claimed")

    claimed: frozenset[str]
    """Resources whose devices are found by claims: they count in no request."""

    def __init__(self, parts: Mapping[str, int] = NOT_SHARED) -> None:
        """`parts`: resource -> parts to a device, of those that pods share."""
        self._row_of = {PODS: PODS_ROW, CPU: CPU_ROW}
        self._parts = parts
        self._of_devices: dict[int, str] = {}
        self.claimed = frozenset()

    @property
    def of_devices(self) -> Mapping[int, str]:
        """The rows that are no resource's own, with the resource whose devices they are of."""
        return self._of_devices

    @property
    def names(self) -> tuple[str, ...]:
        """Resource names in row order."""
        return tuple(self._row_of)

    def __len__(self) -> int:
        return len(self._row_of)

    def __contains__(self, name: object) -> bool:
        return name in self._row_of

    def __iter__(self) -> Iterator[str]:
        return iter(self._row_of)

    def row(self, name: str) -> int:
        """Row of a resource; an unknown name gets the next row."""
        if name not in self._row_of:
            self._row_of[name] = len(self._row_of)
            for each in device_rows.names(name) if name in self._parts else ():
                self._of_devices[len(self._row_of)] = name
                self._row_of[each] = len(self._row_of)
        return self._row_of[name]

    def vector(self, amounts: Iterable[tuple[str, int]]) -> tuple[int, ...]:
        """Amounts in row order, 0 where nothing is named; a name seen twice adds up.

        Shapes: as many rows as the axis has now. The axis may grow later: rows a
            vector does not have are 0.
        Raises: ValueError if an amount passes AMOUNT_MAX in either direction.
        """
        named = [(self.row(name), name, amount) for name, amount in amounts]
        return self._vector(named)

    def request(self, amounts: Sequence[tuple[str, int]]) -> tuple[int, ...]:
        """What a node must have for a pod, in row order; adds no row.

        Shapes: as many rows as the axis has now, and one more, of 1, if the pod asks for anything
            that has none and is not claimed: it fits nowhere.
        Raises: as `vector`.
        """
        known = [each for each in self._known(amounts) if each[1] not in self.claimed]
        vector = self._vector(known)
        return (*vector, 1) if len(known) < len(amounts) and self.lacking(amounts) else vector

    def taken(self, amounts: Sequence[tuple[str, int]]) -> tuple[int, ...]:
        """What a pod takes of its node, in row order, claimed or not; adds no row.

        Raises: as `vector`.
        """
        return self._vector(self._known(amounts))

    def offer(self, request: tuple[int, ...]) -> tuple[int, ...]:
        """What a node offers that has as much as such a pod requests."""
        return self._with_devices(request, device_rows.offered) if self._of_devices else request

    def lacking(self, amounts: Iterable[tuple[str, int]]) -> str:
        """The first resource without a row that is not claimed, in alphabetical order, or ""."""
        return min(
            (
                name
                for name, amount in amounts
                if amount and name not in self and name not in self.claimed
            ),
            default="",
        )

    def lacks_row(self, amounts: Iterable[tuple[str, int]]) -> bool:
        """Whether something has no row yet, claimed or not."""
        return any(amount and name not in self for name, amount in amounts)

    def claims(self, amounts: Iterable[tuple[str, int]]) -> bool:
        """Whether something is claimed."""
        return any(amount and name in self.claimed for name, amount in amounts)

    def _known(self, amounts: Iterable[tuple[str, int]]) -> list[tuple[int, str, int]]:
        """What has a row, with it."""
        return [
            (row, name, amount)
            for name, amount in amounts
            if (row := self._row_of.get(name)) is not None
        ]

    def _vector(self, named: Iterable[tuple[int, str, int]]) -> tuple[int, ...]:
        vector = [0] * len(self)
        for row, name, amount in named:
            vector[row] += amount
            if abs(vector[row]) > AMOUNT_MAX:
                raise ValueError(f"resource {name}: {vector[row]} is beyond {AMOUNT_MAX}")
        return self._with_devices(vector, device_rows.taken) if self._of_devices else tuple(vector)

    def _with_devices(
        self, vector: Sequence[int], counted: Callable[[int, int], tuple[int, ...]]
    ) -> tuple[int, ...]:
        """The vector with what is counted in rows of devices, as far as it has them."""
        found = list(vector)
        for name, parts in self._parts.items():
            first = self._row_of.get(name, len(found)) + 1
            after = first + device_rows.ROWS
            if after <= len(found):  # another thread may have added them meanwhile
                found[first:after] = counted(found[first - 1], parts)
        return tuple(found)
