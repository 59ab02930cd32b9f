"""How long the largest objects a tenant can store take to be read, each in the dearest form found.

    python -m benchmarks.decoding [--json] [--only TEXT] [--repeat 5]

CPU is what all of the reading takes, `longest` its longest stretch without a turn of the event
loop (`app/kube/core/turns.py`), both in CPU time of the thread: so others on the machine do not
count. What is no larger than `aside.LARGE_BYTES` is read on the loop, where a turn is none.
HyperNodes, Topologies and ResourceQuotas are written by administrators alone.

Objects have 1.5 MB as kube-apiserver stores them: validated, with its defaults; some are just
below a bound. Containers are twice as long in what it sends. The baseline is msgspec skipping the
same bytes. What JSON blows up is shortened as it comes
in: a chunk of it is a step of its own.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any

import msgspec

from app.admission.review import request_of
from app.admission.routes import MOST_CHANGED_BYTES, MOST_CHECKED_BYTES, Desk, mutated, validated
from app.admission.scope import Scope
from app.dialects import corral
from app.dialects.provisioning import keys as provisioning
from app.dialects.registry import DIALECTS
from app.errors import DecodeError
from app.extender import models
from app.kube.client.transport import READ_BYTES
from app.kube.core import aside
from app.kube.core.turns import give_way
from app.kube.decoding.decode import decode_node, decode_pod
from app.kube.decoding.escapes import LONG, shortened
from app.kube.decoding.large import LARGE
from app.metrics import Metrics
from app.settings import EngineOptions, Settings
from app.state.gang.members.succeeded import SucceededPods
from benchmarks.table import show

STORED = 1_500_000  # bytes of an object
ANNOTATIONS = 256 * 1024  # of the annotations of one object together
# Bytes of a container with two amounts, as etcd has it: 15,777 of them were stored in one pod by
# kube-apiserver 1.36, 19,890 with one amount, 25,070 with none. What would be too large with its
# managedFields is stored without them. As JSON such a pod has 3 to 4 MB.
CONTAINER = 95
RESOURCE = 53  # bytes of one in requests, in limits and twice in managedFields
KUEUE = "kueue.x-k8s.io/"
GROUP = {f"{KUEUE}pod-group-name": "g", f"{KUEUE}pod-group-total-count": "2"}
DEFAULTS = {
    "image": "a",
    "terminationMessagePath": "a",
    "terminationMessagePolicy": "File",
    "imagePullPolicy": "Always",
}
EVERY = DIALECTS.configured(EngineOptions(native_pod_groups="on", provisioning_class="a"))
DECODERS = {each.kind: each.decode for each in EVERY.resources()}
OF_ADMINISTRATORS = (
    "HyperNode",
    "ResourceQuota",
    "Topology",
    "Topology.kai.scheduler",
    "ClusterTopology",
    "ClusterTopologyBinding",
    "Queue.scheduling.volcano.sh",
    "node",
)
ESCAPES = {"<": b"\\u003c", "control characters": b"\\u0001"}
Json = dict[str, Any]


class _Nothing(msgspec.Struct):
    """Every field is skipped."""


_SKIP = msgspec.json.Decoder(_Nothing)


@dataclass(frozen=True, slots=True)
class Case:
    """One input of one reader. `raw` is what is sent."""

    reader: str
    name: str
    raw: bytes
    read: Callable[[bytes], object]

    def received(self) -> bytes:
        """What the reader is given of it."""
        return b"".join(shortened(chunk, before) for before, chunk in chunks(self.raw))


def chunks(raw: bytes) -> Iterator[tuple[int, bytes]]:
    """As they come in, each after so many bytes."""
    for at in range(0, len(raw), READ_BYTES):
        yield at, raw[at : at + READ_BYTES]


def written(thing: object) -> bytes:
    """As Go writes it: without blanks."""
    return json.dumps(thing, separators=(",", ":")).encode()


def as_many(make: Callable[[int], object], room: int = STORED) -> list[Any]:
    """As many of these as there is room for."""
    found: list[object] = []
    used = 0
    while used < room:
        found.append(make(len(found)))
        used += len(written(found[-1])) + 1
    return found


def mapping(make: Callable[[int], str], room: int = STORED, value: str = "") -> Json:
    """The same as keys of a mapping."""
    return {key: value for key in as_many(make, room - 3 * room // 12)}


def a_pod(metadata: object = None, **spec: object) -> bytes:
    named = {"name": "a", "namespace": "b", "uid": "u", "resourceVersion": "1"}
    return written({"metadata": {**named, **(metadata or {})}, "spec": spec, "status": {}})


def containers(room: int, requests: Callable[[int], Json], **more: object) -> list[Json]:
    return [
        {"name": f"c{at}", "resources": {"requests": requests(at)}, **DEFAULTS, **more}
        for at in range(room // CONTAINER)
    ]


def affinity(terms: object) -> Json:
    required = {"nodeSelectorTerms": terms}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}


def pods(room: int = STORED) -> Iterator[tuple[str, bytes]]:
    """Pods of so many bytes, each in another part."""
    yield "labels", a_pod({"labels": mapping(lambda at: f"l{at}", room)})
    yield (
        "annotations",
        a_pod({"annotations": mapping(lambda at: f"a{at}", min(room, 2 * ANNOTATIONS))}),
    )
    owner = {"apiVersion": "v1", "kind": "a", "name": "a", "uid": "a"}
    yield "owner references", a_pod({"ownerReferences": as_many(lambda at: owner, room)})
    yield "node selector", a_pod(nodeSelector=mapping(lambda at: f"l{at}", room))
    toleration = {"operator": "Exists"}
    yield (
        "tolerations",
        a_pod(tolerations=as_many(lambda at: {"key": f"k{at}", **toleration}, room)),
    )
    yield "scheduling gates", a_pod(schedulingGates=as_many(lambda at: {"name": f"k{at}"}, room))
    yield "resource claims", a_pod(resourceClaims=as_many(lambda at: {"name": f"k{at}"}, room))
    yield "affinity, empty terms", a_pod(affinity=affinity(as_many(lambda at: {}, room)))
    line = {"key": "k", "operator": "Exists"}
    yield (
        "affinity, lines",
        a_pod(affinity=affinity([{"matchExpressions": as_many(lambda at: line, room)}])),
    )
    values = {"key": "k", "operator": "In", "values": as_many(lambda at: f"k{at}", room)}
    yield "affinity, values", a_pod(affinity=affinity([{"matchExpressions": [values]}]))
    same = {"cpu": "1", "memory": "1Gi"}
    yield "containers, the same requests", a_pod(containers=containers(room, lambda at: same))
    yield (
        "containers, each its own amounts",
        a_pod(containers=containers(room, lambda at: {"cpu": f"{at}m", "memory": f"{at}Ki"})),
    )
    yield (
        "containers, each its own resource",
        a_pod(containers=containers(room, lambda at: {f"a.b/r{at}": "1"})),
    )
    yield (
        "containers, each its own resource, the last by name first",
        a_pod(containers=containers(room, lambda at: {f"a.b/r{99_999 - at}": "1"})),
    )
    yield (
        "sidecars, the same requests",
        a_pod(initContainers=containers(room, lambda at: same, restartPolicy="Always")),
    )
    yield (
        "sidecars, each its own amounts",
        a_pod(
            initContainers=containers(room, lambda at: {"cpu": f"{at}m"}, restartPolicy="Always")
        ),
    )
    for amount in ("0", "1"):
        asked = {f"a.b/r{at}": amount for at in range(room // RESOURCE)}
        yield (
            f"one container, resources in the amount of {amount}",
            a_pod(containers=[{"name": "c", "resources": {"requests": asked}, **DEFAULTS}]),
        )
    env = {"name": "A", "value": "b"}
    yield "environment", a_pod(containers=[{"name": "c", "env": as_many(lambda at: env, room)}])
    text = a_pod(containers=[{"name": "c", "args": ["@"]}])
    for name, escape in ESCAPES.items():
        yield f"escaped {name}", text.replace(b"@", escape * room)


def nodes() -> Iterator[tuple[str, bytes]]:
    """No tenant's."""
    yield "labels", a_pod({"labels": mapping(lambda at: f"l{at}")})
    taints = as_many(lambda at: {"key": f"k{at}", "effect": "NoSchedule"})
    yield "taints", a_pod(taints=taints)
    yield "images", written({"status": {"images": as_many(lambda at: {"names": [f"k{at}"]})}})


