"""Calls of a client to the API server, with everything that may become of one.

A client's work is a generator: it yields a call (a function of the API server's truth) and gets
its result, or `Refused`, or `Unanswered`; or it yields seconds to pause. Whoever started it may be
dead when the answer comes: then the generator is left, but the call has happened.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass
from random import Random
from typing import Any

from tests.sim.api import Refused
from tests.sim.clock import Clock
from tests.sim.faults import Hits

Call = Callable[[], Any]
Work = Generator[Call | float, Any, None]

LATENCY = (0.001, 0.02)  # seconds, each way
REFUSALS = ((403, "Forbidden"), (429, "TooManyRequests"), (500, "InternalError"))


class Unanswered(Exception):
    """No answer came in time; whether the call happened is not known."""


@dataclass(slots=True)
class Network:
    """The way to the API server. `failures`: the share of calls that go wrong on it."""

    clock: Clock
    rng: Random
    hits: Hits
    failures: float = 0.0
    latency: tuple[float, float] = LATENCY

    def run(self, work: Work, is_alive: Callable[[], bool], timeout: float) -> None:
        """Do this work, one call after the other."""
        self._go_on(work, is_alive, timeout, lambda: next(work))

    def _go_on(
        self,
        work: Work,
        is_alive: Callable[[], bool],
        timeout: float,
        resume: Callable[[], Call | float],
    ) -> None:
        if not is_alive():
            return
        try:
            wanted = resume()
        except StopIteration:
            return
        if isinstance(wanted, float):
            self.clock.after(
                wanted, lambda: self._go_on(work, is_alive, timeout, lambda: next(work))
            )
        else:
            self._send(work, is_alive, timeout, wanted)

    def _send(self, work: Work, is_alive: Callable[[], bool], timeout: float, call: Call) -> None:
        there, back = self.rng.uniform(*self.latency), self.rng.uniform(*self.latency)
        fate = self.rng.choice(FATES) if self.rng.random() < self.failures else ""

        def throw(error: Exception, seconds: float) -> None:
            self.clock.after(
                seconds,
                lambda: self._go_on(work, is_alive, timeout, lambda: work.throw(error)),
            )

        def arrive() -> None:
            if fate == "refused":
                status, reason = self.rng.choice(REFUSALS)
                self.hits.hit(f"F7 {status}")
                throw(Refused(status, reason), back)
                return
            try:
                result = call()
            except Refused as refused:
                if refused.status in (404, 409):
                    self.hits.hit(f"F7 {refused.status}")
                throw(refused, back)
                return
            if fate == "unanswered":
                self.hits.hit("F7 unanswered")
                throw(Unanswered(), timeout)
                return
            self.clock.after(
                back, lambda: self._go_on(work, is_alive, timeout, lambda: work.send(result))
            )

        if fate == "lost":
            self.hits.hit("F7 lost")
            throw(Unanswered(), timeout)
        else:
            self.clock.after(there, arrive)


FATES = ("refused", "refused", "lost", "unanswered", "unanswered")
