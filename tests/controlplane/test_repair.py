"""Nodes die under a running gang: every replacement starts in its domain, or one verdict says why.

Nodes are API objects, with no kubelet behind them (a simulated one would add nothing: all that
Corral and kube-scheduler see of a dead node is written by `node_faults.py`); pods are created again
by the test, as their controller would, and once by the Job controller itself.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial

import pytest

from tests.cluster import BLOCK, GPU, RACK, Cluster, Object, Objects, grid, job, pod
from tests.controlplane import kubelet, node_faults
from tests.controlplane.plane import ControlPlane
from tests.controlplane.seen import START_SECONDS, unschedulable
from tests.corral_process import CorralProcess
from tests.workloads import asking, behind_gate, member, members

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

IN_RACK = asking(required=RACK)
REPAIR_SECONDS = 10.0  # from a pod's re-creation to its binding
PODS, NODES_PER_RACK = 12, 20
MOST_KILLED = 8

Gates = Callable[[Object], Object]
GATED = pytest.param(behind_gate, id="gated")
BOTH = pytest.mark.parametrize("gates", [pytest.param(lambda one: one, id="gateless"), GATED])
OFTEN_GATED = pytest.mark.parametrize(
    "gates", [pytest.param(lambda one: one, id="gateless", marks=pytest.mark.thorough), GATED]
)


@dataclass(frozen=True, slots=True)
class Death:
    """How nodes die, how their pods end, and whether the next pods may have the same names."""

    strike: Callable[[Cluster, str], None]
    end_pods: Callable[[Cluster, list[str]], None]
    frees_names: bool = True


@pytest.fixture(autouse=True)
def no_pod_stays(cluster: Cluster) -> Iterator[None]:
    """What no kubelet ends is ended after the test."""
    yield
    kubelet.end_deleted_pods(cluster)


def taint_for_good(cluster: Cluster, node: str) -> None:
    node_faults.taint(cluster, node, node_faults.MAINTENANCE, "NoExecute")


def delete_node(cluster: Cluster, node: str) -> None:
    cluster.delete("Node", node)


DEATHS = {
    "evicted": Death(node_faults.lose_contact, node_faults.delete_pods),
    "failed": Death(node_faults.lose_contact, node_faults.fail_pods, frees_names=False),
    "terminating": Death(node_faults.lose_contact, node_faults.begin_deletion, frees_names=False),
    "deleted": Death(delete_node, node_faults.delete_pods),
    "drained": Death(node_faults.cordon, node_faults.delete_pods),
    "tainted": Death(taint_for_good, node_faults.delete_pods),
}


class Gang:
    """A gang of the test's own: who runs where, and the pods that come for those that end."""

    def __init__(
        self, cluster: Cluster, gates: Gates, pods: int, annotations: Mapping[str, str] = IN_RACK
    ) -> None:
        self._cluster, self._gates = cluster, gates
        self._pods, self._annotations = pods, annotations
        self._last = pods - 1
        self._ended: set[str] = set()
        self.create(range(pods))
        cluster.wait(lambda: len(self.runs()) == pods, START_SECONDS, "the gang's start")

    def create(self, numbers: range | list[int]) -> Objects:
        fields = {"numbers": numbers, "annotations": self._annotations}
        pods = members("gang", self._pods, **fields)  # type: ignore[arg-type]
        return self._cluster.create_all(self._gates(one) for one in pods)

    def runs(self) -> dict[str, str]:
        """Pod name -> node of the members that run."""
        return {
            name: node
            for name, node in self._cluster.bound().items()
            if name.startswith("gang-") and name not in self._ended
        }

    def strike(self, nodes: list[str], death: Death) -> list[int]:
        """Kills nodes and ends their pods; the numbers of the pods to come instead."""
        lost = [name for name, node in self.runs().items() if node in nodes]
        for node in nodes:
            death.strike(self._cluster, node)
        death.end_pods(self._cluster, lost)
        if death.frees_names:
            return [int(name.partition("-")[2]) for name in lost]
        self._ended.update(lost)
        first, self._last = self._last + 1, self._last + len(lost)
        return list(range(first, self._last + 1))

    def repair(self, numbers: list[int]) -> dict[str, str]:
        """Creates the pods to come and returns where all run, once they do. Raises: TimeoutError
        unless each is bound within REPAIR_SECONDS of its creation.
        """
        began = time.monotonic()
        self.create(numbers)
        left = REPAIR_SECONDS - (time.monotonic() - began)  # counted from the first creation
        wanted = {f"gang-{number}" for number in numbers}
        self._cluster.wait(lambda: wanted <= self.runs().keys(), left, f"bindings of {wanted}")
        return self.runs()


def racks(nodes: Mapping[str, str]) -> set[str]:
    return {node.rpartition("-")[0] for node in nodes.values()}


