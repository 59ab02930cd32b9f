"""Pods, each as large in another part; nodes; and annotations of pods."""

from __future__ import annotations

from collections.abc import Iterator

from app.dialects import corral
from benchmarks.largest.written import (
    ANNOTATIONS,
    DEFAULTS,
    RESOURCE,
    STORED,
    Json,
    a_pod,
    affinity,
    as_many,
    containers,
    mapping,
    written,
)

KUEUE = "kueue.x-k8s.io/"
ESCAPES = {"<": b"\\u003c", "control characters": b"\\u0001"}


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
