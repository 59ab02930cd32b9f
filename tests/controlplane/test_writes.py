"""What Corral writes to pods, by its own client and with its own rights, in both worlds."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from app.errors import ApiError, Conflict, NotFound, TooManyRequests
from app.kube.client.transport import Transport
from app.kube.client.writes import Client
from tests.cluster import Cluster, Object, grid, pod
from tests.contract.worlds import sandbox
from tests.controlplane.plane import ControlPlane
from tests.workloads import GATE, gates_of

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

EVICT, DELETE = "corral-evict", "corral-delete-excess"  # what a setting needs, as README says
FOREIGN = "example.org/quota"
BUDGET = {
    "apiVersion": "policy/v1",
    "kind": "PodDisruptionBudget",
    "metadata": {"name": "budget", "namespace": "default"},
    "spec": {"maxUnavailable": 1, "selector": {"matchLabels": {"app": "a"}}},
}
ZONE = {"key": "zone", "operator": "In", "values": ["z"]}
OWN_TERMS = {
    "nodeAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": [{"matchExpressions": [ZONE]}]
        }
    }
}
NEAR_ANCHOR = {
    "podAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [
            {"labelSelector": {"matchLabels": {"app": "b"}}, "topologyKey": "zone"}
        ]
    }
}


class World:
    """An API server, seen by its administrator and written to by Corral's client."""

    def __init__(
        self, cluster: Cluster, kubeconfig: Path, plane: ControlPlane | None = None
    ) -> None:
        self.cluster = cluster
        self._kubeconfig = kubeconfig
        self._plane = plane

    @contextmanager
    def granted(self, *roles: str) -> Iterator[None]:
        """While the block lasts, Corral has these roles too; the sandbox knows no rights."""
        with ExitStack() as grants:
            for role in roles if self._plane is not None else ():
                grants.enter_context(self._plane.granted(role))
            yield

    async def write(self, call: Callable[[Client], Awaitable[None]]) -> None:
        transport = await Transport.from_kubeconfig(self._kubeconfig)
        try:
            await call(Client(transport))
        finally:
            await transport.close()

    async def ungate(self, thing: Object, **narrowing: Any) -> Object:
        """Ungates the pod as Corral does; the pod afterwards."""
        name, uid = thing["metadata"]["name"], thing["metadata"]["uid"]
        await self.write(lambda client: client.ungate_pod("default", name, uid, GATE, **narrowing))
        return self.pod(name)

    def pod(self, name: str) -> Object:
        found = self.cluster.get("Pod", name)
        assert found is not None
        return found

    def runs(self, name: str, *, is_ready: bool = True) -> Object:
        """A pod of app "a" that runs, as its kubelet would say."""
        created = self.cluster.create(pod(name, labels={"app": "a"}, scheduler="none"))
        self.cluster.bind(name, "b0-r0-n0")
        ready = {"type": "Ready", "status": "True" if is_ready else "False"}
        self.status("Pod", name, phase="Running", conditions=[ready])
        return created

    def status(self, kind: str, name: str, **fields: Any) -> None:
        plural = "pods" if kind == "Pod" else "poddisruptionbudgets"
        root = "/api/v1" if kind == "Pod" else "/apis/policy/v1"
        path = f"{root}/namespaces/default/{plural}/{name}/status"
        merge = "application/merge-patch+json"
        self.cluster.request("PATCH", path, body={"status": fields}, content_type=merge)


