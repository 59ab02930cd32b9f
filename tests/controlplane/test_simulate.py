"""`corral simulate` names the nodes that pods get once real controllers have created them.

So what Corral says that a controller creates, and how it names and labels it, is what it does.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from app.cli import main
from tests.app.dialects.volcano.workloads import network_topology, partition_policy, task, vcjob
from tests.cluster import GPU, RACK, Cluster, Object, grid, job
from tests.controlplane import grove, grove_cases, kubeflow
from tests.controlplane.kinds import (
    job_set,
    leader_worker_set,
    served,
    stateful_set,
    training_job,
)
from tests.controlplane.kubelet import kubelets
from tests.controlplane.plane import ControlPlane
from tests.controlplane.seen import START_SECONDS
from tests.controlplane.volcano import POD_GROUP
from tests.corral_process import CorralProcess, scheduled
from tests.workloads import asking

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

IN_RACK = asking(required=RACK)
HALF = {GPU: "4"}


def simulated(corral: CorralProcess, folder: Path, thing: Object) -> list[Object]:
    """What is said of each gang of an object."""
    file = folder / "thing.json"
    file.write_text(json.dumps(thing), encoding="utf-8")
    ran = CliRunner().invoke(
        main, ["simulate", "-f", str(file), "-o", "json", "--server", corral.url]
    )
    assert ran.exit_code in (0, 3), ran.output
    found: list[Object] = json.loads(ran.stdout)["gangs"]
    return found


def places(gangs: list[Object]) -> dict[str, str]:
    assert {each["verdict"] for each in gangs} == {"Fits"}, gangs
    return {place["pod"]: place["node"] for each in gangs for place in each["places"]}


def by_gang(gangs: list[Object], nodes: dict[str, str]) -> list[list[str]]:
    """The nodes of each gang's pods in the order of their names.

    Controllers make the gangs of one object side by side, and the one that is whole first has the
    first choice: which of two equal gangs that is, nobody says.
    """
    return sorted([nodes[pod] for pod in sorted(places([each]))] for each in gangs)


def bound_as(cluster: Cluster, names: dict[str, str]) -> dict[str, str]:
    """Where the pods are, by the names without what is random in them."""
    found = {}
    for name, node in cluster.bound().items():
        own = [each for each in names if name == each or name.startswith(f"{each}-")]
        found[max(own, key=len) if own else name] = node
    return found


INDEXED = job("j", pods=5, requests=HALF, annotations=IN_RACK)
INDEXED["spec"] |= {"completionMode": "Indexed", "completions": 5}
THINGS = {
    "job": INDEXED,
    "stateful_set": stateful_set("ss", 3, IN_RACK, HALF),
    "job_set": job_set("js", IN_RACK, HALF, driver=IN_RACK, jobs=2, pods=2),
    "leader_worker_set": leader_worker_set("lws", IN_RACK, HALF, groups=2, size=3),
    "two_templates": leader_worker_set("lwt", IN_RACK, HALF, groups=2, size=3, leader=IN_RACK),
}


@pytest.fixture
def corral(plane: ControlPlane, cluster: Cluster, tmp_path: Path) -> Iterator[CorralProcess]:
    """It is ready once it knows the nodes: three racks of three."""
    plane.nodes(grid(racks=3, nodes=3, gpus=8))
    with scheduled(plane, tmp_path) as corral:
        yield corral
        assert corral.bugs() == {}


@pytest.mark.parametrize("name", THINGS)
@pytest.mark.usefixtures("job_sets")
def test_pods_get_the_nodes_that_were_named(
    cluster: Cluster, corral: CorralProcess, tmp_path: Path, name: str
) -> None:
    gangs = simulated(corral, tmp_path, THINGS[name])
    wanted = places(gangs)
    assert cluster.list("Pod", "default") == []
    cluster.create(THINGS[name])
    cluster.wait(lambda: len(cluster.bound()) == len(wanted), START_SECONDS, "all pods are bound")
    found = bound_as(cluster, wanted)
    assert found.keys() == wanted.keys()
    assert by_gang(gangs, found) == by_gang(gangs, wanted)


def test_a_gang_that_does_not_fit_is_told_the_sentence_of_its_condition(
    cluster: Cluster, corral: CorralProcess, tmp_path: Path
) -> None:
    large = job("large", pods=5, requests={GPU: "8"}, annotations=IN_RACK)
    (said,) = simulated(corral, tmp_path, large)
    assert said["verdict"] == "DoesNotFit"
    cluster.create(large)

    def conditions() -> list[str]:
        pods = cluster.list("Pod", "default")
        every = (each for pod in pods for each in pod["status"].get("conditions", ()))
        return [each.get("message", "") for each in every]

    cluster.wait(
        lambda: any(said["message"] in each for each in conditions()), START_SECONDS, "the sentence"
    )


def test_a_training_job_gets_the_nodes_that_were_named(
    plane: ControlPlane, cluster: Cluster, tmp_path: Path
) -> None:
    kinds = (*kubeflow.KINDS, POD_GROUP)
    folder = tmp_path / "operator"
    folder.mkdir()
    plane.nodes(grid(racks=3, nodes=3, gpus=8))
    with (
        served(cluster, kinds),
        kubeflow.training_operator(plane, folder),
        scheduled(plane, tmp_path) as corral,
    ):
        types = {"Master": (IN_RACK, 1), "Worker": (IN_RACK, 3)}
        thing = training_job("PyTorchJob", "pytorchReplicaSpecs", "pt", types)
        for part in thing["spec"]["pytorchReplicaSpecs"].values():
            container = part["template"]["spec"]["containers"][0]
            container |= {"name": "pytorch", "resources": {"limits": {GPU: 4}}}
        wanted = places(simulated(corral, tmp_path, thing))
        cluster.create(thing)
        cluster.wait(lambda: len(cluster.bound()) == 4, START_SECONDS, "all pods are bound")
        # Its operator makes the types in any order: the first of each have the same rank.
        assert sorted(cluster.bound().values()) == sorted(wanted.values())
        assert cluster.bound().keys() == wanted.keys()


def test_a_pod_clique_set_gets_the_nodes_that_were_named(
    plane: ControlPlane, cluster: Cluster, tmp_path: Path
) -> None:
    """Grove's operator names pods at random: of each clique they are on the same nodes."""
    folder = tmp_path / "operator"
    folder.mkdir()
    cliques = [grove.clique("router", 1, gpus=2), grove.clique("pl", 1), grove.clique("pw", 2)]
    groups = [grove.scaling_group("sg", "pl", "pw", replicas=2, least=2, pack="rack")]
    thing = grove.pod_clique_set("g", *cliques, groups=groups, pack="block")
    with grove.grove_operator(plane, folder, grove_cases.LEVELS):
        plane.nodes(grove_cases.nodes())
        with scheduled(plane, tmp_path, grove.SCHEDULER, levels=()) as corral, kubelets(cluster):
            cluster.wait(
                lambda: simulated(corral, tmp_path, thing)[0]["verdict"] == "Fits",
                START_SECONDS,
                "the operator's topology is read",
            )
            wanted = places(simulated(corral, tmp_path, thing))
            cluster.create(thing)
            cluster.wait(lambda: len(cluster.bound()) == 7, START_SECONDS, "all pods are bound")
            assert _by_clique(cluster.bound()) == _by_clique(wanted)
            grove.clear(cluster)


def _by_clique(nodes: dict[str, str]) -> list[tuple[str, str]]:
    return sorted((name.rpartition("-")[0], node) for name, node in nodes.items())


# The last one: from here on the cluster has the kinds of Volcano.
def test_a_vcjob_gets_the_nodes_that_were_named(
    cluster: Cluster, volcano_corral: CorralProcess, tmp_path: Path
) -> None:
    policy = partition_policy(2, 2, min_partitions=2, topology=network_topology(1))
    worker = task("worker", 4, min_available=4, requests={GPU: 8}, partitionPolicy=policy)
    thing = vcjob("train", task("master", 1, requests={GPU: 4}), worker)
    wanted = places(simulated(volcano_corral, tmp_path, thing))
    assert len(wanted) == 5
    cluster.create(thing)
    cluster.wait(lambda: len(cluster.bound()) == 5, START_SECONDS, "all pods are bound")
    assert cluster.bound() == wanted
