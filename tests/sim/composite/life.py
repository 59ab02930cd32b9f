"""CompositePodGroups in one world: what a seed draws of them, and what happens until it is healed.

Corral starts their pods (`native_pod_groups: on`); kube-scheduler's own gates are off.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from functools import partial
from random import Random
from typing import TYPE_CHECKING, Any, ClassVar

from app.kube.core.objects import PodRecord
from app.kube.watch.events import Kind
from tests.sim.api import WITH_COMPOSITES
from tests.sim.composite.checks import CompositeChecks
from tests.sim.composite.controller import CompositeController, wanted
from tests.sim.composite.drawn import draw, tree, whole
from tests.sim.composite.rest import AtRest
from tests.sim.composite.tree import KIND, SOURCE
from tests.sim.native.life import Native
from tests.sim.oracle import Cluster, Taken

if TYPE_CHECKING:
    from tests.sim.kinds import Workload
    from tests.sim.world import World

SHARE = 1 / 6  # of the seeds without other native PodGroups
PER_MINUTE = 6.0  # workloads
MOST_WORKLOADS = 2  # at a time
CHANGES_PER_MINUTE = 6.0
GONE_SECONDS = (0.3, 10.0)  # until an object that somebody deleted is there again
MOST_IN_RACK = 8  # pods of a gang that takes the whole of one


class Composites:
    """All of it."""

    source: ClassVar[str] = SOURCE
    kinds: ClassVar[tuple[Kind, ...]] = WITH_COMPOSITES
    settings: ClassVar[Mapping[str, Any]] = Native.settings

    @classmethod
    def is_in(cls, seed: int) -> bool:
        """Whether there are such objects in this world."""
        return not Native.is_in(seed) and Random(f"{SOURCE} {seed}").random() < SHARE

    def __init__(self, world: World) -> None:
        self._world, self._objects = world, world.objects
        self._rng = rng = Random(f"{SOURCE} of {world.seed}")
        clock, api, history, hits = world.clock, world.api, world.history, world.hits
        self._controller = CompositeController(clock, api, self._objects, rng, history, hits)
        self.checks = CompositeChecks(self._objects, hits)
        self._at_rest = AtRest(api, self._objects, hits)
        self._is_healed = False
        world.workloads.owners_of[KIND] = self._controller
        history.say("has CompositePodGroups")

    def create(self) -> None:
        """Nothing is there before the workloads."""

    def begin(self) -> None:
        """Have workloads come, and things change, from now on."""
        self._world.clock.after(self._rng.uniform(0.0, 5.0), self._come)
        self._world.clock.after(self._rng.expovariate(CHANGES_PER_MINUTE / 60.0), self._disturb)

    def heal(self) -> None:
        """Nothing changes any more; every object is there."""
        self._is_healed = True
        for each in self._there():
            self._controller.put_all(each)

    # -- workloads -----------------------------------------------------------------------------

    def _come(self) -> None:
        world, rng = self._world, self._rng
        if self._is_healed:
            return
        if len(self._there()) < MOST_WORKLOADS:
            profile = world.profile
            found = draw(rng, profile.most_pods, profile.gpus, profile.gated_share)
            found.fails = rng.random() < world.workloads.failing_share
            found.name = world.workloads.new_name(found.kind)
            world.workloads.begin(found)
        world.clock.after(rng.expovariate(PER_MINUTE / 60.0), self._come)

    def _there(self) -> list[Workload]:
        return [each for each in self._world.workloads.all.values() if each.kind == KIND]

    def fresh(self) -> Workload:
        """A gang that needs all of the devices of a rack, or so many."""
        profile = self._world.profile
        self._controller.at_once_share = 1.0
        return whole(min(max(profile.racks) * profile.gpus, MOST_IN_RACK))

    # -- faults --------------------------------------------------------------------------------

    def _disturb(self) -> None:
        if self._is_healed:
            return
        found = [each for each in self._there() if not each.is_over]
        if found:
            self._rng.choice((self._delete, self._change))(self._rng.choice(found))
        pause = self._rng.expovariate(CHANGES_PER_MINUTE / 60.0)
        self._world.clock.after(pause, self._disturb)

    def _delete(self, made: Workload) -> None:
        """Somebody deletes one of its objects, which is made again a while later."""
        kind, name, _ = self._rng.choice(list(wanted(made)))
        if self._objects.get(kind, name) is None:
            return
        self._world.hits.hit("F13 composite deleted")
        self._world.history.say(f"somebody deletes {kind} {name}")
        self._objects.remove(kind, name)
        seconds = self._rng.uniform(*GONE_SECONDS)
        again = partial(self._controller.put, made, made.epoch, kind, name)
        self._world.clock.after(seconds, again)

    def _change(self, made: Workload) -> None:
        """What it takes becomes another number: of groups, or of pods of one of them."""
        its = made.composite
        assert its is not None
        drawn = tree(self._rng, [each.pods for each in made.templates])
        if its.least is None or drawn.least is None:
            return
        self._world.hits.hit("F13 composite changed")
        groups = tuple(
            replace(one, least=other.least)
            for one, other in zip(its.groups, drawn.groups, strict=True)
        )
        made.composite = replace(its, least=drawn.least, groups=groups)
        self._controller.change(made)

    # -- at rest -------------------------------------------------------------------------------

    def waits_in_vain(
        self,
        name: str,
        members: Collection[PodRecord],
        taken: Taken,
        among: Cluster | None = None,
    ) -> str:
        """Where the waiting pods of a gang have a place; "" if they have none for certain."""
        return self._at_rest.waits_in_vain(name, members, taken, among)

    def judge(self) -> None:
        """Raises: Violation."""
        self._at_rest.check_conditions()
