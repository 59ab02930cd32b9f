"""Nothing is recorded that scheduling does not need: a canary in every text, and none comes out."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import msgspec
import pytest
import yaml

from app.cli.record.driver_sets import kept_text
from app.cli.record.fields import kept_node, kept_pod
from app.cli.record.objects import kept_object
from app.cli.record.recording import EVERYTHING
from app.dialects.kueue.driver_sets import SETS, pod_sets
from app.dialects.registry import DIALECTS
from app.dialects.rules import BadValue
from app.kube.decoding.decode import decode_node, decode_pod
from tests.app.cli.record.planting import CANARY, planted, texts, where
from tests.app.dialects.grove import objects as grove
from tests.app.dialects.kai import objects as kai
from tests.app.dialects.native import objects as native
from tests.app.dialects.volcano import objects as volcano
from tests.app.dialects.volcano import workloads as vcjobs
from tests.cluster import job, node, pod

RESOURCES = {each.kind: each for each in DIALECTS.configured(EVERYTHING).resources()}
KEEPS = DIALECTS.configured(EVERYTHING).keeps
TERMS = "[].matchExpressions[]", "[].matchFields[]"
REQUIRED = ".spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = ".spec.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution"

# What stays, by hand: README has the same list in words.
OWNERS = {f".metadata.ownerReferences[].{name}" for name in ("apiVersion", "kind", "name", "uid")}
OF_A_POD = {
    *(f".metadata.{name}" for name in ("name", "namespace", "uid")),
    *OWNERS,
    *(
        f".spec.{name}"
        for name in (
            "nodeName",
            "schedulerName",
            "preemptionPolicy",
            f"nodeSelector.{CANARY}",
            "schedulingGates[].name",
            "schedulingGroup.podGroupName",
            *(f"tolerations[].{each}" for each in ("key", "operator", "value", "effect")),
            f"overhead.{CANARY}",
            f"resources.requests.{CANARY}",
            *(
                f"{part}[].{each}"
                for part in ("containers", "initContainers")
                for each in (f"resources.requests.{CANARY}", "restartPolicy")
            ),
        )
    ),
    *(
        f"{where}.{each}"
        for where in (
            *(f"{REQUIRED}.nodeSelectorTerms{term}" for term in TERMS),
            *(f"{PREFERRED}[].preference{term.removeprefix('[]')}" for term in TERMS),
        )
        for each in ("key", "operator", "values[]")
    ),
    ".status.phase",
    ".status.nominatedNodeName",
}
OF_A_NODE = {
    ".metadata.name",
    ".metadata.uid",
    f".metadata.labels.{CANARY}",  # of these only what something names is written: see below
    *(f".spec.taints[].{each}" for each in ("key", "value", "effect")),
    f".status.allocatable.{CANARY}",
    f".status.capacity.{CANARY}",
}
OF_EVERY_OBJECT = {f".metadata.{name}" for name in ("name", "namespace", "uid", "resourceVersion")}


def test_of_a_pod_with_a_canary_in_every_text_only_what_scheduling_needs_is_kept() -> None:
    whole = planted("V1Pod")
    assert len(where(whole)) > 700
    kept = kept_pod(whole, KEEPS)
    assert kept is not None
    assert set(where(kept)) == OF_A_POD


def test_of_a_node_with_a_canary_in_every_text_only_what_scheduling_needs_is_kept() -> None:
    assert set(where(kept_node(planted("V1Node")))) == OF_A_NODE


def test_what_is_left_of_an_ordinary_pod_has_no_trace_of_its_secrets() -> None:
    whole = pod("p", requests={"cpu": "1"}, annotations={"kubectl.kubernetes.io/x": CANARY})
    whole["spec"] |= {"containers": [planted("V1Container") | {"resources": {}}], "volumes": []}
    whole["spec"]["containers"][0]["restartPolicy"] = "Always"
    whole["status"] = {"conditions": [{"type": "Ready", "status": "True", "message": CANARY}]}
    kept = kept_pod(whole, KEEPS)
    assert CANARY not in str(kept)


def test_a_pod_is_read_the_same_from_what_is_kept() -> None:
    whole = pod(
        "p",
        requests={"cpu": "1500m", "nvidia.com/gpu": 8},
        annotations={
            "kueue.x-k8s.io/pod-group-name": "g",
            "kueue.x-k8s.io/pod-group-pod-index-label": "rank",
            "secret": CANARY,
        },
        labels={"kueue.x-k8s.io/pod-group-pod-index": "3", "rank": "3", "team": CANARY},
        gates=("corral.dev/gang",),
        nodeSelector={"zone": "a"},
        tolerations=[{"key": "gpu", "operator": "Exists", "tolerationSeconds": 30}],
        priority=7,
        initContainers=[{"name": "i", "image": CANARY, "resources": {"requests": {"cpu": "9"}}}],
        overhead={"memory": "1Mi"},
        resourceClaims=[{"name": CANARY}],
        affinity={
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {
                    "nodeSelectorTerms": [
                        {
                            "matchFields": [
                                {"key": "metadata.name", "operator": "In", "values": ["n1"]}
                            ]
                        }
                    ]
                }
            }
        },
    )
    whole["metadata"]["uid"] = "u"
    whole["status"] = {
        "phase": "Pending",
        "conditions": [
            {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler",
             "lastTransitionTime": "2026-01-01T00:00:00Z", "message": CANARY},
        ],
    }  # fmt: skip
    kept = kept_pod(whole, KEEPS)
    assert CANARY not in str(kept)
    assert read_pod(kept) == read_pod(whole)
    assert read_pod(kept).labels["rank"] == "3"
    assert read_pod(kept).is_preempted


def read_pod(made: Any) -> Any:
    return decode_pod(msgspec.json.encode(made), KEEPS)


def test_a_node_is_read_the_same_from_what_is_kept() -> None:
    whole = node("n", labels={"rack": "r"}, gpus=8, is_ready=False, is_unschedulable=True,
                 taints=[{"key": "k", "value": "v", "effect": "NoSchedule"}])  # fmt: skip
    whole["status"]["images"] = [{"names": [CANARY]}]
    kept = kept_node(whole)
    assert CANARY not in str(kept)
    raw, from_kept = msgspec.json.encode(whole), msgspec.json.encode(kept)
    assert decode_node(from_kept) == decode_node(raw)


def test_a_pod_that_has_ended_is_left_out() -> None:
    ended = pod("p") | {"status": {"phase": "Succeeded"}}
    assert kept_pod(ended, KEEPS) is None


# -- objects of vocabularies -----------------------------------------------------------------------


def decorated(part: Any) -> Any:
    """The same with a field of its own, with the canary, in every mapping of it."""
    if isinstance(part, list):
        return [decorated(each) for each in part]
    if isinstance(part, dict):
        inner = {key: decorated(each) for key, each in part.items()}
        is_by_name = all(isinstance(each, dict) and "replicas" in each for each in part.values())
        return inner if part and is_by_name else inner | {"unknownField": CANARY}
    return part


TEMPLATE = planted("V1PodTemplateSpec")
CORE = {
    "Job": ("V1Job", {*OWNERS, ".spec.template.spec.schedulerName"}),
    "StatefulSet": ("V1StatefulSet", {*OWNERS, ".spec.template.spec.schedulerName"}),
    "PodDisruptionBudget": ("V1PodDisruptionBudget", set[str]()),
    "ResourceQuota": ("V1ResourceQuota", set[str]()),
}


@pytest.mark.parametrize("kind", CORE)
def test_of_a_core_object_with_a_canary_in_every_text_only_what_is_read_is_kept(kind: str) -> None:
    model, needed = CORE[kind]
    whole = planted(model)
    kept = kept_object(RESOURCES[kind], msgspec.json.encode(whole))
    assert set(where(kept)) <= OF_EVERY_OBJECT | needed
    assert read(kind, kept) == read(kind, whole)


def read(kind: str, made: Any) -> Any:
    return RESOURCES[kind].decode(msgspec.json.encode(made))


def job_set() -> Any:
    job = {"name": "w", "replicas": 2, "template": {"spec": {"parallelism": 2, "completions": 2,
           "template": TEMPLATE}}}  # fmt: skip
    return custom("jobset.x-k8s.io/v1alpha2", "JobSet", {"replicatedJobs": [job]})


def leader_worker_set() -> Any:
    both = {"size": 3, "leaderTemplate": TEMPLATE, "workerTemplate": TEMPLATE}
    return custom(
        "leaderworkerset.x-k8s.io/v1",
        "LeaderWorkerSet",
        {"replicas": 2, "leaderWorkerTemplate": both},
    )


def pytorch_job() -> Any:
    replicas = {"Worker": {"replicas": 2, "template": TEMPLATE}}
    return custom("kubeflow.org/v1", "PyTorchJob", {"pytorchReplicaSpecs": replicas})


def vcjob() -> Any:
    made = vcjobs.vcjob("train", vcjobs.task("worker", 2))
    made["spec"]["tasks"][0]["template"] = TEMPLATE
    return made


def custom(api: str, kind: str, spec: Any) -> Any:
    metadata = {"name": "train", "namespace": "default", "uid": "u", "annotations": {"x": CANARY}}
    return {"apiVersion": api, "kind": kind, "metadata": metadata, "spec": spec}


CUSTOM = {
    "JobSet": job_set(),
    "LeaderWorkerSet": leader_worker_set(),
    "PyTorchJob": pytorch_job(),
    "Job.batch.volcano.sh": vcjob(),
    "HyperNode": volcano.hyper_node("h", 1, volcano.exact("Node", "n1", "n2")),
    "PodGang": grove.pod_gang("g", grove.pod_group("a", 1, grove.within("rack"), names=["p"])),
    "ClusterTopology": grove.cluster_topology("t", "zone", "rack"),
    "PodGroup.scheduling.run.ai": kai.pod_group("g", 2, kai.sub_group("a", 1), on=kai.within("r")),
    "Topology.kai.scheduler": kai.topology("t", "zone", "rack"),
    "PodGroup.scheduling.k8s.io": native.pod_group("g", 2, key="rack"),
}


@pytest.mark.parametrize("kind", CUSTOM)
def test_of_a_custom_object_no_canary_is_kept_but_who_schedules_its_pods(kind: str) -> None:
    whole = decorated(CUSTOM[kind])
    raw = msgspec.json.encode(whole)
    assert CANARY in raw.decode()
    kept = kept_object(RESOURCES[kind], raw)
    assert [each for each in where(kept) if not each.endswith(".schedulerName")] == []
    assert read(kind, without_messages(kept)) == read(kind, without_messages(whole))


def without_messages(made: Any) -> Any:
    """A vocabulary may remember conditions whole, to write them again."""
    names = ("type", "status", "reason", "lastTransitionTime")
    conditions = (made.get("status") or {}).get("conditions") or ()
    short = [{name: each[name] for name in names if name in each} for each in conditions]
    return made | {"status": {"conditions": short}}


@pytest.mark.parametrize("kind", CUSTOM)
def test_nothing_is_kept_that_could_be_left_out_as_well(kind: str) -> None:
    kept = kept_object(RESOURCES[kind], msgspec.json.encode(CUSTOM[kind]))
    for key in kept["spec"]:
        less = {**kept, "spec": {name: part for name, part in kept["spec"].items() if name != key}}
        assert read_or_none(kind, less) != read(kind, kept)


def read_or_none(kind: str, made: Any) -> Any:
    from app.errors import DecodeError

    try:
        return read(kind, made)
    except DecodeError:
        return None


def test_the_canary_is_planted_in_keys_as_well_as_in_values() -> None:
    assert (f".metadata.labels.{CANARY}", CANARY) in texts(planted("V1Pod"))


def test_a_key_that_some_selector_names_is_kept_of_labels_and_not_of_annotations() -> None:
    copy = "kubectl.kubernetes.io/last-applied-configuration"
    whole = pod("p", annotations={copy: CANARY}, labels={copy: "x"})
    kept = kept_pod(whole, KEEPS, lambda key: key == copy)
    assert kept is not None
    assert kept["metadata"]["labels"] == {copy: "x"}
    assert CANARY not in str(kept)


TEMPLATE = {
    "metadata": {
        "name": CANARY,
        "annotations": {"note": CANARY, "kueue.x-k8s.io/podset-required-topology": "example.com/r"},
    },
    "spec": {
        "containers": [
            {
                "name": CANARY,
                "image": CANARY,
                "env": [{"name": "TOKEN", "value": CANARY}],
                "resources": {"limits": {"nvidia.com/gpu": "8"}, "requests": {"cpu": "1"}},
            },
            {"requests": {"cpu": "500m"}, "command": [CANARY]},
        ],
        "initContainers": [
            {"args": [CANARY], "restartPolicy": "Always", "resources": {"requests": {"cpu": 2}}}
        ],
        "nodeSelector": {"pool": "p"},
        "tolerations": [{"key": "gpu", "operator": "Exists"}],
        "volumes": [{"name": CANARY}],
        "resourceClaims": [{"name": CANARY}],
    },
}
SETS_OF_A_DRIVER = [
    {"name": "workers", "count": 4, "template": TEMPLATE, "note": CANARY},
    {"name": "drivers", "count": 1, "template": {}},
    {"name": "others", "count": 2},
]


def leaves_of(text: str) -> list[object]:
    """What a vocabulary reads of such a text, but for the text itself."""
    driver = decode_pod(msgspec.json.encode(pod("d", annotations={SETS: text})), KEEPS)
    return [
        replace(each, like=msgspec.structs.replace(each.like.pod, name="", annotations={}))
        for each in pod_sets(driver)
        if each.like is not None
    ]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(msgspec.json.encode(SETS_OF_A_DRIVER).decode(), id="json"),
        pytest.param(yaml.safe_dump(SETS_OF_A_DRIVER), id="yaml"),
    ],
)
def test_of_the_templates_in_an_annotation_only_what_is_read_is_kept(text: str) -> None:
    kept = kept_text(text)
    assert CANARY in text
    assert CANARY not in kept
    assert leaves_of(kept) == leaves_of(text)


@pytest.mark.parametrize(
    "text",
    [
        CANARY,
        f"[{{{CANARY}",
        msgspec.json.encode([{"name": f"{CANARY}_", "count": 1}]).decode(),
        msgspec.json.encode([{"name": "w", "count": 1, "template": {"spec": CANARY}}]).decode(),
        CANARY * 10_000,
    ],
    ids=["text", "torn", "name", "template", "long"],
)
def test_of_one_that_cannot_be_read_nothing_is_kept_and_it_still_cannot(text: str) -> None:
    kept = kept_text(text)
    assert CANARY not in kept
    for each in (text, kept):
        with pytest.raises(BadValue):
            leaves_of(each)


def test_so_it_is_with_the_templates_of_a_workload() -> None:
    annotations = {SETS: msgspec.json.encode(SETS_OF_A_DRIVER).decode()}
    made = job("j", pods=1, annotations=annotations)
    kept = kept_object(RESOURCES["Job"], msgspec.json.encode(made))
    assert SETS in str(kept)
    assert CANARY not in str(kept)
