"""What Helm and kustomize make of deploy/: the manifests, and what values change in them."""

from __future__ import annotations

import base64
import json
import re
from typing import Any

import pytest
import yaml
from cryptography import x509

from app.cli.doctor import checks
from app.cli.doctor.configuration import config_in
from app.cli.doctor.reading.rights import OPTIONAL
from app.cli.doctor.seen import OwnSettings, Seen, Webhooks, WebhookService
from app.cli.doctor.shipped import scheduler_config
from tests.cluster import Object, Objects
from tests.controlplane.built import skip_unless_built
from tests.controlplane.chart_values import (
    BY_LABEL,
    EVERYTHING,
    OPTIONS,
    PLACING,
    config,
    container,
    settings,
)
from tests.controlplane.packaged import (
    NotRendered,
    by_key,
    chart,
    kustomized,
    manifests,
    one,
)
from tests.controlplane.plane import ELSEWHERE, ROOT

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

MARKED = {"marker_resource": True, "needs_nodes": "off"}
SHIPPED = ("rbac.yaml", "policy.yaml", "corral.yaml")
# What settings have to be set for each ClusterRole that only settings need.
ASKING = {
    "corral-evict": [
        {"fail_fast": True},
        {"disruption": "all"},
        {"preempt": "on"},
    ],
    "corral-delete-excess": [{"delete_excess_pods": True}],
    "corral-hypernodes": [{"hyper_nodes_from": ["gke"]}, {"hyper_nodes_from": "topograph"}],
    "corral-protect-nodes": [{"protect_held_nodes": True}],
    "corral-native-pod-groups": [{"native_pod_groups": "on"}, {"native_pod_groups": True}],
    "corral-provisioning": [{"provisioning_class": "*"}],
}


@pytest.fixture(autouse=True)
def built() -> None:
    skip_unless_built("helm", "kustomize")


def bound(objects: Objects) -> set[str]:
    """The optional ClusterRoles that Corral has."""
    bindings = [each for each in objects if each["kind"] == "ClusterRoleBinding"]
    for each in bindings:
        assert each["subjects"][0]["namespace"]
    return {each["roleRef"]["name"] for each in bindings} & OPTIONAL.keys()


def without_namespace(things: Objects) -> Objects:
    return [each for each in things if each["kind"] != "Namespace"]


def test_without_values_the_chart_is_the_manifests_but_for_the_namespace_that_helm_makes() -> None:
    assert by_key(chart()) == by_key(without_namespace(manifests(*SHIPPED)))
    assert by_key(chart({"createNamespace": True})) == by_key(manifests(*SHIPPED))


def test_kustomize_makes_the_manifests() -> None:
    assert by_key(kustomized()) == by_key(manifests(*SHIPPED))


@pytest.mark.parametrize("file", OPTIONS)
def test_an_option_adds_its_manifest(file: str) -> None:
    added = by_key(chart(OPTIONS[file]))
    for name, shipped in by_key(manifests(file)).items():
        made = added.pop(name)
        if file == "webhook.yaml":  # nothing fills in what nothing has asked for
            shipped["metadata"].pop("annotations", None)
        if file == "hypernode-crd.yaml":
            assert made["metadata"].pop("annotations") == {"helm.sh/resource-policy": "keep"}
        assert made == shipped
    assert added.keys() == by_key(chart()).keys()


def test_the_network_policy_has_the_addresses_that_are_given_and_no_port_that_is_closed() -> None:
    (shipped,) = manifests("network-policy.yaml")
    made = one(chart(EVERYTHING), "NetworkPolicy", "corral")
    assert made == shipped
    closed = one(chart({"networkPolicy": {"enabled": True}}), "NetworkPolicy", "corral")
    assert closed["spec"]["ingress"] == [
        rule for rule in shipped["spec"]["ingress"] if "from" not in rule
    ]
    with pytest.raises(NotRendered, match="needs the addresses"):
        chart({**EVERYTHING, "networkPolicy": {"enabled": True}})


@pytest.mark.parametrize(
    ("role", "said"),
    [pytest.param(role, said, id=f"{role}-{said}") for role in ASKING for said in ASKING[role]],
)
def test_a_setting_binds_the_cluster_roles_that_it_needs_and_no_others(
    role: str, said: dict[str, Any]
) -> None:
    objects = chart({"settings": said})
    told = settings(objects)
    assert bound(objects) == {name for name, needs in OPTIONAL.items() if needs(told)} == {role}


