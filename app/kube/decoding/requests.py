"""What one pod asks of a node, counted as kube-scheduler counts it.

    containers ──────sum─▶ ┐
    init containers ─max─▶ ┴─▶ spec.resources replaces cpu, memory, hugepages ─▶ + overhead, 1 pod

An ordinary init container runs alone, so only the largest matters; one with restartPolicy Always
(a sidecar) stays, so it adds to the sum and to every init container after it.
Limits play no part: the API server has already copied them where a request was missing, and where
pods are not made yet, `template.py` does.

A pod may request a thousand invented resources, and a kubelet drops those that its node does not
offer. So of too many resources the ones that nodes offer are counted first: what fits beside the
pod follows from them alone. No node offers the MARKERS: they say only whom kube-scheduler asks.

Of a pod that is being resized what its kubelet says counts as well (`resizes.py`).

Source: k8s.io/component-helpers/resource PodRequests;
kubernetes pkg/kubelet/lifecycle/predicate.go removeMissingExtendedResources.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from heapq import nsmallest
from itertools import chain, repeat

from app.kube.core.cached import KIB, cached
from app.kube.core.objects import Amounts
from app.kube.core.quantity import (
    InvalidQuantity,
    many_nano_units,
    nano_units,
    whole_units,
)
from app.kube.core.turns import turn
from app.kube.decoding import wire
from app.kube.decoding.large.containers import slices
from app.kube.decoding.resizes import Requests, Resize

ONE_POD = ("pods", 1)
# Requested by members of gangs, so that kube-scheduler asks Corral about no other pods: one for
# each extender, since no two may manage the same resource.
MARKERS = ("corral.dev/member", "corral.dev/member-bind")
HUGE_PAGES = "hugepages-"  # with their size
ALWAYS = "Always"  # the restart policy of a sidecar
FEW = 8  # amounts, as most pods have: each is read by itself, and kept for the next pod
MOST_RESOURCES = 256  # of one pod, beside what nodes offer; no node offers as many
ALWAYS_COUNTED = ("cpu", "memory", "ephemeral-storage")  # also of a pod with more
NAMES_AT_ONCE = 16_384  # of the resources of one pod, compared between two turns
MOST_INTERNED = 2_048  # requests; clusters have a few hundred

_Nanos = dict[str, int]
_Quantity = str | int | float | None
_Amounts = Iterable[tuple[str, int]]  # of each container in turn; resources repeat
_Containers = Sequence[wire.Container | None]
_REQUESTS = ".resources.requests"
_NOTHING: Requests = {}
_Request = tuple[Amounts, str, int | None]

Offered = Collection[str]
"""The resources that nodes offer. They only become more, up to a bound."""

NONE_OFFERED: Offered = ()


def pod_request(
    spec: wire.PodSpec, offered: Offered = NONE_OFFERED, resize: Resize | None = None
) -> _Request:
    """Return the request of one pod and, if some amount is unreadable, a word on the first one.

    `resize`: that of a pod which is being resized.
    Of more than MOST_RESOURCES those that are `offered` are counted, then the first by name. Of
    such a pod the third value is how many were offered; None: everything is counted.
    Units: millicores for cpu, base units otherwise, rounded up after adding.
    Order: by resource name. Resources asked for in the amount of 0 are left out.
    Equal requests are the same tuple.
    Raises: ValueError or RecursionError for a large pod with a container that cannot be read.
    """
    containers = spec.containers or []
    is_one = isinstance(containers, list) and len(containers) == 1
    if is_one and not (spec.init_containers or spec.resources or spec.overhead or resize):
        (asked,) = _all_asked(containers)
        # Equal keys must mean equal requests, and -0.0 equals 0.
        if len(asked) <= FEW and all(type(quantity) is str for quantity in asked.values()):
            return _request_of_one(tuple(asked.items()))
    return _request_of(containers, spec, offered, resize)


@cached(1_024, 2 * KIB)  # most pods have one container, and are made from few templates
def _request_of_one(asked: tuple[tuple[str, _Quantity], ...]) -> _Request:
    problems: list[str] = []
    total = _nanos(dict(asked), f"spec.containers[0]{_REQUESTS}", problems)
    return _finished(total, problems, NONE_OFFERED)  # FEW are all counted, whatever is offered


def _request_of(
    containers: _Containers, spec: wire.PodSpec, offered: Offered, resize: Resize | None
) -> _Request:
    problems: list[str] = []
    total: _Nanos = {}
    for first, part in slices(containers):
        asked = _all_asked(part, resize)
        _add_all(total, _amounts_of(asked, first, "containers", problems))
    if spec.init_containers:
        _include_init_containers(total, spec.init_containers, problems, resize)
    if spec.resources is not None and spec.resources.requests:
        whole: Requests = spec.resources.requests
        if resize is not None:
            whole = resize.counted_of_pod(whole)
        own = _nanos(whole, "spec.resources.requests", problems)
        total.update((name, own[name]) for name in own if counts_per_pod(name))
    if spec.overhead:
        _add(total, _nanos(spec.overhead, "spec.overhead", problems))
    return _finished(total, problems, offered)


def _finished(total: _Nanos, problems: list[str], offered: Offered) -> _Request:
    """The sum of a pod's containers as its request."""
    total.pop("pods", None)  # no container can ask for pods; the pod itself is the one
    for marker in MARKERS:
        total.pop(marker, None)
    offered_then = None
    if len(total) > MOST_RESOURCES:
        turn()
        asked: Sequence[str] = [resource for resource, nanos in total.items() if nanos]
        if len(asked) > MOST_RESOURCES:
            there = tuple(offered)  # this may be another thread than the one that adds to them
            asked, offered_then = _counted(total, asked, there), len(there)
            problems.append(
                f"more than {MOST_RESOURCES} resources requested, of which those that nodes offer"
                " are counted, and the first of the others by name: no node offers so many"
            )
        total = {resource: total.get(resource, 0) for resource in asked}
    return _rounded_up(tuple(total.items())), problems[0] if problems else "", offered_then


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


