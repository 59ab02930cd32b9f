"""PostFilter: would evicting pods of lower priority make room for a pod that found no node?

A dry run over the nodes that failed for a curable reason, with the in-tree filters only, then
/preempt of every interested extender, then one node is chosen: that with the fewest victims that a
disruption budget protects, then the least important ones. Not for a pod whose victims still end on
its nominated node. Source: framework/preemption, plugins/defaultpreemption of kubernetes 1.36.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from app.sandbox.apiserver.storage.kinds import Key, Object
from app.sandbox.apiserver.storage.selectors import matches_labels
from app.sandbox.scheduler.cycle.diagnosis import Diagnosis
from app.sandbox.scheduler.cycle.extender import Extender, ExtenderError, NodeVictims
from app.sandbox.scheduler.cycle.filters import Verdict, filter_nodes
from app.sandbox.scheduler.facts.node_table import NodeTable
from app.sandbox.scheduler.facts.pod_facts import PodFacts

_ERROR_PREFIX = "preemption: "
# The DynamicResources plugin writes first; an error of preemption replaces its text.
_PREFIX = "no new claims to deallocate, preemption: "
_NEVER = "not eligible due to preemptionPolicy=Never."
_STILL_ENDS = "not eligible due to a terminating pod on the nominated node."
_NOT_HELPFUL = "Preemption is not helpful for scheduling"
_EXPECTED = "expected at least one victim pod"
_NO_VICTIMS = "No preemption victims found for incoming pod"
_FEWEST_CANDIDATES, CANDIDATE_PERCENT = 100, 10  # DefaultPreemptionArgs


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
    table: NodeTable,
    facts: PodFacts,
    diagnosis: Diagnosis,
    extenders: Sequence[Extender],
    *,
    rivals: Sequence[PodFacts] = (),
    budgets: Sequence[Object] = (),
    percentage: int = CANDIDATE_PERCENT,
) -> Preemption:
    """A node and its victims, or why there are none.

    `rivals`: pods that hold their nominated node against this one. `budgets`:
    PodDisruptionBudgets. `percentage`: of the nodes, as many candidates are enough
    (minCandidateNodesPercentage).
    """
    if facts.body["spec"].get("preemptionPolicy") == "Never":
        return Preemption(_PREFIX + _NEVER)
    if _still_ends(table, facts, diagnosis):
        return Preemption(_PREFIX + _STILL_ENDS)
    dry_run = DryRun(table, facts, rivals, budgets)
    candidates, reasons = dry_run.candidates(diagnosis, percentage)
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
    node = _chosen(candidates)
    return Preemption("", node, candidates[node].pods)


def _still_ends(table: NodeTable, facts: PodFacts, diagnosis: Diagnosis) -> bool:
    """Whether a pod that was preempted for this one still ends on a node that may yet take it."""
    verdict = diagnosis.verdicts().get(facts.nominated_node)
    if verdict is None or verdict.is_final:  # a node without a verdict is out for good
        return False
    there = table.pods_on(facts.nominated_node)
    return any(pod.is_preempted and pod.priority < facts.priority for pod in there)


@dataclass(frozen=True, slots=True)
class DryRun:
    """What would go on which node; the table is afterwards as it was."""

    table: NodeTable
    facts: PodFacts
    rivals: Sequence[PodFacts]
    budgets: Sequence[Object]

    def candidates(
        self, diagnosis: Diagnosis, percentage: int
    ) -> tuple[dict[str, NodeVictims], dict[str, tuple[str, ...]]]:
        """Candidate nodes with their victims, and why the other curable nodes are none."""
        curable = [
            name
            for name, verdict in diagnosis.verdicts().items()
            if not verdict.is_final and name in self.table.column_of
        ]
        wanted = max(len(curable) * percentage // 100, _FEWEST_CANDIDATES)
        candidates: dict[str, NodeVictims] = {}
        reasons: dict[str, tuple[str, ...]] = {}
        for name in curable:
            victims = self._victims(name)
            if victims is None:
                reasons[name] = (_NO_VICTIMS,)
            elif isinstance(victims, Verdict):
                reasons[name] = victims.reasons
            elif not victims.pods:
                # The in-tree filters have nothing against this node: an extender had.
                reasons[name] = (f'{_EXPECTED} on node "{name}"',)
            else:
                candidates[name] = victims
                is_harmless = any(not each.pdb_violations for each in candidates.values())
                if len(candidates) >= wanted and is_harmless:
                    break
        return candidates, reasons

    def _victims(self, node: str) -> NodeVictims | Verdict | None:
        """Remove all lower pods, then re-add the most important while the pod still fits.

        Those that a budget protects are re-added first. A verdict if the pod does not fit even on
        the emptied node; None where there is no pod of lower priority.
        """
        table = self.table
        out = [pod for pod in table.pods_on(node) if pod.priority < self.facts.priority]
        if not out:
            return None
        assumed = {pod.uid for pod in out if table.is_assumed(pod.uid)}
        out.sort(key=_importance)
        protected = _protected(out, self.budgets)
        for pod in out:
            table.remove_pod(pod.uid)
        verdict = self._objection(node)
        victims: list[PodFacts] = []
        for pod in sorted(out, key=lambda pod: pod.uid not in protected):
            table.add_pod(pod, node, is_assumed=pod.uid in assumed)
            if verdict is None and self._objection(node) is not None:
                table.remove_pod(pod.uid)
                victims.append(pod)
        for pod in victims:
            table.add_pod(pod, node, is_assumed=pod.uid in assumed)
        if verdict is not None:
            return verdict
        violations = sum(pod.uid in protected for pod in victims)
        return NodeVictims(tuple(sorted(victims, key=_importance)), violations)

    def _objection(self, node: str) -> Verdict | None:
        column = np.array([self.table.column_of[node]], np.intp)
        outcome = filter_nodes(self.table, self.facts, column, 1, self.rivals)
        return outcome.verdicts().get(node)


def _importance(pod: PodFacts) -> tuple[int, str, Key]:
    """The most important first: of the highest priority, then the one that has run longest."""
    return -pod.priority, pod.started, pod.key


def _protected(pods: Sequence[PodFacts], budgets: Sequence[Object]) -> set[str]:
    """The uids of pods that a budget does not let go, beside those before them.

    Source: plugins/defaultpreemption, filterPodsWithPDBViolation; a pod without labels and a
    budget with an empty selector count as unprotected.
    """
    left = [(each.get("status") or {}).get("disruptionsAllowed", 0) for each in budgets]
    protected: set[str] = set()
    for pod in pods:
        labels = pod.body["metadata"].get("labels")
        for number, budget in enumerate(budgets if labels else ()):
            selector = budget["spec"].get("selector")
            if budget["metadata"]["namespace"] != pod.key[0] or not selector:
                continue
            disrupted = (budget.get("status") or {}).get("disruptedPods") or {}
            if pod.key[1] in disrupted or not matches_labels(selector, labels):
                continue
            left[number] -= 1
            if left[number] < 0:
                protected.add(pod.uid)
    return protected


def _is_error(text: str) -> bool:
    return text.startswith(_EXPECTED)


async def _ask_extenders(
    table: NodeTable,
    facts: PodFacts,
    candidates: dict[str, NodeVictims],
    extenders: Sequence[Extender],
) -> dict[str, NodeVictims]:
    """Let every interested extender with a preemptVerb narrow the candidates, one by one.

    Raises: ExtenderError, also for an answer about unknown nodes or pods, or without victims.
    """
    for extender in extenders:
        if not extender.config.preempt_verb or not extender.is_interested(facts):
            continue
        try:
            chosen = await extender.preempt(facts, candidates)
            named = {
                node: NodeVictims(_resolve(table, extender, node, uids), violations)
                for node, (uids, violations) in chosen.items()
            }
        except ExtenderError:
            if extender.config.ignorable:
                continue
            raise
        for node in [node for node, victims in named.items() if not victims.pods]:
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


def _chosen(candidates: Mapping[str, NodeVictims]) -> str:
    """Fewest violations, least important highest victim, sum of priorities, fewest victims.

    Then the node whose most important victims have run for the shortest time.
    """

    def cost(node: str) -> tuple[int, ...]:
        pods = candidates[node].pods
        total = sum(pod.priority + 2**31 for pod in pods)
        return candidates[node].pdb_violations, pods[0].priority, total, len(pods)

    def began(node: str) -> str:
        pods = candidates[node].pods
        return min(pod.started for pod in pods if pod.priority == pods[0].priority)

    least = min(map(cost, candidates))
    return max((node for node in candidates if cost(node) == least), key=began)


def _sentence(all_nodes: int, reasons: dict[str, tuple[str, ...]]) -> str:
    counts = Counter(reason for each in reasons.values() for reason in each)
    if len(reasons) < all_nodes:
        counts[_NOT_HELPFUL] += all_nodes - len(reasons)
    parts = ", ".join(sorted(f"{count} {reason}" for reason, count in counts.items()))
    return f"0/{all_nodes} nodes are available: {parts}."