def a_template(metadata: object = None, **spec: object) -> Json:
    own = spec or {"containers": [{"name": "c", **DEFAULTS}]}
    return {"metadata": metadata or {}, "spec": own}


def workloads() -> Iterator[tuple[str, str, bytes]]:
    """Kind, input and bytes."""

    def made(kind: str, name: str, spec: object, metadata: object = None) -> tuple[str, str, bytes]:
        named = {"name": "a", "namespace": "b", **(metadata or {})}
        return kind, name, written({"metadata": named, "spec": spec})

    many = containers(STORED, lambda at: {"cpu": f"{at}m"})
    noted = {"annotations": mapping(lambda at: f"a{at}", 2 * ANNOTATIONS)}
    for kind, spec in (
        ("Job", lambda template: {"template": template}),
        ("StatefulSet", lambda template: {"template": template}),
        (
            "LeaderWorkerSet",
            lambda template: {
                "startupPolicy": "LeaderReady",
                "leaderWorkerTemplate": {"leaderTemplate": {}, "workerTemplate": template},
            },
        ),
        (
            "MPIJob",
            lambda template: {
                "launcherCreationPolicy": "WaitForWorkersReady",
                "mpiReplicaSpecs": {"Launcher": {"template": template}},
            },
        ),
    ):
        yield made(kind, "labels", {}, {"labels": mapping(lambda at: f"l{at}")})
        yield made(kind, "annotations of the template", spec(a_template(noted)))
        yield made(kind, "10,000 containers", spec(a_template(containers=many)))
        terms = affinity([{}] * 4_000)
        yield made(kind, "16 KiB of empty affinity terms", spec(a_template(affinity=terms)))
    for kind in ("Job", "JobSet", "MPIJob"):
        status = {"conditions": as_many(lambda at: {})}
        named = {"name": "a", "namespace": "b"}
        yield kind, "conditions", written({"metadata": named, "spec": {}, "status": status})
    yield made("Job", "failure rules", {"podFailurePolicy": {"rules": as_many(lambda at: {})}})
    depends = {"name": "a", "dependsOn": as_many(lambda at: {})}
    yield made("JobSet", "dependencies", {"replicatedJobs": [depends]})
    small = a_template()
    inner = affinity([{}] * 1_000)
    for order in ("AnyOrder", "InOrder"):
        for name, template in (
            ("replicated Jobs", small),
            ("large templates", a_template(containers=many[:40])),
            ("templates of empty affinity terms", a_template(affinity=inner)),
            (
                "templates with annotations",
                a_template({"annotations": {str(a): "" for a in range(500)}}),
            ),
        ):
            jobs = as_many(
                lambda at, each=template: {
                    "name": f"r{at}",
                    "template": {"spec": {"template": each}},
                }
            )
            spec = {"replicatedJobs": jobs, "startupPolicy": {"startupPolicyOrder": order}}
            yield made("JobSet", f"{name}, {order}", spec)
    selects = {"selector": {"matchLabels": mapping(lambda at: f"l{at}")}}
    yield made("PodDisruptionBudget", "labels of its selector", selects)
    few = {"selector": {"matchLabels": {f"l{at}": "v" * 63 for at in range(64)}}}
    yield made("PodDisruptionBudget", "as many labels as are compared", few)
    yield made(
        "PyTorchJob",
        "replica types",
        {"pytorchReplicaSpecs": {f"T{at}": {} for at in range(100_000)}},
    )
    yield from of_volcano()
    yield from of_kai()
    yield from of_native()
    yield from of_provisioning()
    yield from of_grove()
    yield from of_administrators()


