"""The chart on a real API server: taken as it is made, installed by Helm, and enough for Corral."""

from __future__ import annotations

import base64
import json
import socket
import ssl
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import yaml
from typer.testing import CliRunner

from app.cli import main
from app.settings import ENV_PREFIX
from tests.cluster import BLOCK, RACK, Cluster, Object, grid
from tests.controlplane.built import skip_unless_built
from tests.controlplane.chart_values import BY_LABEL, EVERYTHING, PLACING, env
from tests.controlplane.kinds import defined, definition
from tests.controlplane.packaged import CHART, HOME, chart, helm, said_by_helm, tried
from tests.controlplane.plane import ELSEWHERE, ControlPlane, free_ports, may
from tests.controlplane.seen import START_SECONDS
from tests.controlplane.test_service_account import mounted
from tests.corral_process import CorralProcess
from tests.workloads import asking, members

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

EVICT = {"apiGroups": [""], "resources": ["pods/eviction"], "verbs": ["create"]}
# Settings that read and write what only their ClusterRoles allow, from the first seconds on.
DEMANDING: dict[str, Any] = {
    "settings": {
        "levels": [BLOCK, RACK],
        "hyper_nodes_from": [BLOCK, RACK],
        "native_pod_groups": "on",
        "preempt": "on",
        "protect_held_nodes": True,
    },
    "admission": {
        "namespaceSelector": {
            "matchExpressions": [{"key": "team", "operator": "NotIn", "values": ["x"]}]
        }
    },
    "webhook": {"enabled": True},
    "hyperNodeCrd": {"enabled": True},
}
SETS: dict[str, dict[str, Any]] = {
    "as_it_comes": {},
    "everything": {**EVERYTHING, "createNamespace": True},
    "made_certificates": {
        **EVERYTHING,
        "webhook": {"enabled": True},
        "api": {"enabled": True},
        "admission": {"namespaceSelector": BY_LABEL, "podSelector": BY_LABEL},
        "settings": {"scheduler_name": "a,b", "kueue_manages": True, "native_pod_groups": "on"},
    },
    "cert_manager": {
        "webhook": {"enabled": True, "certificate": "cert-manager"},
        "api": {"enabled": True, "certificate": "cert-manager"},
        "settings": {"levels": ["a/b", "c/d"]},
    },
    "placing": PLACING,
    "beside": {**EVERYTHING, "mode": "beside", "beside": {"clusterIP": "10.0.0.9"}},
}


@pytest.fixture(scope="module")
def elsewhere(plane: ControlPlane) -> Iterator[None]:
    """The other namespace is there; it takes seconds to go."""
    cluster = plane.cluster()
    metadata = {"name": ELSEWHERE}
    cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
    yield
    cluster.delete("Namespace", ELSEWHERE)
    cluster.wait(lambda: not cluster.get("Namespace", ELSEWHERE), START_SECONDS, "it is gone")


@pytest.mark.usefixtures("elsewhere")
@pytest.mark.parametrize("namespace", [HOME, ELSEWHERE])
@pytest.mark.parametrize("name", SETS)
def test_the_api_server_takes_what_is_made_of_values(
    cluster: Cluster, name: str, namespace: str
) -> None:
    objects = chart(SETS[name], namespace)
    kinds = [definition(kind) for kind in ("Certificate", "Issuer")]
    needed = {each["kind"] for each in objects} & {"Certificate", "Issuer"}
    with defined(cluster, kinds if needed else []):
        for each in objects:
            tried(cluster, each)


class Installed:
    """A release in a cluster that had nothing of Corral's before."""

    def __init__(self, plane: ControlPlane, folder: Path) -> None:
        self.plane = plane
        self.folder = folder

    def helm(self, *command: str, values: dict[str, Any] | None = None) -> str:
        """One of Helm's commands on the release."""
        flags = [command[0], "corral", *command[1:], f"--namespace={ELSEWHERE}"]
        return helm(self.plane.kubeconfig(), *flags, values=values)

    def account(self, name: str) -> Path:
        """What kubelet mounts for a service account of the release."""
        return mounted(self.plane, name, self.folder / name, ELSEWHERE)

    @property
    def secret(self) -> Object:
        found = self.plane.cluster().get("Secret", "corral-webhook", ELSEWHERE)
        assert found
        return found

    def scheduler_config(self) -> Path:
        """The configuration that its kube-scheduler reads."""
        shipped = self.plane.cluster().get("ConfigMap", "corral-scheduler", ELSEWHERE)
        assert shipped
        path = self.folder / "config.yaml"
        path.write_text(shipped["data"]["config.yaml"], encoding="utf-8")
        return path

    def scheduler_kubeconfig(self) -> Path:
        """That of its kube-scheduler, with what stands elsewhere on a test machine."""
        shipped = self.plane.cluster().get("ConfigMap", "corral-scheduler", ELSEWHERE)
        assert shipped
        content = yaml.safe_load(shipped["data"]["kubeconfig"])
        account = self.account("corral-scheduler")
        here = {"server": self.plane.url, "certificate-authority": str(account / "ca.crt")}
        content["clusters"][0]["cluster"] = here
        content["users"][0]["user"] = {"tokenFile": str(account / "token")}
        path = self.folder / "scheduler.kubeconfig"
        path.write_text(yaml.safe_dump(content), encoding="utf-8")
        return path

    def settings(self, port: int) -> dict[str, str]:
        """Those of its Corral, with the folders and the port of a test machine."""
        told = env(chart(DEMANDING, ELSEWHERE))
        told = {name.removeprefix(ENV_PREFIX).lower(): text for name, text in told.items()}
        for name in ("extender_listen", "pod_name"):
            del told[name]
        for name, file in (("admission_cert", "tls.crt"), ("admission_key", "tls.key")):
            path = self.folder / file
            path.write_bytes(base64.b64decode(self.secret["data"][file]))
            told[name] = str(path)
        told["admission_listen"] = f"127.0.0.1:{port}"
        return {**told, "service_account": str(self.account("corral"))}


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Installed]:
    """The chart with demanding values, installed by Helm; nothing is denied meanwhile."""
    skip_unless_built("helm")
    with ControlPlane(
        tmp_path / "plane", has_controllers=True, is_audited=True, manifests=()
    ) as plane:
        address = urlsplit(plane.url)
        monkeypatch.setenv("KUBERNETES_SERVICE_HOST", str(address.hostname))
        monkeypatch.setenv("KUBERNETES_SERVICE_PORT", str(address.port))
        release = Installed(plane, tmp_path)
        release.helm("install", str(CHART), "--create-namespace", values=DEMANDING)
        yield release
        assert plane.denials() == []


