"""What `corral doctor` reads of a cluster: on the sandbox, and where there is none."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from app.cli.doctor import installed
from app.cli.doctor.reading import cluster as reading
from app.cli.doctor.reading.files import settings_from, settings_in
from app.cli.doctor.seen import Readiness, Unread
from app.errors import ApiError, Unreachable
from app.sandbox import Sandbox
from app.sandbox.apiserver.storage.kinds import DEFINITION, NODE, POD
from tests.app.cli.doctor.installation import (
    DEPLOYMENT,
    ROOT,
    WEBHOOK_SETTINGS,
    edited,
    settings,
)
from tests.app.cli.doctor.test_command import run
from tests.app.cli.test_topology import as_objects, hyper_node_definition, kubeconfig_of
from tests.app.dialects.volcano.from_labels.labelled import LEVELS, RACK
from tests.app.dialects.volcano.objects import exact, hyper_node
from tests.cluster import pod
from tests.workloads import member

CONFIG = ROOT / "scheduler-config" / "1.36.yaml"
LOUD = ("note", "warning", "error")


@pytest.fixture
def own(tmp_path: Path) -> Path:
    """Settings that say the same as the shipped configuration."""
    path = tmp_path / "settings.yaml"
    lines = {
        "levels": ",".join(LEVELS),
        "neighbour_lease": "corral-system/corral-scheduler",
        "percentage_of_nodes_to_score": 100,
    }
    path.write_text(yaml.safe_dump(lines))
    return path


async def seen_by(cluster: Sandbox, tmp_path: Path, own: Path, *options: Any) -> dict[str, Any]:
    """Check -> its first finding."""
    kubeconfig = tmp_path / "kubeconfig"
    cluster.write_kubeconfig(kubeconfig)
    files = ("--config", CONFIG, "--settings", own, "--kubeconfig", kubeconfig)
    ran = await asyncio.to_thread(run, *files, "-o", "json", *options)
    assert ran.exit_code in (0, 1), ran.output
    found = json.loads(ran.stdout)["findings"]
    return {each["check"]: each for each in reversed(found)}


async def test_a_cluster_of_which_much_is_not_served_is_read_as_far_as_it_goes(tmp_path, own):
    async with Sandbox() as cluster:
        for each in as_objects("n1 b1/r1\nn2 b1/r2"):
            cluster.registry.create(NODE, "", each)
        found = await seen_by(cluster, tmp_path, own, "--canary")
    levels = {check: each["level"] for check, each in found.items()}
    assert {*levels.values()} == {"ok", "not checked"}
    assert levels["clock"] == levels["node-labels"] == levels["canary-profile"] == "ok"
    assert levels["rights"] == levels["versions"] == "not checked"
    assert "404" in found["rights"]["text"]


async def test_nodes_pods_and_objects_are_read(tmp_path, own):
    async with Sandbox() as cluster:
        for each in as_objects("n1 b1/r1\nn2 b1/-\nn3 b2/r1"):
            cluster.registry.create(NODE, "", each)
        cluster.registry.create(DEFINITION, "", hyper_node_definition())
        kind = next(each for each in cluster.registry.kinds if each.plural == "hypernodes")
        for name in ("leaf-a", "leaf-b"):
            cluster.registry.create(kind, "", hyper_node(name, 1, exact("Node", "n1")))
        lost = member("lost", 0, 2)
        lost["spec"]["schedulerName"] = "default-scheduler"
        for each in (lost, member("fine", 0, 2), pod("ordinary")):
            cluster.registry.create(POD, "default", each)
        found = await seen_by(cluster, tmp_path, own)
    wrong = {check: each for check, each in found.items() if each["level"] in LOUD}
    assert wrong.keys() == {"node-labels", "level-nesting", "topology-objects", "pod-schedulers"}
    assert (wrong["node-labels"]["thing"], RACK in wrong["node-labels"]["field"]) == (
        "Node n2",
        True,
    )
    assert wrong["topology-objects"]["thing"] == "HyperNode leaf-b"
    assert wrong["pod-schedulers"]["thing"] == "Pod default/lost-0"
    assert wrong["pod-schedulers"]["value"] == "default-scheduler"


async def test_pods_beyond_the_bound_are_counted(tmp_path, own, monkeypatch):
    monkeypatch.setattr(reading, "MOST_MEMBERS", 2)
    async with Sandbox() as cluster:
        for at in range(5):
            cluster.registry.create(POD, "default", member("g", at, 5))
        found = await seen_by(cluster, tmp_path, own)
    assert found["pod-schedulers"]["text"].startswith("3 more pods of gangs")


def test_an_api_server_that_does_not_answer_is_an_error(tmp_path):
    kubeconfig = kubeconfig_of(tmp_path, "http://127.0.0.1:9")
    ran = run("--config", CONFIG, "--kubeconfig", kubeconfig, "-o", "json")
    assert ran.exit_code == 1
    (error,) = [e for e in json.loads(ran.stdout)["findings"] if e["level"] == "error"]
    assert error["check"] == "reading"
    assert "GET /version" in error["text"]


def test_without_any_way_to_a_cluster_the_files_are_checked(tmp_path, monkeypatch):
    for name in ("KUBECONFIG", "KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    ran = run("--config", CONFIG)
    assert ran.exit_code == 0, ran.output
    assert "no cluster is named" in ran.stdout
    assert "--nodes" not in ran.stdout


def test_a_kubeconfig_that_is_named_and_not_there_is_a_wrong_option():
    ran = run("--config", CONFIG, "--kubeconfig", "/no/file")
    assert ran.exit_code == 2
    assert "/no/file" in ran.stderr


async def test_a_binding_that_only_warns_binds_no_policy_that_is_to_deny(monkeypatch):
    """What the API server lists of policies and their bindings."""

    async def listed(_transport: object, path: str):
        kind = path.rpartition("/")[2]
        if kind.endswith("policybindings"):
            for name, actions in (("a", ["Warn", "Audit"]), ("b", ["Deny"])):
                spec = {"policyName": f"{name}.corral.dev"}
                if kind.startswith("validating"):
                    spec["validationActions"] = actions
                yield json.dumps({"metadata": {"name": name}, "spec": spec}).encode()

    monkeypatch.setattr(reading, "listed", listed)
    found = await reading.policies(object())
    changes = {("MutatingAdmissionPolicy", f"{name}.corral.dev") for name in "ab"}
    assert found.bound == changes | {("ValidatingAdmissionPolicy", "b.corral.dev")}


# -- /readyz -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changed", "port"),
    [
        pytest.param({}, "https:{}:9443", id="the_webhooks"),
        pytest.param({"admission_listen": None}, None, id="loopback_alone"),
        pytest.param({"admission_client_ca": "/ca.crt"}, None, id="certificates_alone"),
        pytest.param({"api_listen": "0.0.0.0:8080"}, "{}:8080", id="that_of_probes"),
        pytest.param(
            {"api_listen": "0.0.0.0:8443", "api_cert": "/tls.crt", "api_key": "/tls.key"},
            "https:{}:8443",
            id="that_of_people",
        ),
        pytest.param({"api_listen": "127.0.0.1:8080"}, "https:{}:9443", id="probes_on_loopback"),
    ],
)
def test_readyz_is_asked_at_a_port_that_is_reached_from_outside(changed, port):
    assert reading.probe_port(settings(**changed).values) == port


class Proxy:
    """The API server's proxy of pods, with one answer."""

    def __init__(self, answer: Exception | None) -> None:
        self.answer, self.paths = answer, []

    async def request(self, method: str, path: str, **_: Any) -> bytes:
        self.paths.append(path)
        if self.answer:
            raise self.answer
        return b"ok"


