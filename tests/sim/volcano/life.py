"""Volcano in one world: what a seed draws of it, and what happens to it until all is healed."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from random import Random
from typing import TYPE_CHECKING, Any

from app.kube.core.objects import PodRecord
from tests.records import GPU
from tests.sim.api import HYPER_NODE, POD_GROUP, QUEUE, VOLCANO
from tests.sim.objects import Json
from tests.sim.oracle import Taken
from tests.sim.volcano.checks import SOURCE, VolcanoChecks
from tests.sim.volcano.controller import VolcanoController, group_name
from tests.sim.volcano.drawn import KINDS, draw, whole
from tests.sim.volcano.hyper_nodes import HyperNodes
from tests.sim.volcano.reading import domains_of
from tests.sim.volcano.rest import AtRest

if TYPE_CHECKING:
    from tests.sim.kinds import Workload
    from tests.sim.world import World

SHARE = 1 / 2  # of the seeds in which none is evicted for gangs
PER_MINUTE = 8.0  # workloads
MOST_WORKLOADS = 4  # at a time
FOREIGN_SHARE = 0.15  # of those that are drawn
FOREIGN_SECONDS = (5.0, 60.0)  # until such a job is deleted
BOUNDED_SHARE = 0.5  # of the seeds: a queue has a capability
GROWN_SHARE = 0.5  # of these: in the end it has none any more
CHANGES_PER_MINUTE = 3.0  # of queues, and of PodGroups
OPEN, BOUNDED = "default", "team"
MOST_IN_HYPER_NODE = 8  # pods of a vcjob that takes the whole of one


class Volcano:
    """All of it."""

    source = SOURCE
    kinds = VOLCANO
    settings: Mapping[str, Any] = {}

    @staticmethod
    def is_in(seed: int) -> bool:
        """Whether there are workloads of Volcano's in this world, if none is evicted for gangs."""
        return Random(f"volcano {seed}").random() < SHARE

    def __init__(self, world: World) -> None:
        self._world = world
        self._rng = rng = Random(f"volcano of {world.seed}")
        clock, api, history, hits = world.clock, world.api, world.history, world.hits
        self.objects = world.objects
        self.controller = VolcanoController(clock, api, self.objects, rng, history)
        self.hyper_nodes = HyperNodes(clock, self.objects, rng, history, hits)
        self.checks = VolcanoChecks(api, self.objects, hits)
        self._at_rest = AtRest(api, self.objects, hits)
        world.workloads.owners_of.update(dict.fromkeys(KINDS.values(), self.controller))
        self._is_bounded = rng.random() < BOUNDED_SHARE
        self._is_healed = False
        history.say("has workloads of Volcano's")

    def create(self) -> None:
        """Make the queues, and HyperNodes over the nodes that there are, or may come."""
        racks = self._world.profile.racks
        nodes = {
            f"r{at}": [f"n{at}{index}" for index in range(its)] for at, its in enumerate(racks)
        }
        blocks: dict[str, list[str]] = {}
        for at in range(len(racks)):
            blocks.setdefault(f"b{at // 2}", []).append(f"r{at}")
        self.hyper_nodes.create(nodes, blocks, names_nodes=self._world.growth is None)
        self.objects.create(QUEUE, OPEN, spec={"weight": 1})
        if self._is_bounded:
            self.objects.create(QUEUE, BOUNDED, spec=self._capability())

    def _capability(self) -> Json:
        profile = self._world.profile
        share = self._rng.choice((0.2, 0.4, 0.7))
        gpus = max(int(sum(profile.racks) * profile.gpus * share), 1)
        return {"weight": 1, "capability": {GPU: str(gpus), "cpu": f"{gpus * 2000}m"}}

    def begin(self) -> None:
        """Have workloads come, and things change, from now on."""
        self.hyper_nodes.begin()
        self._world.clock.after(self._rng.uniform(0.0, 5.0), self._come)
        self._world.clock.after(self._rng.expovariate(CHANGES_PER_MINUTE / 60.0), self._disturb)

    def heal(self) -> None:
        """Nothing changes any more; HyperNodes are what they were, and a queue may have room."""
        self._is_healed = True
        self.hyper_nodes.heal()
        if self._is_bounded and self._rng.random() < GROWN_SHARE:
            self.objects.change(QUEUE, BOUNDED, spec={"weight": 1})

    # -- workloads -----------------------------------------------------------------------------

    def _come(self) -> None:
        world, rng = self._world, self._rng
        if self._is_healed:
            return
        workload = self._drawn()
        if rng.random() < FOREIGN_SHARE:
            self._come_for_others(workload)
        elif len(self._there()) < MOST_WORKLOADS:
            self.start(workload)
        world.clock.after(rng.expovariate(PER_MINUTE / 60.0), self._come)

    def _drawn(self) -> Workload:
        profile = self._world.profile
        queues = (OPEN, BOUNDED, BOUNDED) if self._is_bounded else (OPEN,)
        found = draw(self._rng, profile.most_pods, profile.gpus, profile.gated_share, queues)
        found.fails = self._rng.random() < self._world.workloads.failing_share
        return found

    def start(self, workload: Workload) -> None:
        """Have a workload from now on."""
        workload.name = self._world.workloads.new_name(workload.kind)
        self._world.workloads.begin(workload)

    def _come_for_others(self, like: Workload) -> None:
        assert like.pod_group is not None
        self._world.hits.hit("W foreign vcjob")
        name = self._world.workloads.new_name("other")
        delete = self.controller.create_foreign(name, like.pod_group)
        self._world.clock.after(self._rng.uniform(*FOREIGN_SECONDS), delete)

    def _there(self) -> list[Workload]:
        return [each for each in self._world.workloads.all.values() if each.pod_group is not None]

    # -- faults --------------------------------------------------------------------------------

    def _disturb(self) -> None:
        if self._is_healed:
            return
        self._rng.choice((self._change_queue, self._delete_group))()
        pause = self._rng.expovariate(CHANGES_PER_MINUTE / 60.0)
        self._world.clock.after(pause, self._disturb)

    def _change_queue(self) -> None:
        if self._is_bounded:
            self._world.hits.hit("F13 queue changed")
            self.objects.change(QUEUE, BOUNDED, spec=self._capability())

    def _delete_group(self) -> None:
        """Somebody deletes a PodGroup; Volcano's controller makes that of a vcjob again."""
        found = [each for each in self._there() if each.kind == "vcjob" and not each.is_over]
        names = [group_name(each) for each in found]
        names = [name for name in names if self.objects.get(POD_GROUP, name) is not None]
        if names:
            name = self._rng.choice(names)
            self._world.hits.hit("F13 PodGroup deleted")
            self._world.history.say(f"somebody deletes PodGroup {name}")
            self.objects.remove(POD_GROUP, name)

    def fresh(self) -> Workload:
        """A job that needs all of the devices of a HyperNode, in one of its tier."""
        racks = self._world.profile.racks
        if self._world.growth is not None:  # there is no node yet
            return whole(min(max(racks) * self._world.profile.gpus, MOST_IN_HYPER_NODE), 1)
        domains = domains_of(self.objects.of(HYPER_NODE), self._world.api.nodes)
        tier = self._rng.choice([tier for tier in (1, 2, 3) if domains.up_to(tier)])
        places = max(len(each.nodes) for each in domains.up_to(tier))
        return whole(min(places * self._world.profile.gpus, MOST_IN_HYPER_NODE), tier)

    # -- at rest -------------------------------------------------------------------------------

    def waits_in_vain(self, name: str, members: Collection[PodRecord], taken: Taken) -> str:
        """Where the waiting pods of a PodGroup have a place; "" if they have none for certain."""
        return self._at_rest.waits_in_vain(name, members, taken)

    def judge(self) -> None:
        """Raises: Violation."""
        waiting = [group_name(each) for each in self._there() if not each.made]
        self._at_rest.check_statuses(waiting)
