"""Grove's PodGangs on the real control plane, as its operator writes them; it does not run.

Some are as only newer operators than the one of the tests write them (`test_grove_operator.py`).
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.app.dialects.grove.objects import (
    CREATED,
    GATE,
    POD_CLIQUE,
    POD_GANG,
    cluster_topology,
    pod_gang,
    pod_group,
    within,
)
from tests.cluster import BLOCK, GPU, MERGE, RACK, Cluster, Object, collection, grid, node, pod
from tests.controlplane.grove import clique, pod_clique_set
from tests.controlplane.kinds import served
from tests.controlplane.plane import ControlPlane, profiles
from tests.controlplane.seen import START_SECONDS
from tests.controlplane.webhook import installed
from tests.corral_process import scheduled
from tests.workloads import gates_of, members

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.usefixtures("grove")]

KIND = "PodGang"
SCHEDULER = "default-scheduler"  # which Grove's own backend of that name writes on its pods
QUIET_SECONDS = 2.0  # in which a gang that could start would have
SOON = 15.0


@pytest.fixture
def grove(cluster: Cluster) -> Iterator[None]:
    """The API server knows Grove's kinds; afterwards neither them nor objects of theirs."""
    with served(cluster, ("PodGang", "ClusterTopology")):
        yield


def create(cluster: Cluster, made: Object) -> None:
    """As Grove's operator writes it: the API server makes uids and versions, status comes last."""
    kept = ("name", "namespace", "annotations")
    metadata = {key: made["metadata"][key] for key in kept if key in made["metadata"]}
    cluster.create({**made, "metadata": metadata})
    if "status" in made:
        path = f"{collection(KIND, 'default')}/{made['metadata']['name']}/status"
        status = {"status": made["status"]}
        cluster.request("PATCH", path, body=status, content_type=MERGE)


def create_topology(cluster: Cluster, name: str, *levels: str) -> None:
    cluster.create({**cluster_topology(name, *levels), "metadata": {"name": name}})


def member(name: str, gang: str = "g") -> Object:
    """A pod behind Grove's gate, in the pod group that its name begins with."""
    labels = {POD_GANG: gang, POD_CLIQUE: name.partition("-")[0]}
    return pod(name, scheduler=SCHEDULER, requests={GPU: 8}, labels=labels, gates=[GATE])


def lift(cluster: Cluster, *names: str) -> None:
    """Takes the gates off as Grove does: all of them, with its own."""
    for name in names:
        path = f"{collection('Pod', 'default')}/{name}"
        cluster.request("PATCH", path, body={"spec": {"schedulingGates": None}}, content_type=MERGE)


def conditions(cluster: Cluster, name: str = "g") -> dict[str, Any]:
    """Those of a PodGang, by type."""
    status = (cluster.get(KIND, name) or {}).get("status", {})
    return {each["type"]: each for each in status.get("conditions", ())}


def is_scheduled(cluster: Cluster, said: str, name: str = "g") -> bool:
    return bool(conditions(cluster, name).get("Scheduled", {}).get("status") == said)


def test_a_pod_gang_starts_whole_in_its_racks_though_its_pods_are_let_go_one_by_one(
    plane: ControlPlane, cluster: Cluster, tmp_path: Path
) -> None:
    plane.nodes(grid(blocks=2, racks=2, nodes=2, gpus=8))
    create_topology(cluster, "grove-topology", BLOCK, RACK)
    named = f"corral,{SCHEDULER}"
    with installed(plane, tmp_path, levels=(), scheduler_name=named) as webhook:
        plane.start_scheduler(extender=webhook.corral.url, profiles=profiles(SCHEDULER))
        cluster.create_all(map(member, ("router-0", "worker-0", "worker-1")))
        assert {tuple(gates_of(each)) for each in cluster.list("Pod", "default")} == {(GATE,)}
        groups = (pod_group("router", 1), pod_group("worker", 2, within(RACK)))
        create(cluster, pod_gang("g", *groups, on=within(BLOCK)))
        lift(cluster, "router-0", "worker-0")
        time.sleep(QUIET_SECONDS)
        assert cluster.bound() == {}

        lift(cluster, "worker-1")
        cluster.wait(lambda: len(cluster.bound()) == 3, START_SECONDS, "the gang's start")
        on = cluster.bound()
        assert len({on[f"worker-{at}"].rpartition("-")[0] for at in range(2)}) == 1
        assert len({node.partition("-")[0] for node in on.values()}) == 1
        cluster.wait(lambda: is_scheduled(cluster, "True"), SOON, "the PodGang says so")
        assert conditions(cluster)["Initialized"] == CREATED
        assert webhook.corral.bugs() == {}


