"""Karpenter itself makes the nodes: what it takes for demand."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.cluster import GPU, STRATEGIC, Cluster, Object, Objects, pod
from tests.controlplane.built import skip_unless_built
from tests.controlplane.karpenter import GPUS, clear, create_pool, karpenter
from tests.controlplane.plane import ControlPlane
from tests.controlplane.process import Process
from tests.workloads import GATE

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

ORDER_SECONDS = 30.0  # from a pod's condition to the NodeClaim; it batches for one second


@pytest.fixture(scope="module")
def module_karpenter(
    plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Process]:
    skip_unless_built("karpenter")
    with karpenter(plane, tmp_path_factory.mktemp("karpenter")) as process:
        yield process


@pytest.fixture
def pools(cluster: Cluster, module_karpenter: Process) -> Iterator[Cluster]:
    """The empty cluster beside Karpenter, which has no NodePool; afterwards the same."""
    yield cluster
    module_karpenter.check()
    clear(cluster)


def whole_node(name: str, **fields: object) -> Object:
    """A pod that has a node to itself; here is no scheduler for it."""
    return pod(name, requests={GPU: GPUS}, **fields)


def mark(cluster: Cluster, *names: str) -> None:
    """Says of these pods what a scheduler says that has found no node."""
    for name in names:
        condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
        status = {"status": {"conditions": [condition]}}
        cluster.patch("Pod", f"{name}/status", status, content_type=STRATEGIC)


def claims(cluster: Cluster) -> set[str]:
    """The nodes that Karpenter has ordered and not given back."""
    return {each["metadata"]["name"] for each in cluster.list("NodeClaim")}


def wait_for_claims(cluster: Cluster, nodes: int) -> None:
    cluster.wait(lambda: len(claims(cluster)) >= nodes, ORDER_SECONDS, f"{nodes} nodes ordered")
    assert len(claims(cluster)) == nodes


def test_a_gated_pod_makes_no_node_until_its_condition_says_unschedulable(pools: Cluster) -> None:
    create_pool(pools)
    pools.create_all(whole_node(f"gated-{number}", gates=[GATE]) for number in range(3))
    # Karpenter has looked at all pods when it orders a node for the last of them.
    pools.create(whole_node("plain"))
    mark(pools, "plain")
    wait_for_claims(pools, 1)
    assert {reason_of(pools, f"gated-{number}") for number in range(3)} == {"SchedulingGated"}

    mark(pools, "gated-0", "gated-1", "gated-2")
    wait_for_claims(pools, 4)


def test_a_pod_narrowed_by_node_names_is_refused(pools: Cluster) -> None:
    create_pool(pools)
    by_name = {"key": "metadata.name", "operator": "In", "values": ["b0-r0-n0"]}
    terms = {"nodeSelectorTerms": [{"matchFields": [by_name]}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
    narrowed = pools.create(whole_node("narrowed", affinity=affinity))
    pools.create(whole_node("plain"))
    mark(pools, "narrowed", "plain")
    wait_for_claims(pools, 1)
    pools.wait(lambda: refusals(pools, narrowed), ORDER_SECONDS, "the refusal")


def refusals(cluster: Cluster, thing: Object) -> Objects:
    """The events by which Karpenter says that it does not understand the pod."""
    return [each for each in cluster.events(thing) if "matchFields" in each["message"]]


def reason_of(cluster: Cluster, name: str) -> str:
    """Why the pod is not scheduled, as its status says."""
    found = cluster.get("Pod", name)
    assert found is not None
    (reason,) = (
        condition["reason"]
        for condition in found["status"]["conditions"]
        if condition["type"] == "PodScheduled"
    )
    return str(reason)
