"""L3: whoever has waited too long is passed by nobody who came later.

    a gang starves           ─▶ earmark ─▶ no gang behind it in the queue gets a place there,
    nodes come that it asked for ─┘         and no ordinary pod that asks for what it needs

That the earmark brings the gang to its place, and when, is judged by `afterwards.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from app.dialects.spec import GangKey
from app.kube.core.objects import PodRecord
from app.state.fairness.earmark import Earmark
from app.state.filter_result import FilterAnswer, Passed
from app.state.gang.gang import Gang
from tests.records import GPU
from tests.sim.faults import Hits
from tests.sim.life import Life
from tests.sim.violation import require

Marks = dict[tuple[str, GangKey], Earmark]
"""By what nodes are kept for, and the gang."""


@dataclass(slots=True)
class Bypass:
    """Looks for places given in front of a gang that has an earmark; one for all Corrals."""

    hits: Hits
    _marks: Marks = field(default_factory=dict)
    _known: dict[GangKey, Earmark] = field(default_factory=dict)  # counted
    _held: dict[str, str] = field(default_factory=dict)

    def takes(self, life: Life) -> None:
        """Remember what is kept and what is held."""
        for key, mark in life.engine.starvation.of.items():
            if self._known.get(key) is not mark:
                self._known[key] = mark
                self.hits.hit("L3 earmarked")
        self._marks = _marks_of(life)
        if self._marks:
            held = life.engine.books.held
            self._held = {uid: booking.node for uid, booking in held.items()}

    def taken(self, life: Life) -> None:
        """Raises: Violation."""
        if not self._marks:
            return
        marks = _marks_of(life)
        lasting = {of: nodes for of, nodes in self._lasting(marks).items() if nodes}
        if not lasting:
            return
        engine = life.engine
        ended = [node for uid, node in self._held.items() if uid not in engine.books.held]
        for uid, booking in engine.books.held.items():
            key = engine.gangs.key_of.get(uid)
            is_handed_over = booking.node in ended
            if key is None or uid in self._held or is_handed_over:
                continue
            for (_, of), nodes in lasting.items():
                first = engine.gangs.by_key.get(of)
                later = engine.gangs.by_key[key]
                if first is not None and booking.node in nodes:
                    require(
                        not _comes_after(later, first),
                        f"L3: {later.key} gets {booking.node}, which is kept for {first.key}",
                    )

    def _lasting(self, marks: Marks) -> dict[tuple[str, GangKey], frozenset[str]]:
        """The nodes that are kept now as they were before, by what for and for which gang."""
        return {of: mark.nodes & marks[of].nodes for of, mark in self._marks.items() if of in marks}

    def answered(
        self, life: Life, pod: PodRecord, names: Sequence[str], answer: FilterAnswer
    ) -> None:
        """Raises: Violation."""
        if not isinstance(answer, Passed) or not dict(pod.request).get(GPU):
            return
        for (_, key), mark in _marks_of(life).items():
            gang = life.engine.gangs.by_key.get(key)
            if gang is None or pod.priority > gang.priority or not _asks_for_devices(gang):
                continue
            passed = [
                name
                for name in names
                if name in mark.nodes and name not in answer.without
                if name not in _freed_for(life, pod)
            ]
            require(not passed, f"L3: {pod.name} may have {passed}, which are kept for {key}")


def _marks_of(life: Life) -> Marks:
    engine = life.engine
    each = {"starves": engine.starvation.of, "asked": engine.new_nodes.of}
    return {(why, key): mark for why, of in each.items() for key, mark in of.items()}


def _freed_for(life: Life, pod: PodRecord) -> set[str]:
    """The nodes where others have ended for this pod."""
    granted, nominated = life.engine.grants.of.get(pod.uid), life.engine.nominations.of(pod.uid)
    return {each.node for each in (granted, nominated) if each is not None}


def _comes_after(later: Gang, first: Gang) -> bool:
    if later is first or later.has_started or first.has_started:
        return False
    if later.priority != first.priority:
        return later.priority < first.priority
    return later.complete_at > first.complete_at


def _asks_for_devices(gang: Gang) -> bool:
    return any(dict(member.pod.request).get(GPU) for member in gang.membership.unbound)
