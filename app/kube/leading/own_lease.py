"""Which of several Corrals acts: the one that holds a Lease of theirs, taken as controllers do.

    held by none, or not renewed in time      ──take──▶ ours ──renew every poll──▶ ours
                                                         └──SIGTERM──▶ released: held by none

For Corrals without a kube-scheduler in their pod, which one elsewhere asks. Only what a write of
ours has brought about counts, and for two thirds of the Lease: a competitor waits for all of it.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import msgspec
import structlog

from app.errors import Conflict, CorralError, NotFound
from app.kube.leading.lease import (
    LEADING_SHARE,
    LEASE_SECONDS,
    READ_SECONDS,
    NeighbourLease,
    Requests,
    Spec,
)

log = structlog.get_logger(__name__)

API_VERSION = "coordination.k8s.io/v1"
RENEWALS_PER_LEASE = 7.5  # as often as kube-scheduler renews its own by default
RELEASE_SECONDS = 5.0
RELEASED_SECONDS = 1  # the duration of a Lease that is given up, as client-go writes it


class OwnLease(NeighbourLease):
    """The same, of a Lease that this process takes itself: it is ours while we surely hold it.

    The holder is `<pod_name>_<random>`, so that a process started anew is not its predecessor.
    may_take: whether we want it if it is free. on_held: called after each write that gave or
    kept it, with whether it was given. wall: what is written, and never read.
    Source: client-go tools/leaderelection/leaderelection.go (v0.36), tryAcquireOrRenew, release.
    """

    _polls_per_lease = RENEWALS_PER_LEASE

    def __init__(
        self,
        transport: Requests,
        *,
        namespace: str,
        name: str,
        pod_name: str,
        may_take: Callable[[], bool],
        on_held: Callable[[bool], Awaitable[None]],
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        super().__init__(
            transport, namespace=namespace, name=name, pod_name=pod_name, sleep=sleep, clock=clock
        )
        self._metadata = {"namespace": namespace, "name": name}
        self._identity = f"{pod_name}_{uuid4()}"
        self._may_take, self._on_held, self._wall = may_take, on_held, wall
        self._changed_at = -math.inf  # when what was read last was read for the first time
        self._is_told = False  # `on_held` has been called since it was another one's
        self._is_over = False

    @property
    def overlap_seconds(self) -> float:
        """None: it is given up when what we write is written."""
        return 0.0

    async def release(self) -> None:
        """Give it up, if it is ours; from now on it is not taken."""
        self._is_over, self._ours_until = True, -math.inf
        try:
            async with asyncio.timeout(RELEASE_SECONDS):
                await self._give_up()
        except (TimeoutError, CorralError, msgspec.DecodeError) as error:
            log.warning("lease not released", lease=self._name, problem=repr(error))
        self._spec = Spec()

    async def _give_up(self) -> None:
        """Raises: CorralError, DecodeError."""
        if self._is_reading:
            await self.read()
        if not self.names_us:
            return
        known = await self._known()
        if known is not None and self._is_held_by_us(_spec(known)):
            given_up = {"holderIdentity": "", "leaseDurationSeconds": RELEASED_SECONDS}
            await self._write(known, {**known["spec"], **given_up})

    async def _read(self) -> None:
        """Look whose it is; take it, or renew it. A write that another one outran is no failure."""
        if self._is_over:
            return
        asked_at = self._tried_at = self._clock()
        try:
            known = await self._known()
            spec = _spec(known)
            self._note(spec, asked_at)
            is_held = self._is_held_by_us(spec)
            if self._is_over or not (is_held or (self._is_free(spec) and self._may_take())):
                return
            wanted = self._wanted(spec, {} if known is None else known.get("spec") or {})
            await self._write(known, wanted)
        except Conflict:
            return
        except (CorralError, msgspec.DecodeError) as error:
            self._tell(error)
            return
        self._note(msgspec.convert(wanted, Spec), asked_at)
        if self._is_over:  # it is given up next, and nothing is written by it any more
            return
        self._ours_until = asked_at + LEASE_SECONDS * LEADING_SHARE
        is_new, self._is_told = not self._is_told, True  # also if no answer said that it was taken
        if is_new:
            log.info("leading", lease=self._name)
        await self._on_held(is_new)

    def _note(self, spec: Spec, asked_at: float) -> None:
        """Remember what it says."""
        if spec != self._spec:
            self._changed_at = self._clock()
        if not self._is_held_by_us(spec):
            self._ours_until, self._is_told = -math.inf, False
        self._spec, self._asked_at = spec, asked_at

    def _is_free(self, spec: Spec) -> bool:
        """Whether it is free, or its holder has not renewed it for as long as it lasts."""
        return not spec.holder_identity or self._clock() >= self._changed_at + self._duration

    def _is_held_by_us(self, spec: Spec) -> bool:
        return spec.holder_identity == self._identity

    def _wanted(self, spec: Spec, before: dict[str, Any]) -> dict[str, Any]:
        now = self._wall().strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        wanted = {
            **before,
            "holderIdentity": self._identity,
            "leaseDurationSeconds": LEASE_SECONDS,
            "renewTime": now,
        }
        if not self._is_held_by_us(spec):
            wanted["acquireTime"] = now
            wanted["leaseTransitions"] = int(before.get("leaseTransitions") or 0) + 1
        return wanted

    async def _known(self) -> dict[str, Any] | None:
        """The object as it is stored; None: there is none. Raises: CorralError, DecodeError."""
        try:
            raw = await self._transport.request("GET", self._path, timeout=READ_SECONDS)
        except NotFound:
            return None
        return msgspec.json.decode(raw, type=dict[str, Any])

    async def _write(self, known: dict[str, Any] | None, spec: dict[str, Any]) -> None:
        """Store it, unless it has changed meanwhile. Raises: Conflict, any other CorralError."""
        kind = {"apiVersion": API_VERSION, "kind": "Lease"}
        if known is None:
            body = {**kind, "metadata": self._metadata, "spec": spec}
            path = self._path.rpartition("/")[0]
            await self._transport.request("POST", path, body=body, timeout=READ_SECONDS)
        else:
            body = {**known, **kind, "spec": spec}  # its resourceVersion is in its metadata
            await self._transport.request("PUT", self._path, body=body, timeout=READ_SECONDS)


def _spec(known: dict[str, Any] | None) -> Spec:
    """Raises: DecodeError."""
    try:
        return msgspec.convert((known or {}).get("spec") or {}, Spec)
    except msgspec.ValidationError as error:
        raise msgspec.DecodeError(str(error)) from error
