"""What one pod asks of a node, counted as kube-scheduler counts it.

    containers ──────sum─▶ ┐
    init containers ─max─▶ ┴─▶ spec.resources replaces cpu, memory, hugepages ─▶ + overhead, 1 pod

An ordinary init container runs alone, so only the largest matters; one with restartPolicy Always
(a sidecar) stays, so it adds to the sum and to every init container after it.
Limits play no part: the API server has already copied them where a request was missing.

Source: k8s.io/component-helpers/resource PodRequests, without the status of in-place resizes.
"""

from __future__ import annotations

from functools import lru_cache

from app.kube.core import wire
from app.kube.core.objects import Amounts
from app.kube.core.quantity import InvalidQuantity, nano_units, whole_units

ONE_POD = ("pods", 1)

_Nanos = dict[str, int]


def pod_request(spec: wire.PodSpec) -> tuple[Amounts, str]:
    """Return the request of one pod and, if some amount is unreadable, a word on the first one.

    Units: millicores for cpu, base units otherwise, rounded up after adding.
    Order: by resource name. Resources asked for in the amount of 0 are left out.
    Equal requests are the same tuple.
    """
    problems: list[str] = []
    total: _Nanos = {}
    for index, container in enumerate(spec.containers or ()):
        _add(total, _container(container, f"spec.containers[{index}]", problems))
    if spec.init_containers:
        _include_init_containers(total, spec.init_containers, problems)
    if spec.resources is not None and spec.resources.requests:
        own = _nanos(spec.resources.requests, "spec.resources.requests", problems)
        total.update((name, own[name]) for name in own if _counts_per_pod(name))
    if spec.overhead:
        _add(total, _nanos(spec.overhead, "spec.overhead", problems))
    total.pop("pods", None)  # no container can ask for pods; the pod itself is the one
    return _rounded_up(tuple(total.items())), problems[0] if problems else ""


def node_allocatable(status: wire.NodeStatus) -> tuple[Amounts, str]:
    """Return what a node offers, rounded down, and a word on the first unreadable amount."""
    quantities = status.allocatable
    if quantities is None:
        quantities = status.capacity or {}  # the API server's own default
    problems: list[str] = []
    amounts: list[tuple[str, int]] = []
    for resource, quantity in quantities.items():
        try:
            nanos = 0 if quantity is None else nano_units(resource, quantity, "down")
        except InvalidQuantity as error:
            problems.append(f"status.allocatable: {error}")
            nanos = 0
        amounts.append((resource, whole_units(resource, nanos, "down")))
    return intern_amounts(tuple(sorted(amounts))), problems[0] if problems else ""


@lru_cache(maxsize=16_384)  # bounded, since requests come from users
def intern_amounts(amounts: Amounts) -> Amounts:
    """Return the one tuple that stands for all equal ones."""
    return amounts


def _include_init_containers(
    total: _Nanos, containers: list[wire.Container | None], problems: list[str]
) -> None:
    sidecars: _Nanos = {}
    peak: _Nanos = {}
    for index, container in enumerate(containers):
        asked = _container(container, f"spec.initContainers[{index}]", problems)
        if container is not None and container.restart_policy == "Always":
            _add(total, asked)
            _add(sidecars, asked)
            _raise_to(peak, sidecars)
        else:
            running = dict(sidecars)
            _add(running, asked)
            _raise_to(peak, running)
    _raise_to(total, peak)


def _container(container: wire.Container | None, where: str, problems: list[str]) -> _Nanos:
    if container is None or container.resources is None or not container.resources.requests:
        return {}
    return _nanos(container.resources.requests, f"{where}.resources.requests", problems)


def _nanos(
    quantities: dict[str, str | int | float | None], where: str, problems: list[str]
) -> _Nanos:
    amounts: _Nanos = {}
    for resource, quantity in quantities.items():
        try:
            amounts[resource] = 0 if quantity is None else nano_units(resource, quantity)
        except InvalidQuantity as error:
            problems.append(f"{where}: {error}")
    return amounts


def _counts_per_pod(resource: str) -> bool:
    return resource in ("cpu", "memory") or resource.startswith("hugepages-")


def _add(total: _Nanos, amounts: _Nanos) -> None:
    for resource, nanos in amounts.items():
        total[resource] = total.get(resource, 0) + nanos


def _raise_to(total: _Nanos, floor: _Nanos) -> None:
    for resource, nanos in floor.items():
        if nanos > total.get(resource, 0):
            total[resource] = nanos


@lru_cache(maxsize=16_384)
def _rounded_up(nanos: Amounts) -> Amounts:
    whole = [(name, whole_units(name, asked, "up")) for name, asked in nanos if asked]
    return intern_amounts(tuple(sorted([*whole, ONE_POD])))
