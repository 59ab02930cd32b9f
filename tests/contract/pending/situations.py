"""The situations as data: what is in the cluster, what is said of gang `g`, and what helps.

A remedy does what the explanation says: it is given that explanation, and takes names, levels and
numbers from there wherever it can.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from app.state.ticks import EARMARK_SECONDS
from tests.cluster import BLOCK, GPU, RACK, Cluster, Object, Objects, grid, node, pod
from tests.workloads import GROUP, TOTAL, asking, members

ROLE_HASH = "kueue.x-k8s.io/role-hash"
FOREIGN = "example.com/quota"
LEASE = {"namespace": "corral-system", "name": "corral"}
STRANGER = "another"  # a scheduler that nobody runs
IN_RACK = asking(required=RACK)

Make = Callable[[Cluster], None]
Help = Callable[[Cluster, Object], None]


@dataclass(frozen=True, slots=True)
class Situation:
    """`pods`: how many pods of `g` are bound in the end. `ask`: the name that is asked about."""

    name: str
    reason: str
    told: str
    make: Make
    remedy: Help
    pods: int = 4
    ask: str = "g"
    nodes: Objects = field(default_factory=lambda: grid(racks=2, nodes=4, gpus=8))
    settings: dict[str, Any] = field(default_factory=dict)
    first: str = ""
    """A reason that it has before …"""
    then: Make | None = None
    """… this is done."""
    is_told: bool = True
    """The sentence is in a condition of its pods or in an event about it."""

    def __str__(self) -> str:
        return self.name


# -- what is created -------------------------------------------------------------------------------


def gang(pods: int = 4, *, level: str = RACK, **more: Any) -> Objects:
    return members("g", pods, requests={GPU: 8}, annotations=asking(required=level), **more)


def filler(on: str, *, gpus: int = 8, **more: Any) -> Object:
    return pod(f"on-{on}", scheduler=STRANGER, requests={GPU: gpus}, **more)


def fill(cluster: Cluster, nodes: Iterable[str], **more: Any) -> None:
    for each in nodes:
        cluster.create(filler(each, **more))
        cluster.bind(f"on-{each}", each)


def racks(*numbers: int, nodes: int = 4) -> list[str]:
    return [f"b0-r{rack}-n{at}" for rack in numbers for at in range(nodes)]


def recreate(cluster: Cluster, pods: Objects) -> None:
    """As the owner of the pods would after its template has been corrected."""
    for each in cluster.list("Pod", "default"):
        if each["metadata"].get("annotations", {}).get(GROUP) == "g":
            cluster.delete("Pod", each["metadata"]["name"])
    cluster.create_all(pods)


def of(explanation: Object, kind: str) -> Object:
    """The relaxation of this kind."""
    found: Object = next(each for each in explanation["relaxations"] if each["kind"] == kind)
    return found


# -- wrong or unknown words ------------------------------------------------------------------------


def wrong_level() -> Situation:
    def make(cluster: Cluster) -> None:
        cluster.create_all(gang(level="example.com/rak"))

    return Situation(
        "wrong_level", "UnknownTopology", "example.com/rak", make,
        lambda cluster, said: recreate(cluster, gang()),
    )  # fmt: skip


def unknown_owner() -> Situation:
    owner = {
        "apiVersion": "example.com/v1", "kind": "Trainer", "name": "t", "uid": "u",
        "controller": True,
    }  # fmt: skip

    def pods(**more: str) -> Objects:
        found = [
            pod(f"g-{at}", requests={GPU: 8}, annotations={**IN_RACK, **more}) for at in range(4)
        ]
        for each in found:
            each["metadata"]["ownerReferences"] = [owner]
        return found

    def remedy(cluster: Cluster, said: Object) -> None:
        assert GROUP in said["gang"]["message"]
        assert TOTAL in said["gang"]["message"]
        for at in range(4):
            cluster.delete("Pod", f"g-{at}")
        cluster.create_all(pods(**{GROUP: "g", TOTAL: "4"}))

    return Situation(
        "unknown_owner", "Invalid", "Trainer t, whose size Corral does not read",
        lambda cluster: cluster.create_all(pods()) and None, remedy, ask="g-0",
    )  # fmt: skip


def another_scheduler() -> Situation:
    def remedy(cluster: Cluster, said: Object) -> None:
        ours = said["gang"]["message"].rpartition(" ")[2]
        recreate(cluster, gang(scheduler=ours))

    return Situation(
        "another_scheduler", "OtherScheduler", f"has the schedulerName {STRANGER}",
        lambda cluster: cluster.create_all(gang(scheduler=STRANGER)) and None, remedy,
        is_told=False,
    )  # fmt: skip


# -- waiting for others than Corral ----------------------------------------------------------------


def waiting_for_members() -> Situation:
    def remedy(cluster: Cluster, said: Object) -> None:
        assert said["gang"]["pods"]["declared"] == 4
        cluster.create_all(gang()[3:])

    return Situation(
        "waiting_for_members", "Incomplete", "waits until all 4 of its pods are there",
        lambda cluster: cluster.create_all(gang()[:3]) and None, remedy,
    )  # fmt: skip


def foreign_gate() -> Situation:
    def remedy(cluster: Cluster, said: Object) -> None:
        assert "gate" in said["advice"]
        for at in range(4):
            name = f"g-{at}"
            found = cluster.get("Pod", name)
            assert found is not None
            assert found["spec"]["schedulingGates"] == [{"name": FOREIGN}]
            cluster.patch("Pod", name, {"spec": {"schedulingGates": []}})

    return Situation(
        "foreign_gate", "Gated", "gate",
        lambda cluster: cluster.create_all(gang(gates=[FOREIGN])) and None, remedy,
        is_told=False,
    )  # fmt: skip


# -- waiting for room ------------------------------------------------------------------------------


def short_by_one() -> Situation:
    def make(cluster: Cluster) -> None:
        fill(cluster, ("b0-r0-n0", "b0-r1-n0", "b0-r1-n1"))
        cluster.create_all(gang())

    def remedy(cluster: Cluster, said: Object) -> None:
        assert (said["best"]["pods"], said["best"]["needed"]) == (3, 4)
        assert of(said, "FewerPods")["pods"] == 3
        (blocker,) = said["blockers"]
        cluster.delete("Pod", blocker["who"].partition("/")[2])

    return Situation("short_by_one", "DoesNotFit", "cannot be placed", make, remedy)


def fits_nowhere_even_empty() -> Situation:
    def remedy(cluster: Cluster, said: Object) -> None:
        assert of(said, "Never")
        wider = of(said, "WiderLevel")["level"]
        assert wider == BLOCK
        recreate(cluster, gang(5, level=wider))

    return Situation(
        "fits_nowhere_even_empty", "DoesNotFit", "cannot be placed",
        lambda cluster: cluster.create_all(gang(5)) and None, remedy, pods=5,
    )  # fmt: skip


def lower_priority() -> Situation:
    def make(cluster: Cluster) -> None:
        cluster.create(
            {"kind": "PriorityClass", "metadata": {"name": "pending-urgent"}, "value": 100,
             "globalDefault": False}
        )  # fmt: skip
        fill(cluster, racks(0, 1))
        cluster.create_all(gang(priorityClassName="pending-urgent"))

    def remedy(cluster: Cluster, said: Object) -> None:
        gone = of(said, "PodsGone")
        assert gone["pods"] == 4
        # It names the domain, and two of the pods.
        rack = gone["text"].partition("would fit in ")[2].partition(" ")[0].rpartition("/")[2]
        for name in racks(0, 1):
            if name.startswith(rack):
                cluster.delete("Pod", f"on-{name}")

    return Situation(
        "lower_priority", "DoesNotFit", "cannot be placed", make, remedy,
        settings={"bare_victims": True},
    )  # fmt: skip


def taint() -> Situation:
    dedicated = [{"key": "dedicated", "value": "x", "effect": "NoSchedule"}]

    def remedy(cluster: Cluster, said: Object) -> None:
        (excluded,) = [each for each in said["excluded"] if "taint" in each["reason"]]
        assert excluded["nodes"] == 4
        for each in excluded["examples"]:
            cluster.patch("Node", each, {"spec": {"taints": []}})
        for each in racks(0):
            cluster.patch("Node", each, {"spec": {"taints": []}})

    return Situation(
        "taint", "DoesNotFit", "taint",
        lambda cluster: cluster.create_all(gang()) and None, remedy,
        nodes=grid(racks=1, nodes=4, gpus=8, taints=dedicated),
    )  # fmt: skip


def cordon() -> Situation:
    nodes = grid(racks=1, nodes=3, gpus=8)
    labels = nodes[0]["metadata"]["labels"]
    closed = node("b0-r0-n3", gpus=8, is_unschedulable=True,
                  labels={key: labels[key] for key in (BLOCK, RACK)})  # fmt: skip

    def remedy(cluster: Cluster, said: Object) -> None:
        for each in of(said, "NodesBack")["nodes"]:
            cluster.patch("Node", each, {"spec": {"unschedulable": False}})

    return Situation(
        "cordon", "DoesNotFit", "cannot be placed",
        lambda cluster: cluster.create_all(gang()) and None, remedy, nodes=[*nodes, closed],
    )  # fmt: skip


def missing_label() -> Situation:
    nodes = [*grid(racks=1, nodes=3, gpus=8), node("lost", gpus=8)]

    def remedy(cluster: Cluster, said: Object) -> None:
        (excluded,) = [each for each in said["excluded"] if "lost" in each["examples"]]
        assert "label" in excluded["reason"]
        labels = nodes[0]["metadata"]["labels"]
        patch = {key: labels[key] for key in (BLOCK, RACK)}
        cluster.patch("Node", "lost", {"metadata": {"labels": patch}})

    return Situation(
        "missing_label", "DoesNotFit", "cannot be placed",
        lambda cluster: cluster.create_all(gang()) and None, remedy, nodes=nodes,
    )  # fmt: skip


def held_by_another() -> Situation:
    """The other one is placed, and kube-scheduler does not bring one of its pods."""

    def make(cluster: Cluster) -> None:
        claim = {"name": "v", "persistentVolumeClaim": {"claimName": "no-such-claim"}}
        other = members("other", 4, requests={GPU: 8}, annotations=IN_RACK)
        other[0]["spec"]["volumes"] = [claim]
        cluster.create_all(other)
        cluster.wait(lambda: len(cluster.list("Pod", "default")) == 4, 20.0, "the other gang")

    def late(cluster: Cluster) -> None:
        make(cluster)
        cluster.create_all(gang())

    def remedy(cluster: Cluster, said: Object) -> None:
        (blocker,) = [each for each in said["blockers"] if each["is_reserved"]]
        assert blocker["who"] == "gang default/other"
        for at in range(4):
            cluster.delete("Pod", f"other-{at}")

    return Situation(
        "held_by_another", "DoesNotFit", "cannot be placed", late, remedy,
        nodes=grid(racks=1, nodes=4, gpus=8),
    )  # fmt: skip


def earmarked() -> Situation:
    """An older gang waits for the rest of the only rack with a free node."""

    def make(cluster: Cluster) -> None:
        fill(cluster, [*racks(1, 2, 3), *racks(0)[1:]], restartPolicy="Never")  # they will end
        cluster.create_all(members("old", 4, requests={GPU: 8}, annotations=IN_RACK))
        time.sleep(EARMARK_SECONDS + 2.0)  # and starvation_seconds
        cluster.create_all(gang(1))

    def remedy(cluster: Cluster, said: Object) -> None:
        assert any("comes before it" in each["reason"] for each in said["excluded"])
        for at in range(4):
            cluster.delete("Pod", f"old-{at}")

    return Situation(
        "earmarked", "DoesNotFit", "comes before it", make, remedy, pods=1,
        nodes=grid(racks=4, nodes=4, gpus=8),
        settings={"starvation_seconds": 1.0, "earmarked_share": 0.3},
    )  # fmt: skip


def narrowed_elsewhere() -> Situation:
    """Its pods were narrowed to two racks, by a Corral before this one perhaps."""

    def narrowed(each: Object, names: list[str]) -> Object:
        terms = [
            {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [name]}]}
            for name in names
        ]
        required = {"nodeSelectorTerms": terms}
        each["spec"]["affinity"] = {
            "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}
        }
        each["metadata"]["annotations"] |= {"corral.dev/narrowed": "nodes", ROLE_HASH: "r"}
        return each

    def make(cluster: Cluster) -> None:
        cluster.create_all(narrowed(each, racks(at // 2)) for at, each in enumerate(gang()))

    return Situation(
        "narrowed_elsewhere", "NarrowedApart", "its pods were narrowed to different nodes", make,
        lambda cluster, said: recreate(cluster, gang()),
    )  # fmt: skip


def namespace_budget() -> Situation:
    fast = {"kueue.x-k8s.io/pod-group-fast-admission": "true"}

    def pods() -> Objects:
        return members("g", 40, requests={GPU: 1}, annotations=fast)

    def remedy(cluster: Cluster, said: Object) -> None:
        assert "pods that do not exist yet" in said["gang"]["message"]
        cluster.create_all(pods()[1:])  # then none of them is absent

    return Situation(
        "namespace_budget", "NamespaceBudget", "pods that do not exist yet",
        lambda cluster: cluster.create_all(pods()[:1]) and None, remedy, pods=40,
    )  # fmt: skip


# -- what kube-scheduler decides -------------------------------------------------------------------


def refused(name: str, kind: str, spec: Object) -> Situation:
    def make(cluster: Cluster) -> None:
        pods = gang()
        pods[0]["spec"] |= spec
        cluster.create_all(pods)

    def remedy(cluster: Cluster, said: Object) -> None:
        assert "volume or a resource claim" in said["advice"]
        assert said["awaited"] == ["default/g-0"]
        cluster.create(
            {"kind": kind, "metadata": {"name": "data", "namespace": "default"}, "spec": {}}
        )

    return Situation(
        name, "RefusedByScheduler", "kube-scheduler did not bring every member", make, remedy,
        settings={"hold_seconds": 1.0},
    )  # fmt: skip


def volume() -> Situation:
    claim = {"name": "v", "persistentVolumeClaim": {"claimName": "data"}}
    return refused("volume", "PersistentVolumeClaim", {"volumes": [claim]})


def resource_claim() -> Situation:
    claim = {"name": "gpu", "resourceClaimName": "data"}
    return refused("resource_claim", "ResourceClaim", {"resourceClaims": [claim]})


# -- Corral itself ---------------------------------------------------------------------------------


def stale_plan() -> Situation:
    """What its plan counted on was taken by a pod of another scheduler; it is planned again."""
    claim = {"name": "v", "persistentVolumeClaim": {"claimName": "data"}}

    def make(cluster: Cluster) -> None:
        pods = gang()
        pods[0]["spec"]["volumes"] = [claim]  # keeps it from starting at once
        cluster.create_all(pods)

    def remedy(cluster: Cluster, said: Object) -> None:
        assert said["retry_seconds"] < 60  # it passes by itself
        cluster.create(
            {"kind": "PersistentVolumeClaim", "metadata": {"name": "data", "namespace": "default"},
             "spec": {}}
        )  # fmt: skip

    return Situation(
        "stale_plan", "BackingOff", "lost its plan", make, remedy, is_told=False,
        first="AwaitingScheduler", then=lambda cluster: fill(cluster, racks(0)[:1]),
    )  # fmt: skip


def not_leading() -> Situation:
    def lease(holder: str) -> Object:
        return {
            "kind": "Lease", "metadata": dict(LEASE),
            "spec": {"holderIdentity": holder, "leaseDurationSeconds": 15,
                     "renewTime": "2026-01-01T00:00:00.000000Z"},
        }  # fmt: skip

    def make(cluster: Cluster) -> None:
        cluster.create({"kind": "Namespace", "metadata": {"name": LEASE["namespace"]}})
        cluster.create(lease("corral-1_x"))
        cluster.create_all(gang())

    def remedy(cluster: Cluster, said: Object) -> None:
        patch = {"spec": lease("corral-0_x")["spec"]}
        cluster.patch("Lease", "corral", patch, namespace="corral-system")

    return Situation(
        "not_leading", "NotLeading", "pod corral-1 holds Lease corral-system/corral", make, remedy,
        settings={"neighbour_lease": "corral-system/corral", "pod_name": "corral-0"},
        is_told=False,
    )  # fmt: skip


SITUATIONS = (
    wrong_level(),
    unknown_owner(),
    another_scheduler(),
    waiting_for_members(),
    foreign_gate(),
    short_by_one(),
    fits_nowhere_even_empty(),
    lower_priority(),
    taint(),
    cordon(),
    missing_label(),
    held_by_another(),
    earmarked(),
    narrowed_elsewhere(),
    namespace_budget(),
    stale_plan(),
    volume(),
    resource_claim(),
    not_leading(),
)
