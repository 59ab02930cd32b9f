"""Our answers to Kueue's scenarios, in Kueue's form.

There are three ways to ask: for a new workload, for one that lost a node, and for one that
grows or shrinks. A group of pod sets is asked about after the groups before it, as Kueue does;
the first that does not fit ends the scenario.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from tests.parity.kueue.cases import Answer, Case, Domains, Json
from tests.parity.kueue.core.questions import (
    UNNAMED,
    Kept,
    Question,
    groups_of,
    layers_of,
    name_of,
    names_of,
    workers_of,
)
from topology import InvalidRequest, NoFit, Placement


def answers(case: Case) -> dict[str, Answer]:
    """What we answer about each pod set, in Kueue's form."""
    scenario = case.scenario
    gates = scenario["featureGates"]
    if (scenario.get("workload") or {}).get("unhealthyNodes"):
        return _replaced(scenario)
    if gates.get("ElasticJobsViaWorkloadSlicesWithTAS"):
        return _resized(scenario)
    return _placed(scenario)


def _placed(scenario: Json) -> dict[str, Answer]:
    """All groups in one gang; if they do not fit, those before the first that does not as well."""
    groups, question = groups_of(scenario), Question(scenario)
    found: dict[str, Answer] = {}
    # A mistake in one group refuses the whole gang; Kueue has placed those before it by then.
    meant = next(
        (index for index, group in enumerate(groups) if question.is_mistake(group)), len(groups)
    )
    if meant < len(groups):
        found = dict.fromkeys(names_of(groups[meant]), question.mistake(groups[meant]))
    answer = question.find(groups[:meant]) if meant else None
    if isinstance(answer, NoFit):
        failed = next(
            index
            for index, group in enumerate(groups)
            if name_of(workers_of(group)) == answer.pod_set
        )
        found = dict.fromkeys(names_of(groups[failed]), question.reason(groups[failed], answer))
        answer = question.find(groups[:failed]) if failed else None
    if isinstance(answer, Placement):
        found |= question.in_kueues_form(answer)
    return found


def answer_of_group(question: Question, group: list[Json]) -> dict[str, Answer]:
    """What we answer about one group, on the books as they are."""
    return _asked(question, group, lambda: question.find([group]))


def _resized(scenario: Json) -> dict[str, Answer]:
    """Group by group: pods that have a place keep it, unless one of them is gone (2.8, E)."""
    question = Question(scenario)
    question.options = replace(question.options, kept_bind=False)
    found: dict[str, Answer] = {}
    for group in groups_of(scenario):
        kept = _previous(question, group)
        if kept is None:
            answer = _asked(question, group, lambda group=group: question.find([group]))
        else:
            count_on_books(question, group, kept)
            answer = _asked(
                question,
                group,
                lambda group=group, kept=kept: question.complete(group, kept),
            )
            if any(isinstance(one, str) for one in answer.values()):
                # Of a group that does not grow Kueue names the workers alone.
                workers = workers_of(group)["name"]
                answer = {workers: answer[workers]}
        found |= answer
        if any(isinstance(one, str) for one in answer.values()):
            break
        count_on_books(question, group, slots_of(question, answer), minus=kept or {})
    return found


def _previous(question: Question, group: list[Json]) -> Kept | None:
    """Where the pods of a group are; None if the workers are nowhere, or a place is gone."""
    kept: Kept = {}
    for pod_set in group:
        previous = pod_set.get("previousAssignment")
        if not previous:
            if pod_set is workers_of(group):
                return None
            continue
        left = pod_set["count"]
        for domain in previous["Domains"]:
            slot = question.cluster.open_slot(domain["Values"])
            if slot is None:
                return None
            kept.setdefault(name_of(pod_set), []).append((slot, min(left, domain["Count"])))
            left -= min(left, domain["Count"])
    return kept


def slots_of(question: Question, answer: Mapping[str, Answer | None]) -> Kept:
    """The pods of an answer by slot; none of a pod set that has a reason."""
    return {
        name or UNNAMED: question.on_slots(domains)
        for name, domains in answer.items()
        if isinstance(domains, list)
    }


def count_on_books(
    question: Question, group: list[Json], placed: Kept, minus: Kept | None = None
) -> None:
    """Counts pods of a group on the books, less those that are there already."""
    axis, capacity = question.cluster.axis, question.cluster.capacity
    for pod_set in group:
        request = axis.vector({"pods": 1, **pod_set["requests"]}.items())
        for entries, sign in ((placed, 1), (minus or {}, -1)):
            for slot, pods in entries.get(name_of(pod_set), []):
                if sign > 0:
                    capacity.use(slot, request, pods)
                else:
                    capacity.unuse(slot, request, pods)


def _replaced(scenario: Json) -> dict[str, Answer]:
    """Pod set by pod set: what was on the lost node gets another place (2.8)."""
    question, found = Question(scenario), dict[str, Answer]()
    workload, gates = scenario["workload"], scenario["featureGates"]
    for pod_set in (pod_set for group in groups_of(scenario) for pod_set in group):
        name, domains = pod_set["name"], question.assigned(pod_set)
        if domains is None:
            continue
        if gates["SkipReassignmentForPodOwnedWorkloads"] and _is_of_one_pod(workload):
            found[name] = domains
            continue
        stays = question.stays(domains)
        refusal = _refusal_to_replace(question, pod_set, domains, stays)
        if refusal and not question.asked.get("any_loss"):
            return found | {name: refusal}
        kept = {name_of(pod_set): question.on_slots(stays)}
        asked = pod_set | {"count": sum(pods for _, pods in domains)}
        answer = _asked(
            question, [asked], lambda asked=asked, kept=kept: question.complete([asked], kept)
        )
        found |= answer
        if isinstance(answer[name], str):
            return found
        count_on_books(question, [pod_set], slots_of(question, answer), minus=kept)
    return found


def _is_of_one_pod(workload: Json) -> bool:
    owners = workload.get("ownerReferences") or []
    is_group = (workload.get("annotations") or {}).get("kueue.x-k8s.io/is-group-workload")
    return [(owner["apiVersion"], owner["kind"]) for owner in owners] == [
        ("v1", "Pod")
    ] and is_group != "true"


def _refusal_to_replace(question: Question, pod_set: Json, domains: Domains, stays: Domains) -> str:
    """Why Kueue does not look for another place at all; empty if it does."""
    for values, _ in stays:
        if question.cluster.open_slot(values) is None:
            return (
                "Cannot replace the node, because the existing topologyAssignment is invalid, "
                f"as it contains the stale domain {values[0]}"
            )
    # Part of a slice is placed without its layer; with slices alone no level is left (2.8, 3).
    request = pod_set.get("topologyRequest") or {}
    has_level = {"required", "preferred", "unconstrained"} & request.keys()
    missing = sum(pods for _, pods in domains) - sum(pods for _, pods in stays)
    is_none_whole = all(missing % layer["size"] for layer in layers_of(pod_set))
    if not has_level and is_none_whole and question.domains_made_whole(pod_set):
        return "topology level not specified"
    return ""


def _asked(
    question: Question, group: list[Json], ask: Callable[[], Placement | NoFit]
) -> dict[str, Answer]:
    """The answer about one group in Kueue's form; a reason is that of all its pod sets."""
    try:
        answer = ask()
    except InvalidRequest:
        return dict.fromkeys(names_of(group), question.mistake(group))
    if isinstance(answer, Placement):
        return question.in_kueues_form(answer)
    return dict.fromkeys(names_of(group), question.reason(group, answer))
