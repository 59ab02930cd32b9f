"""Gangs that others are evicted for, from the answer until the gang has its place.

    CHECKING   the API server is asked of each pod whether it would evict it; none goes
    EVICTING   those that budgets count go first, one victim after the other; then all the rest
    DRAINING   until the last of them is gone; the gang is placed by the ordinary search

Its place is kept from the first moment on: no pod of the same or of a lower priority gets what is
freed there, and one of a higher priority may. Once the gang needs it no more (it is gone, has
changed, or fits elsewhere), no further pod goes: evictions that have not been sent are not sent.
Pods that are made again alike between two looks have the place of those before them.

A place may end in vain: a pod does not end, or others take what was freed. Then the gang asks again
at once, and others go for it, but no more than `in_vain` says.

The place is noted on pods of the gang before the first pod goes. After a restart it is kept again
if it is enough once those have ended that end already; else the gang asks again at once.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field

from app.dialects import corral
from app.dialects.spec import GangKey
from app.kube.core.objects import Amounts
from app.state.cache.books import Books, Snapshot
from app.state.effects import EvictOutcome, RoomAnswer, TryEviction
from app.state.gang.gang import Gang, Phase
from app.state.gang.gangs import Gangs
from app.state.isolation import confined
from app.state.lifecycle.disruption import Disruptions
from app.state.plan.planner import Planner
from app.state.pods.grants import Grants
from app.state.pods.nominations import Nomination, Nominations
from app.state.pods.occupants import Occupants
from app.state.preempt.left_alone import LeftAlone
from app.state.preempt.plans.in_vain import InVain, Needed
from app.state.preempt.plans.kept_room import KeptRoom
from app.state.preempt.plans.limits import Limits
from app.state.preempt.plans.noted_room import NotedRoom
from app.state.preempt.plans.room_plan import Result, RoomPlan, Stage
from app.state.preempt.plans.victims import Victims
from app.state.queueing.outbox import Outbox
from app.state.report.messages import preemption as messages
from app.state.report.naming import Naming
from app.state.report.notes import Notes
from app.state.report.reports import Reports
from app.state.reserve.reservations import Reservations
from app.state.settings import EngineSettings

CHECK_SECONDS = 30.0  # until the API server has answered for the next pod
SEND_SECONDS = 300.0  # until the next outcome of an eviction, with its turn and its tries
DRAIN_SECONDS = 30.0  # beyond the grace period of a pod
SETTLE_SECONDS = 5.0  # after the last pod is gone: by then the gang has its place
PATIENCE_SECONDS = 10.0  # after the last eviction; then it is said what the gang waits for
# After the last eviction; then it counts for no limit. Pods say themselves how long they take to
# end, up to a day, and no other gang is to wait for that.
SLOW_SECONDS = 60.0
MOST_KEPT = 256  # times that were not taken yet
DRY_RESULTS: tuple[Result, ...] = ("withdrawn", "needless")
AGAIN_RESULTS: tuple[Result, ...] = (
    *("stuck", "taken", "lost", "refused", "changed", "other_pods"),
)


@dataclass(slots=True)
class RoomPlans:
    """Has pods evicted for gangs that wait."""

    settings: EngineSettings
    books: Books
    occupants: Occupants
    nominations: Nominations
    grants: Grants
    gangs: Gangs
    planner: Planner
    reservations: Reservations
    disruptions: Disruptions
    outbox: Outbox
    reports: Reports
    notes: Notes
    naming: Naming
    left_alone: LeftAlone
    end_kept: Callable[[GangKey], None]
    """Keeps no longer what was kept for a gang that was given back: it has a place otherwise."""
    of: dict[GangKey, RoomPlan] = field(default_factory=dict)
    results: Counter[str] = field(default_factory=Counter)
    """How many plans came to which end."""
    _drained: deque[float] = field(default_factory=lambda: deque(maxlen=MOST_KEPT))
    _again: set[GangKey] = field(default_factory=set)  # they have lost their place, and may ask
    in_vain: InVain = field(default_factory=InVain)
    victims: Victims = field(init=False)
    limits: Limits = field(init=False)
    _kept: KeptRoom = field(init=False)
    _noted: NotedRoom = field(init=False)

    def __post_init__(self) -> None:
        self.victims = Victims(
            self.books,
            self.occupants,
            self.gangs,
            self.disruptions,
            self.outbox,
            self.reports,
            self.naming,
            self.left_alone,
        )
        others = (self.nominations, self.grants, self.gangs, self.left_alone, self.victims.of)
        self._kept = KeptRoom(self.books, self.occupants, *others)
        self.limits = Limits(self.settings, self.of, self.victims.of)
        self._noted = NotedRoom(
            self.notes, self.in_vain, self.left_alone, self.books, self.occupants
        )

    # -- whether -------------------------------------------------------------------------------

    def taken_again(self) -> set[GangKey]:
        """Remove and return the gangs whose place was lost, and which may ask again."""
        again, self._again = self._again, set()
        return again

    @property
    def going(self) -> frozenset[str]:
        """The uids of pods that count as gone, whether or not they end already."""
        return frozenset(self.victims.of)

    def why_none(self, gang: Gang, answer: RoomAnswer, now: float) -> str:
        """Why no pod is evicted for a gang that this was answered to; "": they may be."""
        why = self.limits.why_none(gang.key.namespace, answer, now)
        return why or (self._why_stopped(gang, now) if answer.pods else "")

    def _why_stopped(self, gang: Gang, now: float) -> str:
        """Why no others go for a gang for now, for which some went in vain; "": they may."""
        key, needed = gang.key, self._needed(gang)
        if self.in_vain.is_stuck(key, needed):
            first = (uids[0] for uids in self.in_vain.stuck(key, needed))
            known = (uid for uid in first if uid in self.occupants.by_uid)
            return messages.stuck_twice([self._in_words(uid, gang) for uid in known])
        return messages.OFTEN_IN_VAIN if self.in_vain.is_often(key, needed, now) else ""

    def _in_words(self, uid: str, gang: Gang) -> str:
        """A pod, as the gang is told of it."""
        return self.naming.pod(*self.victims.named(uid), gang.key.namespace)

    def _needed(self, gang: Gang) -> Needed:
        return gang.membership.lowest_priority, self.planner.sought(gang)

    def drained(self) -> Iterator[float]:
        """Remove and return, in seconds, how long those took to end that went for each gang."""
        while self._drained:
            yield self._drained.popleft()

    # -- making room ---------------------------------------------------------------------------

    def begin(self, gang: Gang, answer: RoomAnswer, then: Snapshot, now: float) -> bool:
        """Keep the place that was found, and have its victims go; False if all has changed.

        `then`: the nodes as they were when it was searched.
        """
        is_within = not self.limits.is_full and answer.pods <= self.limits.pods_left
        return is_within and self._begin(gang, answer, then, now)

    def _begin(self, gang: Gang, answer: RoomAnswer, then: Snapshot, now: float) -> bool:
        if not all(self.victims.stands(victim, gang) for victim in answer.victims):
            return False
        priority = gang.membership.lowest_priority
        places = self._places(gang, answer.places, priority)
        if not places:
            return False  # more could go when it was asked than now, or the other way round
        on: dict[str, list[Amounts]] = {}
        for each in places.values():
            on.setdefault(each.node, []).append(each.request)
        if self._is_kept_from(gang, on):
            return False
        victims = tuple(sorted(answer.victims, key=lambda victim: not victim.is_protected))
        pods = [uid for victim in victims for uid in victim.uids]
        awaited = dict.fromkeys((*pods, *self._kept.leaving(on)))
        there = frozenset(uid for node in on for uid in self.books.bound_on.get(node, ()))
        plan = RoomPlan(
            gang.number,
            priority,
            answer.domain,
            self.planner.sought(gang),
            answer.places,
            places,
            on,
            {node: (then.nodes[node], then.domains.get(node, {})) for node in on},
            victims,
            awaited,
            there,
            _wanted(gang),
            gang.version,
        )
        plan.unchecked, plan.heard_at = set(pods), now
        self.of[gang.key] = plan
        self.victims.of.update(dict.fromkeys(plan.pods, gang.key))
        self.end_kept(gang.key)
        self.nominations.keep(places)
        for uid in plan.pods:
            self.outbox.add(TryEviction(*self.victims.named(uid), uid))
        if victims:
            self.limits.note_made(gang.key.namespace, now)
        return True

    def _places(
        self, gang: Gang, seats: Iterable[tuple[int, str, int]], priority: int
    ) -> dict[str, Nomination]:
        """The nodes of a place, by the uids of the pods that the gang has now."""
        return {
            member.pod.uid: Nomination(node, member.pod.request, priority)
            for member, node in self.planner.seats(gang, seats)
        }

    # -- after a restart -----------------------------------------------------------------------

    def take_back(self, now: float) -> None:
        """Keep what the Corral before this one had kept, for gangs that still wait."""
        for key, text in list(self.notes.found.items()):
            if key in self.gangs.unreviewed:
                continue  # some of its pods may not have been sorted out yet
            del self.notes.found[key]
            self.notes.note_room(key, text, now)
            if key in self.of:
                continue  # it was kept before, by one that followed
            gang = self.gangs.by_key.get(key)
            if gang is None or gang.phase is not Phase.WAITING:
                self.notes.note_room(key, "", now)
                continue
            with confined(self.planner.on_fault, "room kept for gang {}", key):
                needed = self._needed(gang)
                self._noted.learn_stuck(key, needed, text, now)
                if corral.room_from_text(text)[1] and not self._has_back(gang, text, now):
                    self._again.add(key)
                if key not in self.of:
                    self._noted.note_none(key, needed, now)

    def _has_back(self, gang: Gang, text: str, now: float) -> bool:
        """Keep a place again; False if it is not enough once the pods have ended that do."""
        domain, seats = corral.room_from_text(text)
        is_there = all(node in self.books.nodes for _, node, _ in seats)
        if not is_there or self.limits.most_pods_for(gang) is None:
            return False
        self.planner.refresh()
        answer = RoomAnswer(is_found=True, domain=domain, places=seats)
        # Others have gone for it already: the one before may have kept more than the limit, as
        # those whose pods take long count no more.
        if not self._begin(gang, answer, self.books.snapshot, now):
            return False
        plan = self.of[gang.key]
        plan.stage, plan.is_taken_back = Stage.DRAINING, True
        while not plan.is_seen:
            if not self._kept.has_room(gang, plan):
                self._end(gang.key, "changed", now)
                return False
        return True

    # -- outcomes ------------------------------------------------------------------------------

    def tried(self, uid: str, outcome: EvictOutcome, now: float) -> None:
        """Take the API server's word on whether it would evict a pod."""
        key = self.victims.of.get(uid)
        plan = None if key is None else self.of.get(key)
        if key is None or plan is None or uid not in plan.unchecked:
            return
        if outcome in ("done", "gone"):
            plan.unchecked.discard(uid)
            plan.heard_at = now
        else:
            self.left_alone.note_refused(uid, now)
            self._end(key, "refused", now, who=uid)

    def evicted(self, uid: str, outcome: EvictOutcome, now: float) -> None:
        """Take what became of an eviction; one for a plan that is over matters to no other."""
        self.victims.withdrawn.discard(uid)
        key = self.victims.of.get(uid)
        plan = None if key is None else self.of.get(key)
        if key is None or plan is None or uid not in plan.unsent:
            return
        plan.unsent.discard(uid)
        if outcome in ("done", "gone") or not self.victims.is_here(uid):
            plan.evicted.add(uid)
            plan.heard_at = now
        else:
            self.left_alone.note_refused(uid, now)
            self._end(key, "refused", now, who=uid)

    def is_wanted(self, uid: str) -> bool:
        """Whether an eviction that has not been sent is still to be."""
        return self.victims.is_wanted(uid)

    def note_gone(self, uid: str) -> None:
        """Learn that a pod is gone."""
        if uid in self.left_alone.stuck:
            self._again.update(self.in_vain.note_gone(uid))
        self.left_alone.note_gone(uid)
        self.victims.withdrawn.discard(uid)

    # -- time ----------------------------------------------------------------------------------

    def review(self, now: float) -> None:
        """Go on with what is under way, and end what is over."""
        self.take_back(now)
        self.end_over(now)
        self._forget_started(now)
        for key, plan in list(self.of.items()):
            with confined(self.planner.on_fault, "room made for gang {}", key):
                gang = self.gangs.by_key.get(key)
                if gang is not None:
                    self._go_on(gang, plan, now)

    def _forget_started(self, now: float) -> None:
        """What was made for a gang was not in vain once it has started."""
        for key in self.in_vain:
            gang = self.gangs.by_key.get(key)
            if gang is not None and gang.has_started:
                self.in_vain.forget(key)
            elif gang is not None and gang.plan.nodes and self.in_vain.note_placed(key):
                self.notes.note_room(key, "", now)

    def end_over(self, now: float) -> None:
        """End what is over: those of its evictions that have not been sent are not sent."""
        for key, plan in list(self.of.items()):
            with confined(self.planner.on_fault, "room made for gang {}", key):
                if over := self._over(self.gangs.by_key.get(key), plan, now):
                    self._end(key, over, now)

    def _over(self, gang: Gang | None, plan: RoomPlan, now: float) -> Result | None:
        """Why the gang needs the room no more; None if it does."""
        if gang is None:
            return "withdrawn"
        if gang.plan.nodes or gang.has_started:
            return "placed" if plan.begun == len(plan.victims) else "needless"
        is_same = gang.number == plan.number
        if is_same and gang.version == plan.version:
            return None  # as in most ticks: it may have thousands of pods
        if gang.phase is not Phase.WAITING or gang.membership.lowest_priority < plan.priority:
            return "withdrawn"
        if self.planner.sought(gang) != plan.sought:
            return "other_pods" if is_same else "withdrawn"
        if not (is_same and _wanted(gang) == plan.wanted):
            self._move_in(gang, plan, now)
        plan.version = gang.version
        return None

    def _move_in(self, gang: Gang, plan: RoomPlan, now: float) -> None:
        """Keep the place for pods that were made again as those before."""
        self.nominations.end_kept(plan.places)
        plan.number, plan.wanted = gang.number, _wanted(gang)
        plan.places = self._places(gang, plan.seats, plan.priority)
        self.nominations.keep(plan.places)
        if plan.stage is not Stage.CHECKING:
            self._noted.note(gang.key, plan, now)
        self.reservations.capacity_grew(plan.nodes)

    def _is_kept_from(self, gang: Gang, nodes: Collection[str]) -> bool:
        """Whether some of these nodes are kept for a gang before this one, as by now it starves."""
        return not self.planner.kept_from(gang).isdisjoint(nodes)

    def _go_on(self, gang: Gang, plan: RoomPlan, now: float) -> None:
        if not plan.begun and self._is_kept_from(gang, plan.nodes):
            self._end(gang.key, "changed", now)
            return
        # Once all have been told to go they go; but no gang waits for hours where it has no place.
        if (plan.is_slow or not plan.is_sent) and not self._kept.has_room(gang, plan):
            if plan.is_paid_for:
                self._lose(gang, plan, now)
            else:
                self._end(gang.key, "changed", now)
            return
        if plan.unchecked or not (plan.is_seen or plan.is_sent):
            if now >= plan.heard_at + CHECK_SECONDS:
                self._end(gang.key, "unanswered", now)
            return
        if plan.stage is Stage.CHECKING:
            self._noted.note(gang.key, plan, now)
        if plan.begun < len(plan.victims):
            plan.stage = Stage.EVICTING
            if not self._evict_next(gang, plan, now):
                self._end(gang.key, "changed", now)
                return
            if plan.begun < len(plan.victims) and now >= plan.heard_at + SEND_SECONDS:
                self._end(gang.key, "unanswered", now)
                return
        if plan.begun == len(plan.victims):
            if plan.draining_since is None:
                plan.stage, plan.draining_since = Stage.DRAINING, now
            self._drain(gang, plan, now)

    def _evict_next(self, gang: Gang, plan: RoomPlan, now: float) -> bool:
        """Have the next victims evicted; False if one to come is not what it was."""
        rest = plan.victims[plan.begun :]
        if self._is_kept_yet(plan):
            return True
        if not all(self.victims.stands(each, gang) for each in rest):
            return False
        for victim in rest:
            self.victims.evict(gang, victim, now)
            plan.begun += 1
            plan.unsent.update(victim.uids)
            plan.heard_at = now
            if self._is_kept_yet(plan):
                break
        return True

    def _is_kept_yet(self, plan: RoomPlan) -> bool:
        """Whether a budget may keep one that was begun: then no other goes."""
        begun = plan.victims[: plan.begun]
        return any(each.is_protected and self.victims.remaining(each) for each in begun)

    def _drain(self, gang: Gang, plan: RoomPlan, now: float) -> None:
        left = [uid for uid in plan.awaited if uid in self.books.bound]
        if not left:
            self._note_freed(plan, now)
            if plan.freed_at is not None and now >= plan.freed_at + SETTLE_SECONDS:
                self._lose(gang, plan, now)
            return
        known = self.occupants.by_uid
        ending = [uid for uid in left if known[uid].is_terminating]
        if len(ending) < len(left):
            if not all(map(self._kept.is_leaving, left)):
                self._end(gang.key, "changed", now)  # those that they went for need them no more
            elif now >= plan.heard_at + SEND_SECONDS:
                self._end(gang.key, "unanswered", now)
            return
        since = plan.heard_at
        late = [uid for uid in ending if now >= since + known[uid].grace_seconds + DRAIN_SECONDS]
        if len(late) == len(ending):
            self.left_alone.note_stuck(late)
            if plan.is_paid_for:
                self.in_vain.note_stuck(gang.key, plan.needed, late, now)
            self._end(gang.key, "stuck", now, who=late[0])
        elif now >= since + PATIENCE_SECONDS and not plan.is_told:
            plan.is_told = True
            longest = max(known[uid].grace_seconds for uid in ending) + DRAIN_SECONDS
            rest = since + longest - now
            pods = len(ending), len(plan.awaited)
            self.reports.awaits_room(gang, messages.awaits_room(gang.key, plan.where, *pods, rest))
        plan.is_slow = now >= since + SLOW_SECONDS

    def _note_freed(self, plan: RoomPlan, now: float) -> None:
        """The last pod is gone that the room was waited for."""
        if plan.freed_at is None and plan.draining_since is not None:
            plan.freed_at = now
            self._drained.append(now - plan.draining_since)

    def _lose(self, gang: Gang, plan: RoomPlan, now: float) -> None:
        """The gang has no place, or will have none: say who has taken it, if some pod has."""
        ending = self._kept.held_for_victims(plan)
        takers = [uid for node in plan.nodes if (uid := self._kept.taker(plan, node, ending))]
        thieves = [u for u in takers if self.occupants.by_uid[u].priority <= plan.priority]
        if thieves:
            self.left_alone.note_theft(plan.where, plan.nodes, now)
        who = (thieves or takers or [""])[0]
        self._end(gang.key, "taken" if takers else "lost", now, who)

    # -- the end -------------------------------------------------------------------------------

    def _end(self, key: GangKey, result: Result, now: float, who: str = "") -> None:
        """Keep no node for the gang any more, and evict no further pod for it."""
        plan = self.of.pop(key)
        self.results[result] += 1
        if result == "placed":  # often in the tick in which the last pod is gone
            self._note_freed(plan, now)
        if plan.is_paid_for and result != "withdrawn":
            self.in_vain.note(key, plan.needed, now)
        if result == "placed":
            self.in_vain.note_placed(key)
        self.nominations.end_kept(plan.places)
        self._noted.note_none(key, plan.needed, now)
        for uid in plan.pods:
            self.victims.of.pop(uid, None)
        for victim in plan.victims[: plan.begun]:
            self.victims.stop(plan, victim, now)
        self.reservations.capacity_grew(plan.nodes)
        gang = self.gangs.by_key.get(key)
        if gang is None or gang.number != plan.number:
            return
        if result == "withdrawn":
            self.reports.room_withdrawn(gang)
        stopped = self._why_stopped(gang, now)
        if result in AGAIN_RESULTS and not stopped:
            self._again.add(key)
        if result not in ("placed", *DRY_RESULTS):
            named = self._in_words(who, gang) if who in self.occupants.by_uid else ""
            self.reports.room_not_made(gang, messages.room_not_made(key, result, named, stopped))


def _wanted(gang: Gang) -> frozenset[str]:
    """The uids of all pods of a gang that need a node."""
    return frozenset(member.pod.uid for member in gang.unplanned())
