"""The sandbox and a Corral in one event loop, with what a cluster has beside them.

Kubelets let a pod that has a grace period end after it, owners make their pods anew, and every pod
that is taken away is counted, but for those that the scenario itself deletes.
"""

from __future__ import annotations

import asyncio
import copy
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import httpx

from app.main import started
from app.process.parts import Parts
from app.sandbox import Sandbox
from app.sandbox.apiserver.rules.pod_actions import bind
from app.sandbox.apiserver.rules.pod_rules import with_condition
from app.sandbox.apiserver.rules.registry import Registry
from app.sandbox.apiserver.storage.kinds import (
    DISRUPTION_BUDGET,
    EVENT,
    JOB,
    NODE,
    POD,
    PRIORITY_CLASS,
    Kind,
)
from app.sandbox.apiserver.storage.patch import MERGE
from app.sandbox.apiserver.storage.store import Change
from app.sandbox.scheduler.facts.scheduler_config import SchedulerConfig
from app.setting_values import Address
from app.settings import Settings
from tests.cluster import BLOCK, RACK, Object
from tests.controlplane.plane import SCHEDULER_CONFIG

KINDS: Mapping[str, Kind] = {
    each.name: each for each in (POD, NODE, JOB, DISRUPTION_BUDGET, PRIORITY_CLASS)
}
POLL_SECONDS = 0.05
BUGS = ("corral_engine_errors_total", "corral_audit_differences_total")


def crew(name: str) -> str:
    """What a pod is one of, by its name: `train-3` is one of `train`."""
    return name.partition("-")[0]


