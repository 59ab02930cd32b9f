"""What a pod takes whose containers are being resized in place.

    spec     what is asked for                                   ┐
    status   what its kubelet has allocated, and what is in force ┴─▶ the most of them counts

What a kubelet finds infeasible will not be: then its status alone counts. Else a pod could ask for
more than its node has, and no other pod would find room there.

Only the conditions of a resize have the rest of the status read: without them all of it is equal,
but for the moment until the kubelet has seen the change.
Source: k8s.io/component-helpers/resource PodRequests, determineEffectiveRequests (v0.36).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import msgspec

from app.kube.core.quantity import InvalidQuantity, nano_units
from app.kube.core.turns import turn
from app.kube.decoding import wire
from app.kube.decoding.large import parts as large

PENDING, INFEASIBLE = "PodResizePending", "Infeasible"  # a condition of a pod, and its reason
RESIZABLE = ("cpu", "memory")
MOST_AT_ONCE = 256  # containers between two turns; what a kubelet writes of one is not long

Requests = Mapping[str, str | int | float | None]

_RESIZE = b'"PodResize'  # as the types of both conditions begin: pending, and in progress
_NOTHING: Requests = {}
_CONDITIONS: msgspec.json.Decoder[list[wire.Condition | None] | None] = msgspec.json.Decoder(
    list[wire.Condition | None] | None
)
_EACH: msgspec.json.Decoder[list[msgspec.Raw] | None] = msgspec.json.Decoder(
    list[msgspec.Raw] | None
)
_ONE: msgspec.json.Decoder[wire.ContainerResources | None] = msgspec.json.Decoder(
    wire.ContainerResources | None
)
_RESOURCES: msgspec.json.Decoder[wire.Resources | None] = msgspec.json.Decoder(
    wire.Resources | None
)
_QUANTITIES: msgspec.json.Decoder[wire.Quantities] = msgspec.json.Decoder(wire.Quantities)


@dataclass(frozen=True, slots=True)
class Resize:
    """What the kubelet of a pod that is being resized says of its containers."""

    is_infeasible: bool
    of: Mapping[str, Sequence[Requests]] = field(default_factory=dict)
    """By the name of a container: what is in force, and what is allocated."""
    of_pod: Sequence[Requests] = ()
    """The same of what the pod requests as a whole."""

    def counted(self, container: wire.Container | None, asked: Requests) -> Requests:
        """What counts of a container that asks for this."""
        known = () if container is None else self.of.get(container.name or "", ())
        return self._most(asked, known) if known else asked

    def counted_of_pod(self, asked: Requests) -> Requests:
        """What counts of a pod that asks for this as a whole."""
        return self._most(asked, self.of_pod) if self.of_pod else asked

    def _most(self, asked: Requests, known: Sequence[Requests]) -> Requests:
        refused = RESIZABLE if self.is_infeasible else ()
        return {
            resource: _largest(resource, known if resource in refused else (asked, *known))
            for resource in asked
        }


def resize_of(status: wire.PodStatus) -> Resize | None:
    """What a kubelet says of the pod's resize; None: there is none, or it cannot be read."""
    if _RESIZE not in bytes(status.conditions):
        return None
    try:
        conditions = large.part(_CONDITIONS, status.conditions, "status.conditions")
        parts = status.container_statuses, status.init_container_statuses
        states = [each for part in parts for each in _states(part)]
        in_force = large.part(_RESOURCES, status.resources, "status.resources")
        allocated = large.part(_QUANTITIES, status.allocated_resources, "status.allocatedResources")
    except (ValueError, RecursionError):
        return None  # of a request: the API server has none that cannot be read
    is_infeasible = any(
        each is not None and (each.type, each.reason) == (PENDING, INFEASIBLE)
        for each in conditions or ()
    )
    of = {each.name or "": _given(each.resources, each.allocated_resources) for each in states}
    return Resize(is_infeasible, of, _given(in_force, allocated))


def _states(part: msgspec.Raw) -> Iterator[wire.ContainerResources]:
    """What a list of container statuses says of resources. Raises: ValueError, RecursionError."""
    for at, raw in enumerate(_EACH.decode(part) or ()):
        if at % MOST_AT_ONCE == 0:
            turn()
        state = _ONE.decode(raw) if len(raw) <= large.LARGE else None
        if state is not None:
            yield state


def _given(in_force: wire.Resources | None, allocated: wire.Quantities) -> Sequence[Requests]:
    """What is in force, and what is allocated; (): it is not known yet."""
    return () if in_force is None else (in_force.requests or _NOTHING, allocated or _NOTHING)


def _largest(resource: str, given: Sequence[Requests]) -> str | int | float | None:
    """The largest amount; one that cannot be read is not known."""
    largest: tuple[int, str | int | float | None] = (-1, None)
    for each in given:
        quantity = each.get(resource)
        try:
            nanos = 0 if quantity is None else nano_units(resource, quantity)
        except InvalidQuantity:
            continue
        if nanos > largest[0]:
            largest = nanos, quantity
    return largest[1]
