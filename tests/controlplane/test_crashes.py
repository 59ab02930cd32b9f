"""Corral may be killed at any instant: nothing is lost, nothing is held, nothing is bound twice."""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
import yaml

from tests.cluster import GPU, RACK, Cluster, Objects, grid, pod
from tests.controlplane.history import Moment, bindings, changes_after, since
from tests.controlplane.plane import ControlPlane, binaries, free_ports, wait_ready
from tests.controlplane.process import Process
from tests.controlplane.seen import START_SECONDS, clear, racks_of, told_to_all
from tests.corral_process import CorralProcess, scheduled
from tests.workloads import asking, members

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

ROUNDS = int(os.environ.get("CORRAL_FAULT_ROUNDS", "1"))
MORE = ROUNDS // 10  # of ten moments
IN_RACK = asking(required=RACK)
TEN_MOMENTS = [
    *(("created", pods) for pods in (1, 6, 11, 15, 16)),
    *(("bound", pods) for pods in (1, 4, 8, 12, 15)),
]


@pytest.fixture
def slow_corral(plane: ControlPlane, cluster: Cluster, tmp_path: Path) -> Iterator[CorralProcess]:
    """The same with one binding at a time, so that a kill can come between two of them."""
    with scheduled(plane, tmp_path, bind_concurrency=1) as corral:
        yield corral


@pytest.mark.timeout(240 * (1 + MORE))  # ten starts and restarts: 30 s on an idle machine
def test_a_gang_survives_kill_9_at_ten_moments_of_its_start(
    plane: ControlPlane, cluster: Cluster, slow_corral: CorralProcess
) -> None:
    plane.nodes(grid(racks=2, nodes=16, gpus=8))
    for moment in (1 + MORE) * TEN_MOMENTS:
        before = Moment.now(cluster)
        with ThreadPoolExecutor(1) as creator:
            creation = creator.submit(cluster.create_all, sixteen("gang"))
            wait_for_moment(cluster, before, moment)
            slow_corral.kill()
            created = creation.result(START_SECONDS)
        slow_corral.start()
        cluster.wait(lambda: len(cluster.bound()) == 16, START_SECONDS, "the gang's start")

        changes = since(before, cluster)
        assert sorted(uid for uid, _ in bindings(changes)) == sorted(
            one["metadata"]["uid"] for one in created
        )
        assert len(racks_of(cluster)) == 1
        fill_what_is_left(cluster)
        clear(cluster)


@pytest.mark.timeout(60 + 60 * ROUNDS)
def test_without_corral_no_member_is_bound_and_other_schedulers_go_on(
    plane: ControlPlane, cluster: Cluster, corral: CorralProcess, tmp_path: Path
) -> None:
    plane.nodes(grid(racks=1, nodes=4, gpus=8))
    with stock_scheduler(plane, tmp_path):
        for number in range(ROUNDS):
            corral.kill()
            cluster.create_all(members("gang", 4, annotations=IN_RACK))
            cluster.create(pod("theirs", scheduler="default-scheduler", requests={GPU: 8}))
            cluster.wait(lambda: "theirs" in cluster.bound(), START_SECONDS, "the other's binding")
            told = cluster.wait(lambda: told_to_all(cluster, 4), START_SECONDS, "four verdicts")
            assert list(cluster.bound()) == ["theirs"]
            assert all("connection refused" in sentence for sentence in told.values())

            corral.start()
            cluster.delete("Pod", "theirs")
            cluster.wait(
                lambda: len(cluster.bound()) == 4, START_SECONDS, f"gang {number} after all"
            )
            clear(cluster)


def wait_for_moment(cluster: Cluster, before: Moment, moment: tuple[str, int]) -> None:
    """Returns when that many pods have been seen to be created, or to be bound."""
    kind, wanted = moment
    seen: dict[str, set[str]] = {"created": set(), "bound": set()}
    with closing(changes_after(before, cluster, START_SECONDS)) as changes:
        for change in changes:
            uid = change["object"]["metadata"]["uid"]
            seen["created"].add(uid)
            if change["object"]["spec"].get("nodeName"):
                seen["bound"].add(uid)
            if len(seen[kind]) >= wanted:
                return
    raise TimeoutError(f"{wanted} pods were not {kind} in {START_SECONDS:g} s")


def sixteen(name: str) -> Objects:
    """A gang that takes three quarters of every node of one of the two racks."""
    return members(name, 16, requests={GPU: 6}, annotations=IN_RACK)


def fill_what_is_left(cluster: Cluster) -> None:
    """Places ordinary pods on every GPU the gang has left; held capacity would keep one away."""
    cluster.create_all(pod(f"whole-{at}", requests={GPU: 8}) for at in range(16))
    cluster.wait(lambda: len(cluster.bound()) == 32, START_SECONDS, "the other rack is free")
    cluster.create_all(pod(f"rest-{at}", requests={GPU: 2}) for at in range(16))
    cluster.wait(lambda: len(cluster.bound()) == 48, START_SECONDS, "the gang's rack is free")


@contextmanager
def stock_scheduler(plane: ControlPlane, folder: Path) -> Iterator[None]:
    """The cluster's own kube-scheduler, which knows nothing of Corral."""
    settings = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "clientConnection": {"kubeconfig": str(plane.kubeconfig("admin"))},
        "leaderElection": {"leaderElect": False},
    }
    file = folder / "stock-scheduler.yaml"
    file.write_text(yaml.safe_dump(settings), encoding="utf-8")
    (port,) = free_ports(1)
    flags = (f"--config={file}", "--bind-address=127.0.0.1", f"--secure-port={port}")
    process = Process([binaries() / "kube-scheduler", *flags], folder / "stock-scheduler.log")
    try:
        wait_ready(process, f"https://127.0.0.1:{port}/readyz")
        yield
    finally:
        process.stop()
