"""What becomes of gated gangs where a simulated autoscaler makes nodes: numbered scenarios.

For any API server with a scheduler that asks a Corral with these SETTINGS; each play is given an
empty cluster. Raises: AssertionError, TimeoutError.
"""

from __future__ import annotations

from typing import Any

from tests.autoscaling.cluster_autoscaler.loop import ClusterAutoscaler, Settings
from tests.autoscaling.machines.groups import NodeGroup
from tests.autoscaling.on_cluster import OnCluster, autoscaling
from tests.autoscaling.plays import MACHINE, SECONDS, SPEED, WHOLE, Play
from tests.autoscaling.reading.pods import condition_of
from tests.cluster import RACK, Cluster, Object, node, pod
from tests.workloads import asking, behind_gate, members

SETTINGS: dict[str, Any] = {
    "needs_nodes_seconds": 1.0,
    "needs_nodes_stall_seconds": 4.0,
    "needs_nodes_hold_seconds": 6.0,
}
QUICK = Settings(unneeded=60.0, delay_after_add=0.0)
FOREIGN = "example.org/quota"
IN_RACK = asking(required=RACK)


def rack(name: str, most: int, **fields: Any) -> NodeGroup:
    """A group that is one rack, whose nodes get their labels and GPUs late."""
    labels = {RACK: name}
    late = {"ready_seconds": 20.0, "label_seconds": 40.0, "resource_seconds": 60.0}
    both = {"late_labels": (labels,), "tags": labels, **late}
    return NodeGroup(name, most, **{"allocatable": MACHINE, **both, **fields})


def gang(cluster: Cluster, name: str, pods: int, *gates: str) -> None:
    """A gang whose pods take a whole node each, all in one rack."""
    made = members(name, pods, annotations=IN_RACK, requests=WHOLE)
    cluster.create_all(behind_gate(one, *gates) for one in made)


def bound(cluster: Cluster, name: str) -> dict[str, str]:
    """The nodes of its pods, by pod."""
    pairs = cluster.bound().items()
    return {pod_: node_ for pod_, node_ in pairs if pod_.startswith(f"{name}-")}


def marked(cluster: Cluster, name: str = "") -> list[str]:
    """Its pods that say that no node takes them."""
    found = cluster.list("Pod", "default")
    conditions = {each["metadata"]["name"]: condition_of(each, "PodScheduled") for each in found}
    return sorted(
        pod_
        for pod_, each in conditions.items()
        if pod_.startswith(name) and each and each.get("reason") == "Unschedulable"
    )


def pass_by(cluster: Cluster, driver: OnCluster, seconds: float) -> None:
    """Let so many of the autoscaler's seconds pass."""
    end = driver.now + seconds
    cluster.wait(lambda: driver.now > end, SECONDS, f"{seconds:g} s of the autoscaler's")


def told(cluster: Cluster, reason: str) -> list[Object]:
    """The events of this reason."""
    return [each for each in cluster.list("Event", "default") if each["reason"] == reason]


def play_1_a_gang_of_an_empty_cluster_gets_its_rack(cluster: Cluster) -> None:
    with autoscaling(cluster, ClusterAutoscaler([rack("r0", 12)], QUICK), speed=SPEED) as driver:
        gang(cluster, "g", 8)
        cluster.wait(lambda: len(bound(cluster, "g")) == 8, SECONDS, "the gang's start")
        pass_by(cluster, driver, 120.0)
        assert len(set(bound(cluster, "g").values())) == 8
        assert len(driver.autoscaler.cloud.machines) == 8
        cluster.clear("Pod")
        cluster.wait(lambda: not cluster.list("Node"), SECONDS, "no node left")


def play_3_pods_that_fit_in_pieces_make_no_node_and_are_told(cluster: Cluster) -> None:
    for name in ("r8", "r9"):
        cluster.create(node(f"{name}-n", labels={RACK: name}, gpus=8))
    with autoscaling(cluster, ClusterAutoscaler([rack("r0", 8)], QUICK), speed=SPEED) as driver:
        gang(cluster, "g", 2)
        cluster.wait(lambda: told(cluster, "NoNodesCome"), SECONDS, "the event")
        pass_by(cluster, driver, 200.0)
        assert len(marked(cluster)) == 2
        assert driver.autoscaler.cloud.machines == {}
        assert len(told(cluster, "NoNodesCome")) == 1


