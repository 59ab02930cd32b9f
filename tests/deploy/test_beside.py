"""deploy/beside.yaml: one Corral, and a kube-scheduler elsewhere; what it says fits together."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from app.settings import ENV_PREFIX, Settings
from tests.deploy.test_image import ROOT
from tests.deploy.test_webhook import DEPLOY, _one

TEXT = (DEPLOY / "beside.yaml").read_text(encoding="utf-8")
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
    given |= {each["name"]: each["value"] for each in container()["env"]}
    return Settings(**{name.removeprefix(ENV_PREFIX).lower(): given[name] for name in given})


def test_only_one_acts_at_a_time_since_it_follows_no_lease() -> None:
    spec = _one("beside.yaml", "Deployment")["spec"]
    assert settings().neighbour_lease == ""
    assert (spec["replicas"], spec["strategy"]["type"]) == (1, "Recreate")


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
