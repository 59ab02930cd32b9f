"""Whose turn it is to be planned: the order of gangs, passes over them, and back-offs.

    capacity grew, a back-off is over ──▶ a pass is wanted ──tick──▶ every waiting gang, in order

Each namespace has passes of its own, so that one with thousands of gangs does not make the others
wait until all of these had their turn. Within a tick the gangs of all namespaces come in one order,
as long as the tick's budget suffices for them; where it does not, every second turn is that of the
namespace that has spent least. One for which a tick did much more than it may has none for a while.

After the first lists, and when a Corral begins to lead, gangs that cannot go elsewhere any more
have their turn before all others (`let_first`).

A gang that loses its plan is not planned again before its back-off is over; each further loss
doubles it, until the gang runs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush, heapreplace
from typing import Any

from app.dialects.spec import GangKey
from app.state.gang.gang import Gang
from app.state.pauses import doubled
from app.state.settings import EngineSettings
from app.state.turns.budget import GANG, Budget

MOST_TURNS = 64  # in a namespace's line beside twice its gangs that wait
FIRST_SECONDS = 10.0  # a gang of 10,000 pods is counted once a second
MOST_LOSSES = 16  # counted for the back-off, which has reached its limit long before

Rank = tuple[bool, float, float, str, str]
_Turn = tuple[Rank, str, str, GangKey]  # two vocabularies may have gangs of one name


@dataclass(slots=True)
class Queue:
    """The passes that are wanted or under way, and when the next back-off is over.

    Invariant: no line is empty.
    """

    settings: EngineSettings
    budget: Budget
    _is_pass_wanted: bool = False
    _new: dict[GangKey, Gang] = field(default_factory=dict)  # in no pass yet
    _lines: dict[str, list[_Turn]] = field(default_factory=dict)
    """Of the passes under way: a heap for each namespace."""
    _owed: set[str] = field(default_factory=set)  # another pass once the one under way is over
    _first: dict[GangKey, None] = field(default_factory=dict)  # these, before all others …
    _first_until: float = -math.inf  # … until then at the latest
    _is_short: bool = False  # the budget was spent before all had their turn
    _retry_at: float = math.inf  # when the first gang's back-off is over

    # -- passes --------------------------------------------------------------------------------

    def want_pass(self) -> None:
        """Have the waiting gangs tried again."""
        self._is_pass_wanted = True

    def want_turn(self, gang: Gang) -> None:
        """Have one gang tried in its turn."""
        self._new[gang.key] = gang

    def let_first(self, gangs: Iterable[Gang], now: float) -> None:
        """Begin anew, and for FIRST_SECONDS give no other a turn before each of these had one."""
        self._first_until = now + FIRST_SECONDS
        self._owed.update(self._lines)
        self._lines.clear()
        self.want_pass()
        for gang in gangs:
            self._first[gang.key] = None
            self.want_turn(gang)

    @property
    def first(self) -> Collection[GangKey]:
        """Those before which no other has a turn."""
        return self._first.keys()

    def let_go(self, key: GangKey) -> None:
        """Have the others wait for this gang no longer."""
        self._first.pop(key, None)

    def let_late_go(self, now: float) -> None:
        """Have the others wait for none any longer, if they have waited for as long as they may."""
        if now >= self._first_until:
            self._first.clear()

    def is_busy(self, namespace: str = "") -> bool:
        """Whether a gang has to wait for its turn: others are before it, or the tick is full.

        `namespace`: its own, which may have no turn yet.
        """
        others = self._lines or self._new or self._owed or self._first
        is_full = self.budget.is_spent or self.budget.owes(namespace)
        return self._is_pass_wanted or bool(others) or is_full

    @property
    def turns_left(self) -> int:
        """Of all passes under way."""
        return sum(map(len, self._lines.values()))

    def begin_pass(
        self,
        waiting: Mapping[str, Collection[GangKey]],
        gangs: Mapping[GangKey, Gang],
        others: Iterable[GangKey],
    ) -> None:
        """Begin the passes that are wanted where none is under way.

        `waiting`: by namespace the gangs that need a place; others come behind them.
        """
        under_way = self._lines.keys()
        if self._is_pass_wanted or self._owed - under_way:
            begun = {
                namespace: [self._turn(gangs[key]) for key in keys]
                for namespace, keys in waiting.items()
                if self._may_begin(namespace)
            }
            for key in others:
                if self._may_begin(key.namespace):
                    last = (True, math.inf, 0.0, key.namespace, key.name)
                    turn = last, key.source, key.epoch, key
                    begun.setdefault(key.namespace, []).append(turn)
            self._owed = set(under_way if self._is_pass_wanted else self._owed & under_way)
            self._is_pass_wanted = False
            for namespace, line in begun.items():
                heapify(line)
                self._lines[namespace] = line
            self._new = {key: new for key, new in self._new.items() if key.namespace not in begun}
        for gang in self._new.values():
            # Else the pass that is owed has it, which comes after one that awaits those first.
            if gang.key.namespace not in self._owed or gang.key in self._first:
                heappush(self._lines.setdefault(gang.key.namespace, []), self._turn(gang))
        self._new.clear()
        for namespace, line in list(self._lines.items()):
            if len(line) > MOST_TURNS + 2 * len(waiting.get(namespace, ())):
                del self._lines[namespace]  # most of them are of gangs that are gone
                self._owed.add(namespace)

    def _may_begin(self, namespace: str) -> bool:
        return namespace not in self._lines and (self._is_pass_wanted or namespace in self._owed)

    def turns(self) -> Iterator[GangKey]:
        """The next gangs, until the tick's budget is spent; one at least of those that owe nothing.

        What the receiver spends on each is counted before the next one is chosen.
        """
        is_fair = self._is_short  # as the last tick was
        orders = [_Order(self._lines, each) for each in (self._next_rank, self.budget.spent_by)]
        while self._lines:
            by_rank, by_share = orders
            order = by_share if is_fair and not self._first else by_rank
            namespace = order.first(self._has_turn)
            if namespace is None:
                break
            is_later, *_ = self._next_rank(namespace)
            if self._first and is_later:
                break  # it is not known yet whether those before it need a place
            *_, key = heappop(self._lines[namespace])
            if not self._lines[namespace]:
                del self._lines[namespace]
            self._first.pop(key, None)
            self.budget.spend(namespace, GANG)
            yield key
            if self.budget.is_spent:
                break
            is_fair = self._is_short and not is_fair
        self._is_short = bool(self._lines)

    def _has_turn(self, namespace: str) -> bool:
        """Whether it has gangs whose turn has not come, and may have one in this tick."""
        may = bool(self._first) or not self.budget.owes(namespace)
        return may and namespace in self._lines

    def _next_rank(self, namespace: str) -> Rank:
        return self._lines[namespace][0][0]

    def _turn(self, gang: Gang) -> _Turn:
        is_later, *_ = rank = rank_in_queue(gang)
        if is_later and gang.key in self._first:
            rank = (False, *rank[1:])
        return rank, gang.key.source, gang.key.epoch, gang.key

    # -- back-offs -----------------------------------------------------------------------------

    def is_due(self, gang: Gang, now: float) -> bool:
        """Whether the gang's back-off is over."""
        return now >= gang.back_off.not_before

    def back_off(self, gang: Gang, now: float, losses: int = 1) -> None:
        """Put the gang off; `losses`: how many lost plans this one counts for."""
        gang.back_off.plans_lost = min(gang.back_off.plans_lost + losses, MOST_LOSSES)
        first, longest = self.settings.retry_seconds, self.settings.retry_seconds_most
        gang.back_off.not_before = now + doubled(first, gang.back_off.plans_lost, longest)
        self.await_end(gang)

    def put_off(self, gang: Gang, until: float) -> None:
        """Put the gang off until then, unless `resume` comes before."""
        gang.back_off.not_before = until
        self.await_end(gang)

    def await_end(self, gang: Gang) -> None:
        """Have a pass when the gang's back-off is over."""
        self._retry_at = min(self._retry_at, gang.back_off.not_before)

    def resume(self, gang: Gang, now: float) -> None:
        """End the gang's back-off."""
        gang.back_off.not_before = now
        self.want_pass()

    def reset(self, gang: Gang) -> None:
        """Forget the plans that a gang has lost and its back-off, as it runs now."""
        gang.back_off.plans_lost = 0
        gang.back_off.not_before = 0.0

    def retry(self, waiting: Iterable[Gang], now: float) -> None:
        """Want a pass if some back-off has ended; `waiting`: every gang that may have one."""
        if now >= self._retry_at:
            later = (gang.back_off.not_before for gang in waiting)
            self._retry_at = min((at for at in later if at > now), default=math.inf)
            self.want_pass()


class _Order:
    """Namespaces by a key that grows with each turn: the lowest first, of equal ones the first."""

    def __init__(self, namespaces: Iterable[str], key: Callable[[str], object]) -> None:
        self._key = key
        # `at` decides before the name does.
        self._heap: list[tuple[Any, int, str]] = [
            (key(namespace), at, namespace) for at, namespace in enumerate(namespaces)
        ]
        heapify(self._heap)

    def first(self, has_turn: Callable[[str], bool]) -> str | None:
        """The first one that has a turn; one that has none will have none in this tick."""
        while self._heap:
            key, at, namespace = self._heap[0]
            if not has_turn(namespace):
                heappop(self._heap)
            elif (now := self._key(namespace)) != key:
                heapreplace(self._heap, (now, at, namespace))
            else:
                return namespace
        return None


def in_order(gangs: Iterable[Gang]) -> list[Gang]:
    """The gangs in the order in which they are planned."""
    return sorted(gangs, key=rank_in_queue)


def rank_in_queue(gang: Gang) -> Rank:
    """Gangs that run in part come first, then by priority, then by when they became complete."""
    key = gang.key  # as it is, since a text of both would be made at every comparison
    return (not gang.has_started, -gang.priority, gang.complete_at, key.namespace, key.name)
