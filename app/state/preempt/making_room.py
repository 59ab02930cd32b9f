"""Which waiting gangs ask who would have to go for them, and what is said of the answer.

What is found is told, or carried out, where the settings let pods be evicted (`room_plans`). One
question is under way at a time. Namespaces take turns, in each the most important gang comes first,
and a pause follows each answer, nine times as long as it took. A gang asks once it has been
complete for a while and does not fit, again a minute after the answer, and then later each time.
For some seconds gangs that are alike hear the same answer. Where no pod has a lower priority, and
where a pod of the gang may not preempt any, none is asked. What is answered to a gang that has
changed meanwhile is dropped.

The tick says that a gang asks; the question is made when it is fetched, in steps between which the
cluster may change: a copy of 150,000 pods in gangs takes a tenth of a second. A journal replays who
asked, and the answer.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field

from app.dialects.spec import GangKey
from app.state.cache.books import Books, Snapshot
from app.state.effects import RoomAnswer, SeekRoom
from app.state.gang.gang import Gang, Phase
from app.state.gang.gangs import Gangs
from app.state.gang.owners import Owners
from app.state.gang.parts import Version
from app.state.isolation import confined
from app.state.objects.budgets import Budgets
from app.state.plan.planner import Planner
from app.state.plan.question.request import copied
from app.state.pods.grants import Grants
from app.state.pods.occupants import Occupants
from app.state.preempt.asking_in_turns import AskingInTurns, Rank
from app.state.preempt.plans.room_plans import RoomPlans
from app.state.preempt.room import RoomRequest
from app.state.preempt.standing import Crowd, RunningGang, Standing, seconds_of
from app.state.queueing.outbox import Outbox
from app.state.report.reports import Reports
from app.state.settings import EngineSettings
from app.state.turns.pieces import pieces

ROUND_SECONDS = 1.0  # between two looks for gangs that may ask
MOST_LOOKED_AT = 256  # gangs in one tick: 3 us each
MOST_TOLD = 16  # in one tick, of those that are alike
AGAIN_SECONDS = 60.0  # after an answer; doubled each time …
MOST_DOUBLED = 4  # … so often: 16 minutes
PAUSE = 9.0  # times as long as an answer took: there is a search for a tenth of the time at most
SHARED_SECONDS = 10.0  # an answer holds for gangs that are alike
MOST_SHARED = 256  # answers
BUSY_SECONDS = 5.0  # until the next question of a gang that may not have pods evicted yet
MOST_AT_ONCE = 4  # questions of a gang without a pause, after its place was lost
GANGS_A_STEP = 512  # that are copied: a millisecond
LOST_SECONDS = 120.0  # after which an answer comes no more

Alike = tuple[int, tuple[object, ...]]  # lowest priority, and what is to be placed
_Same = tuple[int, Version, int]  # of a gang that has not changed: its number, version, priority

_NO_NODES = Snapshot()


@dataclass(slots=True)
class Asked:
    """What one gang has asked."""

    number: int
    """The gang's: one that was made again under its name has asked nothing."""
    times: int
    """So often it was answered."""
    not_before: float
    at_once: int = 0
    """So often it asked again without a pause."""


@dataclass(slots=True)
class _UnderWay:
    """The question that waits for its answer."""

    key: GangKey
    same: _Same
    alike: Alike
    since: float
    then: Snapshot
    """The nodes as they were when it was asked."""
    is_fetched: bool = False