def _amounts_of(asked: Sequence[Requests], first: int, where: str, problems: list[str]) -> _Amounts:
    """What each of some containers asks for, resource by resource; nothing where it is unreadable.

    `first`: the index of the first of them in the pod.
    """
    names = list(chain.from_iterable(asked))
    if len(names) > FEW:
        nanos = many_nano_units(list(chain.from_iterable(each.values() for each in asked)))
        if nanos is not None:
            return zip(names, nanos, strict=True)
    read = [
        (each, _nanos(each, f"spec.{where}[{index}]{_REQUESTS}", problems))
        for index, each in enumerate(asked, first)
        if each
    ]
    return [(name, nanos.get(name, 0)) for each, nanos in read for name in each]


def _add_all(total: _Nanos, amounts: _Amounts) -> None:
    for resource, nanos in amounts:
        total[resource] = total.get(resource, 0) + nanos


def _counted(total: _Nanos, asked: Sequence[str], offered: Offered) -> Sequence[str]:
    """Those of the many resources in a total that are counted; `asked` have an amount."""
    first = {resource for resource in offered if total.get(resource)}
    # As many by name leave enough when those that nodes offer are taken out. From sets, since the
    # longest way is through names from the last to the first, as a pod may list them.
    smallest: list[str] = []
    for begin in range(0, len(asked), NAMES_AT_ONCE):
        turn()
        smallest = nsmallest(MOST_RESOURCES, {*smallest, *asked[begin : begin + NAMES_AT_ONCE]})
    by_name = [resource for resource in smallest if resource not in first]
    return sorted({*first, *by_name[: MOST_RESOURCES - len(first)], *ALWAYS_COUNTED})


def _include_init_containers(
    total: _Nanos, containers: _Containers, problems: list[str], resize: Resize | None
) -> None:
    sidecars: _Nanos = {}
    peak: _Nanos = {}
    for first, part in slices(containers):
        policies = [each and each.restart_policy for each in part]
        asked = _all_asked(part)
        if resize is not None:  # what runs alone has ended, or is not resized
            asked = [
                resize.counted(each, its) if policy == ALWAYS else its
                for each, its, policy in zip(part, asked, policies, strict=True)
            ]
        amounts = _amounts_of(asked, first, "initContainers", problems)
        policy_of_each = chain.from_iterable(map(repeat, policies, map(len, asked)))
        for (resource, nanos), policy in zip(amounts, policy_of_each, strict=True):
            running = sidecars.get(resource, 0) + nanos
            if policy == ALWAYS:
                sidecars[resource] = running
            # Of what it does not ask for, the sidecars before it have the peak already: a pod may
            # have ten thousand of them, each with a resource of its own.
            elif running > peak.get(resource, 0):
                peak[resource] = running
    turn()
    _add(total, sidecars)
    turn()
    _raise_to(total, peak)


def _all_asked(containers: _Containers, resize: Resize | None = None) -> Sequence[Requests]:
    """The requests of each."""
    asked: Sequence[Requests] = [
        (each and each.resources and each.resources.requests) or _NOTHING for each in containers
    ]
    if resize is None:
        return asked
    return [resize.counted(each, its) for each, its in zip(containers, asked, strict=True)]


def _nanos(quantities: Mapping[str, _Quantity], where: str, problems: list[str]) -> _Nanos:
    amounts: _Nanos = {}
    for resource, quantity in quantities.items():
        try:
            amounts[resource] = 0 if quantity is None else nano_units(resource, quantity)
        except InvalidQuantity as error:
            if not problems:
                problems.append(f"{where}: {error}")
    return amounts


def counts_per_pod(resource: str) -> bool:
    """Whether a pod as a whole may request it, instead of its containers."""
    return resource in ("cpu", "memory") or resource.startswith(HUGE_PAGES)


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
