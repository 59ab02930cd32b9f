"""PodGroups of KAI's: what a workload writes into its own, and what one says."""

from __future__ import annotations

from dataclasses import replace

from app.kube.core.objects import PodRecord
from tests.sim.api import KAI_GROUP
from tests.sim.kai.tree import KIND
from tests.sim.native.pod_group import NativeGroup, Policy, Words
from tests.sim.objects import Json

GROUP_NAME = "pod-group-name"  # annotation of a pod
TOPOLOGY = "net"


def spec(policy: Policy) -> Json:
    """As the PodGroup has it; where any pod may start, it needs one."""
    said: Json = {"minMember": 1 if policy.least is None else policy.least, "queue": "q"}
    if policy.key:
        said["topologyConstraint"] = {"topology": TOPOLOGY, "requiredTopologyLevel": policy.key}
    return said


def group_of(body: Json) -> NativeGroup:
    """What the JSON of a PodGroup says."""
    metadata, said = body["metadata"], body["spec"]
    key = said.get("topologyConstraint", {}).get("requiredTopologyLevel", "")
    its = metadata["name"], metadata["uid"], metadata["generation"]
    return NativeGroup(*its, said["minMember"], key, {})


def group_name_of(pod: PodRecord) -> str:
    """The PodGroup of a pod; "": none."""
    return pod.annotations.get(GROUP_NAME, "")


NO_CONDITION = "no condition of these is judged"
WORDS = Words(
    "kai",
    KAI_GROUP,
    "kaigroup",
    NO_CONDITION,
    spec,
    group_of,
    group_name_of,
    repairs_together=True,
)
PARTS_WORDS = replace(WORDS, workload=KIND)
