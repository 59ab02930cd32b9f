"""Native PodGroups of an API server, beside a kube-scheduler that does no gangs of its own."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from app.sandbox import Sandbox
from app.sandbox.apiserver.storage.kinds import POD
from tests.app.dialects.native.composites import composite_object
from tests.app.dialects.native.objects import ALPHA, BETA, pod_group
from tests.app.dialects.test_a_new_vocabulary import CRD
from tests.app.installed import installed
from tests.app.sandbox.http import PODS, Client, until
from tests.cluster import BLOCK, RACK, node, pod
from tests.workloads import GATE, gates_of

pytestmark = pytest.mark.slow

GROUPS = "/apis/scheduling.k8s.io/{}/namespaces/default/podgroups".format
TYPES = {ALPHA: "PodGroupScheduled", BETA: "PodGroupInitiallyScheduled"}


COMPOSITES = "/apis/scheduling.k8s.io/v1alpha3/namespaces/default/compositepodgroups"


def definition(*versions: str, kind: str = "PodGroup") -> dict[str, Any]:
    """A kind as custom resources of these versions; the sandbox has none built in."""
    made = copy.deepcopy(CRD)
    made["metadata"]["name"] = f"{kind.lower()}s.scheduling.k8s.io"
    (version,) = made["spec"]["versions"]
    each = [{**version, "name": name, "storage": name == versions[0]} for name in versions]
    names = {"plural": f"{kind.lower()}s", "kind": kind}
    made["spec"] |= {"group": "scheduling.k8s.io", "names": names, "versions": each}
    return made


def member(name: str, of: str) -> dict[str, Any]:
    return pod(name, requests={"nvidia.com/gpu": 8}, schedulingGroup={"podGroupName": of})


@asynccontextmanager
async def world(
    folder: Path, *versions: str, composites: bool = False
) -> AsyncIterator[tuple[Sandbox, Client]]:
    """Two racks of four nodes; a Corral that starts native gangs, its webhook installed.

    `composites`: the API server has CompositePodGroups as well, and Corral a topology for them.
    """
    crds = [definition(*versions)]
    crds += [definition("v1alpha3", kind="CompositePodGroup")] if composites else []
    places = [{BLOCK: "b0", RACK: f"r{at // 4}"} for at in range(8)]
    nodes = [node(f"{its[RACK]}n{at}", labels=its, gpus=8) for at, its in enumerate(places)]
    async with installed(
        folder,
        crds,
        nodes,
        webhook_seconds=30,
        native_pod_groups="on",
        levels=(BLOCK, RACK) if composites else (),
    ) as (sandbox, client, _):
        yield sandbox, client


def racks_of(sandbox: Sandbox) -> list[str]:
    """The rack of each pod that is bound."""
    nodes = (each.body["spec"].get("nodeName", "") for each in sandbox.store.values(POD))
    return [on[:2] for on in nodes if on]


async def condition_in(client: Client, api: str, status: str) -> dict[str, Any]:
    """The only condition of the PodGroup `train`, once it has this status."""
    for _ in range(400):
        found = (await client.get(f"{GROUPS(api)}/train")).body.get("status", {})
        (one,) = found.get("conditions", [{}])
        if one.get("status") == status:
            return dict(one)
        await asyncio.sleep(0.05)
    raise AssertionError(f"the condition is not {status}: {found}")


@pytest.mark.parametrize("versions", [(ALPHA,), (BETA, ALPHA)], ids=["of_1_36", "of_1_37"])
async def test_a_native_gang_is_gated_placed_bound_and_its_condition_written(
    tmp_path: Path, versions: tuple[str, ...]
) -> None:
    api = versions[0]
    async with world(tmp_path, *versions) as (sandbox, client):
        for at in range(3):
            created = await client.create(PODS, member(f"train-{at}", "train"))
            assert gates_of(created.body) == [GATE]
        # No topology has the level: it is the bare key of a label.
        made = pod_group(least=4, key=RACK, api=api)
        assert (await client.create(GROUPS(api), made)).status == 201
        waits = await condition_in(client, api, "False")
        assert (waits["type"], waits["reason"]) == (TYPES[api], "Unschedulable")
        assert "waits until all 4 of its pods are there" in waits["message"]
        assert racks_of(sandbox) == []

        assert (await client.create(PODS, member("train-3", "train"))).status == 201
        await until(lambda: len(racks_of(sandbox)) == 4, seconds=20.0)
        assert len(set(racks_of(sandbox))) == 1
        runs = await condition_in(client, api, "True")
        assert (runs["type"], runs["reason"]) == (TYPES[api], "Scheduled")


async def test_pod_groups_inside_a_composite_start_together_and_every_object_says_so(
    tmp_path: Path,
) -> None:
    async with world(tmp_path, BETA, composites=True) as (sandbox, client):
        parts = {"a": 3, "b": 4}
        for name, pods in parts.items():
            made = pod_group(name, pods, key=RACK, api=BETA, parentCompositePodGroupName="all")
            assert (await client.create(GROUPS(BETA), made)).status == 201
            for at in range(pods):
                assert (await client.create(PODS, member(f"{name}-{at}", name))).status == 201
        refused = await client.create(COMPOSITES, composite_object("all", 0))
        assert "spec.schedulingPolicy.gang.minGroupCount: Invalid value: 0" in str(refused.body)
        assert racks_of(sandbox) == []

        made = composite_object("all", 2, key=BLOCK)
        assert (await client.create(COMPOSITES, made)).status == 201
        await until(lambda: len(racks_of(sandbox)) == 7, seconds=20.0)
        assert sorted(map(racks_of(sandbox).count, ("r0", "r1"))) == [3, 4]
        for path in (f"{COMPOSITES}/all", f"{GROUPS(BETA)}/a", f"{GROUPS(BETA)}/b"):
            await _has_started(client, path)


async def _has_started(client: Client, path: str) -> None:
    for _ in range(400):
        found = (await client.get(path)).body.get("status", {})
        (one,) = found.get("conditions", [{}])
        if one.get("status") == "True":
            return
        await asyncio.sleep(0.05)
    raise AssertionError(f"{path} has not started: {found}")
