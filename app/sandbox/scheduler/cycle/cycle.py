"""One pod's way to a node: the algorithm of a scheduling cycle, extenders included.

    PreFilter ─▶ [nominated node alone] ─▶ Filter (a sample) ─▶ /filter ─┬─ none ─▶ /preempt
                                                                        ├─ one ──▶ that node
                                                                        └─ more ─▶ /prioritize

Nothing is written here: the answer is a node's name or a SchedulingFailure.
Source: schedule_one.go of kubernetes 1.36, function by function.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from random import Random

import numpy as np

from app.sandbox.apiserver.storage.kinds import Object
from app.sandbox.scheduler.cycle.claims import IsThere, absent_claims
from app.sandbox.scheduler.cycle.diagnosis import EXTENDER, Diagnosis, SchedulingFailure
from app.sandbox.scheduler.cycle.extender import Extender, ExtenderError
from app.sandbox.scheduler.cycle.filters import Verdict, filter_nodes, nodes_to_find
from app.sandbox.scheduler.cycle.preemption import CANDIDATE_PERCENT, preempt
from app.sandbox.scheduler.cycle.scores import in_tree_scores
from app.sandbox.scheduler.facts.node_match import pinned_names
from app.sandbox.scheduler.facts.node_table import Columns, NodeTable
from app.sandbox.scheduler.facts.pod_facts import PodFacts

NO_NODES = "no nodes available to schedule pods"


class Cycle:
    """The algorithm over one table; keeps only where the next sample starts."""

    def __init__(
        self,
        table: NodeTable,
        extenders: Sequence[Extender],
        *,
        percentages: Mapping[str, int],
        rng: Random,
        budgets: Callable[[], Sequence[Object]] = list,
        candidate_percentages: Mapping[str, int] | None = None,
        has_claim: IsThere = lambda _kind, _key: True,
    ) -> None:
        self._table = table
        # Non-ignorable extenders first, each group in the order of the configuration.
        self._extenders = sorted(extenders, key=lambda each: each.config.ignorable)
        self._percentages = percentages
        self._rng = rng
        self._budgets = budgets
        self._candidate_percentages = candidate_percentages or {}
        self._has_claim = has_claim
        self._next_start = 0

    async def find_node(self, facts: PodFacts, nominated: Iterable[PodFacts]) -> str:
        """The node this pod goes to.

        nominated: pods that wait for their nominated node; the important ones hold it.
        Raises: SchedulingFailure.
        """
        table = self._table
        if not len(table):
            raise SchedulingFailure(NO_NODES, is_rejection=True)
        rivals = [
            pod for pod in nominated if pod.uid != facts.uid and pod.priority >= facts.priority
        ]
        diagnosis = Diagnosis(len(table))
        absent = absent_claims(facts.body, self._has_claim)
        if absent:
            diagnosis.rejectors.update(absent)
            why = "; ".join(absent.values())
            raise await self._no_node(facts, rivals, diagnosis, pre_filter=why)
        pinned = pinned_names(facts)
        if pinned is not None:
            diagnosis.rejectors.add("NodeAffinity")
            if not pinned:
                text = "pod affinity terms conflict"
                raise await self._no_node(facts, rivals, diagnosis, pre_filter=text)
        feasible: list[str] = []
        if facts.nominated_node:
            feasible = await self._probe_nominated(facts, rivals, diagnosis)
        if not feasible:
            feasible = await self._feasible(facts, rivals, diagnosis, pinned)
        if not feasible:
            raise await self._no_node(facts, rivals, diagnosis)
        return feasible[0] if len(feasible) == 1 else await self._best(facts, feasible)

    async def _probe_nominated(
        self, facts: PodFacts, rivals: list[PodFacts], diagnosis: Diagnosis
    ) -> list[str]:
        """The nominated node alone, if the pod fits there; else nothing."""
        column = self._table.column_of.get(facts.nominated_node)
        if column is None:
            return []
        outcome = filter_nodes(self._table, facts, np.array([column], np.intp), 1, rivals)
        diagnosis.add_outcome(outcome)
        try:
            return await self._ask_filters(facts, outcome.feasible_names(), diagnosis)
        except SchedulingFailure:
            return []

    async def _feasible(
        self,
        facts: PodFacts,
        rivals: list[PodFacts],
        diagnosis: Diagnosis,
        pinned: frozenset[str] | None,
    ) -> list[str]:
        table = self._table
        if pinned is None:
            candidates: Columns = np.arange(len(table), dtype=np.intp)
        else:
            found = sorted(table.column_of[name] for name in pinned & table.column_of.keys())
            candidates = np.array(found, np.intp)
            diagnosis.absent = "node(s) didn't satisfy plugin(s) [NodeAffinity]"
        if candidates.size:
            candidates = np.roll(candidates, -(self._next_start % candidates.size))
        wanted = nodes_to_find(self._percentages[facts.scheduler], candidates.size)
        outcome = filter_nodes(table, facts, candidates, wanted, rivals)
        diagnosis.add_outcome(outcome)
        feasible = outcome.feasible_names()
        judged = len(feasible) + diagnosis.nodes_judged
        self._next_start = (self._next_start + judged) % len(table)
        passed = await self._ask_filters(facts, feasible, diagnosis)
        if len(passed) != len(feasible):
            diagnosis.rejectors.add(EXTENDER)
        return passed

    async def _ask_filters(
        self, facts: PodFacts, names: list[str], diagnosis: Diagnosis
    ) -> list[str]:
        """Send the feasible nodes through every interested extender, one after the other.

        The names go out in no particular order, as they come from 16 workers upstream.
        Raises: SchedulingFailure (an error, not a rejection).
        """
        self._rng.shuffle(names)
        # As of now: nodes may be added and deleted while an extender is called.
        nodes = {name: self._table.nodes[self._table.column_of[name]] for name in names}
        for extender in self._extenders:
            if not names:
                break
            if not extender.is_interested(facts):
                continue
            try:
                result = await extender.filter(facts, [nodes[name] for name in names])
            except ExtenderError as error:
                if extender.config.ignorable:
                    continue
                raise SchedulingFailure(str(error)) from error
            for node, reason in result.unresolvable.items():
                diagnosis.set(node, Verdict((reason,), True, EXTENDER))
            for node, reason in result.failed.items():
                if node not in result.unresolvable:
                    diagnosis.set(node, Verdict((reason,), False, EXTENDER))
            names = [name for name in result.nodes if name in nodes]
        return names

    async def _best(self, facts: PodFacts, names: list[str]) -> str:
        """The node with the highest total score; ties are broken at random."""
        column_of = self._table.column_of
        names = [name for name in names if name in column_of] or names[:1]
        columns = np.array([column_of[name] for name in names if name in column_of], np.intp)
        if not columns.size:
            return names[0]  # all were deleted while the extender was called; the binding will fail
        totals: list[int] = in_tree_scores(self._table, facts, columns).tolist()
        nodes = [self._table.nodes[column] for column in columns.tolist()]
        asked = [each for each in self._extenders if each.is_interested(facts)]
        answers: list[dict[str, int] | BaseException] = await asyncio.gather(
            *(each.prioritize(facts, nodes) for each in asked), return_exceptions=True
        )
        for answer in answers:
            if isinstance(answer, dict):  # the scores of an extender that fails are left out
                totals = [
                    total + answer.get(name, 0) for total, name in zip(totals, names, strict=True)
                ]
            elif not isinstance(answer, ExtenderError):
                raise answer
        chances = [self._rng.random() for _ in names]
        ranked: list[tuple[int, float, str]] = list(zip(totals, chances, names, strict=True))
        return max(ranked)[2]

    async def _no_node(
        self,
        facts: PodFacts,
        rivals: list[PodFacts],
        diagnosis: Diagnosis,
        *,
        pre_filter: str = "",
    ) -> SchedulingFailure:
        """The failure to raise, after the PostFilter step (preemption)."""
        attempt = await preempt(
            self._table,
            facts,
            diagnosis,
            self._extenders,
            rivals=rivals,
            budgets=self._budgets(),
            percentage=self._candidate_percentages.get(facts.scheduler, CANDIDATE_PERCENT),
        )
        if pre_filter:
            text = f"0/{diagnosis.all_nodes} nodes are available: {pre_filter}. {attempt.message}"
        else:
            text = diagnosis.sentence(attempt.message)
        return SchedulingFailure(
            text.rstrip(),
            rejectors=diagnosis.rejectors,
            is_rejection=True,
            clears_nomination=attempt.clears_nomination,
            nominates=attempt.node,
            victims=attempt.victims,
        )
