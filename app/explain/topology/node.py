"""One node: what it has, why it takes no pods, and which pods are on it."""

from __future__ import annotations

from collections.abc import Iterator

from app.dialects.spec import GangKey
from app.explain.topology.map import May, gang_of
from app.explain.topology.map_view import MapGang, NodePod, NodeView
from app.explain.topology.usage import NoSuch, unit_of, why_closed
from app.explain.topology.usage_view import Amount
from app.kube.core.objects import Amounts
from app.state.cache.books import ALL_NODES
from app.state.engine import Engine

MOST_PODS = 250


def node_view(engine: Engine, name: str, may: May) -> NodeView:
    """The node as it is known. `may`: whose pods are told by name. Raises: NoSuch."""
    node = engine.books.nodes.get(name)
    if node is None:
        raise NoSuch(f"no node {name} is known")
    every = list(_pods(engine, name))
    told = [each for each in every if may(each.namespace)][:MOST_PODS]
    return NodeView(
        name=name,
        state=why_closed(node),
        resources=tuple(_resources(engine, name)),
        pods=tuple(sorted(told, key=lambda pod: (not pod.gang, pod.namespace, pod.name))),
        more_pods=len(every) - len(told),
        kept_for=tuple(dict.fromkeys(_kept_for(engine, name, may))),
    )


def _resources(engine: Engine, name: str) -> Iterator[Amount]:
    books = engine.books
    books.refresh()
    everywhere = books.topologies[ALL_NODES]
    slot, capacity = everywhere.tree.slot_of[name], everywhere.capacity
    is_open = bool(capacity.is_open[slot])
    for row, resource in enumerate(books.axis.names[: len(capacity.allocatable)]):
        unit, has = unit_of(resource), int(capacity.allocatable[row, slot])
        used, held = int(capacity.used[row, slot]), int(capacity.held[row, slot])
        if (has or used) and row not in books.axis.of_devices:
            free = max(0, has - used - held) if is_open else 0
            yield Amount(
                resource=resource,
                capacity=has / unit,
                used=used / unit,
                reserved=held / unit,
                free=free / unit,
            )


def _pods(engine: Engine, node: str) -> Iterator[NodePod]:
    books, gangs, occupants = engine.books, engine.gangs, engine.occupants
    for is_reserved, on in ((False, books.bound_on), (True, books.held_on)):
        for uid, request in on.get(node, {}).items():
            gang = gangs.of_pod(uid)
            if gang is not None:
                pod = gang.members[uid].pod
                namespace, name, its = pod.namespace, pod.name, gang.key.name
            elif (occupant := occupants.by_uid.get(uid)) is not None:
                namespace, name, its = occupant.namespace, occupants.names[uid], ""
            else:  # a placeholder, or a pod that the watch has not shown yet
                namespace, name, its = "", "a pod to come", ""
            yield NodePod(
                namespace=namespace,
                name=name,
                gang=its,
                is_reserved=is_reserved,
                amounts=_amounts(request),
            )


def _amounts(request: Amounts) -> dict[str, float]:
    return {resource: amount / unit_of(resource) for resource, amount in request if amount}


def _kept_for(engine: Engine, node: str, may: May) -> Iterator[MapGang]:
    planner = engine.planner
    for kept in (planner.earmarked, planner.new_nodes):
        found: list[GangKey] = [key for key, (nodes, _) in kept.items() if node in nodes]
        yield from (gang_of(key, may) for key in found)
