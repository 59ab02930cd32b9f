"""Gangs as they are known, without a search."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator

from app.explain.view import GangView, NeedsNodes, Pods
from app.state.autoscaling.requests import REQUEST
from app.state.cache.books import Books
from app.state.cache.topology_books import TopologyBooks
from app.state.gang.gang import PLANNABLE, Gang, Phase
from app.state.gang.reasons import Reason

MOST_DOMAINS = 8  # shown
MOST_LOOKED_UP = 64  # of its pods that run: 50 us, and a page has 250 gangs


def view(gang: Gang, now: float, books: Books) -> GangView:
    """One gang in a word and a sentence."""
    key, membership = gang.key, gang.membership
    is_waiting = gang.phase in PLANNABLE
    return GangView(
        namespace=key.namespace,
        name=key.name,
        source=key.source,
        phase=gang.phase.value,
        reason=reason_of(gang, now),
        message=message_of(gang),
        priority=gang.priority,
        waiting_seconds=max(0.0, now - gang.complete_at) if is_waiting else None,
        pods=Pods(
            declared=membership.pods,
            there=gang.pods_there,
            planned=len(gang.plan.nodes.keys() & gang.members.keys()),
            bound=len(membership.bound),
        ),
        domains=tuple(sorted({*gang.plan.domains.values(), *_runs_in(gang, books)})[:MOST_DOMAINS]),
        needs_nodes=_needs_nodes(gang, now) if is_waiting else None,
    )


def _runs_in(gang: Gang, books: Books) -> Iterator[str]:
    """The domains of its pods that run, of the narrowest level that each of them names."""
    bound, by_level = gang.membership.bound[:MOST_LOOKED_UP], defaultdict[str, set[str]](set)
    for member in bound:
        if level := member.constraint.preferred or member.constraint.required:
            by_level[level].add(member.pod.node)
    spec = gang.membership.spec
    if not by_level and spec is not None and spec.root.constraint.required:
        by_level[spec.root.constraint.required] = {member.pod.node for member in bound}
    named = None if spec is None else spec.topology
    for level, nodes in by_level.items():
        yield from domains_in(books, level, nodes, named)


def domains_in(
    books: Books, level: str, nodes: Iterable[str], named: str | None = None
) -> Iterator[str]:
    """The domains of a level that these nodes are in, each with those around it.

    `named`: the topology of the gang, if it names one. Of a level that no topology has: none.
    """
    for topology in books.topologies.values():
        if level in topology.levels[:-1] and named in (None, topology.name):
            yield from _domains(topology, level, nodes)
            return


def _domains(topology: TopologyBooks, level: str, nodes: Iterable[str]) -> Iterator[str]:
    tree, depth = topology.tree, topology.levels.index(level)
    slots = (tree.slot_of[node] for node in nodes if node in tree.slot_of)
    for domain in {int(tree.domain_of[depth][slot]) for slot in slots}:
        yield f"{level}={'/'.join(tree.path(depth, domain))}"


def _needs_nodes(gang: Gang, now: float) -> NeedsNodes | None:
    need = gang.need
    if not need.is_open or need.lack is None:
        return None
    return NeedsNodes(
        reason=need.why,
        pods=len(gang.unplanned()),
        level=need.lack.level,
        largest=need.lack.available,
        ask="request" if gang.ask.how == REQUEST else "mark",
        request=gang.ask.request if gang.ask.how == REQUEST else "",
        message=gang.ask.shown if gang.ask.how == REQUEST else "",
        since_seconds=max(0.0, now - need.opened_at),
    )


def reason_of(gang: Gang, now: float) -> Reason:
    """Why the gang is where it is."""
    match gang.phase:
        case Phase.GATHERING:
            return _why_gathering(gang)
        case Phase.WAITING | Phase.REPAIRING:
            return _why_waiting(gang, now)
        case Phase.PLACED:
            return Reason.AWAITING_SCHEDULER
        case Phase.BINDING:
            return Reason.STARTING
        case Phase.RUNNING:
            return Reason.RUNNING
        case Phase.DONE:
            return Reason.ENDED


def _why_gathering(gang: Gang) -> Reason:
    membership = gang.membership
    if not gang.roll_calls:
        return Reason.QUEUED
    if membership.problem or any(each.flaw for each in gang.members.values()):
        return Reason.INVALID
    if membership.is_unread or (membership.spec is None and not membership.bound):
        return Reason.UNREAD
    if any(each.is_live and not each.is_ready for each in gang.members.values()):
        return Reason.GATED
    return Reason.INCOMPLETE


def _why_waiting(gang: Gang, now: float) -> Reason:
    if gang.binding.awaits_members(now):
        return Reason.REFUSED_BY_SCHEDULER
    if now < gang.back_off.not_before:
        return Reason.BACKING_OFF
    if gang.reporting.sentence_at is None:
        return Reason.QUEUED
    is_apart = gang.reporting.is_narrowed_apart and gang.reporting.reason is Reason.DOES_NOT_FIT
    return Reason.NARROWED_APART if is_apart else gang.reporting.reason


def message_of(gang: Gang) -> str:
    """The same in one sentence; of a gang that waits, the one that its pods are told."""
    pods, bound = len(gang.plan.nodes), len(gang.membership.bound)
    all_pods = "1 pod" if bound == 1 else f"{bound} pods"
    match gang.phase:
        case Phase.PLACED:
            came = len(gang.binding.arrived)
            return f"gang {gang.key} is placed; {came} of its {pods} pods have come to /bind"
        case Phase.BINDING:
            return f"gang {gang.key} starts: {bound} of its {bound + pods} pods are bound"
        case Phase.RUNNING:
            return f"gang {gang.key} runs with {all_pods}"
        case Phase.DONE:
            return f"gang {gang.key} has ended"
    return gang.reporting.sentence or f"gang {gang.key} has not been looked at yet"
