"""PostFilter: would evicting pods of lower priority make room for a pod that found no node?

A dry run over the nodes that failed for a curable reason, with the in-tree filters only, then
/preempt of every interested extender, then one node is chosen. No disruption budgets here, so
`NumPDBViolations` is always 0. Source: framework/preemption, plugins/defaultpreemption.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from app.sandbox.scheduler.cycle.diagnosis import Diagnosis
from app.sandbox.scheduler.cycle.extender import Extender, ExtenderError
from app.sandbox.scheduler.cycle.filters import Verdict, filter_nodes
from app.sandbox.scheduler.facts.node_table import NodeTable
from app.sandbox.scheduler.facts.pod_facts import PodFacts

_ERROR_PREFIX = "preemption: "
# The DynamicResources plugin writes first; an error of preemption replaces its text.
_PREFIX = "no new claims to deallocate, preemption: "
_NOT_HELPFUL = "Preemption is not helpful for scheduling"
_EXPECTED = "expected at least one victim pod"
_NO_VICTIMS = "No preemption victims found for incoming pod"
_FEWEST_CANDIDATES, _CANDIDATE_PERCENT = 100, 10  # DefaultPreemptionArgs


@dataclass(frozen=True, slots=True)
class Preemption:
    """message: the part of the pod's event about preemption, empty on success.

    clears_nomination: the pod's nominated node, if it has one, is of no use any more.
    """

    message: str
    node: str = ""
    victims: tuple[PodFacts, ...] = ()
    clears_nomination: bool = False


async def preempt(
    table: NodeTable, facts: PodFacts, diagnosis: Diagnosis, extenders: Sequence[Extender]
) -> Preemption:
    """A node and its victims, or why there are none."""
    if facts.body["spec"].get("preemptionPolicy") == "Never":
        return Preemption(_PREFIX + "not eligible due to preemptionPolicy=Never.")
    candidates, reasons = _dry_run(table, facts, diagnosis)
    if not candidates:
        if errors := [text for why in reasons.values() for text in why if _is_error(text)]:
            joined = errors[0] if len(errors) == 1 else f"[{', '.join(errors)}]"
            return Preemption(_ERROR_PREFIX + joined)
        return Preemption(_PREFIX + _sentence(len(table), reasons), clears_nomination=True)
    try:
        candidates = await _ask_extenders(table, facts, candidates, extenders)
    except ExtenderError as error:
        return Preemption(_ERROR_PREFIX + str(error))
    if not candidates:
        return Preemption(_PREFIX + "no candidate node for preemption")
    node = min(candidates, key=lambda name: _cost(candidates[name]))
    return Preemption("", node, candidates[node])


def _dry_run(
    table: NodeTable, facts: PodFacts, diagnosis: Diagnosis
) -> tuple[dict[str, tuple[PodFacts, ...]], dict[str, tuple[str, ...]]]:
    """Candidate nodes with their victims, and why the other curable nodes are none."""
    curable = [
        name
        for name, verdict in diagnosis.verdicts().items()
        if not verdict.is_final and name in table.column_of
    ]
    wanted = max(len(curable) * _CANDIDATE_PERCENT // 100, _FEWEST_CANDIDATES)
    candidates: dict[str, tuple[PodFacts, ...]] = {}
    reasons: dict[str, tuple[str, ...]] = {}
    for name in curable:
        lower = [pod for pod in table.pods_on(name) if pod.priority < facts.priority]
        if not lower:
            reasons[name] = (_NO_VICTIMS,)
            continue
        victims = _victims(table, facts, name, lower)
        if isinstance(victims, Verdict):
            reasons[name] = victims.reasons
        elif not victims:
            # The in-tree filters have nothing against this node: an extender had.
            reasons[name] = (f'{_EXPECTED} on node "{name}"',)
        else:
            candidates[name] = victims
            if len(candidates) >= wanted:
                break
    return candidates, reasons


def _victims(
    table: NodeTable, facts: PodFacts, node: str, lower: list[PodFacts]
) -> tuple[PodFacts, ...] | Verdict:
    """Remove all pods of lower priority, then re-add the most important while the pod still fits.

    A verdict if it does not fit even on the emptied node. The table is as before afterwards.
    """
    column = np.array([table.column_of[node]], np.intp)

    def objection() -> Verdict | None:
        return filter_nodes(table, facts, column, 1).verdicts().get(node)

    assumed = {pod.uid for pod in lower if table.is_assumed(pod.uid)}
    out = sorted(lower, key=lambda pod: (-pod.priority, pod.key))
    for pod in out:
        table.remove_pod(pod.uid)
    verdict = objection()
    victims: list[PodFacts] = []
    for pod in out:
        table.add_pod(pod, node, is_assumed=pod.uid in assumed)
        if verdict is None and objection() is not None:
            table.remove_pod(pod.uid)
            victims.append(pod)
    for pod in victims:
        table.add_pod(pod, node, is_assumed=pod.uid in assumed)
    return tuple(victims) if verdict is None else verdict


def _is_error(text: str) -> bool:
    return text.startswith(_EXPECTED)


async def _ask_extenders(
    table: NodeTable,
    facts: PodFacts,
    candidates: dict[str, tuple[PodFacts, ...]],
    extenders: Sequence[Extender],
) -> dict[str, tuple[PodFacts, ...]]:
    """Let every interested extender with a preemptVerb narrow the candidates, one by one.

    Raises: ExtenderError, also for an answer about unknown nodes or pods, or without victims.
    """
    for extender in extenders:
        if not extender.config.preempt_verb or not extender.is_interested(facts):
            continue
        try:
            chosen = await extender.preempt(facts, candidates)
            named = {node: _resolve(table, extender, node, chosen[node]) for node in chosen}
        except ExtenderError:
            if extender.config.ignorable:
                continue
            raise
        for node in [node for node, victims in named.items() if not victims]:
            if not extender.config.ignorable:
                raise ExtenderError(f'{_EXPECTED} on node "{node}"')
            del named[node]
        candidates = named
        if not candidates:
            break
    return candidates


def _resolve(
    table: NodeTable, extender: Extender, node: str, uids: list[str]
) -> tuple[PodFacts, ...]:
    if node not in table.column_of:
        raise ExtenderError(f'nodeinfo not found for node name "{node}"')
    by_uid = {pod.uid: pod for pod in table.pods_on(node)}
    for uid in uids:
        if uid not in by_uid:
            raise ExtenderError(
                f"extender: {extender.config.url} claims to preempt pod (UID: {uid}) on node:"
                f" {node}, but the pod is not found on that node"
            )
    return tuple(by_uid[uid] for uid in uids)


def _cost(victims: tuple[PodFacts, ...]) -> tuple[int, int, int]:
    """Least important highest victim, then least sum of priorities, then fewest victims."""
    highest = max(pod.priority for pod in victims)
    return highest, sum(pod.priority + 2**31 for pod in victims), len(victims)


def _sentence(all_nodes: int, reasons: dict[str, tuple[str, ...]]) -> str:
    counts = Counter(reason for each in reasons.values() for reason in each)
    if len(reasons) < all_nodes:
        counts[_NOT_HELPFUL] += all_nodes - len(reasons)
    parts = ", ".join(sorted(f"{count} {reason}" for reason, count in counts.items()))
    return f"0/{all_nodes} nodes are available: {parts}."
