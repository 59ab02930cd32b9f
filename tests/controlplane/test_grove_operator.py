"""Grove's own operator makes the pods, and no scheduler but kube-scheduler with Corral binds them.

First the cases of Grove's own end-to-end tests, then what happens to pods that run.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.cluster import Cluster, Objects
from tests.controlplane.grove import (
    SCHEDULER,
    clear,
    clear_pods,
    grove_operator,
    pods_of,
    why,
)
from tests.controlplane.grove_cases import CASES, LEVELS, Together, nodes
from tests.controlplane.kubelet import kubelets
from tests.controlplane.plane import ControlPlane
from tests.controlplane.process import Process
from tests.controlplane.seen import START_SECONDS
from tests.corral_process import scheduled

pytestmark = [pytest.mark.e2e, pytest.mark.slow]


@pytest.fixture(scope="module")
def grove(plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Process]:
    with grove_operator(plane, tmp_path_factory.mktemp("grove"), LEVELS) as process:
        yield process


@pytest.fixture(scope="module")
def module_stage(
    plane: ControlPlane, grove: Process, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Cluster]:
    """28 nodes with kubelets, kube-scheduler and Corral."""
    cluster = plane.cluster()
    plane.nodes(nodes())
    folder = tmp_path_factory.mktemp("corral")
    with (
        scheduled(plane, folder, SCHEDULER, levels=()) as corral,
        kubelets(cluster),
    ):
        yield cluster
        assert corral.bugs() == {}
    plane.stop_scheduler()
    clear(cluster)
    cluster.delete_all("Node")


@pytest.fixture
def stage(module_stage: Cluster, grove: Process) -> Iterator[Cluster]:
    """The same, without pods again afterwards."""
    yield module_stage
    grove.check()
    clear_pods(module_stage)


@pytest.mark.parametrize("name", CASES)
def test_a_case_of_groves_own(stage: Cluster, name: str) -> None:
    case, named = CASES[name], name.partition("-")[0]
    stage.create({**case.made, "metadata": {**case.made["metadata"], "name": named}})
    if not case.pods:
        told = stage.wait(lambda: why(stage, named), START_SECONDS, "it says why it waits")
        assert "7 of 10 pods fit" in told[f"{named}-0"]
        assert not any(each["spec"].get("nodeName") for each in pods_of(stage, named))
        return
    pods = all_bound(stage, named, case.pods)
    assert apart(stage, pods, *case.together) == []


def all_bound(cluster: Cluster, name: str, pods: int) -> Objects:
    """The pods of a PodCliqueSet, once there are that many and all have nodes."""

    def found() -> Objects:
        there = [each for each in pods_of(cluster, name) if each["spec"].get("nodeName")]
        return there if len(there) == pods else []

    return cluster.wait(found, START_SECONDS, f"{pods} pods have nodes")


def apart(cluster: Cluster, pods: Objects, *together: Together) -> list[Any]:
    """What of these pods is not in one domain."""
    nodes = {each["metadata"]["name"]: each for each in cluster.list("Node")}
    found = [(each, each.apart(pods, nodes)) for each in together]
    return [each for each in found if each[1]]
