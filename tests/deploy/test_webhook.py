"""What deploy/webhook.yaml tells the API server is what Corral serves, and no more than it may."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from app.admission.namespaces import METADATA_NAME
from app.admission.routes import MUTATE, VALIDATE
from app.dialects import grove, kai, native, volcano
from app.dialects.grove import keys as grove_keys
from app.dialects.kai import keys as kai_keys
from app.dialects.kueue import annotations, in_charge, pod_groups
from app.dialects.registry import DIALECTS
from app.dialects.volcano import keys
from app.dialects.workloads import KINDS
from app.labels import LabelSelector, Requirement
from app.settings import ENV_PREFIX, EngineOptions, Settings
from tests.records import pod

NATIVE = native.DIALECT.configured(EngineOptions(native_pod_groups="on"))
# Those that are sent what names no scheduler.
OF_ALL = tuple(f"{name}.corral.dev" for name in ("templates", "kai", "native", "grove"))
DEPLOY = Path(__file__).resolve().parent.parent.parent / "deploy"
MUTATING, VALIDATING = "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"


def _documents(file: str) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all((DEPLOY / file).read_text(encoding="utf-8")))


def _one(file: str, kind: str) -> dict[str, Any]:
    (found,) = [document for document in _documents(file) if document["kind"] == kind]
    return dict(found)


def _webhooks() -> list[dict[str, Any]]:
    return [
        *_one("webhook.yaml", MUTATING)["webhooks"],
        *_one("webhook.yaml", VALIDATING)["webhooks"],
    ]


def _corral() -> dict[str, Any]:
    pod = _one("corral.yaml", "Deployment")["spec"]["template"]["spec"]
    return dict(next(one for one in pod["containers"] if one["name"] == "corral"))


def _settings(*, with_webhook: bool = True) -> Settings:
    given = {one["name"]: one.get("value", "any") for one in _corral()["env"]}
    if with_webhook:
        given |= _one("webhook.yaml", "ConfigMap")["data"]
    return Settings(**{name.removeprefix(ENV_PREFIX).lower(): given[name] for name in given})


WEBHOOKS = [pytest.param(webhook, id=webhook["name"]) for webhook in _webhooks()]


@pytest.mark.parametrize("webhook", WEBHOOKS)
def test_each_webhook_asks_for_a_path_that_is_served(webhook: dict[str, Any]) -> None:
    path = webhook["clientConfig"]["service"]["path"]
    assert path == (MUTATE if webhook["name"].startswith("gate.") else VALIDATE)


@pytest.mark.parametrize("webhook", WEBHOOKS)
def test_each_webhook_fails_open_soon_and_without_side_effects(webhook: dict[str, Any]) -> None:
    assert webhook["failurePolicy"] == "Ignore"
    assert webhook["timeoutSeconds"] == 2
    holds_places = webhook["name"].startswith("gate.")  # for pods that are born in place
    assert webhook["sideEffects"] == ("NoneOnDryRun" if holds_places else "None")
    assert webhook["admissionReviewVersions"] == ["v1"]


@pytest.mark.parametrize("webhook", WEBHOOKS)
def test_what_the_manifest_does_not_send_is_what_the_settings_do_not_select(
    webhook: dict[str, Any],
) -> None:
    (expression,) = webhook["namespaceSelector"]["matchExpressions"]
    sent = Requirement(expression["key"], expression["operator"], frozenset(expression["values"]))
    assert _settings().admission_namespace_selector == LabelSelector((sent,))
    home = _one("corral.yaml", "Deployment")["metadata"]["namespace"]
    assert sent == Requirement(METADATA_NAME, "NotIn", frozenset({home, "kube-system"}))


@pytest.mark.parametrize("webhook", WEBHOOKS)
def test_each_webhook_reaches_the_port_through_the_service(webhook: dict[str, Any]) -> None:
    service = _one("webhook.yaml", "Service")
    called = webhook["clientConfig"]["service"]
    assert (called["name"], called["namespace"]) == (
        service["metadata"]["name"],
        service["metadata"]["namespace"],
    )
    (port,) = service["spec"]["ports"]
    assert called["port"] == port["port"]
    listen = _settings().admission_listen
    assert listen is not None
    assert port["targetPort"] == listen.port
    labels = _one("corral.yaml", "Deployment")["spec"]["template"]["metadata"]["labels"]
    assert service["spec"]["selector"].items() <= labels.items()


def test_a_port_is_open_only_where_its_manifest_is_applied() -> None:
    without = _settings(with_webhook=False)
    assert without.admission_listen is None
    assert without.api_listen is None
    assert without.extender_listen.host == "127.0.0.1"
    assert "ports" not in _corral()
    deployment = _one("corral.yaml", "Deployment")["metadata"]
    for file, source in zip(("webhook.yaml", "api.yaml"), _corral()["envFrom"], strict=True):
        settings = _one(file, "ConfigMap")["metadata"]
        assert source == {"configMapRef": {"name": settings["name"], "optional": True}}
        assert settings["namespace"] == deployment["namespace"]
        restart = f"-n {deployment['namespace']} rollout restart deployment {deployment['name']}\n"
        assert restart in (DEPLOY / file).read_text(encoding="utf-8")


def test_the_network_policy_leaves_the_webhooks_port_to_the_addresses_it_names() -> None:
    policy = _one("network-policy.yaml", "NetworkPolicy")
    deployment = _one("corral.yaml", "Deployment")
    assert policy["metadata"]["namespace"] == deployment["metadata"]["namespace"]
    labels = deployment["spec"]["template"]["metadata"]["labels"]
    assert policy["spec"]["podSelector"]["matchLabels"].items() <= labels.items()
    assert policy["spec"]["policyTypes"] == ["Ingress"]
    listen = _settings().admission_listen
    assert listen is not None
    (limited,) = [rule for rule in policy["spec"]["ingress"] if "from" in rule]
    assert [one["port"] for one in limited["ports"]] == [listen.port]
    assert all(source.keys() == {"ipBlock"} for source in limited["from"])


def test_what_anybody_may_reach_are_the_ports_that_ask_who_calls() -> None:
    pod = _one("corral.yaml", "Deployment")["spec"]["template"]["spec"]
    (scheduler,) = [one for one in pod["containers"] if one["name"] == "kube-scheduler"]
    policy = _one("network-policy.yaml", "NetworkPolicy")
    (open_to_all,) = [rule for rule in policy["spec"]["ingress"] if "from" not in rule]
    probed = scheduler["livenessProbe"]["httpGet"]["port"]
    peoples = int(_one("api.yaml", "ConfigMap")["data"]["CORRAL_API_LISTEN"].rpartition(":")[2])
    assert [one["port"] for one in open_to_all["ports"]] == [probed, peoples]


def test_the_certificate_is_mounted_where_the_settings_look_and_may_be_missing() -> None:
    settings = _settings()
    pod = _one("corral.yaml", "Deployment")["spec"]["template"]["spec"]
    (mount,) = [one for one in _corral()["volumeMounts"] if one["name"] == "webhook"]
    (volume,) = [one for one in pod["volumes"] if one["name"] == "webhook"]
    assert settings.admission_cert == Path(mount["mountPath"]) / "tls.crt"
    assert settings.admission_key == Path(mount["mountPath"]) / "tls.key"
    assert volume["secret"]["optional"] is True
    text = (DEPLOY / "webhook.yaml").read_text(encoding="utf-8")
    assert f"create secret tls {volume['secret']['secretName']} " in text


def test_the_certificate_that_is_described_is_for_the_services_name() -> None:
    service = _one("webhook.yaml", "Service")["metadata"]
    name = f"{service['name']}.{service['namespace']}.svc"
    text = (DEPLOY / "webhook.yaml").read_text(encoding="utf-8")
    assert f"DNS:{name} " in text
    assert f"[{name}]" in text


def test_each_place_for_the_authoritys_certificate_is_filled_in_by_the_lines_that_are_given() -> (
    None
):
    text = (DEPLOY / "webhook.yaml").read_text(encoding="utf-8")
    places = re.findall(r"/webhooks/(\d)/clientConfig/caBundle", text)
    assert len(places) == len(_webhooks())


def test_pods_of_other_schedulers_are_never_sent() -> None:
    name = _settings().scheduler_name
    for webhook in _webhooks():
        if webhook["name"] not in OF_ALL:
            conditions = " ".join(one["expression"] for one in webhook["matchConditions"])
            assert f"object.spec.?schedulerName.orValue('') == '{name}'" in conditions
            assert set(re.findall(r"schedulerName.orValue\(''\) == '([^']*)'", conditions)) == {
                name
            }


def test_what_makes_a_gang_has_the_prefix_that_is_looked_for() -> None:
    assert {
        *annotations.MODES,
        *annotations.SLICES,
        annotations.POD_SET_GROUP,
        pod_groups.GROUP_NAME,
    } == {
        key
        for key in (*annotations.KEPT, *pod_groups.KEPT)
        if key.startswith(annotations.PREFIX)
        and key not in (annotations.INDEX_OFFSET, annotations.ROLE_HASH, *pod_groups.KEPT[1:])
    }
    assert in_charge.QUEUE_NAME.startswith(annotations.PREFIX)
    mutating, validating = (
        " ".join(one["expression"] for one in webhook["matchConditions"])
        for webhook in _webhooks()[:2]
    )
    assert "object.spec.?schedulingGroup.?podGroupName.orValue('') != ''" in mutating
    prefixes = set(re.findall(r"startsWith\('([^']+)'\)", mutating))
    assert set(re.findall(r"startsWith\('([^']+)'\)", validating)) == {annotations.PREFIX}
    assert prefixes > {annotations.PREFIX}
    (listed,) = re.findall(r"key in \[([^]]*)\]", mutating)
    looked_for = {each.strip(" '") for each in listed.split(",")}
    for key in (*keys.KEPT, *kai_keys.FOR_GROUPER, kai_keys.GROUP_NAME):
        is_sent = key in looked_for or key.startswith(tuple(prefixes))
        claim = DIALECTS.claim(pod("p", annotations={key: "1"}))
        assert is_sent == (claim is not None), key


def test_pods_of_grove_are_sent_only_for_what_is_checked_and_would_be_left_alone() -> None:
    (mutating,) = _one("webhook.yaml", MUTATING)["webhooks"]
    (expression,) = [
        one["expression"]
        for one in mutating["matchConditions"]
        if one["name"] == "not-of-grove-alone"
    ]
    assert expression.startswith(
        f"!('{grove_keys.POD_GANG}' in object.metadata.?labels.orValue({{}})) ||"
    )
    assert set(re.findall(r"startsWith\('([^']+)'\)", expression)) == {
        annotations.PREFIX,
        kai_keys.PREFIX,
        "corral.dev/workload-",
    }
    assert DIALECTS.lifts_gates(pod("p", labels={grove_keys.POD_GANG: "g"}))


def test_members_of_every_vocabulary_are_sent_without_the_condition_that_leaves_groves_out() -> (
    None
):
    """As deploy/webhook.yaml says it for members that need a marker, and as the chart does it."""
    (mutating,) = _one("webhook.yaml", MUTATING)["webhooks"]
    left = [one for one in mutating["matchConditions"] if one["name"] != "not-of-grove-alone"]
    assert [one["name"] for one in left] == ["of-our-scheduler", "asks-for-something"]
    words = DIALECTS.configured(EngineOptions(native_pod_groups="on")).words()
    assert words.keys() == {"grove", "native", "kueue", "volcano", "kai"}
    for word in (word for each in words.values() for word in each):
        assert word in left[1]["expression"], word


def test_a_pod_is_asked_about_once_at_its_creation_and_then_when_it_changes() -> None:
    asked = [
        (webhook["name"], rule["operations"])
        for webhook in _webhooks()
        for rule in webhook["rules"]
        if rule["resources"] == ["pods"]
    ]
    assert asked == [("gate.corral.dev", ["CREATE"]), ("pods.corral.dev", ["UPDATE"])]


def test_every_kind_that_is_validated_is_sent_and_no_other() -> None:
    with_templates = {(kind.group, kind.kind) for kind in KINDS}
    assert _sent("templates.corral.dev") == set(map(_resource, with_templates))
    assert all(DIALECTS.templates(group, kind) for group, kind in with_templates)


def test_every_kind_with_rules_of_its_own_is_sent_and_no_other() -> None:
    with_rules = set[tuple[str, str]]()
    for dialect in (volcano.DIALECT, kai.DIALECT, grove.DIALECT, NATIVE):
        name = dialect.name
        its = {(each.group, each.kind) for each in dialect.object_rules()}
        assert _sent(f"{name}.corral.dev") == set(map(_resource, its))
        with_rules |= its
    read = DIALECTS.configured(EngineOptions(native_pod_groups="on"))
    every = {(rules.group, rules.kind) for each in read.each for rules in each.object_rules()}
    assert every == with_rules
    assert all(read.object_rules(group, kind) for group, kind in with_rules)


def _sent(name: str) -> set[tuple[str, str]]:
    """Group and resource of what a webhook is asked about."""
    (webhook,) = [one for one in _webhooks() if one["name"] == name]
    return {
        (group, resource)
        for rule in webhook["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
    }


def _resource(kind: tuple[str, str]) -> tuple[str, str]:
    name = kind[1].lower()
    return kind[0], f"{name.removesuffix('y')}ies" if name.endswith("y") else f"{name}s"


def test_it_is_called_after_kueue() -> None:
    # The API server calls configurations in the order of their names; Kueue's begins like this.
    assert _one("webhook.yaml", MUTATING)["metadata"]["name"] > "kueue-mutating-webhook"