@OFTEN_GATED
@pytest.mark.parametrize("death", DEATHS.values(), ids=DEATHS)
@pytest.mark.timeout(240)  # eight rounds: 12 s on an idle machine
def test_up_to_eight_nodes_die_at_once_and_each_replacement_starts_in_the_rack(
    plane: ControlPlane, cluster: Cluster, corral: CorralProcess, death: Death, gates: Gates
) -> None:
    nodes = {one["metadata"]["name"]: one for one in grid(racks=2, nodes=NODES_PER_RACK, gpus=8)}
    plane.nodes(nodes.values())
    gang = Gang(cluster, gates, PODS)
    (rack,) = racks(gang.runs())
    for killed in range(1, MOST_KILLED + 1):
        before = gang.runs()
        dead = sorted(before.values())[:killed]
        numbers = gang.strike(dead, death)
        after = gang.repair(numbers)

        assert len(numbers) == killed
        assert len(after) == PODS
        assert racks(after) == {rack}
        assert not set(after.values()) & set(dead)
        survivors = {name: node for name, node in before.items() if node not in dead}
        assert survivors.items() <= after.items()
        for node in dead:
            if death.strike is delete_node:
                cluster.create(nodes[node])
            else:
                node_faults.find_again(cluster, node)
        kubelet.end_deleted_pods(cluster)


@BOTH
def test_a_gang_that_loses_all_its_nodes_starts_again_as_a_whole(
    plane: ControlPlane, cluster: Cluster, corral: CorralProcess, gates: Gates
) -> None:
    plane.nodes(grid(racks=2, nodes=8, gpus=8))
    gang = Gang(cluster, gates, 8)
    (rack,) = racks(gang.runs())
    numbers = gang.strike(sorted(gang.runs().values()), DEATHS["evicted"])
    after = gang.repair(numbers)

    assert len(after) == 8
    assert racks(after) == {"b0-r0", "b0-r1"} - {rack}


@BOTH
@pytest.mark.parametrize("killed", [1, 2, 3])
def test_where_the_rack_is_full_one_verdict_says_so_until_the_nodes_are_back(
    plane: ControlPlane, cluster: Cluster, corral: CorralProcess, killed: int, gates: Gates
) -> None:
    plane.nodes(grid(racks=2, nodes=4, gpus=8))
    gang = Gang(cluster, gates, 4)
    (rack,) = racks(gang.runs())
    dead = sorted(gang.runs().values())[:killed]
    gang.create(gang.strike(dead, DEATHS["evicted"]))
    told = f"runs without {killed} of its pods"
    cluster.wait(lambda: verdicts(cluster, told), REPAIR_SECONDS, f"the verdict: {told}")

    for node in dead:
        node_faults.find_again(cluster, node)
    cluster.wait(lambda: len(gang.runs()) == 4, REPAIR_SECONDS, "the gang whole again")
    assert len(verdicts(cluster)) == 1
    assert racks(gang.runs()) == {rack}


@BOTH
def test_a_node_comes_back_for_one_of_two_replacements(
    plane: ControlPlane, cluster: Cluster, corral: CorralProcess, gates: Gates
) -> None:
    plane.nodes(grid(racks=1, nodes=4, gpus=8))
    gang = Gang(cluster, gates, 4)
    dead = sorted(gang.runs().values())[:2]
    gang.create(gang.strike(dead, DEATHS["evicted"]))
    cluster.wait(lambda: verdicts(cluster, "runs without"), REPAIR_SECONDS, "the verdict")

    node_faults.find_again(cluster, dead[0])
    cluster.wait(lambda: len(gang.runs()) == 3, REPAIR_SECONDS, "one replacement's binding")
    assert dead[0] in gang.runs().values()


@BOTH
def test_nodes_that_die_while_corral_is_down_are_replaced_once_it_is_back(
    plane: ControlPlane, cluster: Cluster, corral: CorralProcess, gates: Gates
) -> None:
    plane.nodes(grid(racks=2, nodes=6, gpus=8))
    gang = Gang(cluster, gates, 4)
    (rack,) = racks(gang.runs())
    corral.kill()
    numbers = gang.strike(sorted(gang.runs().values())[:2], DEATHS["evicted"])
    corral.start()
    after = gang.repair(numbers)
    assert len(after) == 4
    assert racks(after) == {rack}


@BOTH
def test_a_pod_deleted_on_a_sound_node_gets_its_node_back_before_anybody_else(
    plane: ControlPlane, cluster: Cluster, corral: CorralProcess, gates: Gates
) -> None:
    plane.nodes(grid(racks=1, nodes=4, gpus=8))
    gang = Gang(cluster, gates, 4)
    before = gang.runs()
    cluster.delete("Pod", "gang-2")
    cluster.create(pod("plain", requests={GPU: 8}))
    told = cluster.wait(
        lambda: unschedulable(cluster).get("plain", ""), START_SECONDS, "its verdict"
    )
    assert "held for gangs" in told
    assert gang.repair([2]) == before


