"""HyperNodes of an API server, as kube-scheduler sees them on the extender's port."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from app.main import started
from app.sandbox import Sandbox
from app.setting_values import Address
from app.settings import Settings
from tests.app.dialects.volcano.objects import exact, hyper_node
from tests.app.polling import until
from tests.cluster import GPU, node, pod

CRD = Path(__file__).parents[2] / "deploy" / "hypernode-crd.yaml"
PATHS = {
    "CustomResourceDefinition": "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
    "HyperNode": "/apis/topology.volcano.sh/v1alpha1/hypernodes",
    "Node": "/api/v1/nodes",
    "Pod": "/api/v1/namespaces/default/pods",
}
NODES = ["n0", "n1", "n2", "n3", "free"]
GPUS_COUNT = """
tiers:
- plugins:
  - name: network-topology-aware
    arguments:
      hypernode.binpack.cpu: 0
      hypernode.binpack.memory: 0
      hypernode.binpack.resources: nvidia.com/gpu
"""


def stored(name: str, tier: int, members: list[dict[str, Any]]) -> dict[str, Any]:
    return {**hyper_node(name, tier, members), "metadata": {"name": name}}


def cluster() -> list[dict[str, Any]]:
    """In rack r0 more cores are in use, in r1 more GPUs."""
    return [
        yaml.safe_load(CRD.read_text(encoding="utf-8")),
        *(node(name, gpus=8) for name in NODES),
        stored("r0", 1, exact("Node", "n0", "n1")),
        stored("r1", 1, exact("Node", "n2", "n3")),
        pod("a", requests={"cpu": "30", GPU: 1}, nodeName="n0"),
        pod("b", requests={"cpu": "1", GPU: 7}, nodeName="n2"),
    ]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("conf", "fuller"),
    [
        pytest.param("", ["n2", "n3"], id="every_requested_resource_alike"),
        pytest.param(GPUS_COUNT.replace("nvidia", "n"), [], id="a_resource_that_no_pod_requests"),
        pytest.param(GPUS_COUNT, ["n2", "n3"], id="gpus_alone"),
        pytest.param(
            "tiers: [{plugins: [{name: network-topology-aware}]}]",
            ["n0", "n1"],
            id="cpu_and_memory_alone",
        ),
    ],
)
async def test_ordinary_pods_are_led_to_the_fuller_hyper_nodes(
    tmp_path: Path, conf: str, fuller: list[str]
) -> None:
    path = tmp_path / "volcano-scheduler.conf"
    path.write_text(conf, encoding="utf-8")
    async with Sandbox() as sandbox:
        sandbox.write_kubeconfig(tmp_path / "kubeconfig")
        headers = {"Authorization": f"Bearer {sandbox.token}"}
        async with httpx.AsyncClient(base_url=sandbox.url, headers=headers) as api:
            for each in cluster():
                answer = await api.post(PATHS[each["kind"]], json=each)
                assert answer.status_code == 201, answer.text
        settings = Settings(
            kubeconfig=tmp_path / "kubeconfig",
            extender_listen=Address("127.0.0.1", 0),
            volcano_scheduler_conf=path if conf else None,
        )
        async with (
            started(settings) as corral,
            httpx.AsyncClient(base_url=corral.extender_url, timeout=30) as port,
        ):
            await until(lambda: not corral.unready())
            asks = pod("asks", requests={"cpu": "2", GPU: 1})
            body = {"Pod": asks, "Nodes": None, "NodeNames": NODES}
            given = (await port.post("/prioritize", json=body)).json()
    scores = {each["Host"]: each["Score"] for each in given}
    assert scores.pop("free") == 10  # in no HyperNode
    assert [name for name in scores if scores[name] == max(scores.values()) > 0] == fuller
