"""What deploy/policy.yaml lets Corral change of nodes, on a real API server."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.cluster import MERGE, Cluster, Object, Refused, node
from tests.controlplane.plane import ControlPlane

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

POLICY = "what-corral-marks.corral.dev"
SECONDS = 20.0  # until an API server enforces a policy that it was given; 1 s as a rule
NODE = "/api/v1/nodes/n0"
ON, OFF = (
    {
        "metadata": {
            "annotations": {
                "cluster-autoscaler.kubernetes.io/scale-down-disabled": value,
                "karpenter.sh/do-not-disrupt": value,
                "corral.dev/protected": value,
            }
        }
    }
    for value in ("true", None)
)


@pytest.fixture
def corral(plane: ControlPlane, cluster: Cluster) -> Iterator[Cluster]:
    """Corral's identity, which may patch nodes, once the policy is in effect."""
    made = node("n0")
    made["metadata"]["annotations"] = {"example.com/own": "a"}
    plane.nodes([made])
    with plane.granted("corral-protect-nodes"):
        corral = plane.cluster("corral")
        corral.wait(lambda: is_refused(corral, {"metadata": {"labels": {"a": "b"}}}), SECONDS, "it")
        yield corral
    plane.denials()


def change(user: Cluster, body: object) -> Object:
    answer: Object = user.request("PATCH", NODE, body=body, content_type=MERGE).json()
    return answer


def is_refused(user: Cluster, body: object) -> bool:
    """Whether the policy refuses the change, which is only tried."""
    try:
        user.request("PATCH", NODE, body=body, content_type=MERGE, params={"dryRun": "All"})
    except Refused as refused:
        return refused.status == 403 and f"ValidatingAdmissionPolicy '{POLICY}'" in refused.message
    return False


def test_corral_keeps_autoscalers_off_a_node_and_lets_them_back(corral: Cluster) -> None:
    assert change(corral, ON)["metadata"]["annotations"]["corral.dev/protected"] == "true"
    assert "corral.dev/protected" not in change(corral, OFF)["metadata"]["annotations"]


@pytest.mark.parametrize(
    "body",
    [
        pytest.param({"spec": {"unschedulable": True}}, id="no_cordon"),
        pytest.param(
            {"spec": {"taints": [{"key": "a", "value": "b", "effect": "NoExecute"}]}}, id="no_taint"
        ),
        pytest.param({"metadata": {"labels": {"a": "b"}}}, id="no_label"),
        pytest.param({"metadata": {"annotations": {"example.com/own": None}}}, id="no_annotation"),
        pytest.param({"metadata": {"annotations": {"example.com/b": "c"}}}, id="no_new_one"),
        pytest.param({"metadata": {"finalizers": ["example.com/f"]}}, id="no_finalizer"),
    ],
)
def test_it_changes_nothing_else_of_a_node(corral: Cluster, body: Object) -> None:
    assert is_refused(corral, body)


def test_who_is_not_corral_is_not_meant(cluster: Cluster, corral: Cluster) -> None:
    assert change(cluster, {"metadata": {"labels": {"a": "b"}}})["metadata"]["labels"]["a"] == "b"
