"""The simulated Karpenter does what the real one does.

Source: kubernetes-sigs/karpenter pkg/controllers/provisioning and disruption (1.14).
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.autoscaling.karpenter import DISRUPTED, DO_NOT_DISRUPT, NO_FIELDS, Karpenter
from tests.autoscaling.machines.groups import NodeGroup
from tests.autoscaling.small import Small
from tests.cluster import GPU, HOSTNAME, RACK, Object, node

ONE = {"cpu": "8", "memory": "64Gi", "pods": "110", GPU: "1"}
EIGHT = {"cpu": "64", "memory": "512Gi", "pods": "110", GPU: "8"}


def pool(name: str = "p", most: int = 100, **fields: Any) -> NodeGroup:
    return NodeGroup(name, most, **{"sizes": (ONE, EIGHT), **fields})


def small(*pools: NodeGroup, consolidate_after: float = 30.0) -> Small:
    return Small(Karpenter(pools or (pool(),), consolidate_after=consolidate_after))


def required(*terms: Object) -> Object:
    wanted = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": list(terms)}}
    return {"affinity": {"nodeAffinity": wanted}}


def by_name(*names: str, operator: str = "In") -> Object:
    fields = [{"key": "metadata.name", "operator": operator, "values": [each]} for each in names]
    return {"matchFields": fields}


def by_label(key: str, operator: str, *values: str) -> Object:
    return {"matchExpressions": [{"key": key, "operator": operator, "values": list(values)}]}


def gpus(world: Small) -> list[str]:
    return [each["status"]["allocatable"][GPU] for _, each in sorted(world.nodes.items())]


@pytest.mark.parametrize(
    ("reason", "nodes"), [("Unschedulable", 1), ("SchedulingGated", 0), ("SchedulerError", 0)]
)
def test_the_reason_alone_makes_demand_and_gates_do_not_matter(reason: str, nodes: int) -> None:
    world = small()
    world.wait("a", requests={GPU: 1}, gates=["corral.dev/gang"], reason=reason)
    world.run(60.0)
    assert len(world.names()) == nodes


def test_a_nominated_pod_is_neither_demand_nor_in_the_way() -> None:
    """Fact 10: preempting, and of no use on the node."""
    world = small()
    world.add("nodes", node("b0", gpus=8))
    world.wait("a", requests={GPU: 8})["status"]["nominatedNodeName"] = "b0"
    world.run(30.0)
    assert world.names() == ["b0"]
    world.wait("b", requests={GPU: 8})
    world.run(60.0)
    assert world.names() == ["b0"]


def test_pods_share_the_cheapest_node_that_takes_them() -> None:
    world = small()
    for number in range(9):
        world.wait(f"a{number}", requests={GPU: 1})
    world.run(60.0)
    assert gpus(world) == ["8", "1"]


def test_what_fits_free_nodes_makes_none_whatever_its_rack() -> None:
    """Fact 3, as it was measured."""
    world = small()
    for name in ("b0", "b1"):
        world.add("nodes", node(name, labels={RACK: name}, gpus=1))
    for name in ("a", "b"):
        world.wait(name, requests={GPU: 1})
    world.run(120.0)
    assert world.names() == ["b0", "b1"]


def test_how_long_a_machine_may_take_to_register_is_an_option() -> None:
    world = Small(Karpenter([pool(stock=0)], register_within=60.0))
    world.wait("a", requests={GPU: 1})
    world.run(75.0)
    assert world.autoscaler.cloud.orders == 2


def test_nodes_come_one_by_one_and_some_may_not() -> None:
    world = small(pool(stock=3))
    for number in range(4):
        world.wait(f"a{number}", requests={GPU: 8})
    world.run(120.0)
    assert len(world.names()) == 3


@pytest.mark.parametrize("operator", ["In", "NotIn"])
def test_a_pod_with_match_fields_is_no_demand_and_is_told_so_once(operator: str) -> None:
    world = small()
    world.wait("a", requests={GPU: 1}, **required(by_name("b0", operator=operator)))
    world.run(120.0)
    assert world.names() == []
    assert world.events("FailedScheduling") == [("a", f"Failed to schedule pod, {NO_FIELDS}")]


@pytest.mark.parametrize(
    "spec",
    [{"nodeSelector": {HOSTNAME: "b0"}}, required(by_label(HOSTNAME, "In", "b0"))],
    ids=["selector", "affinity"],
)
def test_a_pod_with_a_hostname_is_no_demand(spec: Object) -> None:
    world = small()
    world.wait("a", requests={GPU: 1}, **spec)
    world.run(120.0)
    assert world.names() == []
    text = f'Failed to schedule pod, label "{HOSTNAME}" is restricted'
    assert world.events("FailedScheduling") == [("a", text)]


@pytest.mark.parametrize(
    ("term", "nodes"),
    [
        pytest.param(by_label(RACK, "In", "r0"), 0, id="in"),
        pytest.param(by_label(RACK, "Exists"), 0, id="exists"),
        pytest.param(by_label(RACK, "NotIn", "r0"), 1, id="not_in"),
        pytest.param(by_label(RACK, "DoesNotExist"), 1, id="does_not_exist"),
    ],
)
def test_a_label_that_no_pool_has_values_for_gets_no_node(term: Object, nodes: int) -> None:
    """Fact 5: but NotIn is let through."""
    world = small()
    world.wait("a", requests={GPU: 1}, **required(term))
    world.run(120.0)
    assert len(world.names()) == nodes
    text = f'Failed to schedule pod, label "{RACK}" does not have known values'
    assert world.events("FailedScheduling") == ([] if nodes else [("a", text)])


def test_not_in_on_an_unknown_label_turns_fragments_into_new_nodes() -> None:
    """Fact 5, as it was measured: case 3 with rack NotIn [b0, b1]."""
    world = small()
    for name in ("b0", "b1"):
        world.add("nodes", node(name, labels={RACK: name}, gpus=1))
    for name in ("a", "b"):
        world.wait(name, requests={GPU: 1}, **required(by_label(RACK, "NotIn", "b0", "b1")))
    world.run(120.0)
    assert sum(int(each) for each in gpus(world)[2:]) >= 2


def test_a_label_that_a_pool_has_values_for_is_chosen_as_the_pod_needs_it() -> None:
    world = small(pool(values={RACK: ("r0", "r1")}))
    world.wait("a", requests={GPU: 1}, nodeSelector={RACK: "r1"})
    world.wait("b", requests={GPU: 1}, **required(by_label(RACK, "NotIn", "r1")))
    world.run(60.0)
    racks = {each["metadata"]["labels"][RACK] for each in world.nodes.values()}
    assert racks == {"r0", "r1"}


def test_a_pool_grows_no_further_than_its_limit() -> None:
    world = small(pool(most=2))
    for number in range(5):
        world.wait(f"a{number}", requests={GPU: 8})
    world.run(120.0)
    assert len(world.names()) == 2


# -- consolidation -------------------------------------------------------------------------------


def running(*, consolidate_after: float = 30.0, **fields: Any) -> Small:
    """Two nodes of eight GPUs with one small pod each."""
    world = small(pool(sizes=(EIGHT,)), consolidate_after=consolidate_after)
    for name in ("a", "b"):
        world.wait(name, requests={GPU: 8})
    world.run(60.0)
    for number, name in enumerate(("a", "b")):
        narrow = required(by_name(f"p-{number}"))
        world.wait(name, requests={GPU: 1}, **narrow, **fields)
        world.bind(name, f"p-{number}")
    return world


def test_a_running_narrowed_pod_is_believed_to_fit_anywhere() -> None:
    """Fact 4, as it was measured: one node is disrupted and its pod evicted."""
    world = running()
    while not world.tainted(DISRUPTED["key"]):
        world.run(1.0)
        assert world.now < 300.0
    assert len(world.tainted(DISRUPTED["key"])) == 1
    world.run(30.0)
    assert (len(world.names()), len(world.pods)) == (1, 1)


def test_do_not_disrupt_on_the_pods_keeps_both_nodes() -> None:
    world = running(annotations={DO_NOT_DISRUPT: "true"})
    world.run(600.0)
    assert (len(world.names()), len(world.pods)) == (2, 2)
    assert world.tainted(DISRUPTED["key"]) == []


def test_do_not_disrupt_on_a_node_keeps_it() -> None:
    world = running()
    for each in world.nodes.values():
        each["metadata"]["annotations"] = {DO_NOT_DISRUPT: "true"}
    world.run(600.0)
    assert len(world.names()) == 2


def test_pods_that_fit_nowhere_else_keep_their_node() -> None:
    world = running()
    for name in ("a", "b"):
        for amounts in world.pods[name]["spec"]["containers"][0]["resources"].values():
            amounts[GPU] = "5"
    world.run(600.0)
    assert len(world.names()) == 2


def test_an_empty_node_goes_and_a_marked_pod_keeps_it() -> None:
    """Fact 2: kept while the condition stands; put back to SchedulingGated, the node goes."""
    world = small()
    world.wait("a", requests={GPU: 1}, gates=["corral.dev/gang"])
    world.run(300.0)
    assert len(world.names()) == 1
    world.pods["a"]["status"]["conditions"][0]["reason"] = "SchedulingGated"
    world.run(100.0)
    assert world.names() == []


def test_another_replica_takes_off_the_taint_of_a_node_that_was_to_go() -> None:
    world = running()
    while not world.tainted(DISRUPTED["key"]):
        world.run(1.0)
    world.do(world.autoscaler.restart(world.seen()))
    assert world.tainted(DISRUPTED["key"]) == []
    assert len(world.names()) == 2


def test_a_node_is_left_alone_until_its_pods_have_been_the_same_for_a_while() -> None:
    world = running(consolidate_after=120.0)
    world.run(100.0)
    assert len(world.names()) == 2
    world.run(120.0)
    assert len(world.names()) == 1
