"""One history: a cluster, its workloads, kube-scheduler, one or two Corrals, and what goes wrong.

    workloads, kubelets ──▶ API server ◀── chaos (nodes, pods, watches, processes)
                              │  ▲
          streams, each late ─┘  └─ bindings, wakes, ungatings over a bad network
                              ▼
    kube-scheduler ──/filter, /prioritize, /bind──▶ Corral (the real Engine) ──▶ checks

    0 s ── chaos ── heal ── settle: L1 to L4 ── thaw: gangs end, others follow ── crowd: L3
        ── empty: I7 ── fresh: L1

One thread, one heap, one `Random(seed)`: the same seed is the same history, byte for byte.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from random import Random

from app.kube.core.objects import Amounts, PodRecord
from app.kube.watch.events import Kind
from app.state.settings import EngineSettings
from tests.records import BLOCK, RACK, node
from tests.sim.afterwards import (
    STARVATION_SECONDS,
    crowd,
    fresh,
    fresh_born,
    fresh_workload,
)
from tests.sim.api import KINDS as KINDS_READ
from tests.sim.api import WITH_BUDGETS, ApiServer
from tests.sim.asking import asking_of
from tests.sim.at_rest import SETTLE_SECONDS, judge
from tests.sim.born import MORE_SECONDS, OTHERS_PER_MINUTE, Webhook, born_of, settings_with
from tests.sim.born_checks import BornChecks
from tests.sim.calls import Network
from tests.sim.chaos import KINDS, Chaos
from tests.sim.checks import Checks
from tests.sim.clock import Clock, History
from tests.sim.composite.life import Composites
from tests.sim.corral import Corral
from tests.sim.evictions import LEAST_SECONDS, Contest, evictions_of
from tests.sim.faults import Hits
from tests.sim.grove.life import Grove
from tests.sim.growing import MOST_SECONDS, Growing
from tests.sim.growth import Growth, growth_of
from tests.sim.kai.in_parts import InParts
from tests.sim.kai.life import Kai
from tests.sim.kinds import POOL
from tests.sim.kube_scheduler import SCHEDULER, KubeScheduler
from tests.sim.liveness import (
    check_empty,
)
from tests.sim.making_room import RoomChecks
from tests.sim.mode import USUAL, Mode
from tests.sim.native.life import Native
from tests.sim.objects import Objects
from tests.sim.preemption import PreemptionChecks
from tests.sim.preemptors import Preemptors, preemption_of
from tests.sim.profile import narrowed_pods_given_back, profile_of, visits_per_search
from tests.sim.violation import Violation
from tests.sim.vocabulary import Contested, Vocabulary
from tests.sim.volcano.life import Volcano
from tests.sim.watch import QUICK, Stream
from tests.sim.workloads import Workloads

QUIET_SECONDS = 25.0
# ^ after gangs have ended: 10 s until they are deleted, 1 s until the next is planned, 10 s in the
# queue; and `hold_seconds` that another one may hold in vain
EMPTY_SECONDS = 100.0  # until refusals and reservations have expired
FAILS_EVERY = 8  # seeds: in each such one our own search raises for some gangs
FAILING_SHARE = 0.25  # of the gangs there
# What the namespace may have held for pods that do not exist, in pods and in share of the cluster,
# by the remainder of the seed; in the others no bound keeps a gang from its place.
BOUNDS = {0: (2, 0.0), 2: (0, 0.2)}
BOUNDED_EVERY = 5  # seeds
UNBOUNDED = (32, 1.0)
VOCABULARIES = (Volcano, Grove, Native, Kai, InParts, Composites)  # that have objects
CONTESTED = (Grove, Native, Kai, InParts)  # where others are evicted for gangs


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one seed."""

    seed: int
    digest: str
    hits: Mapping[str, int]
    steps: int
    virtual_seconds: float
    violation: str = ""  # the sentence, "" if all held
    step: int = 0
    at: float = 0.0
    last_lines: tuple[str, ...] = ()
    trace: str = ""  # of the exception, where it was one of ours


