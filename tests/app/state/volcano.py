"""The cluster that Volcano's design draws, and gangs of PodGroups on it.

ClusterTopHyperNode ─┬─ HyperNode4 ─┬─ HyperNode0: n0 n1        tier 3, 2, 1
                     │              └─ HyperNode1: n2 n3
                     └─ HyperNode5 ─┬─ HyperNode2: n4 n5
                                    └─ HyperNode3: n6 n7
"""

from __future__ import annotations

import msgspec

from app.kube.watch.events import Listed
from tests.app.dialects.volcano.objects import exact, record
from tests.app.dialects.volcano.workloads import GROUP_NAME, PARTITION, TASK, network_topology
from tests.app.state.histories.test_pod_groups import KINDS
from tests.app.state.world import World
from tests.records import node, pod

HYPER_NODES = (
    record("HyperNode0", 1, exact("Node", "n0", "n1")),
    record("HyperNode1", 1, exact("Node", "n2", "n3")),
    record("HyperNode2", 1, exact("Node", "n4", "n5")),
    record("HyperNode3", 1, exact("Node", "n6", "n7")),
    record("HyperNode4", 2, exact("HyperNode", "HyperNode0", "HyperNode1")),
    record("HyperNode5", 2, exact("HyperNode", "HyperNode2", "HyperNode3")),
)
TOP = "ClusterTopHyperNode"
TIER_1, TIER_2, TIER_3 = map(network_topology, (1, 2, 3))
SOFT = network_topology(mode="soft")


def cluster(*pods, gpus=1, hyper_nodes=HYPER_NODES):
    """Eight nodes, and pods that are there before their PodGroup is."""
    world = World([node(f"n{at}", gpus=gpus) for at in range(8)], pods, kinds=KINDS, levels=())
    world.apply(Listed("HyperNode", tuple(hyper_nodes)))
    world.apply(Listed("Job.batch.volcano.sh", ()))
    world.apply(Listed("PodGroup.scheduling.volcano.sh", ()))
    return world


def workers(names, partition="", *, group="pg", task="worker", **more):
    """Pods of a PodGroup that ask for one GPU each, by their names: "a b c"."""
    labels = {TASK: task, **({PARTITION: partition} if partition else {})}
    its = {GROUP_NAME: group}
    return [pod(name, gpus=1, labels=labels, annotations=its, **more) for name in names.split()]


def started(world, *things):
    """These PodGroups and pods come, and kube-scheduler tries all pods until no more start.

    The nodes of the pods of PodGroups, by name.
    """
    world.put(*things)
    for _ in range(4):
        world.tick(1.0)
        its = [each for each in world.pods.values() if GROUP_NAME in each.annotations]
        on = world.schedule(*its)
    return on


def around(nodes):
    """The narrowest HyperNode of the picture that has all these nodes."""
    numbers = [int(name.removeprefix("n")) for name in nodes]
    for width, first in ((2, 0), (4, 4)):
        found = {number // width for number in numbers}
        if len(found) == 1:
            return f"HyperNode{first + found.pop()}"
    return TOP


def cordon(world, *names):
    for name in names:
        there = world.engine.books.nodes[name]
        world.put(msgspec.structs.replace(there, is_unschedulable=True))


def fill(world, **gpus):
    """Pods of others, with so many GPUs on each of these nodes."""
    for name, used in gpus.items():
        world.put(pod(f"other-{name}", gpus=used, on=name, phase="Running"))