def test_labels_of_namespaces_and_readers_are_cluster_roles_too() -> None:
    values = {**EVERYTHING, "admission": {"namespaceSelector": BY_LABEL}}
    objects = chart(values)
    told = settings(objects).model_copy(update={"api_cert": "there"})
    assert bound(objects) == {name for name, needs in OPTIONAL.items() if needs(told)}
    assert bound(objects) == {"corral-namespaces", "corral-readers"}


def test_to_give_pods_back_corral_evicts_and_suspends() -> None:
    objects = chart({**OPTIONS["webhook.yaml"], "settings": {"born_seconds": 0.5}})
    told = settings(objects)
    assert bound(objects) == {name for name, needs in OPTIONAL.items() if needs(told)}
    assert bound(objects) == {"corral-evict", "corral-suspend"}


def test_pods_that_are_not_given_back_need_no_right_to_evict() -> None:
    said = {"born_seconds": 10, "born_pods_given_back": False}
    assert bound(chart({**OPTIONS["webhook.yaml"], "settings": said})) == set()


def test_prometheus_gets_the_rules_and_where_to_scrape_and_grafana_the_dashboard() -> None:
    monitoring = {
        "serviceMonitor": {"enabled": True, "labels": {"release": "prometheus"}},
        "rules": {"enabled": True},
        "dashboard": {"enabled": True},
    }
    objects = chart({"monitoring": monitoring, "api": {"enabled": True}}, ELSEWHERE)
    rules = one(objects, "PrometheusRule", "corral")["spec"]
    (shipped,) = manifests("monitoring/alerts.yaml")
    assert rules == shipped
    dashboard = one(objects, "ConfigMap", "corral-dashboard")
    file = ROOT / "deploy" / "monitoring" / "dashboard.json"
    assert json.loads(dashboard["data"]["corral.json"]) == json.loads(file.read_text("utf-8"))
    assert dashboard["metadata"]["labels"] == {"grafana_dashboard": "1"}
    scraped = one(objects, "ServiceMonitor", "corral")
    service = one(objects, "Service", "corral-api")
    assert scraped["metadata"]["labels"] == {"release": "prometheus"}
    selected = scraped["spec"]["selector"]["matchLabels"]
    assert selected.items() <= service["metadata"]["labels"].items()
    (endpoint,) = scraped["spec"]["endpoints"]
    assert endpoint["port"] in [each["name"] for each in service["spec"]["ports"]]
    assert (endpoint["path"], endpoint["scheme"]) == ("/metrics", "https")


def test_nothing_is_scraped_where_no_port_is_open() -> None:
    with pytest.raises(NotRendered, match=r"monitoring\.serviceMonitor: needs api\.enabled"):
        chart({"monitoring": {"serviceMonitor": {"enabled": True}}})


def test_every_optional_cluster_role_is_asked_for_here() -> None:
    others = {"corral-namespaces", "corral-readers", "corral-suspend"}
    assert OPTIONAL.keys() == {*ASKING, *others}


def test_operators_that_lift_gates_may() -> None:
    who = {"namespace": "grove-system", "name": "grove-operator"}
    binding = one(chart({"gateLifters": [who]}), "ClusterRoleBinding", "corral-gates")
    assert binding["roleRef"]["name"] == "corral-gates"
    assert binding["subjects"] == [{"kind": "ServiceAccount", **who}]


def test_beside_another_kube_scheduler_there_is_corral_alone_and_no_right_over_its_lease() -> None:
    objects = chart({"mode": "beside"})
    shipped = by_key(manifests("policy.yaml", "beside.yaml"))
    made = by_key(objects)
    assert {name: made[name] for name in shipped} == shipped
    rights = by_key(without_namespace(manifests("rbac.yaml")))
    left_out = rights.keys() - made.keys()
    assert {name for name, thing in rights.items() if _is_of_scheduler(thing)} == left_out
    assert made.keys() == (rights.keys() - left_out) | shipped.keys()
    text = json.dumps([each for each in objects if each["kind"].endswith(("Role", "Binding"))])
    assert "corral-scheduler" not in text


def _is_of_scheduler(thing: Object) -> bool:
    """An account or a right of the kube-scheduler in the pod, or a right over its Lease."""
    return thing["kind"] in ("Role", "RoleBinding") or "corral-scheduler" in json.dumps(thing)


