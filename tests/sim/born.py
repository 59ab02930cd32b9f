"""Corral's webhook on the way of a pod's creation, in seeds where gangs are born in place.

    controller ─▶ API server ─/mutate─▶ a Corral ─▶ narrowed, or the gate ─▶ webhooks after it
                     ├ quota refuses it ◀────────────────────────────────────────────┤
                     └ stored: at once, late, never; without an answer as it came ◀──┘

The webhook's failurePolicy is Ignore. Of two Corrals any may be asked, also one that is down,
sleeps or does not lead. All random numbers are of its own: the other seeds are the histories that
they were.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import partial
from random import Random
from typing import TYPE_CHECKING, Any

import msgspec

from app.dialects import corral as own
from app.kube.core.objects import Owner, PodRecord, Requirement, Term, Toleration
from tests.records import RACK, REQUIRED
from tests.sim.dialects import DIALECTS
from tests.sim.extender import Unavailable
from tests.sim.kinds import MAINTENANCE, Template, Workload, draw
from tests.sim.workloads import FOREIGN_GATE

if TYPE_CHECKING:
    from tests.sim.corral import Corral
    from tests.sim.world import World

SHARE = 1 / 5  # of the seeds
CALL_SECONDS = (0.002, 0.03)  # of a creation that nothing goes wrong with
TIMEOUT_SECONDS = 5.0  # of a call of the webhook
DOWN_PER_MINUTE, DOWN_SECONDS = 1.0, (1.0, 15.0)
LATE_SECONDS = (0.5, 20.0)
NEVER_SECONDS = (5.0, 60.0)  # until the controller tries again
SHORT_SECONDS = (15.0, 90.0)  # for which a controller makes fewer pods than it said
LOST_SECONDS = (0.0, 1.0)  # from an answer until a node of it is lost
AGAIN_SECONDS = (10.0, 90.0)  # until such a node is back
LWS_OWNER = "leaderworkerset"
# Of all creations, where a seed has the fault, times what it draws; the others are of those alone
# that a pod is narrowed by.
FAULTS = {"quota": 1.0, "late": 1.0, "never": 1.0, "unanswered": 1.0}
FAULTS_BORN = {"dry run": 6.0, "twice": 9.0, "node": 24.0, "crash": 11.0}
MOST_SHARE = 0.7
CRASHES_SUSPENDED = 0.5  # of the few that are
PER_MINUTE = 30.0  # workloads whose pods a controller makes, beside the others
MOST_WORKLOADS = 5  # at a time
OTHERS_PER_MINUTE = 4.0
MORE_SECONDS = 30.0  # until all is healed
LED_SHARE = 0.6  # of the calls come to the Corral that leads in any case
RUNS_SECONDS = (1.0, 15.0)  # they are short: one is born where there is room
OWNED = ("job", "jobset", "lws", "statefulset")
Answer = tuple[str, ...] | None
Done = Callable[[PodRecord | None], None]
"""Told what is stored; None: nothing."""


@dataclass(frozen=True, slots=True)
class Born:
    """What a seed draws about it. `shares`: of the creations that each fault happens to."""

    seconds: float
    narrow_nodes: int
    shares: tuple[tuple[str, float], ...]
    short: float  # share of the workloads whose last pods come later than said
    others: float  # share of the workloads whose pods another webhook changes after ours
    is_down: bool  # now and then


def born_of(seed: int) -> Born | None:
    """How gangs are born in place in this world, if they are."""
    rng = Random(f"seed {seed}: born")  # the seeds of tests/sim/test_sim.py stay as they are
    if rng.random() >= SHARE:
        return None
    intensity = rng.choice((0.02, 0.05, 0.1, 0.15))
    shares = tuple(
        (fault, min(intensity * often, MOST_SHARE) * rng.choice((0.0, 1.0, 1.0, 1.0)))
        for fault, often in (FAULTS | FAULTS_BORN).items()
    )
    return Born(
        seconds=rng.choice((3.0, 3.0, 10.0, 10.0, 30.0)),
        narrow_nodes=rng.choice((2, 3, 4, 6, 6, 128)) if rng.random() < 0.95 else 0,
        shares=shares,
        short=rng.choice((0.4, 0.6, 0.8)),
        others=rng.choice((0.2, 0.4, 0.6)),
        is_down=rng.random() < 0.5,
    )


class Webhook:
    """Where the pods of all controllers come by."""

    def __init__(self, world: World, born: Born) -> None:
        self._world, self._born = world, born
        self._rng = Random(f"webhook {world.seed}")
        self._shares = dict(born.shares)
        self._down_until = 0.0
        self._short: dict[tuple[str, int], float] = {}  # of a workload's epoch: until when
        self._changes: dict[tuple[str, int], str] = {}  # what another webhook does to its pods
        self._waiting: dict[int, Callable[[], None]] = {}  # creations that are late
        self._numbers = 0
        self.is_healed = False

    def begin(self) -> None:
        """Have gangs come from now on, and it go down, where that is drawn."""
        self._world.clock.after(self._rng.uniform(0.0, 5.0), self._come)
        if self._born.is_down:
            self._world.clock.after(self._rng.expovariate(DOWN_PER_MINUTE / 60.0), self._go_down)

    def _come(self) -> None:
        world, rng, workloads = self._world, self._rng, self._world.workloads
        if self.is_healed:
            return
        if len(workloads.all) < MOST_WORKLOADS:
            found = self._drawn()
            found.name = workloads.new_name(found.kind)
            workloads.begin(found)
        world.clock.after(rng.expovariate(PER_MINUTE / 60.0), self._come)

    def _drawn(self) -> Workload:
        profile = self._world.profile
        while True:
            found = draw(self._rng, profile.most_pods, profile.gpus, profile.gated_share)
            if found.kind in OWNED:
                found.seconds = self._rng.uniform(*RUNS_SECONDS)
                found.failures_left = self._rng.choice((None, 0, 0, 6))
                return found

    def heal(self) -> None:
        """Nothing goes wrong any more, and every pod that is to come does."""
        self.is_healed = True
        self._shares, self._down_until = {}, 0.0
        self._short.clear()
        waiting, self._waiting = list(self._waiting.values()), {}
        for act in waiting:
            act()

    def _go_down(self) -> None:
        if self.is_healed:
            return
        seconds = self._rng.uniform(*DOWN_SECONDS)
        self._down_until = self._world.clock.now + seconds
        self._world.history.say(f"the webhook is down for {seconds:.1f} s")
        self._world.clock.after(
            seconds + self._rng.expovariate(DOWN_PER_MINUTE / 60.0), self._go_down
        )

    def _happens(self, fault: str) -> bool:
        share = self._shares.get(fault, 0.0)
        return share > 0.0 and self._rng.random() < share

    # -- controllers ---------------------------------------------------------------------------

    def is_held_back(self, workload: Workload, name: str) -> bool:
        """Whether its controller does not make this pod yet, though it said so many."""
        if not workload.is_gang:
            return False
        of = workload.name, workload.epoch
        if of not in self._short:
            is_short = not self.is_healed and self._rng.random() < self._born.short
            seconds = self._rng.uniform(*SHORT_SECONDS) if is_short else 0.0
            if is_short:
                self._world.hits.hit("F22 fewer")
            self._short[of] = self._world.clock.now + seconds
        is_last = name == list(workload.names)[-1]
        return is_last and self._world.clock.now < self._short[of]

    def create(self, workload: Workload, pod: PodRecord, done: Done) -> None:
        """Have a pod created, which has no uid yet."""
        if workload.kind == "lws":
            pod = msgspec.structs.replace(
                pod, owner=Owner("apps/v1", "StatefulSet", workload.name, LWS_OWNER)
            )
        if self._happens("dry run") and self._ask(pod) is not None:
            self._world.hits.hit("F22 dry run")
        if self._happens("unanswered"):
            # The answer is lost on its way: the API server waits for it, and goes on without.
            self._world.hits.hit("F22 unanswered")
            self._ask(pod)
            self._later(TIMEOUT_SECONDS, partial(done, pod))
            return
        corral = self._reached()
        if corral is not None and self._sleeps(corral):
            self._world.hits.hit("F22 down")
            self._world.clock.at(corral.paused_until, partial(self._answered_in_vain, corral, pod))
            self._later(TIMEOUT_SECONDS, partial(done, pod))
            return
        stored = self._mutated(corral, pod)
        self._go_on(self._changed(workload, stored), done)

    def _go_on(self, pod: PodRecord, done: Done) -> None:
        """What comes after the webhooks."""
        hits, rng = self._world.hits, self._rng
        if self._happens("quota"):
            hits.hit("F22 quota")
            self._world.history.say(f"a quota refuses {pod.name}")
            done(None)
        elif self._happens("late"):
            hits.hit("F22 late")
            self._later(rng.uniform(*LATE_SECONDS), partial(done, pod))
        elif self._happens("never"):
            hits.hit("F22 never")
            self._world.history.say(f"{pod.name} is not created")
            self._later(rng.uniform(*NEVER_SECONDS), partial(done, None))
        else:
            self._world.clock.after(rng.uniform(*CALL_SECONDS), partial(done, pod))

    def _later(self, seconds: float, act: Callable[[], None]) -> None:
        """Do it after a while, or when all is healed."""
        if self.is_healed:
            act()
            return
        self._numbers += 1
        number = self._numbers
        self._waiting[number] = act

        def due() -> None:
            if self._waiting.pop(number, None) is not None:
                act()

        self._world.clock.after(seconds, due)

    # -- the call ------------------------------------------------------------------------------

    def _reached(self) -> Corral | None:
        """The Corral that a call comes to; None: none answers."""
        if self._world.clock.now < self._down_until:
            return None
        there = [each for each in self._world.corrals if each.life is not None]
        leading = [each for each in there if each.is_leading]
        if leading and self._rng.random() < LED_SHARE:
            return leading[0]
        # A Service goes on for a moment with one that is gone.
        some = there if self._rng.random() < 0.8 else self._world.corrals
        chosen = self._rng.choice(some) if some else None
        return chosen if chosen in there else None

    def _sleeps(self, corral: Corral) -> bool:
        return corral.paused_until > self._world.clock.now + TIMEOUT_SECONDS

    def _ask(self, pod: PodRecord) -> Answer:
        """Ask once more than is needed: nothing comes of the answer."""
        corral = self._reached()
        if corral is None or self._sleeps(corral) or not _gets_gate(pod):
            return None
        try:
            return corral.admit(_unnamed(pod))
        except Unavailable:
            return None

    def _answered_in_vain(self, corral: Corral, pod: PodRecord) -> None:
        """A process that slept answers a call that is over."""
        if corral.life is not None and _gets_gate(pod):
            corral.admit(_unnamed(pod))

    def _mutated(self, corral: Corral | None, pod: PodRecord, *, again: bool = False) -> PodRecord:
        """The pod as the webhook leaves it."""
        hits = self._world.hits
        if not _gets_gate(pod):
            return pod
        if corral is None:
            hits.hit("F22 down")
            return pod
        try:
            answer = corral.admit(_unnamed(pod))
        except Unavailable:
            hits.hit("F22 down")
            return pod
        if not corral.is_leading:
            hits.hit("F22 not leading")
        changed = _narrowed(pod, answer)
        if answer and not again:
            hits.hit("W born")
            self._follow(corral, answer)
        if answer is not None and not again and self._happens("twice"):
            hits.hit("F22 twice")
            return self._mutated(self._reached(), changed, again=True)
        return changed

    def _follow(self, corral: Corral, answer: Collection[str]) -> None:
        """What goes wrong between an answer and the event of the pod."""
        world, rng = self._world, self._rng
        planned = sorted(set(answer) & corral.engine.books.held_on.keys())
        if planned and self._happens("node"):
            world.hits.hit("F22 node lost")
            world.clock.after(rng.uniform(*LOST_SECONDS), partial(self._lose, planned))
        if self._happens("crash"):

            def crash() -> None:
                if corral.life is not None and not self.is_healed:
                    world.crash(corral, "F22 crash")

            world.clock.after(rng.uniform(0.0, 0.05), crash)

    def follow_suspension(self, corral: Corral) -> None:
        """What goes wrong between the suspension of a Job and its going on."""
        if self._rng.random() >= CRASHES_SUSPENDED:
            return

        def crash() -> None:
            if corral.life is not None and not self.is_healed:
                self._world.crash(corral, "F22 crash suspended")

        self._world.clock.after(self._rng.uniform(0.0, 1.0), crash)

    def _lose(self, names: list[str]) -> None:
        """One of these nodes goes, or all of them close or are taken by others."""
        chaos, rng = self._world.chaos, self._rng
        how = rng.choice(("gone", "closed", "closed", "taken"))
        for name in [rng.choice(names)] if how == "gone" else names:
            if how == "taken":
                chaos.take_node(name)
            else:
                chaos.lose_node(name, rng.uniform(*AGAIN_SECONDS), is_gone=how == "gone")

    def _changed(self, workload: Workload, pod: PodRecord) -> PodRecord:
        """The pod as another webhook leaves it, which is called after ours."""
        of = workload.name, workload.epoch
        if of not in self._changes:
            is_changed = not self.is_healed and self._rng.random() < self._born.others
            kinds = ("gate", "toleration", "toleration")
            self._changes[of] = self._rng.choice(kinds) if is_changed else ""
        if not self._changes[of] or self.is_healed:
            return pod
        if own.BORN in pod.annotations:
            self._world.hits.hit("F22 other webhook")
        if self._changes[of] == "gate":
            return msgspec.structs.replace(pod, gates=(*pod.gates, FOREIGN_GATE))
        more = Toleration(MAINTENANCE, "Exists", "", "")
        if more in pod.shape.tolerations:
            return pod
        shape = msgspec.structs.replace(pod.shape, tolerations=(*pod.shape.tolerations, more))
        return msgspec.structs.replace(pod, shape=shape)


def _gets_gate(pod: PodRecord) -> bool:
    """Whether the webhook would give it the gate, as `app/admission/mutating/mutate.py` decides."""
    is_member = DIALECTS.claim(pod) is not None
    return is_member and not DIALECTS.lifts_gates(pod) and own.GATE not in pod.gates


def _unnamed(pod: PodRecord) -> PodRecord:
    return msgspec.structs.replace(pod, name="", uid="", version="", created="")


def _narrowed(pod: PodRecord, answer: Answer) -> PodRecord:
    """The pod as the answer has it stored."""
    labels = {**pod.labels, own.MANAGED: "true"}
    if answer is None:
        return msgspec.structs.replace(pod, labels=labels, gates=(*pod.gates, own.GATE))
    if not answer:
        return pod
    terms = tuple(Term(fields=(Requirement("metadata.name", "In", (node,)),)) for node in answer)
    said = {**pod.annotations, own.BORN: own.NODES}
    shape = msgspec.structs.replace(pod.shape, terms=terms)
    return msgspec.structs.replace(pod, labels=labels, annotations=said, shape=shape)


def settings_with(settings: tuple[tuple[str, Any], ...], born: Born) -> tuple[tuple[str, Any], ...]:
    """The engine's settings of a world where gangs are born in place."""
    return (*(each for each in settings if each[0] != "narrow_nodes"),
            ("narrow_nodes", born.narrow_nodes), ("born_seconds", born.seconds))  # fmt: skip


def whole_rack(world: World) -> Workload:
    """A Job that takes all of the largest rack."""
    gpus, pods = world.profile.gpus, max(world.profile.racks)
    return Workload(
        name=world.workloads.new_name("job"),
        kind="job",
        templates=(Template(pods, gpus, 1000),),
        annotations={REQUIRED: RACK},
        priority=0,
        is_gated=True,
        seconds=1000.0,
        declared=pods,
    )
