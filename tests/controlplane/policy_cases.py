"""Pods and Jobs that say something of a gang, each rule of which the webhook's own code knows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from app.dialects.workloads import KINDS
from tests.cluster import RACK, Object, pod
from tests.workloads import GATE, GROUP, MANAGED, PREFERRED, QUEUE, REQUIRED, TOTAL, UNCONSTRAINED

KUEUE = "kueue.x-k8s.io/"
LEVEL = f"{KUEUE}podset-slice-required-topology"
SIZE = f"{KUEUE}podset-slice-size"
LAYERS = f"{KUEUE}podset-slice-required-topology-constraints"
POD_SET_GROUP = f"{KUEUE}podset-group-name"
OFFSET = f"{KUEUE}pod-index-offset"
INDEX = f"{KUEUE}pod-group-pod-index"
PREBUILT = f"{KUEUE}prebuilt-workload-name"
RETRIABLE = f"{KUEUE}retriable-in-group"
ROLE = f"{KUEUE}pod-group-role"
WORKLOAD = "corral.dev/workload-required-topology"
MODE = "volcano.sh/network-topology-mode"
MIN_MEMBER = "scheduling.volcano.sh/group-min-member"
KAI_REQUIRED = "kai.scheduler/topology-required-placement"
SEGMENT = "kai.scheduler/segment-size"
SEGMENT_REQUIRED = "kai.scheduler/segment-topology-required-placement"
KAI_GROUP = "pod-group-name"

Strings = dict[str, str]
LAYER = '[{"topology": "rack", "size": 2}]'
IN_GROUP = {GROUP: "red", TOTAL: "3"}
IN_RACK = {REQUIRED: RACK}

# (annotations, labels) of pods and of templates.
SAID: list[tuple[Strings, Strings]] = [
    (IN_GROUP, {}),
    ({REQUIRED: RACK}, {}),
    ({REQUIRED: "my rack"}, {}),
    ({REQUIRED: ""}, {}),
    ({REQUIRED: "a/b/c"}, {}),
    ({PREFERRED: f"{'a' * 300}/b"}, {}),
    ({PREFERRED: f"{'a' * 250}.de/b"}, {}),
    ({REQUIRED: f'é{"x" * 5000}\n"y"'}, {}),
    ({REQUIRED: RACK, PREFERRED: RACK}, {}),
    ({REQUIRED: RACK, PREFERRED: RACK, UNCONSTRAINED: "true"}, {}),
    ({UNCONSTRAINED: "yes"}, {}),
    ({UNCONSTRAINED: "T"}, {}),
    ({UNCONSTRAINED: "false", KUEUE + "x": "y"}, {}),
    ({WORKLOAD: "no key"}, {}),
    ({REQUIRED: RACK, OFFSET: "1"}, {}),
    ({REQUIRED: RACK, OFFSET: "-1"}, {}),
    ({REQUIRED: RACK, OFFSET: "1234567890"}, {}),
    ({REQUIRED: RACK, OFFSET: ""}, {}),
    ({REQUIRED: RACK, POD_SET_GROUP: "12"}, {}),
    ({REQUIRED: RACK, POD_SET_GROUP: ""}, {}),
    ({REQUIRED: RACK, POD_SET_GROUP: "x" * 257}, {}),
    ({POD_SET_GROUP: "workers"}, {}),
    ({PREFERRED: RACK, POD_SET_GROUP: "workers", LEVEL: RACK, SIZE: "2", LAYERS: LAYER}, {}),
    ({REQUIRED: RACK, LEVEL: RACK}, {}),
    ({REQUIRED: RACK, SIZE: "2"}, {}),
    *(
        ({REQUIRED: RACK, LEVEL: RACK, SIZE: size}, {})
        for size in ("none", "", "0", "-3", "100001")
    ),
    *(
        ({REQUIRED: RACK, LEVEL: RACK, SIZE: size}, {})
        for size in (f"{'0' * 19}2", "2", "3", "5", "+2")
    ),
    ({REQUIRED: RACK, LEVEL: "a b", SIZE: "2"}, {}),
    ({REQUIRED: RACK, LAYERS: "x" * 4097}, {}),
    ({**IN_GROUP}, {KUEUE + "managed": "false"}),
    ({GROUP: "red"}, {}),
    ({TOTAL: "3"}, {}),
    ({GROUP: "red"}, {ROLE: "workers"}),
    ({GROUP: "Not A Name", TOTAL: "3"}, {}),
    ({GROUP: "", TOTAL: "3"}, {}),
    ({GROUP: "a" * 254, TOTAL: "3"}, {}),
    ({TOTAL: "3"}, {GROUP: "Red_1"}),
    ({GROUP: "red", TOTAL: "3"}, {GROUP: "blue"}),
    ({GROUP: "red", TOTAL: "3"}, {GROUP: "red"}),
    *(({GROUP: "red", TOTAL: total}, {}) for total in ("three", "0", "-1", "100001", "1" * 20)),
    *(
        (IN_GROUP, {INDEX: index})
        for index in ("2", "3", "x", "", "9" * 19, "18446744073709551615")
    ),
    *((IN_GROUP, {INDEX: index}) for index in ("18446744073709551616", "9" * 21, f"{'0' * 18}2")),
    ({GROUP: "red", TOTAL: "0"}, {INDEX: "7"}),
    ({GROUP: "red", TOTAL: "many"}, {INDEX: "7"}),
    ({**IN_GROUP, PREBUILT: "blue"}, {}),
    (IN_GROUP, {PREBUILT: "blue"}),
    ({**IN_GROUP, PREBUILT: "red"}, {PREBUILT: "red"}),
    ({PREBUILT: "blue"}, {}),
    ({**IN_GROUP, RETRIABLE: "maybe"}, {}),
    ({RETRIABLE: "maybe"}, {}),
    (
        {
            REQUIRED: RACK,
            KUEUE + "pod-group-serving": "1",
            KUEUE + "pod-group-fast-admission": "on",
        },
        {},
    ),
    ({REQUIRED: RACK, "corral.dev/disruption": "some"}, {}),
    ({**IN_GROUP, "corral.dev/disruption": "all"}, {}),
    *(
        ({**IN_GROUP, "corral.dev/spare-pods": number}, {})
        for number in ("100", "101", "-1", "few")
    ),
    *(
        ({**IN_GROUP, "corral.dev/absent-seconds": each}, {})
        for each in ("86400", "86401", "1" * 12)
    ),
    ({SEGMENT: "4"}, {}),
    ({SEGMENT: "1", SEGMENT_REQUIRED: RACK, KAI_GROUP: "g"}, {}),
    ({SEGMENT: "x", SEGMENT_REQUIRED: "y" * 317, KAI_GROUP: "g"}, {}),
    (
        {
            SEGMENT: "4",
            SEGMENT_REQUIRED: RACK,
            KAI_GROUP: "g",
            "kai.scheduler/pod-index-label": "rank",
        },
        {},
    ),
    ({SEGMENT: "4", SEGMENT_REQUIRED: RACK, KAI_GROUP: "g"}, {}),
    ({KAI_REQUIRED: RACK, "kai.scheduler/topology": "t"}, {}),
    ({KAI_REQUIRED: RACK, KAI_GROUP: "g", "kai.scheduler/topology": "t"}, {}),
    ({KAI_REQUIRED: RACK, "kai.scheduler/skip-podgrouper": "true"}, {}),
    ({REQUIRED: RACK, MODE: "hard"}, {}),
    ({**IN_GROUP, MIN_MEMBER: "3"}, {}),
    ({TOTAL: "3", MIN_MEMBER: "3"}, {}),
    ({REQUIRED: RACK, KAI_REQUIRED: RACK, KAI_GROUP: "g"}, {}),
    ({MODE: "soft", KAI_REQUIRED: RACK, KAI_GROUP: "g", WORKLOAD: RACK}, {}),
    ({WORKLOAD: RACK, MODE: "hard"}, {"grove.io/podgang": "g"}),
    ({KUEUE + "x": "y", MODE: "hard", KAI_REQUIRED: RACK}, {"grove.io/podgang": "g"}),
    ({UNCONSTRAINED: "perhaps", MIN_MEMBER: "1"}, {}),
    ({REQUIRED: "my rack", SIZE: "none", GROUP: "A", PREFERRED: "b c", OFFSET: "z"}, {INDEX: "q"}),
    ({REQUIRED: "my rack", SIZE: "none", GROUP: "A", PREFERRED: "b c", TOTAL: "0"}, {INDEX: "q"}),
]
# Annotations whose values are read, however long they are.
LOOKED_INTO = (
    *(PREFERRED, UNCONSTRAINED, LEVEL, SIZE, POD_SET_GROUP, OFFSET, PREBUILT, RETRIABLE, WORKLOAD),
    *("corral.dev/disruption", "corral.dev/spare-pods", "corral.dev/absent-seconds", SEGMENT),
)
# Of pods alone: of a template a number that is none counts as one that is too large as well.
SAID_OF_PODS: list[tuple[Strings, Strings]] = [
    ({REQUIRED: RACK, LEVEL: RACK, SIZE: size}, {}) for size in ("2147483648", "9" * 20, "9" * 21)
]


def pods_to_gate() -> Iterator[Object]:
    """Pods that a vocabulary takes for members of a gang, and others that look like it."""
    yield from _queued()
    yield from _taken_by_others()
    for said in (
        {"scheduling.k8s.io/group-name": "g"},
        {"scheduling.k8s.io/group-name": ""},
        {KAI_GROUP: "g"},
        {KAI_GROUP: ""},
        {MODE: ""},
        {"volcano.sh/network-topology-highest-tier": "1"},
        {"volcano.sh/network-topology-other": "x"},
        {"volcano.sh/task-spec": "x"},
        {"kai.scheduler/skip-podgrouper": "true"},
        {"corral.dev/workload-other": "x"},
        {f"{KUEUE}other": "x"},
        *({UNCONSTRAINED: text} for text in ("false", "0", "1", "x", "")),
        {SIZE: "1"},
        {LAYERS: LAYER},
        {TOTAL: "1"},
        {ROLE: "x"},
    ):
        yield pod("p", annotations=said)
    yield pod("p")
    yield pod("p", labels={GROUP: "red"}, annotations={TOTAL: "2"})
    yield pod("p", annotations=IN_RACK, labels={"grove.io/podgang": "g"})
    yield pod("p", annotations=IN_RACK, labels={MANAGED: "false"})
    yield pod("p", annotations=IN_RACK, scheduler="other")
    for gates in ([GATE], ["x.y/z"], ["x.y/z", GATE]):
        yield pod("p", annotations=IN_RACK, gates=gates)
    source = {**IN_GROUP, f"{KUEUE}pod-group-pod-index-label": "rank"}
    for labels in ({"rank": "2"}, {"rank": "2", INDEX: "2"}, {"rank": "2", INDEX: "1"}):
        yield pod("p", annotations=source, labels={**labels})
        yield pod("p", annotations=source, labels={**labels, MANAGED: "true"}, gates=[GATE])


def _queued() -> Iterator[Object]:
    """Pods with a queue name, of nobody and of every kind of owner."""
    owners = [(f"{kind.group}/{kind.version}", kind.kind) for kind in KINDS]
    owners += [("v1", "Pod"), ("apps/v1", "DaemonSet"), ("apps/v1", "ReplicaSet")]
    owners += [("ray.io/v1", "RayCluster"), ("example.org/v1", "Job"), ("batch/v1", "CronJob")]
    owners += [("v1", "ReplicationController"), ("sparkoperator.k8s.io/v1", "SparkApplication")]
    owners += [("workload.codeflare.dev/v1", "AppWrapper")]
    for version, kind in owners:
        for said in ({}, IN_RACK):
            yield _owned(pod("p", labels={QUEUE: "team"}, annotations=said), version, kind)
    yield _owned(pod("p", labels={QUEUE: "team"}), "batch/v1", "Job", controller=False)
    of_set = {"leaderworkerset.sigs.k8s.io/name": "s"}
    for labels in ({}, of_set, {**of_set, "leaderworkerset.sigs.k8s.io/group-index": "0"}):
        yield pod("p", labels={QUEUE: "team", **labels})
    yield pod("p", labels={QUEUE: ""})


def _taken_by_others() -> Iterator[Object]:
    """Pods that Kueue manages, or kube-scheduler, some with our gate from before."""
    for labels in ({f"{KUEUE}managed": "true"}, {f"{KUEUE}podset": "main"}):
        for gates in ([], [GATE], ["a.b/c", GATE, "d.e/f"]):
            yield pod("p", annotations=IN_RACK, labels=labels, gates=gates)
            yield pod("p", annotations=IN_RACK, labels={**labels, MANAGED: "true"}, gates=gates)
    for key in ("workload", "pod-suspending-parent"):
        yield pod("p", annotations={**IN_RACK, KUEUE + key: "x"})
    for gate in ("admission", "topology"):
        yield pod("p", annotations=IN_RACK, gates=[KUEUE + gate])
        yield pod("p", annotations=IN_RACK, gates=[KUEUE + gate, GATE])
    for said in ({}, IN_RACK, {TOTAL: "2"}, {UNCONSTRAINED: "false"}, {MODE: "hard"}):
        for labels in ({}, {QUEUE: "team"}):
            thing = pod("p", annotations=said, labels=labels)
            thing["spec"]["schedulingGroup"] = {"podGroupName": "native"}
            yield thing


def _owned(thing: Object, version: str, kind: str, **fields: Any) -> Object:
    owner = {"apiVersion": version, "kind": kind, "name": "o", "uid": "u", "controller": True}
    thing["metadata"]["ownerReferences"] = [{**owner, **fields}]
    return thing