def test_another_node_is_held_before_the_replacement_exists(
    plane: ControlPlane, cluster: Cluster, corral: CorralProcess
) -> None:
    plane.nodes(grid(racks=1, nodes=5, gpus=8))
    gang = Gang(cluster, behind_gate, 4)
    dead = gang.runs()["gang-1"]
    (spare,) = {f"b0-r0-n{at}" for at in range(5)} - set(gang.runs().values())
    numbers = gang.strike([dead], DEATHS["terminating"])
    wait_until_noticed(cluster, corral)
    cluster.create(pod("plain", requests={GPU: 8}))
    told = cluster.wait(
        lambda: unschedulable(cluster).get("plain", ""), START_SECONDS, "its verdict"
    )
    assert "held for gangs" in told

    (number,) = numbers
    assert gang.repair(numbers)[f"gang-{number}"] == spare


@BOTH
def test_a_replacement_joins_the_rack_of_its_slice(
    plane: ControlPlane, cluster: Cluster, corral: CorralProcess, gates: Gates
) -> None:
    plane.nodes(grid(racks=2, nodes=4, gpus=8))
    in_slices = asking(required=BLOCK) | {
        "kueue.x-k8s.io/podset-slice-required-topology": RACK,
        "kueue.x-k8s.io/podset-slice-size": "3",
    }
    gang = Gang(cluster, gates, 6, in_slices)
    before = gang.runs()
    assert racks(before) == {"b0-r0", "b0-r1"}
    # One of each slice, at once: with both lost the two may not swap slices' racks unevenly.
    dead = [
        min(node for node in before.values() if node.startswith(rack)) for rack in racks(before)
    ]
    after = gang.repair(gang.strike(dead, DEATHS["evicted"]))
    per_rack = sorted(node.rpartition("-")[0] for node in after.values())
    assert per_rack == ["b0-r0"] * 3 + ["b0-r1"] * 3


@OFTEN_GATED
@pytest.mark.timeout(180)  # the Job controller waits ten seconds before it replaces a pod
def test_the_pods_a_job_makes_for_two_dead_nodes_start_in_its_rack(
    plane: ControlPlane, cluster: Cluster, corral: CorralProcess, gates: Gates
) -> None:
    plane.nodes(grid(racks=2, nodes=6, gpus=8))
    thing = job("train", pods=4, requests={GPU: 8}, annotations=IN_RACK)
    thing["spec"]["backoffLimit"] = 100
    cluster.create(gates(thing))
    cluster.wait(lambda: len(cluster.bound()) == 4, START_SECONDS, "the Job's start")
    (rack,) = racks(cluster.bound())
    first = {uid_of(one) for one in cluster.list("Pod", "default")}
    dead = sorted(cluster.bound().values())[:2]
    lost = [name for name, node in cluster.bound().items() if node in dead]
    for node in dead:
        node_faults.lose_contact(cluster, node)
    node_faults.delete_pods(cluster, lost)
    cluster.wait(partial(has_successors, cluster, first, 2), 60, "two pods more")
    cluster.wait(lambda: len(live(cluster)) == 4, REPAIR_SECONDS, "the Job whole again")
    assert racks(live(cluster)) == {rack}
    assert not set(live(cluster).values()) & set(dead)


def wait_until_noticed(cluster: Cluster, corral: CorralProcess) -> None:
    """Returns when Corral has seen what happened to pods so far, and a tick has followed."""
    cluster.create(member("fence", 0, 1, requests={"cpu": "1"}))
    cluster.wait(lambda: "fence-0" in cluster.bound(), START_SECONDS, "the pod that came after")
    lag = corral.metric("corral_loop_lag_seconds")  # measured anew by every tick
    cluster.wait(lambda: corral.metric("corral_loop_lag_seconds") != lag, START_SECONDS, "a tick")


def uid_of(thing: Object) -> str:
    return str(thing["metadata"]["uid"])


def has_successors(cluster: Cluster, known: set[str], pods: int) -> bool:
    """Whether that many pods exist that were not known."""
    return len({uid_of(one) for one in cluster.list("Pod", "default")} - known) >= pods


def live(cluster: Cluster) -> dict[str, str]:
    """Pod name -> node of the pods that run and are not being deleted."""
    return {
        one["metadata"]["name"]: one["spec"]["nodeName"]
        for one in cluster.list("Pod", "default")
        if one["spec"].get("nodeName") and "deletionTimestamp" not in one["metadata"]
    }


def verdicts(cluster: Cluster, text: str = "") -> list[str]:
    """What owners were told of a gang without a place, where it says this."""
    return [
        event["message"]
        for event in cluster.list("Event", "default")
        if event["reason"] == "GangNotPlaced" and text in event["message"]
    ]
