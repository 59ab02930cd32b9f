"""A whole Corral beside an API server: what it does of requests for nodes, and does not."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from app.main import Parts, started
from app.sandbox import Sandbox
from app.setting_values import Address
from app.settings import Settings
from tests.app.sandbox.http import Client, client_of, until
from tests.autoscaling.objects import ATOMIC_SCALE_UP, definition
from tests.certificates import HOST
from tests.cluster import RACK, collection
from tests.workloads import asking, behind_gate, members

pytestmark = pytest.mark.slow

REQUESTS, TEMPLATES = (
    collection("ProvisioningRequest", "default"),
    collection("PodTemplate", "default"),
)


@asynccontextmanager
async def world(folder: Path, **settings: object) -> AsyncIterator[tuple[Parts, Client]]:
    """An API server without nodes that knows requests, and a gang that never fits."""
    async with Sandbox() as sandbox, client_of(sandbox) as client:
        sandbox.write_kubeconfig(folder / "kubeconfig")
        made = await client.create(collection("CustomResourceDefinition"), definition())
        assert made.status == 201
        chosen = Settings(
            kubeconfig=folder / "kubeconfig",
            extender_listen=Address(HOST, 0),
            levels=(RACK,),
            **settings,  # type: ignore[arg-type]
        )
        async with started(chosen) as corral:
            await until(lambda: corral.engine.is_synced, seconds=60.0)
            gang = members("g", 2, annotations=asking(required=RACK))
            for each in map(behind_gate, gang):
                assert (await client.create(collection("Pod", "default"), each)).status == 201
            yield corral, client


async def marked(client: Client) -> int:
    found = (await client.get(collection("Pod", "default"))).body["items"]
    conditions = (each for pod in found for each in pod["status"].get("conditions", []))
    return sum(each.get("reason") == "Unschedulable" for each in conditions)


async def items(client: Client, path: str, number: int) -> list[dict[str, Any]]:
    """All objects there, once there are so many."""
    for _ in range(400):
        found = (await client.get(path)).body["items"]
        if len(found) == number:
            break
        await asyncio.sleep(0.05)
    return list(found)


def written(corral: Parts, how: str) -> float:
    """How many asks of a kind were written."""
    return float(corral.metrics.asks[how, "written"]._value.get())


async def test_without_a_class_nothing_of_requests_is_read_or_written(tmp_path: Path) -> None:
    async with world(tmp_path) as (corral, client):
        for _ in range(400):
            if await marked(client) == 2:
                break
            await asyncio.sleep(0.05)
        assert await marked(client) == 2
        assert (written(corral, "mark"), written(corral, "request")) == (2, 0)
        assert await items(client, REQUESTS, 0) == await items(client, TEMPLATES, 0) == []
        without = [each.kind for each in corral.reflectors]
    async with world(tmp_path, provisioning_class=ATOMIC_SCALE_UP) as (corral, _):
        more = [each.kind for each in corral.reflectors if each.kind not in without]
        assert more == ["ProvisioningRequest", "PodTemplate"]


async def test_with_a_class_a_gang_has_one_request_whose_templates_end_with_it(
    tmp_path: Path,
) -> None:
    async with world(tmp_path, provisioning_class=ATOMIC_SCALE_UP) as (corral, client):
        (request,) = await items(client, REQUESTS, 1)
        assert request["spec"]["provisioningClassName"] == ATOMIC_SCALE_UP
        await until(lambda: written(corral, "request") == 1)
        (template,) = await items(client, TEMPLATES, 1)
        owners = [each["uid"] for each in template["metadata"]["ownerReferences"]]
        assert owners == [request["metadata"]["uid"]]
        assert await marked(client) == 0
        for number in range(2):
            await client.call("DELETE", f"{collection('Pod', 'default')}/g-{number}")
        assert await items(client, REQUESTS, 0) == []
        assert await items(client, TEMPLATES, 0) == []
