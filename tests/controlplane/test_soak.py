"""The short soak: what `python -m benchmarks.soak` does for five minutes; and whether it would see.

The soak is worth what its history notices, so that is tested with bindings no Corral would make.
"""

from __future__ import annotations

import time
from pathlib import Path

import httpx
import pytest

from benchmarks.soak import soak
from tests.cluster import GPU, RACK, Cluster, Object, grid, pod
from tests.controlplane.chronicle import Chronicle
from tests.controlplane.cut_proxy import CutProxy
from tests.controlplane.plane import ControlPlane, token
from tests.workloads import asking, members

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

SECONDS, KILL_SECONDS = 30.0, 6.0  # and a third more without kills
SEEN_SECONDS = 10.0
LATE_SECONDS = 0.2


@pytest.mark.timeout(240)  # 60 s on an idle machine: the end is waited for
def test_kills_cuts_and_flapping_nodes_leave_no_partial_gang_and_right_books(
    plane: ControlPlane, cluster: Cluster, tmp_path: Path
) -> None:
    run = soak(plane, tmp_path, SECONDS, seed=1, kill_seconds=KILL_SECONDS)
    assert run.problems == []
    assert run.kills >= 4
    assert run.proxy.connections_cut >= 4
    assert run.unrest.counts.nodes_lost >= 5
    assert run.unrest.counts.started >= 10
    assert len(run.audited) == 2  # of what is left, and of every rack full
    assert all(run.audited)


def test_the_history_notices_a_gang_in_two_racks_and_its_start_without_all_pods(
    plane: ControlPlane, cluster: Cluster
) -> None:
    plane.nodes(grid(racks=2, nodes=1, gpus=8))
    with Chronicle(plane, gpus_per_node=8) as chronicle:
        two_of_three = members("gang", 3, numbers=range(2), annotations=asking(required=RACK))
        for number, one in enumerate(two_of_three):
            cluster.create(one)
            cluster.bind(f"gang-{number}", f"b0-r{number}-n0")
        cluster.wait(lambda: len(chronicle.problems) == 2, SEEN_SECONDS, "two problems")
    assert "gang gang starts with 1 of 3 pods" in chronicle.problems[0]
    assert "gang gang is in several racks" in chronicle.problems[1]
    assert chronicle.bindings == 2


class Late(Chronicle):
    """On a machine that has little time for it."""

    def _note(self, change: Object) -> None:
        time.sleep(LATE_SECONDS)
        super()._note(change)


def test_the_history_notices_a_node_with_more_than_it_has_however_late_it_is_read(
    plane: ControlPlane, cluster: Cluster
) -> None:
    plane.nodes(grid(racks=1, nodes=1, gpus=8))
    with Late(plane, gpus_per_node=8) as chronicle:
        for name in ("a", "b"):
            cluster.create(pod(name, requests={GPU: 6}))
            cluster.bind(name, "b0-r0-n0")
    (problem,) = chronicle.problems
    assert "node b0-r0-n0 has too many pods: ['a', 'b']" in problem


def test_a_watch_through_the_proxy_goes_on_until_it_is_cut(
    plane: ControlPlane, cluster: Cluster
) -> None:
    with (
        CutProxy(plane.url) as proxy,
        Cluster(proxy.url, token("admin"), plane.ca) as through,
    ):
        watch = through.watch("Node", SEEN_SECONDS)
        plane.nodes(grid(racks=1, nodes=1))
        assert next(watch)["object"]["metadata"]["name"] == "b0-r0-n0"
        proxy.cut()
        with pytest.raises(httpx.HTTPError):
            next(watch)
        assert through.list("Node")
        assert proxy.connections_cut == 1
