"""Objects of each vocabulary: kind, input and bytes."""

from __future__ import annotations

from collections.abc import Iterator

from app.dialects.provisioning import keys as provisioning
from benchmarks.largest.written import (
    STORED,
    Json,
    a_template,
    as_many,
    containers,
    mapping,
    written,
)


def of_volcano() -> Iterator[tuple[str, str, bytes]]:
    """Kind, input and bytes: far beyond the bounds of a part, and just below them."""
    named = {"name": "a", "namespace": "b"}

    def made(kind: str, name: str, spec: object) -> tuple[str, str, bytes]:
        return kind, name, written({"metadata": named, "spec": spec})

    group, job = "PodGroup.scheduling.volcano.sh", "Job.batch.volcano.sh"
    keys = [f"k{at}" for at in range(8)]
    policy = {"name": "p" * 40, "matchLabelKeys": keys, "labelSelector": {"matchLabels": {}}}
    for policies in (30, 10_000):
        each = [{**policy, "name": f"p{at}"} for at in range(policies)]
        yield made(group, f"{policies} sub-group policies", {"subGroupPolicy": each})
    for tasks in (256, 100_000):
        least = {f"t{at}": 1 for at in range(tasks)}
        yield made(group, f"{tasks} tasks", {"minTaskMember": least})
    for resources in (64, 50_000):
        amounts = {f"example.com/r{at}": str(at) for at in range(resources)}
        yield made(group, f"{resources} resources", {"minResources": amounts})
        yield made("Queue.scheduling.volcano.sh", f"{resources} resources", {"capability": amounts})
    conditions = {"conditions": as_many(lambda at: {"type": "a"})}
    yield group, "conditions", written({"metadata": named, "spec": {}, "status": conditions})
    tasks = as_many(lambda at: {"name": f"t{at}", "replicas": 1, "template": a_template()})
    yield made(job, "tasks", {"schedulerName": "corral", "tasks": tasks})


def of_kai() -> Iterator[tuple[str, str, bytes]]:
    """The same of KAI's kinds."""
    named = {"name": "a", "namespace": "b"}
    group, level = "PodGroup.scheduling.run.ai", {"topology": "t", "requiredTopologyLevel": "l"}

    def made(name: str, sub_groups: list[Json]) -> tuple[str, str, bytes]:
        spec = {"topologyConstraint": level, "subGroups": sub_groups}
        return group, name, written({"metadata": named, "spec": spec})

    def leaf(at: int, **more: object) -> Json:
        return {"name": f"s{at}", "minMember": 1, "topologyConstraint": level, **more}

    for sub_groups in (256, 10_000):
        yield made(f"{sub_groups} sub-groups", [leaf(at) for at in range(sub_groups)])
    chain = [{"name": f"s{at}", "parent": f"s{(at + 1) % 256}"} for at in range(256)]
    yield made("256 sub-groups in a circle", chain)
    yield made("a name of 1 MB", [{"name": "s" * 1_000_000, "minMember": 1}])
    conditions = {"schedulingConditions": as_many(lambda at: {"type": "a"})}
    yield group, "conditions", written({"metadata": named, "spec": {}, "status": conditions})
    levels = as_many(lambda at: {"nodeLabel": f"l{at}", "alias": f"a{at}"})
    body = {"metadata": {"name": "a"}, "spec": {"levels": levels}}
    yield "Topology.kai.scheduler", "levels", written(body)


def of_native() -> Iterator[tuple[str, str, bytes]]:
    """The same of native PodGroups and what is around them, as if no API server had checked it."""
    named = {"name": "a", "namespace": "b"}
    keys = {"schedulingConstraints": {"topology": as_many(lambda at: {"key": "a"})}}
    conditions = {"conditions": as_many(lambda at: {"type": "a"})}
    for kind in ("PodGroup.scheduling.k8s.io", "CompositePodGroup"):
        yield kind, "conditions", written({"metadata": named, "spec": {}, "status": conditions})
        yield kind, "keys", written({"metadata": named, "spec": keys})
    gang = {"schedulingPolicy": {"gang": {"minGroupCount": 2}}}
    parent = {**gang, "parentCompositePodGroupName": "p" * STORED}
    yield (
        "CompositePodGroup",
        "a parent's name of 1.5 MB",
        written({"metadata": named, "spec": parent}),
    )


