"""From the Lease's change of hands until this Corral decides where gangs go.

    the Lease is ours
      └─▶ the one before knows it, and writes no more
            └─▶ the pods without a node are listed ◀──── not yet ────┐
                  └─▶ does the watch show as much of each of them? ──┘
                        └─▶ we lead

The watch may show what the Corral before has done last only after we have begun: a gang that is
planned meanwhile may get the domain that the pods of another one have just been narrowed to.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Collection, Sequence
from functools import partial

import msgspec
import structlog

from app.errors import CorralError
from app.kube.core import aside
from app.kube.core.turns import turn
from app.kube.decoding import wire
from app.kube.leading.lease import NeighbourLease
from app.kube.watch.pages import Pages, Reads
from app.settings import is_named
from app.state.engine import Engine

log = structlog.get_logger(__name__)

PODS = "/api/v1/pods"
LIST_SECONDS = 10.0  # for one page
MOST_LISTS = 20  # then we lead all the same: what differs is no matter of time any more
SHOWN_SECONDS = 1.0  # for the watch to show what a list has, before the next list
LOOK_SECONDS = 0.02  # between two looks


class _Metadata(wire.Wire):
    uid: str = ""


class _Spec(wire.Wire):
    scheduler_name: str = ""
    scheduling_gates: Sequence[wire.SchedulingGate] | None = None


class _Status(wire.Wire):
    phase: str = ""


class _Pod(wire.Wire):
    """A tenth of what `wire.Pod` reads."""

    metadata: _Metadata = msgspec.field(default_factory=_Metadata)
    spec: _Spec = msgspec.field(default_factory=_Spec)
    status: _Status = msgspec.field(default_factory=_Status)


Pods = dict[str, tuple[str, ...] | None]
"""The gates of each pod of ours that has no node, by uid; None: it has one by now, or is gone."""


class TakingOver:
    """Tells the engine whether it leads: not before its watch has caught up with the API server.

    engine: read only. Units: `clock` in seconds, monotonic.
    """

    def __init__(
        self,
        lease: NeighbourLease,
        server: Reads,
        engine: Engine,
        lead: Callable[[bool], None],
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._lease, self._engine, self._lead = lease, engine, lead
        self._pages = Pages(server, seconds=LIST_SECONDS)
        self._clock, self._sleep = clock, sleep
        self._leads = False
        self._term: object = None  # of the Lease, while we lead
        self._is_ours = asyncio.Event()
        self._asked = asyncio.Event()
        lead(False)
        lease.on_read = self._read

    async def run(self) -> None:
        """Take over whenever the Lease has become ours, until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._read_when_asked())
            while True:
                await self._is_ours.wait()
                term = self._lease.term
                if not self._leads and await self._has_caught_up():
                    self._begin(term)
                self._is_ours.clear()

    def asked(self) -> None:
        """Note a request that only who leads gets: the Lease is ours, if we do not know it yet."""
        if not self._leads:
            self._asked.set()

    async def _read_when_asked(self) -> None:
        while True:
            await self._asked.wait()
            if not self._lease.names_us:
                await self._lease.confirm()
            self._asked.clear()

    def _begin(self, term: object) -> None:
        """Lead, if the Lease is still ours and has not changed hands since."""
        if self._lease.names_us and self._lease.term == term:
            self._leads, self._term = True, term
            self._lead(True)

    def _read(self) -> None:
        """The Lease has been read. Another one may have led between two reads."""
        is_ours = self._lease.names_us
        if self._leads and not (is_ours and self._lease.term == self._term):
            self._leads = False
            self._lead(False)
        if is_ours:
            self._is_ours.set()

    async def _has_caught_up(self) -> bool:
        """Return once the watch is as new as the Lease; False if that is another one's by then."""
        while not self._engine.is_synced and self._lease.names_us:
            await self._sleep(LOOK_SECONDS)
        await self._sleep(self._lease.overlap_seconds)
        left_out = set[str]()  # by the watch, for all of a round: what is too long for it
        missing: Pods | None = None
        for _ in range(MOST_LISTS):
            until = self._clock() + SHOWN_SECONDS
            missing = await self._listed()
            while self._lease.names_us:
                if missing is not None:
                    missing = self._not_shown(missing, left_out)
                    if not missing:
                        return True
                if self._clock() >= until:
                    break
                await self._sleep(LOOK_SECONDS)
            else:
                return False
            waiting = self._engine.arrivals.uids
            left_out.update(uid for uid in missing or () if uid not in waiting)
        lacking = len(missing or ())
        log.warning("leading, though the watch shows less than the API server", pods=lacking)
        return True

    def _not_shown(self, pods: Pods, left_out: Collection[str]) -> Pods:
        """Those of which the watch shows less, without some."""
        return {
            uid: gates
            for uid, gates in pods.items()
            if uid not in left_out and not self._shows(uid, gates)
        }

    def _shows(self, uid: str, gates: tuple[str, ...] | None) -> bool:
        """Whether the watch shows as much of a pod, or more."""
        engine = self._engine
        waiting, gang = engine.arrivals.of(uid), engine.gangs.of_pod(uid)
        if gates is None:
            return waiting is None
        if waiting is None:
            return uid in engine.books.bound
        if gang is None:
            return bool(gates) or not waiting.is_gated
        return set(gates).issuperset(gang.members[uid].pod.gates)

    async def _listed(self) -> Pods | None:
        """What the API server has of them now; None: that could not be read."""
        found: Pods = dict.fromkeys(self._engine.arrivals.uids)
        try:
            async for page in self._pages.of(PODS, {"fieldSelector": "spec.nodeName="}):
                await aside.run(partial(self._add, found, page.items or ()))
        except CorralError as error:
            log.warning("not leading yet: the pods could not be listed", problem=str(error))
            return None
        return found

    def _add(self, found: Pods, items: Sequence[msgspec.Raw]) -> None:
        """Add the pods of a page."""
        for each in items:
            turn()
            try:
                pod = msgspec.json.decode(each, type=_Pod)
            except (ValueError, RecursionError):
                continue  # the watch leaves it out too, and says so
            is_ours = is_named(pod.spec.scheduler_name, self._engine.settings.scheduler_name)
            if is_ours and pod.status.phase not in ("Succeeded", "Failed"):
                gates = pod.spec.scheduling_gates or ()
                found[pod.metadata.uid] = tuple(each.name or "" for each in gates)
