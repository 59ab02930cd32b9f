"""What deploy/policy.yaml lets Corral change of Jobs, on a real API server."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.cluster import MERGE, Cluster, Object, Refused, job
from tests.controlplane.plane import ControlPlane

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

POLICY = "what-corral-suspends.corral.dev"
SECONDS = 20.0  # until an API server enforces a policy that it was given; 1 s as a rule
SUSPENDED = "corral.dev/suspended"
JOB = "/apis/batch/v1/namespaces/default/jobs/train"


def saying(value: str | None, *, suspend: bool, **more: object) -> Object:
    """A merge patch of the annotation and of whether the Job is suspended."""
    return {
        "metadata": {"annotations": {SUSPENDED: value}},
        "spec": {"suspend": suspend, **more},
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
        corral.wait(lambda: is_refused(corral, {"spec": {"parallelism": 2}}), SECONDS, "it")
        yield corral
    plane.denials()


def change(user: Cluster, body: object) -> Object:
    answer: Object = user.request("PATCH", JOB, body=body, content_type=MERGE).json()
    return answer


def is_refused(user: Cluster, body: object) -> bool:
    """Whether the policy refuses the change, which is only tried."""
    try:
        user.request("PATCH", JOB, body=body, content_type=MERGE, params={"dryRun": "All"})
    except Refused as refused:
        return refused.status == 403 and f"ValidatingAdmissionPolicy '{POLICY}'" in refused.message
    return False


def test_corral_suspends_a_job_and_has_it_go_on(corral: Cluster) -> None:
    assert change(corral, SUSPEND)["spec"]["suspend"] is True
    assert change(corral, RESUME)["spec"]["suspend"] is False


def test_it_has_no_job_go_on_that_its_user_has_suspended(cluster: Cluster, corral: Cluster) -> None:
    change(cluster, {"spec": {"suspend": True}})
    assert is_refused(corral, SUSPEND)
    assert is_refused(corral, RESUME)


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
    assert is_refused(corral, body)