def test_beside_it_is_placed_and_reached_as_values_say() -> None:
    values = {
        **EVERYTHING,
        "mode": "beside",
        "beside": {"clusterIP": "10.0.0.9", "nodeName": "control-plane"},
        "settings": {"scheduler_name": ""},
    }
    objects = chart(values)
    assert one(objects, "Service", "corral-extender")["spec"]["clusterIP"] == "10.0.0.9"
    pod = one(objects, "Deployment", "corral")["spec"]["template"]["spec"]
    assert pod["nodeName"] == "control-plane"
    assert settings(objects).scheduler_name == ""
    ingress = one(objects, "NetworkPolicy", "corral")["spec"]["ingress"]
    asking_who = [rule for rule in ingress if "from" not in rule]
    assert [port["port"] for rule in asking_who for port in rule["ports"]] == [8888, 8443]
    conditions = json.dumps(objects)
    assert "schedulerName.orValue('') == 'corral'" not in conditions
    assert "schedulerName.orValue('') != ''" in conditions


def test_what_is_said_of_the_pods_is_said_of_the_pods() -> None:
    objects = chart(PLACING)
    deployment = one(objects, "Deployment", "corral")["spec"]
    template = deployment["template"]
    assert deployment["replicas"] == 1
    assert "PodDisruptionBudget" not in {each["kind"] for each in objects}
    for name in ("nodeSelector", "tolerations", "affinity", "priorityClassName"):
        assert template["spec"][name] == PLACING[name]
    assert template["spec"]["imagePullSecrets"] == [{"name": "pull"}]
    assert template["metadata"]["annotations"]["a"] == "b"
    labels = {"app.kubernetes.io/name": "corral", "c": "d"}
    assert template["metadata"]["labels"] == labels
    image = f"r/corral@sha256:{'0' * 64}"
    assert {container(objects, name)["image"] for name in ("corral", "token")} == {image}
    assert container(objects, "corral")["resources"] == PLACING["resources"]
    scheduler = container(objects, "kube-scheduler")
    assert scheduler["image"] == "registry.k8s.io/kube-scheduler:v1.35.9"
    assert scheduler["resources"] == PLACING["scheduler"]["resources"]
    assert scheduler["imagePullPolicy"] == "Always"
    assert "1.35" in one(objects, "ConfigMap", "corral-scheduler")["data"]["config.yaml"][:40]


def test_a_made_certificate_is_for_the_service_and_trusted_by_every_webhook() -> None:
    objects = chart({"webhook": {"enabled": True}}, ELSEWHERE)
    secret = one(objects, "Secret", "corral-webhook")
    assert secret["type"] == "kubernetes.io/tls"
    pem = base64.b64decode(secret["data"]["tls.crt"])
    names = x509.load_pem_x509_certificate(pem).extensions.get_extension_for_class(
        x509.SubjectAlternativeName
    )
    host = f"corral-webhook.{ELSEWHERE}.svc"
    assert names.value.get_values_for_type(x509.DNSName) == [host]
    hooks = [hook for each in objects for hook in each.get("webhooks", [])]
    assert {hook["clientConfig"]["caBundle"] for hook in hooks} == {secret["data"]["tls.crt"]}
    assert {hook["clientConfig"]["service"]["namespace"] for hook in hooks} == {ELSEWHERE}


@pytest.mark.parametrize("name", ["webhook", "api"])
def test_what_signs_a_certificate_that_cert_manager_renews_stays_as_it_is(name: str) -> None:
    """Else the API server trusts the new one while Corral still shows the one before."""
    objects = chart({name: {"enabled": True, "certificate": "cert-manager"}}, ELSEWHERE)
    served = one(objects, "Certificate", f"corral-{name}")["spec"]
    assert served["secretName"] == f"corral-{name}"
    assert served["dnsNames"] == [f"corral-{name}.{ELSEWHERE}.svc"]
    signs = one(objects, "Issuer", served["issuerRef"]["name"])["spec"]["ca"]
    (authority,) = [
        each["spec"]
        for each in objects
        if each["kind"] == "Certificate" and each["spec"]["secretName"] == signs["secretName"]
    ]
    assert authority["isCA"]
    assert authority["duration"] == "87600h"
    assert "duration" not in served
    assert one(objects, "Issuer", authority["issuerRef"]["name"])["spec"] == {"selfSigned": {}}


