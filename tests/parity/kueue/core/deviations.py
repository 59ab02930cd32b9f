"""Where we answer Kueue's scenarios differently on purpose: one table, each entry with its reason.

An entry is asked only about cases whose answers differ, so it never hides an equal one.
test_deviations.py has cases that fall under each.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from tests.parity.kueue.cases import BROKE_DOWN, Answer, Case, Json
from tests.parity.kueue.core import ties
from tests.parity.kueue.core.answers import answer_of_group, count_on_books, slots_of
from tests.parity.kueue.core.questions import (
    Question,
    groups_of,
    has_remainder,
    layers_of,
    name_of,
    names_of,
    workers_of,
)

Answers = Mapping[str, Answer | None]


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


def _drops_pods(case: Case, found: Answers) -> bool:
    """Kueue has looked for a place for no slice at all, where we refuse to."""
    return has_remainder(case.scenario) and any(
        case.expected.get(name) == [] or (_asks_for_no_slice(group) and found.get(name) == "")
        for group in groups_of(case.scenario)
        for name in names_of(group)
    )


def _asks_for_no_slice(group: list[Json]) -> bool:
    workers = workers_of(group)
    return any(workers["count"] < (layer["size"] or 1) for layer in layers_of(workers)[:1])


def _is_balanced(scenario: Json) -> bool:
    return any(_is_balanced_group(scenario, group) for group in groups_of(scenario))


def _is_balanced_group(scenario: Json, group: list[Json]) -> bool:
    request = workers_of(group).get("topologyRequest") or {}
    return bool(scenario["featureGates"]["TASBalancedPlacement"] and request.get("preferred"))


def _balanced_loses_pods(case: Case, found: Answers) -> bool:
    """Some group lacks pods or its leader, and all else is what follows from that."""
    if _is_new(case.scenario):
        return _differs_group_by_group(case, _loses_pods)
    question = Question(case.scenario)
    differing = (
        group
        for group in groups_of(case.scenario)
        if any(case.expected.get(name) != found.get(name) for name in names_of(group))
    )
    first = next(differing, None)
    return first is not None and _loses_pods(question, first, found, case.expected)


def _loses_pods(question: Question, group: list[Json], ours: Answers, theirs: Answers) -> bool:
    """Kueue calls it a success and has placed fewer than the pods that make whole slices."""
    workers = workers_of(group)
    size = max((layer["size"] for layer in layers_of(workers)), default=1)
    answers = [theirs.get(name) for name in names_of(group)]
    placed = theirs.get(workers["name"])
    if not _is_balanced_group(question.scenario, group) or not isinstance(placed, list):
        return False
    whole = workers["count"] - workers["count"] % size
    return sum(pods for _, pods in placed) < whole or [] in answers


def _is_new(scenario: Json) -> bool:
    """Neither is a node lost nor does the workload grow."""
    is_elastic = scenario["featureGates"].get("ElasticJobsViaWorkloadSlicesWithTAS")
    return not is_elastic and not (scenario.get("workload") or {}).get("unhealthyNodes")


def _differs_group_by_group(
    case: Case, may_differ: Callable[[Question, list[Json], Answers, Answers], bool]
) -> bool:
    """Every group beside those that Kueue placed before it: our answer, or one that may differ."""
    question, has_difference = Question(case.scenario), False
    for group in groups_of(case.scenario):
        if question.is_mistake(group) or not question.cluster.tree.nodes:
            return False
        theirs = {name: case.expected.get(name) for name in names_of(group)}
        ours = answer_of_group(question, group)
        if ours != theirs:
            if not may_differ(question, group, ours, theirs):
                return False
            has_difference = True
        if not all(isinstance(answer, list) for answer in theirs.values()):
            break  # Kueue looks no further
        count_on_books(question, group, slots_of(question, theirs))
    return has_difference


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
    return (
        _is_balanced(case.scenario)
        and _is_new(case.scenario)
        and _differs_group_by_group(case, ties.are_swapped)
    )


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
        if theirs != found.get(name):
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
        "Kueue looks for a place for none and mostly reports success; we refuse, or place a "
        "smaller last slice",
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
