"""Why nodes are closed to the pod set that found no place, as messages name it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from app.kube.core.objects import Amounts
from app.state.cache.topology_books import TopologyBooks
from app.state.plan.question.pins import range_of
from app.state.plan.question.pod_sets import PodSetMembers
from app.state.plan.question.request import Builder, Question, SearchRequest, among
from topology.fit.fit import NOT_ALLOWED, OUTSIDE
from topology.model.answer import NoFit
from topology.model.resources import Mask, Rows

REFUSED = "refused by kube-scheduler"
EARMARKED = "kept for a gang that comes before it"
ELSEWHERE = "not among the nodes the pod was narrowed to"
UNLABELLED = "without a label of every level"


@dataclass(frozen=True, slots=True, eq=False)
class Closed:
    """Why nodes are closed to one pod set, by the first reason that holds."""

    reasons: tuple[str, ...]
    code: Rows
    """Shapes: (N,). The reason's index; 0, for OUTSIDE, where no other holds."""

    def counted(self, closed: Mask) -> Counter[str]:
        """How many of these nodes each reason closes. Shapes: closed (N,)."""
        nodes = np.bincount(self.code[closed], minlength=len(self.reasons)).tolist()
        return Counter(
            {reason: number for reason, number in zip(self.reasons, nodes, strict=True) if number}
        )


@dataclass(frozen=True, slots=True)
class Told:
    """A search on one topology, and what its answer is told in."""

    topology: str
    request: SearchRequest
    names: tuple[str, ...]
    """What users call each pod set."""
    closed: tuple[Closed, ...]
    """Why nodes are closed to each pod set."""
    unlabelled: int
    """Nodes that lack a label of the topology."""
    amounts: tuple[Amounts, ...]
    """What a pod of each pod set requests, also of resources that no node has."""

    @classmethod
    def of(
        cls, builder: Builder, question: Question, topology: TopologyBooks, request: SearchRequest
    ) -> Told:
        """A question's search on a topology."""
        return cls(
            topology.name,
            request,
            names_of(question),
            tuple(closed_to(builder, question, topology, each) for each in question.pod_sets),
            unlabelled(builder, topology),
            tuple(each.shaped[0] for each in question.pod_sets),
        )

    def verdict(self, answer: NoFit) -> NoFit:
        """The search's answer with the reasons why nodes are closed, in the words of users."""
        closed = self.closed[int(answer.pod_set)]
        return told(answer, self.request, closed, self.names, self.unlabelled)


def explained(
    answer: NoFit,
    builder: Builder,
    question: Question,
    topology: TopologyBooks,
    request: SearchRequest,
) -> NoFit:
    """The answer with the reasons why nodes are closed to the pod set that found no place."""
    closed = closed_to(builder, question, topology, question.pod_sets[int(answer.pod_set)])
    return told(answer, request, closed, names_of(question), unlabelled(builder, topology))


def told(
    answer: NoFit, request: SearchRequest, closed: Closed, names: Sequence[str], unlabelled: int
) -> NoFit:
    """The answer with these reasons, and with pod sets as users name them."""
    mask = request.attempts[-1][answer.pod_set]
    excluded = dict(answer.excluded)
    reasons = closed.counted(request.capacity.is_open & ~mask)
    if excluded.get(NOT_ALLOWED) == reasons.total():
        del excluded[NOT_ALLOWED]
        excluded = dict(Counter(excluded) + reasons)
    if unlabelled:
        excluded[UNLABELLED] = unlabelled
    ordered = sorted(excluded.items(), key=lambda reason: (-reason[1], reason[0]))
    return named(replace(answer, excluded=tuple(ordered)), request, names)


def named(answer: NoFit, request: SearchRequest, names: Sequence[str]) -> NoFit:
    """The answer with pod sets beside the one that found no place as users name them.

    To the search the single pod of any two pod sets with one constraint leads the other. Only where
    the gang says so itself, as a pod set group does, users know it for a leader.
    """
    leader, beside = answer.leader, answer.beside
    leaders = (each.leader for each in request.gang.pod_sets())
    if leader and all(each is None or each.name != leader for each in leaders):
        leader, beside = "", (leader, *beside)
    return replace(
        answer,
        leader=names[int(leader)] if leader else "",
        beside=tuple(dict.fromkeys(names[int(each)] for each in beside)),
    )


def names_of(question: Question) -> tuple[str, ...]:
    """What users call the pod sets: their leaf, or the first pod where leaves have no names.

    One pod set without a name is the gang.
    """
    firsts = tuple(pod_set.unplanned[0] for pod_set in question.pod_sets)
    if len(firsts) == 1 and not firsts[0].leaf:
        return (question.gang.key.name,)
    return tuple(first.leaf or first.pod.name for first in firsts)


def unlabelled(builder: Builder, topology: TopologyBooks) -> int:
    """How many nodes are not in the tree at all, for they lack a level's label."""
    return len(builder.books.nodes) - len(topology.tree.nodes)


def _apart(pod_set: PodSetMembers, topology: TopologyBooks) -> Iterator[tuple[str, Mask]]:
    """The nodes outside the domain that other gangs of its family are in."""
    for around in pod_set.around:
        inside = range_of(around, topology) if around.family else None
        if inside is not None:
            outside = np.ones(len(topology.tree.nodes), dtype=np.bool_)
            outside[inside] = False
            yield f"outside the domain of {around.family}", outside


def closed_to(
    builder: Builder, question: Question, topology: TopologyBooks, pod_set: PodSetMembers
) -> Closed:
    """Why nodes are closed to one pod set of a question."""
    tree = topology.tree
    code, reasons = builder.node_table.why_not(pod_set.shaped[1], tree)
    elsewhere = None if pod_set.allowed is None else ~among(pod_set.allowed, topology)
    further = (
        *_apart(pod_set, topology),
        (ELSEWHERE, elsewhere),
        (REFUSED, builder.refused(question, topology, pod_set)),
        (EARMARKED, among(question.closed, topology)),
    )
    for index, (_, where) in enumerate(further, len(reasons)):
        if where is not None:
            code[(code == 0) & where] = index
    return Closed((OUTSIDE, *reasons[1:], *(name for name, _ in further)), code)