class World:
    """Everything of one seed; `run` plays it to the end."""

    def __init__(
        self,
        seed: int,
        *,
        mode: Mode = USUAL,
        on_line: Callable[[str], None] | None = None,
    ) -> None:
        self.seed = seed
        self.rng = Random(seed)
        self.clock = Clock()
        self.history = History(self.clock, on_line=on_line)
        self.hits = Hits()
        self.profile = profile_of(self.rng)
        born = born_of(seed)
        if born is not None:
            self.profile = replace(
                self.profile,
                gated_share=1.0,
                workloads_per_minute=OTHERS_PER_MINUTE,
                chaos_seconds=self.profile.chaos_seconds + MORE_SECONDS,
                settings=settings_with(self.profile.settings, born),
            )
        self.history.say(f"seed {seed}: {self.profile}")
        self.api = ApiServer(self.clock, self.history)
        self.preemption = preemption_of(seed, is_sure=mode.preempting)
        self.network = Network(self.clock, self.rng, self.hits)
        self.named: dict[tuple[str, str], str] = {}
        self.checks = Checks(self.clock, self.api, self.rng, self.hits, self.named)
        self.checks.restart = self._restart_later
        if self.preemption is not None:
            self.history.say(f"preempts: {self.preemption.failures} {self.preemption.grace}")
            self.checks.preemption = PreemptionChecks(
                self.clock, self.api, self.preemption.rng, self._is_scheduler_late, self._expected
            )
        self.evictions = evictions_of(seed, is_sure=mode.preempting)
        if self.evictions is not None:
            self.history.say(f"evicts: {self.evictions.settings}")
            self.checks.room = RoomChecks(
                self.clock, self.api, self.evictions.rng, self.history, self.hits
            )
            self.checks.evictions = self.evictions
        if born is not None:
            self.history.say(f"born in place: {born}")
        # Of every world: pods that were narrowed as their gates went are given back, too.
        self.checks.born = BornChecks(self.clock, self.hits, self._follow_suspension)
        self.quick_lag = self.profile.quick_lag
        self.growth: Growth | None = None
        if mode.growing:
            self.growth = growth_of(seed, self.profile.racks, self.profile.gpus)
            more = self.profile.chaos_seconds + MOST_SECONDS
            self.profile = replace(self.profile, chaos_seconds=more)
            self.history.say(f"grows: {self.growth.static} {self.growth.groups}")
        self._create_nodes()
        self.workloads = Workloads(self.clock, self.api, self.rng, self.history, self.hits)
        self.workloads.gated_share = self.profile.gated_share
        # By number, not drawn: a journal is replayed by an engine that does not fail.
        self.is_failing = seed % FAILS_EVERY == 0
        self.workloads.failing_share = FAILING_SHARE if self.is_failing else 0.0
        self.webhook = None if born is None else Webhook(self, born)
        self.workloads.webhook = self.webhook
        self.objects = Objects(self.clock, self.api)
        self.contested: tuple[Contested, ...] = ()
        self.vocabularies: tuple[Vocabulary, ...] = ()
        # Machines that come have no label of a row, which is what gangs in parts go by.
        left_out = (InParts,) if mode.growing else ()
        contest = self.checks.room
        of = VOCABULARIES if contest is None else CONTESTED
        drawn = [each for each in of if each.is_in(seed) and each not in left_out]
        self.vocabularies = tuple(each(self) for each in drawn)
        if contest is not None:
            self.contested = self.vocabularies
            contest.vocabularies = {each.source: each for each in self.contested}
        for each in self.vocabularies:
            each.create()
        self.checks.vocabularies = tuple(each.checks for each in self.vocabularies)
        self.chaos = Chaos(
            self, self.clock, self.api, self.rng, self.history, self.hits, self.workloads
        )
        absent_pods, absent_share = BOUNDS.get(seed % BOUNDED_EVERY, UNBOUNDED)
        settings = EngineSettings(
            levels=(BLOCK, RACK),
            scheduler_name=SCHEDULER,
            kinds=self._kinds(),
            absent_pods_per_namespace=absent_pods,
            absent_share_per_namespace=absent_share,
            visits_per_search=visits_per_search(self.seed),
            narrowed_pods_given_back=narrowed_pods_given_back(self.seed),
            **self._asking(),
            **dict(self.profile.settings),
            **dict(self.evictions.settings if self.evictions is not None else ()),
            **{key: its for each in self.vocabularies for key, its in each.settings.items()},
        )
        self.corrals = [self._corral(f"corral-{n}", settings) for n in range(self.profile.corrals)]
        self.contest = Contest(self, self.evictions) if self.evictions is not None else None
        self.growing = Growing(self, self.growth) if self.growth is not None else None
        self.preemptors: Preemptors | None = None
        if self.preemption is not None:
            self.preemptors = Preemptors(self, self.preemption)
        self._leaders = 0
        self.scheduler = self._lead(self.corrals[0])

    # -- setting up ----------------------------------------------------------------------------

    def _create_nodes(self) -> None:
        for rack, nodes in enumerate(self.profile.racks):
            if self.growth is not None and rack not in self.growth.static:
                continue
            for index in range(nodes):
                labels = {POOL: "a" if index % 2 == 0 else "b"}
                path = f"b{rack // 2}/r{rack}/n{rack}{index}"
                self.api.create("Node", node(path, gpus=self.profile.gpus, labels=labels))

    def _asking(self) -> Mapping[str, float]:
        """The settings for gangs that ask for nodes."""
        return asking_of(self.seed) if self.growth is None else self.growth.settings

    def _kinds(self) -> tuple[Kind, ...]:
        """What every Corral here reads."""
        read = KINDS_READ if self.evictions is None else WITH_BUDGETS
        return (*read, *(kind for each in self.vocabularies for kind in each.kinds))

    def _corral(self, name: str, settings: EngineSettings) -> Corral:
        corral = Corral(
            self.clock,
            self.api,
            self.rng,
            self.history,
            self.hits,
            self.network,
            name=name,
            observer=self.checks,
            settings=settings,
            tick_seconds=self.profile.tick_seconds,
            fails=self.workloads.fails if self.is_failing else None,
            evictions=self.evictions,
            patch_status=self.objects.patch_status if self.vocabularies else None,
            recreate=self._recreate,
            has_lease=self.profile.corrals > 1,
        )
        corral.is_leading = name.endswith("-0")
        corral.start()
        return corral

    def _recreate(self, uid: str) -> None:
        """Have the workload of a pod made again, as its owner may at any time."""
        workload = self.workloads.of_uid.get(uid)
        if workload is not None and not workload.is_over:
            self.history.say(f"somebody makes {workload.name} again")
            self.workloads.recreate(workload)

    def _lead(self, corral: Corral) -> KubeScheduler:
        self._leaders += 1
        self.history.say(f"scheduler-{self._leaders} leads, beside {corral.name}")
        return KubeScheduler(
            self.clock,
            self.api,
            self.rng,
            self.history,
            self.hits,
            corral,
            name=f"scheduler-{self._leaders}",
            rest_seconds=self.profile.rest_seconds,
            pops_from_backoff=self.profile.pops_from_backoff,
            oddities=self.profile.oddities,
            named=self.named,
            lacks_volume=self.workloads.lacks_volume,
            preemption=self.preemption,
        )

    def is_unschedulable(self, pod: PodRecord) -> bool:
        """Whether a condition of the pod says that no node takes it."""
        return pod.is_marked if pod.gates else self.scheduler.calls_unschedulable(pod)

    def _expected(self, pod: PodRecord) -> Iterable[tuple[str, Amounts]]:
        return self.scheduler.cache.expected(pod)

    def _is_scheduler_late(self) -> bool:
        return any(stream.pending for stream in self.scheduler.streams)

    # -- what chaos asks for -------------------------------------------------------------------

    def all_streams(self) -> list[Stream]:
        """Every stream that somebody listens to."""
        streams = [
            stream
            for corral in self.corrals
            if corral.life is not None
            for stream in corral.life.streams.values()
        ]
        return streams + self.scheduler.streams

    def owner_of(self, stream: Stream) -> str:
        """Who listens."""
        for corral in self.corrals:
            if corral.life is not None and stream in corral.life.streams.values():
                return corral.name
        return self.scheduler.name

    def new_leader(self) -> None:
        """kube-scheduler restarts, or its other replica takes over."""
        self.hits.hit("F10 restart")
        self.scheduler.end()
        index = self.rng.randrange(len(self.corrals))
        self.scheduler = self._lead(self.corrals[index])
        for corral in self.corrals:
            self.clock.after(self.rng.uniform(0.0, 2.0), partial(self._poll, corral))

    def _poll(self, corral: Corral) -> None:
        """The Corral reads whose neighbour holds the Lease."""
        corral.poll(is_leading=self.scheduler.extender is corral)

    def crash(self, corral: Corral, fault: str, *, again_while_rebuilding: bool = False) -> None:
        """Kill a Corral; it comes back."""
        self.hits.hit(fault)
        corral.crash(fault)
        self._restart_later(corral)
        if again_while_rebuilding:
            self._kill_rebuilding(corral)

    def _kill_rebuilding(self, corral: Corral) -> None:
        def kill() -> None:
            if self.chaos.is_healed:
                return
            if corral.life is None:
                self.clock.after(0.05, kill)
            elif not corral.engine.is_synced:
                if self.rng.random() < 0.2:
                    self.crash(corral, "F5 rebuilding")
                else:
                    self.clock.after(0.1, kill)

        kill()

    def stop(self, corral: Corral) -> None:
        """Stop a Corral in order; it comes back."""
        corral.stop()
        self._restart_later(corral)

    def _restart_later(self, corral: Corral) -> None:
        incarnation = corral.incarnation

        def restart() -> None:
            if corral.incarnation != incarnation:
                return
            if corral.life is None:
                corral.start()
            else:
                self.clock.after(1.0, restart)

        self.clock.after(self.rng.uniform(0.5, 6.0), restart)

    # -- playing it ----------------------------------------------------------------------------

    def run(self) -> Outcome:
        """The whole history, or as far as the first violation."""
        violation = trace = ""
        try:
            self._play()
        except Violation as error:
            violation = str(error)
        except Exception as error:  # a bug is a violation too, whatever it raises
            violation = f"{type(error).__name__}: {error}"
            trace = traceback.format_exc()
        if violation:
            self.history.say(f"VIOLATION: {violation}")
        return Outcome(
            self.seed,
            self.history.digest(),
            dict(self.hits.counts),
            self.clock.steps,
            self.clock.now,
            violation,
            self.clock.steps,
            self.clock.now,
            tuple(self.history.last),
            trace,
        )

    def _play(self) -> None:
        profile = self.profile
        for stream in self.all_streams():
            stream.lag = profile.quick_lag
        self._plan_workloads()
        if self.preemptors is not None:
            self.preemptors.begin()
        if self.contest is not None:
            self.contest.begin()
        if self.webhook is not None:
            self.webhook.begin()
        if self.growing is not None:
            self.growing.begin()
        for each in self.vocabularies:
            each.begin()
        self.network.failures = profile.failures
        self.checks.dies = profile.dies
        kinds = {kind: KINDS[kind] for kind in profile.kinds}
        self.chaos.begin(kinds, profile.intensity)
        least = LEAST_SECONDS if self.evictions is not None else 0.0
        self.clock.run_until(max(profile.chaos_seconds, least))
        self._heal()
        held = self.held_seconds
        self.clock.run_until(self.clock.now + SETTLE_SECONDS + held)
        self._judge()
        self.workloads.kubelets.thaw()
        for _ in range(2):
            self.clock.run_until(self.clock.now + 40.0)
            self.workloads.kubelets.is_frozen = True
            self.clock.run_until(self.clock.now + QUIET_SECONDS + held)
            self._judge()
            self.workloads.kubelets.thaw()
        starves = dict(profile.settings)["starvation_seconds"] == STARVATION_SECONDS
        if starves and self.growing is None:
            crowd(self)
        self._empty()
        fresh(self)
        if self.webhook is not None:
            fresh_born(self)
        for each in self.vocabularies:
            fresh_workload(self, each)

    @property
    def held_seconds(self) -> float:
        """How long places may be kept that are of no use."""
        settings = dict(self.profile.settings)
        return float(settings["owed_seconds"] + settings["hold_seconds"])

    def _plan_workloads(self) -> None:
        def create() -> None:
            if not self.chaos.is_healed:
                if len(self.workloads.all) < 8:
                    self.workloads.create(self.profile.most_pods, self.profile.gpus)
                pause = self.rng.expovariate(self.profile.workloads_per_minute / 60.0)
                self.clock.after(pause, create)

        self.clock.after(self.rng.uniform(0.0, 5.0), create)

    def _heal(self) -> None:
        self.chaos.heal()
        if self.preemptors is not None:
            self.preemptors.heal()
        if self.contest is not None:
            self.contest.heal()
        if self.webhook is not None:
            self.webhook.heal()
        if self.growing is not None:
            self.growing.heal()
        for each in self.vocabularies:
            each.heal()
        self.network.failures = 0.0
        for corral in self.corrals:
            corral.lost_statuses = 0.0
            corral.are_places_late = False
        self.checks.dies = 0.0
        self.scheduler.oddities = 0.0
        self.workloads.kubelets.is_frozen = True
        for stream in self.all_streams():
            stream.lag = QUICK

    def _judge(self) -> None:
        judge(self)

    def _follow_suspension(self, corral: Corral) -> None:
        if self.webhook is not None:
            self.webhook.follow_suspension(corral)

    def delete_everything(self) -> None:
        """Delete all workloads and all pods."""
        self.history.say("everything is deleted")
        for workload in list(self.workloads.all.values()):
            self.workloads.delete(workload)
        for name in sorted(self.api.pods):
            if name in self.api.pods:
                found = self.api.pods[name]
                self.api.delete_pod(name, found.uid, 1.0)

    def _empty(self) -> None:
        self.delete_everything()
        self.clock.run_until(self.clock.now + EMPTY_SECONDS)
        check_empty(self.corrals)
        if self.growing is not None:
            self.growing.await_gone()
