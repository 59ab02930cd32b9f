"""The sandbox put together: API, controllers, kubelet stand-in and, on request, a scheduler."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from types import TracebackType
from typing import Self

from app.sandbox.apiserver.admission.webhooks import Webhooks
from app.sandbox.apiserver.http.api import Api
from app.sandbox.apiserver.http.faults import Faults
from app.sandbox.apiserver.http.server import Server
from app.sandbox.apiserver.http.writing import Writer
from app.sandbox.apiserver.rules.registry import Registry
from app.sandbox.apiserver.storage.kinds import DEFINITION, Object
from app.sandbox.apiserver.storage.store import LOG_LENGTH, Store
from app.sandbox.cluster import kubeconfig
from app.sandbox.cluster.garbage import GarbageCollector
from app.sandbox.cluster.jobs import JobController
from app.sandbox.cluster.kubelet import run_bound_pods
from app.sandbox.cluster.snapshot import Loaded, LoadOptions, load
from app.sandbox.scheduler.facts.scheduler_config import ExtenderConfig, SchedulerConfig
from app.sandbox.scheduler.scheduler import Scheduler

_TOPOLOGY_GROUP = "kueue.x-k8s.io"
_TOPOLOGY_SCHEMA = {
    "openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
}
# Kueue's definition of its Topology, as far as it decides what is served.
TOPOLOGY_CRD: Object = {
    "metadata": {"name": f"topologies.{_TOPOLOGY_GROUP}"},
    "spec": {
        "group": _TOPOLOGY_GROUP,
        "names": {"plural": "topologies", "kind": "Topology"},
        "scope": "Cluster",
        "versions": [
            {"name": "v1beta2", "served": True, "storage": True, "schema": _TOPOLOGY_SCHEMA}
        ],
    },
}


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


class Sandbox:
    """A cluster in this process; `async with Sandbox() as cluster: …`.

    seed: decides uids, name suffixes and every random choice of the scheduler.
    has_topology_crd: the CRD of Kueue's Topology is there from the start.
    asks_token: requests without the token get 401.
    run_pods: bound pods become Running at once, and end once they are deleted; otherwise they stay
        Pending, and those with a grace period stay until they are deleted without one.
    takes_grace: with run_pods, a pod that is deleted runs on until its grace period is over.
    """

    def __init__(
        self,
        *,
        seed: int = 0,
        has_topology_crd: bool = False,
        run_pods: bool = False,
        takes_grace: bool = False,
        asks_token: bool = True,
        port: int = 0,
        log_length: int = LOG_LENGTH,
    ) -> None:
        self.token = secrets.token_hex(16)
        self.store = Store(log_length=log_length)
        self.registry = Registry(self.store, rng=Random(f"{seed}/names"), now=_now)
        if has_topology_crd:
            self.registry.create(DEFINITION, "", TOPOLOGY_CRD)
        self.faults = Faults(self.store)
        self._seed = seed
        self._server = Server(port=port)
        self._webhooks = Webhooks(self.registry)
        self._writer = Writer(self.registry, self._webhooks)
        self._api = Api(
            self.registry,
            self._writer,
            self.faults,
            token=self.token if asks_token else "",
            abort=self._server.abort,
        )
        self._run_pods, self._takes_grace = run_pods, takes_grace
        self._ends: list[Callable[[], None]] = []
        self._schedulers: list[Scheduler] = []

    @property
    def url(self) -> str:
        return self._server.url

    async def __aenter__(self) -> Self:
        await self._server.start(self._api.app)
        self._ends.append(JobController(self.registry, self._writer).start())
        self._ends.append(GarbageCollector(self.registry).start())
        if self._run_pods:
            later = asyncio.get_running_loop().call_later
            end = run_bound_pods(self.registry, later, takes_grace=self._takes_grace)
            self._ends.append(end)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            for scheduler in self._schedulers:
                await scheduler.stop()
        finally:
            self.faults.clear()
            self.faults.cut_watches()
            for end in self._ends:
                end()
            await self._server.stop()
            await self._writer.close()
            await self._webhooks.close()

    def write_kubeconfig(self, path: Path) -> None:
        kubeconfig.write(path, url=self.url, token=self.token)

    def load(self, snapshot: Object, options: LoadOptions | None = None) -> Loaded:
        """Add the nodes and pods of a `cluster-snapshot/v1`. Raises: InvalidSnapshot."""
        return load(self.registry, snapshot, options or LoadOptions())

    async def schedule_with(
        self,
        *extenders: ExtenderConfig,
        config: SchedulerConfig | None = None,
        profiles: Mapping[str, int | None] | None = None,
        percentage_of_nodes_to_score: int | None = None,
        speed: float = 1.0,
    ) -> Scheduler:
        """Start a scheduler; it runs until the sandbox ends or its `stop` is called.

        Either the parts, or a whole configuration whose parts the others replace.
        speed: how much faster than real the scheduler's back-offs and rests pass.
        """
        chosen = config or SchedulerConfig()
        if extenders:
            chosen = replace(chosen, extenders=extenders)
        if profiles is not None:
            chosen = replace(chosen, profiles=profiles)
        if percentage_of_nodes_to_score is not None:
            chosen = replace(chosen, percentage_of_nodes_to_score=percentage_of_nodes_to_score)
        rng = Random(f"{self._seed}/scheduler/{len(self._schedulers)}")
        scheduler = Scheduler(self.registry, chosen, rng=rng, speed=speed)
        self._schedulers.append(scheduler)
        await scheduler.start()
        return scheduler
