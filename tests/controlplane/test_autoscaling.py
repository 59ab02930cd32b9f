"""The simulated autoscalers act on kube-apiserver, beside kube-scheduler, as `plays` says."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.autoscaling.gang_plays import GANG_PLAYS, SETTINGS
from tests.autoscaling.plays import PLAYS, Play, play
from tests.cluster import RACK, Cluster
from tests.controlplane import kinds
from tests.controlplane.plane import ControlPlane
from tests.corral_process import scheduled

pytestmark = [pytest.mark.e2e, pytest.mark.slow]


@pytest.fixture(scope="module")
def requests(plane: ControlPlane) -> Iterator[None]:
    """ProvisioningRequests are served."""
    with kinds.served(plane.cluster(), ("ProvisioningRequest",)):
        yield


@pytest.mark.parametrize("scene", PLAYS, ids=lambda scene: scene.__name__)
def test_on_kube_apiserver(
    scene: Play, plane: ControlPlane, cluster: Cluster, requests: None
) -> None:
    plane.start_scheduler()
    play(scene, cluster)


@pytest.mark.parametrize("scene", GANG_PLAYS, ids=lambda scene: scene.__name__)
def test_gangs_on_kube_apiserver(
    scene: Play, plane: ControlPlane, cluster: Cluster, requests: None, tmp_path: Path
) -> None:
    with scheduled(plane, tmp_path, levels=[RACK], **SETTINGS) as corral:
        play(scene, cluster)
        assert corral.bugs() == {}
