"""Gangs of which pods have ended: the audit finds no fault with those that are left."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
import pytest

from app.cli.audit.gathering import Gathering
from app.cli.audit.reading import judged
from app.cli.audit.verdicts import Verdict
from app.kube.core.objects import NodeRecord, ObjectRecord, PodRecord
from app.state.settings import EngineSettings
from tests.app.cli.audit.planted import NODES, A, B, C, D, E, labelled, owned, placed, with_uid
from tests.cluster import BLOCK, RACK, Object, job
from tests.workload_pods import COMPLETION_INDEX
from tests.workloads import REQUIRED

SLICED = {
    REQUIRED: BLOCK,
    "kueue.x-k8s.io/podset-slice-required-topology": RACK,
    "kueue.x-k8s.io/podset-slice-size": "4",
}
LEFT = (2, 3, 6, 7)  # of two slices of four, two each
ALL_WELL = {"whole": "MATCH", "pod set": "MATCH", "slices of 4 of pod set": "MATCH"}


def audited(*objects: Object) -> dict[str, Verdict]:
    """What is said of the gang that these objects are, by constraint."""
    levels = (BLOCK, RACK)
    gathering = Gathering(EngineSettings(scheduler_name="", levels=levels))
    nodes, pods, others = gathering.resources()
    for each in (*NODES, *objects):
        if each["kind"] == "Node":
            record = nodes.decode(msgspec.json.encode(each))
            assert isinstance(record, NodeRecord)
            gathering.put_node(record)
    for resource in others:
        its = [each for each in objects if each["kind"] == resource.kind]
        read = [resource.decode(msgspec.json.encode(each)) for each in its]
        gathering.put_objects(
            resource.kind, [each for each in read if isinstance(each, ObjectRecord)]
        )
    made = [pods.decode(msgspec.json.encode(each)) for each in objects if each["kind"] == "Pod"]
    gathering.put_pods(each for each in made if isinstance(each, PodRecord))
    return {each.constraint: each for each in judged(gathering, len(made)).verdicts}


def answers(found: dict[str, Verdict]) -> dict[str, str]:
    return {name: each.answer for name, each in found.items()}


def eight(kind: str = "Job", api_version: str = "batch/v1") -> list[Object]:
    return [
        owned(
            labelled(f"train-{at}", {COMPLETION_INDEX: str(at)}, annotations=SLICED),
            api_version,
            kind,
            "train",
        )
        for at in range(8)
    ]


def some_left(pods: list[Object], nodes: Iterable[str] = (A, B, C, D)) -> list[Object]:
    return [placed(pods[at], node) for at, node in zip(LEFT, nodes, strict=True)]


def training_job() -> tuple[Object, list[Object]]:
    template = job("train", pods=8, annotations=SLICED)["spec"]["template"]
    made = {
        "apiVersion": "kubeflow.org/v1",
        "kind": "PyTorchJob",
        "metadata": {"name": "train", "namespace": "default"},
        "spec": {"pytorchReplicaSpecs": {"Worker": {"replicas": 8, "template": template}}},
    }
    return with_uid(made), eight("PyTorchJob", "kubeflow.org/v1")


@pytest.mark.parametrize(
    "status",
    [
        pytest.param({"succeeded": 4, "completedIndexes": "0,1,4,5"}, id="succeeded"),
        pytest.param({"succeeded": 4}, id="without_numbers"),
        pytest.param({"failed": 4, "failedIndexes": "0,1,4,5"}, id="failed_for_good"),
    ],
)
def test_slices_are_whole_of_which_pods_have_ended_and_are_gone(status: Object) -> None:
    made = with_uid(job("train", pods=8, annotations=SLICED)) | {"status": status}
    assert answers(audited(made, *some_left(eight()))) == ALL_WELL
    torn = audited(made, *some_left(eight(), (A, C, C, E)))
    assert torn["slices of 4 of pod set"].answer == "VIOLATION"


def test_so_it_is_with_the_pods_of_an_operator_that_counts_them_by_type() -> None:
    made, pods = training_job()
    made |= {"status": {"replicaStatuses": {"Worker": {"succeeded": 4, "active": 4}}}}
    assert answers(audited(made, *some_left(pods))) == ALL_WELL


def test_how_many_slices_there_are_is_not_known_without_the_object() -> None:
    found = audited(*some_left(eight()))
    assert found["slices of 4 of pod set"].answer == "UNOBSERVABLE"
    assert found["slices of 4 of pod set"].text == "how many pods the gang has is not known"
    whole = audited(*[placed(pod, A) for pod in eight()])
    assert whole["slices of 4 of pod set"].answer == "MATCH"


def test_a_pod_that_has_succeeded_is_named_where_its_job_has_not_counted_it_yet() -> None:
    made, pods = with_uid(job("train", pods=8, annotations=SLICED)), eight()
    ended = placed(pods[0], A, "Succeeded")
    found = audited(made, ended, *[placed(pod, A) for pod in pods[1:]])
    assert found["whole"].text == "only 7 of 8 pods run: pod train-0 has succeeded"
