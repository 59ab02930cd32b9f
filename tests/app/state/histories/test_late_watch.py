"""Histories of objects and pods that come late, change, go and are made anew, in four vocabularies.

Whatever happens the books are right at each step, gangs start with all that they take and in their
domains, a Corral that starts in between comes to the same, and in the end all is settled.
"""

from __future__ import annotations

from functools import partial

import msgspec
import pytest

from app.dialects.volcano.queues import decode_queue
from tests.app.dialects.grove import objects as grove
from tests.app.dialects.kai import objects as kai
from tests.app.dialects.native import objects as native
from tests.app.dialects.native.composites import KIND as COMPOSITE
from tests.app.dialects.native.composites import composite, inner
from tests.app.dialects.volcano.objects import by_pattern, exact, record
from tests.app.dialects.volcano.workloads import (
    GROUP_NAME,
    PARTITION,
    TASK,
    network_topology,
    sub_group,
)
from tests.app.state.histories.test_pod_groups import group as of_volcano
from tests.app.state.late import LateCluster, Story
from tests.app.state.world import LISTED
from tests.records import BLOCK, GPU, RACK, node, pod

HOST = "kubernetes.io/hostname"
TOGETHER = "corral.dev/workload-required-topology"
NODES = [
    node(f"b{rack // 2}/r{rack}/n{rack}{at}", gpus=2, labels={"rail": f"a{at}", "site": "s"})
    for rack in range(4)
    for at in range(2)
]
FEW, MANY = 3, 200  # histories of each


def of_kai():
    topology, pods, part, on = (
        kai.topology_record,
        "PodGroup.scheduling.run.ai",
        kai.sub_group,
        kai.within,
    )
    net = [topology("net", RACK), topology("net", BLOCK, RACK, aliases=("blk",))]
    rail = [topology("rail", "none", "rail"), topology("rail", "site", "rail")]
    apart = (
        part("x", 2, topologyConstraint=on(RACK)),
        part("y", 2, topologyConstraint=on("rail", topology="rail")),
    )
    inside = (part("x", 2, parent="p"), part("p", topologyConstraint=on(RACK)))
    a = [
        kai.group("a", 3),
        kai.group("a", 9, on=on(RACK)),
        kai.group("a", 0),
        kai.group("a", 2, on=on("none")),
        kai.group("a", 2, on=on("rail", topology="gone")),
        kai.group("a", None, part("x", 2), part("y", 1, parent="absent")),
        kai.group("a", 4, on=on("blk", RACK)),
    ]
    b = [
        kai.group("b", 4),
        kai.group("b", None, part("x", 2), part("y", 1), minSubGroup=1),
        kai.group("b", None, *inside, part("y", 2, parent="p"), on=on(BLOCK)),
        kai.group("b", None, *apart, minSubGroup=1),
        kai.group("b", None, *apart, on=on(BLOCK)),
    ]
    its = [kai.member(f"a{at}", of="a", gpus=1) for at in range(4)]
    its += [kai.member(f"{name}{at}", name, of="b", gpus=1) for name in "xy" for at in range(2)]
    kinds = ("Topology.kai.scheduler", pods)
    return Story(
        (*LISTED, *kinds),
        NODES,
        [(kinds[0], net), (kinds[0], rail), (pods, a), (pods, b)],
        its,
        {"blk": BLOCK},
        {"levels": ()},
    )


