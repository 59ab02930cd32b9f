"""deploy/beside.yaml: one Corral, and a kube-scheduler elsewhere; what it says fits together."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from app.cli.doctor import installed
from app.kube.leading.endpoint import PORT_NAME
from app.settings import ENV_PREFIX, Settings
from tests.deploy.test_image import ROOT
from tests.deploy.test_webhook import DEPLOY, _one

TEXT = (DEPLOY / "beside.yaml").read_text(encoding="utf-8")
OF_POD = "10.0.0.1"  # what the downward API says: an address, and a name as good as any
CONFIG = ROOT / "scheduler-config" / "1.36-mtls.yaml"


def pod() -> dict[str, Any]:
    return dict(_one("beside.yaml", "Deployment")["spec"]["template"]["spec"])


def container() -> dict[str, Any]:
    (only,) = pod()["containers"]
    return dict(only)


def settings(*more: str) -> Settings:
    """With the ConfigMaps of these files, in the order in which the container reads them."""
    given = {}
    for file in ("beside.yaml", *more):
        given |= _one(file, "ConfigMap")["data"]
    given |= {each["name"]: each.get("value", OF_POD) for each in container()["env"]}
    return Settings(**{name.removeprefix(ENV_PREFIX).lower(): given[name] for name in given})


def test_one_of_the_replicas_acts_by_a_lease_and_is_the_services_only_endpoint() -> None:
    told, service = settings(), _one("beside.yaml", "Service")
    assert _one("beside.yaml", "Deployment")["spec"]["replicas"] == 2
    assert told.neighbour_lease == ""
    home, _, lease = told.own_lease.partition("/")
    assert service["metadata"] == {"name": told.leader_service, "namespace": home}
    assert "selector" not in service["spec"]
    (port,) = service["spec"]["ports"]
    assert (port["name"], port["targetPort"]) == (PORT_NAME, told.extender_listen.port)
    rules = _one("beside.yaml", "Role")["rules"]
    named = {
        rule["resources"][0]: rule["resourceNames"] for rule in rules if "resourceNames" in rule
    }
    assert named == {"leases": [lease], "endpointslices": [told.leader_service]}
    assert all(rule["verbs"] == ["create"] for rule in rules if "resourceNames" not in rule)


def test_doctor_reads_its_settings_though_a_manifest_does_not_say_where_the_pod_is() -> None:
    told = Settings(**installed.literals(container()))
    assert told.leader_service
    assert told.pod_ip == ""


def test_its_port_is_reached_through_the_service_by_a_client_with_a_certificate_alone() -> None:
    told = settings()
    (port,) = _one("beside.yaml", "Service")["spec"]["ports"]
    assert port["port"] == port["targetPort"] == told.extender_listen.port
    extenders = yaml.safe_load(CONFIG.read_text(encoding="utf-8"))["extenders"]
    assert {each["urlPrefix"].rpartition(":")[2] for each in extenders} == {str(port["port"])}
    (mount,) = [each for each in container()["volumeMounts"] if each["name"] == "extender"]
    (volume,) = [each for each in pod()["volumes"] if each["name"] == "extender"]
    files = (told.extender_cert, told.extender_key, told.extender_client_ca)
    assert files == tuple(Path(mount["mountPath"]) / n for n in ("tls.crt", "tls.key", "ca.crt"))
    assert f"create secret generic {volume['secret']['secretName']} " in TEXT
    assert "optional" not in volume["secret"]


def test_it_plans_for_the_profile_as_the_profile_is() -> None:
    (profile,) = yaml.safe_load(CONFIG.read_text(encoding="utf-8"))["profiles"]
    told = settings()
    assert told.scheduler_name == profile["schedulerName"]
    assert told.percentage_of_nodes_to_score == profile.get("percentageOfNodesToScore", 0)


def test_its_token_is_its_own_accounts_and_ends() -> None:
    (mount,) = [each for each in container()["volumeMounts"] if each["name"] == "token"]
    (volume,) = [each for each in pod()["volumes"] if each["name"] == "token"]
    (token, *_) = volume["projected"]["sources"]
    assert Path(mount["mountPath"]) == settings().service_account
    assert token["serviceAccountToken"] == {"path": "token", "expirationSeconds": 3600}
    assert pod()["serviceAccountName"] == "corral"
    assert pod()["automountServiceAccountToken"] is False


def test_what_is_the_same_in_both_ways_is_written_alike() -> None:
    other = _one("corral.yaml", "Deployment")["spec"]["template"]["spec"]
    (corral,) = [each for each in other["containers"] if each["name"] == "corral"]
    for name in ("image", "command", "resources", "securityContext"):
        assert container()[name] == corral[name]
    for name in ("securityContext", "terminationGracePeriodSeconds", "priorityClassName"):
        assert pod()[name] == other[name]
    for name in ("startupProbe", "livenessProbe", "readinessProbe"):
        here, there = (
            {k: v for k, v in c[name].items() if k != "exec"} for c in (container(), corral)
        )
        assert here == there
    shared = ("webhook", "api", "volcano")
    for key, here, there in (
        ("volumes", pod(), other),
        ("volumeMounts", container(), corral),
    ):
        for name in shared:
            assert [e for e in here[key] if e["name"] == name] == [
                e for e in there[key] if e["name"] == name
            ], key


def test_peoples_port_takes_the_place_of_the_one_for_probes() -> None:
    assert str(settings().api_listen) == "127.0.0.1:8080"
    names = [each["configMapRef"]["name"] for each in container()["envFrom"]]
    assert names == ["corral-probes", "corral-webhook", "corral-api"]
    told = settings("webhook.yaml", "api.yaml")
    assert str(told.api_listen) == _one("api.yaml", "ConfigMap")["data"]["CORRAL_API_LISTEN"]
    assert told.admission_listen is not None
