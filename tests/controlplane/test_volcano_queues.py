"""Volcano's controllers on a cluster without the queues that its scheduler makes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.app.dialects.volcano.workloads import queue, task, vcjob
from tests.cluster import GPU, Cluster
from tests.controlplane.plane import ControlPlane
from tests.controlplane.seen import START_SECONDS
from tests.controlplane.volcano import QUEUE, controllers
from tests.controlplane.volcano_cluster import bound, build
from tests.corral_process import scheduled

pytestmark = [pytest.mark.e2e, pytest.mark.slow]


def test_queues_that_are_absent_are_made_and_a_vcjob_starts(
    plane: ControlPlane, cluster: Cluster, tmp_path: Path
) -> None:
    with controllers(plane):
        build(plane, cluster)
        limited = queue("root", weight=7)
        cluster.create(limited)
        with scheduled(plane, tmp_path, levels=(), volcano_queues="root,default") as corral:
            cluster.create(vcjob("train", task("worker", 2, requests={GPU: 8})))
            cluster.wait(lambda: len(bound(cluster, "train")) == 2, START_SECONDS, "train starts")
            assert (cluster.get(QUEUE, "root") or {})["spec"]["weight"] == 7
            assert corral.bugs() == {}
