"""Who would go from a node, and from which one: kube-scheduler's dry run, and its choice.

    nodes ─▶ per node: all lower pods out, then back in, the protected and important ones first
          ─▶ one node: fewest that a budget protects, the least important pods, the youngest

Written apart from the sandbox's, by the same source: kubernetes v1.36
pkg/scheduler/plugins/defaultpreemption, framework/preemption pickOneNodeForPreemption.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from app.dialects.budgets.dialect import BudgetRecord
from app.kube.core.objects import PodRecord
from app.state.filter_result import Victims
from tests.sim.api import selects
from tests.sim.cache import Cache

BASE = 2**31  # added to each priority, so that more pods never weigh less


@dataclass(frozen=True, slots=True)
class DryRun:
    """For one pod. `started`: by uid; a pod that has not started is as one that starts now."""

    cache: Cache
    pod: PodRecord
    budgets: Sequence[BudgetRecord]
    started: Mapping[str, float]

    def victims(self, node: str) -> Victims | None:
        """As few pods as are enough, the most important first; None if that is of no use."""
        lower = [each for each in self.cache.on(node) if each.priority < self.pod.priority]
        lower.sort(key=self._importance)
        out = {each.uid: each for each in lower}
        if not lower or not self.cache.fits(self.pod, node, out):
            return None
        protected = self._protected(lower)
        for each in sorted(lower, key=lambda each: each.uid not in protected):
            rest = {uid: pod for uid, pod in out.items() if uid != each.uid}
            if self.cache.fits(self.pod, node, rest):
                out = rest
        return Victims(tuple(out), len(protected & out.keys())) if out else None

    def best(self, answer: Mapping[str, Victims]) -> str:
        """The node whose victims matter least; an extender that is not ready may leave several."""
        return min(answer, key=lambda node: self._cost(node, answer[node]))

    def _cost(self, node: str, victims: Victims) -> tuple[object, ...]:
        pods = [each for each in self.cache.on(node) if each.uid in victims.uids]
        ranks = [each.priority for each in pods]
        first = min(self._since(each) for each in pods if each.priority == max(ranks))
        total = sum(ranks) + len(ranks) * BASE
        return victims.pdb_violations, max(ranks), total, len(ranks), -first, node

    def _importance(self, pod: PodRecord) -> tuple[int, float, str]:
        return -pod.priority, self._since(pod), pod.name

    def _since(self, pod: PodRecord) -> float:
        return self.started.get(pod.uid, math.inf)

    def _protected(self, pods: Iterable[PodRecord]) -> set[str]:
        """The uids of those that a budget does not let go, beside those before them."""
        left = {budget.name: budget.allowed for budget in self.budgets}
        protected: set[str] = set()
        for pod in pods:
            for budget in self.budgets:
                if selects(budget, pod):
                    left[budget.name] -= 1
                    if left[budget.name] < 0:
                        protected.add(pod.uid)
        return protected
