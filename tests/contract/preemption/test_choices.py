"""The sandbox's scheduler chooses as the table says; tests/controlplane has the real one's part."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from app.sandbox import Sandbox, SchedulerConfig
from tests.cluster import Cluster
from tests.contract.preemption.choices import CHOICES, Choice, play
from tests.controlplane.plane import SCHEDULER_CONFIG


@pytest.mark.parametrize("choice", CHOICES, ids=lambda each: each.id)
async def test_choice(choice: Choice) -> None:
    config = replace(SchedulerConfig.read(SCHEDULER_CONFIG), extenders=())
    async with Sandbox() as sandbox:
        await sandbox.schedule_with(config=config)
        with Cluster(sandbox.url, sandbox.token) as cluster:
            await asyncio.to_thread(play, choice, cluster)
