"""What deploy/policy.yaml lets Corral change of nodes, on a real API server."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.cluster import Cluster, Object, node
from tests.controlplane.guarded import SECONDS, Guarded
from tests.controlplane.plane import ControlPlane

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

NODE = Guarded("/api/v1/nodes/n0", "what-corral-marks.corral.dev")
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
        corral.wait(
            lambda: NODE.is_refused(corral, {"metadata": {"labels": {"a": "b"}}}), SECONDS, "it"
        )
        yield corral
    plane.denials()


def test_corral_keeps_autoscalers_off_a_node_and_lets_them_back(corral: Cluster) -> None:
    assert NODE.change(corral, ON)["metadata"]["annotations"]["corral.dev/protected"] == "true"
    assert "corral.dev/protected" not in NODE.change(corral, OFF)["metadata"]["annotations"]


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
    assert NODE.is_refused(corral, body)


def test_who_is_not_corral_is_not_meant(cluster: Cluster, corral: Cluster) -> None:
    assert (
        NODE.change(cluster, {"metadata": {"labels": {"a": "b"}}})["metadata"]["labels"]["a"] == "b"
    )
