"""Karpenter itself makes the nodes: what it takes for demand, and how gangs get and keep theirs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.cluster import GPU, RACK, STRATEGIC, Cluster, Object, Objects, job, pod
from tests.controlplane.built import skip_unless_built
from tests.controlplane.karpenter import (
    DO_NOT_DISRUPT,
    GPUS,
    clear,
    create_pool,
    is_initialized,
    karpenter,
    kubelets_of_nodes,
    label_nodes,
    machines,
)
from tests.controlplane.kubelet import start_bound_pods
from tests.controlplane.plane import ControlPlane
from tests.controlplane.process import Process
from tests.controlplane.seen import START_SECONDS
from tests.controlplane.webhook import Webhook, installed
from tests.workloads import GATE, asking, gates_of, members

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

IN_RACK = asking(required=RACK)
SAFE_TO_EVICT = "cluster-autoscaler.kubernetes.io/safe-to-evict"

ORDER_SECONDS = 30.0  # from a pod's condition to the NodeClaim; it batches for one second
BOOT_SECONDS = 40.0  # until pods run on nodes that were ordered: a few to order, boot, and start
DISRUPT_SECONDS = 90.0  # Karpenter looks every 10 s, and looks again after 15


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


@pytest.fixture
def webhook(plane: ControlPlane, pools: Cluster, tmp_path: Path) -> Iterator[Webhook]:
    """Corral behind its webhook and a kube-scheduler that asks it."""
    with gating(plane, tmp_path) as webhook:
        yield webhook


@contextmanager
def gating(plane: ControlPlane, folder: Path, **settings: object) -> Iterator[Webhook]:
    """Corral behind its webhook, with further settings, and a kube-scheduler that asks it."""
    with installed(plane, folder, levels=(RACK,), **settings) as webhook:
        plane.start_scheduler(extender=webhook.corral.url)
        yield webhook
        assert webhook.corral.bugs() == {}


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


def test_a_gang_gets_a_rack_of_new_nodes_and_starts_there_whole(
    pools: Cluster, webhook: Webhook
) -> None:
    create_pool(pools, labels={RACK: "r0"})
    gang = pools.create_all(members("gang", 8, annotations=IN_RACK))
    wait_for_claims(pools, 8)
    assert waiting_for_nodes(pools, gang)
    with kubelets_of_nodes(pools):
        pools.wait(lambda: len(pools.bound()) == 8, BOOT_SECONDS, "the gang's start")
    assert set(pools.bound().values()) == names(machines(pools))
    assert_no_node_is_ordered(pools, beside=8)


def test_a_gang_starts_when_the_last_of_its_new_nodes_has_its_level_label(
    pools: Cluster, webhook: Webhook
) -> None:
    create_pool(pools)
    gang = pools.create_all(members("gang", 8, annotations=IN_RACK))
    with kubelets_of_nodes(pools):
        pools.wait(lambda: usable(pools) == 8, BOOT_SECONDS, "8 nodes that pods can use")
        *most, last = machines(pools)
        label_nodes(pools, most, {RACK: "r0"})
        assert waiting_for_nodes(pools, gang)
        label_nodes(pools, [last], {RACK: "r0"})
        pools.wait(lambda: len(pools.bound()) == 8, BOOT_SECONDS, "the gang's start")
    assert set(pools.bound().values()) == names(machines(pools))
    assert_no_node_is_ordered(pools, beside=8)


@pytest.mark.thorough
@pytest.mark.timeout(240)
def test_the_nodes_of_a_gang_that_is_deleted_while_they_boot_go_away(
    pools: Cluster, webhook: Webhook
) -> None:
    create_pool(pools, labels={RACK: "r0"}, disrupt_after="0s")
    pools.create_all(members("gang", 2, annotations=IN_RACK))
    pools.wait(lambda: len(machines(pools)) == 2, ORDER_SECONDS, "2 nodes that boot")
    pools.clear("Pod")
    with kubelets_of_nodes(pools):
        pools.wait(lambda: not claims(pools), DISRUPT_SECONDS, "both nodes given back")
    assert machines(pools) == []


@pytest.mark.timeout(240)
def test_karpenter_moves_an_ordinary_pod_but_not_the_gang_beside_it(
    pools: Cluster, webhook: Webhook
) -> None:
    with half_empty_nodes(pools, pod("plain", requests={GPU: 2})) as train:
        pools.wait(lambda: len(claims(pools)) == 2, DISRUPT_SECONDS, "the third node's end")
        assert pools.get("Pod", "plain") is None
        assert uids(pods_of(pools, "train")) == uids(train)
        assert {annotation(each, DO_NOT_DISRUPT) for each in train} == {"true"}
        assert {annotation(each, SAFE_TO_EVICT) for each in train} == {"false"}


@pytest.mark.thorough
@pytest.mark.timeout(240)
def test_a_gang_of_which_karpenter_has_moved_a_pod_is_whole_again(
    plane: ControlPlane, pools: Cluster, tmp_path: Path
) -> None:
    with gating(plane, tmp_path, protect_running=False), half_empty_nodes(pools) as train:
        pools.wait(lambda: len(claims(pools)) == 1, DISRUPT_SECONDS, "the second node's end")
        pools.wait(lambda: len(bound(pools, "train")) == 2, START_SECONDS, "its repair")
        assert len(uids(pods_of(pools, "train")) & uids(train)) == 1
        assert set(bound(pools, "train").values()) == names(machines(pools))


@contextmanager
def half_empty_nodes(cluster: Cluster, *beside: Object) -> Iterator[Objects]:
    """Nodes in one rack whose running pods would all fit on one of them.

    On two of them is a member each of the Job `train`, whose pods this gives; and `beside` are pods
    with a node each. They need 8 GPUs together, and 3 at most each.
    """
    create_pool(cluster, labels={RACK: "r0"}, disrupt_after="0s")
    nodes = 2 + len(beside)
    fillers = [pod(f"filler-{number}", requests={GPU: 5}) for number in range(nodes)]
    with kubelets_of_nodes(cluster):
        cluster.create_all(fillers)
        cluster.wait(lambda: len(cluster.bound()) == nodes, BOOT_SECONDS, f"{nodes} nodes")
        cluster.create(job("train", pods=2, requests={GPU: 3}, annotations=IN_RACK))
        cluster.wait(lambda: len(bound(cluster, "train")) == 2, START_SECONDS, "the gang's start")
        cluster.create_all(beside)
        cluster.wait(lambda: len(cluster.bound()) == 2 * nodes, START_SECONDS, "all pods' start")
        start_bound_pods(cluster)
        train = pods_of(cluster, "train")
        for each in fillers:
            cluster.delete("Pod", each["metadata"]["name"])
        yield train
    cluster.clear("Job")


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


def waiting_for_nodes(cluster: Cluster, gang: Objects) -> bool:
    """Whether the pods are gated, marked as Unschedulable, and no event says they are refused."""
    return all(
        gates_of(cluster.get("Pod", each["metadata"]["name"]) or {}) == [GATE]
        and reason_of(cluster, each["metadata"]["name"]) == "Unschedulable"
        and not refusals(cluster, each)
        for each in gang
    )


def assert_no_node_is_ordered(cluster: Cluster, *, beside: int) -> None:
    """Karpenter, which has so many nodes, orders one for a pod that is new, and no other."""
    cluster.create(whole_node(f"plain-{beside}"))
    wait_for_claims(cluster, beside + 1)


def usable(cluster: Cluster) -> int:
    """The nodes that Karpenter takes for ready."""
    return sum(map(is_initialized, machines(cluster)))


def pods_of(cluster: Cluster, name: str) -> Objects:
    """The pods of a gang, by their names."""
    pods = cluster.list("Pod", "default")
    return [each for each in pods if each["metadata"]["name"].startswith(f"{name}-")]


def bound(cluster: Cluster, name: str) -> dict[str, str]:
    """Pod -> node, for the pods of a gang that have one."""
    placed = cluster.bound().items()
    return {each: node for each, node in placed if each.startswith(f"{name}-")}


def annotation(thing: Object, key: str) -> str | None:
    value: str | None = thing["metadata"].get("annotations", {}).get(key)
    return value


def names(things: Objects) -> set[str]:
    return {each["metadata"]["name"] for each in things}


def uids(things: Objects) -> set[str]:
    return {each["metadata"]["uid"] for each in things}