def of_provisioning() -> Iterator[tuple[str, str, bytes]]:
    """Requests for nodes, and templates, that are named as ours are; of others less is read."""
    uid = "0123456789abcdef"
    labels = {provisioning.GANG_UID: uid}
    named: Json = {"name": provisioning.request_name(uid, 1), "namespace": "b", "labels": labels}
    kind = provisioning.KIND
    for pod_sets in (512, 20_000):
        sets = [{"count": 1, "podTemplateRef": {"name": f"t{at}"}} for at in range(pod_sets)]
        spec = {"provisioningClassName": "a", "podSets": sets}
        yield kind, f"{pod_sets} pod sets", written({"metadata": named, "spec": spec})
    details = {"provisioningClassDetails": mapping(lambda at: f"d{at}")}
    yield kind, "details", written({"metadata": named, "spec": {}, "status": details})
    for each in ({"type": "Accepted", "status": "True"}, {"type": "Failed", "message": "m" * 900}):
        conditions = {"conditions": as_many(lambda at, each=each: each)}  # type: ignore[misc]
        name = f"conditions, {each['type']}"
        yield kind, name, written({"metadata": named, "spec": {}, "status": conditions})
    template = {
        "name": provisioning.template_name(named["name"], 0),
        "namespace": "b",
        "labels": labels,
    }
    owner = {"apiVersion": "v1", "kind": kind, "name": "a", "uid": "u"}
    owned = {**template, "ownerReferences": as_many(lambda at: owner)}
    yield provisioning.TEMPLATE_KIND, "owner references", written({"metadata": owned})
    many = {"spec": {"containers": containers(STORED, lambda at: {"cpu": f"{at}m"})}}
    yield (
        provisioning.TEMPLATE_KIND,
        "containers",
        written({"metadata": template, "template": many}),
    )


def of_grove() -> Iterator[tuple[str, str, bytes]]:
    """The same of Grove's kinds."""
    kind, named = "PodGang", {"name": "a", "namespace": "b"}

    def made(name: str, spec: Json) -> tuple[str, str, bytes]:
        return kind, name, written({"metadata": named, "spec": spec})

    pack = {"packConstraint": {"required": "l", "preferred": "m"}}
    for pod_groups in (256, 10_000):
        its = [
            {"name": f"p{at}", "minReplicas": 1, "topologyConstraint": pack}
            for at in range(pod_groups)
        ]
        yield made(f"{pod_groups} pod groups", {"podgroups": its})
    yield made("pod groups", {"podgroups": as_many(lambda at: {})})
    references = as_many(lambda at: {"namespace": "b", "name": f"p{at}"})
    yield made("references", {"podgroups": [{"name": "p", "podReferences": references}]})
    groups = as_many(lambda at: {"name": f"g{at}", "podGroupNames": ["p"]})
    one = {"podgroups": [{"name": "p"}]}
    yield made("groups", {**one, "topologyConstraintGroupConfigs": groups})
    conditions = {"conditions": as_many(lambda at: {"type": "a"})}
    yield kind, "conditions", written({"metadata": named, "spec": {}, "status": conditions})
    levels = as_many(lambda at: {"domain": f"d{at}", "key": f"k{at}"})
    for topology in ("ClusterTopology", "ClusterTopologyBinding"):
        body = {"metadata": {"name": "a"}, "spec": {"levels": levels}}
        yield topology, "levels", written(body)
    selectors = {"selectors": as_many(lambda at: {"cel": {"expression": "a"}})}
    yield "DeviceClass", "selectors", written({"metadata": {"name": "a"}, "spec": selectors})
    texts = {"description": "d" * STORED}
    yield (
        "PriorityClass",
        "a description",
        written({"metadata": {"name": "a"}, "value": 1, **texts}),
    )
