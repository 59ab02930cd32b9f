"""Native PodGroups in one world: what a seed draws of them, and what happens until all is healed.

Corral starts their pods (`native_pod_groups: on`); kube-scheduler's own gates are off.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from functools import partial
from random import Random
from typing import TYPE_CHECKING, Any, ClassVar

from app.kube.core.objects import PodRecord
from app.kube.watch.events import Kind
from tests.sim.api import NATIVE, NATIVE_GROUP
from tests.sim.native.checks import NativeChecks
from tests.sim.native.controller import PodGroupController
from tests.sim.native.drawn import draw, policy, whole
from tests.sim.native.pod_group import NATIVE_WORDS, Words
from tests.sim.native.rest import AtRest
from tests.sim.oracle import Cluster, Taken
from tests.sim.vocabulary import ContestedChecks

if TYPE_CHECKING:
    from tests.sim.kinds import Workload
    from tests.sim.world import World

SHARE = 1 / 5  # of the seeds
OLDER_SHARE = 0.5  # of these: the API server has v1alpha2
PER_MINUTE = 8.0  # workloads
MOST_WORKLOADS = 3  # at a time
CHANGES_PER_MINUTE = 6.0
GONE_SECONDS = (0.3, 10.0)  # until a PodGroup that somebody deleted is there again
MOST_IN_RACK = 8  # pods of a gang that takes the whole of one


class Native:
    """All of it."""

    words: ClassVar[Words] = NATIVE_WORDS
    source: ClassVar[str] = words.source
    kinds: ClassVar[tuple[Kind, ...]] = NATIVE
    controller: ClassVar[type[PodGroupController]] = PodGroupController
    settings: ClassVar[Mapping[str, Any]] = {"native_pod_groups": "on"}

    @classmethod
    def is_in(cls, seed: int) -> bool:
        """Whether there are such PodGroups in this world."""
        return Random(f"{cls.source} {seed}").random() < SHARE

    def __init__(self, world: World) -> None:
        self._world, self._objects = world, world.objects
        self._rng = rng = Random(f"{self.source} of {world.seed}")
        clock, api, history, hits = world.clock, world.api, world.history, world.hits
        self._controller = self.controller(
            clock, api, self._objects, rng, history, hits, self.words
        )
        self._is_healed = False
        world.workloads.owners_of[self.words.workload] = self._controller
        history.say(f"has {self.source} PodGroups")
        self._judge_by()

    def _judge_by(self) -> None:
        """Make what judges."""
        hits = self._world.hits
        self.checks: ContestedChecks = NativeChecks(self._objects, hits, self.words)
        self._at_rest = AtRest(self._world.api, self._objects, hits, self.words)

    def create(self) -> None:
        """Have the API server serve one of the two versions."""
        if self._rng.random() < OLDER_SHARE:
            self._objects.serve_older(NATIVE_GROUP)

    def begin(self) -> None:
        """Have workloads come, and things change, from now on."""
        self._world.clock.after(self._rng.uniform(0.0, 5.0), self._come)
        self._world.clock.after(self._rng.expovariate(CHANGES_PER_MINUTE / 60.0), self._disturb)

    def heal(self) -> None:
        """Nothing changes any more; every PodGroup is there."""
        self._is_healed = True
        for each in self._there():
            self._controller.put(each, each.epoch)

    # -- workloads -----------------------------------------------------------------------------

    def _come(self) -> None:
        world, rng = self._world, self._rng
        if self._is_healed:
            return
        if len(self._there()) < MOST_WORKLOADS:
            found = self.drawn(rng, world.profile.most_pods)
            found.fails = rng.random() < world.workloads.failing_share
            found.name = world.workloads.new_name(found.kind)
            world.workloads.begin(found)
        world.clock.after(rng.expovariate(PER_MINUTE / 60.0), self._come)

    def _there(self) -> list[Workload]:
        return [
            each for each in self._world.workloads.all.values() if each.kind == self.words.workload
        ]

    def drawn(self, rng: Random, most_pods: int) -> Workload:
        """A new workload of at most so many pods, without a name."""
        profile = self._world.profile
        return draw(
            rng, min(profile.most_pods, most_pods), profile.gpus, profile.gated_share, self.words
        )

    def fresh(self) -> Workload:
        """A gang that needs all of the devices of a rack, or so many."""
        profile = self._world.profile
        self._controller.first_share = 1.0
        return whole(min(max(profile.racks) * profile.gpus, MOST_IN_RACK), self.words)

    # -- faults --------------------------------------------------------------------------------

    def _disturb(self) -> None:
        if self._is_healed:
            return
        found = [
            each
            for each in self._there()
            if not each.is_over and self._objects.get(self.words.kind, each.name) is not None
        ]
        if found:
            self._rng.choice(self._faults())(self._rng.choice(found))
        pause = self._rng.expovariate(CHANGES_PER_MINUTE / 60.0)
        self._world.clock.after(pause, self._disturb)

    def _faults(self) -> tuple[Callable[[Workload], None], ...]:
        """What may happen to a workload whose PodGroup is there."""
        return (self._delete, self._change)

    def _delete(self, made: Workload) -> None:
        """Somebody deletes a PodGroup and makes it again, sometimes with other requirements."""
        self._world.hits.hit(f"F13 {self.source} deleted")
        self._world.history.say(f"somebody deletes PodGroup {made.name}")
        self._objects.remove(self.words.kind, made.name)
        if self._rng.random() < 0.5:
            self._require_other(made)
        seconds = self._rng.uniform(*GONE_SECONDS)
        self._world.clock.after(seconds, partial(self._controller.put, made, made.epoch))

    def _require_other(self, made: Workload) -> None:
        made.native = policy(self._rng, made.declared)

    def _change(self, made: Workload) -> None:
        """minCount, which alone may be changed, becomes another number."""
        assert made.native is not None
        if made.native.least is not None:
            self._world.hits.hit(f"F13 {self.source} changed")
            made.native = replace(made.native, least=self._rng.randint(1, made.declared))
            self._controller.change(made)

    # -- at rest -------------------------------------------------------------------------------

    def waits_in_vain(
        self,
        name: str,
        members: Collection[PodRecord],
        taken: Taken,
        among: Cluster | None = None,
    ) -> str:
        """Where the waiting pods of a PodGroup have a place; "" if they have none for certain."""
        return self._at_rest.waits_in_vain(name, members, taken, among)

    def judge(self) -> None:
        """Raises: Violation."""
        self._at_rest.check_conditions()
