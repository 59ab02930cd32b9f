"""`corral doctor` on a real API server: what it reads there, a right installation, broken ones.

There is no kubelet, so Corral's pod is written as a kubelet would leave it; Corral itself runs
beside the plane, and the API server calls its webhook.
"""

from __future__ import annotations

import base64
import copy
import json
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from app.cli import main
from tests.certificates import pair
from tests.cluster import BLOCK, RACK, Cluster, Object, grid
from tests.controlplane.plane import ROOT, ControlPlane
from tests.controlplane.policies import MUTATING, applied, documents
from tests.controlplane.webhook import installed, path_of

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

HOME = "corral-system"
DEPLOYMENT = ROOT / "deploy" / "corral.yaml"
WEBHOOK = ROOT / "deploy" / "webhook.yaml"


class Installation:
    """deploy/corral.yaml and webhook.yaml in the cluster; `put` changes an object of them."""

    def __init__(self, plane: ControlPlane, cluster: Cluster) -> None:
        self.plane, self.cluster = plane, cluster
        self.kubeconfig = plane.kubeconfig("admin")
        self.objects = {
            (each["kind"], each["metadata"]["name"]): each
            for file in (DEPLOYMENT, WEBHOOK)
            for each in yaml.safe_load_all(file.read_text(encoding="utf-8"))
            if "webhooks" not in each and each["kind"] != "PodDisruptionBudget"
        }
        self.environment("CORRAL_LEVELS", f"{BLOCK},{RACK}")
        # As the plane's API server does, callers show a certificate: no probe gets in there.
        self.objects["ConfigMap", "corral-webhook"]["data"]["CORRAL_ADMISSION_CLIENT_CA"] = "/ca"

    def environment(self, name: str, value: str) -> None:
        """Give the container `corral` another setting."""
        spec = self.objects["Deployment", "corral"]["spec"]["template"]["spec"]
        (corral,) = [each for each in spec["containers"] if each["name"] == "corral"]
        corral["env"] = [each for each in corral["env"] if each["name"] != name]
        corral["env"].append({"name": name, "value": value})

    def configure(self, change: Any) -> None:
        """Change the KubeSchedulerConfiguration, as a function of it does."""
        data = self.objects["ConfigMap", "corral-scheduler"]["data"]
        content = yaml.safe_load(data["config.yaml"])
        change(content)
        data["config.yaml"] = yaml.safe_dump(content)

    def apply(self) -> None:
        """Have all of it in the cluster."""
        for each in self.objects.values():
            self.cluster.apply(copy.deepcopy(each))

    def found(self, *options: str) -> dict[str, tuple[str, str]]:
        """Check -> the level and the sentences of what is found, but for what is ok."""
        arguments = ["doctor", "--kubeconfig", str(self.kubeconfig), "-o", "json", *options]
        ran = CliRunner().invoke(main, arguments)
        assert ran.exit_code in (0, 1), ran.output
        lines = json.loads(ran.stdout)["findings"]
        strictly = ("error", "warning") if "--strict" in options else ("error",)
        assert (ran.exit_code == 1) == any(each["level"] in strictly for each in lines)
        found: dict[str, tuple[str, str]] = {}
        for each in lines:
            if each["level"] != "ok":
                _, before = found.get(each["check"], ("", ""))
                found[each["check"]] = (each["level"], f"{before}{each['text']}\n")
        return found


@pytest.fixture
def installation(plane: ControlPlane, cluster: Cluster) -> Iterator[Installation]:
    """What is shipped, with a pod that is ready; afterwards nothing of it."""
    plane.nodes(grid(racks=2, nodes=2))
    made = Installation(plane, cluster)
    pod = shipped_pod(made.objects["Deployment", "corral"])
    with ExitStack() as removals:
        for kind, name in made.objects:
            removals.callback(cluster.delete, kind, name, HOME)
        made.apply()
        cluster.create(pod)
        removals.callback(cluster.delete, "Pod", "corral-1", HOME)
        cluster.request(
            "PATCH",
            f"/api/v1/namespaces/{HOME}/pods/corral-1/status",
            body={"status": {"phase": "Running", "containerStatuses": statuses(pod)}},
            content_type="application/strategic-merge-patch+json",
        )
        yield made


def statuses(pod: Object) -> list[Object]:
    """Of containers that are ready, as a kubelet writes them."""
    kubelets = {"image": "i", "imageID": "i", "restartCount": 0, "ready": True}
    return [{**kubelets, "name": each["name"]} for each in pod["spec"]["containers"]]


def shipped_pod(deployment: Object) -> Object:
    template = copy.deepcopy(deployment["spec"]["template"])
    metadata = {**template["metadata"], "name": "corral-1", "namespace": HOME}
    return {"apiVersion": "v1", "kind": "Pod", **template, "metadata": metadata}