@contextmanager
def running(release: Installed, port: int) -> Iterator[CorralProcess]:
    """Its Corral and its kube-scheduler, which takes the Lease that Corral follows."""
    settings = release.settings(port)
    with CorralProcess(
        None, release.folder, levels=settings.pop("levels").split(","), **settings
    ) as corral:
        release.plane.start_scheduler(
            release.scheduler_config(),
            extender=corral.url,
            clientConnection={"kubeconfig": str(release.scheduler_kubeconfig())},
            leaderElection={"leaderElect": True},
        )
        yield corral
        assert corral.bugs() == {}
        release.plane.stop_scheduler()


def test_corral_runs_as_the_account_and_with_the_rights_that_helm_has_installed(
    installed: Installed,
) -> None:
    plane = installed.plane
    cluster = plane.cluster()
    plane.nodes(grid(racks=2, nodes=4, gpus=8))
    (port,) = free_ports(1)
    with running(installed, port) as corral:
        cluster.create_all(members("g", 4, annotations=asking(required=RACK)))
        cluster.wait(lambda: len(cluster.bound()) == 4, START_SECONDS, "four bindings")
        assert len({on.rsplit("-", 1)[0] for on in cluster.bound().values()}) == 1
        assert corral.metric('corral_binds_total{outcome="bound"}') == 4
        cluster.wait(lambda: len(cluster.list("HyperNode")) == 3, START_SECONDS, "HyperNodes")
        webhooks = cluster.get("ValidatingWebhookConfiguration", "webhook.corral.dev")
        assert webhooks
        called = webhooks["webhooks"][0]["clientConfig"]
        authority = base64.b64decode(called["caBundle"]).decode()
        host = f"{called['service']['name']}.{called['service']['namespace']}.svc"
        trusting = ssl.create_default_context(cadata=authority)
        with (
            socket.create_connection(("127.0.0.1", port), timeout=5) as connection,
            trusting.wrap_socket(connection, server_hostname=host) as tls,
        ):
            assert tls.version() == "TLSv1.3"


def test_a_package_of_the_chart_holds_the_manifests_themselves(tmp_path: Path) -> None:
    """Links lead nowhere outside of a checkout, so Helm packs what they lead to."""
    skip_unless_built("helm")
    ran = said_by_helm("package", str(CHART), f"--destination={tmp_path}")
    (package,) = tmp_path.glob("corral-*.tgz")
    assert str(package) in ran
    assert chart(EVERYTHING, package=package) == chart(EVERYTHING)
    with tarfile.open(package) as archive:
        assert all(each.isreg() for each in archive.getmembers())


def test_an_upgrade_keeps_the_certificate_and_takes_rights_away_that_no_setting_needs(
    installed: Installed,
) -> None:
    cluster = installed.plane.cluster()
    before = installed.secret["data"]
    account = (installed.account("corral") / "token").read_text(encoding="utf-8")
    with Cluster(installed.plane.url, account, installed.plane.ca) as corral:
        cluster.wait(lambda: may(corral, EVICT), 10, "the right to evict")
        values = {**DEMANDING, "settings": {"preempt": "explain"}}
        installed.helm("upgrade", str(CHART), values=values)
        cluster.wait(lambda: not may(corral, EVICT), 10, "no right to evict")
    assert installed.secret["data"] == before
    installed.helm("upgrade", str(CHART), values={"mode": "beside"})
    beside = cluster.get("Deployment", "corral", ELSEWHERE)
    assert beside
    assert beside["spec"]["replicas"] == 2
    assert "initContainers" not in beside["spec"]["template"]["spec"]
    assert cluster.get("ServiceAccount", "corral-scheduler", ELSEWHERE) is None
    installed.helm("uninstall", "--wait=false")
    assert cluster.get("Deployment", "corral", ELSEWHERE) is None
    assert cluster.get("CustomResourceDefinition", "hypernodes.topology.volcano.sh")


def test_doctor_finds_that_what_helm_has_installed_agrees(installed: Installed) -> None:
    installed.plane.nodes(grid(racks=2, nodes=2))
    options = ["--kubeconfig", str(installed.plane.kubeconfig()), "-n", ELSEWHERE, "-o", "json"]
    ran = CliRunner().invoke(main, ["doctor", *options])
    found = json.loads(ran.stdout)["findings"]
    wrong = {each["check"]: each["text"] for each in found if each["level"] == "error"}
    # No kubelet is here, and nothing makes pods of Deployments.
    assert wrong.keys() == {"pods-ready", "webhook-service"}, wrong
    fine = {each["check"] for each in found if each["level"] == "ok"}
    assert {"rights", "lease", "profile-names", "node-sampling", "extender-address"} <= fine