@dataclass(slots=True)
class MakingRoom:
    """Asks for gangs that wait, and reports the answers."""

    settings: EngineSettings
    books: Books
    budgets: Budgets
    owners: Owners
    occupants: Occupants
    grants: Grants
    gangs: Gangs
    planner: Planner
    outbox: Outbox
    reports: Reports
    room_plans: RoomPlans
    _asked: dict[GangKey, Asked] = field(default_factory=dict)
    _waiting: AskingInTurns = field(default_factory=AskingInTurns)
    _under_way: _UnderWay | None = None
    _not_before: float = 0.0  # the next question
    _answers: dict[Alike, tuple[RoomAnswer, float]] = field(default_factory=dict)
    """By what gangs have in common that are alike: an answer, and until when it holds."""
    _round: list[GangKey] = field(default_factory=list)  # those not looked at in this round
    _round_at: float = 0.0  # when the next one begins

    def review(self, now: float) -> None:
        """Find the gangs that may ask, and have the next one's question answered."""
        if self.settings.preempt == "off" or not self.planner.is_ready:
            return
        self.room_plans.review(now)
        self._ask_again(now)
        self._find(now)
        if self._under_way is not None and now >= self._under_way.since + LOST_SECONDS:
            self._under_way = None
        for _ in range(MOST_TOLD):
            if not self._waiting or self._under_way is not None or now < self._not_before:
                return
            gang = self.gangs.by_key.get(key := self._waiting.take())
            if gang is not None and self._may_ask(gang, now):
                with confined(self.planner.on_fault, "room for gang {}", key):
                    self._ask(gang, now)

    def _ask_again(self, now: float) -> None:
        """Let gangs ask whose place was lost, a few times without a pause."""
        for key in self.room_plans.taken_again():
            gang = self.gangs.by_key.get(key)
            asked = None if gang is None else self._asked_by(gang, now)
            if asked is not None and asked.at_once < MOST_AT_ONCE:
                asked.at_once += 1
                asked.not_before = now
                self._round_at = now

    def _find(self, now: float) -> None:
        """Look at the next few of the gangs that wait; at all of them in one round."""
        if not self._round and now >= self._round_at:
            self._round_at = now + ROUND_SECONDS
            self._round = [gang.key for gang in self.gangs.plannable()][::-1]
            known = set(self._round)
            self._asked = {key: asked for key, asked in self._asked.items() if key in known}
            self._waiting.keep(known)
        for _ in range(min(len(self._round), MOST_LOOKED_AT)):
            key = self._round.pop()
            gang = self.gangs.by_key.get(key)
            if gang is not None and key not in self._waiting and self._may_ask(gang, now):
                self._waiting.put(key, self._rank(gang))

    def _asked_by(self, gang: Gang, now: float) -> Asked:
        """What this gang has asked, and no other of its name."""
        asked = self._asked.get(gang.key)
        if asked is None or asked.number != gang.number:
            asked = self._asked[gang.key] = Asked(gang.number, 0, now)
        return asked

    def _rank(self, gang: Gang) -> Rank:
        """A gang whose place was lost asks as if for the first time."""
        asked = self._asked.get(gang.key)
        is_new = asked is None or asked.number != gang.number or asked.at_once > 0
        return is_new, gang.membership.lowest_priority

    def _may_ask(self, gang: Gang, now: float) -> bool:
        asked = self._asked.get(gang.key)
        if asked is not None and asked.number == gang.number:
            not_before = asked.not_before
        else:
            not_before = gang.complete_at + self.settings.preempt_after_seconds
        return (
            now >= not_before
            and gang.key not in self.room_plans.of
            and not self.room_plans.limits.is_full
            and gang.phase is Phase.WAITING
            and gang.reporting.waits_for_room
            and not gang.binding.awaits_members(now)  # it would not be planned then
            and self.occupants.any_below(gang.membership.lowest_priority)
            and all(member.pod.preempts for member in gang.membership.unbound)
            and not self.planner.serving.is_in_parts(gang)
        )

    def _ask(self, gang: Gang, now: float) -> None:
        asked = self._asked_by(gang, now)
        asked.not_before = now + AGAIN_SECONDS
        alike = _alike(gang)
        known = self._answers.get(alike)
        if known is not None and now < known[1] and not self._may_evict(known[0]):
            self._tell(gang, known[0], now)
            return
        self._under_way = _UnderWay(gang.key, _same(gang), alike, now, self.books.snapshot)
        self.outbox.add(SeekRoom(gang.key))

    def _may_evict(self, answer: RoomAnswer) -> bool:
        """Whether an answer may lead to evictions: no two gangs have the same victims."""
        return answer.is_found and self.settings.preempt == "on"

    # -- the question and its answer -----------------------------------------------------------

    def request(self, key: GangKey) -> Iterator[RoomRequest | None]:
        """The gang's question, once, in steps; the last yields it. None if it has none.

        No later effect depends on this.
        """
        asked = self._under_way
        if asked is None or asked.key != key or asked.is_fetched:
            return
        asked.is_fetched = True
        crowd: Crowd | None = None
        for step in self.crowd():
            crowd = step
            yield None
        gang = self.gangs.by_key.get(key)
        # An answer about a gang that has changed since would not be taken.
        if gang is not None and asked is self._under_way and _same(gang) == asked.same:
            yield self.question(gang, asked.since, crowd)

    def question(self, gang: Gang, now: float, crowd: Crowd | None = None) -> RoomRequest | None:
        """A question on a copy of the books as they are; None if there is nothing to search.

        `crowd`: a part of it that was copied before; None: it is copied now.
        """
        self.planner.refresh()
        searches = tuple(copied(each) for each in self.planner.requests(gang))
        if not searches:
            return None
        priority = gang.membership.lowest_priority
        most = self.room_plans.limits.most_pods_for(gang)
        standing = self.standing(self._newest_that_may_go(gang, now), now, crowd)
        return RoomRequest(gang.key, priority, searches, standing, most)

    def _newest_that_may_go(self, gang: Gang, now: float) -> float:
        """When the newest pods were created that may go, in seconds since 1970.

        What time it is follows from when the gang's last pod was created, and the gang complete.
        """
        if not self.settings.preempt_min_runtime_seconds:
            return math.inf
        created = max(seconds_of(member.pod.created) for member in gang.membership.unbound)
        return created + now - gang.complete_at - self.settings.preempt_min_runtime_seconds

    def crowd(self) -> Iterator[Crowd | None]:
        """Who runs, in steps between which the cluster may change; the last yields it."""
        # Each at once: 3 ms for 150,000 pods, where pieces take 100 ms, and 10 ms as a dict grows.
        occupants = dict(self.occupants.by_uid)
        yield None
        names = dict(self.occupants.names)
        yield None
        gangs: list[RunningGang] = []
        for keys in pieces(tuple(self.gangs.by_key), GANGS_A_STEP):
            there = (self.gangs.by_key.get(key) for key in keys)
            gangs += [_as_it_is(gang) for gang in there if gang is not None and gang.running]
            yield None
        yield Crowd(occupants, names, gangs)

    def standing(self, newest: float, now: float, crowd: Crowd | None = None) -> Standing:
        """A copy of who is where; `crowd` as of `question`.

        `newest`: when the newest pods were created that may go.
        """
        if crowd is None:
            *_, crowd = self.crowd()
        assert crowd is not None
        return Standing(
            self.books.axis,
            self.books.bound_now(),
            crowd.occupants,
            crowd.names,
            crowd.gangs,
            self.room_plans.going.union(*(grant.victims for grant in self.grants.of.values())),
            self.budgets.view(),
            self.settings.bare_victims,
            self.room_plans.left_alone.spared(now, newest),
            dict(self.books.held),
            self.owners.copy(),
        )

    def answered(self, key: GangKey, answer: RoomAnswer | None, seconds: float, now: float) -> None:
        """Report the answer, which took so long; None: there is none."""
        asked = self._under_way
        if asked is None or asked.key != key:
            return
        self._under_way, self._not_before = None, now + PAUSE * seconds
        gang = self.gangs.by_key.get(key)
        if gang is None or answer is None or _same(gang) != asked.same:
            return
        if len(self._answers) >= MOST_SHARED:
            self._answers = {alike: each for alike, each in self._answers.items() if now < each[1]}
        if len(self._answers) < MOST_SHARED:
            self._answers[asked.alike] = answer, now + SHARED_SECONDS
        if gang.phase is Phase.WAITING:
            self._tell(gang, answer, now, asked.then)

    def _tell(
        self,
        gang: Gang,
        answer: RoomAnswer,
        now: float,
        then: Snapshot = _NO_NODES,
    ) -> None:
        """Report an answer, and begin what it says; `then`: what it was searched on."""
        asked = self._asked_by(gang, now)
        is_all = answer.pods or answer.ending  # else it fits by now
        why_none = self.room_plans.why_none(gang, answer, now)
        is_made = answer.is_found and is_all and not why_none
        if is_made and not self.room_plans.begin(gang, answer, then, now):
            asked.not_before = now + BUSY_SECONDS
            return
        asked.not_before = now + AGAIN_SECONDS * 2.0 ** min(asked.times, MOST_DOUBLED)
        asked.times += 1
        has_claims = self.planner.has_claims(gang)
        self.reports.room(gang, answer, why_none, has_claims=has_claims)


def _same(gang: Gang) -> _Same:
    """Equal as long as the same question would be asked for the same pods."""
    return gang.number, gang.version, gang.membership.lowest_priority


def _alike(gang: Gang) -> Alike:
    """Equal for gangs that the same search is made for."""
    searched = gang.last_search
    is_known = searched is not None and searched.version == gang.version
    signature = searched.signature if is_known and searched is not None else (gang.key,)
    return gang.membership.lowest_priority, signature


def _as_it_is(gang: Gang) -> RunningGang:
    return RunningGang(
        gang.key,
        gang.guarded_priority,
        tuple(gang.running),
        gang.ends_if_lost(len(gang.membership.bound)),
        bool(gang.ending),
        tuple(gang.plan.nodes),
    )
