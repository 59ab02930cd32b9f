"""POST /bind by hand, of pods that kube-scheduler would not bring: none of them is bound."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from app.state.pods.arrivals import EARLY_SECONDS
from tests.cluster import RACK, Cluster, Object, grid, pod
from tests.controlplane.plane import ControlPlane
from tests.controlplane.seen import START_SECONDS
from tests.corral_process import CorralProcess
from tests.workloads import asking, members

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

NODE = "b0-r0-n0"
ABSENT = {"metadata": {"name": "absent", "namespace": "default", "uid": "no-such-uid"}}


def bind(corral: CorralProcess, thing: Object, **forged: str) -> str:
    """What /bind answers; "" is success."""
    metadata = {**thing["metadata"], **forged}
    sent = {
        "PodName": metadata["name"],
        "PodNamespace": metadata["namespace"],
        "PodUID": metadata["uid"],
        "Node": NODE,
    }
    answer = httpx.post(f"{corral.url}/bind", json=sent, timeout=30, trust_env=False)
    assert answer.status_code == 200
    error: str = answer.json()["Error"]
    return error


@pytest.mark.parametrize(
    "fields",
    [
        pytest.param({"scheduler": "default-scheduler"}, id="of_another_scheduler"),
        pytest.param({"gates": ["example.com/quota"]}, id="gated"),
        pytest.param({"scheduler": "x", "namespace": "kube-system"}, id="of_the_system"),
    ],
)
def test_a_pod_that_does_not_wait_for_our_scheduler_is_not_bound(
    plane: ControlPlane, cluster: Cluster, corral: CorralProcess, fields: dict[str, Any]
) -> None:
    plane.nodes(grid(racks=1, nodes=2, gpus=8))
    victim = cluster.create(pod("victim", **fields))
    try:
        assert bind(corral, victim).startswith("the watch shows no pod ")
        found = cluster.get("Pod", "victim", victim["metadata"]["namespace"])
        assert "nodeName" not in found["spec"]
        assert corral.metric('corral_binds_total{outcome="bound"}') == 0
    finally:
        cluster.delete("Pod", "victim", victim["metadata"]["namespace"])


def test_a_pod_is_not_bound_under_a_forged_name_or_uid(
    plane: ControlPlane, cluster: Cluster, corral: CorralProcess
) -> None:
    plane.stop_scheduler()  # it would bind the pod before we can
    plane.nodes(grid(racks=1, nodes=2, gpus=8))
    victim = cluster.create(pod("victim"))
    assert bind(corral, victim, uid="forged").startswith("the watch shows no pod ")
    assert "is not that of pod" in bind(corral, victim, name="other")
    assert "is not that of pod" in bind(corral, victim, namespace="other")
    assert bind(corral, ABSENT).startswith("the watch shows no pod ")
    assert cluster.bound() == {}
    assert bind(corral, victim) == ""
    assert cluster.bound() == {"victim": NODE}


def test_forged_requests_of_each_kind_do_not_hold_up_a_gang(
    plane: ControlPlane, cluster: Cluster, corral: CorralProcess
) -> None:
    plane.nodes(grid(racks=2, nodes=4, gpus=8))
    red = cluster.create_all(members("red", 4, numbers=range(3), annotations=asking(required=RACK)))
    for one in red:
        assert bind(corral, one, namespace="other") != ""
        sent = {"Pod": {**one, "metadata": {**one["metadata"], "namespace": "other"}}}
        httpx.post(
            f"{corral.url}/filter", json={**sent, "NodeNames": [NODE]}, timeout=5, trust_env=False
        )
    cluster.create_all(members("red", 4, numbers=[3], annotations=asking(required=RACK)))
    cluster.wait(lambda: len(cluster.bound()) == 4, START_SECONDS + EARLY_SECONDS, "the gang")
