"""Why nodes are closed to the pod set that found no place, as messages name it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from app.state.cache.books import TopologyBooks
from app.state.plan.pod_sets import PodSetMembers, range_of
from app.state.plan.request import Builder, Question, SearchRequest, among
from topology.fit.fit import NOT_ALLOWED, OUTSIDE
from topology.model.answer import NoFit
from topology.model.resources import Mask

REFUSED = "refused by kube-scheduler"
EARMARKED = "kept for a gang that has waited longer"
ELSEWHERE = "not among the nodes the pod was narrowed to"
UNLABELLED = "without a label of every level"


def explained(
    answer: NoFit,
    builder: Builder,
    question: Question,
    topology: TopologyBooks,
    request: SearchRequest,
) -> NoFit:
    """The answer with the reasons why nodes are closed to the pod set that found no place."""
    pod_set = question.pod_sets[int(answer.pod_set)]
    mask = request.attempts[-1][answer.pod_set]
    excluded = dict(answer.excluded)
    reasons = _reasons(builder, question, topology, pod_set, mask)
    if excluded.get(NOT_ALLOWED) == reasons.total():
        del excluded[NOT_ALLOWED]
        excluded = dict(Counter(excluded) + reasons)
    # Nodes that are not in the tree at all lack a level's label.
    unlabelled = len(builder.books.nodes) - len(topology.tree.nodes)
    if unlabelled:
        excluded[UNLABELLED] = unlabelled
    ordered = sorted(excluded.items(), key=lambda reason: (-reason[1], reason[0]))
    return replace(
        answer,
        excluded=tuple(ordered),
        leader=_name(question, answer.leader) if answer.leader else "",
        beside=tuple(dict.fromkeys(_name(question, each) for each in answer.beside)),
    )


def _name(question: Question, index: str) -> str:
    """What users call a pod set: its leaf, or its first pod where leaves have no names."""
    first = question.pod_sets[int(index)].unplanned[0]
    return first.leaf or first.pod.name


def _apart(pod_set: PodSetMembers, topology: TopologyBooks) -> Iterator[tuple[str, Mask]]:
    """The nodes outside the domain that other gangs of its family are in."""
    for around in pod_set.around:
        inside = range_of(around, topology) if around.family else None
        if inside is not None:
            outside = np.ones(len(topology.tree.nodes), dtype=np.bool_)
            outside[inside] = False
            yield f"outside the domain of {around.family}", outside


def _reasons(
    builder: Builder,
    question: Question,
    topology: TopologyBooks,
    pod_set: PodSetMembers,
    mask: Mask,
) -> Counter[str]:
    """Open nodes that the mask closes, by the first reason that holds."""
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
    names = (OUTSIDE, *reasons[1:], *(name for name, _ in further))
    nodes = np.bincount(code[topology.capacity.is_open & ~mask], minlength=len(names)).tolist()
    return Counter({name: number for name, number in zip(names, nodes, strict=True) if number})
