"""Corral as a pod runs it: by the service account that kubelet mounts, without a kubeconfig."""

from __future__ import annotations

import shutil
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.cluster import RACK, Cluster, grid
from tests.controlplane.plane import ControlPlane
from tests.controlplane.seen import START_SECONDS
from tests.corral_process import CorralProcess
from tests.workloads import asking, members

pytestmark = [pytest.mark.e2e, pytest.mark.slow]


def mounted(plane: ControlPlane, folder: Path) -> Path:
    """The folder as kubelet fills it: a token the API server has signed, and its authority."""
    folder.mkdir()
    path = "/api/v1/namespaces/corral-system/serviceaccounts/corral/token"
    asked = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    answer = plane.cluster().request("POST", path, body=asked).json()
    (folder / "token").write_text(answer["status"]["token"], encoding="utf-8")
    shutil.copy(plane.ca, folder / "ca.crt")
    return folder


def test_a_gang_starts_with_a_corral_that_has_nothing_but_its_service_account(
    plane: ControlPlane, cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = urlsplit(plane.url)
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", str(address.hostname))
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", str(address.port))
    account = mounted(plane, tmp_path / "account")
    plane.nodes(grid(racks=1, nodes=4, gpus=8))
    with CorralProcess(None, tmp_path, service_account=str(account)) as corral:
        plane.start_scheduler(extender=corral.url)
        cluster.create_all(members("g", 4, annotations=asking(required=RACK)))
        cluster.wait(lambda: len(cluster.bound()) == 4, START_SECONDS, "four bindings")
        assert corral.metric('corral_binds_total{outcome="bound"}') == 4
