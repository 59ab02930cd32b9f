"""Nodes that take pods of a gang and are of no use to it: what a request for nodes is kept off.

A gang that has to be in one domain and fits in none has no use for the free nodes there are. An
autoscaler that knows no domains subtracts them all the same, and makes too few nodes, or none.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from app.state.cache.eligibility.node_refusals import Shaped
from app.state.gang.gang import Gang
from app.state.plan.planner import Planner
from app.state.plan.single_nodes import with_levels

MOST_NODES = 128  # that are named one by one, each a requirement of its own
MOST_DOMAINS = 512  # that are named instead: autoscalers read them from labels of node groups


@dataclass(frozen=True, slots=True)
class KeptOff:
    """Nodes by name, or the domains of a level by their label's value."""

    nodes: tuple[str, ...] = ()
    level: str = ""
    domains: tuple[str, ...] = ()


def useless_nodes(
    planner: Planner, gang: Gang, level: str, *, were_ordered: bool
) -> Mapping[Shaped, KeptOff]:
    """What each kind of a gang's unplanned pods is kept off. `level`: all pods need one domain.

    Where nodes `were_ordered` before, for all of it, those that have come are of use. Nothing is
    known to be useless to a gang on several topologies: one part may have room where another lacks.
    """
    if not level or planner.serving.is_in_parts(gang):
        return {}
    kinds = dict.fromkeys((each.pod.request, each.shape) for each in gang.unplanned())
    pods = {shaped: planner.pods_by_node(gang, shaped) for shaped in kinds}
    best = _came(planner, gang, level, pods) if were_ordered else frozenset()
    return {shaped: _kept_off(planner, level, by_node, best) for shaped, by_node in pods.items()}


def _came(
    planner: Planner, gang: Gang, level: str, pods: Mapping[Shaped, Mapping[str, int]]
) -> frozenset[str]:
    """The nodes that are kept for it; after a restart, those of the domain that takes most."""
    kept, _ = planner.new_nodes.get(gang.key, (frozenset[str](), None))
    return kept or _best(planner, gang, level, pods)


def _best(
    planner: Planner, gang: Gang, level: str, pods: Mapping[Shaped, Mapping[str, int]]
) -> frozenset[str]:
    """The nodes of the domain that takes most pods of the first kind, of equal ones the first."""
    name = next((gang.membership.topology_of(each.leaf) for each in gang.unplanned()), None)
    for topology in with_levels(planner.books, {level}, name):
        slot_of = topology.tree.slot_of
        domain_of = topology.tree.domain_of[topology.levels.index(level)]
        for by_node in pods.values():
            there = {node: int(domain_of[slot_of[node]]) for node in by_node if node in slot_of}
            fits = Counter[int]()
            for node, domain in there.items():
                fits[domain] += by_node[node]
            best = min(fits, key=lambda domain: (-fits[domain], domain), default=None)
            return frozenset(node for node, domain in there.items() if domain == best)
    return frozenset()


def _kept_off(
    planner: Planner, level: str, pods: Mapping[str, int], best: frozenset[str]
) -> KeptOff:
    nodes = [node for node in pods if node not in best]
    if len(nodes) <= MOST_NODES:
        return KeptOff(nodes=tuple(sorted(nodes)))
    labelled = {name: planner.books.nodes[name].labels.get(level, "") for name in (*nodes, *best)}
    domains = {labelled[node] for node in nodes} - {labelled[node] for node in best} - {""}
    if not domains or len(domains) > MOST_DOMAINS:
        return KeptOff()  # it is asked for with what there is
    return KeptOff(level=level, domains=tuple(sorted(domains)))