def test_a_pod_gang_without_room_says_why_and_none_of_its_pods_starts(
    plane: ControlPlane, cluster: Cluster, tmp_path: Path
) -> None:
    plane.nodes(grid(blocks=2, racks=2, nodes=2, gpus=8))
    create_topology(cluster, "grove-topology", BLOCK, RACK)
    named = f"corral,{SCHEDULER}"
    with installed(plane, tmp_path, levels=(), scheduler_name=named) as webhook:
        plane.start_scheduler(extender=webhook.corral.url, profiles=profiles(SCHEDULER))
        names = [f"worker-{at}" for at in range(3)]
        cluster.create_all(map(member, names))
        create(cluster, pod_gang("g", pod_group("worker", 3), on=within(RACK)))
        lift(cluster, *names)
        cluster.wait(lambda: is_scheduled(cluster, "False"), SOON, "the PodGang says why")
        assert "2 of 3 pods fit" in conditions(cluster)["Scheduled"]["message"]
        assert cluster.bound() == {}


def test_pods_that_only_the_pod_gang_names_start_together_and_their_successors_on_their_nodes(
    plane: ControlPlane, cluster: Cluster, tmp_path: Path
) -> None:
    plane.nodes(grid(racks=3, nodes=2, gpus=8))
    create_topology(cluster, "grove-topology", RACK)

    def plain(name: str) -> Object:
        return pod(name, scheduler=SCHEDULER, requests={GPU: 8}, gates=[GATE])

    def naming(name: str, *pods: str, reuses: str = "") -> Object:
        made = pod_gang(name, pod_group("worker", 2, names=pods), on=within(RACK))
        if reuses:
            made["spec"]["reuseReservationRef"] = {"namespace": "default", "name": reuses}
        return made

    with scheduled(plane, tmp_path, SCHEDULER, levels=()) as corral:
        cluster.create_all(map(plain, ("filler", "a", "b")))
        lift(cluster, "filler")  # of no PodGang: the rack where a search packs most tightly
        cluster.wait(lambda: set(cluster.bound()) == {"filler"}, START_SECONDS, "it starts")
        create(cluster, naming("old", "a", "b"))
        lift(cluster, "a")
        cluster.wait(lambda: "waits until" in told_of(cluster, "a"), SOON, "it is told why")
        assert set(cluster.bound()) == {"filler"}
        lift(cluster, "b")
        cluster.wait(lambda: len(cluster.bound()) == 3, START_SECONDS, "both start")
        before = {on for name, on in cluster.bound().items() if name in "ab"}
        assert len({on.rpartition("-")[0] for on in before}) == 1
        cluster.wait(lambda: is_scheduled(cluster, "True", "old"), SOON, "the PodGang says so")
        status = (cluster.get(KIND, "old") or {})["status"]
        assert status["placementScore"] == 1.0
        assert conditions(cluster, "old")["Ready"]["status"] == "False"  # no kubelet runs

        for name in ("a", "b"):
            cluster.request("DELETE", f"{collection('Pod', 'default')}/{name}")
        cluster.wait(lambda: set(cluster.bound()) == {"filler"}, SOON, "the old pods are gone")
        cluster.request("DELETE", f"{collection(KIND, 'default')}/old")
        cluster.create_all(map(plain, ("c", "d")))
        create(cluster, naming("new", "c", "d", reuses="old"))
        lift(cluster, "c", "d")
        cluster.wait(lambda: len(cluster.bound()) == 3, START_SECONDS, "the new ones start")
        assert {on for name, on in cluster.bound().items() if name in "cd"} == before
        assert corral.bugs() == {}


def told_of(cluster: Cluster, name: str) -> str:
    """Why a pod has no node, as kube-scheduler repeats it."""
    there = cluster.get("Pod", name) or {}
    said = there.get("status", {}).get("conditions", ())
    return next((one.get("message", "") for one in said if one["type"] == "PodScheduled"), "")


def start(cluster: Cluster, made: Object, *pods: Object) -> None:
    """A PodGang with its pods, all of them let go."""
    create(cluster, made)
    cluster.create_all(pods)
    lift(cluster, *(each["metadata"]["name"] for each in pods))


def bound_of(cluster: Cluster, prefix: str, pods: int) -> set[str]:
    """Where the pods of that name are, once so many have nodes."""

    def found() -> set[str]:
        on = {place for name, place in cluster.bound().items() if name.startswith(prefix)}
        return on if len(on) == pods else set()

    return cluster.wait(found, START_SECONDS, f"{pods} pods have nodes")


