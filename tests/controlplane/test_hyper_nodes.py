"""HyperNodes on the real control plane: gangs in their tiers, and what is written on them.

With the definition that Corral ships, and with Volcano's own.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.app.dialects.volcano.objects import by_labels, by_pattern, exact, hyper_node
from tests.cluster import BLOCK, GPU, RACK, Cluster, Object, Refused, collection, node, pod
from tests.controlplane.kinds import SERVED_SECONDS, definition, is_undefined
from tests.controlplane.plane import ROOT, ControlPlane
from tests.controlplane.seen import START_SECONDS, clear
from tests.corral_process import CorralProcess, scheduled
from tests.workloads import asking, members

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

SHIPPED = ROOT / "deploy" / "hypernode-crd.yaml"
VERSION = "topology.volcano.sh/v1alpha1"
NAME = "hypernodes.topology.volcano.sh"
TIER = "topology.volcano.sh/tier-{}".format
SOON = 10.0


@pytest.fixture(params=["shipped", "volcano"])
def crd(cluster: Cluster, request: pytest.FixtureRequest) -> Iterator[str]:
    """The API server knows HyperNodes; afterwards neither them nor any of them."""
    is_shipped = request.param == "shipped"
    text = SHIPPED.read_text(encoding="utf-8")
    cluster.create(yaml.safe_load(text) if is_shipped else definition("HyperNode"))
    cluster.wait(partial(is_served, cluster), SERVED_SECONDS, "HyperNodes are served")
    yield request.param
    cluster.delete("CustomResourceDefinition", NAME)
    cluster.wait(partial(is_undefined, cluster, NAME), SERVED_SECONDS, "HyperNodes are gone")


def is_served(cluster: Cluster) -> bool:
    try:
        cluster.request("GET", collection("HyperNode", api_version=VERSION))
    except Refused:
        return False
    return True


def stored(name: str, tier: int, members: list[dict[str, Any]]) -> Object:
    made = hyper_node(name, tier, members)
    made["metadata"] = {"name": name}
    return made


def said_of(cluster: Cluster, name: str) -> tuple[int, str, str] | None:
    """(nodes, reason, status) as its status has them."""
    found = cluster.get("HyperNode", name)
    status = (found or {}).get("status", {})
    for condition in status.get("conditions", ()):
        if condition["type"] == "MembersResolved":
            return status["nodeCount"], condition["reason"], condition["status"]
    return None


def nodes_of(cluster: Cluster, gang: str) -> set[str]:
    return {node for pod, node in cluster.bound().items() if pod.startswith(f"{gang}-")}


def test_gangs_start_in_hyper_nodes_of_their_tier_and_follow_them(
    plane: ControlPlane, cluster: Cluster, crd: str, tmp_path: Path
) -> None:
    plane.nodes([node(f"n{at}", gpus=8, labels={"leaf": "cd"[at % 2]}) for at in range(6)])
    cluster.create_all(
        [
            stored("s0", 1, exact("Node", "n0", "n1")),
            stored("s1", 1, by_pattern("^n[23]$")),
            stored("s2", 2, exact("HyperNode", "s0", "s1")),
        ]
    )
    with scheduled(plane, tmp_path, levels=()) as corral:
        fine = {"s0": 2, "s1": 2, "s2": 4}
        for name, nodes in fine.items():
            there = (nodes, "AllMembersResolved", "True")
            cluster.wait(lambda n=name, t=there: said_of(cluster, n) == t, SOON, f"{name}: {there}")

        start(cluster, "wide", 4, tier=2)
        assert nodes_of(cluster, "wide") == {"n0", "n1", "n2", "n3"}
        clear(cluster)
        start(cluster, "near", 2, tier=1)
        near = nodes_of(cluster, "near")
        assert near in ({"n0", "n1"}, {"n2", "n3"})

        # The rest of the nodes are in none; a label brings two of them together.
        cluster.create_all(gang("late", 3, tier=2))
        cluster.create(stored("s3", 2, by_labels(leaf="e")))
        cluster.wait(
            lambda: said_of(cluster, "s3") == (0, "AllMembersResolved", "True"), SOON, "s3"
        )
        assert nodes_of(cluster, "late") == set()
        plane.nodes([node("n6", gpus=8, labels={"leaf": "e"})])
        for name in ("n4", "n5"):
            cluster.patch("Node", name, {"metadata": {"labels": {"leaf": "e"}}})
        cluster.wait(lambda: len(nodes_of(cluster, "late")) == 3, START_SECONDS, "the late gang")
        assert nodes_of(cluster, "late") == {"n4", "n5", "n6"}
        count = (3, "AllMembersResolved", "True")
        cluster.wait(lambda: said_of(cluster, "s3") == count, SOON, "s3 has three nodes")

        # What cannot be is said; what runs stays where it is.
        cluster.create(stored("s4", 2, exact("HyperNode", "s0", "nobody")))
        taken = (0, "MemberTaken", "False")
        cluster.wait(lambda: said_of(cluster, "s4") == taken, SOON, "s4 is told")
        s4 = cluster.get("HyperNode", "s4")
        assert s4 is not None
        cluster.wait(lambda: cluster.events(s4), SOON, "the event")
        told = [(each["reason"], each["message"]) for each in cluster.events(s4)]
        assert told == [("MemberTaken", "s0 is a member of s2 already; and 1 more")]
        cluster.delete("HyperNode", "s0")
        gone = (2, "MemberNotFound", "False")
        cluster.wait(lambda: said_of(cluster, "s2") == gone, SOON, "s2 is told")
        assert nodes_of(cluster, "near") == near
        assert corral.bugs() == {}


@pytest.mark.usefixtures("crd")
def test_hyper_nodes_made_from_labels_are_taken_and_hold_a_gang_together(
    plane: ControlPlane, cluster: Cluster, tmp_path: Path
) -> None:
    """Each rack has the name of another one in the other block; they are two HyperNodes."""
    plane.nodes(
        [
            node(f"n{at}", gpus=8, labels={BLOCK: f"b{at // 4}", RACK: f"r{at // 2 % 2}"})
            for at in range(8)
        ]
    )
    kubeconfig = plane.kubeconfig("corral")
    written = printed(
        "topology",
        "generate",
        "hypernodes",
        f"--levels={BLOCK},{RACK}",
        f"--kubeconfig={kubeconfig}",
    )
    cluster.create_all(yaml.safe_load_all(written))
    shown = printed("topology", f"--kubeconfig={kubeconfig}")
    assert [line.split()[-1] for line in shown.splitlines()[1:]] == [*"8422422"]
    with CorralProcess(kubeconfig, tmp_path, levels=()) as corral:
        plane.start_scheduler(extender=corral.url)
        for tier, pods in ((1, 2), (2, 4)):
            start(cluster, f"tier{tier}", pods, tier=tier)
        on = {name: nodes_of(cluster, name) for name in ("tier1", "tier2")}
        assert on["tier1"] in [{f"n{at}", f"n{at + 1}"} for at in range(0, 8, 2)]
        assert on["tier2"] in [{f"n{at + each}" for each in range(4)} for at in (0, 4)]
        assert corral.bugs() == {}


@pytest.mark.parametrize("crd", ["shipped"], indirect=True)
@pytest.mark.usefixtures("crd")
def test_hyper_nodes_are_kept_as_the_labels_of_nodes_are(
    plane: ControlPlane, cluster: Cluster, tmp_path: Path
) -> None:
    """Two racks of two nodes and two of one; the name of the last is taken by a stranger."""
    racks = ("b0/r0", "b0/r0", "b0/r1", "b0/r1", "b1/r0", "b1/r1")
    for at, rack in enumerate(racks):
        block, _, name = rack.partition("/")
        plane.nodes([node(f"n{at}", gpus=8, labels={BLOCK: block, RACK: name})])
    foreign = stored("hypernode-b1.r1", 1, by_pattern("^other"))
    cluster.create(foreign)
    before = {
        "hypernode-b0": {"hypernode-b0.r0", "hypernode-b0.r1"},
        "hypernode-b0.r0": {"n0", "n1"},
        "hypernode-b0.r1": {"n2", "n3"},
        "hypernode-b1": {"hypernode-b1.r0", "hypernode-b1.r1"},
        "hypernode-b1.r0": {"n4"},
    }
    kubeconfig = plane.kubeconfig("corral")
    settings = {"hyper_nodes_from": f"{BLOCK},{RACK}"}
    with (
        plane.granted("corral-hypernodes"),
        CorralProcess(kubeconfig, tmp_path, levels=(), **settings) as corral,
    ):
        plane.start_scheduler(extender=corral.url)
        cluster.wait(lambda: members_of(cluster) == before, SOON, "a HyperNode for each domain")
        cluster.delete("Node", "n4")  # the last of its rack
        cluster.patch("Node", "n1", {"metadata": {"labels": {RACK: "r9"}}})
        after = {
            "hypernode-b0": {"hypernode-b0.r0", "hypernode-b0.r1", "hypernode-b0.r9"},
            "hypernode-b0.r0": {"n0"},
            "hypernode-b0.r1": {"n2", "n3"},
            "hypernode-b0.r9": {"n1"},
            "hypernode-b1": {"hypernode-b1.r1"},
        }
        within_grace = {**after, "hypernode-b1.r0": {"n4"}}
        cluster.wait(lambda: members_of(cluster) == within_grace, SOON, "n1 is in its new rack")
        start(cluster, "near", 2, tier=1)
        assert nodes_of(cluster, "near") == {"n2", "n3"}
        cluster.wait(lambda: members_of(cluster) == after, 2 * SOON, "the empty rack is gone")
        kept = cluster.get("HyperNode", "hypernode-b1.r1")
        assert kept is not None
        assert kept["spec"] == foreign["spec"]
        assert corral.metric("corral_kept_notes") == 1
        written = {
            each: corral.metric(f'corral_kept_objects_total{{outcome="{each}"}}')
            for each in ("made", "changed", "deleted", "failed")
        }
        assert written == {"made": 6, "changed": 3, "deleted": 1, "failed": 0}
        assert corral.bugs() == {}


def members_of(cluster: Cluster) -> dict[str, set[str]]:
    """The members by name of each HyperNode of ours."""
    return {
        each["metadata"]["name"]: {
            member["selector"]["exactMatch"]["name"] for member in each["spec"]["members"]
        }
        for each in cluster.list("HyperNode")
        if "labels" in each["metadata"]
    }


@pytest.mark.parametrize("crd", ["shipped"], indirect=True)
@pytest.mark.usefixtures("crd")
def test_ordinary_pods_go_to_the_hyper_node_that_is_fuller_by_volcanos_weights(
    plane: ControlPlane, cluster: Cluster, tmp_path: Path
) -> None:
    """By cores that is s0, by GPUs s1; kube-scheduler alone would go to the emptiest nodes."""
    plane.nodes([node(f"n{at}", gpus=8) for at in range(6)])
    cluster.create_all(
        stored(f"s{at}", 1, exact("Node", f"n{2 * at}", f"n{2 * at + 1}")) for at in range(3)
    )
    cluster.create(pod("cores", requests={"cpu": 16}, nodeName="n0"))
    cluster.create(pod("gpus", requests={"cpu": 1, GPU: 6}, nodeName="n2"))
    conf = tmp_path / "volcano-scheduler.conf"
    conf.write_text("tiers: [{plugins: [{name: network-topology-aware}]}]", encoding="utf-8")
    with scheduled(plane, tmp_path, levels=(), volcano_scheduler_conf=str(conf)) as corral:
        for at in range(3):
            name = f"plain-{at}"
            cluster.create(pod(name, requests={"cpu": 1, GPU: 1}))
            cluster.wait(lambda n=name: n in cluster.bound(), START_SECONDS, f"{name} is bound")
        assert nodes_of(cluster, "plain") <= {"n0", "n1"}
        assert corral.bugs() == {}


def printed(*arguments: str) -> str:
    """What corral's command line prints."""
    command = [sys.executable, "-m", "app", *arguments]
    return subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout


def gang(name: str, pods: int, *, tier: int) -> list[Object]:
    made = members(name, pods, requests={GPU: 8}, annotations=asking(required=TIER(tier)))
    return list(made)


def start(cluster: Cluster, name: str, pods: int, *, tier: int) -> None:
    cluster.create_all(gang(name, pods, tier=tier))
    cluster.wait(lambda: len(nodes_of(cluster, name)) == pods, START_SECONDS, f"{name} starts")
