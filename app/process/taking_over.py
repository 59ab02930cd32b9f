"""From the Lease's change of hands until this Corral decides where gangs go.

    the Lease is ours
      └─▶ the one before knows it, and nothing that it wrote is under way any more
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
from dataclasses import dataclass
from functools import partial

import msgspec
import structlog

from app.errors import CorralError
from app.kube.core import aside
from app.kube.core.turns import turn
from app.kube.decoding import wire
from app.kube.leading.lease import NeighbourLease
from app.kube.watch.pages import Pages, Reads
from app.kube.watch.versions import is_before
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
    resource_version: str = ""


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


@dataclass(frozen=True, slots=True)
class _Listed:
    """A pod of ours without a node, as the API server has it."""

    gates: tuple[str, ...]
    version: str


Pods = dict[str, _Listed | None]
"""By uid. None: the pod has a node by now, or is gone, and our watch has not shown that yet."""


class TakingOver:
    """Tells the engine whether it leads: not before its watch has caught up with the API server.

    engine: read only. `watched`: the version that the watch of pods has come to, "" while it
    lists. Units: `clock` in seconds, monotonic.
    """

    def __init__(
        self,
        lease: NeighbourLease,
        server: Reads,
        engine: Engine,
        lead: Callable[[bool], None],
        watched: Callable[[], str],
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._lease, self._engine, self._lead = lease, engine, lead
        self._watched = watched
        self._pages = Pages(server, seconds=LIST_SECONDS, sleep=sleep)
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
        left_out = set[str]()  # by a watch that does not show how far it has come
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
            left_out.update(uid for uid, pod in (missing or {}).items() if self._may_lack(pod, uid))
        lacking = len(missing or ())
        log.warning("leading, though the watch shows less than the API server", pods=lacking)
        return True

    def _not_shown(self, pods: Pods, left_out: Collection[str]) -> Pods:
        """Those of which the watch shows less, without some."""
        return {
            uid: pod
            for uid, pod in pods.items()
            if uid not in left_out and not self._shows(uid, pod)
        }

    def _shows(self, uid: str, pod: _Listed | None) -> bool:
        """Whether the watch shows as much of a pod, or more, or has left it out."""
        engine = self._engine
        waiting, gang = engine.arrivals.of(uid), engine.gangs.of_pod(uid)
        if pod is None:
            return waiting is None
        if waiting is None:
            return uid in engine.books.bound or self._is_behind_us(pod) is True
        if gang is None:
            return bool(pod.gates) or not waiting.is_gated
        return set(pod.gates).issuperset(gang.members[uid].pod.gates)

    def _is_behind_us(self, pod: _Listed) -> bool | None:
        """Whether the watch has come to this pod's version; None: it does not show."""
        watched = self._watched()
        if not watched:
            return False
        is_awaited = is_before(watched, pod.version)
        return None if is_awaited is None else not is_awaited

    def _may_lack(self, pod: _Listed | None, uid: str) -> bool:
        """Whether the watch may have left out a pod that it has not shown for all of a round."""
        is_shown = self._engine.arrivals.of(uid) is not None
        return pod is not None and not is_shown and self._is_behind_us(pod) is None

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
                gates = tuple(each.name or "" for each in pod.spec.scheduling_gates or ())
                found[pod.metadata.uid] = _Listed(gates, pod.metadata.resource_version)