def test_pod_gangs_of_two_topologies_are_each_on_the_nodes_of_theirs(
    plane: ControlPlane, cluster: Cluster, tmp_path: Path
) -> None:
    """Source: Test_TAS17 of operator/e2e/tests/topology_test.go (v0.1.0-alpha.12)."""
    domain = "example.com/nvlink-domain"
    own = (node(f"nvl-{at}", gpus=8, labels={domain: f"d{at // 4}"}) for at in range(8))
    plane.nodes([*grid(racks=2, nodes=3, gpus=8), *own])
    create_topology(cluster, "h100", RACK)
    create_topology(cluster, "gb200", domain)
    with scheduled(plane, tmp_path, SCHEDULER, levels=()) as corral:
        for name, key, pods in (("h100", RACK, 3), ("gb200", domain, 4), ("wide", RACK, 4)):
            topology = "h100" if key == RACK else "gb200"
            made = pod_gang(name, pod_group(name, pods), on=within(key), topology=topology)
            start(cluster, made, *(member(f"{name}-{at}", name) for at in range(pods)))
        racks = {on.rpartition("-")[0] for on in bound_of(cluster, "h100", 3)}
        assert len(racks) == 1
        assert not racks & {"nvl"}
        assert bound_of(cluster, "gb200", 4) in [
            {f"nvl-{at}" for at in range(begin, begin + 4)} for begin in (0, 4)
        ]
        cluster.wait(lambda: is_scheduled(cluster, "False", "wide"), SOON, "it says why")
        assert "3 of 4 pods fit" in conditions(cluster, "wide")["Scheduled"]["message"]
        assert corral.bugs() == {}


def test_a_level_that_is_preferred_is_kept_where_it_has_room(
    plane: ControlPlane, cluster: Cluster, tmp_path: Path
) -> None:
    """Source: Test_TAS23 of operator/e2e/tests/topology_test.go (v0.1.0-alpha.12)."""
    plane.nodes(grid(blocks=2, racks=2, nodes=3, gpus=8))
    create_topology(cluster, "grove-topology", BLOCK, RACK)
    with scheduled(plane, tmp_path, SCHEDULER, levels=()) as corral:
        for name, pods in (("small", 3), ("large", 5)):
            made = pod_gang(name, pod_group(name, pods), on=within(BLOCK, RACK))
            start(cluster, made, *(member(f"{name}-{at}", name) for at in range(pods)))
            on = bound_of(cluster, name, pods)
            assert len({place.partition("-")[0] for place in on}) == 1
            assert len({place.rpartition("-")[0] for place in on}) == (1 if name == "small" else 2)
        assert corral.bugs() == {}


def test_greps_rules_for_pod_clique_sets_hold_where_groves_own_webhook_is_not(
    plane: ControlPlane, cluster: Cluster, tmp_path: Path
) -> None:
    with served(cluster, ("PodCliqueSet",)), installed(plane, tmp_path) as webhook:
        create_topology(cluster, "grove-topology", BLOCK, RACK)  # a region and a zone

        def refusal(whole: str, of_clique: str) -> str:
            made = pod_clique_set("llm", clique("worker", 2, pack=of_clique), pack=whole)
            return str(webhook.refusal(lambda: webhook.tried(made)))

        wrong = "supported values: "  # before the watch shows the topology, there is none
        cluster.wait(lambda: wrong in refusal("rack", "rack"), SOON, "the topology is known")
        assert "cliques[0].topologyConstraint.packDomain" in refusal("region", "rack")
        assert "must not be wider than zone in spec." in refusal("zone", "region")
        made = pod_clique_set("llm", clique("worker", 2, pack="zone"), pack="region")
        cluster.create(made)
        changed = {"spec": {"template": {"topologyConstraint": {"packDomain": "zone"}}}}
        path = f"{collection('PodCliqueSet', 'default')}/llm"
        told = webhook.refusal(
            lambda: cluster.request("PATCH", path, body=changed, content_type=MERGE)
        )
        assert "may not change once the PodCliqueSet exists: was region" in str(told)
        cluster.clear("PodCliqueSet")


def test_on_a_scheduler_that_others_share_only_pod_gangs_are_gangs(
    plane: ControlPlane, cluster: Cluster, tmp_path: Path
) -> None:
    plane.nodes(grid(racks=2, nodes=2, gpus=8))
    create_topology(cluster, "grove-topology", RACK)
    settings = {"scheduler_vocabularies": f"{SCHEDULER}=grove"}
    with scheduled(plane, tmp_path, SCHEDULER, **settings) as corral:
        # Half of a pod group: as a gang it would wait.
        half = members("g", 2, numbers=[0], scheduler=SCHEDULER, requests={GPU: 8})
        cluster.create_all(half)
        cluster.wait(lambda: "g-0" in cluster.bound(), START_SECONDS, "an ordinary pod starts")
        create(cluster, pod_gang("p", pod_group("worker", 2), on=within(RACK)))
        cluster.create_all([member("worker-0", "p"), member("worker-1", "p")])
        lift(cluster, "worker-0")
        time.sleep(QUIET_SECONDS)
        assert set(cluster.bound()) == {"g-0"}
        lift(cluster, "worker-1")
        cluster.wait(lambda: len(cluster.bound()) == 3, START_SECONDS, "the PodGang starts")
        assert corral.bugs() == {}
