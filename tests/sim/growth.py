"""What a seed draws of a cluster that grows and shrinks: its node groups, and who watches them.

    rack r0 of three nodes    static: n00, n01, n02 are there from the beginning, as in any world
    rack r1 of four nodes     a group of up to four machines: g1-0, g1-1, …
    besides                   groups that some pods, or none at all, can use

So a cluster that is fully grown is the one that the seed has without this. Half of the seeds begin
with no node at all. The largest rack is always a group: whatever needs the whole of a domain needs
nodes that are not there. Pods that name a group (`GROUP`) have one rack to grow in.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from random import Random
from typing import Any

from tests.autoscaling.cluster_autoscaler.loop import LOOP_SECONDS, ClusterAutoscaler, Settings
from tests.autoscaling.karpenter import Karpenter
from tests.autoscaling.machines.groups import NodeGroup
from tests.autoscaling.small import Autoscaler
from tests.cluster import Object
from tests.records import BLOCK, GPU, RACK
from tests.sim.kinds import POOL

GROUP = "node-group"  # label of every node of a group: its name
ZERO_SHARE = 0.5  # of the seeds: no rack is there from the beginning
STATIC_SHARE = 0.4  # of the racks in the others
KARPENTER_SHARE = 0.25  # of the seeds
LATE_LABELS_SHARE = 0.5  # of the groups: levels are labelled after the node has registered
UNTAGGED_SHARE = 0.3  # of these: the template has no labels of levels either
MINIMUM_SHARE = 0.2  # of the groups of cluster-autoscaler: one machine stays
PROVISION_SECONDS = 60.0  # longer than any machine of the groups here takes to register
MOST_LABEL_SECONDS, MOST_DEVICE_SECONDS, MOST_READY_SECONDS = 15.0, 20.0, 8.0
MOST_REGISTER_SECONDS, MOST_LATE_SECONDS = 15.0, 20.0
RESERVED: Object = {"key": "example.com/reserved", "value": "", "effect": "NoSchedule"}
OTHERS = ("no devices", "reserved", "small", "spread")


@dataclass(frozen=True, slots=True)
class Growth:
    """Of one seed. `settings`: of the engines."""

    rng: Random
    groups: tuple[NodeGroup, ...]
    static: frozenset[int]  # numbers of the racks whose nodes are there from the beginning
    settings: Mapping[str, Any]
    autoscaler: Autoscaler
    unneeded_seconds: float  # for which a node may be of no use before it goes

    @property
    def begins_empty(self) -> bool:
        """Whether there is no node at the beginning."""
        return not self.static

    @property
    def most_machines(self) -> int:
        return sum(each.max for each in self.groups)

    @property
    def largest(self) -> NodeGroup:
        """The group that is the largest rack."""
        return max((each for each in self.groups if is_rack(each)), key=lambda each: each.max)


def is_rack(group: NodeGroup) -> bool:
    """Whether all its machines are in one rack, with all the devices of a machine."""
    return GROUP in group.labels


def growth_of(seed: int, racks: tuple[int, ...], gpus: int) -> Growth:
    """How the cluster of this seed grows, which would have these racks otherwise."""
    rng = Random(f"growth {seed}")
    is_karpenter = rng.random() < KARPENTER_SHARE
    largest = racks.index(max(racks))
    static = frozenset[int]()
    if rng.random() >= ZERO_SHARE:
        others = [number for number in range(len(racks)) if number != largest]
        static = frozenset(number for number in others if rng.random() < STATIC_SHARE)
    groups = [
        _rack(rng, number, nodes, gpus, has_minimum=not is_karpenter)
        for number, nodes in enumerate(racks)
        if number not in static
    ]
    groups += [_other(rng, kind, gpus) for kind in OTHERS if rng.random() < 0.3]
    unneeded = rng.choice((15.0, 30.0, 60.0))
    cooling = rng.choice((0.0, 0.0, 30.0))
    if is_karpenter:
        autoscaler: Autoscaler = Karpenter(
            groups, consolidate_after=unneeded, register_within=PROVISION_SECONDS
        )
    else:
        settings = Settings(
            unneeded=unneeded,
            delay_after_add=cooling,
            drains=rng.random() < 0.6,
            provisioning_requests=False,
            provision=PROVISION_SECONDS,
            backoff=(20.0, 60.0),
        )
        autoscaler = ClusterAutoscaler(groups, settings)
    return Growth(
        rng,
        tuple(groups),
        static,
        {
            "needs_nodes_seconds": rng.choice((2.0, 10.0)),
            "needs_nodes_hold_seconds": rng.choice((10.0, 30.0, 60.0)),
            "needs_nodes_stall_seconds": 60.0,
            "node_settle_seconds": rng.choice((5.0, 60.0)),
        },
        autoscaler,
        unneeded + cooling,
    )


def most_seconds(growth: Growth) -> float:
    """From when a gang asks until all its nodes are whole, where nothing fails.

    The autoscaler may have given up a node of the gang's rack, and order another one in its next
    loop; a gang that fits once others leave asks after a while.
    """
    machine = (
        MOST_REGISTER_SECONDS
        + MOST_LATE_SECONDS
        + max(MOST_LABEL_SECONDS, MOST_DEVICE_SECONDS, MOST_READY_SECONDS)
    )
    patience: float = growth.settings["needs_nodes_seconds"]
    return patience + 3 * LOOP_SECONDS + machine


def _rack(rng: Random, number: int, nodes: int, gpus: int, *, has_minimum: bool) -> NodeGroup:
    """A group that is one rack."""
    name = f"g{number}"
    own = {GROUP: name, POOL: "a" if number % 2 == 0 else "b"}
    levels = {BLOCK: f"b{number // 2}", RACK: f"r{number}"}
    is_late = rng.random() < LATE_LABELS_SHARE
    is_tagged = rng.random() >= UNTAGGED_SHARE
    return NodeGroup(
        name,
        nodes,
        machine(gpus),
        labels=own if is_late else {**own, **levels},
        late_labels=(levels,) if is_late else (),
        tags={**own, **levels} if is_tagged else own,
        label_seconds=rng.uniform(1.0, MOST_LABEL_SECONDS) if is_late else 0.0,
        min=1 if has_minimum and rng.random() < MINIMUM_SHARE else 0,
        **_delays(rng),
    )


def _other(rng: Random, kind: str, gpus: int) -> NodeGroup:
    """A group that is no rack: some pods have no use for it, or none has."""
    most = rng.randint(1, 3)
    match kind:
        case "no devices":
            return NodeGroup("cpu", most, machine(0), **_delays(rng))
        case "reserved":
            labels = {BLOCK: "b8", RACK: "r8", POOL: "a"}
            taints = (RESERVED,)
            return NodeGroup("shut", 3, machine(gpus), labels, taints=taints, **_delays(rng))
        case "small":
            labels = {BLOCK: "b9", RACK: "r9", POOL: "b"}
            return NodeGroup("small", most, machine(1), labels, **_delays(rng))
    racks = tuple({BLOCK: "b7", RACK: rack} for rack in ("r6", "r7"))
    spread = {"late_labels": racks, "tags": {**racks[0], POOL: "a"}}
    late = rng.choice((0.0, rng.uniform(1.0, MOST_LABEL_SECONDS)))
    labels = {POOL: "a"}
    return NodeGroup(
        "spread", 4, machine(gpus), labels, label_seconds=late, **spread, **_delays(rng)
    )


def machine(gpus: int) -> dict[str, str]:
    """What a machine has."""
    devices = {GPU: str(gpus)} if gpus else {}
    return {"cpu": "64", "memory": "512Gi", "pods": "110", **devices}


def _delays(rng: Random) -> dict[str, Any]:
    return {
        "register_seconds": rng.uniform(1.0, MOST_REGISTER_SECONDS),
        "ready_seconds": rng.uniform(0.5, MOST_READY_SECONDS),
        "resource_seconds": rng.choice((0.0, rng.uniform(1.0, MOST_DEVICE_SECONDS))),
        "late_seconds": (0.0, 0.0, rng.uniform(0.0, MOST_LATE_SECONDS)),
    }
