"""A dump of a Corral that runs beside a scheduler, over HTTP: it replays bit for bit elsewhere."""

from __future__ import annotations

import asyncio
import gzip
import os
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest
from typer.testing import CliRunner

from app.cli import main
from app.main import started
from app.process.parts import Parts
from app.sandbox import ExtenderConfig, Sandbox
from app.sandbox.apiserver.storage.kinds import NODE, POD
from app.setting_values import Address
from app.settings import Settings
from tests.app.polling import until
from tests.cluster import BLOCK, GPU, RACK, grid, pod

ROOT = Path(__file__).parents[4]
GROUP, COUNT = "kueue.x-k8s.io/pod-group-name", "kueue.x-k8s.io/pod-group-total-count"
REQUIRED = "kueue.x-k8s.io/podset-required-topology"


@asynccontextmanager
async def running(folder: Path, journal: Path | None) -> AsyncIterator[tuple[Sandbox, Parts]]:
    """A cluster with a scheduler, and a Corral: two gangs have started, a third fits nowhere."""
    async with Sandbox(run_pods=True) as cluster:
        cluster.write_kubeconfig(folder / "kubeconfig")
        for each in grid(racks=4, nodes=2, gpus=8):
            cluster.registry.create(NODE, "", each)
        settings = Settings(
            kubeconfig=folder / "kubeconfig",
            extender_listen=Address("127.0.0.1", 0),
            levels=(BLOCK, RACK),
            journal=journal,
        )
        async with started(settings) as corral:
            await until(lambda: not corral.unready())
            extender = ExtenderConfig(
                corral.extender_url,
                filter_verb="filter",
                prioritize_verb="prioritize",
                bind_verb="bind",
                node_cache_capable=True,
                http_timeout=30.0,
                weight=1,
            )
            await cluster.schedule_with(extender, profiles={"corral": 100}, speed=10.0)
            for gang, pods in (("one", 2), ("two", 2), ("large", 5)):
                said = {GROUP: gang, COUNT: str(pods), REQUIRED: RACK}
                for at in range(pods):
                    made = pod(f"{gang}-{at}", requests={GPU: 8}, annotations=said)
                    cluster.registry.create(POD, "default", made)
            cluster.registry.create(POD, "default", pod("plain", requests={"cpu": "1"}))
            await until(lambda: bound(cluster) == 5, seconds=20.0)
            await until(lambda: len(corral.engine.books.bound) == 5)  # the watch has shown them
            yield cluster, corral


def bound(cluster: Sandbox) -> int:
    return sum(bool(each.body["spec"].get("nodeName")) for each in cluster.store.values(POD))


def replayed(path: Path, seed: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "app", "replay", str(path)],
        env={**os.environ, "PYTHONHASHSEED": seed},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.slow
async def test_the_dump_of_a_corral_with_a_journal_replays_bit_for_bit(tmp_path: Path) -> None:
    async with (
        running(tmp_path, tmp_path / "journal") as (_, corral),
        httpx.AsyncClient(base_url=corral.extender_url) as people,
    ):
        dump = await people.get("/v1/dump")
    assert dump.headers["x-corral-dump"] == "journal"
    path = tmp_path / "dump"
    path.write_bytes(dump.content)
    for call in (b'"filter"', b'"prioritize"', b'"bind_arrived"', b'"bind_finished"', b'"tick"'):
        assert b'"call":' + call in dump.content
    for seed in ("0", "4711"):
        ran = replayed(path, seed)
        assert ran.returncode == 0, ran.stdout
        assert ran.stdout.startswith("equal: ")
    judged = CliRunner().invoke(main, ["replay", "--check", str(path)])
    assert judged.exit_code == 0, judged.output
    assert "every promise was kept: 2 gangs started, 5 pods bound" in judged.stdout


@pytest.mark.slow
async def test_without_a_journal_corral_record_makes_one_that_replays_bit_for_bit(
    tmp_path: Path,
) -> None:
    async with running(tmp_path, None) as (_, corral):
        command = ["record", "-o", str(tmp_path / "out.json.gz"), "--server", corral.extender_url]
        ran = await asyncio.to_thread(CliRunner().invoke, main, command)
    assert ran.exit_code == 0, ran.output
    journal = tmp_path / "out.journal.gz"
    lines = gzip.decompress(journal.read_bytes())
    assert b'"call":"filter"' in lines
    for seed in ("0", "4711"):
        again = replayed(journal, seed)
        assert (again.returncode, again.stdout[:7]) == (0, "equal: "), again.stdout


@pytest.mark.slow
async def test_a_dump_keeps_nobody_waiting(tmp_path: Path) -> None:
    """While dumps are read, one after another, the loop is never held for long."""
    async with running(tmp_path, None) as (_, corral):
        longest, is_over = 0.0, False

        async def beat() -> None:
            nonlocal longest
            while not is_over:
                before = time.perf_counter()
                await asyncio.sleep(0)
                longest = max(longest, time.perf_counter() - before)

        beating = asyncio.create_task(beat())
        async with httpx.AsyncClient(base_url=corral.extender_url) as people:
            for _ in range(5):
                assert (await people.get("/v1/dump")).status_code == 200
        is_over = True
        await beating
    assert longest < 0.25  # of a machine that does other things as well; 5 ms of a quiet one
