"""One Corral process: the real engine, and a model of what `app/main.py` wires around it.

    streams ──Event──▶ Engine ──Effects──▶ wakes, binds, ungates, evictions ──▶ API server
                         ▲  ▲        └──Refuse──▶ desk ──▶ kube-scheduler
          /filter, /bind ┘  └ ticks                 ▲ outcomes

A crash leaves nothing but the calls that had been sent. `incarnation` tells the engine of today
from that of before: what an earlier one had begun must not be told to a later one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from random import Random
from typing import Any

from app.dialects.spec import GangKey
from app.kube.core.objects import PodRecord
from app.kube.watch.events import Event
from app.state.effects import (
    STATUS,
    Annotate,
    Bind,
    BindFailed,
    BindOutcome,
    Delete,
    Effect,
    EmitEvent,
    Evict,
    EvictOutcome,
    Mark,
    PlaceAnswer,
    ReadAgain,
    RejectBind,
    Requeue,
    RoomAnswer,
    SeekPlace,
    SeekRoom,
    Suspend,
    TryEviction,
    Ungate,
    UngateFailed,
    UngateOutcome,
    WriteStatus,
)
from app.state.engine import Engine
from app.state.filter_result import FilterAnswer, Victims
from app.state.inputs import Inputs
from app.state.journal.record import Recorder
from app.state.settings import EngineSettings
from tests.app.state.world import Names
from tests.room_question import question_of
from tests.sim.api import ApiServer
from tests.sim.calls import Network, Work
from tests.sim.clock import Clock, History
from tests.sim.dialects import DIALECTS, remembering
from tests.sim.evictions import Evictions
from tests.sim.extender import Unavailable, in_words
from tests.sim.faults import Hits
from tests.sim.isolation import Admission, EvaluationFailed, Subject, make_fail
from tests.sim.life import Held, Life
from tests.sim.observer import Observer, PreemptCall
from tests.sim.told import outermost_told
from tests.sim.watch import Stream
from tests.sim.writes import PatchStatus, Writes

BIND_SECONDS = 8.0  # one binding with its retries
CALL_SECONDS = BIND_SECONDS / 3
ANSWER_SECONDS = 30.0  # the desk's own bound: gang_bind_seconds + BIND_SECONDS + a margin
WAKE_EVERY = 0.01  # seconds between two wakes: 100 a second

LOST_REPORTS = 0.25  # of all events: the queue is full, or the API server away
LOST_STATUSES = 0.1  # the same of statuses, until all is healed
LOST_SECONDS = 0.05
ROOM_SECONDS = 0.1  # a search for victims
LOOK_SECONDS = 0.02  # between two looks at whether the watch has caught up
PLACE_SECONDS = (0.05, 0.05, 0.3, 2.0, 30.0)  # one that is too long for the loop; the first …
MOST_SEARCH = 0.3  # seconds of it; the rest of that is in queues
FAILED_PLACES, TWICE_SHARE = 0.05, 0.05  # of their answers, … of these none, when all is healed
GONE_SHARE = 0.1  # of their gangs, until then

OpenJournal = Callable[[str, int], Callable[[bytes], None]]
"""Where the journal of this Corral, in this incarnation, is written."""


class Corral:
    """`observer` sees every input and every effect, and may end the process in between."""

    def __init__(
        self,
        clock: Clock,
        api: ApiServer,
        rng: Random,
        history: History,
        hits: Hits,
        network: Network,
        *,
        name: str,
        observer: Observer,
        settings: EngineSettings,
        tick_seconds: float,
        fails: Callable[[GangKey], bool] | None = None,
        evictions: Evictions | None = None,
        patch_status: PatchStatus | None = None,
        recreate: Callable[[str], None] | None = None,
        has_lease: bool = False,
    ) -> None:
        self.name = name
        self._recreate = recreate  # the workload of a pod
        self._fails = fails  # for which gangs our search raises
        self.settings = settings
        self.tick_seconds = tick_seconds
        self.paused_until = 0.0
        self.is_leading = True
        self._told: bool | None = None
        self.has_lease = has_lease
        self.lost_statuses = LOST_STATUSES
        self.are_places_late = True
        self.incarnation = 0
        self.life: Life | None = None
        self._open_journal: OpenJournal | None = None
        self._observer = observer
        self._writes = Writes(
            clock,
            api,
            rng,
            history,
            hits,
            name,
            lambda bind: observer.posting(self, bind),
            self._is_eviction_wanted,
        )
        self._evictions = evictions
        self._patch_status = patch_status  # of objects that have one, where there are such
        self._clock, self._api, self._rng = clock, api, rng
        self._report_rng = Random(name)
        self._place_rng = Random(f"place {name}")
        self._history, self._hits, self._network = history, hits, network

    # -- life and death ------------------------------------------------------------------------

    def start(self) -> None:
        """Begin with empty hands and read the cluster."""
        self.incarnation += 1
        self.paused_until = 0.0
        streams = {
            kind: Stream(
                self._clock, self._api, self._rng, kind, self._hear, lambda: self.paused_until
            )
            for kind in self.settings.kinds
        }
        began = self._rng.uniform(0.0, 1e6)
        engine = Engine(self.settings, self._on_fault, remembering(self.settings))
        if self._fails is not None:
            make_fail(engine, self._fails, self._hits)
        self.life = Life(engine, streams, self._clock.now, began)
        self.life.succeeded_and_gone = self._api.succeeded_and_gone
        self._begin_journal()
        self._history.say(f"{self.name}: starts")
        if self.has_lease:
            self._clock.after(0.0, self._alive(self._follow))
        for stream in self._rng.sample(list(streams.values()), len(streams)):
            stream.start(self._rng.uniform(0.01, 1.5))
        self._plan_tick()

    def keep_journals(self, open_journal: OpenJournal) -> None:
        """Record this life, which has not heard anything yet, and every later one."""
        assert self.life is not None
        assert self.life.inputs == 0, "a journal begins with a fresh engine"
        self._open_journal = open_journal
        self._begin_journal()

    def _begin_journal(self) -> None:
        if self._open_journal is not None and self.life is not None:
            write = self._open_journal(self.name, self.incarnation)
            self.life.recorder = Recorder(self.life.engine, self.settings, write)

    def crash(self, why: str) -> None:
        """Die at once; whoever waits for an answer sees a closed connection."""
        life = self._end(why)
        for held in life.desk.values():
            held.answer("connection closed")

    def stop(self) -> None:
        """Die as SIGTERM has it: refuse what is held, let bindings under way finish first."""
        life = self.life
        if life is None or life.is_drained:
            return
        life.is_drained = True
        self._feed(self.taking.drain(self.now), "drain")
        self._clock.after(BIND_SECONDS, self._alive(lambda: self.crash("stopped")))

    def pause(self, seconds: float) -> None:
        """Do nothing for a while; the monotonic clock goes on."""
        assert self.life is not None
        until = max(self.paused_until, self._clock.now + seconds)
        self.paused_until = self.life.slept_until = until
        self._history.say(f"{self.name}: sleeps for {seconds} s")

    def _end(self, why: str) -> Life:
        life = self.life
        assert life is not None, "the dead cannot die"
        self._history.say(f"{self.name}: ends: {why}")
        for stream in life.streams.values():
            stream.close()
        self.life = None
        return life

    def _alive(self, action: Callable[[], None]) -> Callable[[], None]:
        """The action, if this very process still lives by then; once it is awake again."""
        incarnation = self.incarnation

        def act() -> None:
            if self.life is None or self.incarnation != incarnation:
                return
            if self.paused_until > self._clock.now:
                self._clock.at(self.paused_until, act)
            else:
                action()

        return act

    @property
    def now(self) -> float:
        """What this process's monotonic clock says."""
        assert self.life is not None
        return self.life.clock_began + self._clock.now - self.life.began

    @property
    def engine(self) -> Engine:
        assert self.life is not None
        return self.life.engine

    @property
    def taking(self) -> Inputs:
        """What takes the inputs of the engine: the recorder, if a journal is kept."""
        assert self.life is not None
        return self.life.recorder or self.life.engine

    @property
    def is_up(self) -> bool:
        """Whether it answers."""
        return self.life is not None and not self.life.is_drained

    # -- who leads -----------------------------------------------------------------------------

    def _follow(self) -> None:
        """Begin as every Corral does that has a Lease to look at."""
        self._step(None, "", lambda: self.taking.lead(False, self.now))
        self._polled(is_leading=self.is_leading if self._told is None else self._told)

    def poll(self, *, is_leading: bool) -> None:
        """Read the Lease; then do as `app/process/taking_over.py`."""
        # One that sleeps, or dies meanwhile, reads once it is there again what the Lease says then.
        self._told = is_leading
        if self.life is None:
            self.is_leading = is_leading
        else:
            self._alive(lambda: self._polled(is_leading=self._told is True))()

    def _polled(self, *, is_leading: bool) -> None:
        self.is_leading = is_leading
        if not self.has_lease:
            return
        if not is_leading:
            self._step(None, "", lambda: self.taking.lead(False, self.now))
        elif not self.engine.planner.leads:
            self._take_over(len(self._api.changes["Pod"]))

    def _take_over(self, changes: int) -> None:
        """Lead once so many changes of pods have been heard."""
        assert self.life is not None
        if not self.is_leading or self.engine.planner.leads:
            return
        if self.life.streams["Pod"].has_heard(changes):
            self._history.say(f"{self.name}: leads")
            self._step(None, "", lambda: self.taking.lead(True, self.now))
        else:
            self._clock.after(LOOK_SECONDS, self._alive(lambda: self._take_over(changes)))

    # -- inputs --------------------------------------------------------------------------------

    def _plan_tick(self) -> None:
        self._clock.after(self.tick_seconds, self._alive(self._tick))

    def _tick(self) -> None:
        self._step(None, "", lambda: self.taking.tick(self.now))
        if self.life is not None:
            self._plan_tick()

    def _hear(self, event: Event) -> None:
        incarnation = self.incarnation
        self._step(event, type(event).__name__, lambda: self.taking.apply(event, self.now))
        if self.life is not None and self.incarnation == incarnation:
            self._observer.heard(self, event)

    def _step(self, subject: Subject, text: str, take: Callable[[], list[Effect]]) -> None:
        """One input and what follows from it."""
        self._observer.takes(self, subject)
        effects = take()
        self._observer.taken(self, subject, effects)
        self._feed(effects, text)

    def _on_fault(self, where: str, error: Exception) -> None:
        """What `app/process/driver.py` logs; here nothing but what is meant to fails."""
        if not isinstance(error, EvaluationFailed):
            raise error
        self._history.say(f"{self.name}: {where} raises")

    def carry_out(self, effects: Sequence[Effect]) -> None:
        """Do what an input asked for that somebody else gave to the engine."""
        self._feed(effects, "again")

    def filter(self, pod: PodRecord, names: Sequence[str]) -> FilterAnswer:
        """Raises: Unavailable."""
        self._up()
        self._observer.takes(self, pod.uid)
        answer, effects = self.taking.filter(pod, Names(names), self.now)
        self._observer.taken(self, pod.uid, effects)
        self._history.say(f"{self.name}: filter {pod.name} of {len(names)}: {in_words(answer)}")
        self._observer.answered(self, pod, names, answer)
        self._feed(effects, "filter")
        self._up()  # or the answer is lost with us
        return answer

    def admit(self, pod: PodRecord) -> tuple[str, ...] | None:
        """What its webhook answers about a pod without a name and a uid, as `app/main.py` has it.

        Raises: Unavailable.
        """
        if self.life is None:
            raise Unavailable
        if not self.is_leading:
            return None
        claim = DIALECTS.claim(pod)
        assert claim is not None, "it is asked about members"
        gang = outermost_told(self.life, claim.gang, pod)
        subject = Admission(gang)
        self._observer.takes(self, subject)
        answer, effects = self.taking.admit(pod, pod.namespace, self.now)
        self._observer.taken(self, subject, effects)
        self._history.say(f"{self.name}: admits a pod of {gang}: {answer}")
        self._observer.admitted(self, gang, answer)
        self._feed(effects, "admit")
        if self.life is None:  # the answer is lost with it
            raise Unavailable
        return answer

    def prioritize(self, pod: PodRecord, names: Sequence[str]) -> Sequence[int]:
        """Raises: Unavailable."""
        life = self._up()
        if not life.engine.is_synced:
            return [0] * len(names)
        self._observer.takes(self, pod.uid)
        scores = self.taking.prioritize(pod, Names(names), self.now)
        self._observer.taken(self, pod.uid, ())
        return scores

    def preempt(self, pod: PodRecord, offered: Mapping[str, Victims]) -> Mapping[str, Victims]:
        """Raises: Unavailable."""
        self._up()
        self._observer.takes(self, pod.uid)
        answer, effects = self.taking.preempt(pod, offered, self.now)
        self._observer.taken(self, pod.uid, effects)
        chosen = {node: " ".join(victims.uids) for node, victims in answer.items()}
        self._history.say(f"{self.name}: preempt {pod.name} on {len(offered)}: {chosen or 'none'}")
        asked = PreemptCall(pod, offered, answer)
        self._observer.chose(self, asked)
        self._feed(effects, "preempt")
        self._observer.preempted(self, asked)
        self._up()  # or the answer is lost with us
        return answer

    def bind(
        self, namespace: str, name: str, uid: str, node: str, answer: Callable[[str], None]
    ) -> None:
        """Raises: Unavailable."""
        if self.paused_until > self._clock.now and self.life is not None:

            def later() -> None:
                try:
                    self.bind(namespace, name, uid, node, answer)
                except Unavailable:
                    answer("connection refused")

            self._clock.at(self.paused_until, self._alive(later))
            return
        life = self._up()
        if not self.is_leading:
            self._hits.hit("F6 both act")
        held = life.desk.get(uid)
        self._history.say(f"{self.name}: bind {name} to {node} arrives")
        if held is not None and held.node == node:
            before = held.answer

            def both(sentence: str) -> None:
                before(sentence)
                answer(sentence)

            held.answer = both
            return
        if held is not None:
            self._answer(uid, f"the pod was sent to node {node} meanwhile")
        held = life.desk[uid] = Held(node, answer, self._clock.now)
        self._clock.after(ANSWER_SECONDS, self._alive(lambda: self._give_up(uid, held)))
        self._observer.takes(self, uid)
        self._observer.arriving(self, uid, node)
        effects = self.taking.bind_arrived(namespace, name, uid, node, self.now)
        self._observer.arrived(self, uid, node)
        self._observer.taken(self, uid, effects)
        self._feed(effects, "bind")

    def _up(self) -> Life:
        if self.life is None or self.life.is_drained:
            raise Unavailable
        return self.life

    def _give_up(self, uid: str, held: Held) -> None:
        assert self.life is not None
        if self.life.desk.get(uid) is held:
            self._history.say(f"{self.name}: gives up on /bind of {uid}")
            self._answer(uid, "the gang did not start in time")

    def _answer(self, uid: str, sentence: str) -> None:
        assert self.life is not None
        held = self.life.desk.pop(uid, None)
        if held is not None:
            self._clock.after(self._rng.uniform(0.001, 0.02), lambda: held.answer(sentence))

    # -- effects -------------------------------------------------------------------------------

    def _feed(self, effects: Sequence[Effect], text: str) -> None:
        life = self.life
        assert life is not None
        life.inputs += 1
        assert self.now >= life.last_now, "monotonic time went back"
        life.last_now = self.now
        if effects:
            self._observer.decided(self, effects)
        if text or effects:
            self._observer.took(self, text)
        crash_after = self._observer.crash_after(self, effects) if effects else None
        for index, effect in enumerate(effects):
            if crash_after == index:
                self.crash(f"after {index} of {len(effects)} effects")
                return
            self._carry_out(effect)

    def _carry_out(self, effect: Effect) -> None:
        life = self.life
        assert life is not None
        match effect:
            case Bind():
                life.posted[effect.uid] = effect.node
                life.binding[effect.uid] = life.binding.get(effect.uid, 0) + 1
                self._work(self._binding(effect))
            case RejectBind():
                self._history.say(f"{self.name}: refuses {effect.uid}: {effect.sentence}")
                self._answer(effect.uid, effect.sentence)
            case EmitEvent():
                self._history.say(f"{self.name}: reports {effect.reason}: {effect.sentence}")
                if self._report_rng.random() < LOST_REPORTS:
                    self._clock.after(LOST_SECONDS, self._alive(lambda: self._lose(effect)))
            case Requeue() if self.is_leading:
                if effect.uid not in life.wakes:
                    life.wakes[effect.uid] = effect
                    pause = WAKE_EVERY * len(life.wakes)
                    self._clock.after(pause, self._alive(self._next_wake))
            case Annotate() if self.is_leading:
                self._work(self._writes.annotate(effect))
            case Ungate():
                self._work(self._ungating(effect))
            case Mark() if self.is_leading:
                self._work(self._writes.mark(effect))
            case Evict() | TryEviction() if self.is_leading and self._evictions is not None:
                self._work(self._evicting(effect, self._evictions))
            case Evict(is_given_back=True) if self.is_leading:
                self._work(self._giving_back(effect))
            case Suspend() if self.is_leading:
                self._work(self._suspending(effect))
            case Evict() | Delete() if self.is_leading:
                self._work(self._writes.remove(effect))
            case ReadAgain():
                pods = life.streams[effect.kind]
                pods.edition = life.engine.kept_keys.labels.edition
                pods.expire(self._report_rng.uniform(0.1, 1.0))
            case WriteStatus() if self.is_leading and self._patch_status is not None:
                self._write_status(effect, self._patch_status)
            case SeekRoom() if self.is_leading:
                self._seek_room(effect.gang)
            case SeekPlace():
                self._seek_place(effect.gang)

    def _seek_room(self, gang: GangKey) -> None:
        """The answer is to the question as it is now, and comes a little later."""
        question = question_of(self.engine, gang)
        answer = None if question is None else question.answer()
        if answer is not None:
            self._observer.found_room(self, gang, answer)
        self._clock.after(ROOM_SECONDS, self._alive(lambda: self._room_found(gang, answer)))

    def _seek_place(self, gang: GangKey) -> None:
        """The answer is to the books as they were when it was asked, and comes later, or never."""
        question, rng = self.engine.searches_on.request(gang), self._place_rng
        number = self._number_of(gang)
        answer = None if question is None else question.answer()
        late = rng.choice(PLACE_SECONDS) if self.are_places_late else PLACE_SECONDS[0]
        if self.are_places_late and rng.random() < FAILED_PLACES:
            answer = None
        seconds = min(late, MOST_SEARCH)
        found = self._alive(lambda: self._place_found(gang, number, answer, seconds))
        self._clock.after(late, found)
        if self.are_places_late and rng.random() < TWICE_SHARE:
            self._clock.after(2 * late, found)
        if rng.random() < GONE_SHARE:
            self._clock.after(late / 2, self._alive(lambda: self._make_again(gang)))

    def _make_again(self, gang: GangKey) -> None:
        """Have the owner of a gang delete it, and create it once more."""
        known = self.engine.gangs.by_key.get(gang)
        if known is None or not known.members or self._recreate is None:
            return
        if self.are_places_late:
            self._recreate(next(iter(known.members)))

    def _number_of(self, gang: GangKey) -> int | None:
        known = self.engine.gangs.by_key.get(gang)
        return None if known is None else known.number

    def _place_found(
        self, gang: GangKey, number: int | None, answer: PlaceAnswer | None, seconds: float
    ) -> None:
        self._hits.hit("W place sought")
        if self._number_of(gang) != number:
            self._hits.hit("F23 gone")
        self._history.say(f"{self.name}: place for {gang}: {answer}")
        self._step(None, "place", lambda: self.taking.place_found(gang, answer, seconds, self.now))

    def _room_found(self, gang: GangKey, answer: RoomAnswer | None) -> None:
        self._hits.hit("W room sought")
        if answer is not None:
            self._history.say(f"{self.name}: room for {gang}: {answer}")
        self._step(
            None, "room", lambda: self.taking.room_found(gang, answer, ROOM_SECONDS, self.now)
        )

    def _evicting(self, effect: Evict | TryEviction, evictions: Evictions) -> Work:
        if isinstance(effect, Evict) and effect.is_given_back:
            self._hits.hit("W given back")
        outcome = yield from self._writes.evict(effect, evictions, self._pause)
        self._alive(lambda: self._eviction_ended(effect, outcome))()

    def _giving_back(self, effect: Evict) -> Work:
        """Where no others are evicted for gangs."""
        yield 0.0  # never from inside the call that asked for it
        if not self.engine.is_eviction_wanted(effect):
            return
        self._hits.hit("W given back")
        outcome = yield from self._writes.give_back(effect)
        self._alive(lambda: self._eviction_ended(effect, outcome))()

    def _suspending(self, effect: Suspend) -> Work:
        yield 0.0  # never from inside the call that asked for it
        if not self.engine.is_eviction_wanted(effect):
            self._alive(lambda: self._eviction_ended(effect, "dropped"))()
            return
        self._observer.suspending(self, effect)
        self._hits.hit("W resumed" if effect.ends else "W suspended")
        outcome = yield from self._writes.suspend(effect)
        self._alive(lambda: self._eviction_ended(effect, outcome))()
        self._observer.suspended(self, effect, outcome)

    def _pause(self) -> float:
        return max(0.0, self.paused_until - self._clock.now)

    def _is_eviction_wanted(self, effect: Evict) -> bool:
        """Asked just before it is sent."""
        if not self.engine.is_eviction_wanted(effect):
            self._hits.hit("F21 withdrawn")
            return False
        self._observer.evicting(self, effect)
        return True

    def _eviction_ended(self, effect: Evict | TryEviction | Suspend, outcome: EvictOutcome) -> None:
        uid, name = effect.uid, type(effect).__name__
        self._history.say(f"{self.name}: {name} {effect.name} ended: {outcome}")
        is_trial = isinstance(effect, TryEviction)
        if isinstance(effect, Evict) and effect.is_given_back and outcome == "refused":
            self._note_refusal(uid)

        def take() -> list[Effect]:
            give = self.taking.eviction_tried if is_trial else self.taking.eviction_finished
            return give(uid, outcome, self.now)

        incarnation = self.incarnation
        self._step(uid, name, take)
        if self.life is not None and self.incarnation == incarnation:
            self._observer.eviction_ended(self, take)

    def _note_refusal(self, uid: str) -> None:
        gang = self.engine.gangs.of_pod(uid)
        if gang is not None and self.life is not None:
            self.life.refused_at[gang.key] = self.now

    def _lose(self, effect: EmitEvent) -> None:
        self._hits.hit("F18 report dropped")
        args = (effect.gang, effect.reason, effect.about.uid)
        self._step(None, "report lost", lambda: self.taking.write_lost(*args, self.now))

    def _write_status(self, effect: WriteStatus, patch: PatchStatus) -> None:
        """One after the other; a newer one takes the place of one that still waits."""
        life = self.life
        assert life is not None
        if self._report_rng.random() < self.lost_statuses:
            self._clock.after(LOST_SECONDS, self._alive(partial(self._status_lost, effect)))
            return
        is_idle = not life.statuses
        life.statuses[effect.uid] = effect
        if is_idle:
            self._work(self._writing(life, patch))

    def _writing(self, life: Life, patch: PatchStatus) -> Work:
        yield 0.0  # never from inside the call that asked for it
        while life.statuses:
            uid = next(iter(life.statuses))
            effect = life.statuses[uid]
            outcome = yield from self._writes.status(effect, patch)
            self._history.say(f"{self.name}: status {effect.path}: {outcome}")
            if life.statuses[uid] is effect:
                del life.statuses[uid]
            if outcome == "lost":
                self._alive(partial(self._status_lost, effect))()

    def _status_lost(self, effect: WriteStatus) -> None:
        self._hits.hit("F18 status dropped")
        if self.life is not None:
            self.life.let_in.pop(effect.uid, None)  # whether it may be is looked at again
        args = (effect.gang, STATUS, effect.uid)
        self._step(None, "status lost", lambda: self.taking.write_lost(*args, self.now))

    def _work(self, work: Work) -> None:
        life = self.life
        self._network.run(work, lambda: self.life is life, CALL_SECONDS)

    def _next_wake(self) -> None:
        assert self.life is not None
        if self.life.wakes:
            uid = next(iter(self.life.wakes))
            self._work(self._writes.wake(self.life.wakes.pop(uid)))

    def _binding(self, bind: Bind) -> Work:
        outcome = yield from self._writes.bind(bind)
        self._alive(lambda: self._bind_finished(bind, outcome))()

    def _ungating(self, effect: Ungate) -> Work:
        outcome: UngateOutcome = UngateFailed("another replica leads")
        if self.is_leading:
            outcome = yield from self._writes.ungate(effect)
        else:
            yield 0.0  # never from inside the call that asked for it

        def finished() -> None:
            self._step(
                effect.uid,
                "ungate finished",
                lambda: self.taking.ungate_finished(effect.uid, outcome, self.now),
            )

        self._alive(finished)()

    def _bind_finished(self, bind: Bind, outcome: BindOutcome) -> None:
        life = self.life
        assert life is not None
        self._history.say(f"{self.name}: bind of {bind.name} ended: {outcome}")
        life.binding[bind.uid] -= 1
        if not life.binding[bind.uid]:
            del life.binding[bind.uid]
        if isinstance(outcome, BindFailed):
            life.posted.pop(bind.uid, None)
        elif _is_bound(life.streams["Pod"].mirror.get(bind.name), bind.uid):
            self._hits.hit("F4 bound early")
        self._observer.bind_ended(self, bind, outcome)
        held = life.desk.get(bind.uid)
        if held is not None:
            if isinstance(outcome, BindFailed):
                self._answer(bind.uid, outcome.sentence)
            elif held.node != bind.node:
                self._answer(bind.uid, f"the pod is already bound to node {bind.node}")
            else:
                self._answer(bind.uid, "")
        self._step(
            bind.uid,
            "bind finished",
            lambda: self.taking.bind_finished(bind.uid, outcome, self.now),
        )


def _is_bound(pod: Any, uid: str) -> bool:
    return pod is not None and pod.uid == uid and bool(pod.node)