@dataclass
class Cluster:
    """One cluster. What is done here is done as a user or a kubelet would, at once."""

    sandbox: Sandbox
    corral: Parts
    port: httpx.AsyncClient
    """Corral's extender port."""
    lost: dict[str, str] = field(default_factory=dict)
    """Pods that others were given preference over: uid -> name, in order."""
    bindings: list[tuple[str, str]] = field(default_factory=list)
    """All there have ever been: pod -> node."""
    remade: dict[str, float] = field(default_factory=dict)
    """What is made anew, by its crew: so many seconds after a pod of it is gone."""
    nominated: dict[str, str] = field(default_factory=dict)
    """Pod -> node, of those that another scheduler has nominated."""
    since: int = 0
    """So many bindings there were before."""
    _by_hand: set[str] = field(default_factory=set)  # uids
    _made: dict[str, Object] = field(default_factory=dict)  # pods as they were asked for, by name

    @property
    def registry(self) -> Registry:
        return self.sandbox.registry

    # -- as a user does --------------------------------------------------------------------------

    def create(self, thing: Object) -> Object:
        kind = KINDS[thing["kind"]]
        body = copy.deepcopy(thing)
        if kind is POD:
            self._made[body["metadata"]["name"]] = thing
        namespace = "default" if kind.is_namespaced else ""
        made = self.registry.create(kind, namespace, body).body
        if status := thing.get("status"):
            key = namespace, made["metadata"]["name"]
            self.registry.patch(kind, key, {"status": status}, MERGE, "status")
        return made

    def delete(self, names: Iterable[str]) -> None:
        """Delete pods; whoever goes so has not gone for another."""
        for name in names:
            self._by_hand.add(self.pod(name)["metadata"]["uid"])
            self.registry.delete(POD, ("default", name))

    def make_again(self, name: str) -> None:
        """Create a pod as it was asked for first, on any node."""
        thing = copy.deepcopy(self._made[name])
        thing["spec"].pop("nodeName", None)
        self.create(thing)

    def change(self, kind: Kind, name: str, change: Object, subresource: str = "") -> None:
        namespace = "default" if kind.is_namespaced else ""
        self.registry.patch(kind, (namespace, name), change, MERGE, subresource)

    def bind(self, name: str, node: str) -> None:
        """As a scheduler does that asks no extender."""
        bind(self.registry, "default", name, {"target": {"kind": "Node", "name": node}})

    def preempt(self, name: str) -> None:
        """Delete a pod as kube-scheduler does for one of higher priority."""
        self.registry.delete(POD, ("default", name))

    def end(self, names: Iterable[str]) -> None:
        """Have pods that end be gone now."""
        for name in names:
            stored = self.registry.store.get(POD, ("default", name))
            if stored is not None and stored.body["metadata"].get("deletionTimestamp"):
                self.registry.delete(POD, ("default", name), grace=0)

    # -- what is to be seen ----------------------------------------------------------------------

    def pod(self, name: str) -> Object:
        return self.registry.read(POD, ("default", name)).body

    @property
    def pods(self) -> list[Object]:
        return [stored.body for stored in self.registry.store.values(POD)]

    @property
    def bound(self) -> dict[str, str]:
        """Pod -> node, of those that run and do not end."""
        return {
            pod["metadata"]["name"]: pod["spec"]["nodeName"]
            for pod in self.pods
            if pod["spec"].get("nodeName") and not pod["metadata"].get("deletionTimestamp")
        }

    @property
    def ending(self) -> list[str]:
        return [
            pod["metadata"]["name"] for pod in self.pods if pod["metadata"].get("deletionTimestamp")
        ]

    @property
    def losses(self) -> Counter[str]:
        """How many pods went for others, by their crews."""
        return Counter(crew(name) for name in self.lost.values())

    def said(self, reason: str = "") -> list[str]:
        """What events say, of one reason or of any."""
        events = [stored.body for stored in self.registry.store.values(EVENT)]
        return [each["message"] for each in events if reason in ("", each["reason"])]

    @property
    def searches(self) -> int:
        """How many questions for room have been answered."""
        outcomes = ("room", "none", "dropped", "failed")
        return int(sum(self.metric("corral_room_answers_total", outcome=each) for each in outcomes))

    def metric(self, name: str, **labels: str) -> float:
        return self.corral.metrics.registry.get_sample_value(name, labels) or 0.0

    @property
    def bugs(self) -> dict[str, float]:
        """What Corral has counted as its own errors; {} where all is well."""
        return {
            f"{sample.name} {sample.labels}": sample.value
            for family in self.corral.metrics.registry.collect()
            for sample in family.samples
            if sample.name in BUGS and sample.value
        }

    # -- time ------------------------------------------------------------------------------------

    async def until(self, is_true: Callable[[], object], seconds: float, what: str) -> None:
        """Return once it is so. Raises: AssertionError after so many seconds."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + seconds
        while not is_true():
            if loop.time() >= deadline:
                state = f"{self.bound} are bound, {self.lost} lost, told {self.said()[-6:]}"
                raise AssertionError(f"not within {seconds:g} s: {what}; {state}")
            await asyncio.sleep(POLL_SECONDS)

    # -- what a cluster has ----------------------------------------------------------------------

    def follow(self) -> None:
        """Count, end and make anew from now on."""
        self.registry.store.subscribe(POD, self._on_pod)

    def condemn(self, name: str) -> None:
        """Write the condition that a scheduler writes before it deletes a pod."""
        status = self.pod(name)["status"]
        condition = {
            "type": "DisruptionTarget",
            "status": "True",
            "reason": "PreemptionByScheduler",
            "message": "corral: preempting to accommodate a higher priority pod",
        }
        after = with_condition(status, condition, now=self.registry.now())
        self.change(POD, name, {"status": {"conditions": after["conditions"]}}, "status")

    def _on_pod(self, change: Change) -> None:
        pod, before = change.now.body, change.before.body if change.before else None
        name, uid = pod["metadata"]["name"], pod["metadata"]["uid"]
        node = pod["spec"].get("nodeName")
        if node and (before is None or not before["spec"].get("nodeName")):
            self.bindings.append((name, node))
        is_going = bool(pod["metadata"].get("deletionTimestamp"))
        # A job that fails deletes its own pods that wait.
        if node and (change.type == "DELETED" or is_going) and uid not in self._by_hand:
            self.lost.setdefault(uid, name)
        is_lost = change.type == "DELETED" and uid not in self._by_hand
        if is_lost and crew(name) in self.remade:
            again = self.remade[crew(name)]
            asyncio.get_running_loop().call_later(again, self.make_again, name)


@asynccontextmanager
async def cluster(folder: Path, **settings: Any) -> AsyncIterator[Cluster]:
    """A cluster without nodes, that is scheduled by the configuration file we ship, with Corral."""
    kubeconfig = folder / "sandbox.kubeconfig"
    chosen = Settings(
        kubeconfig=kubeconfig,
        levels=(BLOCK, RACK),
        extender_listen=Address("127.0.0.1", 0),
        **settings,
    )
    async with Sandbox(run_pods=True, takes_grace=True) as sandbox:
        sandbox.write_kubeconfig(kubeconfig)
        async with started(chosen) as corral:
            config = SchedulerConfig.read(SCHEDULER_CONFIG)
            extenders = tuple(replace(each, url=corral.extender_url) for each in config.extenders)
            await sandbox.schedule_with(config=replace(config, extenders=extenders))
            async with httpx.AsyncClient(base_url=corral.extender_url) as port:
                found = Cluster(sandbox, corral, port)
                found.follow()
                yield found
