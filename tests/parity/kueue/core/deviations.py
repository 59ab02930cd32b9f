"""Where we answer Kueue's scenarios differently on purpose: one table, each entry with its reason.

An entry is asked only about cases whose answers differ, so it never hides an equal one. The
cases of our own samples that fall under each are listed in test_core.py.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from tests.parity.kueue.cases import BROKE_DOWN, Answer, Case, Json
from tests.parity.kueue.core import ties
from tests.parity.kueue.core.answers import count_on_books, slots_of
from tests.parity.kueue.core.questions import (
    Question,
    groups_of,
    has_remainder,
    layers_of,
    name_of,
    names_of,
    workers_of,
)
from topology import NoFit

Answers = Mapping[str, Answer]


@dataclass(frozen=True, slots=True)
class Deviation:
    """One way in which we differ, and whether it explains a case."""

    name: str
    reason: str
    explains: Callable[[Case, Answers], bool]
    """Case and our answers, which differ from the expected ones."""


def deviation_of(case: Case, found: Answers) -> Deviation | None:
    """The first entry that explains the difference."""
    return next((one for one in DEVIATIONS if one.explains(case, found)), None)


def _places_nothing(case: Case, found: Answers) -> bool:
    """Kueue calls it a success and places no pod of some pod set."""
    return any(answer == [] for answer in case.expected.values())


def _drops_pods(case: Case, found: Answers) -> bool:
    return has_remainder(case.scenario) and _places_nothing(case, found)


def _is_balanced(scenario: Json) -> bool:
    return bool(scenario["featureGates"]["TASBalancedPlacement"]) and any(
        (pod_set.get("topologyRequest") or {}).get("preferred") for pod_set in scenario["podSets"]
    )


def _balanced_loses_pods(case: Case, found: Answers) -> bool:
    if not _is_balanced(case.scenario):
        return False
    for group in groups_of(case.scenario):
        workers = workers_of(group)
        answer = case.expected.get(workers["name"])
        size = max((layer["size"] for layer in layers_of(workers)), default=1)
        if isinstance(answer, list) and sum(pods for _, pods in answer) <= workers["count"] - size:
            return True
    return False


def _balanced_panics(case: Case, found: Answers) -> bool:
    return _is_balanced(case.scenario) and any(
        isinstance(answer, str) and answer.startswith(BROKE_DOWN)
        for answer in case.expected.values()
    )


def _places_more_than_asked(case: Case, found: Answers) -> bool:
    counts = {pod_set["name"]: pod_set["count"] for pod_set in case.scenario["podSets"]}
    return any(
        not isinstance(answer, str) and sum(pods for _, pods in answer) > counts[name]
        for name, answer in case.expected.items()
    )


def _entropies_tie(case: Case, found: Answers) -> bool:
    """Kueue's pods are ours, but that domains equal in all but their names have changed places."""
    if not _is_balanced(case.scenario):
        return False
    question = Question(case.scenario)
    if question.is_replacement or not question.cluster.tree.nodes:
        return False
    has_tie = False
    for group in groups_of(case.scenario):
        theirs = {name: case.expected.get(name) for name in names_of(group)}
        if question.is_mistake(group) or any(not isinstance(one, list) for one in theirs.values()):
            return False
        answer = question.find([group])
        if isinstance(answer, NoFit):
            return False
        ours = question.in_kueues_form(answer)
        if ours != theirs and not ties.are_swapped(question, group, ours, theirs):
            return False
        has_tie |= ours != theirs
        count_on_books(question, group, slots_of(question, theirs))
    return has_tie


def _several_domains_are_incomplete(case: Case, found: Answers) -> bool:
    """Kueue has completed the slices of one of several domains that the lost pods would complete.

    Which one is random, so the answer may be that of any.
    """
    workload = case.scenario.get("workload") or {}
    if not workload.get("unhealthyNodes"):
        return False
    question, has_choice = Question(case.scenario), False
    for pod_set in (pod_set for group in groups_of(case.scenario) for pod_set in group):
        name = pod_set["name"]
        theirs = case.expected.get(name)
        if theirs is None:
            continue
        if theirs != found.get(name) or has_choice:
            if theirs not in list(ties.completions(question, pod_set)):
                return False
            has_choice = True
        if isinstance(theirs, str):
            break
        stays = {name_of(pod_set): question.on_slots(question.stays(theirs))}
        count_on_books(question, [pod_set], slots_of(question, {name: theirs}), minus=stays)
    return has_choice


DEVIATIONS = (
    Deviation(
        "pods without a domain",
        "the slice size does not divide the pods, and fewer are asked for than one slice has: "
        "Kueue reports success and places none; we refuse, or place a smaller last slice",
        _drops_pods,
    ),
    Deviation(
        "balanced placement that loses pods",
        "Kueue's balanced placement takes pods of a wider domain for whole slices, finds no room "
        "for some further down, and reports success without them; we fall back to the ordinary "
        "search",
        _balanced_loses_pods,
    ),
    Deviation(
        "balanced placement that panics",
        "fewer pods than one slice divide by zero in Kueue; we fall back to the ordinary search",
        _balanced_panics,
    ),
    Deviation(
        "places of pods that are no longer asked for",
        "of two pod sets of one pod Kueue takes the second for the leader, and a leader keeps "
        "all places it had, also when it had more pods; we keep as many as are asked for",
        _places_more_than_asked,
    ),
    Deviation(
        "equal entropy",
        "two domains with equally even children: Kueue adds floats in random order, so the first "
        "of them changes from run to run; ours is the one whose path is lower",
        _entropies_tie,
    ),
    Deviation(
        "several incomplete slices",
        "the replaced pods would make slices whole in several domains: Kueue puts them all into a "
        "random one; we make the slices of each whole, as far as they go",
        _several_domains_are_incomplete,
    ),
)
"""Beside them, on by default and switched off by `cases.Cluster`: under a lowest level that
is not the hostname we place on nodes, with their taints, labels and fragmentation; Kueue takes
such a domain for one node."""
