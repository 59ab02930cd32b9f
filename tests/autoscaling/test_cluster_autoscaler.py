"""The simulated cluster-autoscaler does what the real one does.

Source: kubernetes/autoscaler cluster-autoscaler/core (1.36.1).
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.autoscaling.cluster_autoscaler.loop import ClusterAutoscaler, Settings, seconds_of
from tests.autoscaling.cluster_autoscaler.scale_down import DISABLED
from tests.autoscaling.machines.actions import DeleteNode, MakeNode
from tests.autoscaling.machines.groups import NodeGroup
from tests.autoscaling.objects import CONSUME
from tests.autoscaling.reading.pods import SAFE_TO_EVICT, SCALE_UP_DELAY
from tests.autoscaling.reading.rooms import TO_BE_DELETED
from tests.autoscaling.small import Small
from tests.cluster import GPU, HOSTNAME, RACK, Object, node, pod

MACHINE = {"cpu": "64", "memory": "512Gi", "pods": "110", GPU: "8"}
WHOLE = {GPU: 8}  # a pod that takes all GPUs of a machine
QUICK = Settings(unneeded=60.0, delay_after_add=0.0)


def rack(name: str = "r0", most: int = 8, **fields: Any) -> NodeGroup:
    """A group that is one rack."""
    return NodeGroup(name, most, MACHINE, labels={RACK: name}, **fields)


def small(*groups: NodeGroup, settings: Settings | None = None) -> Small:
    return Small(ClusterAutoscaler(groups or (rack(),), settings))


def of_job(name: str) -> list[Object]:
    return [
        {"apiVersion": "batch/v1", "kind": "Job", "name": name, "uid": name, "controller": True}
    ]


def narrowed(*terms: Object) -> Object:
    required = {
        "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": list(terms)}
    }
    return {"affinity": {"nodeAffinity": required}}


def by_name(operator: str, *names: str) -> Object:
    fields = [{"key": "metadata.name", "operator": operator, "values": [each]} for each in names]
    return {"matchFields": fields}


def by_label(key: str, operator: str, *values: str) -> Object:
    return {"matchExpressions": [{"key": key, "operator": operator, "values": list(values)}]}


# -- which pods are demand -----------------------------------------------------------------------


def test_an_unschedulable_pod_makes_a_node() -> None:
    world = small()
    world.wait("a", requests=WHOLE)
    world.run(60.0)
    assert world.names() == ["r0-0"]


@pytest.mark.parametrize("reason", ["SchedulingGated", "SchedulerError"])
def test_a_pod_that_is_not_scheduled_for_another_reason_makes_none(reason: str) -> None:
    world = small()
    world.wait("a", requests=WHOLE, gates=["corral.dev/gang"], reason=reason)
    world.run(60.0)
    assert world.names() == []


def test_gates_are_not_looked_at_once_a_pod_is_marked() -> None:
    world = small()
    world.wait("a", requests=WHOLE, gates=["corral.dev/gang"])
    world.run(60.0)
    assert world.names() == ["r0-0"]


def test_a_pod_without_a_condition_makes_none() -> None:
    world = small()
    world.add("pods", pod("a", requests=WHOLE))
    world.run(60.0)
    assert world.names() == []


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({"spec": {"nodeName": "somewhere"}}, id="bound"),
        pytest.param({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}, id="deleting"),
        pytest.param({"status": {"phase": "Failed"}}, id="finished"),
        pytest.param({"status": {"nominatedNodeName": "nowhere"}}, id="nominated"),
        pytest.param({"metadata": {"annotations": {CONSUME: "r"}}}, id="consumes_a_request"),
        pytest.param({"spec": {"priority": -11}}, id="expendable"),
    ],
)
def test_no_node_is_made_for_a_pod_that_is(change: dict[str, Object]) -> None:
    world = small()
    made = world.wait("a", requests=WHOLE)
    for part, fields in change.items():
        made[part].update(fields)
    world.run(60.0)
    assert world.names() == []


def test_a_pod_is_no_demand_until_its_own_delay_is_over() -> None:
    world = small()
    world.wait("a", requests=WHOLE, annotations={SCALE_UP_DELAY: "1m30s"})
    world.run(85.0)
    assert world.autoscaler.cloud.machines == {}
    world.run(60.0)
    assert world.names() == ["r0-0"]


@pytest.mark.parametrize(("text", "seconds"), [("1h1m1s", 3661.0), ("45s", 45.0), ("0", 0.0)])
def test_durations_are_read_as_go_writes_them(text: str, seconds: float) -> None:
    assert seconds_of(text) == seconds


# -- packing -------------------------------------------------------------------------------------


def test_what_fits_free_nodes_is_taken_off_with_no_regard_to_racks() -> None:
    """Fact 3: a gang of two, one free slot in each of two racks."""
    world = small()
    for name in ("b0", "b1"):
        world.add("nodes", node(name, labels={RACK: name}, gpus=8))
    for name in ("a", "b"):
        world.wait(name, requests=WHOLE)
    world.run(60.0)
    assert world.names() == ["b0", "b1"]
    world.wait("c", requests=WHOLE)
    world.run(60.0)
    assert world.names() == ["b0", "b1", "r0-0"]


def test_bound_and_nominated_pods_take_their_room() -> None:
    world = small(rack(most=2))
    world.add("nodes", node("b0", gpus=8))
    world.add("nodes", node("b1", gpus=8))
    world.wait("bound", requests=WHOLE)
    world.bind("bound", "b0")
    world.wait("nominated", requests=WHOLE)["status"]["nominatedNodeName"] = "b1"
    world.wait("a", requests=WHOLE)
    world.run(60.0)
    assert world.names() == ["b0", "b1", "r0-0"]


def test_nodes_on_their_way_are_counted_with_all_they_will_have() -> None:
    """No second node while the first boots, is unlabelled, or has no GPUs yet."""
    world = small(
        NodeGroup(
            "g",
            8,
            MACHINE,
            late_labels=({RACK: "r0"},),
            tags={RACK: "r0"},
            register_seconds=30.0,
            ready_seconds=20.0,
            label_seconds=40.0,
            resource_seconds=60.0,
        )
    )
    world.wait("a", requests=WHOLE, nodeSelector={RACK: "r0"})
    world.run(200.0)
    assert world.names() == ["g-0"]


def test_pods_that_share_a_node_are_one_node() -> None:
    world = small()
    for number in range(9):
        world.wait(f"p{number}", requests={GPU: 1})
    world.run(60.0)
    assert world.names() == ["r0-0", "r0-1"]


def test_a_group_grows_to_its_maximum_and_no_further() -> None:
    world = small(rack(most=5))
    for number in range(8):
        world.wait(f"p{number}", requests=WHOLE)
    world.run(300.0)
    assert len(world.names()) == 5
    assert [name for name, _ in world.events("NotTriggerScaleUp")] == ["p5", "p6", "p7"]
    said = dict(world.events("TriggeredScaleUp"))
    assert said["p0"] == "pod triggered scale-up: [{r0 0->5 (max: 5)}]"


def test_one_group_grows_per_loop_the_one_that_wastes_least() -> None:
    roomy = NodeGroup("a-roomy", 8, {**MACHINE, "cpu": "640"}, register_seconds=1.0)
    tight = NodeGroup("b-tight", 2, MACHINE, register_seconds=1.0)
    world = small(roomy, tight)
    for number in range(4):
        world.wait(f"p{number}", requests={GPU: 8, "cpu": "60"})
    world.run(5.0)
    assert world.names() == ["b-tight-0", "b-tight-1"]
    world.run(10.0)
    assert world.names() == ["a-roomy-0", "a-roomy-1", "b-tight-0", "b-tight-1"]


@pytest.mark.parametrize(
    ("spec", "fits"),
    [
        pytest.param({"nodeSelector": {"pool": "a"}}, True, id="selector"),
        pytest.param({"nodeSelector": {"pool": "b"}}, False, id="other_selector"),
        pytest.param(narrowed(by_label("pool", "In", "a", "b")), True, id="in"),
        pytest.param(narrowed(by_label("pool", "In", "b")), False, id="not_in_them"),
        pytest.param(narrowed(by_label("pool", "NotIn", "a")), False, id="not_in"),
        pytest.param(narrowed(by_label("other", "NotIn", "a")), True, id="not_in_unknown"),
        pytest.param(narrowed(by_label("pool", "Exists")), True, id="exists"),
        pytest.param(narrowed(by_label("pool", "DoesNotExist")), False, id="does_not_exist"),
        pytest.param(narrowed(by_label("size", "Gt", "7")), True, id="greater"),
        pytest.param(narrowed(by_label("size", "Lt", "8")), False, id="less"),
        pytest.param(narrowed(by_name("In", "n7")), False, id="one_node_by_name"),
        pytest.param(narrowed(by_name("NotIn", "n1", "n2")), True, id="all_but_nodes_by_name"),
        pytest.param(
            narrowed(by_name("In", "n7"), by_label("pool", "In", "a")), True, id="either_term"
        ),
        pytest.param(narrowed({}), False, id="empty_term"),
    ],
)
def test_selectors_and_affinity_hold_for_new_nodes(spec: Object, fits: bool) -> None:
    world = small(NodeGroup("g", 8, MACHINE, labels={"pool": "a", "size": "8"}))
    world.wait("a", requests=WHOLE, **spec)
    world.run(60.0)
    assert bool(world.names()) is fits


def test_a_pod_narrowed_to_a_node_fits_that_node() -> None:
    world = small()
    for name in ("n0", "n1"):
        world.add("nodes", node(name, gpus=8))
    for name in ("a", "b"):
        world.wait(name, requests=WHOLE, **narrowed(by_name("In", "n1")))
    world.run(60.0)
    # The second one cannot be helped: no template has that name.
    assert world.names() == ["n0", "n1"]
    assert [name for name, _ in world.events("NotTriggerScaleUp")] == ["b"]


@pytest.mark.parametrize(
    ("toleration", "fits"),
    [
        pytest.param({"key": "gpu", "operator": "Exists"}, True, id="exists"),
        pytest.param({"key": "gpu", "value": "yes"}, True, id="equal"),
        pytest.param({"key": "gpu", "value": "no"}, False, id="other_value"),
        pytest.param({"operator": "Exists"}, True, id="all"),
        pytest.param(
            {"key": "gpu", "operator": "Exists", "effect": "NoExecute"}, False, id="effect"
        ),
        pytest.param({"key": "other", "operator": "Exists"}, False, id="other_key"),
    ],
)
def test_taints_of_a_group_want_tolerations(toleration: Object, fits: bool) -> None:
    taint = {"key": "gpu", "value": "yes", "effect": "NoSchedule"}
    world = small(rack(taints=(taint,)))
    world.wait("a", requests=WHOLE, tolerations=[toleration])
    world.run(60.0)
    assert bool(world.names()) is fits


def test_a_cordoned_node_takes_nothing() -> None:
    world = small()
    world.add("nodes", node("n0", gpus=8, is_unschedulable=True))
    world.wait("a", requests=WHOLE)
    world.run(60.0)
    assert world.names() == ["n0", "r0-0"]


def test_a_startup_taint_is_expected_to_vanish() -> None:
    key = "startup-taint.cluster-autoscaler.kubernetes.io/agent"
    taint = {"key": key, "effect": "NoSchedule"}
    world = small(rack(taints=(taint,)))
    world.wait("a", requests=WHOLE)
    world.run(300.0)
    # Ready since long, and still the one that is on its way for this pod.
    assert (world.names(), world.tainted(key)) == (["r0-0"], ["r0-0"])
    world.nodes["r0-0"]["spec"]["taints"] = []
    world.run(60.0)
    world.bind("a", "r0-0")
    world.wait("b", requests=WHOLE)
    world.run(60.0)
    assert world.names() == ["r0-0", "r0-1"]


# -- templates -----------------------------------------------------------------------------------


def test_a_group_from_zero_is_known_by_its_tags_only() -> None:
    untagged = NodeGroup("g", 8, MACHINE, labels={RACK: "r0"}, tags={})
    world = small(untagged)
    world.wait("a", requests=WHOLE, nodeSelector={RACK: "r0"})
    world.run(60.0)
    assert world.names() == []


def test_a_copied_template_carries_the_rack_of_the_node_it_is_of() -> None:
    """Fact 6: a group that spans racks simulates every new node into one of them."""
    spanning = NodeGroup("g", 8, MACHINE, late_labels=({RACK: "r0"}, {RACK: "r1"}), tags={})
    world = small(spanning)
    world.wait("first", requests=WHOLE)
    world.run(60.0)
    world.bind("first", "g-0")
    world.wait("a", requests=WHOLE, nodeSelector={RACK: "r1"})
    world.wait("b", requests=WHOLE, nodeSelector={RACK: "r0"})
    world.run(35.0)  # nothing is copied until it was ready for a minute
    assert [name for name, _ in world.events("TriggeredScaleUp")] == ["first"]
    world.run(40.0)
    assert [name for name, _ in world.events("TriggeredScaleUp")] == ["first", "b"]
    # The node comes in the other rack, so the pod still waits, and makes another node.
    assert world.nodes["g-1"]["metadata"]["labels"][RACK] == "r1"
    world.run(10.0)
    assert [name for name, _ in world.events("TriggeredScaleUp")] == ["first", "b", "b"]


def test_the_copy_is_kept_when_the_node_has_gone() -> None:
    spanning = NodeGroup("g", 8, MACHINE, late_labels=({RACK: "r0"},), tags={})
    world = small(spanning, settings=QUICK)
    world.wait("first", requests=WHOLE)
    world.run(200.0)
    world.pods.clear()
    world.run(100.0)
    assert world.names() == []
    world.wait("a", requests=WHOLE, nodeSelector={RACK: "r0"})
    world.run(100.0)
    assert world.names() == ["g-1"]


def test_only_the_name_and_the_hostname_of_a_copy_are_its_own() -> None:
    world = small(rack())
    world.wait("first", requests=WHOLE)
    world.run(150.0)
    world.bind("first", "r0-0")
    world.wait("a", requests=WHOLE, nodeSelector={HOSTNAME: "r0-0"})
    world.wait("b", requests=WHOLE, nodeSelector={RACK: "r0"})
    world.run(100.0)
    assert [name for name, _ in world.events("TriggeredScaleUp")] == ["first", "b"]


# -- machines ------------------------------------------------------------------------------------


def test_a_machine_registers_becomes_ready_and_is_labelled_at_its_times() -> None:
    group = NodeGroup(
        "g",
        8,
        MACHINE,
        labels={"pool": "a"},
        late_labels=({RACK: "r0"},),
        register_seconds=30.0,
        ready_seconds=10.0,
        label_seconds=20.0,
        resource_seconds=40.0,
    )
    world = small(group)
    world.wait("a", requests=WHOLE)
    told: list[object] = []
    for seconds in (29.0, 2.0, 10.0, 10.0, 20.0):
        world.run(seconds)
        found = world.nodes.get("g-0")
        if found is None:
            told.append(None)
            continue
        labels, status = found["metadata"]["labels"], found["status"]
        told.append(
            (
                status["conditions"][0]["status"],
                labels.get("pool"),
                labels.get(RACK),
                status["allocatable"][GPU],
            )
        )
    assert told == [
        None,
        ("False", "a", None, "0"),
        ("True", "a", None, "0"),
        ("True", "a", "r0", "0"),
        ("True", "a", "r0", "8"),
    ]


def test_a_stock_that_is_out_is_found_out_late_and_the_group_backs_off() -> None:
    world = small(rack(stock=6))
    for number in range(8):
        world.wait(f"p{number}", requests=WHOLE)
    world.run(899.0)
    cloud = world.autoscaler.cloud
    assert (len(world.names()), len(cloud.machines)) == (6, 8)
    world.run(20.0)
    assert len(cloud.machines) == 6
    world.run(280.0)
    assert len(cloud.machines) == 6  # five minutes of back-off
    world.run(20.0)
    assert len(cloud.machines) == 8
    cloud.stock["r0"] = None
    world.run(900.0 + 570.0)  # the second back-off is twice as long
    assert len(cloud.machines) == 6
    world.run(60.0)
    assert len(world.names()) == 8


def test_how_long_machines_are_waited_for_and_groups_left_alone_are_settings() -> None:
    world = small(rack(stock=0), settings=Settings(provision=60.0, backoff=(30.0, 45.0)))
    world.wait("a", requests=WHOLE)
    cloud = world.autoscaler.cloud
    orders = []
    for seconds in (89.0, 2.0, 108.0, 2.0):  # 60 and 30; 60 and twice that, but 45 at most
        world.run(seconds)
        orders.append(cloud.orders)
    assert orders == [1, 2, 2, 3]


def test_machines_of_a_group_may_come_each_later_than_the_last_in_turn() -> None:
    world = small(rack(late_seconds=(0.0, 25.0)))
    for name in ("a", "b", "c"):
        world.wait(name, requests=WHOLE)
    world.run(35.0)
    assert world.names() == ["r0-0", "r0-2"]
    world.run(25.0)
    assert world.names() == ["r0-0", "r0-1", "r0-2"]


def test_another_group_is_taken_while_one_backs_off() -> None:
    world = small(rack("r0", stock=0), rack("r1"))
    world.wait("a", requests=WHOLE)
    world.run(1000.0)
    assert world.names() == ["r1-0"]


# -- nodes go ------------------------------------------------------------------------------------


def grown(settings: Settings, *pods: str, **fields: Any) -> Small:
    """A world in which each pod runs on a node of its own that was made for it."""
    world = small(settings=settings)
    for each in pods:
        world.wait(each, requests=WHOLE, **fields)
    world.run(60.0)
    for number, each in enumerate(pods):
        world.bind(each, f"r0-{number}")
    return world


def test_an_empty_node_goes_when_nobody_has_needed_it_for_so_long() -> None:
    world = grown(QUICK, "a")
    world.run(300.0)
    assert world.names() == ["r0-0"]
    del world.pods["a"]
    began = world.now
    world.run(55.0)
    assert world.tainted(TO_BE_DELETED) == []
    world.run(20.0)
    assert world.tainted(TO_BE_DELETED) == ["r0-0"]
    world.run(10.0)
    assert world.names() == []
    (gone,) = world.times(DeleteNode)
    assert 60.0 <= gone - began <= 85.0
    assert [name for name, _ in world.events("ScaleDown")] == ["r0-0"]


def test_by_default_that_takes_ten_minutes() -> None:
    world = grown(Settings(), "a")
    del world.pods["a"]
    world.run(590.0)
    assert world.names() == ["r0-0"]
    world.run(60.0)
    assert world.names() == []


def test_no_node_goes_for_a_while_after_one_was_added() -> None:
    settings = Settings(unneeded=60.0, delay_after_add=600.0)
    world = grown(settings, "a", "b")
    del world.pods["a"]
    world.run(500.0)
    assert world.names() == ["r0-0", "r0-1"]
    world.run(100.0)
    assert world.names() == ["r0-1"]


def test_a_pending_pod_keeps_the_node_that_the_simulation_puts_it_on() -> None:
    """Marks keep nodes: the gang waits, and they stay empty."""
    world = small(settings=QUICK)
    for each in ("a", "b"):
        world.wait(each, requests=WHOLE)
    world.run(900.0)
    assert world.names() == ["r0-0", "r0-1"]
    del world.pods["b"]
    world.run(100.0)
    assert len(world.names()) == 1


def test_a_node_that_is_needed_again_starts_anew() -> None:
    world = grown(QUICK, "a")
    del world.pods["a"]
    world.run(50.0)
    world.wait("b", requests=WHOLE)
    world.run(20.0)
    del world.pods["b"]
    world.run(50.0)
    assert world.names() == ["r0-0"]


def test_pods_that_come_between_taint_and_deletion_save_the_node() -> None:
    world = grown(QUICK, "a")
    del world.pods["a"]
    while not world.tainted(TO_BE_DELETED):
        world.run(1.0)
    world.wait("b", requests=WHOLE)
    world.bind("b", "r0-0")
    world.run(100.0)
    assert (world.names(), world.tainted(TO_BE_DELETED)) == (["r0-0"], [])


def test_a_tainted_node_is_no_room_for_pending_pods_whatever_they_tolerate() -> None:
    world = grown(QUICK, "a")
    del world.pods["a"]
    while not world.tainted(TO_BE_DELETED):
        world.run(1.0)
    world.wait("b", requests=WHOLE, tolerations=[{"operator": "Exists"}])
    world.run(10.0)  # one loop
    assert [name for name, _ in world.events("TriggeredScaleUp")] == ["a", "b"]


def test_a_node_that_is_drained_is_no_room_either() -> None:
    world = little_used(QUICK)
    while not world.tainted(TO_BE_DELETED):
        world.run(1.0)
    for name in ("c", "d"):  # one fits beside the pod of the other node
        world.wait(name, requests={GPU: 7}, tolerations=[{"operator": "Exists"}])
    world.run(10.0)
    assert [name for name, _ in world.events("TriggeredScaleUp")] == ["a", "b", "d"]


def test_a_node_may_be_kept_by_an_annotation() -> None:
    world = grown(QUICK, "a")
    world.nodes["r0-0"]["metadata"]["annotations"] = {DISABLED: "true"}
    del world.pods["a"]
    world.run(900.0)
    assert world.names() == ["r0-0"]


def test_a_group_keeps_its_minimum_and_no_node_is_made_for_that() -> None:
    world = small(rack(min=2), settings=QUICK)
    world.run(100.0)
    assert world.names() == []
    for each in ("a", "b", "c", "d"):
        world.wait(each, requests=WHOLE)
    world.run(60.0)
    world.pods.clear()
    world.run(900.0)
    assert len(world.names()) == 2


def test_another_replica_takes_off_the_taint_of_a_node_that_was_to_go_and_counts_anew() -> None:
    world = grown(QUICK, "a")
    del world.pods["a"]
    while not world.tainted(TO_BE_DELETED):
        world.run(1.0)
    world.do(world.autoscaler.restart(world.seen()))
    assert world.tainted(TO_BE_DELETED) == []
    world.run(55.0)
    assert world.names() == ["r0-0"]
    world.run(30.0)
    assert world.names() == []


def test_another_replica_does_not_know_the_copy_of_a_node_that_has_gone() -> None:
    group = NodeGroup("g", 8, MACHINE, late_labels=({RACK: "r0"},), tags={})
    world = small(group, settings=QUICK)
    world.wait("a", requests=WHOLE)
    world.run(200.0)
    world.pods.clear()
    world.run(200.0)
    assert world.names() == []
    world.do(world.autoscaler.restart(world.seen()))
    world.wait("b", requests=WHOLE, nodeSelector={RACK: "r0"})
    world.run(60.0)
    assert world.names() == []


def test_nodes_of_no_group_are_left_alone() -> None:
    world = small(settings=QUICK)
    world.add("nodes", node("b0", gpus=8))
    world.run(900.0)
    assert world.names() == ["b0"]


def test_pods_of_daemon_sets_and_finished_ones_keep_no_node() -> None:
    world = grown(QUICK, "a")
    owner = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "d", "uid": "d"}
    daemon = world.wait("d")
    daemon["metadata"]["ownerReferences"] = [owner | {"controller": True}]
    world.bind("d", "r0-0")
    world.pods["a"]["status"] = {"phase": "Succeeded"}
    world.run(100.0)
    assert world.names() == []


def little_used(settings: Settings, **fields: Any) -> Small:
    """Two nodes with a pod of one GPU each, the first's made by a Job."""
    world = small(settings=settings)
    for each in ("a", "b"):
        world.wait(each, requests=WHOLE)
    world.run(60.0)
    for number, each in enumerate(("a", "b")):
        world.wait(each, requests={GPU: 1}, **fields)
        world.bind(each, f"r0-{number}")
    world.pods["a"]["metadata"]["ownerReferences"] = of_job("j")
    return world


