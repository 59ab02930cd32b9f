"""Corral on the sandbox as users have it: its webhooks installed, and kube-scheduler asks it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from app.dialects.registry import DIALECTS, Dialects
from app.main import started
from app.process.parts import Parts
from app.sandbox import Sandbox
from app.sandbox.scheduler.facts.scheduler_config import SchedulerConfig
from app.setting_values import Address
from app.settings import Settings
from tests.app.sandbox.http import Client, client_of, until
from tests.certificates import HOST, pair
from tests.cluster import BLOCK, RACK, Object, Objects, collection, node
from tests.controlplane.plane import SCHEDULER_CONFIG
from tests.controlplane.webhook import configurations


def eight_nodes() -> Objects:
    """Two blocks of two racks of two nodes."""
    places = [{BLOCK: f"b{at // 4}", RACK: f"r{at // 2}"} for at in range(8)]
    return [node(f"n{at}", labels=labels, gpus=8) for at, labels in enumerate(places)]


@asynccontextmanager
async def installed(
    folder: Path,
    crds: Iterable[Object],
    nodes: Iterable[Object],
    *,
    profile: str = "",
    webhook_seconds: int | None = None,
    dialects: Dialects = DIALECTS,
    **knobs: Any,
) -> AsyncIterator[tuple[Sandbox, Client, Parts]]:
    """A sandbox of these nodes and custom resources, and Corral with these settings.

    profile: a schedulerName that Corral serves beside its own. webhook_seconds: how long the API
    server waits for a webhook, which fails open; None: as shipped.
    """
    certificate, key = pair("apiserver").write(folder)
    async with Sandbox() as sandbox, client_of(sandbox) as client:
        sandbox.write_kubeconfig(folder / "kubeconfig")
        for crd in crds:
            assert (await client.create(collection("CustomResourceDefinition"), crd)).status == 201
        for each in nodes:
            assert (await client.create("/api/v1/nodes", each)).status == 201
        settings = Settings(
            kubeconfig=folder / "kubeconfig",
            scheduler_name=f"corral,{profile}" if profile else "corral",
            extender_listen=Address(HOST, 0),
            admission_listen=Address(HOST, 0),
            admission_cert=certificate,
            admission_key=key,
            **knobs,
        )
        async with started(settings, dialects) as corral:
            # A webhook fails open: while Corral reads the cluster its answer may come too late.
            await until(lambda: corral.engine.is_synced, seconds=60.0)
            for each in configurations(corral.admission_url):
                for asked in each.get("webhooks", ()) if webhook_seconds else ():
                    asked["timeoutSeconds"] = webhook_seconds
                path = collection(each["kind"], None, each["apiVersion"])
                assert (await client.create(path, each)).status == 201
            shipped = SchedulerConfig.read(SCHEDULER_CONFIG)
            url = corral.extender_url
            extenders = tuple(replace(one, url=url) for one in shipped.extenders)
            profiles = {**shipped.profiles, profile: 100} if profile else shipped.profiles
            config = replace(shipped, extenders=extenders, profiles=profiles)
            await sandbox.schedule_with(config=config, speed=10.0)
            yield sandbox, client, corral
