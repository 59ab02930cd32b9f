"""Pairs of {kube-scheduler, Corral}, as the pods of deploy/corral.yaml are.

    with pair(plane, folder, "corral-0") as first, pair(plane, folder, "corral-1"):
        leader(plane, ("corral-0", "corral-1"))     # kube-schedulers have elected one

Each needs a host name of its own, which only root may give a process.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.controlplane.plane import ControlPlane
from tests.controlplane.process import Process
from tests.corral_process import ROOT, CorralProcess

LEASE = "corral-system/corral-scheduler"
for_root = pytest.mark.skipif(
    os.geteuid() != 0, reason="only root may give a process a host name of its own"
)


@dataclass(slots=True)
class Pair:
    """One pod of deploy/corral.yaml."""

    name: str
    corral: CorralProcess
    scheduler: Process

    def kill(self) -> None:
        """As its machine's end would."""
        self.scheduler.kill()
        self.corral.kill()

    def terminate(self) -> None:
        """As kubelet ends a pod: SIGTERM for both at once. Raises: TimeoutError."""
        with ThreadPoolExecutor(1) as other:
            stopped = other.submit(self.scheduler.stop)
            self.corral.terminate()
            stopped.result()

    def pause(self) -> None:
        """As a machine would that has no time for them."""
        self.corral.pause()
        self.scheduler.pause()

    def resume(self) -> None:
        """Both go on, and take the cluster for what it was."""
        self.corral.resume()
        self.scheduler.resume()


@contextmanager
def pair(
    plane: ControlPlane,
    folder: Path,
    name: str,
    *,
    tree: Path = ROOT,
    election: Mapping[str, str] | None = None,
    **settings: object,
) -> Iterator[Pair]:
    """Both processes, ready, until the block ends or they are ended.

    tree: the sources of Corral. election: of kube-scheduler's leaderElection, what is not as
    shipped. settings: of Corral.
    """
    own = folder / name
    own.mkdir(parents=True, exist_ok=True)
    corral = CorralProcess(
        plane.kubeconfig("corral"), own, tree=tree, neighbour_lease=LEASE, pod_name=name, **settings
    )
    with corral, plane.scheduler(name, corral.url, leaderElection=election or {}) as scheduler:
        yield Pair(name, corral, scheduler)


def leader(plane: ControlPlane, pods: Collection[str]) -> str:
    """Which of these pods leads, "" if none does."""
    namespace, _, name = LEASE.partition("/")
    path = f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases/{name}"
    answer = plane.cluster().request("GET", path).json()
    holder = str(answer["spec"].get("holderIdentity") or "").partition("_")[0]
    return holder if holder in pods else ""
