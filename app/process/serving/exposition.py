"""What /metrics answers: series that follow the engine are brought up to date when they are asked.

Everything here is read in one turn of the loop: benchmarks/scrape.py says what that costs.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from app.errors import SettingsError
from app.explain.gangs import reason_of
from app.explain.topology.slots import slots_of
from app.explain.topology.usage import NoSuch, Wanted, wanted_of
from app.metrics import Metrics
from app.settings import Settings
from app.state.engine import Engine
from app.state.gang.gang import Phase
from app.state.gang.reasons import Reason

_WAITING = (Phase.GATHERING, Phase.WAITING, Phase.REPAIRING)
_ELSEWHERE = (Reason.OTHER_SCHEDULER, Reason.NOT_LEADING, Reason.NOT_READY)
_PLACED = (Reason.AWAITING_SCHEDULER, Reason.STARTING, Reason.RUNNING, Reason.ENDED)
WAITS = tuple(reason for reason in Reason if reason not in (*_PLACED, *_ELSEWHERE))


def shapes_of(settings: Settings) -> tuple[Wanted, ...]:
    """The shapes whose room is shown. Raises: SettingsError."""
    found = []
    for name, text in settings.metric_shapes:
        try:
            found.append(Wanted(name, wanted_of(text).request))
        except NoSuch as error:
            problem = str(error).removeprefix(f"free_for: {text}: ")
            raise SettingsError(f"metric_shapes: {name}:{text}: {problem}") from error
    return tuple(found)


@dataclass(frozen=True, slots=True)
class Exposition:
    """The text format of all series, as they are now."""

    engine: Engine
    metrics: Metrics
    shapes: Sequence[Wanted] = ()
    clock: Callable[[], float] = time.monotonic

    def __call__(self) -> bytes:
        now = self.clock()
        self._show_gangs(now)
        self._show_held()
        self._show_slots()
        needs = self.engine.marks.needs(now)
        self.metrics.show_needs(
            needs.gangs,
            needs.pods,
            needs.resources,
            needs.oldest_seconds,
            offered=self.engine.books.axis,
        )
        return self.metrics.exposition()

    def _show_gangs(self, now: float) -> None:
        self.metrics.show_gangs(self.engine.gangs_by_phase())
        gangs = self.engine.gangs.by_key.values()
        waits = Counter(reason_of(gang, now) for gang in gangs if gang.phase in _WAITING)
        self.metrics.show_waiting({reason.value: waits[reason] for reason in WAITS})

    def _show_held(self) -> None:
        engine, metrics = self.engine, self.metrics
        metrics.absent_pods.set(len(engine.absent_pods))
        metrics.absent_share.set(engine.absent_pods.fullest())
        metrics.earmarked_nodes.set(len(engine.starvation.nodes()))
        metrics.new_nodes_kept.set(len(engine.new_nodes.nodes()))
        metrics.show_room(engine.room_plans.results, engine.room_plans.victims.evictions)
        metrics.show_given_back(engine.giving_back.given)

    def _show_slots(self) -> None:
        for slots in slots_of(self.engine, self.shapes):
            levels = {each.level: (each.most_free, each.fragmentation) for each in slots.levels}
            self.metrics.show_slots(slots.shape, slots.free, slots.reserved, levels)