@pytest.mark.parametrize(
    ("answer", "status"),
    [
        pytest.param(None, "ready", id="ready"),
        pytest.param(ApiError(503, "", "pods are not read"), "not ready", id="corral_says_no"),
        pytest.param(
            ApiError(503, "ServiceUnavailable", "error trying to reach service: dial tcp"),
            "unreachable",
            id="no_route",
        ),
        pytest.param(ApiError(403, "Forbidden", "no"), "unreachable", id="forbidden"),
        pytest.param(Unreachable("timed out"), "unreachable", id="api_server_away"),
    ],
)
async def test_what_the_proxy_answers_is_told_apart(answer, status):
    proxy = Proxy(answer)
    pods = ({"metadata": {"name": "corral-1", "namespace": "corral-system"}},)
    (said,) = await reading.readiness(proxy, pods, settings().values)
    assert isinstance(said, Readiness)
    assert said.status == status
    assert proxy.paths == ["/api/v1/namespaces/corral-system/pods/https:corral-1:9443/proxy/readyz"]


async def test_a_port_that_nobody_reaches_is_not_asked():
    said = await reading.readiness(Proxy(None), (), settings(admission_listen=None).values)
    assert isinstance(said, Unread)


# -- the Deployment ------------------------------------------------------------------------------


def test_a_flag_counts_more_than_the_environment_and_a_file_least():
    container = ("spec", "template", "spec", "containers", 1)
    command = ["corral", "serve", "--levels", "gke", "--settings=/etc/corral/own/settings.yaml"]
    changed = edited(DEPLOYMENT, (*container, "command"), command)
    spec = changed["spec"]["template"]["spec"]
    spec["volumes"].append({"name": "own", "configMap": {"name": "own-settings"}})
    spec["containers"][1]["volumeMounts"].append({"name": "own", "mountPath": "/etc/corral/own"})
    spec["containers"][1]["env"].append({"name": "CORRAL_LEVELS", "value": "eks"})
    place = installed.settings_file(changed)
    assert place == installed.InConfigMap("own-settings", "settings.yaml")
    given = installed.given(spec["containers"][1], {"corral-webhook": WEBHOOK_SETTINGS})
    values = settings_in("{levels: oke, bind_seconds: 3}", "file", given).values
    assert values.levels == ("gke",)
    assert values.bind_seconds == 3
    assert values.admission_listen is not None


