"""Where Kueue's own answer changes from run to run: the answers that it may give.

Balanced placement orders domains by the entropy of their children, added up in the order of a Go
map; a replaced part of a slice goes to the first domain of such a map that it would complete.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np

from tests.parity.kueue.cases import Answer, Domains, Json
from tests.parity.kueue.core.questions import Question, layers_of
from topology import NoFit
from topology.fit import fit
from topology.fit.unit import Unit, part_of, units_of
from topology.fit.view import View
from topology.pod_set import search
from topology.pod_set.balanced import entropy

Shares = dict[int, tuple[tuple[int, ...], ...]]
"""Domain -> of each pod set the pods in its children, without their order."""


def are_swapped(
    question: Question,
    group: list[Json],
    ours: Mapping[str, Answer | None],
    theirs: Mapping[str, Answer | None],
) -> bool:
    """Whether two placements of a group differ only in which of equal domains has which share."""
    if not all(isinstance(one, list) for one in (*ours.values(), *theirs.values())):
        return False
    [unit] = _units(question, group)
    if not unit.is_balanced or unit.first >= unit.layers.level:
        return False
    mine, other = (
        _shares(question, unit.first, [answer.get(name) for name in ours])
        for answer in (ours, theirs)
    )
    moved = [domain for domain in mine | other if mine.get(domain) != other.get(domain)]
    return bool(moved) and any(
        Counter((keys.get(domain), mine.get(domain)) for domain in moved)
        == Counter((keys.get(domain), other.get(domain)) for domain in moved)
        for keys in _keys(question, unit)
    )


def _units(question: Question, group: list[Json]) -> list[Unit]:
    tree = question.cluster.tree
    return units_of(tree, question.gang([group]), question.options.unconstrained)


def _shares(question: Question, level: int, answer: Sequence[Answer | None]) -> Shares:
    tree = question.cluster.tree
    found: dict[int, list[tuple[int, ...]]] = {}
    for place, domains in enumerate(answer):
        pods: dict[int, Counter[int]] = {}
        for slot, number in question.on_slots(domains if isinstance(domains, list) else []):
            children = pods.setdefault(int(tree.domain_of[level][slot]), Counter())
            children[int(tree.domain_of[level + 1][slot])] += number
        for domain, children in pods.items():
            shares = found.setdefault(domain, [()] * len(answer))
            shares[place] = tuple(sorted(children.values()))
    return {domain: tuple(shares) for domain, shares in found.items()}


def _keys(question: Question, unit: Unit) -> Iterator[dict[int, tuple[int, float]]]:
    """What orders the domains beside their names, for each threshold that may have pruned them."""
    tree = question.cluster.tree
    view = View(tree, question.cluster.capacity, question.masks, question.options)
    wanted = {level: tree.first_children(level) for level in range(tree.node_level)}
    children = fit.roll_up(view.node_fit(unit), wanted, unit.layers, tree.node_level)[
        unit.first + 1
    ]
    starts = tree.first_children(unit.first)[1:]
    for threshold in sorted({0, *children.slices.tolist()}):
        pods = np.where(children.slices >= threshold, children.pods, 0)
        yield {
            domain: (int(part.sum()) // unit.layers.size, round(entropy(part), 9))
            for domain, part in enumerate(np.split(pods, starts))
            if part.any()
        }


def completions(question: Question, pod_set: Json) -> Iterator[Answer]:
    """What Kueue may answer where lost pods would complete the slices of several domains."""
    domains = question.domains_made_whole(pod_set)
    assigned = question.assigned(pod_set)
    if len(domains) < 2 or assigned is None:
        return
    stays = question.stays(assigned)
    missing = sum(pods for _, pods in assigned) - sum(pods for _, pods in stays)
    [unit] = _units(question, [pod_set | {"count": sum(pods for _, pods in assigned)}])
    layer = [layer for layer in layers_of(pod_set) if missing % layer["size"]][-1]
    tree = question.cluster.tree
    level = tree.levels.index(question.cluster.level(layer["topology"]))
    finest = [each for each in unit.workers.slices if missing % each.pods == 0][-1:]
    part = part_of(tree, unit, missing, tuple(finest), None)
    for domain in domains:
        view = View(tree, question.cluster.capacity, question.masks, question.options)
        view.confine(tree.slots(level, domain))
        answer = search.place(view, part)
        if isinstance(answer, NoFit):
            yield question.reason([pod_set], answer)
        else:
            yield _merged(question, stays, answer[0].slots)


def _merged(question: Question, stays: Domains, placed: Iterable[tuple[int, int]]) -> Domains:
    on_slot = Counter(dict(placed))
    for slot, pods in question.on_slots(stays):
        on_slot[slot] += pods
    return [(question.cluster.values_of(slot), pods) for slot, pods in sorted(on_slot.items())]