def test_a_little_used_node_is_drained_when_its_pods_fit_elsewhere() -> None:
    world = little_used(QUICK)
    world.run(100.0)
    assert (world.names(), sorted(world.pods)) == (["r0-1"], ["b"])


@pytest.mark.parametrize(
    ("settings", "annotations"),
    [
        pytest.param(QUICK, {SAFE_TO_EVICT: "false"}, id="not_safe_to_evict"),
        pytest.param(Settings(unneeded=60.0, delay_after_add=0.0, drains=False), {}, id="off"),
    ],
)
def test_a_little_used_node_stays(settings: Settings, annotations: dict[str, str]) -> None:
    world = little_used(settings, annotations=annotations)
    world.run(900.0)
    assert sorted(world.pods) == ["a", "b"]
    assert world.names() == ["r0-0", "r0-1"]


def test_a_pod_that_nobody_made_is_evicted_only_where_it_says_so() -> None:
    world = little_used(QUICK, annotations={SAFE_TO_EVICT: "true"})
    world.pods["a"]["metadata"]["ownerReferences"] = []
    world.run(100.0)
    assert len(world.names()) == 1
    world = little_used(QUICK)
    world.pods["a"]["metadata"]["ownerReferences"] = []
    world.run(900.0)
    assert len(world.names()) == 2