def test_what_is_shipped_is_found_in_the_deployment():
    assert installed.config_file(DEPLOYMENT) == installed.InConfigMap(
        "corral-scheduler", "config.yaml"
    )
    assert installed.settings_file(DEPLOYMENT) is None
    assert installed.account(DEPLOYMENT) == "corral-system/corral"
    assert installed.pod_account(DEPLOYMENT) == "corral-system/corral-scheduler"


def test_an_entry_may_have_another_name_in_its_config_map():
    volumes = ("spec", "template", "spec", "volumes", 0, "configMap")
    items = [{"key": "scheduler", "path": "config.yaml"}]
    changed = edited(DEPLOYMENT, volumes, {"name": "other", "items": items})
    assert installed.config_file(changed) == installed.InConfigMap("other", "scheduler")


def test_a_configuration_on_the_host_is_in_no_config_map():
    volumes = ("spec", "template", "spec", "volumes", 0)
    changed = edited(DEPLOYMENT, volumes, {"name": "scheduler", "hostPath": {"path": "/etc"}})
    assert installed.config_file(changed) is None


class Reviews:
    """An API server that grants a service account everything but one resource."""

    def __init__(self, but: str) -> None:
        self.but = but

    async def request(self, _method: str, _path: str, *, body: Any) -> bytes:
        asked = body["spec"]["resourceAttributes"]
        return json.dumps({"status": {"allowed": asked["resource"] != self.but}}).encode()


@pytest.mark.parametrize("resource", ["leases", "endpointslices"])
async def test_the_role_that_a_corral_beside_takes_its_lease_by_is_asked_about(resource: str):
    manifests = yaml.safe_load_all((ROOT / "deploy" / "beside.yaml").read_text())
    (deployment,) = [each for each in manifests if each["kind"] == "Deployment"]
    container = installed.corral_container(deployment)
    assert container is not None
    own = settings_from(installed.given(container, {}), "deploy/beside.yaml").values
    denied = await reading.denied(Reviews(resource), deployment, own, "kube-system/scheduler")
    of_role = [each for each in denied if each.role == "corral-leader"]
    assert {(each.verb, each.name) for each in of_role} == {
        ("create", ""),
        ("get", "corral" if resource == "leases" else "corral-extender"),
        ("update", "corral" if resource == "leases" else "corral-extender"),
    }
    assert {each.namespace for each in of_role} == {"corral-system"}
