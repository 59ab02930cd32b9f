"""Whether the kube-scheduler beside us leads: read from its Lease, never elected ourselves.

Two replicas of {kube-scheduler, Corral} run; kube-scheduler elects one. A Corral whose neighbour
does not lead is asked nothing, and must not wake or report either: owners would get every event
twice. There is no second election.

What was read counts only for as long as the holder leads without another renewal. A pair that
stood still for longer does not take itself for the leader when it goes on: its view of the cluster
is old, and another pair may have filled the nodes.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import ClassVar, Protocol
from urllib.parse import quote

import msgspec
import structlog

from app.errors import CorralError, NotFound
from app.kube.log_limit import LogLimit

log = structlog.get_logger(__name__)

LEASE_SECONDS = 15  # kube-scheduler's default
POLLS_PER_LEASE = 30  # kube-scheduler renews it 7.5 times by default
# A holder that cannot renew leads for two thirds of the Lease by default, then releases it. One
# whose Lease is read for the first time may have renewed it so long ago.
LEADING_SHARE, FIRST_SHARE = 2 / 3, 1 / 3
READ_SECONDS = 5.0
# An API server that is starved takes so long over a write that was sent in time.
UNDER_WAY_SECONDS = 1.0
REST_SECONDS = 0.5  # between two reads that are asked for; polls apart


class Requests(Protocol):
    """The part of `transport.Transport` used here, and in `own_lease.py`."""

    async def request(
        self, method: str, path: str, *, body: object = ..., timeout: float = ...
    ) -> bytes: ...


class Spec(msgspec.Struct, rename="camel", frozen=True):
    """What is read of a Lease."""

    holder_identity: str | None = None
    lease_duration_seconds: int | None = None
    renew_time: str | None = None
    acquire_time: str | None = None
    lease_transitions: int | None = None


class _Lease(msgspec.Struct):
    spec: Spec | None = None


class NeighbourLease:
    """Follows one Lease; `is_ours` while a process of the pod `pod_name` surely holds it.

    client-go names holders `<host name>_<random>`, and a pod's host name is its name. A competitor
    waits for the Lease's duration after it saw a renewal, on its own clock, unless the holder
    releases it. A renewal that we see came after our read before it was sent, so that the Lease is
    safe from then on for as long as a holder leads without renewing it again. One that is released
    early, as kube-scheduler does at SIGTERM, is seen with the next poll.
    Units: `clock` in seconds, monotonic, going on while the process stands still.
    Source: client-go tools/leaderelection/leaderelection.go (v0.36), renew, isLeaseValid.
    """

    _polls_per_lease: ClassVar[float] = POLLS_PER_LEASE

    def __init__(
        self,
        transport: Requests,
        *,
        namespace: str,
        name: str,
        pod_name: str,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._transport = transport
        self._path = (
            f"/apis/coordination.k8s.io/v1/namespaces/{quote(namespace)}/leases/{quote(name)}"
        )
        self._name = f"{namespace}/{name}"
        self._prefix = f"{pod_name}_"
        self._sleep = sleep
        self._clock = clock
        self._spec: Spec | None = None  # as last read
        self._asked_at = -math.inf  # when the last read that was answered was sent
        self._tried_at = -math.inf  # when the last read was sent
        self._ours_until = -math.inf
        self._due = LogLimit(clock=clock)  # two reads a second fail while the API server is away
        self._reading: asyncio.Task[None] | None = None
        self.on_read: Callable[[], None] = lambda: None  # after each read, whatever came of it

    @property
    def names_us(self) -> bool:
        """Whether it was ours when it was last read, however long ago."""
        return self._spec is not None and self._is_held_by_us(self._spec)

    @property
    def term(self) -> tuple[str | None, str | None, int | None]:
        """Of its holder, as it was last read: another one if it has changed hands meanwhile."""
        spec = self._spec or Spec()
        return spec.holder_identity, spec.acquire_time, spec.lease_transitions

    @property
    def is_ours(self) -> bool:
        """Whether no other process can hold the Lease now."""
        return self._clock() < self._ours_until

    @property
    def overlap_seconds(self) -> float:
        """For how long writes of the one before may take effect, once the Lease is ours.

        What it read is fresh for a while, and its last write is under way after that. 0.0: the
        Lease has had no other holder, or our neighbour holds it for longer, by its own clock.
        """
        spec = self._spec
        if spec is None or not spec.lease_transitions:
            return 0.0
        return max(0.0, self._fresh_seconds + UNDER_WAY_SECONDS - _held_seconds(spec))

    @property
    def whose(self) -> str:
        """Who holds it, in words, as it was last read."""
        if self._spec is None:
            return f"Lease {self._name} has not been read yet"
        holder = self._spec.holder_identity
        if not holder:
            return f"no pod holds Lease {self._name}"
        return f"pod {holder.rpartition('_')[0] or holder} holds Lease {self._name}"

    @property
    def leader(self) -> str:
        """The pod that holds it, if another one does, as it was last read; "": none is known."""
        if self._spec is None or self.names_us:
            return ""
        return (self._spec.holder_identity or "").rpartition("_")[0]

    async def confirm(self) -> bool:
        """The same; where it is not known to be ours, or not from the last polls, it is read first.

        A leader that has just been elected acts before the next poll shows it.
        """
        now = self._clock()
        if not (self.is_ours and now < self._asked_at + self._fresh_seconds):
            await self._sleep(max(0.0, self._tried_at + REST_SECONDS - now))
            if self._tried_at < now or self._is_reading:
                await self.read()
        return self.is_ours

    async def run(self) -> None:
        """Read the Lease again and again until cancelled."""
        while True:
            began = self._clock()
            await self.read()
            await self._sleep(max(0.0, began + self._poll_seconds - self._clock()))

    async def read(self) -> None:
        """Bring `is_ours` up to date, if the API server answers. All callers share one read."""
        if not self._is_reading:
            self._reading = asyncio.create_task(self._read_and_tell())
        assert self._reading is not None
        await asyncio.shield(self._reading)

    @property
    def _is_reading(self) -> bool:
        return self._reading is not None and not self._reading.done()

    async def release(self) -> None:
        """Nothing: it is for the neighbour to give up."""

    async def _read_and_tell(self) -> None:
        await self._read()
        self.on_read()

    async def _read(self) -> None:
        asked_at = self._tried_at = self._clock()
        try:
            raw = await self._transport.request("GET", self._path, timeout=READ_SECONDS)
            spec = msgspec.json.decode(raw, type=_Lease).spec or Spec()
        except NotFound:
            spec = Spec()  # no kube-scheduler leads yet
        except (CorralError, msgspec.DecodeError) as error:
            self._tell(error)
            return
        before, before_at = self._spec, self._asked_at
        self._spec, self._asked_at = spec, asked_at
        if not self._is_held_by_us(spec):
            self._ours_until = -math.inf
        elif before is None:
            self._ours_until = asked_at + self._duration * FIRST_SHARE
        elif spec != before:
            self._ours_until = before_at + self._duration * LEADING_SHARE

    def _tell(self, error: Exception) -> None:
        """Log why it is not known, or not taken: without it no Corral acts."""
        problem = str(error)
        if times := self._due.times(problem):
            log.warning("lease", lease=self._name, problem=problem, times=times)

    def _is_held_by_us(self, spec: Spec) -> bool:
        return (spec.holder_identity or "").startswith(self._prefix)

    @property
    def _duration(self) -> int:
        """Seconds."""
        duration = self._spec.lease_duration_seconds if self._spec is not None else None
        return duration if duration is not None and duration > 0 else LEASE_SECONDS

    @property
    def _poll_seconds(self) -> float:
        return self._duration / self._polls_per_lease

    @property
    def _fresh_seconds(self) -> float:
        return 2 * self._poll_seconds


def _held_seconds(spec: Spec) -> float:
    """For how long its holder has held it at least; 0.0 if that is not said."""
    try:
        acquired = datetime.fromisoformat(spec.acquire_time or "")
        renewed = datetime.fromisoformat(spec.renew_time or "")
        return max(0.0, (renewed - acquired).total_seconds())
    except (TypeError, ValueError):  # one is no time, or has no zone
        return 0.0
