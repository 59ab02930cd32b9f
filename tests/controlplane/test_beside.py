"""deploy/beside.yaml on the real control plane, with the certificates that its lines make."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from app.settings import ENV_PREFIX
from tests.cluster import RACK, Cluster, Object, grid
from tests.controlplane.chronicle import Chronicle
from tests.controlplane.cut_proxy import CutProxy
from tests.controlplane.packaged import manifests, one
from tests.controlplane.plane import ROOT, SCHEDULER_CONFIG, ControlPlane
from tests.controlplane.seen import START_SECONDS, racks_of
from tests.controlplane.test_service_account import in_pod, mounted
from tests.corral_process import CorralProcess
from tests.workloads import asking, members

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

__all__ = ["in_pod"]
FILE = "beside.yaml"
HAND_OVER_SECONDS = 8.0  # SIGTERM, and the next look at the Lease: 2 s
TAKEN_OVER_SECONDS = 30.0  # the Lease's 15 s, and the next look
CONFIG = SCHEDULER_CONFIG.with_name(f"{SCHEDULER_CONFIG.stem}-mtls.yaml")


def certificates(folder: Path) -> None:
    """What the lines of the file make, for a Service with the address of this machine."""
    text = (ROOT / "deploy" / FILE).read_text(encoding="utf-8")
    lines = re.findall(r"(?m)^#   (openssl (?:.*\\\n# +)*.*)", text)
    assert len(lines) == 2
    script = "\n".join(re.sub(r"\\\n# +", "", line) for line in lines)
    subprocess.run(
        ["sh", "-euc", script],
        cwd=folder,
        env={**os.environ, "ip": "127.0.0.1"},
        check=True,
        timeout=30,
        capture_output=True,
    )


def told(plane: ControlPlane, folder: Path, number: int = 0) -> dict[str, Any]:
    """The settings of a replica, with the files of this machine and a service account's token."""
    given: dict[str, Any] = {
        each["name"].removeprefix(ENV_PREFIX).lower(): each.get("value", "")
        for each in container()["env"]
    }
    del given["extender_listen"]
    # The client's certificate is its own authority, as the last line puts it into the Secret.
    shown = {"tls.crt": "tls.crt", "tls.key": "tls.key", "ca.crt": "scheduler.crt"}
    for name, file in given.items():
        if name.startswith("extender_"):
            given[name] = str(folder / shown[Path(file).name])
    given["service_account"] = str(mounted(plane, "corral", folder / f"account-{number}"))
    return given | {"pod_name": f"beside-{number}", "pod_ip": f"10.0.1.{number}"}


def tls_files(folder: Path) -> dict[str, Path]:
    """What kube-scheduler's tlsConfig names."""
    names = {"caFile": "tls.crt", "certFile": "scheduler.crt", "keyFile": "scheduler.key"}
    return {name: folder / file for name, file in names.items()}


@pytest.fixture
def rights(cluster: Cluster) -> Iterator[None]:
    """What the file lets Corral do beside rbac.yaml."""
    shipped = [each for each in manifests(FILE) if each["kind"] in ("Role", "RoleBinding")]
    for each in shipped:
        cluster.apply(each)
    yield
    for each in shipped:
        cluster.delete(each["kind"], each["metadata"]["name"], "corral-system")
    for kind, name in (("Lease", "corral"), ("EndpointSlice", "corral-extender")):
        if cluster.get(kind, name, "corral-system"):
            cluster.delete(kind, name, "corral-system")


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """The folder with the certificates."""
    if shutil.which("openssl") is None:
        pytest.skip("no openssl on this machine, which the lines of beside.yaml call")
    certificates(tmp_path)
    return tmp_path


class ServiceProxy(CutProxy):
    """What kube-proxy makes of the Service: new connections go where its EndpointSlice says."""

    def __init__(self, cluster: Cluster) -> None:
        super().__init__("https://127.0.0.1:0")
        self._cluster = cluster

    def endpoint(self) -> int:
        """The port of the only endpoint; 0: there is none. The address is of no network here."""
        found = self._cluster.get("EndpointSlice", "corral-extender", "corral-system")
        return int(found["ports"][0]["port"]) if found else 0

    async def pair(self, client: Any) -> None:
        self._address = ("127.0.0.1", self.endpoint())
        await super().pair(client)


