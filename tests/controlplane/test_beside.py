"""deploy/beside.yaml on the real control plane, with the certificates that its lines make."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from app.settings import ENV_PREFIX
from tests.cluster import RACK, Cluster, Object, grid
from tests.controlplane.packaged import manifests, one
from tests.controlplane.plane import ROOT, SCHEDULER_CONFIG, ControlPlane
from tests.controlplane.seen import START_SECONDS, racks_of
from tests.controlplane.test_service_account import in_pod, mounted
from tests.corral_process import CorralProcess
from tests.workloads import asking, members

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

__all__ = ["in_pod"]
FILE = "beside.yaml"
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


def container() -> Object:
    pod = one(manifests(FILE), "Deployment", "corral")["spec"]["template"]["spec"]
    return dict(pod["containers"][0])


def test_a_gang_starts_through_it_and_its_probes_are_answered(
    plane: ControlPlane, cluster: Cluster, tmp_path: Path, in_pod: None
) -> None:
    if shutil.which("openssl") is None:
        pytest.skip("no openssl on this machine, which the lines of beside.yaml call")
    certificates(tmp_path)
    told: dict[str, Any] = {
        each["name"].removeprefix(ENV_PREFIX).lower(): each["value"] for each in container()["env"]
    }
    del told["extender_listen"]
    # The client's certificate is its own authority, as the last line puts it into the Secret.
    shown = {"tls.crt": "tls.crt", "tls.key": "tls.key", "ca.crt": "scheduler.crt"}
    for name, file in told.items():
        if name.startswith("extender_"):
            told[name] = str(tmp_path / shown[Path(file).name])
    told["service_account"] = str(mounted(plane, "corral", tmp_path / "account"))
    plane.nodes(grid(racks=2, nodes=4, gpus=8))
    with CorralProcess(None, tmp_path, **told) as corral:
        names = {"caFile": "tls.crt", "certFile": "scheduler.crt", "keyFile": "scheduler.key"}
        tls = {name: tmp_path / file for name, file in names.items()}
        plane.start_scheduler(CONFIG, extender=corral.url, tls=tls)
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


def test_the_api_server_takes_it_and_its_pods_are_restricted(cluster: Cluster) -> None:
    for each in manifests(FILE):
        cluster.apply(each)
    template = one(manifests(FILE), "Deployment", "corral")["spec"]["template"]
    shipped: Object = {"apiVersion": "v1", "kind": "Pod", **template}
    shipped["metadata"] |= {"name": "shipped", "namespace": "corral-system"}
    assert cluster.create(shipped)["spec"]["containers"][0]["name"] == "corral"
    for each in (shipped, *manifests(FILE)):
        cluster.delete(each["kind"], each["metadata"]["name"], "corral-system")
