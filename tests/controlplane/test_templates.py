"""The templates of every kind that makes pods, behind the webhook as deploy/webhook.yaml has it.

The API server checks each object by the schema of its own project, to the last field, and asks
Corral. One webhook serves all tests here, which store next to nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest

from tests.cluster import BLOCK, MERGE, RACK, Cluster, Object, collection, job
from tests.controlplane import kinds
from tests.controlplane.plane import ControlPlane
from tests.controlplane.webhook import BROKEN, Webhook, installed
from tests.workloads import REQUIRED, asking

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

SLICE_LEVEL = "kueue.x-k8s.io/podset-slice-required-topology"
SLICE_SIZE = "kueue.x-k8s.io/podset-slice-size"
IN_ALL = "corral.dev/workload-required-topology"
PYTORCH = "pytorchReplicaSpecs"
IN_RACK = asking(required=RACK)
# Beside a template that says where its pods go, every other one has to say it too.
ANYWHERE = asking(unconstrained=True)

Strings = Mapping[str, str]
Made = Callable[[Strings], Object]


def case(kind: str, made: Made, template: str, pods: int) -> Any:
    """An object with the given annotations on one template: where that is, how many pods it has."""
    return pytest.param(made, template, pods, id=kind)


def training_case(kind: str, field: str, other: str = "") -> Any:
    """One of Kubeflow's jobs with eight workers; other: the type of another pod beside them."""

    def made(said: Strings) -> Object:
        types: dict[str, tuple[Strings, int]] = {other: (ANYWHERE, 1)} if other else {}
        return kinds.training_job(kind, field, "train", {**types, "Worker": (said, 8)})

    return case(kind, made, f"spec.{field}[Worker].template", 8)


CASES = [
    case("Job", lambda said: job("train", pods=8, annotations=said), "spec.template", 8),
    case("StatefulSet", lambda said: kinds.stateful_set("train", 8, said), "spec.template", 8),
    case(
        "JobSet",
        lambda said: kinds.job_set("train", said, driver=ANYWHERE, jobs=4, pods=2),
        "spec.replicatedJobs[1].template.spec.template",
        8,
    ),
    case(
        "LeaderWorkerSet",
        lambda said: kinds.leader_worker_set("train", said, size=8),
        "spec.leaderWorkerTemplate.workerTemplate",
        8,
    ),
    case(
        "LeaderWorkerSet_workers",
        lambda said: kinds.leader_worker_set("train", said, size=8, leader=ANYWHERE),
        "spec.leaderWorkerTemplate.workerTemplate",
        7,
    ),
    case(
        "LeaderWorkerSet_leader",
        lambda said: kinds.leader_worker_set("train", ANYWHERE, size=8, leader=said),
        "spec.leaderWorkerTemplate.leaderTemplate",
        1,
    ),
    training_case("PyTorchJob", "pytorchReplicaSpecs", "Master"),
    training_case("TFJob", "tfReplicaSpecs", "Chief"),
    training_case("XGBoostJob", "xgbReplicaSpecs", "Master"),
    training_case("PaddleJob", "paddleReplicaSpecs", "Master"),
    training_case("JAXJob", "jaxReplicaSpecs"),
    training_case("MPIJob", "mpiReplicaSpecs", "Launcher"),
]


@pytest.fixture(scope="module")
def webhook(plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Webhook]:
    """The webhook in effect, and every kind served that it is for."""
    folder = tmp_path_factory.mktemp("templates")
    with kinds.served(plane.cluster()), installed(plane, folder) as webhook:
        yield webhook


@pytest.mark.parametrize(("made", "template", "pods"), CASES)
def test_a_mistake_is_refused_with_the_path_of_its_template(
    webhook: Webhook, made: Made, template: str, pods: int
) -> None:
    refused = webhook.refusal(lambda: tried(webhook.cluster, made(BROKEN)))
    assert refused.status == 422
    field = f"{template}.metadata.annotations[{REQUIRED}]"
    assert f'{field}: Invalid value: "my rack": must be' in str(refused)


@pytest.mark.parametrize(("made", "template", "pods"), CASES)
def test_a_slice_as_large_as_its_pod_set_is_let_in_and_a_larger_one_is_not(
    webhook: Webhook, made: Made, template: str, pods: int
) -> None:
    right = {SLICE_LEVEL: RACK, SLICE_SIZE: str(pods)}
    assert (
        made(right)["metadata"].items() <= tried(webhook.cluster, made(right))["metadata"].items()
    )

    wrong = {SLICE_LEVEL: RACK, SLICE_SIZE: str(pods + 1)}
    refused = webhook.refusal(lambda: tried(webhook.cluster, made(wrong)))
    field = f"{template}.metadata.annotations[{SLICE_SIZE}]"
    most = f"must not be greater than pod set count {pods}"
    assert f'{field}: Invalid value: "{pods + 1}": {most}' in str(refused)


