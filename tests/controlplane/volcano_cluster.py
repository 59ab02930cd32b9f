"""A cluster of eight nodes in HyperNodes, and what Volcano's objects say of their pods there.

     s4              s5         tier 2
  ┌───┴───┐      ┌───┴───┐
  s0      s1     s2      s3     tier 1
n0 n1   n2 n3   n4 n5   n6 n7   eight GPUs each; their rack has the name of their leaf
"""

from __future__ import annotations

from tests.app.dialects.volcano.objects import exact
from tests.cluster import RACK, Cluster, Object, node
from tests.controlplane.plane import ControlPlane
from tests.controlplane.test_hyper_nodes import stored
from tests.controlplane.volcano import JOB, POD_GROUP

SOON = 15.0
LEAVES = {f"s{at}": (f"n{2 * at}", f"n{2 * at + 1}") for at in range(4)}
LEAF_OF = {name: leaf for leaf, names in LEAVES.items() for name in names}
SPINES = {"s4": ("s0", "s1"), "s5": ("s2", "s3")}
SPINE_OF = {leaf: spine for spine, leaves in SPINES.items() for leaf in leaves}


def build(plane: ControlPlane, cluster: Cluster) -> None:
    """Eight nodes of eight GPUs: four HyperNodes of tier 1, two of tier 2."""
    plane.nodes([node(name, gpus=8, labels={RACK: leaf}) for name, leaf in LEAF_OF.items()])
    for leaf, names in LEAVES.items():
        cluster.create(stored(leaf, 1, exact("Node", *names)))
    for spine, leaves in SPINES.items():
        cluster.create(stored(spine, 2, exact("HyperNode", *leaves)))


def phase_of(cluster: Cluster, name: str) -> str:
    state = (cluster.get(JOB, name) or {}).get("status", {}).get("state", {})
    return str(state.get("phase", ""))


def group_of(cluster: Cluster, owner: str) -> Object:
    for each in cluster.list(POD_GROUP, "default"):
        if any(one["name"] == owner for one in each["metadata"].get("ownerReferences", ())):
            return each
    return {}


def written_phase(cluster: Cluster, owner: str) -> str:
    return str(group_of(cluster, owner).get("status", {}).get("phase", ""))


def bound(cluster: Cluster, owner: str) -> dict[str, str]:
    return {name: on for name, on in cluster.bound().items() if name.startswith(f"{owner}-")}


def uids(cluster: Cluster, owner: str) -> dict[str, str]:
    """The pods of a vcjob that are bound: uid -> node."""
    pods = (each for each in cluster.list("Pod", "default") if each["spec"].get("nodeName"))
    return {
        each["metadata"]["uid"]: each["spec"]["nodeName"]
        for each in pods
        if each["metadata"]["name"].startswith(f"{owner}-")
    }
