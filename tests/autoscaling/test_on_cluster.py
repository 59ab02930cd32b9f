"""The simulated autoscalers act on the sandbox as `plays` says, and bring a gang its rack."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.autoscaling.cluster_autoscaler.loop import ClusterAutoscaler
from tests.autoscaling.objects import definition
from tests.autoscaling.on_cluster import autoscaling
from tests.autoscaling.plays import PLAYS, SECONDS, SPEED, Play, play, rack, said
from tests.cluster import RACK, Cluster
from tests.contract.worlds import sandbox
from tests.workloads import asking, behind_gate, members


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A sandbox without nodes whose scheduler asks a Corral, and that knows requests."""
    with sandbox(tmp_path_factory.mktemp("sandbox"), (RACK,)) as cluster:
        cluster.create(definition())
        yield cluster


@pytest.mark.slow
@pytest.mark.parametrize("scene", PLAYS, ids=lambda scene: scene.__name__)
def test_on_the_sandbox(scene: Play, cluster: Cluster) -> None:
    play(scene, cluster)


@pytest.mark.slow
def test_a_marked_gang_is_placed_whole_once_its_rack_is_there(cluster: Cluster) -> None:
    """Scenario 1, with the marks made here: labels and GPUs come late, and no ninth node comes."""

    def scene(cluster: Cluster) -> None:
        with autoscaling(cluster, ClusterAutoscaler([rack(max=12)]), speed=SPEED) as driver:
            gang = members("g", 8, annotations=asking(required=RACK))
            cluster.create_all(map(behind_gate, gang))
            for number in range(8):
                said(cluster, f"g-{number}", "Unschedulable")
            cluster.wait(lambda: len(cluster.bound()) == 8, SECONDS, "the gang bound")
            settled = driver.now + 120.0
            cluster.wait(lambda: driver.now > settled, SECONDS, "two minutes more")
            assert len(set(cluster.bound().values())) == 8
            assert len(cluster.list("Node")) == len(driver.autoscaler.cloud.machines) == 8

    play(scene, cluster)
