"""A tenant with 2,500 half gangs, on the sandbox: what others notice of it, in counters.

The gangs are there before Corral starts, so all of them are to be reported in the same tick.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from app.controllers.report import MOST_QUEUED
from app.main import started
from app.process.parts import Parts
from app.sandbox import Sandbox
from app.setting_values import Address
from app.settings import Settings
from tests.app.polling import until
from tests.cluster import BLOCK, RACK, Object, grid
from tests.tenants import LOUD, QUIET, about_half_gangs, half_gang, half_gangs

GANGS = 2500
GATHER_SECONDS = 1.0
PER_MINUTE = 60  # one event a second …
BURST = 30  # … and so many at once
POLLS, POLL_SECONDS = 1200, 0.1

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]


@dataclass
class World:
    """A sandbox with the half gangs, and a Corral that has just started beside it."""

    corral: Parts
    api: httpx.AsyncClient

    async def create(self, thing: Object) -> None:
        await create(self.api, thing)

    async def reported(self) -> list[str]:
        answer = await self.api.get("/api/v1/events")
        return about_half_gangs(answer.json()["items"])

    async def reports_once(self, is_enough: Callable[[list[str]], bool]) -> list[str]:
        """What was reported, as soon as it is enough."""
        for _ in range(POLLS):
            order = await self.reported()
            if is_enough(order):
                return order
            await asyncio.sleep(POLL_SECONDS)
        raise AssertionError(f"only {len(order)} reports: {self.corral.engine.lost_writes} lost")

    def counted(self, outcome: str) -> float:
        sample = self.corral.metrics.registry.get_sample_value
        return sample("corral_reports_total", {"outcome": outcome}) or 0.0


async def create(api: httpx.AsyncClient, thing: Object) -> None:
    kind = f"{thing['kind'].lower()}s"
    namespace = thing["metadata"].get("namespace")
    space = f"/namespaces/{namespace}" if namespace else ""
    answer = await api.post(f"/api/v1{space}/{kind}", json=thing)
    assert answer.status_code == 201, answer.text


@asynccontextmanager
async def world(folder: Path, **settings: Any) -> AsyncIterator[World]:
    async with Sandbox() as sandbox:
        sandbox.write_kubeconfig(folder / "kubeconfig")
        headers = {"Authorization": f"Bearer {sandbox.token}"}
        async with httpx.AsyncClient(base_url=sandbox.url, headers=headers, timeout=30) as api:
            for namespace in (LOUD, QUIET):
                metadata = {"name": namespace}
                namespaced = {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}
                await create(api, namespaced)
            for thing in (*grid(racks=1, nodes=2, gpus=8), *half_gangs(GANGS)):
                await create(api, thing)
            chosen = Settings(
                kubeconfig=folder / "kubeconfig",
                levels=(BLOCK, RACK),
                extender_listen=Address("127.0.0.1", 0),
                gather_seconds=GATHER_SECONDS,
                **settings,
            )
            async with started(chosen) as corral:
                await until(lambda: not corral.unready())
                yield World(corral, api)


async def test_one_of_2500_half_gangs_is_reported_before_anothers_first(tmp_path):
    async with world(tmp_path, report_per_minute=PER_MINUTE) as cluster:
        await until(lambda: cluster.counted("written") >= BURST, 30.0)
        # The roll calls of so many gangs take some ticks.
        most = GANGS - MOST_QUEUED - BURST
        await until(lambda: cluster.counted("dropped") >= most, 30.0)
        await cluster.create(half_gang(QUIET, "first"))
        known = cluster.corral.engine.gangs.by_key
        await until(lambda: any(key.namespace == QUIET for key in known))
        before = len(await cluster.reported())
        order = await cluster.reports_once(lambda order: f"{QUIET}/first-0" in order)

        # One a second: those until the gang is due, one whose turn it was, one under way.
        assert order.index(f"{QUIET}/first-0") - before <= GATHER_SECONDS * PER_MINUTE / 60 + 2
        # None is forgotten: those that are not to be repeated are in the queue, or on their way.
        assert GANGS + 1 - len(order) - cluster.corral.engine.lost_writes <= MOST_QUEUED + 2


@pytest.mark.thorough
async def test_each_of_2500_half_gangs_is_reported_once_though_most_were_dropped(tmp_path):
    async with world(tmp_path, report_per_minute=60_000, tick_seconds=0.005) as cluster:
        await until(lambda: cluster.counted("dropped"), 30.0)

        times = Counter(await cluster.reports_once(lambda order: len(order) >= GANGS))
        assert len(times) == GANGS
        assert set(times.values()) == {1}
        assert cluster.counted("written") == GANGS
        assert cluster.corral.engine.lost_writes == 0
