"""What one pod asks of a node, counted as kube-scheduler counts it.

    containers ──────sum─▶ ┐
    init containers ─max─▶ ┴─▶ spec.resources replaces cpu, memory, hugepages ─▶ + overhead, 1 pod

An ordinary init container runs alone, so only the largest matters; one with restartPolicy Always
(a sidecar) stays, so it adds to the sum and to every init container after it.
Limits play no part: the API server has already copied them where a request was missing.

Source: k8s.io/component-helpers/resource PodRequests, without the status of in-place resizes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from heapq import nsmallest
from itertools import chain, groupby

from app.kube.core import wire
from app.kube.core.cached import KIB, cached
from app.kube.core.objects import Amounts
from app.kube.core.quantity import InvalidQuantity, nano_units, whole_units

ONE_POD = ("pods", 1)
FEW = 8  # containers, and resources of one, as most pods have: each is added by itself
MOST_RESOURCES = 256  # of one pod; no node offers so many, so a pod with more runs on none
ALWAYS_COUNTED = ("cpu", "memory", "ephemeral-storage")  # also of a pod with more
MOST_INTERNED = 2_048  # requests; clusters have a few hundred

_Nanos = dict[str, int]
_Quantity = str | int | float | None
_REQUESTS = ".resources.requests"
_NOTHING: Mapping[str, _Quantity] = {}
_ZERO = ("0", None)  # the API server writes every zero so


def pod_request(spec: wire.PodSpec) -> tuple[Amounts, str]:
    """Return the request of one pod and, if some amount is unreadable, a word on the first one.

    Units: millicores for cpu, base units otherwise, rounded up after adding.
    Order: by resource name. Resources asked for in the amount of 0 are left out.
    Equal requests are the same tuple. Of more than MOST_RESOURCES the first by name are counted.
    """
    containers = spec.containers or []
    if len(containers) == 1 and not (spec.init_containers or spec.resources or spec.overhead):
        asked = _asked(containers[0])
        # Equal keys must mean equal requests, and -0.0 equals 0.
        if len(asked) <= FEW and all(type(quantity) is str for quantity in asked.values()):
            return _request_of_one(tuple(asked.items()))
    return _request_of(containers, spec)


@cached(1_024, 2 * KIB)  # most pods have one container, and are made from few templates
def _request_of_one(asked: tuple[tuple[str, _Quantity], ...]) -> tuple[Amounts, str]:
    problems: list[str] = []
    return _finished(_nanos(dict(asked), f"spec.containers[0]{_REQUESTS}", problems), problems)


def _request_of(containers: list[wire.Container | None], spec: wire.PodSpec) -> tuple[Amounts, str]:
    problems: list[str] = []
    total: _Nanos = {}
    for index, each in enumerate(containers):
        asked = _asked(each)
        if index == FEW or len(asked) > FEW:
            total = _sum_of_many(containers, problems)
            break
        _add(total, _nanos(asked, f"spec.containers[{index}]{_REQUESTS}", problems))
    if spec.init_containers:
        _include_init_containers(total, spec.init_containers, problems)
    if spec.resources is not None and spec.resources.requests:
        own = _nanos(spec.resources.requests, "spec.resources.requests", problems)
        total.update((name, own[name]) for name in own if _counts_per_pod(name))
    if spec.overhead:
        _add(total, _nanos(spec.overhead, "spec.overhead", problems))
    return _finished(total, problems)


def _finished(total: _Nanos, problems: list[str]) -> tuple[Amounts, str]:
    """The sum of a pod's containers as its request."""
    total.pop("pods", None)  # no container can ask for pods; the pod itself is the one
    if len(total) > MOST_RESOURCES:
        counted = _counted([resource for resource, nanos in total.items() if nanos], problems)
        total = {resource: nanos for resource, nanos in total.items() if resource in counted}
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


@cached(MOST_INTERNED, 3 * KIB)
def intern_amounts(amounts: Amounts) -> Amounts:
    """Return the one tuple that stands for all equal ones."""
    return amounts


def _sum_of_many(containers: list[wire.Container | None], problems: list[str]) -> _Nanos:
    """What these ask for together; each amount of a resource is read once, however often it is."""
    pairs = Counter(chain.from_iterable(_few(_asked(each)).items() for each in containers))
    counted = _counted({name for name, quantity in pairs if quantity not in _ZERO}, problems)
    total: _Nanos = {}
    for (resource, quantity), times in pairs.items():
        if quantity in _ZERO or resource not in counted:
            continue
        try:
            total[resource] = total.get(resource, 0) + times * nano_units(resource, quantity)
        except InvalidQuantity as error:
            if not problems:
                pair = (resource, quantity)
                index = next(
                    at for at, each in enumerate(containers) if pair in _asked(each).items()
                )
                problems.append(f"spec.containers[{index}]{_REQUESTS}: {error}")
    return total


def _few(asked: Mapping[str, _Quantity]) -> Mapping[str, _Quantity]:
    """What may be counted of one container's resources: the first by name of those not zero."""
    if len(asked) <= MOST_RESOURCES:
        return asked
    asked = {name: quantity for name, quantity in asked.items() if quantity not in _ZERO}
    first = {*nsmallest(MOST_RESOURCES + 1, asked), *(asked.keys() & ALWAYS_COUNTED)}
    return {name: asked[name] for name in sorted(first)}


def _counted(resources: Collection[str], problems: list[str]) -> Collection[str]:
    """Those of a pod's resources that are counted."""
    if len(resources) <= MOST_RESOURCES:
        return resources
    problems.append(
        f"more than {MOST_RESOURCES} resources requested, of which the first by name are counted:"
        " no node offers so many"
    )
    return {*ALWAYS_COUNTED, *nsmallest(MOST_RESOURCES, resources)}


def _include_init_containers(
    total: _Nanos, containers: list[wire.Container | None], problems: list[str]
) -> None:
    sidecars: _Nanos = {}
    peak: _Nanos = {}
    index = 0
    for (asked, is_sidecar), alike in groupby(containers, _init_container):
        times = len(list(alike))
        amounts = _nanos(_few(asked), f"spec.initContainers[{index}]{_REQUESTS}", problems)
        index += times
        if is_sidecar:
            for resource, nanos in amounts.items():
                sidecars[resource] = sidecars.get(resource, 0) + times * nanos
            continue
        # Of what it does not ask for, the sidecars before it have the peak already: a pod may have
        # ten thousand of them, each with a resource of its own.
        for resource, nanos in amounts.items():
            running = sidecars.get(resource, 0) + nanos
            if running > peak.get(resource, 0):
                peak[resource] = running
    _add(total, sidecars)
    _raise_to(total, peak)


def _init_container(container: wire.Container | None) -> tuple[Mapping[str, _Quantity], bool]:
    """What one asks for, and whether it stays: those in a row that are alike are read once."""
    is_sidecar = container is not None and container.restart_policy == "Always"
    return _asked(container), is_sidecar


def _asked(container: wire.Container | None) -> Mapping[str, _Quantity]:
    if container is None or container.resources is None:
        return _NOTHING
    return container.resources.requests or _NOTHING


def _nanos(quantities: Mapping[str, _Quantity], where: str, problems: list[str]) -> _Nanos:
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


@cached(MOST_INTERNED, 3 * KIB)
def _rounded_up(nanos: Amounts) -> Amounts:
    whole = [(name, whole_units(name, asked, "up")) for name, asked in nanos if asked]
    return intern_amounts(tuple(sorted([*whole, ONE_POD])))
