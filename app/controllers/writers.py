"""All writing controllers of one Corral, wired to its client, its settings and its metrics.

Effects ─▶ Dispatcher ─┬─ Bind ───────────────────────────────▶ bind ──┐
                       ├─ RejectBind ──▶ the desk where it is held     ├─ outcome ─▶ Engine
                       ├─ ReadAgain ───▶ the watch of that kind        │
                       ├─ Ungate ────▶ ┐                    ┌▶ ungate ─┘
                       └─ Requeue … ─▶ ┴ only while leading ┴▶ wake, annotate, evict, report, status
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Iterable, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass
from typing import Any, TypeVar

from app.controllers.dispatch import Dispatcher
from app.controllers.objects.keep import KeepController
from app.controllers.objects.prerequisites import PrerequisiteController
from app.controllers.objects.protect import ProtectController
from app.controllers.objects.provisioning import ProvisioningController
from app.controllers.objects.status import StatusController
from app.controllers.pods.annotate import AnnotateController
from app.controllers.pods.bind import BindController
from app.controllers.pods.evict import EvictController, Removal, how_removed
from app.controllers.pods.mark import MarkController
from app.controllers.pods.ungate import GateTimes, UngateController
from app.controllers.pods.wake import WakeController
from app.controllers.questions import Question, places, rooms
from app.controllers.report import ReportController, Unsaid
from app.dialects.spec import GangKey
from app.dialects.written import Prerequisite
from app.errors import NotLeading
from app.kube.client.writes import Client
from app.metrics import Metrics
from app.settings import Settings
from app.state.effects import (
    DELETE,
    STATUS,
    Bind,
    BindOutcome,
    Bound,
    Delete,
    Effect,
    EmitEvent,
    Evict,
    EvictOutcome,
    PlaceAnswer,
    ReadAgain,
    RejectBind,
    RoomAnswer,
    Suspend,
    TryEviction,
    Ungate,
    Ungated,
    UngateOutcome,
)
from app.state.objects.kept_objects import KeptObjects

TRIES_PER_EVICTION = 10  # so many times faster it is asked whether a pod would be evicted
TURNED_AWAY = "PodNotInGang"  # the reason of the one report about a pod that is no member

_Effect = TypeVar("_Effect", bound=Effect)


@dataclass(frozen=True, slots=True)
class Receivers:
    """Receives outcomes. These are given by a controller, never from inside `feed`.

    `refuse` and `read_again` receive effects that are not writes; `room_question`,
    `place_question`, `is_eviction_wanted` and `is_deletion_wanted` are asked.
    """

    bind_finished: Callable[[Bind, BindOutcome], None]
    ungate_finished: Callable[[Ungate, UngateOutcome], None]
    write_lost: Callable[[GangKey, str, str], None]
    nominating_forbidden: Callable[[str, float], None]
    refuse: Callable[[RejectBind], None]
    read_again: Callable[[ReadAgain], None]
    room_question: Callable[[GangKey], Iterable[Question[RoomAnswer] | None]]
    room_found: Callable[[GangKey, RoomAnswer | None, float], None]
    place_question: Callable[[GangKey], Question[PlaceAnswer] | None]
    place_found: Callable[[GangKey, PlaceAnswer | None, float], None]
    eviction_finished: Callable[[Evict | TryEviction | Suspend, EvictOutcome], None]
    is_eviction_wanted: Callable[[Evict | Suspend], bool]
    is_deletion_wanted: Callable[[Delete], bool]


class Writers:
    """Carries out effects; what `is_leading` does not allow is left to the leader's own Corral."""

    def __init__(
        self,
        client: Client,
        settings: Settings,
        metrics: Metrics,
        receivers: Receivers,
        *,
        is_leading: Callable[[], bool],
        prerequisites: Sequence[Prerequisite] = (),
        kept: Sequence[KeptObjects] = (),
    ) -> None:
        """`prerequisites`: objects that are made where they are absent.

        `kept`: objects that are kept as the labels of nodes are.
        """
        self._metrics = metrics
        self._receivers = receivers
        self._is_leading = is_leading
        self._gate_times = GateTimes()
        self._bind_seconds = settings.bind_seconds
        self._binds = BindController(
            client,
            self._bind_finished,
            concurrency=settings.bind_concurrency,
            bind_seconds=settings.bind_seconds,
        )
        self._ungates = UngateController(
            client, self._ungate_finished, concurrency=settings.ungate_concurrency
        )
        self._evicts = EvictController(
            client,
            self._removed,
            is_wanted=self._is_removal_wanted,
            per_second=settings.evict_per_second,
        )
        self._trials = EvictController(
            client,
            self._tried,
            per_second=settings.evict_per_second * TRIES_PER_EVICTION,
            most_tries=1,
        )
        self._marks = MarkController(client, self._asked)
        self._protects = ProtectController(client, self._asked)
        self._requests = ProvisioningController(client, self._asked)
        self._wakes = WakeController(
            client,
            lambda outcome: metrics.wakes[outcome].inc(),
            receivers.nominating_forbidden,
            per_second=settings.wake_per_second,
            burst=settings.wake_burst,
        )
        self._notes = AnnotateController(client, lambda outcome: metrics.notes[outcome].inc())
        self._reports = ReportController(
            client,
            lambda outcome: metrics.reports[outcome].inc(),
            self._report_lost,
            per_minute=settings.report_per_minute,
        )
        self._unsaid = Unsaid()
        self._statuses = StatusController(
            client,
            lambda outcome: metrics.statuses[outcome].inc(),
            lambda status: receivers.write_lost(status.gang, STATUS, status.uid),
        )
        self._prerequisites = PrerequisiteController(client, prerequisites, is_leading=is_leading)
        self.keepers = [self._keeper(client, each) for each in kept]
        self._rooms = rooms(receivers.room_question, receivers.room_found, self._room_answered)
        self._places = places(receivers.place_question, receivers.place_found, self._place_answered)
        self._dispatcher = self._dispatching()

    def _dispatching(self) -> Dispatcher:
        """Who takes the effects of each kind."""
        return Dispatcher(
            wake=self._if_leading(self._wakes.take),
            annotate=self._if_leading(self._notes.take),
            ungate=self._ungate,
            mark=self._if_leading(self._marks.take),
            protect=self._if_leading(self._protects.take),
            ask_nodes=self._if_leading(self._requests.take),
            remove=self._if_leading(self._evicts.take),
            bind=self._binds.take,
            refuse=self._receivers.refuse,
            report=self._report,
            status=self._if_leading(self._statuses.take),
            read_again=self._receivers.read_again,
            seek_room=self._if_leading(self._rooms.take),
            seek_place=self._places.take,  # a search is no write, and who may lead next has plans
            try_eviction=self._if_leading(self._trials.take),
        )

    def feed(self, effects: Iterable[Effect]) -> None:
        """Have effects carried out."""
        self._dispatcher.feed(effects)

    def lead(self) -> None:
        """Say what the Corral that led before may not have come to say."""
        self._unsaid.lead()

    def works(self) -> list[tuple[str, Coroutine[Any, Any, None]]]:
        """Everything that runs until it is cancelled."""
        return [
            ("bind", self._binds.run()),
            ("ungate", self._ungates.run()),
            ("mark", self._marks.run()),
            ("protect", self._protects.run()),
            ("provisioning", self._requests.run()),
            ("evict", self._evicts.run()),
            ("try_eviction", self._trials.run()),
            ("wake", self._wakes.run()),
            ("annotate", self._notes.run()),
            ("report", self._reports.run()),
            ("unsaid", self._say_unsaid()),
            ("status", self._statuses.run()),
            ("room", self._rooms.run()),
            ("place", self._places.run()),
            ("prerequisites", self._prerequisites.run()),
            *(("keep", each.run()) for each in self.keepers),
        ]

    def _keeper(self, client: Client, kept: KeptObjects) -> KeepController:
        metrics = self._metrics
        return KeepController(
            client,
            kept,
            lambda outcome: metrics.kept_objects[outcome].inc(),
            metrics.kept_notes.set,
            is_leading=self._is_leading,
        )

    async def finish(self) -> None:
        """Remove no gate any more; return once no patch and no binding is under way.

        After `bind_seconds` at the latest. The Corral that leads next reads which pods have been
        narrowed, and has to find them all.
        """
        with suppress(TimeoutError):
            async with asyncio.timeout(self._bind_seconds):
                await self._ungates.stop()
                await self._binds.wait_idle()

    def _if_leading(self, take: Callable[[_Effect], None]) -> Callable[[_Effect], None]:
        """Drop what the leader's own Corral says already; bindings only ever come from our own."""

        def taken(effect: _Effect) -> None:
            if self._is_leading():
                take(effect)

        return taken

    def _ungate(self, ungate: Ungate) -> None:
        if self._is_leading():
            self._gate_times.ungated(ungate.uid, time.monotonic())
            self._ungates.take(ungate)
        else:
            # Refused, not dropped, so that it comes again once we lead.
            self._ungates.refuse(ungate, NotLeading().message)

    def _report(self, report: EmitEvent) -> None:
        if not self._is_leading():
            self._unsaid.leave(report)
            return
        if report.reason == TURNED_AWAY:
            self._metrics.rejected_pods.inc()
        self._reports.take(report)

    def _report_lost(self, report: EmitEvent) -> None:
        self._receivers.write_lost(report.gang, report.reason, report.about.uid)

    async def _say_unsaid(self) -> None:
        async with aclosing(self._unsaid.ours()) as reports:
            async for report in reports:
                self._report_lost(report)  # as if it were: it is said again where it is still true

    def _bind_finished(self, bind: Bind, outcome: BindOutcome, seconds: float) -> None:
        self._metrics.binds[_how_bound(outcome)].inc()
        self._metrics.bind_seconds.observe(seconds)
        if isinstance(outcome, Bound):
            since_gate = self._gate_times.bound(bind.uid, time.monotonic())
            if since_gate is not None:
                self._metrics.gate_to_bound_seconds.observe(since_gate)
        self._receivers.bind_finished(bind, outcome)

    def _ungate_finished(self, ungate: Ungate, outcome: UngateOutcome) -> None:
        self._metrics.ungated[_how_ungated(outcome)].inc()
        self._receivers.ungate_finished(ungate, outcome)

    def _asked(self, how: str, outcome: str) -> None:
        self._metrics.asks[how, outcome].inc()

    def _room_answered(self, outcome: str, seconds: float) -> None:
        self._metrics.room_answers[outcome].inc()
        if outcome in ("room", "none"):
            self._metrics.room_seconds.observe(seconds)

    def _place_answered(self, outcome: str, seconds: float) -> None:
        self._metrics.place_answers[outcome].inc()
        if outcome in ("place", "none"):
            self._metrics.place_seconds.observe(seconds)

    def _is_removal_wanted(self, removal: Evict | Delete | Suspend) -> bool:
        if isinstance(removal, Delete):
            return self._receivers.is_deletion_wanted(removal)
        return self._receivers.is_eviction_wanted(removal)

    def _removed(self, removal: Removal, outcome: EvictOutcome) -> None:
        self._metrics.removals[how_removed(removal), outcome].inc()
        # Never from inside `feed`, where one that is too many is dropped.
        soon = asyncio.get_running_loop().call_soon
        if isinstance(removal, Delete):
            if outcome in ("dropped", "failed"):
                soon(self._receivers.write_lost, removal.gang, DELETE, removal.uid)
        else:
            soon(self._receivers.eviction_finished, removal, outcome)

    def _tried(self, removal: Removal, outcome: EvictOutcome) -> None:
        assert isinstance(removal, TryEviction)
        soon = asyncio.get_running_loop().call_soon
        soon(self._receivers.eviction_finished, removal, outcome)


def _how_bound(outcome: BindOutcome) -> str:
    if isinstance(outcome, Bound):
        return "bound"
    return "gone" if outcome.is_gone else "failed"


def _how_ungated(outcome: UngateOutcome) -> str:
    if isinstance(outcome, Ungated):
        return "ungated"
    if outcome.is_gone:
        return "gone"
    return "forbidden" if outcome.is_forbidden else "failed"
