"""A valid object of each kind that has fields of its own, and pods that belong to them."""

from __future__ import annotations

from typing import Any

from app.dialects.provisioning import keys
from app.dialects.spec import GangKey
from tests.app.dialects.grove import objects as grove
from tests.app.dialects.kai import objects as kai
from tests.app.dialects.native import composites
from tests.app.dialects.native import objects as native
from tests.app.dialects.volcano import objects as hyper_nodes
from tests.app.dialects.volcano import workloads as volcano
from tests.autoscaling.objects import pod_template, provisioning_request
from tests.cluster import BLOCK, GPU, RACK, pod

Json = dict[str, Any]
_GANG_UID = keys.gang_uid(GangKey("default", "g", "group"))


def of_kinds() -> dict[str, Json]:
    """By kind, as `Resource.kind` has it; made anew each time."""
    within = volcano.network_topology(1)
    asked = _ours(provisioning_request("x", {"t": 2}), keys.request_name(_GANG_UID, 1))
    template = _ours(pod_template("x", requests={GPU: 1}), f"corral-{_GANG_UID}-0")
    return {
        "HyperNode": hyper_nodes.hyper_node("h", 1, _hyper_node_members()),
        "Queue.scheduling.volcano.sh": volcano.queue("q", capability={GPU: "8"}),
        "PodGroup.scheduling.volcano.sh": volcano.pod_group(
            "of-volcano",
            2,
            tasks={"w": 2},
            queue="q",
            topology=within,
            sub_groups=[volcano.sub_group("w", 1, min_sub_groups=1, topology=within)],
            minResources={GPU: "2"},
        ),
        "Job.batch.volcano.sh": volcano.vcjob(
            "of-volcano",
            volcano.task("w", 2, requests={GPU: 1}, partitionPolicy=volcano.partition_policy(2, 1)),
            networkTopology=within,
        ),
        "PodGroup.scheduling.run.ai": kai.pod_group(
            "of-kai",
            None,
            kai.sub_group("a", topologyConstraint=kai.within(BLOCK)),
            kai.sub_group("b", 1, "a", topologyConstraint=kai.within(RACK)),
            on=kai.within(preferred=BLOCK),
        ),
        "Topology.kai.scheduler": kai.topology("net", BLOCK, RACK, aliases=("block",)),
        "PodGang": grove.pod_gang(
            "of-grove",
            grove.pod_group("a", 1, grove.within(RACK), names=["of-grove-0"]),
            grove.pod_group("b", 1, names=["of-grove-1"]),
            groups=(grove.together("c", "a", on=grove.within(BLOCK)),),
            on=grove.within(preferred=BLOCK),
        ),
        "ClusterTopology": grove.cluster_topology("grove-topology", BLOCK, RACK),
        "ClusterTopologyBinding": grove.cluster_topology(
            "grove-topology", BLOCK, RACK, kind="ClusterTopologyBinding"
        ),
        "PodGroup.scheduling.k8s.io": native.pod_group(
            "of-native", 1, key=RACK, api=native.BETA, parentCompositePodGroupName="all"
        ),
        "CompositePodGroup": composites.composite_object("all", 1, key=BLOCK),
        keys.KIND: asked,
        keys.TEMPLATE_KIND: template,
    }


def members_of() -> list[Json]:
    """Pods of these, as their controllers make them."""
    in_group = {"schedulingGroup": {"podGroupName": "of-native"}}
    labels = {grove.POD_GANG: "of-grove", grove.POD_CLIQUE: "a"}
    of_task = {volcano.TASK: "w", volcano.PARTITION: "0"}
    in_sub_group = {kai.SUB_GROUP: "b"}
    asked = {"requests": {GPU: 1}}
    return [
        pod(
            "of-volcano-0",
            labels=of_task,
            annotations={volcano.GROUP_NAME: "of-volcano", volcano.TASK: "w"},
            **asked,
        ),
        pod("of-kai-0", labels=in_sub_group, annotations={kai.GROUP_NAME: "of-kai"}, **asked),
        pod("of-grove-0", labels=labels, gates=[grove.GATE], **asked),
        pod("of-native-0", **in_group, **asked),
        pod("asks", annotations={keys.CLASS: "a.b", keys.CONSUME: "r"}, **asked),
    ]


def _hyper_node_members() -> list[Json]:
    return [
        *hyper_nodes.exact("Node", "n0"),
        *hyper_nodes.by_pattern("^n[0-9]$"),
        *hyper_nodes.by_labels({"key": RACK, "operator": "Exists"}, **{BLOCK: "b0"}),
        *hyper_nodes.exact("HyperNode", "h0"),
    ]


def _ours(thing: Json, name: str) -> Json:
    thing["metadata"] |= {"name": name, "labels": {keys.GANG_UID: _GANG_UID}}
    return thing
