"""Corral as a pod runs it: by the service account that kubelet mounts, without a kubeconfig."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import yaml

from tests.cluster import RACK, Cluster, Object, Refused, grid
from tests.controlplane.plane import ROOT, ControlPlane
from tests.controlplane.process import Process
from tests.controlplane.seen import START_SECONDS
from tests.corral_process import IN_ROOT, CorralProcess
from tests.workloads import asking, members

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

DEPLOYMENT = ROOT / "deploy" / "corral.yaml"


def mounted(
    plane: ControlPlane, account: str, folder: Path, namespace: str = "corral-system"
) -> Path:
    """The folder as kubelet fills it: a token the API server has signed, and its authority."""
    folder.mkdir()
    path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{account}/token"
    asked = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    answer = plane.cluster().request("POST", path, body=asked).json()
    (folder / "token").write_text(answer["status"]["token"], encoding="utf-8")
    shutil.copy(plane.ca, folder / "ca.crt")
    return folder


@pytest.fixture
def in_pod(plane: ControlPlane, monkeypatch: pytest.MonkeyPatch) -> None:
    """What kubelet tells every container: where the API server is."""
    address = urlsplit(plane.url)
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", str(address.hostname))
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", str(address.port))


@contextmanager
def token_kept(account: Path, folder: Path, log: Path) -> Iterator[None]:
    """The container `token` of deploy/corral.yaml, with another place for each folder."""
    (shipped,) = [one for one in yaml.safe_load_all(DEPLOYMENT.read_text()) if _is_pods(one)]
    (keeper,) = shipped["spec"]["template"]["spec"]["initContainers"]
    program, command, whose, _ = keeper["command"]
    assert program == "corral"
    folder.mkdir()
    flags = [command, whose, folder, f"--service-account={account}"]
    process = Process([*IN_ROOT, sys.executable, "-m", "app", *flags], log)
    try:
        deadline = time.monotonic() + START_SECONDS
        while not (folder / "token").exists():
            process.check()
            assert time.monotonic() < deadline, log.read_text()
            time.sleep(0.02)
        yield
    finally:
        process.stop()


def test_a_gang_starts_with_a_corral_that_has_nothing_but_its_service_account(
    plane: ControlPlane, cluster: Cluster, tmp_path: Path, in_pod: None
) -> None:
    """The token of its own that Corral runs with comes from the scheduler's account."""
    account = mounted(plane, "corral-scheduler", tmp_path / "account")
    own = tmp_path / "own"
    plane.nodes(grid(racks=1, nodes=4, gpus=8))
    with (
        token_kept(account, own, tmp_path / "token.log"),
        CorralProcess(None, tmp_path, service_account=str(own)) as corral,
    ):
        plane.start_scheduler(extender=corral.url)
        cluster.create_all(members("g", 4, annotations=asking(required=RACK)))
        cluster.wait(lambda: len(cluster.bound()) == 4, START_SECONDS, "four bindings")
        assert corral.metric('corral_binds_total{outcome="bound"}') == 4


def test_corrals_account_gets_no_token_not_even_its_own(
    plane: ControlPlane, cluster: Cluster
) -> None:
    for account in ("corral", "corral-scheduler"):
        path = f"/api/v1/namespaces/corral-system/serviceaccounts/{account}/token"
        asked = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
        with pytest.raises(Refused) as refused:
            plane.cluster("corral").request("POST", path, body=asked)
        assert refused.value.status == 403
    assert len(plane.denials()) == 2


def _is_pods(thing: Object) -> bool:
    return bool(thing["kind"] == "Deployment")
