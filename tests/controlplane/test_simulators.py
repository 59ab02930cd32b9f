"""An autoscaler that plays kube-scheduler through asks Corral about nodes that do not exist.

It asks with curl's means, beside a gang that waits and one that runs, in front of a real
kube-scheduler; afterwards the gang is placed as if nothing had been asked.
"""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest
import yaml

from benchmarks.costs import writes
from tests.cluster import BLOCK, HOSTNAME, RACK, Cluster, Object, Objects, grid, node
from tests.controlplane.plane import SCHEDULER_CONFIG, ControlPlane, profiles
from tests.controlplane.seen import START_SECONDS
from tests.corral_process import CorralProcess, scheduled
from tests.workloads import asking, behind_gate, members

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

TEMPLATE = "cluster-autoscaler.kubernetes.io/template-node"
IN_RACK = asking(required=RACK)
TIMES = 50
HYPOTHETICAL = 'corral_filter_answers_total{answer="hypothetical"}'


def asked(corral: CorralProcess, verb: str, one: Object, nodes: Objects) -> object:
    body = {"Pod": one, "Nodes": {"metadata": {}, "items": nodes}, "NodeNames": None}
    answer = httpx.post(f"{corral.url}/{verb}", json=body, timeout=10, trust_env=False)
    assert answer.status_code == 200
    found: object = answer.json()
    return found


def template(name: str, gpus: int) -> Object:
    return node(name, gpus=gpus, labels={TEMPLATE: "true"})


def by_name(corral: CorralProcess, one: Object, *names: str) -> Object:
    body = {"Pod": one, "Nodes": None, "NodeNames": names}
    answer = httpx.post(f"{corral.url}/filter", json=body, timeout=10, trust_env=False)
    found: Object = answer.json()
    return found


@pytest.mark.parametrize("is_gated", [True, False], ids=["gated", "without_gates"])
def test_a_gang_that_a_simulator_asked_about_is_placed_as_if_it_had_not(
    plane: ControlPlane, cluster: Cluster, tmp_path: Path, is_gated: bool
) -> None:
    plane.nodes(grid(racks=2, nodes=3, gpus=8))
    journal = tmp_path / "journal"
    with scheduled(plane, tmp_path, journal=str(journal)) as corral:
        cluster.create_all(members("runs", 3, annotations=IN_RACK))
        cluster.wait(lambda: len(cluster.bound()) == 3, START_SECONDS, "the gang that runs")
        asks = members("waits", 4, annotations=IN_RACK)
        waits = cluster.create_all([behind_gate(one) if is_gated else one for one in asks])
        waiting = 'corral_gangs{phase="waiting"}'
        cluster.wait(lambda: corral.metric(waiting) == 1, START_SECONDS, "a gang that waits")

        real = cluster.list("Node")
        free = {each["metadata"]["name"] for each in real} - set(cluster.bound().values())
        nodes = [
            *(template(f"simulated-{at}", gpus=8 if at % 2 else 4) for at in range(50)),
            *(node(f"simulated-unknown-{at}", gpus=8) for at in range(3)),
            *real,
        ]
        fitting = {f"simulated-{at}" for at in range(1, 50, 2)} | free
        before = writes(plane)
        for at in range(TIMES):
            one = waits[at % len(waits)]
            answer = asked(corral, "filter", one, nodes)
            assert isinstance(answer, dict)
            items = answer["Nodes"]["items"]
            assert {each["metadata"]["name"] for each in items} == fitting
            scores = asked(corral, "prioritize", one, nodes)
            assert isinstance(scores, list)
            assert {each["Host"] for each in scores if each["Score"]} <= free
            bare = by_name(corral, one, "simulated-unknown-0", *free)
            if is_gated:
                assert set(bare["NodeNames"]) == free
                assert set(bare["FailedAndUnresolvableNodes"]) == {"simulated-unknown-0"}
            else:
                assert "watch" in bare["Error"]
        assert corral.metric(HYPOTHETICAL) == TIMES * (2 if is_gated else 1)
        assert corral.metric(waiting) == 1
        assert len(cluster.bound()) == 3
        if is_gated:  # else kube-scheduler asks as well, and may be told another reason
            assert writes(plane)["PATCH pods"] == before["PATCH pods"]

        (rack,) = {
            each["metadata"]["labels"][RACK] for each in real if each["metadata"]["name"] in free
        }
        block = real[0]["metadata"]["labels"][BLOCK]
        cluster.create(node("fourth", gpus=8, labels={BLOCK: block, RACK: rack}))
        cluster.wait(lambda: len(cluster.bound()) == 7, START_SECONDS, "the gang that waited")
        placed = {name: at for name, at in cluster.bound().items() if name.startswith("waits")}
        assert set(placed.values()) == {*free, "fourth"}
        assert corral.bugs() == {}
    assert b"simulated-" not in journal.read_bytes()


def test_a_kube_scheduler_that_sends_whole_nodes_is_no_simulator(
    plane: ControlPlane, cluster: Cluster, tmp_path: Path
) -> None:
    """Nodes and gangs come together: it may see a node before Corral's watch shows it."""
    config = yaml.safe_load(SCHEDULER_CONFIG.read_text(encoding="utf-8"))
    for extender in config["extenders"]:
        extender["nodeCacheCapable"] = False
    file = tmp_path / "scheduler.yaml"
    file.write_text(yaml.safe_dump(config), encoding="utf-8")
    with CorralProcess(plane.kubeconfig("corral"), tmp_path, scheduler_name="corral") as corral:
        plane.start_scheduler(file, extender=corral.url, profiles=profiles("corral"))
        for number in range(4):
            nodes = grid(racks=1, nodes=3, gpus=8, blocks=1)
            for one in nodes:
                name = f"{one['metadata']['name']}-{number}"
                one["metadata"]["name"] = name
                one["metadata"]["labels"] |= {RACK: f"rack-{number}", HOSTNAME: name}
            pods = members(f"gang-{number}", 3, annotations=IN_RACK)
            if number % 2:
                pods = [behind_gate(one) for one in pods]
            cluster.create_all([*pods, *nodes])
        cluster.wait(lambda: len(cluster.bound()) == 12, START_SECONDS, "four gangs")
        for number in range(4):
            its = {at for name, at in cluster.bound().items() if name.startswith(f"gang-{number}-")}
            assert len({at.rsplit("-", 1)[1] for at in its}) == 1
        assert corral.metric(HYPOTHETICAL) == 0
        assert corral.metric('corral_filter_answers_total{answer="pinned"}') >= 12
        assert corral.bugs() == {}
