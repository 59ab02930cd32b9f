"""Grove's operator on the sandbox: what it writes of a PodCliqueSet, without the operator.

    PodCliqueSet ──▶ PodGangs, of the keys of labels ──▶ pods behind its gate ──▶ the gate is lifted

Corral's webhooks are installed, and it serves the name of the stock scheduler.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from app.dialects.making import MAKERS
from app.process.parts import Parts
from app.sandbox import Sandbox
from app.sandbox.apiserver.storage.kinds import POD
from tests.app.dialects.grove.crds import CLUSTER_TOPOLOGY_BINDING, POD_CLIQUE_SET, POD_GANG
from tests.app.dialects.grove.objects import CREATED, GATE
from tests.app.installed import installed
from tests.app.sandbox.http import PODS, Answer, Client, until
from tests.cluster import MERGE, Object, Objects

POD_GANGS = "/apis/scheduler.grove.io/v1alpha1/namespaces/default/podgangs"
BINDINGS = "/apis/grove.io/v1alpha1/clustertopologybindings"
POD_CLIQUE_SETS = "/apis/grove.io/v1alpha1/namespaces/default/podcliquesets"
SCHEDULER = "default-scheduler"
QUIET_SECONDS = 0.5  # in which a gang that has room would have started


@dataclass(slots=True)
class Stage:
    """The sandbox, and the keys that the levels of a ClusterTopologyBinding stand for."""

    sandbox: Sandbox
    client: Client
    corral: Parts
    nodes: Mapping[str, Object]
    keys: Mapping[str, str]

    # -- what an administrator does ----------------------------------------------------------------

    async def bind(self, name: str, *levels: str, **spec: Any) -> None:
        """A ClusterTopologyBinding of these levels, widest first: made, or changed to them."""
        said = [{"domain": each, "key": self.keys[each]} for each in levels]
        body = {"spec": {"levels": said, **spec}}
        if (await self.client.get(f"{BINDINGS}/{name}")).status == 200:
            assert (await self.client.patch(f"{BINDINGS}/{name}", body, MERGE)).status == 200
        else:
            assert (await self.client.create(BINDINGS, binding(name, **body["spec"]))).status == 201
        await until(lambda: self.levels_of(name)[: len(levels)] == tuple(self._keys(levels)))

    async def unbind(self, name: str) -> None:
        """The binding goes."""
        assert (await self.client.delete(f"{BINDINGS}/{name}")).status == 200
        await until(lambda: not self.levels_of(name))

    def levels_of(self, name: str) -> tuple[str, ...]:
        """The levels that Corral knows of a binding; (): it uses none of this name."""
        found = self.corral.engine.books.topologies.get(f"grove.io/{name}")
        return () if found is None else tuple(found.levels)

    def _keys(self, levels: tuple[str, ...]) -> list[str]:
        return [self.keys[each] for each in levels]

    # -- what a user and Grove's operator do -------------------------------------------------------

    async def asked(self, made: Object) -> Answer:
        """What is answered where a user creates a PodCliqueSet."""
        return await self.client.create(POD_CLIQUE_SETS, served_by(made))

    async def deploy(self, made: Object, *, is_translated: bool = True) -> None:
        """A PodCliqueSet, its PodGangs and all its pods, which are let go one by one.

        `is_translated`: the operator knows the topology; else it leaves out what it says of it.
        """
        made = served_by(made)
        if (await self.client.get(f"{POD_CLIQUE_SETS}/{made['metadata']['name']}")).status != 200:
            assert (await self.client.create(POD_CLIQUE_SETS, made)).status == 201
        parts = [each.content for each in MAKERS["grove.io", "PodCliqueSet"](made)]
        pods = [each for each in parts if each["kind"] == "Pod"]
        for each in pods:
            gated = {**each, "spec": {**each["spec"], "schedulingGates": [{"name": GATE}]}}
            assert (await self.client.create(PODS, _bare(gated))).status == 201
        for each in parts:
            if each["kind"] == "PodGang":
                written = self.translated(each) if is_translated else _unconstrained(each)
                await self.put_pod_gang(written)
        for each in pods:
            change = {"spec": {"schedulingGates": None}}
            path = f"{PODS}/{each['metadata']['name']}"
            assert (await self.client.patch(path, change, MERGE)).status == 200

    async def put_pod_gang(self, made: Object) -> None:
        assert (await self.client.create(POD_GANGS, _bare(made))).status == 201
        path = f"{POD_GANGS}/{made['metadata']['name']}/status"
        status = {"phase": "Pending", "conditions": [CREATED]}
        assert (await self.client.patch(path, {"status": status}, MERGE)).status == 200

    def translated(self, part: Any) -> Any:
        """A PodGang with keys of labels in the place of the names of levels."""
        if isinstance(part, list):
            return [self.translated(each) for each in part]
        if not isinstance(part, dict):
            return part
        return {
            name: {field: self.keys[level] for field, level in value.items()}
            if name == "packConstraint"
            else self.translated(value)
            for name, value in part.items()
        }

    async def clear(self) -> None:
        """Nothing of any PodCliqueSet is left."""
        for path in (PODS, POD_GANGS, POD_CLIQUE_SETS):
            for each in (await self.client.get(path)).body["items"]:
                await self.client.delete(f"{path}/{each['metadata']['name']}")
        await until(lambda: not self.pods() and not self.corral.engine.gangs.by_key)

    # -- what is there -----------------------------------------------------------------------------

    def pods(self) -> Objects:
        return [dict(each.body) for each in self.sandbox.store.values(POD)]

    def placed(self) -> Objects:
        """The pods that have nodes."""
        return [each for each in self.pods() if each["spec"].get("nodeName")]

    def domains(self, level: str) -> set[str]:
        """Those of a level that pods are in, each by the names of the levels around it as well."""
        keys = list(self.keys.values())
        keys = keys[: keys.index(self.keys[level]) + 1]
        labels = [
            self.nodes[each["spec"]["nodeName"]]["metadata"]["labels"] for each in self.placed()
        ]
        return {"/".join(each[key] for key in keys) for each in labels}

    async def all_bound(self, pods: int) -> Objects:
        await until(lambda: len(self.placed()) == pods, seconds=20.0)
        return self.placed()

    async def why(self, pod_gang: str) -> str:
        """Why a PodGang waits, once it says so; and none of its pods has a node."""
        for _ in range(400):
            status = (await self.client.get(f"{POD_GANGS}/{pod_gang}")).body["status"]
            for each in status["conditions"]:
                if (each["type"], each["status"]) == ("Scheduled", "False"):
                    return str(each["message"])
            await asyncio.sleep(0.05)
        raise AssertionError(status)


def binding(name: str, **spec: Any) -> Object:
    """A ClusterTopologyBinding."""
    return {
        "apiVersion": "grove.io/v1alpha1",
        "kind": "ClusterTopologyBinding",
        "metadata": {"name": name},
        "spec": spec,
    }


def served_by(made: Object, scheduler: str = SCHEDULER) -> Object:
    """The PodCliqueSet with pods of this scheduler's, as Grove's own webhook fills it in."""
    template = made["spec"]["template"]
    cliques = [
        {
            **each,
            "spec": {
                **each["spec"],
                "podSpec": {**each["spec"]["podSpec"], "schedulerName": scheduler},
            },
        }
        for each in template["cliques"]
    ]
    return {**made, "spec": {**made["spec"], "template": {**template, "cliques": cliques}}}


def _bare(made: Object) -> Object:
    """As it is created: the API server makes uids and versions, and no owner is there."""
    kept = ("name", "namespace", "labels", "annotations")
    metadata = {key: made["metadata"][key] for key in kept if key in made["metadata"]}
    return {**{key: made[key] for key in ("apiVersion", "kind", "spec")}, "metadata": metadata}


def _unconstrained(made: Object) -> Object:
    """The PodGang as the operator writes it while it does not know the topology."""
    spec = {"podgroups": [{**each} for each in made["spec"]["podgroups"]]}
    for each in spec["podgroups"]:
        each.pop("topologyConstraint", None)
    return {**made, "metadata": {**made["metadata"], "annotations": {}}, "spec": spec}


@asynccontextmanager
async def stage_of(folder: Path, nodes: Objects, keys: Mapping[str, str]) -> AsyncIterator[Stage]:
    """A sandbox of these nodes. `keys`: of each level, widest first, its label."""
    crds = (POD_GANG, CLUSTER_TOPOLOGY_BINDING, POD_CLIQUE_SET)
    async with installed(folder, crds, nodes, profile=SCHEDULER, webhook_seconds=30) as (
        sandbox,
        client,
        corral,
    ):
        there = {each["metadata"]["name"]: each for each in nodes}
        yield Stage(sandbox, client, corral, there, keys)


async def is_quiet(holds: Callable[[], bool]) -> bool:
    """Whether this still holds after a while."""
    await asyncio.sleep(QUIET_SECONDS)
    return holds()
