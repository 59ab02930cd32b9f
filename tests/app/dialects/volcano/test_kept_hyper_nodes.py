"""HyperNodes are kept as the labels of nodes are: a Corral on the sandbox."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from app.main import started
from app.process.parts import Parts
from app.sandbox import Sandbox
from app.setting_values import Address
from app.settings import Settings
from tests.app.polling import until
from tests.app.sandbox.http import MERGE, NODES, Client, client_of
from tests.certificates import HOST
from tests.cluster import BLOCK, RACK, collection, node

pytestmark = pytest.mark.slow

CRD = Path(__file__).resolve().parents[4] / "deploy" / "hypernode-crd.yaml"
PATH = collection("HyperNode", None)


def settings(folder: Path) -> Settings:
    return Settings(
        kubeconfig=folder / "kubeconfig",
        extender_listen=Address(HOST, 0),
        hyper_nodes_from=(BLOCK, RACK),
    )


def shown(corral: Parts) -> dict[str, set[str]]:
    """The members of each HyperNode, as the engine has read them."""
    domains = (each.domain for each in corral.engine.objects.by_uid.values())  # type: ignore[attr-defined]
    return {each.name: {*each.inner, *(node.name for node in each.nodes)} for each in domains}


def counted(corral: Parts) -> dict[str, float]:
    value = corral.metrics.registry.get_sample_value
    outcomes = ("made", "changed", "deleted", "failed")
    return {each: value("corral_kept_objects_total", {"outcome": each}) or 0.0 for each in outcomes}


async def label(client: Client, name: str, **labels: str) -> None:
    keys: dict[str, Callable[..., Any] | str] = {"block": BLOCK, "rack": RACK}
    change = {"metadata": {"labels": {keys[key]: value for key, value in labels.items()}}}
    assert (await client.patch(f"{NODES}/{name}", change, MERGE)).status == 200


async def test_hyper_nodes_follow_the_labels_and_a_second_start_writes_nothing(
    tmp_path: Path,
) -> None:
    async with Sandbox() as sandbox, client_of(sandbox) as client:
        sandbox.write_kubeconfig(tmp_path / "kubeconfig")
        definition = yaml.safe_load(CRD.read_text(encoding="utf-8"))
        assert (
            await client.create(collection("CustomResourceDefinition"), definition)
        ).status < 300
        for at in range(4):
            labels = {BLOCK: "b1", RACK: f"r{at // 2}"}
            assert (await client.create(NODES, node(f"n{at}", labels=labels))).status == 201
        async with started(settings(tmp_path)) as corral:
            racks = {"hypernode-b1.r0": {"n0", "n1"}, "hypernode-b1.r1": {"n2", "n3"}}
            block = {"hypernode-b1": {*racks}}
            await until(lambda: shown(corral) == racks | block, seconds=20.0)
            await label(client, "n1", rack="r1")
            moved = {"hypernode-b1.r0": {"n0"}, "hypernode-b1.r1": {"n1", "n2", "n3"}}
            await until(lambda: shown(corral) == moved | block, seconds=20.0)
            assert counted(corral) == {"made": 3, "changed": 2, "deleted": 0, "failed": 0}
        async with started(settings(tmp_path)) as corral:
            (keeper,) = corral.writers.keepers
            await until(lambda: corral.engine.is_synced, seconds=20.0)
            await keeper.look()
            assert shown(corral) == moved | block
            assert not any(counted(corral).values())
