"""Every input of one engine written down as a line of JSON, for `replay`.

    input ──line "in"──▶ write            before the engine gets it: an input that makes it hang
      └──▶ engine ──line "out"──▶ write   or crash is in the journal too

There is no I/O here: bytes go where `write` takes them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

import msgspec

from app.dialects.spec import GangKey
from app.kube.core.objects import PodRecord
from app.kube.watch.events import Event
from app.state.effects import (
    BindFailed,
    BindOutcome,
    Effect,
    EvictOutcome,
    PlaceAnswer,
    RoomAnswer,
    UngateFailed,
    UngateOutcome,
)
from app.state.filter_result import Candidates, FilterAnswer, Victims
from app.state.inputs import Inputs
from app.state.journal.lines import ENCODER, In, Out, first_line, heard, out_of
from app.state.settings import EngineSettings

_T = TypeVar("_T")


class Recorder:
    """`Inputs` that writes each input and a digest of its outcome, and passes it to an engine.

    inner: a fresh engine of these settings; earlier inputs would be in no journal.
    write: takes one line with its end. It must not raise, since a full disk is no reason to stop
        scheduling; after a line that it could not keep, it keeps no more.
    """

    def __init__(
        self, inner: Inputs, settings: EngineSettings, write: Callable[[bytes], None]
    ) -> None:
        self._inner = inner
        self._write = write
        self._lines_written = 0
        self._names = b""  # the last that were written in full
        self._names_line = 0
        self._write_line(first_line(settings))

    def _write_line(self, line: bytes) -> None:
        self._lines_written += 1
        self._write(line + b"\n")

    def _recorded(
        self, now: float, call: str, args: Sequence[object], give: Callable[[], _T]
    ) -> _T:
        line = In(now, call, msgspec.Raw(ENCODER.encode(args)))
        self._write_line(ENCODER.encode(line))
        try:
            given = give()
        except Exception as error:
            self._write_line(ENCODER.encode(Out(raised=type(error).__name__)))
            raise
        self._write_line(ENCODER.encode(out_of(given)))
        return given

    def _offered(self, candidates: Candidates) -> msgspec.Raw:
        names = ENCODER.encode(candidates.names())
        if names == self._names:
            return msgspec.Raw(b"%d" % self._names_line)
        self._names, self._names_line = names, self._lines_written + 1
        return msgspec.Raw(names)

    def apply(self, event: Event, now: float) -> list[Effect]:
        args = (heard(event),)
        return self._recorded(now, "apply", args, lambda: self._inner.apply(event, now))

    def filter(
        self, pod: PodRecord, candidates: Candidates, now: float
    ) -> tuple[FilterAnswer, list[Effect]]:
        args = (pod, self._offered(candidates))
        give = self._inner.filter
        return self._recorded(now, "filter", args, lambda: give(pod, candidates, now))

    def admit(
        self, pod: PodRecord, namespace: str, now: float
    ) -> tuple[tuple[str, ...] | None, list[Effect]]:
        args, give = (pod, namespace), self._inner.admit
        return self._recorded(now, "admit", args, lambda: give(*args, now))

    def prioritize(self, pod: PodRecord, candidates: Candidates, now: float) -> list[int]:
        args = (pod, self._offered(candidates))
        give = self._inner.prioritize
        return self._recorded(now, "prioritize", args, lambda: give(pod, candidates, now))

    def preempt(
        self, pod: PodRecord, offered: Mapping[str, Victims], now: float
    ) -> tuple[Mapping[str, Victims], list[Effect]]:
        args = (pod, offered)
        give = self._inner.preempt
        return self._recorded(now, "preempt", args, lambda: give(pod, offered, now))

    def bind_arrived(
        self, namespace: str, name: str, uid: str, node: str, now: float
    ) -> list[Effect]:
        args = (namespace, name, uid, node)
        give = self._inner.bind_arrived
        return self._recorded(now, "bind_arrived", args, lambda: give(*args, now))

    def bind_finished(self, uid: str, outcome: BindOutcome, now: float) -> list[Effect]:
        args = (uid, outcome if isinstance(outcome, BindFailed) else None)
        give = self._inner.bind_finished
        return self._recorded(now, "bind_finished", args, lambda: give(uid, outcome, now))

    def ungate_finished(self, uid: str, outcome: UngateOutcome, now: float) -> list[Effect]:
        args = (uid, outcome if isinstance(outcome, UngateFailed) else None)
        give = self._inner.ungate_finished
        return self._recorded(now, "ungate_finished", args, lambda: give(uid, outcome, now))

    def write_lost(self, gang: GangKey, what: str, uid: str, now: float) -> list[Effect]:
        args = (gang, what, uid)
        return self._recorded(now, "write_lost", args, lambda: self._inner.write_lost(*args, now))

    def nominating_forbidden(self, namespace: str, seconds: float, now: float) -> list[Effect]:
        args, give = (namespace, seconds), self._inner.nominating_forbidden
        return self._recorded(now, "nominating_forbidden", args, lambda: give(*args, now))

    def room_found(
        self, gang: GangKey, answer: RoomAnswer | None, seconds: float, now: float
    ) -> list[Effect]:
        args = (gang, answer, seconds)
        return self._recorded(now, "room_found", args, lambda: self._inner.room_found(*args, now))

    def place_found(
        self, gang: GangKey, answer: PlaceAnswer | None, seconds: float, now: float
    ) -> list[Effect]:
        args, give = (gang, answer, seconds), self._inner.place_found
        return self._recorded(now, "place_found", args, lambda: give(*args, now))

    def eviction_tried(self, uid: str, outcome: EvictOutcome, now: float) -> list[Effect]:
        args, give = (uid, outcome), self._inner.eviction_tried
        return self._recorded(now, "eviction_tried", args, lambda: give(*args, now))

    def eviction_finished(self, uid: str, outcome: EvictOutcome, now: float) -> list[Effect]:
        args, give = (uid, outcome), self._inner.eviction_finished
        return self._recorded(now, "eviction_finished", args, lambda: give(*args, now))

    def lead(self, is_leading: bool, now: float) -> list[Effect]:
        args, give = (is_leading,), self._inner.lead
        return self._recorded(now, "lead", args, lambda: give(is_leading, now))

    def tick(self, now: float) -> list[Effect]:
        return self._recorded(now, "tick", (), lambda: self._inner.tick(now))

    def heal(self, now: float) -> list[Effect]:
        return self._recorded(now, "heal", (), lambda: self._inner.heal(now))

    def drain(self, now: float) -> list[Effect]:
        return self._recorded(now, "drain", (), lambda: self._inner.drain(now))
