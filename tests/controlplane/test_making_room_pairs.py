"""With `preempt: on` and two pairs of {kube-scheduler, Corral}: the one that makes room ends in it.

Pods that end do so when the test says; what the first Corral began, the second one goes on with:
the same place, and no other victim.
"""

from __future__ import annotations

import time
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import pytest

from tests.cluster import Cluster, grid
from tests.controlplane import kubelet
from tests.controlplane.pairs import for_root, leader, pair
from tests.controlplane.plane import ControlPlane
from tests.controlplane.test_making_room import MADE_SECONDS, SOON, racks, started
from tests.controlplane.test_preemption import QUIET_SECONDS, classes, live, start
from tests.controlplane.test_replicas import ELECTION, TAKEN_OVER_SECONDS
from tests.controlplane.test_room import told, train

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.usefixtures("classes")]

__all__ = ["classes"]


@for_root
@pytest.mark.timeout(240)
@pytest.mark.parametrize(
    "ends", [True, pytest.param(False, marks=pytest.mark.thorough)], ids=["killed", "paused"]
)
def test_the_next_leader_goes_on_with_the_room_that_is_made_and_takes_no_other_victim(
    plane: ControlPlane, cluster: Cluster, tmp_path: Path, ends: bool
) -> None:
    plane.nodes(grid(racks=2, nodes=4, gpus=8))
    prefix = "room-killed" if ends else "room-paused"
    with plane.granted("corral-evict"), ExitStack() as stack:
        pairs = {
            name: stack.enter_context(pair(plane, tmp_path, name, election=ELECTION, **SOON))
            for name in (f"{prefix}-0", f"{prefix}-1")
        }
        name = cluster.wait(lambda: leader(plane, pairs), TAKEN_OVER_SECONDS, "a leader")
        gangs = start(cluster, "a", 4, grace=300) | start(cluster, "b", 4, grace=300)
        waiting = train(cluster)
        cluster.wait(lambda: len(live(cluster, "") - waiting) == 4, MADE_SECONDS, "all that go")
        stays = live(cluster, "") - waiting
        assert "evicts 4 pods of 1 gang" in told(cluster, "Preempting")
        old = pairs.pop(name)
        if ends:
            old.kill()
        else:
            old.pause()
        cluster.wait(lambda: leader(plane, pairs), TAKEN_OVER_SECONDS, "another leader")
        time.sleep(QUIET_SECONDS)
        assert live(cluster, "") - waiting == stays
        kubelet.end_deleted_pods(cluster)
        if not ends:
            old.resume()
        seconds = TAKEN_OVER_SECONDS + MADE_SECONDS
        cluster.wait(partial(started, cluster, waiting), seconds, "the gang in the freed rack")
        time.sleep(QUIET_SECONDS)
        assert live(cluster, "") - waiting == stays
        assert len(racks(cluster, waiting)) == 1
        assert gangs > stays
        for each in pairs.values():
            assert each.corral.bugs() == {}