# What the plane cannot have: a port of the pod that a probe gets into.
NOT_THERE = {"readyz"}


def test_a_right_installation_passes_and_its_canary_waits_behind_the_gate(
    plane: ControlPlane, installation: Installation, tmp_path: Path
) -> None:
    with installed(plane, tmp_path):
        found = installation.found("--canary", "--strict")
        assert found.keys() == NOT_THERE
        assert {level for level, _ in found.values()} == {"not checked"}
        # Corral's own namespace is not sent to the webhook.
        found = installation.found("--canary", "--canary-namespace", HOME)
        assert found.keys() == {*NOT_THERE, "canary"}
        assert "did not get the gate" in found["canary"][1]


def test_what_is_broken_is_found(
    plane: ControlPlane, cluster: Cluster, installation: Installation, tmp_path: Path
) -> None:
    def broken(content: Any) -> None:
        content["extenders"][0]["nodeCacheCapable"] = False
        content["extenders"][1]["httpTimeout"] = "30s"
        content["leaderElection"]["resourceName"] = "another"

    installation.configure(broken)
    installation.environment("CORRAL_PREEMPT", "on")
    installation.apply()
    extra = grid(racks=1, nodes=1)[0]
    extra["metadata"]["name"] = "unlabelled"
    del extra["metadata"]["labels"][RACK]
    plane.nodes([extra])
    with installed(plane, tmp_path):
        found = installation.found()
    errors = {check for check, (level, _) in found.items() if level == "error"}
    # The Role allows the Lease that is shipped, and no other one.
    assert errors == {"node-cache-capable", "bind-timeout", "lease", "rights"}
    assert "unlabelled" in found["node-labels"][1]
    assert "create pods/eviction" in found["rights"][1]
    assert "leases.coordination.k8s.io another in corral-system" in found["rights"][1]


def test_the_webhook_that_is_shipped_needs_a_bundle_and_pods_behind_its_service(
    cluster: Cluster, installation: Installation
) -> None:
    shipped = [
        each
        for each in yaml.safe_load_all(WEBHOOK.read_text(encoding="utf-8"))
        if "webhooks" in each
    ]
    for each in shipped:
        cluster.apply(each)
    try:
        found = installation.found()
    finally:
        for each in shipped:
            cluster.delete(each["kind"], each["metadata"]["name"], "")
    errors = {check: text for check, (level, text) in found.items() if level == "error"}
    assert errors.keys() == {"webhook-service", "webhook-authority"}
    assert "no ready pod" in errors["webhook-service"]


def test_policies_instead_of_a_webhook_are_no_mistake(
    plane: ControlPlane, cluster: Cluster, installation: Installation
) -> None:
    installation.objects["ConfigMap", "corral-webhook"]["data"] = {}
    installation.apply()
    with applied(plane):
        assert installation.found("--canary", "--strict").keys() == NOT_THERE
        cluster.delete(f"{MUTATING}Binding", "gate.corral.dev", "")
        try:
            found = installation.found()
        finally:
            cluster.create(
                next(each for each in documents() if each["kind"] == f"{MUTATING}Binding")
            )
    assert found["policies-bound"][0] == "warning"
    assert "MutatingAdmissionPolicy gate.corral.dev: no binding" in found["policies-bound"][1]
    found = installation.found("--canary")
    assert found.keys() == {*NOT_THERE, "canary"}
    assert "there is no webhook" in found["canary"][1]


def test_a_bundle_of_another_authority_is_found_at_the_port_that_is_called(
    plane: ControlPlane, cluster: Cluster, installation: Installation, tmp_path: Path
) -> None:
    with installed(plane, tmp_path):
        name = "webhook.corral.dev"
        made = cluster.get("MutatingWebhookConfiguration", name, "")
        assert made is not None
        other = base64.b64encode(pair("another").certificate).decode()
        for each in made["webhooks"]:
            each["clientConfig"]["caBundle"] = other
        cluster.request("PUT", f"{path_of(made['kind'])}/{name}", body=made)
        found = installation.found("--canary")
    assert found["webhook-certificate"][0] == "error"
    assert "self-signed certificate" in found["webhook-certificate"][1]
    assert "did not get the gate" in found["canary"][1]  # as the API server itself finds


def test_who_may_not_read_is_told_what_was_not_checked(
    plane: ControlPlane, installation: Installation
) -> None:
    installation.kubeconfig = plane.kubeconfig("stranger")
    found = installation.found()
    assert {level for level, _ in found.values()} == {"not checked"}
    assert "403" in found["node-labels"][1]