def container() -> Object:
    pod = one(manifests(FILE), "Deployment", "corral")["spec"]["template"]["spec"]
    return dict(pod["containers"][0])


def test_a_gang_starts_through_it_and_its_probes_are_answered(
    plane: ControlPlane, cluster: Cluster, files: Path, in_pod: None, rights: None
) -> None:
    plane.nodes(grid(racks=2, nodes=4, gpus=8))
    with CorralProcess(None, files, **told(plane, files)) as corral:
        plane.start_scheduler(CONFIG, extender=corral.url, tls=tls_files(files))
        cluster.create_all(members("g", 4, annotations=asking(required=RACK)))
        cluster.wait(lambda: len(cluster.bound()) == 4, START_SECONDS, "four bindings")
        assert len(racks_of(cluster)) == 1
        for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
            _, *flags = container()[probe]["exec"]["command"]
            environment = {**os.environ, "CORRAL_API_LISTEN": corral.listens_to_people}
            ran = subprocess.run([sys.executable, *flags], env=environment, timeout=30)
            assert ran.returncode == 0, probe
        assert corral.bugs() == {}
    for probe in ("livenessProbe", "readinessProbe"):  # and not where nothing answers
        _, *flags = container()[probe]["exec"]["command"]
        ran = subprocess.run(
            [sys.executable, *flags], env=environment, timeout=30, capture_output=True
        )
        assert ran.returncode != 0


@pytest.mark.timeout(180)  # a Lease ends after 15 s, and kube-scheduler's back-offs come after it
def test_the_other_replica_takes_over_when_the_one_that_leads_ends_or_is_lost(
    plane: ControlPlane, cluster: Cluster, files: Path, in_pod: None, rights: None
) -> None:
    plane.nodes(grid(racks=4, nodes=4, gpus=8))
    with ExitStack() as stack:
        chronicle = stack.enter_context(Chronicle(plane, gpus_per_node=8))
        service = stack.enter_context(ServiceProxy(plane.cluster()))
        replicas: dict[int, CorralProcess] = {}
        for number in range(3):
            (files / str(number)).mkdir()
            corral = CorralProcess(None, files / str(number), **told(plane, files, number))
            replicas[int(corral.url.rpartition(":")[2])] = stack.enter_context(corral)
        plane.start_scheduler(CONFIG, extender=service.url, tls=tls_files(files))
        led = cluster.wait(service.endpoint, TAKEN_OVER_SECONDS, "a replica that leads")
        start(cluster, "first")
        began = time.monotonic()
        replicas[led].terminate()
        led = taken_over(service, led)
        assert time.monotonic() - began <= HAND_OVER_SECONDS  # given up, not waited for
        start(cluster, "second")
        replicas[led].kill()
        taken_over(service, led)
        start(cluster, "third")
        assert replicas[service.endpoint()].bugs() == {}
    assert chronicle.problems == []


def start(cluster: Cluster, gang: str) -> None:
    """One more gang, whole. Raises: TimeoutError."""
    before = len(cluster.bound())
    cluster.create_all(members(gang, 4, annotations=asking(required=RACK)))
    cluster.wait(lambda: len(cluster.bound()) == before + 4, START_SECONDS, f"the start of {gang}")


def taken_over(service: ServiceProxy, led: int) -> int:
    """The port of who leads instead. Raises: TimeoutError."""
    deadline = time.monotonic() + TAKEN_OVER_SECONDS
    while (now := service.endpoint()) == led:
        assert time.monotonic() < deadline, "no other replica leads"
        time.sleep(0.1)
    return now


def test_the_api_server_takes_it_and_its_pods_are_restricted(cluster: Cluster) -> None:
    for each in manifests(FILE):
        cluster.apply(each)
    template = one(manifests(FILE), "Deployment", "corral")["spec"]["template"]
    shipped: Object = {"apiVersion": "v1", "kind": "Pod", **template}
    shipped["metadata"] |= {"name": "shipped", "namespace": "corral-system"}
    assert cluster.create(shipped)["spec"]["containers"][0]["name"] == "corral"
    for each in (shipped, *manifests(FILE)):
        cluster.delete(each["kind"], each["metadata"]["name"], "corral-system")
