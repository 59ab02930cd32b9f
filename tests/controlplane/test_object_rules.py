"""Volcano's own kinds behind the webhook as deploy/webhook.yaml has it, asked by kube-apiserver.

With Volcano's definitions, so what the schema refuses by itself never comes to Corral.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import pytest

from tests.app.dialects.volcano.objects import by_labels, by_pattern, exact, hyper_node
from tests.app.dialects.volcano.workloads import (
    network_topology,
    partition_policy,
    pod_group,
    sub_group,
    task,
    vcjob,
)
from tests.cluster import MERGE, Cluster, Object, collection
from tests.controlplane import kinds
from tests.controlplane.plane import ControlPlane
from tests.controlplane.volcano import JOB, POD_GROUP
from tests.controlplane.webhook import Webhook, installed

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

CALLS = 'corral_admission_seconds_count{route="validate"}'
TWO_TIERS = {"mode": "hard", "highestTierAllowed": 1, "highestTierName": "rack"}


@pytest.fixture(scope="module")
def webhook(plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Webhook]:
    """The webhook in effect, and Volcano's kinds served."""
    folder = tmp_path_factory.mktemp("objects")
    served = kinds.served(plane.cluster(), ("HyperNode", POD_GROUP, JOB))
    with served, installed(plane, folder) as webhook:
        yield webhook


def stored(members: list[Object]) -> Object:
    return hyper_node("s0", 1, members) | {"metadata": {"name": "s0"}}


GOOD_JOB = vcjob(
    "train",
    task("worker", 4, partitionPolicy=partition_policy(2, 2, topology=network_topology(1))),
    networkTopology=network_topology(2),
)
UNEQUAL = vcjob("train", task("worker", 5, partitionPolicy=partition_policy(2, 2)))


@pytest.mark.parametrize(
    ("thing", "error"),
    [
        pytest.param(
            stored([*exact("Node", "n0"), *by_pattern("node-(")]),
            'HyperNode.topology.volcano.sh "s0" is invalid: spec.members[1].selector.regexMatch'
            '.pattern: Invalid value: "node-(": missing ): node-(',
            id="HyperNode_pattern",
        ),
        pytest.param(
            stored(by_labels({"key": "rack", "operator": "In"})),
            "spec.members[0].selector.labelMatch.matchExpressions[0].values: Required value: ",
            id="HyperNode_selector",
        ),
        pytest.param(
            pod_group("pg", 1, topology=TWO_TIERS),
            'PodGroup.scheduling.volcano.sh "pg" is invalid: spec.networkTopology.highestTierName:'
            " Forbidden: ",
            id="PodGroup_tiers",
        ),
        pytest.param(
            pod_group("pg", 2, sub_groups=[sub_group("a", 2, topology={"mode": "hard"})]),
            "spec.subGroupPolicy[0].networkTopology: Required value: ",
            id="PodGroup_policy",
        ),
        pytest.param(
            vcjob("train", task("worker", 4), networkTopology=TWO_TIERS),
            'Job.batch.volcano.sh "train" is invalid: spec.networkTopology.highestTierName: ',
            id="vcjob_tiers",
        ),
        pytest.param(UNEQUAL, "spec.tasks[0].replicas: Invalid value: 5: must ", id="vcjob"),
    ],
)
def test_a_mistake_is_refused_with_its_field(webhook: Webhook, thing: Object, error: str) -> None:
    refused = webhook.refusal(lambda: tried(webhook.cluster, thing))
    assert refused.status == 422
    assert 'admission webhook "volcano.corral.dev" denied the request: ' in str(refused)
    assert error in str(refused)


@pytest.mark.parametrize(
    "thing",
    [
        pytest.param(
            stored([*exact("Node", "n0"), *by_pattern("^node-[0-9]+$"), *by_labels(rack="r1")]),
            id="HyperNode",
        ),
        pytest.param(
            pod_group("pg", 4, topology=network_topology(2), sub_groups=[sub_group("a", 2)]),
            id="PodGroup",
        ),
        pytest.param(GOOD_JOB, id="vcjob"),
    ],
)
def test_what_is_right_is_let_in_after_a_look_at_it(webhook: Webhook, thing: Object) -> None:
    before = webhook.corral.metric(CALLS)
    assert tried(webhook.cluster, thing)["metadata"]["name"] == thing["metadata"]["name"]
    assert webhook.corral.metric(CALLS) == before + 1


def test_what_is_not_ours_is_not_even_sent(webhook: Webhook) -> None:
    before = webhook.corral.metric(CALLS)
    others = copy.deepcopy(UNEQUAL)
    others["spec"]["schedulerName"] = "volcano"
    tried(webhook.cluster, others)
    owned = pod_group("pg", 1, topology=TWO_TIERS)
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "u", "controller": True}
    owned["metadata"]["ownerReferences"] = [owner]
    tried(webhook.cluster, owned)
    assert webhook.corral.metric(CALLS) == before


def test_pods_of_ours_in_a_vcjob_of_another_scheduler_make_it_ours(webhook: Webhook) -> None:
    mixed = copy.deepcopy(UNEQUAL)
    mixed["spec"]["schedulerName"] = "volcano"
    mixed["spec"]["tasks"][0]["template"]["spec"]["schedulerName"] = "corral"
    refused = webhook.refusal(lambda: tried(webhook.cluster, mixed))
    assert "spec.tasks[0].replicas: " in str(refused)


def test_what_was_let_in_broken_can_be_changed_but_not_for_the_worse(webhook: Webhook) -> None:
    cluster = webhook.cluster
    webhook.corral.terminate()  # it fails open
    broken = pod_group("pg", 1, topology=TWO_TIERS)
    broken["metadata"]["finalizers"] = ["example.com/keep"]
    cluster.create(broken)
    webhook.corral.start()
    webhook.wait_effective()
    before = webhook.corral.metric(CALLS)
    change(cluster, {"status": {"phase": "Inqueue"}})
    change(cluster, {"metadata": {"labels": {"a": "b"}}})
    assert webhook.corral.metric(CALLS) == before  # its spec is the same
    change(cluster, {"spec": {"minMember": 2}})
    assert webhook.corral.metric(CALLS) == before + 1
    worse = {"subGroupPolicy": [sub_group("a", 1), sub_group("a", 1)]}
    refused = webhook.refusal(lambda: change(cluster, {"spec": worse}))
    assert "spec.subGroupPolicy[1].name: Duplicate value: " in str(refused)
    assert "networkTopology" not in str(refused)
    change(cluster, {"metadata": {"finalizers": None}})
    cluster.request("DELETE", f"{path_of(broken)}/pg")


def change(cluster: Cluster, content: Object) -> None:
    """Merges this into the PodGroup. Raises: Refused."""
    path = f"{path_of(pod_group('pg', 1))}/pg"
    cluster.request("PATCH", path, body=content, content_type=MERGE)


def tried(cluster: Cluster, thing: Object) -> Object:
    """The object as it would be stored. Raises: Refused."""
    params = {"dryRun": "All", "fieldValidation": "Strict"}
    answer: Any = cluster.request("POST", path_of(thing), body=thing, params=params)
    made: Object = answer.json()
    return made


def path_of(thing: Object) -> str:
    return collection(thing["kind"], thing["metadata"].get("namespace"), thing["apiVersion"])
