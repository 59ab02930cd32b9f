"""What a simulated autoscaler has to bring about on any API server that has a scheduler.

Each play is given an empty cluster and leaves it empty of pods. Raises: AssertionError,
TimeoutError.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.autoscaling.cluster_autoscaler.loop import ClusterAutoscaler, Settings
from tests.autoscaling.karpenter import DISRUPTED, Karpenter
from tests.autoscaling.machines.groups import NodeGroup
from tests.autoscaling.objects import CONSUME, pod_template, provisioning_request
from tests.autoscaling.on_cluster import autoscaling
from tests.autoscaling.reading.pods import condition_of
from tests.cluster import GPU, RACK, STRATEGIC, Cluster, Object, pod

Play = Callable[[Cluster], None]

SECONDS = 40.0  # of waiting for anything; a busy machine is given time
SPEED = 40.0
MACHINE = {"cpu": "64", "memory": "512Gi", "pods": "110", GPU: "8"}
WHOLE = {GPU: 8}
QUICK = Settings(unneeded=40.0, delay_after_add=0.0)
GATE = "example.com/gate"


def rack(**fields: Any) -> NodeGroup:
    """A group that is one rack, whose nodes get their labels and GPUs late."""
    late = {"late_labels": ({RACK: "r0"},), "tags": {RACK: "r0"}}
    delays = {"ready_seconds": 20.0, "label_seconds": 40.0, "resource_seconds": 60.0}
    return NodeGroup("r0", **{"max": 8, "allocatable": MACHINE, **late, **delays, **fields})


def plain_pods_make_nodes_from_zero_and_these_go_again(cluster: Cluster) -> None:
    with autoscaling(cluster, ClusterAutoscaler([rack()], QUICK), speed=SPEED) as driver:
        made = cluster.create_all(pod(f"p{number}", requests=WHOLE) for number in range(3))
        cluster.wait(lambda: len(cluster.bound()) == 3, SECONDS, "three pods bound")
        nodes = cluster.list("Node")
        assert sorted(each["metadata"]["name"] for each in nodes) == ["r0-0", "r0-1", "r0-2"]
        assert {each["metadata"]["labels"][RACK] for each in nodes} == {"r0"}
        reasons = {each["reason"] for each in cluster.events(made[0])}
        assert "TriggeredScaleUp" in reasons
        cluster.clear("Pod")
        cluster.wait(lambda: not cluster.list("Node"), SECONDS, "no node left")
        assert driver.autoscaler.cloud.machines == {}


def marked_pods_make_nodes_behind_their_gate(cluster: Cluster) -> None:
    with autoscaling(cluster, ClusterAutoscaler([rack()], QUICK), speed=SPEED) as driver:
        cluster.create_all(pod(f"p{n}", requests=WHOLE, gates=[GATE]) for n in range(2))
        asleep = driver.now + 60.0
        cluster.wait(lambda: driver.now > asleep, SECONDS, "a minute of the autoscaler's")
        assert cluster.list("Node") == []
        for number in range(2):
            said(cluster, f"p{number}", "Unschedulable")
        cluster.wait(lambda: len(ready(cluster)) == 2, SECONDS, "two nodes ready")
        for number in range(2):
            said(cluster, f"p{number}", "SchedulingGated")
        cluster.wait(lambda: not cluster.list("Node"), SECONDS, "no node left")
        assert cluster.bound() == {}


def a_request_is_accepted_provisioned_and_its_booking_ends(cluster: Cluster) -> None:
    with autoscaling(cluster, ClusterAutoscaler([rack()], QUICK), speed=2 * SPEED):
        cluster.create(pod_template("shape", requests=WHOLE))
        cluster.create(provisioning_request("r", {"shape": 2}))
        answer = cluster.wait(lambda: of_request(cluster, "Provisioned"), SECONDS, "an answer")
        assert answer is not None
        assert (answer["status"], answer["reason"]) == ("True", "CapacityIsProvisioned")
        consuming = {CONSUME: "r"}
        cluster.create_all(pod(f"p{n}", requests=WHOLE, annotations=consuming) for n in range(2))
        cluster.wait(lambda: len(cluster.bound()) == 2, SECONDS, "two pods bound")
        cluster.wait(lambda: of_request(cluster, "BookingExpired"), SECONDS, "the booking's end")
        assert len(cluster.list("Node")) == 2
        cluster.clear("Pod")
        cluster.wait(lambda: not cluster.list("Node"), SECONDS, "no node left")


def karpenter_disrupts_a_node_under_a_narrowed_pod(cluster: Cluster) -> None:
    pool = NodeGroup("p", 4, MACHINE, register_seconds=5.0, ready_seconds=5.0)
    with autoscaling(cluster, Karpenter([pool], consolidate_after=20.0), speed=SPEED):
        cluster.create_all(pod(f"whole-{number}", requests=WHOLE) for number in range(2))
        cluster.wait(lambda: len(cluster.bound()) == 2, SECONDS, "two pods bound")
        for number in range(2):
            cluster.create(pod(f"small-{number}", gates=[GATE], **on(f"p-{number}")))
        for number in range(2):
            cluster.delete("Pod", f"whole-{number}")
            change = {"spec": {"schedulingGates": [{"$patch": "delete", "name": GATE}]}}
            cluster.patch("Pod", f"small-{number}", change, content_type=STRATEGIC)
        cluster.wait(lambda: {"small-0", "small-1"} <= cluster.bound().keys(), SECONDS, "both")
        cluster.wait(lambda: len(cluster.list("Node")) == 1, SECONDS, "one node disrupted")
        assert len(cluster.bound()) == 1
        (left,) = cluster.list("Node")
        keys = [each["key"] for each in left["spec"].get("taints") or []]
        assert DISRUPTED["key"] not in keys
    cluster.clear("Node")


def said(cluster: Cluster, name: str, reason: str) -> None:
    """Somebody writes why the pod is not scheduled."""
    condition = {"type": "PodScheduled", "status": "False", "reason": reason}
    change = {"status": {"conditions": [condition]}}
    cluster.patch("Pod", f"{name}/status", change, content_type=STRATEGIC)


def ready(cluster: Cluster) -> list[str]:
    """The nodes that are ready."""
    nodes = cluster.list("Node")
    conditions = {each["metadata"]["name"]: condition_of(each, "Ready") for each in nodes}
    return [name for name, each in conditions.items() if each and each["status"] == "True"]


def of_request(cluster: Cluster, type_: str) -> Object | None:
    """A condition of the request "r"."""
    found = cluster.get("ProvisioningRequest", "r")
    return condition_of(found, type_) if found else None


def on(node: str) -> Object:
    """Fields of a spec that is narrowed to a node."""
    fields = [{"key": "metadata.name", "operator": "In", "values": [node]}]
    terms = {"nodeSelectorTerms": [{"matchFields": fields}]}
    return {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}}


PLAYS: tuple[Play, ...] = (
    plain_pods_make_nodes_from_zero_and_these_go_again,
    marked_pods_make_nodes_behind_their_gate,
    a_request_is_accepted_provisioned_and_its_booking_ends,
    karpenter_disrupts_a_node_under_a_narrowed_pod,
)


def play(scene: Play, cluster: Cluster) -> None:
    """Plays one, and leaves nothing of it."""
    try:
        scene(cluster)
    finally:
        for kind in ("Pod", "Node", "PodTemplate", "ProvisioningRequest"):
            cluster.clear(kind)
        cluster.delete_all("Event")
