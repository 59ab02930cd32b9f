"""KAI's vocabulary on the sandbox: kube-scheduler's profile `kai-scheduler`, webhook and status."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from app.sandbox import Sandbox
from app.sandbox.apiserver.storage.kinds import POD
from tests.app.dialects.kai.crds import POD_GROUP, TOPOLOGY
from tests.app.dialects.kai.objects import (
    GROUP_NAME,
    SUB_GROUP,
    pod_group,
    sub_group,
    topology,
    within,
)
from tests.app.installed import eight_nodes, installed
from tests.app.sandbox.http import PODS, Client, until
from tests.cluster import BLOCK, RACK, pod
from tests.workloads import GATE, gates_of

pytestmark = pytest.mark.slow

GROUPS = "/apis/scheduling.run.ai/v2alpha2/namespaces/default/podgroups"
TOPOLOGIES = "/apis/kai.scheduler/v1alpha1/topologies"
SCHEDULER = "kai-scheduler"


def written(made: dict[str, Any]) -> dict[str, Any]:
    """As a user writes it: the API server makes uids and versions."""
    metadata = {
        key: made["metadata"][key] for key in ("name", "namespace") if key in made["metadata"]
    }
    return {**made, "metadata": metadata}


@asynccontextmanager
async def world(folder: Path) -> AsyncIterator[tuple[Sandbox, Client]]:
    """Two blocks of two racks of two nodes; Corral beside a profile of KAI's name."""
    crds = (POD_GROUP, TOPOLOGY)
    async with installed(folder, crds, eight_nodes(), profile=SCHEDULER) as (sandbox, client, _):
        yield sandbox, client


def bound(sandbox: Sandbox) -> dict[str, str]:
    bodies = (each.body for each in sandbox.store.values(POD))
    nodes = {each["metadata"]["name"]: each["spec"].get("nodeName", "") for each in bodies}
    return {name: on for name, on in nodes.items() if on}


async def condition(client: Client, name: str) -> dict[str, Any]:
    """The scheduling condition of a PodGroup, {} if it has none."""
    status = (await client.get(f"{GROUPS}/{name}")).body.get("status", {})
    return dict((status.get("schedulingConditions") or [{}])[-1])


async def test_pods_are_gated_grouped_placed_in_their_sub_groups_and_bound(tmp_path: Path) -> None:
    parts = {"p0": "prefill", "p1": "prefill", "d0": "decode", "d1": "decode"}
    async with world(tmp_path) as (sandbox, client):
        made = topology("net", BLOCK, RACK, aliases=("block", "rack"))
        assert (await client.create(TOPOLOGIES, written(made))).status == 201
        for name in parts:
            # The pod-grouper has not seen it yet, and the pod says nothing by itself.
            one = pod(
                name,
                scheduler=SCHEDULER,
                requests={"nvidia.com/gpu": 8},
                annotations={"kai.scheduler/topology": "net"},
            )
            assert gates_of((await client.create(PODS, one)).body) == [GATE]
        in_racks = [
            sub_group(name, 2, topologyConstraint=within("rack")) for name in ("prefill", "decode")
        ]
        group = written(pod_group("pg", 4, *in_racks, on=within("block")))
        assert (await client.create(GROUPS, group)).status == 201
        for name, part in parts.items():
            its = {"annotations": {GROUP_NAME: "pg"}, "labels": {SUB_GROUP: part}}
            assert (await client.patch(f"{PODS}/{name}", {"metadata": its})).status == 200
        await until(lambda: len(bound(sandbox)) == 4, seconds=20.0)
        racks = {name: int(on[1:]) // 2 for name, on in bound(sandbox).items()}
        assert racks["p0"] == racks["p1"] != racks["d0"] == racks["d1"]
        assert len({rack // 2 for rack in racks.values()}) == 1  # one block
        assert await condition(client, "pg") == {}


async def test_a_pod_group_says_why_its_pods_wait_and_a_wrong_one_is_refused(
    tmp_path: Path,
) -> None:
    async with world(tmp_path) as (_, client):
        assert (
            await client.create(TOPOLOGIES, written(topology("net", BLOCK, RACK)))
        ).status == 201
        bad = written(pod_group("bad", None, sub_group("a", 1, parent="nobody")))
        refused = await client.create(GROUPS, bad)
        assert refused.status in (400, 403, 422)
        assert "spec.subGroups[0].parent" in str(refused.body)
        group = written(pod_group("pg", 3, on=within(RACK)))
        assert (await client.create(GROUPS, group)).status == 201
        for at in range(3):
            its = {GROUP_NAME: "pg"}
            one = pod(f"p{at}", requests={"nvidia.com/gpu": 8}, annotations=its)
            assert gates_of((await client.create(PODS, one)).body) == [GATE]
        for _ in range(400):
            found = await condition(client, "pg")
            if found:
                break
            await asyncio.sleep(0.05)
        assert (found["type"], found["status"]) == ("UnschedulableOnNodePool", "True")
        assert "2 of 3 pods fit" in found["message"]
