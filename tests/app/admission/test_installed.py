"""Corral behind the webhook that deploy/webhook.yaml installs, on the sandbox."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from app.labels import selector_from_text
from app.main import started
from app.sandbox import Sandbox
from app.sandbox.apiserver.storage.kinds import POD
from app.setting_values import Address
from app.settings import Settings
from tests.app.sandbox.http import MERGE, PODS, Client, client_of, until
from tests.certificates import HOST, pair
from tests.cluster import RACK, collection, job
from tests.controlplane.webhook import BROKEN, configurations
from tests.workloads import GATE, asking, gates_of, member

pytestmark = pytest.mark.slow
JOBS = collection("Job", "default")
NAMESPACES = "/api/v1/namespaces"


@asynccontextmanager
async def installed(folder: Path, **knobs: Any) -> AsyncIterator[tuple[Sandbox, Client]]:
    """A sandbox that calls a Corral with these settings, as the shipped configurations say."""
    certificate, key = pair("apiserver").write(folder)
    async with Sandbox() as sandbox:
        sandbox.write_kubeconfig(folder / "kubeconfig")
        settings = Settings(
            kubeconfig=folder / "kubeconfig",
            levels=(RACK,),
            extender_listen=Address(HOST, 0),
            admission_listen=Address(HOST, 0),
            admission_cert=certificate,
            admission_key=key,
            **knobs,
        )
        async with started(settings) as corral, client_of(sandbox) as client:
            # A webhook fails open: while Corral reads the cluster its answer may come too late.
            await until(lambda: corral.engine.is_synced, seconds=60.0)
            for each in configurations(corral.admission_url):
                path = collection(each["kind"], None, each["apiVersion"])
                assert (await client.create(path, each)).status == 201
            yield sandbox, client


async def gates_tried(client: Client, namespace: str) -> list[str]:
    """The gates that a member of a gang would have there."""
    path = f"{collection('Pod', namespace)}?dryRun=All"
    return gates_of((await client.create(path, member("g", 0, 2, namespace=namespace))).body)


async def test_a_member_of_a_gang_is_stored_behind_the_gate(tmp_path: Path) -> None:
    async with installed(tmp_path) as (_, client):
        created = await client.create(PODS, member("g", 0, 2))
        stored = (await client.get(f"{PODS}/{created.body['metadata']['name']}")).body
        assert gates_of(stored) == [GATE]
        again = await client.create(f"{PODS}?dryRun=All", member("g", 1, 2))
        assert gates_of(again.body) == [GATE]


async def test_the_pods_of_a_job_are_gated_too(tmp_path: Path) -> None:
    async with installed(tmp_path) as (sandbox, client):
        asked = asking(required=RACK)
        assert (await client.create(JOBS, job("train", pods=2, annotations=asked))).status == 201
        await until(lambda: len(sandbox.store.values(POD)) == 2)
        assert all(gates_of(each.body) == [GATE] for each in sandbox.store.values(POD))


async def test_a_namespace_is_taken_in_while_it_has_the_label_that_is_selected(
    tmp_path: Path,
) -> None:
    selector = selector_from_text("gangs=yes")
    async with installed(tmp_path, admission_namespace_selector=selector) as (_, client):
        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}}
        assert (await client.create(NAMESPACES, namespace)).status == 201
        for value, gates in (("yes", [GATE]), ("no", [])):
            labelled = {"metadata": {"labels": {"gangs": value}}}
            await client.patch(f"{NAMESPACES}/team", labelled, MERGE)
            async with asyncio.timeout(10.0):
                while await gates_tried(client, "team") != gates:
                    pass
        assert await gates_tried(client, "default") == []


@pytest.mark.parametrize("what", ["pod", "job"])
async def test_a_mistake_is_refused_with_the_words_of_the_rule(tmp_path: Path, what: str) -> None:
    async with installed(tmp_path) as (_, client):
        wrong: dict[str, Any] = member("g", 0, 2, annotations=BROKEN)
        path, hook = PODS, "gate.corral.dev"
        if what == "job":
            wrong, path, hook = (
                job("train", pods=2, annotations=BROKEN),
                JOBS,
                "templates.corral.dev",
            )
        answer = await client.create(path, wrong)
        assert (answer.status, answer.reason) == (422, "Invalid")
        assert answer.message.startswith(f'admission webhook "{hook}" denied the request: ')
        assert "my rack" in answer.message
