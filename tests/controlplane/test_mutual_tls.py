"""kube-scheduler and Corral with a certificate each: the right ones, wrong ones, and new ones."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path

import pytest
from cryptography.x509.oid import ExtendedKeyUsageOID

from tests.certificates import client, pair, replace
from tests.cluster import RACK, Cluster, grid
from tests.controlplane.cut_proxy import CutProxy
from tests.controlplane.plane import SCHEDULER_CONFIG, ControlPlane
from tests.controlplane.seen import START_SECONDS, clear, racks_of, told_to_all
from tests.controlplane.webhook import installed
from tests.corral_process import CorralProcess
from tests.workloads import GATE, asking, gates_of, member, members

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

CONFIG = SCHEDULER_CONFIG.with_name("1.36-mtls.yaml")
IN_RACK = asking(required=RACK)
TOMORROW = "schedulers of tomorrow"
ROUNDS = int(os.environ.get("CORRAL_FAULT_ROUNDS", "1"))
CLIENT_SECONDS = 1.5  # client-go uses a pair it has read for a second
SERVER = ExtendedKeyUsageOID.SERVER_AUTH
FAILED_HANDSHAKES = 'corral_broken_requests_total{reason="handshake"}'
LOADED = 'corral_certificates_total{outcome="loaded",port="extender"}'


class Folder:
    """The files of both sides."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.client_ca = path / "client-ca.crt"
        self.serve("server")
        self.trust("schedulers")
        replace(path / "server-ca.crt", pair("servers").certificate)

    def serve(self, name: str) -> None:
        """A new certificate for Corral, of the authority that kube-scheduler trusts."""
        client(name, by="servers", usage=SERVER).write(self.path, "server")

    def trust(self, *authorities: str) -> None:
        """The authorities of clients that Corral trusts from now on."""
        replace(self.client_ca, b"".join(pair(name).certificate for name in authorities))

    def show(self, name: str, by: str) -> dict[str, Path]:
        """A new certificate for kube-scheduler; what its tlsConfig says."""
        certificate, key = client(name, by=by).write(self.path, "scheduler")
        return {**self.no_certificate, "certFile": certificate, "keyFile": key}

    @property
    def no_certificate(self) -> dict[str, Path]:
        return {"caFile": self.path / "server-ca.crt"}

    @property
    def settings(self) -> dict[str, str]:
        return {
            "extender_cert": str(self.path / "server.crt"),
            "extender_key": str(self.path / "server.key"),
            "extender_client_ca": str(self.client_ca),
        }


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


@pytest.fixture
def guarded(
    plane: ControlPlane, cluster: Cluster, folder: Folder, tmp_path: Path
) -> Iterator[CorralProcess]:
    """A Corral that is open to other machines, and to clients with a certificate only."""
    with CorralProcess(plane.kubeconfig("corral"), tmp_path, **folder.settings) as corral:
        yield corral


def test_the_right_certificate_is_served_and_its_gang_is_bound(
    plane: ControlPlane, cluster: Cluster, guarded: CorralProcess, folder: Folder
) -> None:
    plane.nodes(grid(racks=2, nodes=4, gpus=8))
    plane.start_scheduler(CONFIG, guarded.url, folder.show("scheduler", by="schedulers"))
    cluster.create_all(members("red", 4, annotations=IN_RACK))

    cluster.wait(lambda: len(cluster.bound()) == 4, START_SECONDS, "the gang's binding")
    assert len(racks_of(cluster)) == 1
    assert guarded.metric('corral_binds_total{outcome="bound"}') == 4
    assert guarded.metric(FAILED_HANDSHAKES) == 0


