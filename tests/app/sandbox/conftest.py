"""A running sandbox, its HTTP client and a scripted extender."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from app.sandbox import Sandbox
from tests.app.sandbox.http import Client, client_of
from tests.app.sandbox.scripted import ScriptedExtender, scripted_extender


@pytest.fixture
async def sandbox() -> AsyncIterator[Sandbox]:
    async with Sandbox() as running:
        yield running


@pytest.fixture
async def client(sandbox: Sandbox) -> AsyncIterator[Client]:
    async with client_of(sandbox) as connected:
        yield connected


@pytest.fixture
async def extender() -> AsyncIterator[ScriptedExtender]:
    async with scripted_extender() as running:
        yield running
