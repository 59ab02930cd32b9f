"""What deploy/policy.yaml lets Corral change of Jobs, on a real API server."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.cluster import Cluster, Object, Refused, job
from tests.controlplane.guarded import SECONDS, Guarded
from tests.controlplane.plane import ControlPlane

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

SUSPENDED = "corral.dev/suspended"
JOB = Guarded("/apis/batch/v1/namespaces/default/jobs/train", "what-corral-suspends.corral.dev")


def saying(value: str | None, *, suspend: bool, **more: object) -> Object:
    """A merge patch of the annotation and of whether the Job is suspended."""
    return {
        "metadata": {"annotations": {SUSPENDED: value}},
        "spec": {"suspend": suspend, **more},
    }


ALL_ON_JOBS: Object = {
    "apiVersion": "rbac.authorization.k8s.io/v1",
    "kind": "ClusterRole",
    "metadata": {"name": "all-on-jobs"},
    "rules": [{"apiGroups": ["batch"], "resources": ["jobs", "jobs/status"], "verbs": ["*"]}],
}
SUSPEND, RESUME = saying("true", suspend=True), saying(None, suspend=False)


@pytest.fixture
def corral(plane: ControlPlane, cluster: Cluster) -> Iterator[Cluster]:
    """Corral's identity, which may patch Jobs, once the policy is in effect."""
    made = job("train", pods=1)
    made["metadata"]["annotations"] = {"example.com/own": "a"}
    cluster.create(made)
    with plane.granted("corral-suspend"):
        corral = plane.cluster("corral")
        corral.wait(lambda: JOB.is_refused(corral, {"spec": {"parallelism": 2}}), SECONDS, "it")
        yield corral
    plane.denials()


@pytest.fixture
def owner(plane: ControlPlane, corral: Cluster) -> Iterator[Cluster]:
    """A user who may do everything with Jobs, and nothing else."""
    plane.cluster().apply(ALL_ON_JOBS)
    with plane.granted("all-on-jobs", "tenant"):
        yield plane.cluster("tenant")


def test_corral_suspends_a_job_and_has_it_go_on(corral: Cluster) -> None:
    assert JOB.change(corral, SUSPEND)["spec"]["suspend"] is True
    assert JOB.change(corral, RESUME)["spec"]["suspend"] is False


def test_it_has_no_job_go_on_that_its_user_has_suspended(cluster: Cluster, corral: Cluster) -> None:
    JOB.change(cluster, {"spec": {"suspend": True}})
    assert JOB.is_refused(corral, SUSPEND)
    assert JOB.is_refused(corral, RESUME)


@pytest.mark.parametrize(
    "body",
    [
        pytest.param({"spec": {"suspend": True}}, id="it_must_say_so"),
        pytest.param({"metadata": {"annotations": {SUSPENDED: "true"}}}, id="and_do_so"),
        pytest.param(saying("true", suspend=True, parallelism=2), id="no_other_field"),
        pytest.param(saying("true", suspend=True, activeDeadlineSeconds=9), id="no_new_field"),
        pytest.param({"metadata": {"labels": {"a": "b"}}}, id="no_label"),
        pytest.param(
            {
                "metadata": {"annotations": {SUSPENDED: "true", "example.com/own": None}},
                "spec": {"suspend": True},
            },
            id="no_other_annotation",
        ),
    ],
)
def test_it_changes_nothing_else(corral: Cluster, body: Object) -> None:
    assert JOB.is_refused(corral, body)


def test_nobody_else_says_that_corral_has_suspended_a_job(corral: Cluster, owner: Cluster) -> None:
    """Corral would have a Job go on that a queue keeps waiting."""
    assert JOB.is_refused(owner, {"metadata": {"annotations": {SUSPENDED: "true"}}})
    assert JOB.is_refused(owner, saying("true", suspend=True))
    said = job("other", pods=1)
    said["metadata"]["annotations"] = {SUSPENDED: "true"}
    with pytest.raises(Refused, match="only Corral writes the annotation corral"):
        owner.create(said)
    JOB.change(
        owner, {"spec": {"suspend": True}, "metadata": {"annotations": {"example.com/b": "c"}}}
    )


def test_who_owns_a_job_that_corral_has_suspended_may_change_it_and_take_the_word_off(
    corral: Cluster, owner: Cluster
) -> None:
    JOB.change(corral, SUSPEND)
    JOB.change(owner, {"metadata": {"labels": {"a": "b"}}})
    assert JOB.is_refused(owner, {"metadata": {"annotations": {SUSPENDED: "again"}}})
    assert JOB.change(owner, RESUME)["spec"]["suspend"] is False
