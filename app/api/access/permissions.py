"""What users may read, as the API server says, remembered for a few seconds.

    token ──hash──▶ who it is ──▶ may they list these objects?      each a review of the API server,
                                                                  or an answer it gave before

Bounds: so many answers are remembered, the one that was used longest ago is forgotten first; so
many reviews are under way at one time, and so many wait, of which one address has a few. A token is
kept for as long as its request lasts, and as a hash after that.
"""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections import Counter, OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import Generic, Protocol, TypeVar

from app.errors import CorralError, Forbidden
from app.kube.client.deadline import answered_within
from app.kube.client.reviews import User

ANSWER_SECONDS = 10.0  # so long an answer is believed; a right that is withdrawn is seen by then
REVIEW_SECONDS = 5.0  # for one review, with what it waits for
AT_ONCE = 4  # reviews under way
MOST_WAITING = 64  # reviews under way and those that wait
MOST_OF_ADDRESS = 8  # of these, for one client's address
REFUSED_SECONDS = 0.05  # a "no" takes its turn for so long: 80 a second at most
MOST_USERS = 1_024
MOST_ANSWERS = 16_384
MAY_NOT_ASK = "the ClusterRole corral-readers of deploy/rbac.yaml is not bound to Corral's account"


class Unknown(CorralError):
    """Whether a user may read could not be found out; the message says why."""


class Asks(Protocol):
    """The part of `reviews.Reviews` used here."""

    async def user_of(self, token: str) -> User | None: ...

    async def may(self, user: User, verb: str, resource: str, namespace: str) -> bool: ...


@dataclass(frozen=True, slots=True)
class Asker:
    """A user whose token was valid. `key` is the hash of it, `address` where the client is."""

    user: User
    key: bytes
    address: str


_Key = TypeVar("_Key")
_Answer = TypeVar("_Answer")


class Remembered(Generic[_Key, _Answer]):
    """Answers of the last seconds, a bounded number of them."""

    def __init__(self, most: int, seconds: float) -> None:
        self._most, self._seconds = most, seconds
        self._answers: OrderedDict[_Key, tuple[_Answer, float]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._answers)

    def get(self, key: _Key, now: float) -> tuple[_Answer] | None:
        """The answer, in a tuple since None is one; None: there is none, or it is too old."""
        found = self._answers.get(key)
        if found is None or now >= found[1]:
            return None
        self._answers.move_to_end(key)
        return (found[0],)

    def put(self, key: _Key, answer: _Answer, now: float) -> None:
        """Remember it from now on."""
        self._answers[key] = answer, now + self._seconds
        self._answers.move_to_end(key)
        if len(self._answers) > self._most:
            self._answers.popitem(last=False)


def _nothing(_outcome: str) -> None:
    pass


class Permissions:
    """Asks the API server, unless it has just answered.

    `on_review`: told of each question that the memory does not answer: "granted", "refused",
    "failed" (the API server has not answered) or "busy" (it was not asked).
    """

    def __init__(
        self,
        asks: Asks,
        *,
        on_review: Callable[[str], None] = _nothing,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._asks, self._on_review, self._clock, self._sleep = asks, on_review, clock, sleep
        self._users = Remembered[bytes, User | None](MOST_USERS, ANSWER_SECONDS)
        self._answers = Remembered[tuple[bytes, str, str], bool](MOST_ANSWERS, ANSWER_SECONDS)
        self._turn = asyncio.Semaphore(AT_ONCE)
        self._waiting = Counter[str]()

    async def asker(self, token: str, address: str) -> Asker | None:
        """Whose token it is; None: it is not valid. Raises: Unknown."""
        key = hashlib.sha256(token.encode()).digest()
        known = self._users.get(key, self._clock())
        if known is None:
            known = (await self._reviewed(lambda: self._asks.user_of(token), address),)
            self._users.put(key, known[0], self._clock())
        user = known[0]
        return None if user is None else Asker(user, key, address)

    async def may_list(self, asker: Asker, resource: str, namespace: str) -> bool:
        """Whether they may list these objects; namespace "": in all namespaces. Raises: Unknown."""
        key = asker.key, resource, namespace
        known = self._answers.get(key, self._clock())
        if known is None:
            ask = partial(self._asks.may, asker.user, "list", resource, namespace)
            known = (await self._reviewed(ask, asker.address),)
            self._answers.put(key, known[0], self._clock())
        return known[0]

    async def _reviewed(self, ask: Callable[[], Awaitable[_Answer]], address: str) -> _Answer:
        """One review in its turn. Raises: Unknown."""
        if self._waiting.total() >= MOST_WAITING or self._waiting[address] >= MOST_OF_ADDRESS:
            self._on_review("busy")
            raise Unknown("too many reviews wait already: try again")
        self._waiting[address] += 1
        try:
            async with answered_within(REVIEW_SECONDS), self._turn:
                answer = await ask()
                if not answer:
                    await self._sleep(REFUSED_SECONDS)
        except Forbidden as error:
            self._on_review("failed")
            raise Unknown(MAY_NOT_ASK) from error
        except CorralError as error:
            self._on_review("failed")
            raise Unknown(f"the API server does not say who may read: {error}") from error
        finally:
            self._waiting[address] -= 1
            if not self._waiting[address]:
                del self._waiting[address]
        self._on_review("granted" if answer else "refused")
        return answer
