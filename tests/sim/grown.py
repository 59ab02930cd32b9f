"""A world that begins without nodes, and in which nothing goes wrong: an autoscaler makes them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from random import Random

from tests.autoscaling.cluster_autoscaler.loop import ClusterAutoscaler, Settings
from tests.autoscaling.machines.groups import NodeGroup
from tests.autoscaling.small import Autoscaler
from tests.records import BLOCK, GPU, RACK, REQUIRED
from tests.sim.kinds import Template, Workload
from tests.sim.node_autoscaler import NodeAutoscaler
from tests.sim.world import World

SEED = 150  # one Corral; no preemption, no evictions, no objects of vocabularies, no oddities
MACHINE = {"cpu": "64", "memory": "512Gi", "pods": "110", GPU: "8"}
QUICK = Settings(unneeded=40.0, delay_after_add=0.0, provisioning_requests=False)
IN_RACK = {REQUIRED: RACK}
LONG = 3000.0  # of waiting for anything; a machine that does not come is given up after 900 s


class Grown(World):
    """One Corral, kube-scheduler, and a node autoscaler."""

    def __init__(self, autoscaler: Autoscaler) -> None:
        super().__init__(SEED)
        self.nodes = NodeAutoscaler(
            self.clock,
            self.api,
            self.history,
            autoscaler,
            is_unschedulable=self.is_unschedulable,
            node_gone=self.workloads.kubelets.node_gone,
        )
        self.nodes.begin()

    def _create_nodes(self) -> None:
        pass

    def _asking(self) -> Mapping[str, float]:
        return {}

    def plain(self, pods: int, gpus: int, seconds: float) -> Workload:
        """A workload of ordinary, ungated pods."""
        return self._begin("plain", pods, gpus, seconds, {}, is_gated=False)

    def gang(
        self, pods: int, gpus: int, seconds: float, annotations: Mapping[str, str]
    ) -> Workload:
        """A Job whose pods are gated."""
        return self._begin("job", pods, gpus, seconds, annotations, is_gated=True)

    def _begin(
        self,
        kind: str,
        pods: int,
        gpus: int,
        seconds: float,
        annotations: Mapping[str, str],
        *,
        is_gated: bool,
    ) -> Workload:
        workload = Workload(
            name=self.workloads.new_name(kind),
            kind=kind,
            templates=(Template(pods, gpus, 1000),),
            annotations=dict(annotations),
            priority=0,
            is_gated=is_gated,
            seconds=seconds,
            declared=pods,
            replaces=False,
        )
        self.workloads.begin(workload)
        return workload

    def bound(self) -> list[str]:
        """The nodes of pods that have one, one for each pod."""
        return [each.node for each in self.api.list("Pod") if each.node]


def rack(name: str, most: int, rng: Random | None = None, **more: object) -> NodeGroup:
    """A group that is one rack, with the delays of its own."""
    drawn = rng or Random(name)
    delays = {
        "register_seconds": drawn.uniform(5.0, 40.0),
        "ready_seconds": drawn.uniform(1.0, 20.0),
        "label_seconds": drawn.uniform(0.0, 40.0),
        "resource_seconds": drawn.uniform(0.0, 60.0),
    }
    labels = {BLOCK: "b0", RACK: name}
    return NodeGroup(
        name,
        most,
        **{"allocatable": MACHINE, "late_labels": (labels,), "tags": labels, **delays, **more},
    )


class Watched:
    """A world, and which of its nodes were made so far."""

    def __init__(self, *groups: NodeGroup) -> None:
        self.autoscaler = ClusterAutoscaler(groups, QUICK)
        self.world = Grown(self.autoscaler)
        self.made: list[str] = []
        create = self.world.api.create

        def noted(kind: str, record: object) -> object:
            if kind == "Node":
                self.made.append(record.name)  # type: ignore[attr-defined]
            return create(kind, record)

        self.world.api.create = noted  # type: ignore[method-assign]

    def until(self, holds: Callable[[], bool], seconds: float = LONG) -> None:
        """Let time pass until it holds."""
        clock, end = self.world.clock, self.world.clock.now + seconds
        while not holds():
            assert clock.now < end, f"not within {seconds} s"
            clock.run_until(clock.now + 5.0)

    def run(self, seconds: float) -> None:
        self.world.clock.run_until(self.world.clock.now + seconds)

    def bound(self, workload: Workload) -> dict[str, str]:
        """The node of each pod that has one."""
        pods = self.world.api.list("Pod")
        own = {each.name: each.node for each in pods if each.uid in workload.uids}
        return {name: node for name, node in own.items() if node}

    def marked(self) -> list[str]:
        return [each.name for each in self.world.api.list("Pod") if each.is_marked]

    def racks(self, workload: Workload) -> Counter[str]:
        """How many pods are in each rack."""
        return Counter(node.rpartition("-")[0] for node in self.bound(workload).values())

    def is_empty(self) -> bool:
        return not (self.world.api.nodes or self.world.api.list("Pod"))
