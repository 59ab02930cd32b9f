"""Gangs whose pods are stored where they belong: no gate, no patch, one binding a pod."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

import pytest

from tests.cluster import GPU, RACK, Cluster, Object, job, node
from tests.controlplane import node_faults
from tests.controlplane.jobset_lws import JOB_SETS
from tests.controlplane.kinds import job_set
from tests.controlplane.plane import ControlPlane
from tests.controlplane.policies import applied
from tests.controlplane.webhook import GATED, Webhook, installed
from tests.workloads import GATE, asking, gates_of, members

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

IN_RACK = asking(required=RACK)
FAST = {"kueue.x-k8s.io/pod-group-fast-admission": "true"}
BORN = "corral_pods_born_total"
GIVEN_BACK = 'corral_given_back_total{kind="pod"}'
SECONDS = 30.0
PODS = 4  # of a gang that is given back
BORN_SECONDS = {"born_seconds": 10}


@pytest.fixture
def policies(plane: ControlPlane) -> Iterator[None]:
    """Those of deploy/policies.yaml in effect, until a webhook beside them is gone."""
    with applied(plane):
        yield


@pytest.fixture
def webhook(plane: ControlPlane, cluster: Cluster, tmp_path: Path) -> Iterator[Webhook]:
    for rack in range(2):
        cluster.create_all(
            node(f"r{rack}-{number}", labels={RACK: f"r{rack}"}, gpus=8) for number in range(4)
        )
    with installed(plane, tmp_path, levels=(RACK,), born_seconds=10) as webhook:
        plane.start_scheduler(extender=webhook.corral.url)
        yield webhook


def racks_of(cluster: Cluster, name: str) -> list[str]:
    return sorted(node[:2] for pod, node in cluster.bound().items() if pod.startswith(name))


def test_the_pods_of_a_job_are_born_in_one_rack_and_start_together(webhook: Webhook) -> None:
    cluster, corral = webhook.cluster, webhook.corral
    gated = corral.metric(GATED)
    for name in ("first", "second"):
        cluster.create(job(name, pods=4, annotations=IN_RACK, requests={GPU: 8}))
    for name in ("first", "second"):
        racks = cluster.wait(
            lambda n=name: len(racks_of(cluster, n)) == 4 and racks_of(cluster, n), SECONDS, name
        )
        assert len(set(racks)) == 1
    pods = cluster.list("Pod", "default")
    assert [gates_of(each) for each in pods] == [[]] * 8
    assert all(each["spec"]["affinity"]["nodeAffinity"] for each in pods)
    assert corral.metric(GATED) == gated
    assert corral.metric(BORN) == 8


def test_beside_the_policies_pods_have_one_gate_and_none_is_born(
    policies: None, webhook: Webhook
) -> None:
    """The policies come first: what they have gated the webhook leaves behind that gate."""
    cluster, corral = webhook.cluster, webhook.corral
    for thing in members("g", 4, numbers=range(3), annotations=IN_RACK | FAST):
        assert gates_of(cluster.create(thing)) == [GATE]
    cluster.create(job("first", pods=4, annotations=IN_RACK, requests={GPU: 8}))
    cluster.wait(lambda: len(racks_of(cluster, "first")) == 4, SECONDS, "its start")
    assert len(set(racks_of(cluster, "first"))) == 1
    assert corral.metric(BORN) == corral.metric(GATED) == 0


def test_a_gang_that_finds_no_rack_waits_behind_the_gate(webhook: Webhook) -> None:
    cluster = webhook.cluster
    cluster.create(job("large", pods=5, annotations=IN_RACK, requests={GPU: 8}))
    cluster.wait(lambda: len(cluster.list("Pod", "default")) == 5, SECONDS, "its pods")
    assert all(gates_of(each) for each in cluster.list("Pod", "default"))
    cluster.create(node("r0-4", labels={RACK: "r0"}, gpus=8))
    cluster.wait(lambda: len(racks_of(cluster, "large")) == 5, SECONDS, "its start")


def test_a_pod_group_with_fast_admission_is_born_too(webhook: Webhook) -> None:
    cluster = webhook.cluster
    cluster.create_all(members("g", 4, annotations=IN_RACK | FAST, requests={GPU: 8}))
    cluster.wait(lambda: len(racks_of(cluster, "g")) == 4, SECONDS, "its start")
    assert webhook.corral.metric(BORN) == 4


def told(cluster: Cluster, reason: str) -> list[str]:
    """What events with this reason say."""
    return [
        each["message"] for each in cluster.list("Event", "default") if each["reason"] == reason
    ]


def pods_of(cluster: Cluster) -> dict[str, Object]:
    return {each["metadata"]["name"]: each for each in cluster.list("Pod", "default")}


@contextmanager
def stranded(
    plane: ControlPlane,
    cluster: Cluster,
    folder: Path,
    made: Object,
    *,
    may_suspend: bool = True,
    **settings: object,
) -> Iterator[tuple[Webhook, dict[str, Object]]]:
    """A gang, narrowed to the one rack that there was, of which a node is closed; another comes.

    kube-scheduler has not tried its pods. Without `settings` they are born there.
    """
    cluster.create_all(node(f"r0-{n}", labels={RACK: "r0"}, gpus=8) for n in range(PODS))
    with (
        plane.granted("corral-suspend") if may_suspend else nullcontext(),
        installed(plane, folder, levels=(RACK,), **(settings or BORN_SECONDS)) as webhook,
    ):
        cluster.create(made)
        cluster.wait(
            lambda: [gates_of(each) for each in pods_of(cluster).values()] == [[]] * PODS,
            SECONDS,
            "its pods, without a gate",
        )
        pods = pods_of(cluster)
        assert all(each["spec"]["affinity"]["nodeAffinity"] for each in pods.values())
        node_faults.cordon(cluster, "r0-0")
        cluster.create_all(node(f"r1-{n}", labels={RACK: "r1"}, gpus=8) for n in range(PODS))
        yield webhook, pods


def train() -> Object:
    """A Job of which no pod may fail."""
    made = job("train", pods=PODS, annotations=IN_RACK, requests={GPU: 8})
    made["spec"]["backoffLimit"] = 0
    return made


def expect_start_elsewhere(plane: ControlPlane, webhook: Webhook, first: dict[str, Object]) -> None:
    """The gang is given back, once these pods are gone it is made again, and it starts."""
    cluster = webhook.cluster
    (said,) = cluster.wait(lambda: told(cluster, "GangGivenBack"), SECONDS, "the word")
    assert f"{PODS} of its pods, which were narrowed to these nodes, are given back" in said
    cluster.wait(lambda: not first.keys() & pods_of(cluster).keys(), SECONDS, "their end")
    plane.start_scheduler(extender=webhook.corral.url)
    racks = cluster.wait(
        lambda: len(racks_of(cluster, "train")) == PODS and racks_of(cluster, "train"),
        SECONDS,
        "its start",
    )
    assert set(racks) == {"r1"}


def test_a_job_of_any_backoff_limit_is_suspended_until_its_pods_are_gone_and_starts_elsewhere(
    plane: ControlPlane, cluster: Cluster, tmp_path: Path
) -> None:
    with stranded(plane, cluster, tmp_path, train()) as (webhook, first):
        expect_start_elsewhere(plane, webhook, first)
        found = cluster.get("Job", "train")
        assert found is not None
        assert found["spec"]["suspend"] is False
        assert "corral.dev/suspended" not in found["metadata"].get("annotations", {})
        assert found["status"].get("failed", 0) == 0
        assert len(told(cluster, "GangGivenBack")) == 1
        assert webhook.corral.metric(GIVEN_BACK) == PODS
        assert webhook.corral.metric(BORN) == PODS, "those that were made again had the gate"
        assert webhook.corral.bugs() == {}


def test_pods_that_were_narrowed_as_their_gate_was_taken_off_are_given_back_where_that_is_set(
    plane: ControlPlane, cluster: Cluster, tmp_path: Path
) -> None:
    with stranded(plane, cluster, tmp_path, train(), narrowed_pods_given_back=True) as world:
        webhook, first = world
        expect_start_elsewhere(plane, webhook, first)
        found = cluster.get("Job", "train")
        assert found is not None
        assert found["status"].get("failed", 0) == 0
        assert webhook.corral.metric(GIVEN_BACK) == PODS
        assert webhook.corral.metric(BORN) == 0
        assert webhook.corral.bugs() == {}


def test_as_it_comes_they_wait_and_are_told_that_they_could_start_elsewhere(
    plane: ControlPlane, cluster: Cluster, tmp_path: Path
) -> None:
    with stranded(plane, cluster, tmp_path, train(), may_suspend=False, born_seconds=0) as world:
        webhook, first = world
        (said,) = cluster.wait(lambda: told(cluster, "GangNotGivenBack"), SECONDS, "the word")
        assert "narrowed_pods_given_back is off" in said
        assert pods_of(cluster).keys() == first.keys()
        node_faults.uncordon(cluster, "r0-0")
        plane.start_scheduler(extender=webhook.corral.url)
        cluster.wait(lambda: racks_of(cluster, "train") == ["r0"] * PODS, SECONDS, "its start")
        assert webhook.corral.bugs() == {}


def test_of_a_job_set_the_job_set_is_suspended_and_its_own_controller_has_its_jobs_go_on(
    plane: ControlPlane, cluster: Cluster, job_sets: None, tmp_path: Path
) -> None:
    thing = job_set("train", IN_RACK, {GPU: "8"}, driver={}, jobs=1, pods=PODS)
    _, workers = thing["spec"]["replicatedJobs"]
    workers["template"]["spec"]["backoffLimit"] = 0
    thing["spec"] |= {
        "replicatedJobs": [workers],
        "successPolicy": {"operator": "All"},
        "failurePolicy": {"maxRestarts": 0},
    }
    with stranded(plane, cluster, tmp_path, thing) as (webhook, first):
        expect_start_elsewhere(plane, webhook, first)
        found = cluster.request("GET", f"{JOB_SETS}/train").json()
        assert found["spec"]["suspend"] is False
        assert "corral.dev/suspended" not in found["metadata"].get("annotations", {})
        assert found["status"].get("restarts", 0) == 0
        made = cluster.get("Job", "train-w-0")
        assert made is not None
        assert made["spec"]["suspend"] is False
        assert made["status"].get("failed", 0) == 0
        assert webhook.corral.metric(GIVEN_BACK) == PODS
        assert webhook.corral.metric(BORN) == PODS
        assert webhook.corral.bugs() == {}


def test_where_corral_may_not_suspend_the_gang_waits_and_is_told_why_after_one_request(
    plane: ControlPlane, cluster: Cluster, tmp_path: Path
) -> None:
    with stranded(plane, cluster, tmp_path, train(), may_suspend=False) as (webhook, first):
        (said,) = cluster.wait(lambda: told(cluster, "GangNotGivenBack"), SECONDS, "the word")
        assert "ClusterRole corral-suspend" in said
        assert told(cluster, "GangGivenBack") == []
        assert webhook.corral.metric(GIVEN_BACK) == 0
        assert pods_of(cluster).keys() == first.keys()
        assert webhook.corral.bugs() == {}
    (denied,) = plane.denials()
    assert denied.path.endswith("/jobs/train")


def test_a_job_that_was_suspended_when_corral_ended_goes_on_once_another_one_is_there(
    plane: ControlPlane, cluster: Cluster, tmp_path: Path
) -> None:
    made = train()
    made["spec"]["suspend"] = True
    made["metadata"]["annotations"] = {"corral.dev/suspended": "true"}
    cluster.create(made)
    with (
        plane.granted("corral-suspend"),
        installed(plane, tmp_path, levels=(RACK,), born_seconds=10),
    ):
        cluster.wait(lambda: len(pods_of(cluster)) == PODS, SECONDS, "its pods")


def test_a_job_of_more_pods_than_may_fail_is_born_in_place(webhook: Webhook) -> None:
    cluster = webhook.cluster
    cluster.create(train())
    cluster.wait(lambda: len(racks_of(cluster, "train")) == PODS, SECONDS, "its start")
    assert webhook.corral.metric(BORN) == PODS