def of_administrators() -> Iterator[tuple[str, str, bytes]]:
    """Kind, input and bytes of what no tenant may store: beyond a bound, and just below it."""

    def made(kind: str, name: str, spec: Json, status: Json) -> tuple[str, str, bytes]:
        named = {"name": "a", "namespace": "b"}
        return kind, name, written({"metadata": named, "spec": spec, "status": status})

    for name, levels in (
        ("1,300 levels", [{"nodeLabel": f"l{at}"} for at in range(1_300)]),
        ("levels", as_many(lambda at: {"nodeLabel": f"l{at}"})),
        ("empty levels", as_many(lambda at: {})),
    ):
        yield made("Topology", name, {"levels": levels}, {})
    for resources in (2_000, 50_000):
        hard = {f"requests.a.b/r{at}": f"{at}" for at in range(resources)}
        yield made("ResourceQuota", f"{resources} resources", {}, {"hard": hard})
    exact = [
        {"type": "Node", "selector": {"exactMatch": {"name": f"n{at}"}}} for at in range(10_000)
    ]
    yield made("HyperNode", "10,000 members", {"tier": 1, "members": exact}, {})
    yield made("HyperNode", "1,000 members", {"tier": 1, "members": exact[:1_000]}, {})
    yield made("HyperNode", "empty members", {"tier": 1, "members": as_many(lambda at: {})}, {})


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


