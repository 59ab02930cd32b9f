"""Disruption budgets: people make and change them, their controller counts, evictions take of it.

    pods of some applications ◀─select─ budget: at most so many of them may be missing
    controller: allowed = those that run − those that have to; late, and anew after each change

Each allows as many evictions as its status says: the API server counts them there at once.
Source: kubernetes v1.36 pkg/controller/disruption, pkg/registry/core/pod/storage/eviction.go.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Any

from app.dialects.budgets.dialect import KIND, BudgetRecord
from tests.sim.api import ApiServer, selects
from tests.sim.clock import Clock, History
from tests.sim.faults import Hits

APP = "app"  # label of the pods
APPS = ("a", "b", "c", "d", "e")
MOST_BUDGETS = 4
COUNTS_EVERY = (0.3, 2.0)  # seconds
CHANGES_EVERY = 8.0  # seconds, on average
TIGHT_SECONDS = (1.0, 10.0)


@dataclass(slots=True)
class DisruptionBudgets:
    """The budgets of one world, and their controller."""

    _clock: Clock
    _api: ApiServer
    _rng: Random
    _history: History
    _hits: Hits
    is_healed: bool = False
    _missing: dict[str, int] = field(default_factory=dict)  # by budget: pods that may be missing
    _most: dict[str, int] = field(default_factory=dict)  # by budget: pods that ran at one time
    _names: int = 0

    def begin(self) -> None:
        """Make some, change them now and then, and keep their status."""
        for _ in range(self._rng.randint(1, 3)):
            self._create()
        self._plan_change()
        self._count()

    def _plan_change(self) -> None:
        def change() -> None:
            if not self.is_healed:
                self._change()
                self._plan_change()

        self._clock.after(self._rng.expovariate(1 / CHANGES_EVERY), change)

    def _change(self) -> None:
        names = sorted(self._missing)
        kind = self._rng.choice(("create", "change", "change", "delete"))
        if kind == "create" and len(names) < MOST_BUDGETS:
            self._create()
        elif names:
            self._hits.hit("F21 budget changed")
            name = self._rng.choice(names)
            if kind == "delete":
                del self._missing[name], self._most[name]
                self._api.remove(KIND, name)
            else:
                self._missing[name] = self._rng.choice((0, 1, 2, 2, 4, 8))
                self._tell(name)

    def tighten(self) -> None:
        """Let none of the pods be missing, for a while."""
        before = dict(self._missing)
        for name in sorted(before):
            self._hits.hit("F21 budget changed")
            self._missing[name] = 0
            self._tell(name)
        self._clock.after(self._rng.uniform(*TIGHT_SECONDS), lambda: self._loosen(before))

    def _loosen(self, before: Mapping[str, int]) -> None:
        self._missing.update((name, before[name]) for name in before if name in self._missing)

    def _create(self) -> None:
        self._names += 1
        name = f"budget-{self._names}"
        apps = tuple(sorted(self._rng.sample(APPS, self._rng.choice((1, 1, 2)))))
        self._missing[name] = self._rng.choice((0, 1, 2, 2, 4, 8))
        self._most[name] = 0
        self._history.say(f"create {name} of {apps}: {self._missing[name]} may be missing")
        record = BudgetRecord(
            kind=KIND,
            namespace="default",
            name=name,
            uid=self._api.new_uid(),
            version="",
            requirements=((APP, "In", apps),),
        )
        self._api.create(KIND, record)

    def _count(self) -> None:
        for name in sorted(self._missing):
            self._tell(name)
        self._clock.after(self._rng.uniform(*COUNTS_EVERY), self._count)

    def _tell(self, name: str) -> None:
        """Write how many may go now: as many as run beyond those that have to."""
        budgets: Mapping[str, Any] = self._api.objects[KIND]
        pods = [pod for pod in self._api.pods.values() if selects(budgets[name], pod)]
        there = sum(bool(pod.node) and not pod.is_finished for pod in pods)
        healthy = sum(pod.phase == "Running" and not pod.is_terminating for pod in pods)
        allowed = max(0, healthy - max(0, there - self._missing[name]))
        if budgets[name].allowed != allowed:
            self._api.change(KIND, name, allowed=allowed)
