"""A node autoscaler in a random world, what goes wrong with it, and when the cluster is at rest.

    growth.py: groups ─▶ node_autoscaler.py ─▶ nodes come, late, in part, without labels; and go
    gangs that name a group ─▶ wait ─▶ marked ─▶ nodes ─▶ run; crashes of Corral in between

All random numbers are of its own: the seeds without it are the histories that they were.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

import msgspec

from app.kube.core.objects import Amounts, NodeRecord, PodRecord
from tests.autoscaling.karpenter import Karpenter
from tests.autoscaling.machines.cloud import Cloud
from tests.autoscaling.machines.groups import NodeGroup, node_body
from tests.sim import kinds
from tests.sim.api import ApiServer
from tests.sim.growth import GROUP, PROVISION_SECONDS, Growth, is_rack, most_seconds
from tests.sim.growth_checks import GrowthChecks
from tests.sim.kinds import Workload
from tests.sim.node_autoscaler import NodeAutoscaler, node_record
from tests.sim.oracle import Remaining, Taken, first_fit
from tests.sim.violation import require

if TYPE_CHECKING:
    from tests.sim.world import World

PER_MINUTE = 5.0  # workloads of these
ORDINARY_SHARE = 0.3  # of them: pods that a ReplicaSet makes, which may move; the others are gangs
ORDINARY_SECONDS = (60.0, 300.0)  # that those run
MOST_WORKLOADS = 10  # at a time, all kinds of them
DISTURBED_PER_MINUTE = 12.0
FAULTS = ("stock", "stock", "replica", "crash", "crash", "crash", "lose", "take")
OUT_OF_STOCK_SECONDS = (20.0, 90.0)
MOST_SECONDS = 120.0  # more of chaos than a world has whose nodes are there: they take their time
LEAST_QUIET = 2 * PROVISION_SECONDS + 30.0
# ^ until nothing is on its way any more: what is ordered does not come, and after the longest
# back-off of its group another one is ordered
MOST_UNREST = 3600.0  # from when nothing ends and nothing begins until nodes come and go no more
MOST_TIMES = 3  # as many machines as all groups may have, ordered meanwhile


class Growing:
    """The autoscaler of one world, until it is healed and after that."""

    def __init__(self, world: World, growth: Growth) -> None:
        self._world, self.growth, self._rng = world, growth, growth.rng
        self.checks = GrowthChecks(world.clock, world.api, world.hits)
        self.nodes = NodeAutoscaler(
            world.clock,
            world.api,
            world.history,
            growth.autoscaler,
            is_unschedulable=world.is_unschedulable,
            node_gone=world.workloads.kubelets.node_gone,
            about_to=self.checks.about_to,
        )
        self.checks.made = world.chaos.machines = self.nodes.sound
        self.is_healed = False

    def begin(self) -> None:
        """Have it make nodes from now on, and workloads come: gangs that name a group, others."""
        world, hits = self._world, self._world.hits
        if self.growth.begins_empty:
            hits.hit("W no nodes")
        if isinstance(self.growth.autoscaler, Karpenter):
            hits.hit("W Karpenter")
        for group in self.growth.groups:
            for _ in range(group.min):
                self._cloud.order(group, world.clock.now)
        self.nodes.begin()
        world.clock.after(self._rng.uniform(0.0, 10.0), self._create)
        world.clock.after(self._rng.uniform(5.0, 15.0), self._disturb)

    def heal(self) -> None:
        """All that is ordered comes from now on, and no template is of a node as it was before.

        Volumes come as well: nodes are made again and again for a gang one pod of which waits for
        its volume, as kube-scheduler calls the others unschedulable whenever their plan has ended.
        """
        self.is_healed = True
        for workload in self._world.workloads.of_uid.values():
            workload.lacks_volume = ""
        for name in self._cloud.stock:
            self._cloud.stock[name] = None
        self.nodes.restart()

    @property
    def _cloud(self) -> Cloud:
        return self.nodes.autoscaler.cloud

    # -- workloads -----------------------------------------------------------------------------

    def _create(self) -> None:
        world, rng = self._world, self._rng
        if self.is_healed:
            return
        if len(world.workloads.all) < MOST_WORKLOADS:
            workload = self._drawn()
            workload.name = world.workloads.new_name(workload.kind)
            world.workloads.begin(workload)
        world.clock.after(rng.expovariate(PER_MINUTE / 60.0), self._create)

    def _drawn(self) -> Workload:
        """Ordinary pods, which may be moved so that their node can go, or a gang that may not."""
        rng, profile = self._rng, self._world.profile
        if rng.random() < ORDINARY_SHARE:
            workload = kinds.filler(rng, profile.gpus)
            workload.seconds, workload.is_owned = rng.uniform(*ORDINARY_SECONDS), True
            return workload
        workload = kinds.draw(rng, profile.most_pods, profile.gpus, profile.gated_share)
        while not workload.is_gang:
            workload = kinds.draw(rng, profile.most_pods, profile.gpus, profile.gated_share)
        self.confine(workload, rng.choice([each for each in self.growth.groups if is_rack(each)]))
        return workload

    def confine(self, workload: Workload, group: NodeGroup | None = None) -> None:
        """Have a workload's pods name a group, the largest if none is given."""
        self._world.hits.hit("W names a group")
        name = (group or self.growth.largest).name
        workload.templates = tuple(
            replace(each, shape=msgspec.structs.replace(each.shape, selector=((GROUP, name),)))
            for each in workload.templates
        )

    # -- faults --------------------------------------------------------------------------------

    def _disturb(self) -> None:
        """Do something while machines are on their way, or gangs ask for some."""
        if self.is_healed:
            return
        self.checks.look(self._world.corrals, self._cloud.machines.values())
        match self._rng.choice(FAULTS):
            case "stock":
                self._run_out(self._rng.choice(self.growth.groups).name)
            case "replica":
                self._world.hits.hit("F24 replica")
                self.nodes.restart()
            case "crash":
                self._crash()
            case fault:
                self._spoil(fault)
        self._world.clock.after(self._rng.expovariate(DISTURBED_PER_MINUTE / 60.0), self._disturb)

    def _run_out(self, group: str) -> None:
        """The cloud has no more machines of a group than it has given out, for a while."""
        stock = self._cloud.stock
        if stock[group] is not None:
            return
        stock[group] = sum(each.comes for each in self._cloud.of(group))
        self._world.history.say(f"the cloud has {stock[group]} machines of {group}")

        def restock() -> None:
            if not self.is_healed:
                stock[group] = None

        self._world.clock.after(self._rng.uniform(*OUT_OF_STOCK_SECONDS), restock)

    def _crash(self) -> None:
        for corral in self._world.corrals:
            if corral.life is not None and (corral.engine.marks.open or corral.engine.new_nodes.of):
                self._world.crash(corral, "F24 crash asking")
                return

    def _spoil(self, fault: str) -> None:
        """A node that has not been used yet is lost, or another scheduler takes it."""
        used = {pod.node for pod in self._world.api.pods.values()}
        unused = sorted(set(self.nodes.sound) - used)
        if not unused:
            return
        node = self._rng.choice(unused)
        if fault == "lose":
            self._world.hits.hit("F24 node lost")
            self._world.chaos.lose_node(node, 0.0, is_gone=True)
        elif self._world.chaos.take_node(node):
            self._world.hits.hit("F24 node taken")

    # -- at rest -------------------------------------------------------------------------------

    def await_rest(self, seconds: float) -> None:
        """G2: let nodes come and go; with no pod that begins or ends that has an end.

        `seconds`: that Corral takes for what follows from a change.
        Raises: Violation.
        """
        clock, cloud = self._world.clock, self._cloud
        began, ordered = clock.now, cloud.orders
        since, before = clock.now, self._state()
        while clock.now < since + max(seconds, LEAST_QUIET):
            require(clock.now < began + MOST_UNREST, "G2: nodes come and go without end")
            orders, most = cloud.orders - ordered, MOST_TIMES * self.growth.most_machines
            require(orders <= most, f"G2: {orders} machines are ordered while nothing begins")
            clock.run_until(clock.now + 1.0)
            if self._state() != before:
                since, before = clock.now, self._state()

    def _state(self) -> tuple[float, int, int]:
        """What changes while nodes come and go."""
        return self.nodes.acted_at, self._cloud.orders, len(self._cloud.machines)

    def with_new_nodes(self, pods: list[PodRecord], is_whole: bool) -> Remaining | None:
        """G3: the cluster if the group that all these pods name had all its machines.

        None: they name none. An autoscaler knows no racks, so no more is promised of others. Nor
        does it know of pods that do not exist: unless the gang `is_whole` it makes no machine if
        those that are there fit.
        """
        names = {dict(pod.shape.selector).get(GROUP, "") for pod in pods}
        group = self._cloud.groups.get(names.pop()) if len(names) == 1 else None
        if group is None:
            return None
        api = self._world.api
        if not is_whole and _fit(api, [pod for pod in pods if not pod.node]):
            return None
        left = group.max - len(self._cloud.of(group.name))
        made = [_whole(group, number) for number in range(left)]
        return Remaining({**api.nodes, **{each.name: each for each in made}}, dict(api.pods))

    def await_gone(self) -> None:
        """G4: no node stays that nothing needs, but for the minimum of its group.

        Raises: Violation.
        """
        clock = self._world.clock
        ends = clock.now + self._seconds_to_go()
        while (left := self._surplus()) and clock.now < ends:
            clock.run_until(clock.now + 1.0)
        require(not left, f"G4: {left} stay though no pod is there")

    def _surplus(self) -> list[str]:
        return [
            each.name
            for group in self.growth.groups
            for each in self._cloud.of(group.name)[group.min :]
        ]

    def _seconds_to_go(self) -> float:
        """One after the other, in two loops each, once none has been needed for long enough."""
        loops = 2 * len(self._cloud.machines) + 2
        return most_seconds(self.growth) + self.growth.unneeded_seconds + 10.0 * loops

    def is_grown_for(self, workload: Workload, orders: int) -> None:
        """G5: for a gang that is alone no more machines are ordered than it has pods.

        `orders`: those before it came. Raises: Violation.
        """
        made = self._cloud.orders - orders
        require(
            made <= workload.declared,
            f"G5: {made} machines are ordered for {workload.declared} pods of {workload.name}",
        )

    @property
    def most_seconds(self) -> float:
        """From when a gang asks until its nodes are whole."""
        return most_seconds(self.growth)

    @property
    def orders(self) -> int:
        """How many machines were ever ordered."""
        return self._cloud.orders


def _fit(api: ApiServer, pods: Iterable[PodRecord]) -> bool:
    """Whether these pods fit on the nodes that are there, wherever that is."""
    taken = list[tuple[str, Amounts]]()
    for pod in pods:
        node = first_fit(api, pod, Taken(frozenset(), tuple(taken)))
        if not node:
            return False
        taken.append((node, pod.request))
    return True


def _whole(group: NodeGroup, number: int) -> NodeRecord:
    """A machine of a group that nothing is missing of."""
    name = f"{group.name}-new-{number}"
    labels = {**group.labels, **group.labels_of(number)}
    body = node_body(name, labels, group.taints, group.allocatable)
    body["metadata"]["uid"] = body["metadata"]["resourceVersion"] = name
    body["status"] = {
        "capacity": group.allocatable,
        "allocatable": group.allocatable,
        "conditions": [{"type": "Ready", "status": "True"}],
    }
    return node_record(body)