def of_grove():
    part, on, gang = grove.pod_group, grove.within, grove.gang
    levels = (BLOCK, RACK, HOST)
    kinds = ("ClusterTopology", "ClusterTopologyBinding", "PodGang")
    topologies = [
        (
            kind,
            [
                grove.topology_record("grove-topology", *each, kind=kind)
                for each in (levels[1:], levels)
            ],
        )
        for kind in kinds[:2]
    ]
    both = (grove.together("t", "x", "y", on=on(RACK)),)
    a = [
        gang("a", part("x", 2), part("y", 1)),
        gang("a", part("x", 5), part("y", 1)),
        gang("a", part("y", 1)),
        gang("a", part("x", 1), part("x", 1)),
        gang("a", part("x", 0), part("y", 2), on=on(RACK), topology=""),
        gang("a", part("x", 2, on(RACK)), part("y", 2, on("", RACK)), on=on(BLOCK)),
        gang("a", part("x", 2), part("y", 2), groups=both, on=on(BLOCK)),
    ]
    b = [
        gang("b", part("x", 2, names=("c0",))),
        gang("b", part("x", 3), on=on("none")),
        gang("b", part("z", 1)),
        gang("b", part("x", 2, on(RACK))),
    ]
    c = [
        gang("c", part("k", 1, names=("c0", "a-x0"))),
        gang("c", part("k", 1, names=("c0", "c1")), part("l", 1, names=("c1",))),
        gang("c", part("k", 2, names=("c0", "c1")), on=on(RACK)),
    ]
    of_set = {"app.kubernetes.io/part-of": "s", "grove.io/podcliqueset-replica-index": "0"}
    scaled = {**of_set, "grove.io/base-podgang": "a"}
    its = [
        grove.member(f"a-{name}{at}", name, of="a", gpus=1, labels=of_set)
        for name in "xy"
        for at in range(2)
    ]
    its += [grove.member(f"b{at}", "x", of="b", gpus=1, labels=scaled) for at in range(2)]
    its += [pod(f"c{at}", gpus=1) for at in range(2)]
    gangs = [(kinds[2], each) for each in (a, b, c)]
    return Story((*LISTED, *kinds), NODES, [*topologies, *gangs], its, {}, {"levels": ()})


def of_kubernetes():
    group = partial(native.group, api=native.BETA)
    a = [
        group("a", 2),
        group("a", 9),
        group("a"),
        group("a", 4, key="none"),
        group("a", 0),
        group("a", 2, annotations={TOGETHER: BLOCK}),
        inner("a", 3),
        group("a", 4, key=RACK),
    ]
    b = [
        inner("b", None),
        group("b", 2),
        inner("b", 5),
        inner("b", 2, "other"),
        inner("b", 2, key=RACK),
    ]
    c = [inner("c", 2), inner("c", 2, "other"), inner("c", 2, key=RACK), inner("c", 2, "sub")]
    around = [
        composite("all", 1),
        composite("all", None),
        composite("all", 3),
        composite("all", 2, inside="sub"),
        composite("all", 2, annotations={TOGETHER: BLOCK}),
        composite("all", 2, key=BLOCK),
    ]
    sub = [
        composite("sub", 1),
        composite("sub", 1, inside="sub"),
        composite("sub", 0, inside="all"),
        composite("sub", 2, inside="all"),
        composite("sub", 1, inside="all", key=RACK),
    ]
    its = [
        native.member(f"{name}{at}", name, gpus=1)
        for name, pods in (("a", 4), ("b", 2), ("c", 2))
        for at in range(pods)
    ]
    objects = [(native.KIND, each) for each in (a, b, c)] + [
        (COMPOSITE, each) for each in (around, sub)
    ]
    kinds = (*LISTED, native.KIND, COMPOSITE)
    return Story(kinds, NODES, objects, its, {}, {"native_pod_groups": "on"})


def volcanos_queue(gpus=None, state="Open"):
    spec = {} if gpus is None else {"capability": {GPU: gpus}}
    made = {"metadata": {"name": "default", "uid": "q"}, "spec": spec, "status": {"state": state}}
    return decode_queue(msgspec.json.encode(made))


