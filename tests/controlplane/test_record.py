"""`corral record` and `corral replay` on a real API server, beside the real kube-scheduler."""

from __future__ import annotations

import asyncio
import gzip
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from app.cli import main
from app.sandbox import Sandbox
from app.sandbox.cluster.snapshot import Loaded, read
from tests.cluster import BLOCK, GPU, RACK, Cluster, grid, job, pod
from tests.controlplane.plane import ROOT, ControlPlane
from tests.controlplane.seen import START_SECONDS
from tests.corral_process import scheduled
from tests.workloads import asking, members

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

SECRET = "c4n4ry"
IN_RACK = asking(required=RACK)


def run(*arguments: Any) -> Result:
    ran = CliRunner().invoke(main, [str(each) for each in arguments])
    assert ran.exit_code == 0, ran.output
    return ran


def with_secrets(made: dict[str, Any]) -> dict[str, Any]:
    container = made["spec"]["containers"][0]
    container |= {"image": f"{SECRET}.example/work", "command": [SECRET], "args": [SECRET]}
    container["env"] = [{"name": "TOKEN", "value": SECRET}]
    made["metadata"]["annotations"] = {**made["metadata"].get("annotations", {}), "note": SECRET}
    return made


def test_a_real_cluster_is_recorded_and_opens_in_the_sandbox(
    plane: ControlPlane, cluster: Cluster, tmp_path: Path
) -> None:
    plane.nodes(grid(racks=2, nodes=2, gpus=8))
    for each in (*members("train", 2, annotations=IN_RACK), pod("plain", requests={GPU: 1})):
        cluster.create(with_secrets(each))
    made = job("sleeper", pods=2)
    made["metadata"]["annotations"] = {"note": SECRET}
    cluster.create(made)
    cluster.wait(lambda: len(cluster.list("Pod")) == 5, 10, "the Job's pods")
    file = tmp_path / "out.json.gz"
    levels = f"{BLOCK},{RACK}"
    run("record", "-o", file, "--kubeconfig", plane.kubeconfig("admin"), "--levels", levels)
    text = gzip.decompress(file.read_bytes()).decode()
    assert SECRET not in text
    found = read(file)
    assert [each["kind"] for each in found["objects"] if each["kind"] == "Job"] == ["Job"]

    async def load() -> Loaded:
        async with Sandbox() as sandbox:
            return sandbox.load(found)

    loaded = asyncio.run(load())
    assert (loaded.nodes, loaded.pods_bound, loaded.pods_waiting) == (4, 0, 5)


def test_what_a_corral_decided_beside_kube_scheduler_replays_bit_for_bit_and_was_kept(
    plane: ControlPlane, cluster: Cluster, tmp_path: Path
) -> None:
    journal, out = tmp_path / "journal", tmp_path / "out.json.gz"
    with scheduled(plane, tmp_path, journal=str(journal)) as corral:
        plane.nodes(grid(racks=2, nodes=4, gpus=8))
        for gang in ("red", "blue"):
            cluster.create_all(members(gang, 4, annotations=IN_RACK))
        cluster.create_all(members("large", 5, annotations=IN_RACK))
        cluster.wait(lambda: len(cluster.bound()) == 8, START_SECONDS, "two gangs' bindings")
        run("record", "-o", out, "--server", corral.url)
    dumped = tmp_path / "out.journal.gz"
    assert journal.read_bytes().startswith(gzip.decompress(dumped.read_bytes()))
    for seed in ("0", "4711"):
        ran = subprocess.run(
            [sys.executable, "-m", "app", "replay", str(dumped)],
            env={**os.environ, "PYTHONHASHSEED": seed},
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
        )
        assert (ran.returncode, ran.stdout[:7]) == (0, "equal: "), ran.stdout
    assert (
        "every promise was kept: 2 gangs started, 8 pods bound"
        in run("replay", "--check", dumped).stdout
    )
