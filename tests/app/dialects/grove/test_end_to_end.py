"""Grove's vocabulary on the sandbox: pods, PodGangs and gates as its operator writes them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from app.sandbox import Sandbox
from app.sandbox.apiserver.storage.kinds import POD
from tests.app.dialects.grove.crds import CLUSTER_TOPOLOGY, POD_GANG
from tests.app.dialects.grove.objects import (
    CREATED,
    GATE,
    POD_CLIQUE,
    cluster_topology,
    pod_gang,
    pod_group,
    within,
)
from tests.app.dialects.grove.objects import POD_GANG as POD_GANG_LABEL
from tests.app.installed import eight_nodes, installed
from tests.app.sandbox.http import PODS, Client, until
from tests.cluster import BLOCK, MERGE, RACK, pod
from tests.workloads import gates_of

pytestmark = pytest.mark.slow

POD_GANGS = "/apis/scheduler.grove.io/v1alpha1/namespaces/default/podgangs"
TOPOLOGIES = "/apis/grove.io/v1alpha1/clustertopologies"
SCHEDULER = "default-scheduler"


@asynccontextmanager
async def world(folder: Path) -> AsyncIterator[tuple[Sandbox, Client]]:
    """Two blocks of two racks of two nodes; Corral on a profile of the stock scheduler's name."""
    crds = (POD_GANG, CLUSTER_TOPOLOGY)  # newer kinds are not served
    async with installed(folder, crds, eight_nodes(), profile=SCHEDULER) as (sandbox, client, _):
        made = cluster_topology("grove-topology", BLOCK, RACK)
        assert (await client.create(TOPOLOGIES, written(made))).status == 201
        yield sandbox, client


def written(made: dict[str, Any]) -> dict[str, Any]:
    """As the operator creates it: the API server makes uids and versions."""
    kept = ("name", "namespace", "annotations")
    metadata = {key: made["metadata"][key] for key in kept if key in made["metadata"]}
    return {**{key: made[key] for key in ("apiVersion", "kind", "spec")}, "metadata": metadata}


async def create_pods(client: Client, *names: str) -> None:
    """Pods behind Grove's gate, each in the pod group that its name begins with."""
    for name in names:
        labels = {POD_GANG_LABEL: "g", POD_CLIQUE: name.partition("-")[0]}
        one = pod(name, scheduler=SCHEDULER, requests={"nvidia.com/gpu": 8}, labels=labels)
        one["spec"]["schedulingGates"] = [{"name": GATE}]
        assert gates_of((await client.create(PODS, one)).body) == [GATE]  # and not Corral's


async def create_pod_gang(client: Client, made: dict[str, Any]) -> None:
    assert (await client.create(POD_GANGS, written(made))).status == 201
    path, status = f"{POD_GANGS}/{made['metadata']['name']}/status", made["status"]
    assert (await client.patch(path, {"status": status}, MERGE)).status == 200


async def lift(client: Client, *names: str) -> None:
    """Take the gates off as Grove does."""
    for name in names:
        change = {"spec": {"schedulingGates": None}}
        assert (await client.patch(f"{PODS}/{name}", change, MERGE)).status == 200


def bound(sandbox: Sandbox) -> dict[str, str]:
    bodies = (each.body for each in sandbox.store.values(POD))
    nodes = {each["metadata"]["name"]: each["spec"].get("nodeName", "") for each in bodies}
    return {name: on for name, on in nodes.items() if on}


async def status_of(client: Client, *, is_scheduled: str) -> dict[str, Any]:
    """The status of the PodGang once its condition Scheduled is this."""
    for _ in range(400):
        status = dict((await client.get(f"{POD_GANGS}/g")).body["status"])
        said = {each["type"]: each["status"] for each in status["conditions"]}
        if said.get("Scheduled") == is_scheduled:
            return status
        await asyncio.sleep(0.05)
    raise AssertionError(status)


async def test_pods_are_held_until_the_gang_is_whole_and_then_bound_in_their_racks(
    tmp_path: Path,
) -> None:
    async with world(tmp_path) as (sandbox, client):
        await create_pods(client, "router-0", "worker-0", "worker-1")
        groups = (pod_group("router", 1), pod_group("worker", 2, within(RACK)))
        await create_pod_gang(client, pod_gang("g", *groups, on=within(BLOCK)))
        await lift(client, "router-0", "worker-0")
        await asyncio.sleep(1.0)
        assert bound(sandbox) == {}
        await lift(client, "worker-1")
        await until(lambda: len(bound(sandbox)) == 3, seconds=20.0)
        racks = {name: int(on[1:]) // 2 for name, on in bound(sandbox).items()}
        assert racks["worker-0"] == racks["worker-1"]
        assert len({rack // 2 for rack in racks.values()}) == 1  # one block
        status = await status_of(client, is_scheduled="True")
        assert status["phase"] == "Running"
        assert status["conditions"][0] == CREATED


async def test_a_pod_gang_says_why_its_pods_wait(tmp_path: Path) -> None:
    async with world(tmp_path) as (sandbox, client):
        await create_pods(client, "worker-0", "worker-1", "worker-2")
        await create_pod_gang(client, pod_gang("g", pod_group("worker", 3), on=within(RACK)))
        await lift(client, "worker-0", "worker-1", "worker-2")
        status = await status_of(client, is_scheduled="False")
        kept, said = status["conditions"]
        assert (status["phase"], kept) == ("Pending", CREATED)
        assert "2 of 3 pods fit" in said["message"]
        assert bound(sandbox) == {}