@pytest.mark.parametrize(
    ("own", "alert"),
    [
        pytest.param(None, "tls: certificate required", id="none"),
        pytest.param("strangers", "tls: unknown certificate authority", id="another_authoritys"),
        pytest.param("servers", "tls: unknown certificate authority", id="the_ports_authoritys"),
    ],
)
def test_no_certificate_or_a_wrong_one_gets_an_alert_and_no_pod_is_bound(
    plane: ControlPlane,
    cluster: Cluster,
    guarded: CorralProcess,
    folder: Folder,
    own: str | None,
    alert: str,
) -> None:
    plane.nodes(grid(racks=2, nodes=4, gpus=8))
    shown: Mapping[str, Path] = folder.show("scheduler", by=own) if own else folder.no_certificate
    plane.start_scheduler(CONFIG, guarded.url, shown)
    cluster.create_all(members("red", 4, annotations=IN_RACK))

    told = cluster.wait(lambda: told_to_all(cluster, 4), START_SECONDS, "four refusals")
    assert all(sentence.endswith(f"remote error: {alert}") for sentence in told.values())
    assert cluster.bound() == {}
    assert guarded.metric(FAILED_HANDSHAKES) >= 4
    assert guarded.metric('corral_binds_total{outcome="bound"}') == 0

    plane.stop_scheduler()  # with the right one the same pods start
    plane.start_scheduler(CONFIG, guarded.url, folder.show("scheduler", by="schedulers"))
    cluster.wait(lambda: len(cluster.bound()) == 4, START_SECONDS, "the gang's binding")


@pytest.mark.timeout(90 + 30 * ROUNDS)
def test_every_certificate_is_exchanged_while_gangs_start_and_no_call_fails(
    plane: ControlPlane, cluster: Cluster, guarded: CorralProcess, folder: Folder
) -> None:
    plane.nodes(grid(racks=4, nodes=16, gpus=8))
    with CutProxy(guarded.url) as proxy:
        shown = folder.show("scheduler", by="schedulers")
        plane.start_scheduler(CONFIG, proxy.url, shown)
        before = len(plane.scheduler_log)
        today, tomorrow = "schedulers", TOMORROW
        for _ in range(ROUNDS):
            _start(cluster, proxy, "red", lambda: folder.serve("server of tomorrow"))
            _start(cluster, proxy, "blue", partial(folder.trust, today, tomorrow))
            _start(cluster, proxy, "green", partial(folder.show, "another scheduler", by=tomorrow))
            time.sleep(CLIENT_SECONDS)
            _start(cluster, proxy, "grey", partial(folder.trust, tomorrow))
            _start(cluster, proxy, "black", lambda: None)
            clear(cluster)
            today, tomorrow = tomorrow, today
        plane.stop_scheduler()
    assert guarded.metric(LOADED) >= 1 + 3 * ROUNDS  # at its start, and three times in each round
    assert guarded.metric(FAILED_HANDSHAKES) == 0
    said = plane.scheduler_log[before:]
    assert [line for line in said.splitlines() if "tls: " in line or "x509: " in line] == []
    # A pod may be turned away while its gang is not complete; a call that fails is told otherwise.
    events = [one for one in cluster.list("Event", "default") if one["reason"] != "Scheduled"]
    assert [one["message"] for one in events if "nodes are available" not in one["message"]] == []


def test_the_api_server_shows_the_webhook_its_certificate_where_one_is_asked_for(
    plane: ControlPlane, cluster: Cluster, tmp_path: Path
) -> None:
    authority = tmp_path / "apiservers.crt"
    replace(authority, pair("apiservers").certificate)
    with installed(plane, tmp_path, admission_client_ca=str(authority)) as webhook:
        assert GATE in gates_of(cluster.create(member("red", 0, 2)))
        assert webhook.corral.metric(FAILED_HANDSHAKES) == 0

        # To an authority that does not know the API server; without connections of before.
        replace(authority, pair("strangers").certificate)
        webhook.corral.kill()
        webhook.corral.start()
        assert gates_of(cluster.create(member("blue", 0, 2))) == []  # it fails open
        assert webhook.corral.metric(FAILED_HANDSHAKES) > 0


def _start(cluster: Cluster, proxy: CutProxy, gang: str, change: Callable[[], object]) -> None:
    """Starts a gang whose bindings need connections that did not exist before.

    `change` is made while kube-scheduler is at it.
    """
    connections = proxy.connections_made
    cluster.create_all(members(gang, 8, annotations=IN_RACK))
    change()
    cluster.wait(
        lambda: sum(name.startswith(gang) for name in cluster.bound()) == 8,
        START_SECONDS,
        f"the binding of {gang}",
    )
    assert proxy.connections_made > connections
