"""A stranger's vocabulary: one folder and one line of registration, and Corral speaks it.

`tests/app/dialects/toy` is the folder. On the sandbox: gated by the webhook, placed by the tree of
its own resource, bound, and its status written.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from app.dialects import kueue
from app.dialects.registry import Dialects
from app.sandbox import Sandbox
from app.sandbox.apiserver.storage.kinds import POD
from app.state.journal.replay import replay
from tests.app.dialects import toy
from tests.app.installed import eight_nodes, installed
from tests.app.sandbox.http import PODS, Client, until
from tests.cluster import BLOCK, RACK, pod
from tests.workloads import GATE, gates_of

pytestmark = pytest.mark.slow

DIALECTS = Dialects((kueue.DIALECT, toy.DIALECT))  # the one line
BANDS = f"/apis/{toy.GROUP}/v1/namespaces/default/bands"
PART = "orchestra.example.org/part"
TUNING = f"{toy.GROUP}/tuning"  # a gate of the operator that names the players
CRD: dict[str, Any] = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": f"bands.{toy.GROUP}"},
    "spec": {
        "group": toy.GROUP,
        "names": {"plural": "bands", "kind": "Band"},
        "scope": "Namespaced",
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "subresources": {"status": {}},
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "x-kubernetes-preserve-unknown-fields": True,
                    }
                },
            }
        ],
    },
}


def band(name: str, **sections: int) -> dict[str, Any]:
    made = [{"name": each, "players": n, "within": RACK} for each, n in sections.items()]
    return {
        "apiVersion": f"{toy.GROUP}/v1",
        "kind": "Band",
        "metadata": {"name": name},
        "spec": {"within": BLOCK, "sections": made},
    }


def player(name: str, section: str, number: int) -> dict[str, Any]:
    labels = {toy.BAND: name, toy.SECTION: section}
    return pod(f"{name}-{section}-{number}", labels=labels, requests={"nvidia.com/gpu": 8})


@asynccontextmanager
async def world(folder: Path) -> AsyncIterator[tuple[Sandbox, Client]]:
    """Two blocks of two racks of two nodes; a Corral that reads bands, its webhook installed."""
    async with installed(
        folder,
        (CRD,),
        eight_nodes(),
        dialects=DIALECTS,
        levels=(BLOCK, RACK),
        journal=folder / "journal",
    ) as (sandbox, client, _):
        yield sandbox, client


async def test_a_toy_gang_is_gated_placed_bound_and_its_status_written(tmp_path: Path) -> None:
    async with world(tmp_path) as (sandbox, client):
        assert (await client.create(BANDS, band("trio", horns=2, drums=1))).status == 201
        first = await client.create(PODS, player("trio", "horns", 0))
        assert gates_of(first.body) == [GATE]
        gathering = await _status_in(client, "gathering")
        assert "waits until all 3 of its pods" in gathering["reason"]
        for section, number in (("horns", 1), ("drums", 0)):
            created = await client.create(PODS, player("trio", section, number))
            assert created.status == 201
        await until(lambda: len(_placed(sandbox)) == 3, seconds=20.0)
        racks = {name: int(on[1:]) // 2 for name, on in _placed(sandbox).items()}
        assert racks["trio-horns-0"] == racks["trio-horns-1"]
        assert len({rack // 2 for rack in racks.values()}) == 1  # one block
        running = await _status_in(client, "running")
        assert running == {"phase": "running", "seated": 3, "reason": ""}


async def test_a_gang_that_only_its_object_names_is_placed_by_a_label_that_the_object_names(
    tmp_path: Path,
) -> None:
    """As an operator does it: pods behind its gate, then the object, then the gates are lifted.

    The pods are read without their parts at first: read so, none of them is in a section.
    """
    parts = {"p0": "drums", "p1": "horns", "p2": "horns"}
    async with world(tmp_path) as (sandbox, client):
        for name, part in parts.items():
            labels = {toy.MANAGED: "true", PART: part}
            made = pod(name, labels=labels, requests={"nvidia.com/gpu": 8})
            made["spec"]["schedulingGates"] = [{"name": TUNING}]
            created = await client.create(PODS, made)
            assert gates_of(created.body) == [TUNING]
        trio = band("trio", horns=2, drums=1)
        trio["spec"] |= {"named": [{"pod": name} for name in parts], "sectionKey": PART}
        assert (await client.create(BANDS, trio)).status == 201
        for name in parts:
            lifted = await client.patch(f"{PODS}/{name}", {"spec": {"schedulingGates": None}})
            assert lifted.status == 200
        await until(lambda: len(_placed(sandbox)) == 3, seconds=20.0)
        racks = {name: int(on[1:]) // 2 for name, on in _placed(sandbox).items()}
        assert racks["p1"] == racks["p2"] != racks["p0"]
        assert len({rack // 2 for rack in racks.values()}) == 1  # one block
        running = await _status_in(client, "running")
        assert running == {"phase": "running", "seated": 3, "reason": ""}
    lines = (tmp_path / "journal").read_bytes().splitlines(keepends=True)
    asked = [line for line in lines if b'"call":"filter"' in line]
    assert any(f'"{PART}":"horns"'.encode() in line for line in asked)  # one set of keys for all
    assert list(replay(lines, dialects=DIALECTS)) == []


def _placed(sandbox: Sandbox) -> dict[str, str]:
    bodies = (each.body for each in sandbox.store.values(POD))
    nodes = {each["metadata"]["name"]: each["spec"].get("nodeName", "") for each in bodies}
    return {name: on for name, on in nodes.items() if on}


async def _status_in(client: Client, phase: str) -> dict[str, Any]:
    """The status of the only band, once it is in this phase."""
    for _ in range(400):
        (made,) = (await client.get(BANDS)).body["items"]
        status: dict[str, Any] = made.get("status", {})
        if status.get("phase") == phase:
            return status
        await asyncio.sleep(0.05)
    raise AssertionError(f"the band is not {phase}: {status}")
