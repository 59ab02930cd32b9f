"""An engine of its own, on the books as they are: what it plans is planned nowhere else.

    engine ──Copy.in_steps: dictionaries of records──▶ Copy ──engine(): a thread──▶ Engine

Records never change, so that only what refers to them is copied while the event loop waits. Gangs
are not: what they run and hold is in the books of the copy, and who they are in `standing`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from app.dialects.registry import Dialects
from app.dialects.spec import GangKey
from app.explain.asking import held_for
from app.kube.core.objects import Amounts, NodeRecord, ObjectRecord
from app.kube.core.turns import turn
from app.kube.watch.events import Kind, Listed
from app.state.cache.eligibility.node_refusals import Shaped
from app.state.engine import Engine
from app.state.fairness.run_times import Runs
from app.state.pods.nominations import Nomination
from app.state.preempt.standing import Crowd, Standing
from app.state.settings import EngineSettings
from app.state.turns.queue import Rank

_HELD_SECONDS = 3_600.0  # no pod comes for what is planned
_ALL_VISITS = 1_000_000_000  # of a tick: there is no other work


@dataclass(frozen=True, slots=True)
class Copy:
    """All that decides where pods may go, and who is there."""

    settings: EngineSettings
    dialects: Dialects
    resources: tuple[str, ...]
    """In the order of the books' rows."""
    nodes: Mapping[str, NodeRecord]
    objects: tuple[ObjectRecord, ...]
    standing: Standing
    lasting: Mapping[str, None]
    priority_of: Mapping[str, int]
    nominations: Mapping[str, Nomination]
    refusals: Mapping[tuple[str, Shaped], Mapping[str, float]]
    absent: Mapping[str, tuple[GangKey, Amounts]]
    awaited: Mapping[GangKey, int]
    earmarked: Mapping[GangKey, tuple[frozenset[str], Rank]]
    new_nodes: Mapping[GangKey, tuple[frozenset[str], Rank]]
    held_for: Mapping[str, GangKey]
    """By uid: of pods, and of pods to come, that a place is held for."""
    gangs: frozenset[GangKey]
    free_in: Mapping[GangKey, float]
    runs: Runs
    now: float

    @classmethod
    def of(cls, engine: Engine, now: float, today: float = math.inf) -> Copy:
        """The engine's books as they are. `today`: in seconds since 1970."""
        *_, found = cls.in_steps(engine, now, today)
        assert found is not None
        return found

    @classmethod
    def in_steps(cls, engine: Engine, now: float, today: float = math.inf) -> Iterator[Copy | None]:
        """The same, in steps between which the cluster may change; the last yields it.

        What would not be the same for all of it, the nodes and what is booked there, is copied in
        the last one.
        """
        spared = engine.settings.preempt_min_runtime_seconds
        crowd: Crowd | None = None
        for step in engine.making_room.crowd():
            crowd = step
            yield None
        objects = tuple(engine.objects.by_uid.values())
        yield None
        gangs = frozenset(engine.gangs.by_key)
        yield None
        lasting = dict(engine.books.lasting)
        yield None
        yield cls(
            engine.settings,
            engine.dialects,
            engine.books.axis.names,
            dict(engine.books.nodes),
            objects,
            engine.making_room.standing(today - spared if spared else math.inf, now, crowd),
            lasting,
            dict(engine.books.priority_of),
            dict(engine.nominations.counted),
            engine.refusals.remembered(),
            dict(engine.absent_pods.held),
            dict(engine.absent_pods.awaited),
            dict(engine.planner.earmarked),
            dict(engine.planner.new_nodes),
            held_for(engine),
            gangs,
            dict(engine.planner.free_in),
            engine.run_times.remembered(),
            now,
        )

    def engine(self, *, names_others: bool = True) -> Engine:
        """An engine on these books that knows no gang yet.

        `names_others`: who reads what it says may know of the gangs of every namespace.
        """
        alone = {
            "preempt": "off",
            "name_other_namespaces": names_others,
            "earmarks_per_namespace": 0,
            "visits_per_tick": _ALL_VISITS,
            "visits_per_search": _ALL_VISITS,
            "hold_seconds": _HELD_SECONDS,
        }
        engine = Engine(self.settings.model_copy(update=alone), dialects=self.dialects)
        for name in self.resources:
            engine.books.axis.row(name)
        by_kind: dict[Kind, list[ObjectRecord]] = {kind: [] for kind in self.settings.kinds}
        for record in self.objects:
            by_kind.setdefault(record.kind, []).append(record)
        for kind, records in by_kind.items():
            if kind not in ("Node", "Pod"):
                engine.apply(Listed(kind, tuple(records)), self.now)
        engine.apply(Listed("Pod", (), engine.kept_keys.labels.edition), self.now)
        engine.apply(Listed("Node", tuple(self.nodes.values())), self.now)
        self._book(engine)  # before there are trees: what is booked is added up with them, once
        engine.tick(self.now)
        return engine

    def _book(self, engine: Engine) -> None:
        books, standing = engine.books, self.standing
        for uid, booking in standing.bound.items():
            turn()
            books.bind(uid, booking.node, booking.request, lasts=uid in self.lasting)
        books.hold_all(
            (uid, booking.node, booking.request, self.priority_of.get(uid, 0))
            for uid, booking in standing.held.items()
        )
        engine.occupants.recall(standing.occupants, standing.names)
        for uid, nomination in self.nominations.items():
            engine.nominations.expect(uid, nomination)
        engine.refusals.recall(self.refusals)
        engine.absent_pods.count_others(self.absent, self.awaited)
        engine.planner.earmark(self.earmarked, self.free_in)
        engine.planner.new_nodes = dict(self.new_nodes)  # no gang here has asked for nodes
        engine.run_times.recall(self.runs)