def of_vc():
    kinds = ("HyperNode", "PodGroup.scheduling.volcano.sh", "Queue.scheduling.volcano.sh")
    hyper_nodes = [
        [
            record(f"s{rack}", 2, exact("Node", f"n{rack}0")),
            record(f"s{rack}", 1, exact("Node", f"n{rack}0", f"n{rack}1", "n00")),
            record(f"s{rack}", 1, by_pattern(".*")),
            record(f"s{rack}", 1, exact("Node", f"n{rack}0", f"n{rack}1")),
        ]
        for rack in range(4)
    ]
    hyper_nodes += [
        [
            record(f"t{at}", 2, exact("HyperNode", "s0", f"t{1 - at}")),
            record(f"t{at}", 1, exact("HyperNode", f"t{at}")),
            record(f"t{at}", 3, exact("HyperNode", f"s{2 * at}", f"s{2 * at + 1}")),
            record(f"t{at}", 2, by_pattern("n.*")),
            record(f"t{at}", 2, exact("HyperNode", f"s{2 * at}", f"s{2 * at + 1}")),
        ]
        for at in range(2)
    ]
    queues = [
        volcanos_queue(3),
        volcanos_queue(state="Closed"),
        volcanos_queue(1),
        volcanos_queue(),
    ]
    policy = sub_group("worker", 2, min_sub_groups=2, topology=network_topology(1))
    a = [
        of_volcano(2, name="a"),
        of_volcano(9, name="a", minResources={GPU: 9}),
        of_volcano(0, name="a", minResources={GPU: 1}),
        of_volcano(2, name="a", tier=7),
        of_volcano(3, name="a", topology=network_topology(tier_name="none")),
        of_volcano(3, name="a", tasks={"worker": 3, "ps": 1}),
        of_volcano(4, name="a", tier=2, minResources={GPU: 2}),
        of_volcano(4, name="a", tier=1),
    ]
    b = [
        of_volcano(4, name="b"),
        of_volcano(4, policy, name="b"),
        of_volcano(1, sub_group("worker", 3), name="b"),
        of_volcano(4, sub_group("worker", 1, labels={}, keys=["zone"]), name="b"),
        of_volcano(4, policy, name="b", tier=1),
        of_volcano(4, sub_group("worker", 0), name="b"),
        of_volcano(4, policy, name="b", tier=2),
    ]
    its = [
        pod(f"{name}{at}", gpus=1, labels=labels, annotations={GROUP_NAME: name})
        for name in "ab"
        for at in range(4)
        for labels in ({TASK: "worker", **({PARTITION: str(at // 2)} if name == "b" else {})},)
    ]
    objects = [(kinds[0], each) for each in hyper_nodes]
    objects += [(kinds[1], a), (kinds[1], b), (kinds[2], queues)]
    return Story((*LISTED, *kinds), NODES, objects, its, {}, {"levels": ()})


def check_volcano(cluster):
    """The tiers, which are no labels; and what is told of them, and of the PodGroups."""
    on = {each.name: each.node[:2] for each in cluster.api["Pod"].values()}
    assert len({on[f"a{at}"] for at in range(4)}) == 1
    assert (on["b0"], on["b2"]) == (on["b1"], on["b3"])
    assert len({on[f"b{at}"] in ("n0", "n1") for at in range(4)}) == 1
    for each in cluster.api["PodGroup.scheduling.volcano.sh"].values():
        assert (each.phase, each.counted) == ("Running", (4, 0, 0))
    for each in cluster.api["HyperNode"].values():
        assert (each.condition[0], each.node_count) == ("True", 2 if each.name[0] == "s" else 4)


def check_kai(cluster):
    said = [each.conditions for each in cluster.api["PodGroup.scheduling.run.ai"].values()]
    assert not [one for its in said for one in its if one["status"] == "True"]


def check_grove(cluster):
    for each in cluster.api["PodGang"].values():
        said = {one["type"]: one["status"] for one in each.conditions}
        assert (each.phase, said["Scheduled"]) == ("Running", "True")


def check_kubernetes(cluster):
    for kind in (native.KIND, COMPOSITE):
        for each in cluster.api[kind].values():
            assert [one["status"] for one in each.conditions] == ["True"]


STORIES = [
    pytest.param(of_kai, check_kai, id="kai"),
    pytest.param(of_grove, check_grove, id="grove"),
    pytest.param(of_kubernetes, check_kubernetes, id="native"),
    pytest.param(of_vc, check_volcano, id="volcano"),
]


def play(story, check, seed):
    cluster = LateCluster(story(), seed)
    for _ in range(60):
        cluster.step()
    cluster.check_restart()
    cluster.check_end()
    check(cluster)
    cluster.check_nothing_is_left()


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(FEW))
@pytest.mark.parametrize(("story", "check"), STORIES)
def test_whatever_comes_late_or_anew_gangs_start_whole_and_nothing_is_left(story, check, seed):
    play(story, check, seed)


@pytest.mark.slow
@pytest.mark.thorough
@pytest.mark.parametrize("seed", range(FEW, MANY))
@pytest.mark.parametrize(("story", "check"), STORIES)
def test_the_same_of_many_histories(story, check, seed):
    play(story, check, seed)
