"""Each pending situation on the sandbox: the right reason, a true sentence, and a way out of it."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import httpx
import pytest

from app.main import started
from app.sandbox import Sandbox
from app.sandbox.apiserver.storage.kinds import NODE, POD
from app.setting_values import Address
from app.settings import Settings
from tests.cluster import BLOCK, RACK, grid
from tests.contract.pending.play import SECONDS, play
from tests.contract.pending.situations import SITUATIONS, Situation
from tests.contract.worlds import asking, sandbox_and_corral
from tests.workloads import members


@pytest.mark.slow
@pytest.mark.parametrize("situation", SITUATIONS, ids=str)
def test_what_is_said_is_true_and_what_it_advises_gets_the_gang_bound(
    situation: Situation, tmp_path: Path
) -> None:
    with sandbox_and_corral(tmp_path, (BLOCK, RACK), **situation.settings) as (cluster, url):
        play(situation, cluster, url)


@pytest.mark.slow
async def test_a_corral_that_has_not_read_the_cluster_says_so_and_places_once_it_has(
    tmp_path: Path,
) -> None:
    kubeconfig = tmp_path / "kubeconfig"
    settings = Settings(
        kubeconfig=kubeconfig, levels=(BLOCK, RACK), extender_listen=Address("127.0.0.1", 0)
    )
    async with Sandbox() as sandbox:
        sandbox.write_kubeconfig(kubeconfig)
        sandbox.faults.fail_next(1_000, verb="list", resource="pods")
        for each in grid(racks=1, nodes=4, gpus=8):
            sandbox.registry.create(NODE, "", each)
        for each in members("g", 4, annotations={}):
            sandbox.registry.create(POD, "default", each)
        async with started(settings) as corral:
            await sandbox.schedule_with(config=asking(corral.extender_url), speed=10.0)
            async with httpx.AsyncClient(base_url=corral.extender_url, trust_env=False) as client:
                answer = await client.get("/v1/gangs/default/g/explanation")
                said = answer.json()["detail"]
                assert (answer.status_code, said["reason"]) == (503, "NotReady")
                assert "the cluster has not been read yet" in said["message"]
                sandbox.faults.clear()
                deadline = time.monotonic() + SECONDS
                reason = ""
                while reason != "Running" and time.monotonic() < deadline:
                    await asyncio.sleep(0.05)
                    answer = await client.get("/v1/gangs/default/g")
                    reason = answer.json().get("reason", "") if answer.is_success else ""
                assert reason == "Running"
