"""Volcano's own controllers on the control plane: its Jobs, and the PodGroups of other pods.

    with controllers(plane, QUEUES):                    # a vcjob waits for its queue
        cluster.create(vcjob("train", task("worker", 4)))
        cluster.patch(POD_GROUP, name, INQUEUE)         # it has no pods before that

Volcano's scheduler and webhooks do not run: what they would write, a test writes or leaves out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.app.dialects.volcano.workloads import queue
from tests.cluster import Cluster
from tests.controlplane.kinds import served
from tests.controlplane.plane import ControlPlane, operator
from tests.controlplane.process import Process, running

JOB = "Job.batch.volcano.sh"
POD_GROUP = "PodGroup.scheduling.volcano.sh"
QUEUE = "Queue.scheduling.volcano.sh"
# What its controllers read: while one of these is not served, none of them does anything at all.
KINDS = (
    JOB,
    "CronJob.batch.volcano.sh",
    "Command",
    POD_GROUP,
    QUEUE,
    "ColocationConfiguration",
    "HyperNode",
    "JobFlow",
    "JobTemplate",
)
QUEUES = ("root", "default")  # those that Volcano's scheduler makes
INQUEUE = {"status": {"phase": "Inqueue"}}  # a merge patch of the object itself: no /status there
SCHEDULERS = ("volcano", "corral")  # whose pods get a PodGroup when they have none


@contextmanager
def controllers(plane: ControlPlane, queues: Iterable[str] = ()) -> Iterator[Process]:
    """vc-controller-manager while the block lasts; afterwards neither Volcano's kinds nor objects.

    Pods stay. Raises: BinariesMissing.
    """
    cluster = plane.cluster()
    flags = [f"--scheduler-name={name}" for name in SCHEDULERS]
    with served(cluster, KINDS):
        cluster.create_all(map(queue, queues))
        command: list[str | Path] = [
            program(),
            f"--kubeconfig={plane.kubeconfig()}",
            "--leader-elect=false",
            "--enable-healthz=false",
            *flags,
        ]
        # It stops before its kinds go: it would make anew what goes.
        with running(command, plane.folder / "vc-controller-manager.log") as process:
            yield process


def clear(cluster: Cluster) -> None:
    """Nothing but the usual queues is left of what tests and the controllers have made.

    Pods go first, so that no PodGroup is made for them again.
    """
    for kind in (JOB, "Job", "Pod", POD_GROUP, "HyperNode"):
        cluster.clear(kind)
    for one in cluster.list(QUEUE):
        if one["metadata"]["name"] not in QUEUES:
            cluster.delete(QUEUE, one["metadata"]["name"])


def program() -> Path:
    """vc-controller-manager of the version its go.mod names. Raises: BinariesMissing."""
    return operator("vc-controller-manager")