def annotated(annotations: Json, labels: Json | None = None) -> bytes:
    return a_pod({"annotations": annotations, "labels": labels or {}}, schedulerName="corral")


def annotations() -> Iterator[tuple[str, bytes]]:
    """What vocabularies parse, as large as the annotations of a pod may be."""
    group = {f"{KUEUE}pod-group-name": "g"}
    sets = written(as_many(lambda at: {"name": f"s{at}", "count": 1}, 64_000)).decode()
    yield "pod-group-sets, 64 KiB of sets", annotated({**group, f"{KUEUE}pod-group-sets": sets})
    like = {"spec": {"affinity": affinity([{}] * 220)}}
    sets = written([{"name": f"s{at}", "count": 1, "template": like} for at in range(18)]).decode()
    yield "pod-group-sets, templates", annotated({**group, f"{KUEUE}pod-group-sets": sets})
    deep = written([{"name": "a", "count": 1, "template": {"spec": "[" * 30_000}}]).decode()
    yield "pod-group-sets, brackets", annotated({**group, f"{KUEUE}pod-group-sets": deep})
    flow = "[" + ",".join(["{name: a, count: 1}"] * 100) + "]"
    yield "pod-group-sets, 2 KiB of YAML", annotated({**group, f"{KUEUE}pod-group-sets": flow})
    layers = written(as_many(lambda at: {}, ANNOTATIONS)).decode()
    key = f"{KUEUE}podset-slice-required-topology-constraints"
    yield "slice constraints", annotated({f"{KUEUE}podset-required-topology": "a", key: layers})
    words = (
        "podset-required-topology",
        "podset-slice-size",
        "podset-group-name",
        "pod-index-offset",
    )
    for word in (*words, "pod-group-total-count"):
        long = {**group, f"{KUEUE}{word}": "1" * ANNOTATIONS}
        yield f"{word}, 256 KiB", annotated(long)
    for word in (corral.NARROWED, corral.POD_SETS, corral.SUCCEEDED, corral.WORKLOAD_REQUIRED):
        text = ",".join(as_many(lambda at: f"k{at}=1", ANNOTATIONS * 2 // 3))
        yield f"{word}, 256 KiB", annotated({**group, word: text})


def claimed(raw: bytes) -> object:
    pod = decode_pod(raw, DIALECTS.keeps)
    corral.own_shape(pod)
    corral.pod_sets_from_text(pod.annotations.get(corral.POD_SETS, ""))
    notes = SucceededPods()
    notes.learn(pod.annotations.get(corral.SUCCEEDED, ""))
    notes.settle()
    return DIALECTS.claim(pod)


def reviewed(kind: str, raw: bytes) -> bytes:
    groups = {"Job": "batch", "JobSet": "jobset.x-k8s.io", "StatefulSet": "apps"}
    name, _, group = kind.partition(".")
    of_kind = {"group": group or groups.get(name, ""), "kind": name}
    asked = {"uid": "u", "kind": of_kind, "namespace": "b"}
    request = {**asked, "operation": "CREATE", "object": msgspec.Raw(raw)}
    review = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}
    return msgspec.json.encode(review)


def webhook(answer: Callable[[Desk, Any], bytes]) -> Callable[[bytes], object]:
    """One of the webhook's answers, from body to body."""
    desk = Desk(Scope(""), DIALECTS, Metrics(), 4 * STORED)
    return lambda body: answer(desk, request_of(body))


def preempting() -> bytes:
    victims = {f"n{at}": {"Pods": [{"UID": "u"}]} for at in range(5_000)}
    return written({"Pod": None, "NodeNameToMetaVictims": victims})


def cases() -> Iterator[Case]:
    """Every reader of what a tenant can store."""
    for name, escape in ESCAPES.items():
        one = b'{"a":"%b"}' % (escape * (READ_BYTES // len(escape)))
        yield Case("chunk", f"escaped {name}", one, partial(shortened, before=LONG))
    read_pod = partial(decode_pod, keep=DIALECTS.keeps)
    for room in (LARGE * 3 // 4, STORED):
        for name, raw in pods(room):
            yield Case("pod", name, raw, read_pod)
    for name, raw in annotations():
        yield Case("annotations", name, raw, claimed)
    for kind, name, raw in workloads():
        yield Case(kind, name, raw, DECODERS[kind])
    for name, raw in nodes():
        yield Case("node", name, raw, decode_node)
    limits = Settings.model_fields
    mutate, validate = webhook(mutated), webhook(validated)
    # What is just not too large to be looked at.
    most_checked, most_changed = MOST_CHECKED_BYTES * 3 // 4, MOST_CHANGED_BYTES * 3 // 4
    for room in (most_checked, most_changed, STORED):
        for name, raw in pods(room):
            content = json.loads(raw)
            content["metadata"].setdefault("annotations", GROUP)
            body = reviewed("Pod", written(content))
            if len(body) > limits["admission_body_bytes"].default:
                continue
            if room != most_checked:
                yield Case("/mutate", name, body, mutate)
            if room != most_changed:
                yield Case("/validate", name, body, validate)
    for kind, name, raw in workloads():
        yield Case("/validate", f"{kind}, {name}", reviewed(kind, raw), validate)
    names = written(as_many(lambda at: f"node-{at}", STORED)[:5_000])
    for name, raw in pods(STORED * 7 // 8):  # as JSON may blow up within filter_body_bytes
        body = b'{"Pod":%b,"Nodes":null,"NodeNames":%b}' % (raw, names)
        read = partial(models.pod_and_nodes, keep=DIALECTS.keeps, full_nodes=True)
        yield Case("/filter", name, body, read)
    yield Case(
        "/preempt", "5,000 nodes", preempting(), partial(models.preemption, keep=DIALECTS.keeps)
    )


@dataclass(frozen=True, slots=True)
class Reading:
    """One row: the reading of one object. Times are milliseconds of CPU, the least of several."""

    case: str
    bytes: int
    cpu: float
    longest: float
    """Without a turn of the event loop."""
    turns: int
    skipped: float
    """The decoder alone, reading nothing of the same bytes."""
    by: str
    """Who may store such an object."""


def read_once(read: Callable[[bytes], object], raw: bytes) -> tuple[float, float, int]:
    """All of the time, its longest stretch, and turns; what is refused has been read too."""
    ends = [time.thread_time()]
    token = give_way.set(lambda: ends.append(time.thread_time()))
    try:
        with suppress(DecodeError, models.BadRequest):
            read(raw)
    finally:
        give_way.reset(token)
    ends.append(time.thread_time())
    whole = ends[-1] - ends[0]
    is_beside = len(raw) > aside.LARGE_BYTES
    longest = max(end - begin for begin, end in pairwise(ends)) if is_beside else whole
    return whole * 1_000, longest * 1_000, len(ends) - 2


def measure(only: str, repeat: int) -> Iterator[Reading]:
    for case in cases():
        name = f"{case.reader}: {case.name}"
        if only in name:
            raw = case.received()
            cpu, longest, turns = zip(
                *(read_once(case.read, raw) for _ in range(repeat)), strict=True
            )
            plain = min(read_once(_SKIP.decode, raw)[0] for _ in range(repeat))
            by = "administrators" if case.reader in OF_ADMINISTRATORS else "tenants"
            yield Reading(name, len(case.raw), min(cpu), min(longest), turns[0], plain, by)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true", help="print a JSON list")
    parser.add_argument("--only", default="", help="rows with this text")
    parser.add_argument("--repeat", type=int, default=5)
    asked = parser.parse_args()
    show(list(measure(asked.only, asked.repeat)), as_json=asked.json)


if __name__ == "__main__":
    main()