@pytest.fixture(params=["kube-apiserver", "sandbox"])
def world(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[World]:
    if request.param == "kube-apiserver":
        plane: ControlPlane = request.getfixturevalue("plane")
        cluster: Cluster = request.getfixturevalue("cluster")
        plane.nodes(grid(racks=1, nodes=2))
        yield World(cluster, plane.kubeconfig("corral"), plane)
    else:
        with sandbox(tmp_path, ()) as imitation:
            imitation.create_all(grid(racks=1, nodes=2))
            yield World(imitation, tmp_path / "sandbox.kubeconfig")


async def test_one_patch_takes_our_gate_and_narrows_and_a_foreign_gate_stays(world: World) -> None:
    gated = world.cluster.create(pod("a", gates=(FOREIGN, GATE), scheduler="none"))
    nodes = ("b0-r0-n1", "b0-r0-n0")
    after = await world.ungate(gated, nodes=nodes, annotations={"corral.dev/narrowed": "nodes"})
    required = after["spec"]["affinity"]["nodeAffinity"]
    terms = required["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    assert gates_of(after) == [FOREIGN]
    assert [term["matchFields"][0]["values"] for term in terms] == [[node] for node in nodes]
    assert after["metadata"]["annotations"]["corral.dev/narrowed"] == "nodes"


async def test_affinity_of_other_kinds_stays_when_a_pod_is_narrowed(world: World) -> None:
    gated = world.cluster.create(pod("a", gates=(GATE,), scheduler="none", affinity=NEAR_ANCHOR))
    after = await world.ungate(gated, nodes=("b0-r0-n0",))
    assert gates_of(after) == []
    assert after["spec"]["affinity"].keys() == {"nodeAffinity", "podAffinity"}


async def test_a_pod_with_terms_of_its_own_takes_a_selector_but_no_nodes(world: World) -> None:
    gated = world.cluster.create(pod("a", gates=(GATE,), scheduler="none", affinity=OWN_TERMS))
    with pytest.raises(ApiError) as refused:
        await world.ungate(gated, nodes=("b0-r0-n0", "b0-r0-n1"))
    assert refused.value.status == 422
    assert not isinstance(refused.value, Conflict)
    assert gates_of(world.pod("a")) == [GATE]

    after = await world.ungate(gated, selector={"rack": "b0-r0"})
    assert after["spec"]["nodeSelector"] == {"rack": "b0-r0"}
    assert after["spec"]["affinity"] == OWN_TERMS
    assert gates_of(after) == []


async def test_a_second_patch_does_no_harm_unless_it_narrows_to_other_nodes(world: World) -> None:
    gated = world.cluster.create(pod("a", gates=(GATE,), scheduler="none"))
    first = await world.ungate(gated, nodes=("b0-r0-n0",))
    again = await world.ungate(gated, nodes=("b0-r0-n0",))
    assert again["metadata"]["resourceVersion"] == first["metadata"]["resourceVersion"]
    with pytest.raises(ApiError) as refused:
        await world.ungate(gated, nodes=("b0-r0-n1",))
    assert refused.value.status == 422


async def test_a_recreated_pod_is_not_ungated_for_its_predecessor(world: World) -> None:
    gated = world.cluster.create(pod("a", gates=(GATE,), scheduler="none"))
    gated["metadata"]["uid"] = "00000000-0000-0000-0000-000000000000"
    with pytest.raises(Conflict):
        await world.ungate(gated, nodes=("b0-r0-n0",))
    assert gates_of(world.pod("a")) == [GATE]
    gated["metadata"]["name"] = "absent"
    with pytest.raises(NotFound):
        await world.ungate(gated)


async def test_an_eviction_counts_on_the_budget_until_it_says_no(world: World) -> None:
    first, second = world.runs("a"), world.runs("b")
    world.cluster.create(BUDGET)
    world.status(
        "PodDisruptionBudget",
        "budget",
        **{"observedGeneration": 1, "disruptionsAllowed": 1, "currentHealthy": 2},
        **{"desiredHealthy": 2, "expectedPods": 2},
    )
    with world.granted(EVICT):
        await world.write(lambda client: evict(client, first))
        with pytest.raises(TooManyRequests):
            await world.write(lambda client: evict(client, second))
    left = [one["metadata"]["name"] for one in world.cluster.list("Pod", "default")]
    assert left == ["b"]


async def test_an_eviction_of_a_pod_that_is_not_ready_yet_asks_no_budget(world: World) -> None:
    waiting = world.cluster.create(pod("a", labels={"app": "a"}, scheduler="none"))
    world.cluster.create(BUDGET)
    with world.granted(EVICT):
        await world.write(lambda client: evict(client, waiting))
    assert world.cluster.get("Pod", "a") is None


async def test_evictions_and_deletions_mean_one_pod_by_its_uid(world: World) -> None:
    created = world.cluster.create(pod("a", scheduler="none"))
    created["metadata"]["uid"] = "00000000-0000-0000-0000-000000000000"
    with world.granted(EVICT, DELETE):
        with pytest.raises(Conflict):
            await world.write(lambda client: evict(client, created))
        with pytest.raises(Conflict):
            await world.write(lambda client: client.delete_pod("default", "a", uid_of(created)))
    assert world.pod("a")


async def evict(client: Client, thing: Object) -> None:
    await client.evict_pod("default", thing["metadata"]["name"], uid_of(thing))


def uid_of(thing: Object) -> str:
    return str(thing["metadata"]["uid"])