def play_4_a_gang_that_gathers_makes_no_node(cluster: Cluster) -> None:
    with autoscaling(cluster, ClusterAutoscaler([rack("r0", 8)], QUICK), speed=SPEED) as driver:
        made = members("g", 8, annotations=IN_RACK, requests=WHOLE)
        cluster.create_all(map(behind_gate, made[:7]))
        pass_by(cluster, driver, 200.0)
        assert (marked(cluster), driver.autoscaler.cloud.machines) == ([], {})
        cluster.create(behind_gate(made[7]))
        cluster.wait(lambda: len(bound(cluster, "g")) == 8, SECONDS, "the gang's start")


def play_5_two_gangs_get_a_rack_each(cluster: Cluster) -> None:
    groups = [rack("r0", 4), rack("r1", 4, register_seconds=120.0)]
    with autoscaling(cluster, ClusterAutoscaler(groups, QUICK), speed=SPEED):
        gang(cluster, "a", 4)
        cluster.wait(lambda: len(marked(cluster, "a")) == 4, SECONDS, "four marks")
        gang(cluster, "b", 4)
        cluster.wait(lambda: len(bound(cluster, "b")) == 4, SECONDS, "the second gang's start")
        assert len(bound(cluster, "a")) == 4
        of = {name: {each[:2] for each in bound(cluster, name).values()} for name in ("a", "b")}
        assert sorted(map(sorted, of.values())) == [["r0"], ["r1"]]


def play_6_ordinary_pods_take_no_node_of_the_rack_that_comes(cluster: Cluster) -> None:
    with autoscaling(cluster, ClusterAutoscaler([rack("r0", 4)], QUICK), speed=SPEED):
        gang(cluster, "g", 4)
        cluster.wait(lambda: cluster.list("Node"), SECONDS, "a first node")
        cluster.create_all(pod(f"flood-{number}", requests=WHOLE) for number in range(4))
        cluster.wait(lambda: len(bound(cluster, "g")) == 4, SECONDS, "the gang's start")
        assert bound(cluster, "flood") == {}


def play_7_too_few_nodes_start_nothing_and_are_released(cluster: Cluster) -> None:
    groups = [rack("r0", 4, stock=3)]
    with autoscaling(cluster, ClusterAutoscaler(groups, QUICK), speed=SPEED) as driver:
        gang(cluster, "g", 4)
        cluster.wait(lambda: len(cluster.list("Node")) == 3, SECONDS, "three nodes")
        gang(cluster, "small", 2)
        cluster.wait(lambda: told(cluster, "NewNodesReleased"), SECONDS, "their release")
        cluster.wait(lambda: len(bound(cluster, "small")) == 2, SECONDS, "the small gang's start")
        assert bound(cluster, "g") == {}
        assert len(driver.autoscaler.cloud.machines) <= 4


def play_16_a_gang_behind_a_foreign_gate_makes_no_node(cluster: Cluster) -> None:
    with autoscaling(cluster, ClusterAutoscaler([rack("r0", 8)], QUICK), speed=SPEED) as driver:
        gang(cluster, "g", 2, FOREIGN)
        pass_by(cluster, driver, 200.0)
        assert (marked(cluster), driver.autoscaler.cloud.machines) == ([], {})


def play_20_nodes_of_wrong_racks_are_no_more_than_the_group_has(cluster: Cluster) -> None:
    spread = tuple({RACK: f"r{number}"} for number in range(4))
    group = NodeGroup("any", 4, MACHINE, late_labels=spread, label_seconds=20.0)
    with autoscaling(cluster, ClusterAutoscaler([group], QUICK), speed=SPEED) as driver:
        gang(cluster, "g", 3)
        cluster.wait(lambda: told(cluster, "NoNodesCome"), SECONDS, "the event")
        pass_by(cluster, driver, 400.0)
        assert bound(cluster, "g") == {}
        assert len(driver.autoscaler.cloud.machines) <= 4
        (said,) = told(cluster, "NoNodesCome")
        assert RACK in said["message"]


GANG_PLAYS: tuple[Play, ...] = (
    play_1_a_gang_of_an_empty_cluster_gets_its_rack,
    play_3_pods_that_fit_in_pieces_make_no_node_and_are_told,
    play_4_a_gang_that_gathers_makes_no_node,
    play_5_two_gangs_get_a_rack_each,
    play_6_ordinary_pods_take_no_node_of_the_rack_that_comes,
    play_7_too_few_nodes_start_nothing_and_are_released,
    play_16_a_gang_behind_a_foreign_gate_makes_no_node,
    play_20_nodes_of_wrong_racks_are_no_more_than_the_group_has,
)
