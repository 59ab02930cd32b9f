"""A running gang for each vocabulary and each kind of constraint: where it may be, and where not.

Nodes are b0-r0-n0 and so on, as `tests.cluster.grid` names them: two blocks of two racks of two
nodes. Each case has the nodes of its pods in order, once as its constraints say and once with a pod
that is elsewhere; and what has to be said of that.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.app.dialects.grove import objects as grove
from tests.app.dialects.kai import objects as kai
from tests.app.dialects.native import composites
from tests.app.dialects.native import objects as native
from tests.app.dialects.volcano import workloads as volcano
from tests.app.dialects.volcano.objects import exact, hyper_node
from tests.cluster import BLOCK, RACK, Object, Objects, grid, job, pod
from tests.workload_pods import COMPLETION_INDEX, LWS
from tests.workloads import REQUIRED, asking, members

NODES = grid(blocks=2, racks=2, nodes=2, gpus=8)
A, B = "b0-r0-n0", "b0-r0-n1"  # one rack
C, D = "b0-r1-n0", "b0-r1-n1"  # another one in the same block
E = "b1-r0-n0"  # in another block
IN_A, IN_C, IN_E = "b0-r0", "b0-r1", "b1-r0"

SLICES = {
    "kueue.x-k8s.io/podset-slice-required-topology": RACK,
    "kueue.x-k8s.io/podset-slice-size": "2",
}
PART, TASK = "example.com/part", "volcano.sh/task-spec"
POD_SET_GROUP = "kueue.x-k8s.io/podset-group-name"
ROLE_HASH = "kueue.x-k8s.io/role-hash"
TOGETHER = "corral.dev/workload-required-topology"


@dataclass(frozen=True, slots=True)
class Planted:
    """One gang, or gangs that share something."""

    name: str
    pods: Objects
    right: Sequence[str]
    wrong: Sequence[str]
    """The nodes of the pods; "": the pod has none."""
    constraint: str
    pod: str
    """That the violation has to be about; its node is in `wrong`."""
    values: tuple[str, str] | None
    """The domain of that pod, and of the others; None: it is about no level."""
    level: str = RACK
    objects: Objects = field(default_factory=list)

    def placed(self, nodes: Sequence[str]) -> Iterator[Object]:
        """The pods on these nodes."""
        for one, node in zip(self.pods, nodes, strict=True):
            yield placed(one, node)

    @property
    def node(self) -> str:
        """Where the pod is that the violation is about."""
        names = [one["metadata"]["name"] for one in self.pods]
        return self.wrong[names.index(self.pod)]


def placed(one: Object, node: str, phase: str = "Running") -> Object:
    """A pod as it is once kube-scheduler has bound it; "": as it waits."""
    if not node:
        return {**one, "status": {"phase": "Pending"}}
    return {**one, "spec": {**one["spec"], "nodeName": node}, "status": {"phase": phase}}


def owned(one: Object, api_version: str, kind: str, name: str) -> Object:
    """A pod of a controller."""
    owner = {"apiVersion": api_version, "kind": kind, "name": name, "uid": f"uid-{kind}-{name}"}
    owners = [{**owner, "controller": True}]
    return {**one, "metadata": {**one["metadata"], "ownerReferences": owners}}


def with_uid(one: Object) -> Object:
    """An object whose uid its pods name."""
    kind, metadata = one["kind"], one["metadata"]
    return {**one, "metadata": {**metadata, "uid": f"uid-{kind}-{metadata['name']}"}}


def labelled(name: str, labels: Mapping[str, str], **more: Any) -> Object:
    return pod(name, labels=labels, requests={"nvidia.com/gpu": 1}, **more)


def _of_job(name: str, pods: int, annotations: Mapping[str, str]) -> tuple[Objects, Objects]:
    made = with_uid(job(name, pods=pods, annotations=annotations))
    its = [
        owned(
            labelled(f"{name}-{at}", {COMPLETION_INDEX: str(at)}, annotations=annotations),
            "batch/v1",
            "Job",
            name,
        )
        for at in range(pods)
    ]
    return [made], its


def _of_lws(name: str, size: int) -> Objects:
    return [
        owned(
            labelled(
                f"{name}-0" + (f"-{at}" if at else ""),
                {
                    f"{LWS}name": name,
                    f"{LWS}group-index": "0",
                    f"{LWS}worker-index": str(at),
                },
                annotations={f"{LWS}size": str(size), REQUIRED: RACK},
            ),
            "apps/v1",
            "StatefulSet",
            f"{name}-0" if at else name,
        )
        for at in range(size)
    ]


def _one_hashed(name: str) -> Objects:
    """Two pods of a group, the second of which was created while no webhook answered."""
    asked = asking(required=RACK)
    first = members(name, 2, numbers=[0], annotations={**asked, ROLE_HASH: "role-a"})
    return [*first, *members(name, 2, numbers=[1], annotations=asked)]


def _one_tolerant(name: str) -> Objects:
    """Two pods of one role, of which another webhook has given the second a toleration."""
    asked = {**asking(required=RACK), ROLE_HASH: "role-a"}
    pods = members(name, 2, annotations=asked)
    pods[1]["spec"]["tolerations"] = [{"key": "example.com/burst", "operator": "Exists"}]
    return pods


def _leader_and_workers() -> Objects:
    both = {**asking(required=RACK), POD_SET_GROUP: "all"}
    driver = members("led", 3, numbers=[0], annotations=both, requests={"cpu": 1})
    return [*driver, *members("led", 3, numbers=[1, 2], annotations=both)]


def _volcano(name: str, task: str, parts: Sequence[str] = ()) -> Objects:
    return [
        labelled(
            f"{name}-{at}",
            {"volcano.sh/task-spec": task, **({volcano.PARTITION: parts[at]} if parts else {})},
            annotations={"scheduling.k8s.io/group-name": name, "volcano.sh/task-spec": task},
        )
        for at in range(len(parts) or 2)
    ]


def _grove(gang: str, cliques: Sequence[str], **labels: str) -> Objects:
    return [
        labelled(f"{gang}-{at}", {grove.POD_GANG: gang, grove.POD_CLIQUE: clique, **labels})
        for at, clique in enumerate(cliques)
    ]


def _of_replica(base: str = "") -> dict[str, str]:
    labels = {"app.kubernetes.io/part-of": "set", "grove.io/podcliqueset-replica-index": "0"}
    return labels | ({"grove.io/base-podgang": base} if base else {})


def _kai(gang: str, sub_groups: Sequence[str], **annotations: str) -> Objects:
    return [
        labelled(
            f"{gang}-{at}",
            {kai.SUB_GROUP: name} if name else {},
            annotations={kai.GROUP_NAME: gang, **annotations},
        )
        for at, name in enumerate(sub_groups)
    ]


def _native(group: str, pods: int) -> Objects:
    named = {"podGroupName": group}
    return [labelled(f"{group}-{at}", {}, schedulingGroup=named) for at in range(pods)]


def _moved(
    name: str, pods: Objects, constraint: str, objects: Objects | None = None, **more: Any
) -> Planted:
    """Two pods in a rack, of which the second one is moved to the other rack of its block."""
    second = pods[1]["metadata"]["name"]
    fields: dict[str, Any] = {"pod": second, "values": (IN_C, IN_A), "objects": objects or []}
    nodes: dict[str, Any] = {"right": (A, B), "wrong": (A, C)}
    return Planted(name, pods, constraint=constraint, **{**nodes, **fields, **more})


def cases() -> list[Planted]:
    """All of them."""
    a_job, its_pods = _of_job("train", 2, asking(required=RACK))
    sliced = {**asking(preferred=BLOCK), **SLICES}
    whole = members("whole", 3, annotations=asking(required=BLOCK))
    both = {**asking(required=RACK), POD_SET_GROUP: "all"}
    together = {**asking(unconstrained=True), TOGETHER: RACK}
    tier = volcano.network_topology(1)
    worker = volcano.sub_group("worker", 2, topology=tier)
    by_label = volcano.sub_group("worker", 2, keys=(PART,), topology=tier)
    return [
        _moved("pod_group", members("pair", 2, annotations=asking(required=RACK)), "pod set"),
        _moved("pod_without_role_hash", _one_hashed("mixed"), "pod set role-a"),
        _moved("pod_with_another_toleration", _one_tolerant("burst"), "pod set role-a"),
        _moved("job", its_pods, "pod set", a_job),
        _moved(
            "slices",
            members("cut", 4, annotations=sliced),
            "slices of 2 of pod set",
            right=(A, B, C, D),
            wrong=(A, B, A, C),
            pod="cut-3",
            values=(IN_C, IN_A),
        ),
        _moved(
            "leader",
            _leader_and_workers(),
            "leader of pod set group all",
            right=(A, B, A),
            wrong=(C, A, B),
            pod="led-0",
        ),
        _moved(
            "leader_of_one_worker",
            [
                *members("duo", 2, numbers=[0], annotations=both, requests={"cpu": 1}),
                *members("duo", 2, numbers=[1], annotations=both),
            ],
            "leader of pod set group all",
        ),
        _moved("together", members("both", 2, annotations=together), "gang"),
        Planted("not_whole", whole, (A, B, C), (A, B, ""), "whole", "whole-2", None, ""),
        _moved(
            "leader_worker_set",
            _of_lws("served", 3),
            "pod set",
            right=(A, B, A),
            wrong=(A, B, E),
            pod="served-0-2",
            values=(IN_E, IN_A),
        ),
        _moved(
            "volcano_pod_group",
            _volcano("vgroup", "worker"),
            "gang",
            [volcano.pod_group("vgroup", 2, topology=tier)],
            values=("leaf-1", "leaf-0"),
            level="topology.volcano.sh/tier-1",
        ),
        _moved(
            "volcano_sub_group",
            _volcano("vparts", "worker", ["0", "0", "1", "1"]),
            "group worker/0",
            [volcano.pod_group("vparts", 4, sub_groups=[worker])],
            right=(A, B, C, D),
            wrong=(A, C, C, D),
            pod="vparts-1",
            values=("leaf-1", "leaf-0"),
            level="topology.volcano.sh/tier-1",
        ),
        _moved(
            "volcano_by_a_label_that_its_pod_group_names",
            [
                {**one, "metadata": {**one["metadata"], "labels": {PART: "0", TASK: "worker"}}}
                for one in _volcano("vlabel", "worker")
            ],
            "group worker/0",
            [volcano.pod_group("vlabel", 2, sub_groups=[by_label])],
            values=("leaf-1", "leaf-0"),
            level="topology.volcano.sh/tier-1",
        ),
        _moved(
            "grove_pods_that_only_its_pod_gang_names",
            [labelled(f"gnamed-{at}", {}) for at in range(2)],
            "gang",
            [
                grove.pod_gang(
                    "gnamed",
                    grove.pod_group("a", 2, names=("gnamed-0", "gnamed-1")),
                    on=grove.within(RACK),
                )
            ],
        ),
        _moved(
            "grove_pod_gang",
            _grove("gset", ["a", "b"]),
            "gang",
            [grove.pod_gang("gset", _clique("a"), _clique("b"), on=grove.within(RACK))],
        ),
        _moved(
            "grove_group_of_cliques",
            _grove("gmany", ["a", "b"]),
            "group both",
            [
                grove.pod_gang(
                    "gmany",
                    _clique("a"),
                    _clique("b"),
                    groups=(grove.together("both", "a", "b", on=grove.within(RACK)),),
                )
            ],
        ),
        _moved(
            "grove_clique",
            _grove("gone", ["a", "a"]),
            "group a",
            [grove.pod_gang("gone", grove.pod_group("a", 2, grove.within(RACK)))],
        ),
        _moved(
            "grove_family",
            [
                *_grove("gbase", ["a"], **_of_replica()),
                *_grove("gmore", ["a"], **_of_replica("gbase")),
            ],
            "family replica 0 of PodCliqueSet set",
            [
                grove.pod_gang("gbase", _clique("a"), on=grove.within(RACK)),
                grove.pod_gang("gmore", _clique("a")),
            ],
            pod="gmore-0",
        ),
        _moved(
            "kai_pod_group",
            _kai("kgroup", ["", ""]),
            "gang",
            [kai.pod_group("kgroup", 2, on=kai.within(RACK))],
        ),
        _moved(
            "kai_sub_group",
            _kai("kparts", ["a", "a"]),
            "group a",
            [
                kai.pod_group(
                    "kparts",
                    None,
                    kai.sub_group("a", 2, topologyConstraint=kai.within(RACK)),
                    on=kai.within(BLOCK),
                )
            ],
        ),
        _moved(
            "kai_sub_group_on_an_inner_topology",
            _kai("kinner", ["a", "a"]),
            "group a",
            [
                kai.topology("racks", RACK),
                kai.pod_group(
                    "kinner",
                    None,
                    kai.sub_group("a", 2, topologyConstraint=kai.within(RACK, topology="racks")),
                    on=kai.within(BLOCK),
                ),
            ],
        ),
        _moved(
            "native_pod_group",
            _native("ngroup", 2),
            "gang",
            [native.pod_group("ngroup", 2, key=RACK)],
        ),
        _moved(
            "native_composite",
            [*_native("inner-a", 1), *_native("inner-b", 1)],
            "gang",
            [
                composites.composite_object("outer", 2, key=RACK),
                _inside("inner-a"),
                _inside("inner-b"),
            ],
            pod="inner-b-0",
        ),
    ]


def _clique(name: str) -> Object:
    return grove.pod_group(name, 1)


def _inside(name: str) -> Object:
    return native.pod_group(name, 1, api=native.BETA, parentCompositePodGroupName="outer")


TOPOLOGIES: Objects = [
    hyper_node("leaf-0", 1, exact("Node", A, B)),
    hyper_node("leaf-1", 1, exact("Node", C, D)),
    hyper_node("top", 2, exact("HyperNode", "leaf-0", "leaf-1")),
    grove.cluster_topology("grove-topology", BLOCK, RACK),
    kai.topology("net", BLOCK, RACK),
]

KINDS: Mapping[tuple[str, str], str] = {
    ("topology.volcano.sh/v1alpha1", "HyperNode"): "hypernodes",
    ("scheduling.volcano.sh/v1beta1", "PodGroup"): "podgroups",
    ("scheduler.grove.io/v1alpha1", "PodGang"): "podgangs",
    ("grove.io/v1alpha1", "ClusterTopology"): "clustertopologies",
    ("kueue.x-k8s.io/v1beta2", "Topology"): "topologies",
    ("scheduling.run.ai/v2alpha2", "PodGroup"): "podgroups",
    ("kai.scheduler/v1alpha1", "Topology"): "topologies",
    (f"scheduling.k8s.io/{native.ALPHA}", "PodGroup"): "podgroups",
    (f"scheduling.k8s.io/{native.BETA}", "PodGroup"): "podgroups",
    ("scheduling.k8s.io/v1alpha3", "CompositePodGroup"): "compositepodgroups",
}
CLUSTER_SCOPED = ("HyperNode", "ClusterTopology", "Topology")


def definitions() -> Iterator[Object]:
    """What makes an API server serve the kinds above."""
    versions: dict[tuple[str, str, str], list[str]] = {}
    for (api, kind), plural in KINDS.items():
        group, _, version = api.partition("/")
        versions.setdefault((group, kind, plural), []).append(version)
    for (group, kind, plural), its in versions.items():
        yield {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": f"{plural}.{group}"},
            "spec": {
                "group": group,
                "scope": "Cluster" if kind in CLUSTER_SCOPED else "Namespaced",
                "names": {"kind": kind, "plural": plural},
                "versions": [
                    {
                        "name": version,
                        "served": True,
                        "storage": at == 0,
                        "schema": {"openAPIV3Schema": {"type": "object"}},
                    }
                    for at, version in enumerate(its)
                ],
            },
        }
