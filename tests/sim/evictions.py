"""Evictions for gangs that wait, in the seeds where `preempt` is on: what is drawn and goes wrong.

    a full cluster ─▶ a gang of high priority ─▶ Corral asks, evicts ─▶ victims end: soon, late,
                      or not before all is healed; crashes of Corral in between

All random numbers are of its own: the other seeds are the histories that they were.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random
from typing import TYPE_CHECKING, Any

from app.dialects.kueue.pod_groups import FAST
from app.state.effects import Effect, Evict
from tests.records import BLOCK, GPU, RACK, REQUIRED, SLICE_LEVEL, UNCONSTRAINED
from tests.sim import kinds
from tests.sim.budgets import APPS, DisruptionBudgets
from tests.sim.kinds import Workload
from tests.sim.node_filters import counts

if TYPE_CHECKING:
    from tests.sim.corral import Corral
    from tests.sim.world import World

ON_SHARE = 1 / 3  # of the seeds: others are evicted for gangs there
PER_MINUTE = 60.0  # workloads of these, at most
MOST_WORKLOADS = 20  # at a time
MOST_PODS = 4  # of a gang of high priority
MOST_HIGH = 4  # gangs of high priority at a time
HIGH = (20, 50, 50)  # priorities; `kinds.draw` has none as high
NEVER_SHARE = 0.08  # of those: no other pod goes for them
MIXED_SHARE = 0.15  # of gangs
MIXED = 60  # of the first pod of some gangs: a gang counts as its most important pod
DISTURBED_PER_MINUTE = 60.0  # at most: tried so often, and there must be a plan
VOCABULARY_SHARE = 0.75  # of the workloads, in worlds with gangs of a vocabulary that has objects
KINDS = (*("crash",) * 4, *("tighten",) * 3, "give up", "none")
# Kinds whose pods a controller makes.
OWNED = (
    "job", "jobset", "statefulset", "plain",
    "podcliqueset", "nativegroup", "kaigroup", "kaiparts",
)  # fmt: skip
OWNED_SHARE = 0.7  # of the ordinary pods, where others may go too
LEAST_SECONDS = 120.0  # until all is healed
CRASH_SHARE = 0.4  # of the times that pods are to be evicted
BUDGETED_SHARE = 0.9  # of these seeds


@dataclass(slots=True)
class Evictions:
    """What a seed draws about them."""

    rng: Random
    settings: tuple[tuple[str, Any], ...]
    dropped: float  # share of evictions that are not tried
    grace: tuple[int, int]  # seconds that the containers of a victim may run on
    late: float  # share of victims that end after that
    stuck: float  # share of victims that end only when all is healed
    turn: tuple[float, float]  # seconds until an eviction is sent
    crashes: bool
    has_budgets: bool
    is_healed: bool = False
    held_back: dict[str, str] = field(
        default_factory=dict
    )  # uid -> name, of victims that are stuck

    def heal(self) -> None:
        """Nothing goes wrong any more, and victims end soon."""
        self.is_healed = True
        self.dropped = self.late = self.stuck = 0.0
        self.grace, self.crashes = (1, 2), False

    def is_dropped(self) -> bool:
        return self.rng.random() < self.dropped

    def turn_seconds(self) -> float:
        return self.rng.uniform(*self.turn)

    def ends_after(self, grace: int) -> float:
        """How many seconds a victim takes to end."""
        drawn = self.rng.random()
        if drawn < self.stuck:
            return math.inf
        if drawn < self.stuck + self.late:
            return grace + self.rng.uniform(5.0, 60.0)
        return self.rng.uniform(0.1, max(grace, 0.2))

    def grace_seconds(self) -> int:
        return self.rng.randint(*self.grace)

    def crash_after(self, effects: Sequence[Effect]) -> int | None:
        """After how many effects the process dies, some of which are evictions; None: it lives."""
        if not self.crashes or not any(isinstance(effect, Evict) for effect in effects):
            return None
        return self.rng.randrange(len(effects)) if self.rng.random() < CRASH_SHARE else None


def evictions_of(seed: int, *, is_sure: bool = False) -> Evictions | None:
    """How others are evicted for gangs in this world, if they are; `is_sure`: in every one."""
    rng = Random(f"evictions {seed}")
    if rng.random() >= ON_SHARE and not is_sure:
        return None
    settings = (
        ("preempt", "on"),
        ("preempt_after_seconds", rng.choice((0.5, 0.5, 2.0, 10.0))),
        ("bare_victims", rng.random() < 0.7),
        ("preempt_plans", rng.choice((1, 2, 4, 4))),
        ("preempt_pods_at_once", rng.choice((3, 6, 256, 256))),
        ("preempt_per_namespace", rng.choice((2, 10, 1000, 1000))),
        ("preempted_at_most", rng.choice((1, 3, 3, 100))),
        ("preempt_min_runtime_seconds", rng.choice((0.0, 0.0, 0.0, 20.0))),
        ("disruption", rng.choice(("single", "single", "single", "all"))),
    )
    return Evictions(
        rng,
        settings,
        dropped=rng.choice((0.0, 0.05, 0.1)),
        grace=rng.choice(((0, 2), (1, 10), (5, 30))),
        late=rng.choice((0.1, 0.2, 0.4)),
        stuck=rng.choice((0.1, 0.3, 0.6)),
        turn=rng.choice(((0.001, 0.01), (0.01, 0.5), (0.5, 6.0))),
        crashes=rng.random() < 0.6,
        has_budgets=rng.random() < BUDGETED_SHARE,
    )


class Contest:
    """Fills the cluster, and has gangs come that only others' pods keep from starting."""

    def __init__(self, world: World, evictions: Evictions) -> None:
        self._world, self._evictions, self._rng = world, evictions, evictions.rng
        self._takes_bare = dict(evictions.settings)["bare_victims"]
        self._budgets = DisruptionBudgets(
            world.clock, world.api, evictions.rng, world.history, world.hits
        )

    def begin(self) -> None:
        """Do so until the cluster is healed."""
        if self._evictions.has_budgets:
            self._world.workloads.apps = APPS
            self._budgets.begin()
        self._world.clock.after(self._rng.uniform(1.0, 5.0), self._create)
        self._world.clock.after(self._rng.uniform(5.0, 15.0), self._disturb)

    def heal(self) -> None:
        """Victims that were stuck end, and budgets stay what they are."""
        self._evictions.heal()
        self._budgets.is_healed = True
        api = self._world.api
        for uid, name in self._evictions.held_back.items():
            self._world.clock.after(
                self._rng.uniform(0.1, 5.0), lambda name=name, uid=uid: api.kill(name, uid)
            )
        self._evictions.held_back.clear()

    # -- workloads -----------------------------------------------------------------------------

    def _create(self) -> None:
        world, rng = self._world, self._rng
        if world.chaos.is_healed:
            return
        there = world.workloads.all.values()
        high = sum(each.priority in HIGH for each in there)
        if len(there) < MOST_WORKLOADS:
            if self._has_room():
                self._start(self._low())
            elif high < MOST_HIGH:
                world.hits.hit("W high gang")
                self._start(self._high())
        world.clock.after(rng.expovariate(PER_MINUTE / 60.0), self._create)

    def _start(self, workload: Workload) -> None:
        workload.name = self._world.workloads.new_name(workload.kind)
        self._world.workloads.begin(workload)

    def _has_room(self) -> bool:
        """Whether a third of the devices is left."""
        api, gpus = self._world.api, self._world.profile.gpus
        amounts = (dict(pod.request) for pod in api.pods.values() if counts(pod))
        taken = sum(amount.get(GPU, 0) for amount in amounts)
        return taken < len(api.nodes) * gpus * 2 / 3

    def _low(self) -> Workload:
        rng = self._rng
        workload = self._drawn()
        while not (self._takes_bare or workload.kind in OWNED):
            workload = self._drawn()
        workload.priority = rng.choice((0, 0, 5))
        workload.seconds, workload.lacks_volume = rng.uniform(60.0, 300.0), ""
        self._mix(workload)
        is_owned = rng.random() < OWNED_SHARE or not self._takes_bare
        workload.is_owned = workload.kind == "plain" and is_owned
        return workload

    def _mix(self, workload: Workload) -> None:
        """Give some gangs a first pod of another priority, where all of their pods come at once."""
        is_whole = workload.kind in ("job", "group") and FAST not in workload.annotations
        if is_whole and self._rng.random() < MIXED_SHARE:
            workload.first_priority = MIXED

    def _drawn(self, most_pods: int = 1_000) -> Workload:
        profile, found = self._world.profile, self._world.contested
        if found and self._rng.random() < VOCABULARY_SHARE:
            return self._rng.choice(found).drawn(self._rng, most_pods)
        return kinds.draw(
            self._rng, min(profile.most_pods, most_pods), profile.gpus, profile.gated_share
        )

    def _high(self) -> Workload:
        rng = self._rng
        workload = self._drawn(MOST_PODS)
        while not workload.is_gang:
            workload = self._drawn(MOST_PODS)
        workload.priority = rng.choice(HIGH)
        workload.preempts = rng.random() >= NEVER_SHARE
        if REQUIRED in workload.annotations and SLICE_LEVEL not in workload.annotations:
            # Else few of them find a whole domain of lower pods.
            level = rng.choice(("", "", BLOCK, RACK))
            workload.annotations[REQUIRED] = level
            if not level:
                del workload.annotations[REQUIRED]
                workload.annotations[UNCONSTRAINED] = "true"
        workload.seconds, workload.lacks_volume = rng.uniform(10.0, 60.0), ""
        self._mix(workload)
        return workload

    # -- while room is made --------------------------------------------------------------------

    def _disturb(self) -> None:
        """Do something while a Corral makes room for a gang, at whatever stage that is."""
        world, rng = self._world, self._rng
        if self._evictions.is_healed:
            return
        making = [each for each in world.corrals if each.life and each.engine.room_plans.of]
        kind = rng.choice(KINDS)
        if making and kind != "none":
            corral: Corral = rng.choice(making)
            plans = corral.engine.room_plans.of
            plan = plans[rng.choice(list(plans))]
            if kind == "crash" and self._evictions.crashes:
                world.crash(corral, f"F21 crash {plan.stage.value}")
            elif kind == "tighten":
                self._budgets.tighten()
            elif kind == "give up":
                self._give_up(list(plan.places))
        world.clock.after(rng.expovariate(DISTURBED_PER_MINUTE / 60.0), self._disturb)

    def _give_up(self, uids: list[str]) -> None:
        """Delete a gang that room is made for, and that waits."""
        workloads = self._world.workloads
        found = next((workloads.of_uid[uid] for uid in uids if uid in workloads.of_uid), None)
        if found is not None and not found.is_over:
            self._world.hits.hit("F21 given up")
            workloads.delete(found)
