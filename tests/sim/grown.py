"""A world that begins without nodes, and in which nothing goes wrong: an autoscaler makes them."""

from __future__ import annotations

from collections.abc import Mapping

from app.kube.core.objects import PodRecord
from tests.autoscaling.small import Autoscaler
from tests.sim.kinds import Template, Workload
from tests.sim.node_autoscaler import NodeAutoscaler
from tests.sim.world import World

SEED = 150  # one Corral; no preemption, no evictions, no objects of vocabularies, no oddities


class Grown(World):
    """One Corral, kube-scheduler, and a node autoscaler."""

    def __init__(self, autoscaler: Autoscaler) -> None:
        super().__init__(SEED)
        self.nodes = NodeAutoscaler(
            self.clock,
            self.api,
            self.history,
            autoscaler,
            is_unschedulable=self._is_unschedulable,
            node_gone=self.workloads.kubelets.node_gone,
        )
        self.nodes.begin()

    def _is_unschedulable(self, pod: PodRecord) -> bool:
        return pod.is_marked if pod.gates else self.scheduler.calls_unschedulable(pod)

    def _create_nodes(self) -> None:
        pass

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