def test_members_alone_come_to_corral_where_the_webhook_marks_them() -> None:
    objects = chart({"settings": MARKED, "webhook": {"enabled": True}})
    assert settings(objects).marker_resource
    file = ROOT / "scheduler-config" / "1.36-marker.yaml"
    assert config(objects) == yaml.safe_load(file.read_text(encoding="utf-8"))
    webhooks = one(objects, "MutatingWebhookConfiguration", "webhook.corral.dev")["webhooks"]
    assert [each["failurePolicy"] for each in webhooks] == ["Fail"]
    # Grove's pods get their marker, though they get no gate.
    kept = [each["name"] for each in webhooks[0]["matchConditions"]]
    assert kept == ["of-our-scheduler", "asks-for-something"]
    others = one(objects, "ValidatingWebhookConfiguration", "webhook.corral.dev")["webhooks"]
    assert {each["failurePolicy"] for each in others} == {"Ignore"}


def test_beside_the_webhook_marks_members_for_the_kube_scheduler_elsewhere() -> None:
    objects = chart({"mode": "beside", "settings": MARKED, "webhook": {"enabled": True}})
    told = settings(objects)
    assert told.marker_resource
    assert told.percentage_of_nodes_to_score == 0  # as scheduler-config/1.36-mtls-marker.yaml
    (gate,) = one(objects, "MutatingWebhookConfiguration", "webhook.corral.dev")["webhooks"]
    assert gate["failurePolicy"] == "Fail"
    assert "not-of-grove-alone" not in {each["name"] for each in gate["matchConditions"]}


@pytest.mark.parametrize("mode", ["sidecar", "beside"])
@pytest.mark.parametrize(
    "more",
    [
        pytest.param({}, id="one_scheduler"),
        pytest.param({"scheduler_name": "corral,volcano"}, id="two_schedulers"),
        pytest.param({"native_pod_groups": "on"}, id="native_pod_groups"),
        pytest.param({"scheduler_vocabularies": {"corral": ["grove", "kai"]}}, id="vocabularies"),
    ],
)
def test_doctor_finds_that_settings_webhook_and_configuration_agree_on_the_marker(
    mode: str, more: dict[str, Any]
) -> None:
    values = {"mode": mode, "webhook": {"enabled": True}, "settings": {**MARKED, **more}}
    objects = chart(values)
    if mode == "sidecar":
        text = one(objects, "ConfigMap", "corral-scheduler")["data"]["config.yaml"]
    else:  # with the profiles of the kube-scheduler elsewhere
        written = yaml.safe_load(scheduler_config("1.36", "beside-marker"))
        (profile,) = written["profiles"]
        names = more.get("scheduler_name", "corral").split(",")
        written["profiles"] = [{**profile, "schedulerName": each} for each in names]
        text = yaml.safe_dump(written)
    seen = Seen(
        config=config_in(text, "the configuration"),
        settings=OwnSettings("the settings", settings(objects)),
        webhooks=Webhooks(
            (one(objects, "MutatingWebhookConfiguration", "webhook.corral.dev"),),
            (one(objects, "ValidatingWebhookConfiguration", "webhook.corral.dev"),),
            {"corral-system/corral-webhook": WebhookService(True, 1, (443,))},
        ),
    )
    made = {each.check: each for each in checks.run(seen) if each.level != "not checked"}
    assert {"marker", "webhook-members", "webhook-schedulers", "webhook-policy"} <= made.keys()
    assert [each for each in made.values() if each.level != "ok"] == []


@pytest.mark.parametrize("mode", ["sidecar", "beside"])
@pytest.mark.parametrize(
    ("values", "said"),
    [
        pytest.param({"webhook": {"enabled": False}}, "set webhook.enabled", id="no_webhook"),
        pytest.param(
            {"policies": {"enabled": True}, "webhook": {"enabled": False}},
            "set webhook.enabled",
            id="policies_alone",
        ),
        pytest.param({"settings": {"marker_resource": True}}, "settings.needs_nodes", id="marks"),
        pytest.param(
            {"settings": {**MARKED, "provisioning_class": "*"}},
            "leave settings.provisioning_class out",
            id="requests",
        ),
        pytest.param(
            {"settings": {**MARKED, "scheduler_name": "corral,kai-scheduler"}},
            "leave that out of settings.kai_grouped_schedulers",
            id="grouped_too_late",
        ),
    ],
)
def test_values_with_which_no_member_has_its_marker_or_a_node_are_refused(
    mode: str, values: dict[str, Any], said: str
) -> None:
    with pytest.raises(NotRendered, match=rf"settings\.marker_resource: .*{re.escape(said)}"):
        chart({"mode": mode, "webhook": {"enabled": True}, "settings": MARKED, **values})
