"""A gang that waits is told who would have to go for it; that is true, and no pod goes.

Nodes of 8 GPUs and pods of 8; `t` is a gang of four of priority 1000. No kubelet runs here.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster import Cluster, Object, grid
from tests.controlplane.plane import ControlPlane
from tests.controlplane.seen import START_SECONDS
from tests.controlplane.test_preemption import (
    IN_RACK,
    QUIET_SECONDS,
    URGENT,
    classes,
    live,
    start,
)
from tests.controlplane.test_preemption_scenarios import begin, protect
from tests.corral_process import CorralProcess, scheduled
from tests.workloads import members

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.usefixtures("classes", "corral")]

__all__ = ["classes"]
TOLD_SECONDS = 30  # a gang asks once it has waited for ten


@pytest.fixture
def corral(plane: ControlPlane, cluster: Cluster, tmp_path: Path) -> Iterator[CorralProcess]:
    """Pods without a controller may go, too: the tests' have none."""
    plane.nodes(grid(racks=2, nodes=4, gpus=8))
    with scheduled(plane, tmp_path, bare_victims=True) as corral:
        yield corral
        assert corral.bugs() == {}


def train(cluster: Cluster, pods: int = 4) -> set[str]:
    """The gang that waits."""
    spec = {"annotations": IN_RACK, "priorityClassName": URGENT}
    return {each["metadata"]["name"] for each in cluster.create_all(members("t", pods, **spec))}


def labelled(one: Object) -> Object:
    """A pod that the budget selects."""
    one["metadata"].setdefault("labels", {})["app"] = "kept"
    return one


def told(cluster: Cluster, reason: str) -> str:
    """What the gang is told."""

    def sentences() -> list[str]:
        events = cluster.list("Event", "default")
        return [each["message"] for each in events if each.get("reason") == reason]

    cluster.wait(sentences, TOLD_SECONDS, reason)
    return sentences()[-1]


def test_a_waiting_gang_is_told_who_would_have_to_go_and_starts_once_they_have_gone(
    cluster: Cluster,
) -> None:
    running = start(cluster, "a", 4) | start(cluster, "b", 2) | start(cluster, "c", 2)
    waiting = train(cluster)
    said = told(cluster, "RoomByPreemption")
    assert "if 4 pods of 1 gang went, and none is evicted" in said
    assert said.endswith(": gang default/a (priority 0)")
    time.sleep(QUIET_SECONDS)
    assert live(cluster, "") == running | waiting, "no pod goes"
    for name in live(cluster, "a-"):
        cluster.delete("Pod", name)
    cluster.wait(lambda: waiting <= cluster.bound().keys(), START_SECONDS, "what was said is true")


def test_a_disruption_budget_is_a_wall(cluster: Cluster) -> None:
    start(cluster, "a", 4, labelled)
    start(cluster, "b", 2)
    start(cluster, "c", 2)
    for name in live(cluster, "a-"):
        begin(cluster, name, "2026-01-01T00:00:00Z")
    protect(cluster, "kept", 1)
    train(cluster)
    said = told(cluster, "RoomByPreemption")
    assert ": gang default/b (priority 0), gang default/c (priority 0)" in said
