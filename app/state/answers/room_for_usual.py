"""Which nodes an ordinary pod leaves the most room on for what pods usually request.

    fragments grow least ▷ its domains score most ▷ least is left of its devices ▷ of its cores

Before any pod with devices has been seen, the domains that are in use come first, then what is
left. The ranking is made of points: kube-scheduler knows no others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import chain

import numpy as np

from app.kube.core.objects import Amounts
from app.state.cache.books import Books
from app.state.cache.counting import Vector
from app.state.cache.device_parts import DeviceParts
from app.state.pods.usual_requests import UsualRequests, is_device
from topology.fit import order
from topology.fragments import growth
from topology.fragments.devices import Devices, asked
from topology.fragments.growth import Usual
from topology.fragments.known import KnownFragments
from topology.model.capacity import Capacity
from topology.model.resources import CPU_ROW, Counts, Rows

_IN_FREE_DOMAIN = 1  # of `packing_scores`, at most
_STEP_BITS, _DOMAIN_BITS, _LEFT_BITS = 22, 4, 16


@dataclass(slots=True)
class RoomForUsual:
    """Ranks nodes; keeps nothing but results that it would find again."""

    books: Books
    usual_requests: UsualRequests
    device_parts: DeviceParts
    _known: KnownFragments = field(default_factory=KnownFragments)
    _read: object = None  # what `_usual` was made of
    _rows: int = 0  # and of how many resources
    _usual: Usual | None = None

    def catch_up(self) -> None:
        """Look at some of the nodes whose bookings have changed."""
        self.device_parts.catch_up()

    def scores(
        self, capacity: Capacity, request: Vector, slots: Rows, by_domains: Counts
    ) -> Counts:
        """Scores of nodes that have room, 0 to 10; `by_domains` if there is nothing else to say.

        Shapes: slots (S,), by_domains (S,) as `order.packing_scores` -> (S,).
        """
        device = next(
            (row for row in self._devices(len(request)) if request[row : row + 1] > (0,)), -1
        )
        usual = self._usual_for(capacity)
        if slots.size == 0 or not (usual or device >= 0):
            return by_domains
        first = [(np.where(by_domains <= _IN_FREE_DOMAIN, 1, 0), 1)]
        if usual:
            devices = self.device_parts.devices(capacity.tree)
            grown = self._known.growth(request, capacity.free_now, devices, usual)[slots]
            grown -= grown.min()
            if device < 0 and not grown.any():
                return by_domains
            first = [(grown, _STEP_BITS), (order.SCORE_MAX - by_domains, _DOMAIN_BITS)]
        # The pod takes the same of each: what is least before is least afterwards.
        rows = (CPU_ROW,) if device < 0 else (device, CPU_ROW)
        left = [(np.maximum(capacity.free_now[row, slots], 0), _LEFT_BITS) for row in rows]
        return order.points_by_place([*first, *left])

    def _usual_for(self, capacity: Capacity) -> Usual:
        """What pods usually request of the resources that these books have."""
        known, rows = self.usual_requests.usual, capacity.free_now.shape[0]
        if self._usual is None or self._read is not known or self._rows != rows:
            devices = self.device_parts.devices(capacity.tree)
            weighted = [(self._asked(request, rows, devices), pods) for request, pods in known]
            whole = {each.row: rows + 2 * at for at, each in enumerate(devices)}
            self._usual = growth.usual(weighted, self._devices(rows), whole)
            self._read, self._rows = known, rows
        return self._usual

    def _asked(self, request: Amounts, rows: int, devices: Sequence[Devices]) -> Vector:
        """A request in the rows of `Usual`: resources, then what it asks of shared devices.

        Of these `devices` say more than the rows of `device_rows`, which are left out.
        """
        of_devices = self.books.axis.of_devices
        counted = enumerate(self.books.counted(request)[:rows])
        vector = tuple(0 if row in of_devices else amount for row, amount in counted)
        vector += (0,) * (rows - len(vector))
        of_shared = (asked(vector[each.row], each.parts) for each in devices)
        return (*vector, *chain.from_iterable(of_shared))

    def _devices(self, rows: int) -> list[int]:
        names, of_devices = self.books.axis.names[:rows], self.books.axis.of_devices
        return [row for row, name in enumerate(names) if is_device(name) and row not in of_devices]
