"""The inputs of an engine: the only calls that may change it.

    Engine      takes them
    Recorder    writes them down and passes them on to the engine behind it (journal/record.py)

Code that calls these takes an `Inputs`; code that reads the state takes the `Engine`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from app.dialects.spec import GangKey
from app.kube.core.objects import PodRecord
from app.kube.watch.events import Event
from app.state.effects import (
    BindOutcome,
    Effect,
    EvictOutcome,
    PlaceAnswer,
    RoomAnswer,
    UngateOutcome,
)
from app.state.filter_result import Candidates, FilterAnswer, Victims


class Inputs(Protocol):
    """Every method is one atomic step; `now` is monotonic seconds and never goes back."""

    def apply(self, event: Event, now: float) -> list[Effect]: ...

    def filter(
        self, pod: PodRecord, candidates: Candidates, now: float
    ) -> tuple[FilterAnswer, list[Effect]]: ...

    def admit(
        self, pod: PodRecord, namespace: str, now: float
    ) -> tuple[tuple[str, ...] | None, list[Effect]]: ...

    def prioritize(self, pod: PodRecord, candidates: Candidates, now: float) -> list[int]: ...

    def preempt(
        self, pod: PodRecord, offered: Mapping[str, Victims], now: float
    ) -> tuple[Mapping[str, Victims], list[Effect]]: ...

    def bind_arrived(
        self, namespace: str, name: str, uid: str, node: str, now: float
    ) -> list[Effect]: ...

    def bind_finished(self, uid: str, outcome: BindOutcome, now: float) -> list[Effect]: ...

    def ungate_finished(self, uid: str, outcome: UngateOutcome, now: float) -> list[Effect]: ...

    def write_lost(self, gang: GangKey, what: str, uid: str, now: float) -> list[Effect]: ...

    def nominating_forbidden(self, namespace: str, seconds: float, now: float) -> list[Effect]: ...

    def room_found(
        self, gang: GangKey, answer: RoomAnswer | None, seconds: float, now: float
    ) -> list[Effect]: ...

    def place_found(
        self, gang: GangKey, answer: PlaceAnswer | None, seconds: float, now: float
    ) -> list[Effect]: ...

    def eviction_tried(self, uid: str, outcome: EvictOutcome, now: float) -> list[Effect]: ...

    def eviction_finished(self, uid: str, outcome: EvictOutcome, now: float) -> list[Effect]: ...

    def lead(self, is_leading: bool, now: float) -> list[Effect]: ...

    def tick(self, now: float) -> list[Effect]: ...

    def heal(self, now: float) -> list[Effect]: ...

    def drain(self, now: float) -> list[Effect]: ...
