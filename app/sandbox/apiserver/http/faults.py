"""Faults on demand: what a test does to the API server while a client runs against it."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal

from app.sandbox.apiserver.http.watching import Watch
from app.sandbox.apiserver.storage.failures import Refused
from app.sandbox.apiserver.storage.kinds import Home, Kind
from app.sandbox.apiserver.storage.store import Store

# The verbs of Kubernetes authorization; a binding is `create` on `pods/binding`.
Verb = Literal[
    "get", "list", "watch", "create", "update", "patch", "delete", "deletecollection", "*"
]


@dataclass(slots=True)
class _Rule:
    """Applies to the next `left` requests of this verb and resource ("*": any)."""

    verb: str
    resource: str
    left: int
    refusal: Refused | None = None
    drops_answer: bool = False
    seconds: float = 0.0

    def takes(self, verb: str, resource: str) -> bool:
        return self.left > 0 and self.verb in ("*", verb) and self.resource in ("*", resource)


@dataclass(frozen=True, slots=True)
class Verdict:
    """What happens to one request: wait, then refuse it, or carry it out and drop the answer."""

    seconds: float = 0.0
    refusal: Refused | None = None
    drops_answer: bool = False


class Faults:
    """The handle a test turns. Resources are plural names: `pods`, `pods/binding`, `nodes`, `*`."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._rules: list[_Rule] = []
        self._watches: set[Watch] = set()
        self._is_down = False

    @property
    def open_watches(self) -> int:
        return len(self._watches)

    def fail_next(
        self,
        requests: int,
        *,
        verb: Verb = "*",
        resource: str = "*",
        status: int = 500,
        reason: str = "InternalError",
        message: str = "a fault on demand",
        retry_after: int = 0,
    ) -> None:
        """Refuse the next requests with this status; nothing is carried out."""
        refusal = Refused(status, reason, message, retry_after=retry_after)
        self._rules.append(_Rule(verb, resource, requests, refusal=refusal))

    def drop_answers(
        self, requests: int, *, verb: Verb = "create", resource: str = "pods/binding"
    ) -> None:
        """Carry the next requests out, then close the connection without an answer."""
        self._rules.append(_Rule(verb, resource, requests, drops_answer=True))

    def delay(
        self, seconds: float, *, verb: Verb = "*", resource: str = "*", requests: int = 1_000_000
    ) -> None:
        """Let the next requests wait before they are carried out; 0 ends every delay."""
        self._rules = [rule for rule in self._rules if not rule.seconds]
        if seconds:
            self._rules.append(_Rule(verb, resource, requests, seconds=seconds))

    def expire_next_watches(self, watches: int = 1, *, resource: str = "*") -> None:
        """Answer the next watches with 410 as the real one: HTTP 200 and an ERROR event."""
        refusal = Refused(410, "Expired", "too old resource version: 1 (2)")
        self._rules.append(_Rule("watch", resource, watches, refusal=refusal))

    def cut_watches(self, *, resource: str = "*", tears: bool = False) -> int:
        """End the open watches; returns how many.

        tears: the connection breaks in the middle of the answer instead of ending it.
        """
        watches = self._open(resource)
        for watch in watches:
            watch.cut(tears=tears)
        return len(watches)

    def cut_watches_of(self, homes: Collection[Home]) -> None:
        """End the open watches of these resources, as when their definition goes."""
        for watch in self._watches:
            if watch.request.kind.home in homes:
                watch.cut()

    def stall_watches(self, *, resource: str = "*") -> int:
        """Keep the open watches but send nothing more on them; returns how many."""
        watches = self._open(resource)
        for watch in watches:
            watch.is_stalled = True
        return len(watches)

    def unstall_watches(self) -> None:
        for watch in self._watches:
            watch.unstall()

    def compact(self, kind: Kind | None = None) -> None:
        """Forget the change log: watches and paged lists that resume from before get 410."""
        self._store.compact(kind)

    def go_down(self) -> None:
        """Cut every watch and answer nothing until `come_back`: connections are dropped."""
        self._is_down = True
        self.cut_watches(tears=True)

    def come_back(self) -> None:
        self._is_down = False

    def clear(self) -> None:
        """Forget every fault that is still to come."""
        self._rules.clear()
        self.come_back()
        self.unstall_watches()

    def judge(self, verb: str, resource: str) -> Verdict:
        """Spend one use of every rule that takes this request."""
        if self._is_down:
            return Verdict(drops_answer=True, refusal=Refused(503, "ServiceUnavailable", "down"))
        seconds, refusal, drops = 0.0, None, False
        for rule in self._rules:
            if (refusal or drops) and not rule.seconds:
                continue  # one failure per request: the next rule keeps its uses
            if rule.takes(verb, resource):
                rule.left -= 1
                seconds += rule.seconds
                refusal = refusal or rule.refusal
                drops = drops or rule.drops_answer
        self._rules = [rule for rule in self._rules if rule.left > 0]
        return Verdict(seconds, refusal, drops)

    def opened(self, watch: Watch) -> None:
        self._watches.add(watch)

    def closed(self, watch: Watch) -> None:
        self._watches.discard(watch)

    def _open(self, resource: str) -> list[Watch]:
        return [watch for watch in self._watches if resource in ("*", watch.request.kind.plural)]