@pytest.mark.parametrize(("made", "template", "pods"), [one for one in CASES if one.values[2] > 1])
def test_slices_that_do_not_divide_their_pod_set_are_refused(
    webhook: Webhook, made: Made, template: str, pods: int
) -> None:
    size = next(size for size in range(2, pods) if pods % size)
    wrong = {SLICE_LEVEL: RACK, SLICE_SIZE: str(size)}
    refused = webhook.refusal(lambda: tried(webhook.cluster, made(wrong)))
    field = f"{template}.metadata.annotations[{SLICE_SIZE}]"
    assert f'{field}: Invalid value: "{size}": must evenly divide pod set count {pods}' in str(
        refused
    )


@pytest.mark.parametrize(
    ("thing", "silent", "asking_one"),
    [
        pytest.param(
            kinds.job_set("train", IN_RACK, driver={}, jobs=4, pods=2),
            "spec.replicatedJobs[0].template.spec.template",
            "spec.replicatedJobs[1].template.spec.template",
            id="JobSet",
        ),
        pytest.param(
            kinds.leader_worker_set("train", IN_RACK, size=8, leader={}),
            "spec.leaderWorkerTemplate.leaderTemplate",
            "spec.leaderWorkerTemplate.workerTemplate",
            id="LeaderWorkerSet",
        ),
        pytest.param(
            kinds.training_job(
                "PyTorchJob", PYTORCH, "train", {"Master": ({}, 1), "Worker": (IN_RACK, 8)}
            ),
            f"spec.{PYTORCH}[Master].template",
            f"spec.{PYTORCH}[Worker].template",
            id="PyTorchJob",
        ),
    ],
)
def test_a_template_that_says_nothing_beside_one_that_does_is_refused(
    webhook: Webhook, thing: Object, silent: str, asking_one: str
) -> None:
    refused = webhook.refusal(lambda: tried(webhook.cluster, thing))
    assert refused.status == 422
    told = f"{silent}.metadata.annotations: Required value: must contain one of '{REQUIRED}'"
    assert told in str(refused)
    assert f"as '{asking_one}.metadata.annotations' does" in str(refused)


def test_templates_that_name_two_levels_of_their_workload_are_refused(webhook: Webhook) -> None:
    thing = kinds.job_set(
        "train", IN_RACK | {IN_ALL: BLOCK}, driver=ANYWHERE | {IN_ALL: RACK}, jobs=4, pods=2
    )
    refused = webhook.refusal(lambda: tried(webhook.cluster, thing))
    first, second = (
        f"spec.replicatedJobs[{at}].template.spec.template.metadata.annotations[{IN_ALL}]"
        for at in range(2)
    )
    told = f'{second}: Invalid value: "{BLOCK}": must be consistent with \'{first}\': "{RACK}"'
    assert told in str(refused)


def test_a_template_that_is_changed_for_the_worse_is_refused(webhook: Webhook) -> None:
    right = kinds.leader_worker_set("train", asking(required=RACK), size=8)
    path = collection("LeaderWorkerSet", "default", right["apiVersion"]) + "/train"
    webhook.cluster.create(right)

    refused = webhook.refusal(
        lambda: change(webhook.cluster, path, workerTemplate={"metadata": {"annotations": BROKEN}})
    )
    field = f"spec.leaderWorkerTemplate.workerTemplate.metadata.annotations[{REQUIRED}]"
    assert f'{field}: Invalid value: "my rack": must be' in str(refused)
    change(webhook.cluster, path, size=16)


def tried(cluster: Cluster, thing: Object) -> Object:
    """The object as it would be stored. Raises: Refused."""
    path = collection(thing["kind"], "default", thing["apiVersion"])
    params = {"dryRun": "All", "fieldValidation": "Strict"}
    stored: Object = cluster.request("POST", path, body=thing, params=params).json()
    return stored


def change(cluster: Cluster, path: str, **fields: Any) -> None:
    """Changes the groups of a LeaderWorkerSet; they must be like that afterwards."""
    body = {"spec": {"leaderWorkerTemplate": fields}}
    cluster.request("PATCH", path, body=body, content_type=MERGE)
    stored = cluster.request("GET", path).json()["spec"]["leaderWorkerTemplate"]
    assert fields.items() <= stored.items()
