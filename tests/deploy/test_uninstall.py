"""The lines of deploy/policy.yaml that free what a Corral that is gone has left behind."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
from pathlib import Path

import pytest

from app.dialects import autoscalers, corral
from app.sandbox import Sandbox
from app.sandbox.apiserver.storage.kinds import JOB, NODE, POD

POLICY = Path(__file__).parents[2] / "deploy" / "policy.yaml"
OTHERS_GATE = "example.com/own"

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not here"),
]


def scripts() -> list[str]:
    """What is indented in the comment on top, one script for each run of such lines."""
    comment = POLICY.read_text(encoding="utf-8").partition("\napiVersion")[0]
    found = re.findall(r"(?:^#   .*\n?)+", comment, re.MULTILINE)
    return [re.sub(r"^#   ", "", each, flags=re.MULTILINE) for each in found]


def named(kind: str, name: str, *, annotations=None, **fields):
    metadata = {"name": name, "annotations": annotations or {}}
    if kind != "Node":
        metadata["namespace"] = "default"
    return {"kind": kind, "metadata": metadata, **fields}


def waiting(name: str, *gates: str, annotations=None, scheduler="corral"):
    spec = {
        "schedulerName": scheduler,
        "schedulingGates": [{"name": gate} for gate in gates],
        "containers": [{"name": "c", "image": "i"}],
    }
    return named("Pod", name, annotations=annotations, spec=spec)


def protected(name: str, *, by: str, **annotations: str):
    keeps = {autoscalers.STAYS[each]: "true" for each in by.split(",")}
    said = {corral.PREFIX + "protected": f"{by}: default/train, default/other"}
    return named("Node", name, annotations={**said, **keeps, **annotations})


async def ended(tmp_path: Path, cluster: Sandbox) -> list[str]:
    """What the scripts say, run one after the other as an administrator does."""
    cluster.write_kubeconfig(tmp_path / "config")
    env = {**os.environ, "KUBECONFIG": str(tmp_path / "config"), "HOME": str(tmp_path)}
    said = []
    for script in scripts():
        pipe = asyncio.subprocess.PIPE
        run = await asyncio.create_subprocess_exec(
            "sh", "-c", script, env=env, stdout=pipe, stderr=asyncio.subprocess.STDOUT
        )
        output, _ = await run.communicate()
        said.append(output.decode())
    return said


async def test_gates_nominations_suspensions_and_protections_of_corral_go_and_nothing_else(
    tmp_path,
):
    async with Sandbox(asks_token=False) as cluster:
        registry = cluster.registry
        nominated = {corral.NOMINATED: "n1"}
        for pod in (
            waiting("gated", corral.GATE),
            waiting("twice-gated", OTHERS_GATE, corral.GATE),
            waiting("foreign", corral.GATE, scheduler="another"),
            waiting("nominated", annotations=nominated),
        ):
            registry.create(POD, "default", pod)
        on_n1 = {"status": {"nominatedNodeName": "n1"}}
        of_nominated = ("default", "nominated")
        registry.patch(POD, of_nominated, on_n1, "application/merge-patch+json", "status")
        of_karpenter = {autoscalers.DO_NOT_DISRUPT: "true"}
        for node in (
            protected("n1", by="cluster-autoscaler,karpenter"),
            protected("n2", by="cluster-autoscaler", **of_karpenter),
            named("Node", "n3", annotations=of_karpenter),
        ):
            registry.create(NODE, "", node)
        template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}
        spec = {"suspend": True, "parallelism": 1, "template": template}
        by_us = {corral.SUSPENDED: "default/train"}
        registry.create(JOB, "default", named("Job", "ours", annotations=by_us, spec=spec))
        registry.create(JOB, "default", named("Job", "theirs", spec=spec))

        said = await ended(tmp_path, cluster)

        def there(kind, name):
            return registry.read(kind, ("default" if kind.is_namespaced else "", name)).body

        def gates(name):
            return [each["name"] for each in there(POD, name)["spec"].get("schedulingGates") or []]

        def annotations(kind, name):
            return there(kind, name)["metadata"].get("annotations") or {}

        assert (gates("gated"), gates("twice-gated")) == ([], [OTHERS_GATE])
        assert gates("foreign") == [corral.GATE], said
        assert "nominatedNodeName" not in there(POD, "nominated")["status"]
        assert annotations(NODE, "n1") == {}
        assert annotations(NODE, "n2") == annotations(NODE, "n3") == of_karpenter
        ours, theirs = (there(JOB, name) for name in ("ours", "theirs"))
        assert (ours["spec"]["suspend"], theirs["spec"]["suspend"]) == (False, True)
        assert corral.SUSPENDED not in annotations(JOB, "ours")
