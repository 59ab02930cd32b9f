"""Grove in one world: what a seed draws of it, and what happens to it until all is healed."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from functools import partial
from random import Random
from typing import TYPE_CHECKING, Any

from app.kube.core.objects import PodRecord
from tests.sim.api import CLUSTER_TOPOLOGY, GROVE, POD_GANG
from tests.sim.grove.checks import SOURCE, GroveChecks
from tests.sim.grove.drawn import KIND, draw, whole
from tests.sim.grove.operator import TOPOLOGY, GroveOperator
from tests.sim.grove.pod_clique_set import KEYS
from tests.sim.grove.rest import AtRest
from tests.sim.objects import Json
from tests.sim.oracle import Cluster, Taken

if TYPE_CHECKING:
    from tests.sim.kinds import Workload
    from tests.sim.world import World

SHARE = 1 / 5  # of the seeds
PER_MINUTE = 10.0  # workloads
MOST_WORKLOADS = 4  # at a time
CHANGES_PER_MINUTE = 8.0
GONE_SECONDS = (0.3, 10.0)  # until what somebody deleted is there again
FOLLOWS_SECONDS = (0.1, 5.0)  # until PodGangs have the levels of the ClusterTopology
MOST_IN_RACK = 8  # pods of a gang that takes the whole of one
WITHOUT_HOST, WITHOUT_BLOCK = ("block", "rack"), ("rack", "host")


class Grove:
    """All of it."""

    source = SOURCE
    kinds = GROVE
    settings: Mapping[str, Any] = {}

    @staticmethod
    def is_in(seed: int) -> bool:
        """Whether there are workloads of Grove's in this world."""
        return Random(f"grove {seed}").random() < SHARE

    def __init__(self, world: World) -> None:
        self._world, self._objects = world, world.objects
        self._rng = rng = Random(f"grove of {world.seed}")
        clock, api, history, hits = world.clock, world.api, world.history, world.hits
        self._operator = GroveOperator(clock, api, self._objects, rng, history, hits)
        self.checks = GroveChecks(clock, self._objects, hits)
        self._at_rest = AtRest(api, self._objects, hits)
        self._is_healed = False
        world.workloads.owners_of[KIND] = self._operator
        history.say("has workloads of Grove's")

    def create(self) -> None:
        """Make the ClusterTopology."""
        self._objects.create(CLUSTER_TOPOLOGY, TOPOLOGY, spec=_levels(tuple(KEYS)))

    def begin(self) -> None:
        """Have workloads come, and things change, from now on."""
        self._world.clock.after(self._rng.uniform(0.0, 5.0), self._come)
        self._world.clock.after(self._rng.expovariate(CHANGES_PER_MINUTE / 60.0), self._disturb)

    def heal(self) -> None:
        """Nothing changes any more; the topology and the PodGangs are what they were."""
        self._is_healed = True
        self._put_topology(tuple(KEYS))
        self._follow(tuple(KEYS))

    # -- workloads -----------------------------------------------------------------------------

    def _come(self) -> None:
        world, rng = self._world, self._rng
        if self._is_healed:
            return
        if len(self._there()) < MOST_WORKLOADS:
            profile = world.profile
            found = draw(rng, profile.most_pods, profile.gpus)
            found.fails = rng.random() < world.workloads.failing_share
            found.name = world.workloads.new_name(found.kind)
            world.workloads.begin(found)
        world.clock.after(rng.expovariate(PER_MINUTE / 60.0), self._come)

    def _there(self) -> list[Workload]:
        return [each for each in self._world.workloads.all.values() if each.kind == KIND]

    def drawn(self, rng: Random, most_pods: int) -> Workload:
        """A new workload of at most so many pods, without a name."""
        profile = self._world.profile
        return draw(rng, min(profile.most_pods, most_pods), profile.gpus)

    def fresh(self) -> Workload:
        """A gang that needs all of the devices of a rack, or so many."""
        profile = self._world.profile
        return whole(min(max(profile.racks) * profile.gpus, MOST_IN_RACK))

    # -- faults --------------------------------------------------------------------------------

    def _disturb(self) -> None:
        if self._is_healed:
            return
        kinds = (self._scale, self._scale, self._delete_gang, self._change_topology)
        self._rng.choice(kinds)()
        pause = self._rng.expovariate(CHANGES_PER_MINUTE / 60.0)
        self._world.clock.after(pause, self._disturb)

    def _scale(self) -> None:
        """Replicas of a clique, or of a scaling group, become more or fewer."""
        found = [each for each in self._there() if not each.is_over]
        if not found:
            return
        made, more = self._rng.choice(found), self._rng.choice((1, 1, -1))
        how = self._rng.choice((self._operator.scale_clique, self._operator.scale_group))
        self._world.hits.hit("F13 PodGang scaled")
        self._world.history.say(f"scale {made.name} by {more}: {how.__name__}")
        for name in how(made, more):
            pod = self._world.api.pods.get(name)
            if pod is not None and not pod.is_terminating:
                self._world.workloads.delete_pod(pod)

    def _delete_gang(self) -> None:
        """Somebody deletes a PodGang; the operator makes it again."""
        names = sorted(self._objects.of(POD_GANG))
        if names:
            name = self._rng.choice(names)
            self._world.hits.hit("F13 PodGang deleted")
            self._world.history.say(f"somebody deletes PodGang {name}")
            self._objects.remove(POD_GANG, name)

    def _change_topology(self) -> None:
        """The ClusterTopology goes, or has other levels, for a while; the operator follows it."""
        levels = self._rng.choice(((), WITHOUT_BLOCK, WITHOUT_HOST))
        self._world.hits.hit("F13 ClusterTopology changed")
        self._put_topology(levels)
        self._later(FOLLOWS_SECONDS, partial(self._follow, levels))
        self._later(GONE_SECONDS, self._restore)

    def _restore(self) -> None:
        self._put_topology(tuple(KEYS))
        self._later(FOLLOWS_SECONDS, partial(self._follow, tuple(KEYS)))

    def _put_topology(self, levels: tuple[str, ...]) -> None:
        self._world.history.say(f"ClusterTopology: {levels or 'gone'}")
        there = self._objects.get(CLUSTER_TOPOLOGY, TOPOLOGY)
        if not levels:
            self._objects.remove(CLUSTER_TOPOLOGY, TOPOLOGY)
        elif there is None:
            self._objects.create(CLUSTER_TOPOLOGY, TOPOLOGY, spec=_levels(levels))
        elif there["spec"] != _levels(levels):
            self._objects.change(CLUSTER_TOPOLOGY, TOPOLOGY, spec=_levels(levels))

    def _follow(self, levels: tuple[str, ...]) -> None:
        self._operator.levels = levels
        self._operator.sync_all(self._there())

    def _later(self, seconds: tuple[float, float], action: Callable[[], None]) -> None:
        def act() -> None:
            if not self._is_healed:
                action()

        self._world.clock.after(self._rng.uniform(*seconds), act)

    # -- at rest -------------------------------------------------------------------------------

    def waits_in_vain(
        self,
        name: str,
        members: Collection[PodRecord],
        taken: Taken,
        among: Cluster | None = None,
    ) -> str:
        """Where the waiting pods of a PodGang have a place; "" if they have none for certain."""
        return self._at_rest.waits_in_vain(name, members, taken, among)

    def judge(self) -> None:
        """Raises: Violation."""
        self._at_rest.check_statuses()


def _levels(names: tuple[str, ...]) -> Json:
    return {"levels": [{"domain": name, "key": KEYS[name]} for name in names]}
