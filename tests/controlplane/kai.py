"""KAI's pod-grouper on the control plane: it makes a PodGroup of a workload's pods, and names it.

    with pod_grouper(plane, folder):            # pods exist for a moment without the annotation
        cluster.create(job("train", pods=4, scheduler=SCHEDULER))

KAI's scheduler and its other controllers do not run: the status of PodGroups is Corral's to write.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.cluster import Cluster, Object
from tests.controlplane.kinds import served
from tests.controlplane.plane import ControlPlane, operator
from tests.controlplane.process import Process

POD_GROUP = "PodGroup.scheduling.run.ai"
TOPOLOGY = "Topology.kai.scheduler"
KINDS = (POD_GROUP, "Queue.scheduling.run.ai", TOPOLOGY)
SCHEDULER = "kai-scheduler"  # whose pods it takes

# Annotations of a workload, or of a pod without one.
NET = "kai.scheduler/topology"
REQUIRED = "kai.scheduler/topology-required-placement"
PREFERRED = "kai.scheduler/topology-preferred-placement"
GROUP_NAME = "pod-group-name"  # annotation that it writes on a pod


@contextmanager
def pod_grouper(plane: ControlPlane, folder: Path) -> Iterator[Process]:
    """The pod-grouper while the block lasts; afterwards neither KAI's kinds nor objects of theirs.

    Raises: BinariesMissing.
    """
    with served(plane.cluster(), KINDS):
        process = Process(
            [
                operator("kai-podgrouper"),
                f"--kubeconfig={plane.kubeconfig()}",
                f"--scheduler-name={SCHEDULER}",
                "--metrics-bind-address=0",
                "--health-probe-bind-address=0",
            ],
            folder / "kai-podgrouper.log",
        )
        try:
            yield process
            process.check()
        finally:
            process.stop()


def groups_of(cluster: Cluster, owner: str) -> list[Object]:
    """The PodGroups of a workload or a bare pod, by name."""
    return sorted(
        (
            each
            for each in cluster.list(POD_GROUP, "default")
            if any(one["name"] == owner for one in each["metadata"].get("ownerReferences", ()))
        ),
        key=lambda each: str(each["metadata"]["name"]),
    )


def condition_of(group: Object) -> dict[str, Any]:
    """What its status says last of its scheduling."""
    return dict((group.get("status", {}).get("schedulingConditions") or [{}])[-1])
