"""The simulated autoscalers act on kube-apiserver, beside kube-scheduler, as `plays` says."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.autoscaling.plays import PLAYS, Play, play
from tests.cluster import Cluster
from tests.controlplane import kinds
from tests.controlplane.plane import ControlPlane

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
