"""What deploy/api.yaml opens is what is served, and open only where it is applied."""

from __future__ import annotations

from pathlib import Path

from app.settings import ENV_PREFIX, Settings
from tests.deploy.test_rights import granted
from tests.deploy.test_webhook import DEPLOY, _corral, _one

TEXT = (DEPLOY / "api.yaml").read_text(encoding="utf-8")


def settings() -> Settings:
    """As the container has them with the ConfigMap."""
    given = {one["name"]: one.get("value", "any") for one in _corral()["env"]}
    given |= _one("api.yaml", "ConfigMap")["data"]
    return Settings(**{name.removeprefix(ENV_PREFIX).lower(): given[name] for name in given})


def test_the_port_is_reached_through_the_service_and_the_network_policy() -> None:
    service = _one("api.yaml", "Service")
    listen = settings().api_listen
    assert listen is not None
    (port,) = service["spec"]["ports"]
    assert port["targetPort"] == listen.port
    labels = _one("corral.yaml", "Deployment")["spec"]["template"]["metadata"]["labels"]
    assert service["spec"]["selector"].items() <= labels.items()
    rules = _one("network-policy.yaml", "NetworkPolicy")["spec"]["ingress"]
    assert listen.port in [one["port"] for rule in rules for one in rule["ports"]]


def test_the_certificate_is_mounted_where_the_settings_look_and_may_be_missing() -> None:
    pod = _one("corral.yaml", "Deployment")["spec"]["template"]["spec"]
    (mount,) = [one for one in _corral()["volumeMounts"] if one["name"] == "api"]
    (volume,) = [one for one in pod["volumes"] if one["name"] == "api"]
    assert settings().api_cert == Path(mount["mountPath"]) / "tls.crt"
    assert settings().api_key == Path(mount["mountPath"]) / "tls.key"
    assert volume["secret"]["optional"] is True
    assert f"create secret tls {volume['secret']['secretName']} " in TEXT


def test_the_certificate_that_is_described_is_for_the_services_name() -> None:
    service = _one("api.yaml", "Service")["metadata"]
    name = f"{service['name']}.{service['namespace']}.svc"
    assert f"DNS:{name} " in TEXT
    assert f"[{name}]" in TEXT
    assert f"--server https://{name} " in TEXT


def test_corral_may_ask_who_reads_only_where_it_is_applied() -> None:
    binding = _one("api.yaml", "ClusterRoleBinding")
    assert binding["roleRef"]["name"] == "corral-readers"
    (subject,) = binding["subjects"]
    assert (subject["namespace"], subject["name"]) == ("corral-system", "corral")
    asked = {
        ("authentication.k8s.io", "tokenreviews"): {"create"},
        ("authorization.k8s.io", "subjectaccessreviews"): {"create"},
    }
    assert granted("corral-readers") == asked
    assert asked.keys().isdisjoint(granted("corral"))