def test_a_narrowed_pod_that_runs_keeps_its_node() -> None:
    """cluster-autoscaler reads matchFields, and knows that it fits nowhere else."""
    world = little_used(QUICK, **narrowed(by_name("In", "r0-0")))
    world.run(900.0)
    assert world.names() == ["r0-0", "r0-1"]


def test_a_well_used_node_is_not_drained() -> None:
    world = little_used(QUICK)
    for name in ("a", "b"):
        for amounts in world.pods[name]["spec"]["containers"][0]["resources"].values():
            amounts[GPU] = "4"
    world.run(900.0)
    assert len(world.names()) == 2


# -- what ends up in the cluster -----------------------------------------------------------------


def test_a_node_that_somebody_deletes_is_no_machine_any_more() -> None:
    world = small(rack(most=1))
    world.wait("a", requests=WHOLE)
    world.run(60.0)
    del world.nodes["r0-0"]
    world.run(60.0)
    assert world.names() == ["r0-1"]
    assert list(world.autoscaler.cloud.machines) == ["r0-1"]


def test_the_same_world_does_the_same_things() -> None:
    def play() -> list[tuple[float, object]]:
        world = small(rack("r0", stock=3), rack("r1"), settings=QUICK)
        for number in range(6):
            world.wait(f"p{number}", requests=WHOLE)
        world.run(1500.0)
        world.pods.clear()
        world.run(500.0)
        assert world.times(MakeNode)
        return list(world.done)

    assert play() == play()
