"""Searches that were given up on the loop and go on elsewhere, one at a time.

    a search is given up ─▶ SeekPlace ─▶ LongSearch, on a copy of the books ─▶ PlaceAnswer ─▶ event
                                                                                             │
    its nodes have room still ◀── the gang is planned again in its turn, with the answer ◀───┘
    they do not ─▶ searched again, a few times; then the gang is put off

The loop has an allowance for each search (`topology.fit.view.Allowance`), which most end within.
One that does not says nothing of whether the gang fits, so nothing is concluded from it. A question
holds for the signature that it was asked with: all that decides but for the books. Where one of an
equal signature waits or is under way, a gang is not searched for again. Namespaces take turns,
gangs of one as they are planned; a pause follows each answer, as long as PAUSE times the search.
What is answered to a gang that is gone, or that needs another place by now, is dropped.

An answer is used no sooner than in the gang's turn: before that it may be owed a roll call, for
what the watch has shown since. One question is under way, on one copy of the books, whatever
tenants ask; of the others no more is kept than their signatures.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace

from app.dialects.spec import GangKey
from app.state.cache.topology_books import TopologyBooks
from app.state.effects import PlaceAnswer, SeekPlace
from app.state.gang.gangs import Gangs
from app.state.plan.elsewhere.long_search import Answered, LongSearch, Signature
from app.state.plan.question.parts import PartRequests
from app.state.plan.question.request import SearchRequest, copied
from app.state.turns.budget import Budget
from app.state.turns.queue import Rank, rank_in_queue
from topology.model.tree import Tree

PAUSE = 3.0  # times as long as an answer took: there is a search for a quarter of the time at most
LOST_SECONDS = 120.0  # after which an answer comes no more
TURN_SECONDS = 2.0  # at most that others wait for the turn of the gang that may ask next
MOST_IN_VAIN = 4  # answers in a row that were over before the gang is put off


@dataclass(slots=True)
class _UnderWay:
    key: GangKey
    gang: int
    """Its number: not that of one made again under its name."""
    number: int
    signature: Signature
    question: LongSearch | None
    """None: it was handed out."""
    trees: dict[str, Tree]
    asked_at: int
    since: float | None = None
    """None: no tick has been since."""


@dataclass(slots=True)
class SearchesOn:
    """Which gangs wait for such a search, the one under way, and answers not used yet."""

    gangs: Gangs
    send: Callable[[SeekPlace], None]
    _waiting: dict[GangKey, Signature] = field(default_factory=dict)
    _under_way: _UnderWay | None = None
    _answers: dict[GangKey, Answered] = field(default_factory=dict)
    _in_vain: dict[GangKey, tuple[int, int]] = field(default_factory=dict)
    """Of gangs by number: how many answers in a row were over."""
    _asked: int = 0
    _spent: Budget = field(default_factory=lambda: Budget(0))
    """Nanoseconds of searches, forgotten by halves with each answer."""
    _not_before: float = 0.0
    _is_open: bool = True
    """One may be asked at once."""
    _next: tuple[GangKey, float] | None = None
    """Whose turn is awaited, so long at most: others that have spent more do not come before it."""

    def __len__(self) -> int:
        return len(self._waiting) + (self._under_way is not None)

    # -- asked by the planner ------------------------------------------------------------------

    def is_sought(self, key: GangKey, signature: Signature) -> bool:
        """Whether an answer is awaited for an equal question; then the gang waits for it, too."""
        if self._waiting.get(key) == signature:
            return True
        asked = self._under_way
        if asked is None or asked.signature != signature:
            return False
        if asked.key != key:
            self._waiting[key] = signature
        return True

    def has_answer(self, key: GangKey) -> bool:
        """Whether there is one that the gang has not been planned with, to any of its questions."""
        return key in self._answers

    def taken(self, key: GangKey, signature: Signature) -> Answered | None:
        """The answer to this question, once."""
        found = self._answers.get(key)
        if found is None or found.signature != signature:
            return None
        del self._answers[key]
        return found

    def ask(
        self,
        key: GangKey,
        signature: Signature,
        searches: Callable[[], Iterable[tuple[TopologyBooks, SearchRequest]]],
        asked_at: int,
        parts: PartRequests | None = None,
    ) -> None:
        """Have a search go on, at once if it may; `searches` are made when it is.

        `parts`: that it is placed on these at once.
        """
        gang = self.gangs.by_key.get(key)
        if gang is None:
            return
        if not self._is_open or self._is_before(key):
            self._waiting[key] = signature
            return
        self._waiting.pop(key, None)
        named = tuple((topology.name, copied(each)) for topology, each in searches())
        trees = {name: each.tree for name, each in named}
        self._is_open, self._next = False, None
        self._asked += 1
        if parts is not None:
            parts = replace(parts, requests=tuple(each for _, each in named))
        question = LongSearch(named, self._asked, parts)
        self._under_way = _UnderWay(
            key, gang.number, self._asked, signature, question, trees, asked_at
        )
        self.send(SeekPlace(key))

    def _is_before(self, key: GangKey) -> bool:
        """Whether another gang comes before this one, whose namespace has spent less."""
        first = key if self._next is None else self._next[0]
        return self._spent.spent_by(first.namespace) < self._spent.spent_by(key.namespace)

    def is_in_vain(self, key: GangKey) -> bool:
        """Note that an answer was over when it came; whether too many were, one after the other."""
        gang = self.gangs.by_key.get(key)
        number = 0 if gang is None else gang.number
        last, times = self._in_vain.get(key, (number, 0))
        times = times + 1 if last == number else 1
        self._in_vain[key] = number, times
        return times > MOST_IN_VAIN

    def again(self, key: GangKey, signature: Signature) -> None:
        """Have a gang wait for its next turn, since there may be room by now."""
        self._waiting[key] = signature

    def used(self, key: GangKey) -> None:
        """Note that a gang was planned with its answer."""
        self._in_vain.pop(key, None)

    def end_turn(self, key: GangKey) -> None:
        """Note that the gang had its turn; an answer that was not used is to no question it has."""
        self._answers.pop(key, None)
        if self._next is not None and self._next[0] == key:
            self._next = None

    # -- asked and told by the engine ----------------------------------------------------------

    def request(self, key: GangKey) -> LongSearch | None:
        """The gang's question, once; None if it has none. No later effect depends on this."""
        asked = self._under_way
        if asked is None or asked.key != key:
            return None
        question, asked.question = asked.question, None
        return question

    def answered(
        self, key: GangKey, answer: PlaceAnswer | None, seconds: float, now: float
    ) -> list[GangKey]:
        """Take an answer, which took so long; the gangs that are to be planned with it."""
        asked = self._under_way
        if asked is None or asked.key != key:
            return []
        if answer is not None and answer.number != asked.number:
            return []
        self._under_way, self._not_before = None, now + PAUSE * seconds
        self._spent.begin()
        self._spent.spend(key.namespace, max(1, int(seconds * 1e9)))
        gang = self.gangs.by_key.get(key)
        if gang is None or gang.number != asked.gang:
            return []
        self._answers[key] = Answered.of(asked.signature, answer, asked.trees, asked.asked_at)
        if answer is None or answer.places:
            return [key]
        # What is said of one is said of all that are like it.
        self._forget_gone()
        alike = [each for each, signature in self._waiting.items() if signature == asked.signature]
        for each in alike:
            del self._waiting[each]
        return [key, *(each for each in alike if each != key)]

    def next(self, now: float) -> GangKey | None:
        """The gang whose turn it is to be searched for once more, and asked for; if there is."""
        asked = self._under_way
        if asked is not None:
            asked.since = now if asked.since is None else asked.since
            if now < asked.since + LOST_SECONDS:
                return None
            self._under_way = None
            self._waiting.setdefault(asked.key, asked.signature)
        if now < self._not_before:
            return None
        self._is_open = True
        self._forget_gone()
        if self._next is not None and now < self._next[1]:
            return None
        self._next = None
        if not self._waiting:
            return None
        key = min(self._waiting, key=self._order)
        del self._waiting[key]
        self._next = key, now + TURN_SECONDS
        return key

    def _order(self, key: GangKey) -> tuple[int, Rank]:
        return self._spent.spent_by(key.namespace), rank_in_queue(self.gangs.by_key[key])

    def _forget_gone(self) -> None:
        known = self.gangs.by_key
        for of in (self._waiting, self._answers, self._in_vain):
            for key in [key for key in of if key not in known]:
                of.pop(key)
        if self._next is not None and self._next[0] not in known:
            self._next = None
