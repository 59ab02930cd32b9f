"""Each mistake in an installation is found by the check that is meant for it alone."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import yaml

from app.cli.doctor import checks, shipped
from app.cli.doctor.checks.rights import words as checks_words
from app.cli.doctor.reading import rights
from app.cli.doctor.seen import (
    Canary,
    Handshake,
    OwnSettings,
    Policies,
    Readiness,
    Seen,
    TopologyObject,
    Unread,
    Webhooks,
    WebhookService,
)
from app.dialects.registry import DIALECTS
from app.settings import EngineOptions
from tests.app.cli.doctor.installation import (
    ABSENT,
    BESIDE,
    CONFIG,
    DEPLOYMENT,
    GUARDED,
    GUARDS,
    MEMBERS_ALONE,
    MEMBERS_BESIDE,
    MUTATING,
    POD,
    POLICY,
    VALIDATING,
    canary,
    config_from,
    edited,
    findings,
    found,
    one,
    pods,
    policies,
    right,
    settings,
    topology,
    webhooks,
    with_bundle,
)

GROUP = {"kueue.x-k8s.io/pod-group-name": "g", "kueue.x-k8s.io/pod-group-total-count": "2"}
REQUIRED = {"kueue.x-k8s.io/podset-required-topology": "block"}
REPLICA_SET = {
    "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "u", "controller": True,
}  # fmt: skip
IMAGE = ("spec", "template", "spec", "containers", 0, "image")
HOOK = ("webhooks", 0)
BUNDLED = with_bundle(MUTATING)
KUEUE = {"metadata": {"name": "kueue-mutating-webhook-configuration"}, "webhooks": []}
BEFORE = edited(BUNDLED, ("metadata", "name"), "corral")
TWO_PROFILES = [*CONFIG["profiles"], {**CONFIG["profiles"][0], "schedulerName": "default"}]
EVERYWHERE = {"matchExpressions": []}
TEAM = {
    "matchExpressions": [
        *MUTATING["webhooks"][0]["namespaceSelector"]["matchExpressions"],
        {"key": "team", "operator": "Exists"},
    ]
}


def pod(scheduler: str = "corral", node: str = "", **metadata: object) -> dict[str, object]:
    base = {"name": "p", "namespace": "default", "uid": "p"}
    spec = {"schedulerName": scheduler, "nodeName": node}
    return {"metadata": {**base, **metadata}, "spec": spec}


def configured(path: tuple[str | int, ...], value: object) -> dict[str, object]:
    return {"config": config_from(edited(CONFIG, path, value))}


def hooked(path: tuple[str | int, ...], value: object) -> dict[str, object]:
    return {"webhooks": webhooks(edited(BUNDLED, (*HOOK, *path), value))}


def ruled(path: tuple[str | int, ...], value: object) -> dict[str, object]:
    """Policies instead of a webhook, with another value in the one that gates."""
    changed = policies(edited(POLICY, ("spec", *path), value))
    return {**POLICIES, "policies": changed}


def guards_but(name: str) -> tuple[dict[str, Any], ...]:
    return tuple(each for each in GUARDS if name not in each["metadata"]["name"])


def guarding(path: tuple[str | int, ...], value: object) -> dict[str, object]:
    """The policies of policy.yaml, with another value in the one over pods."""
    changed = edited(GUARDS[0], ("spec", *path), value)
    return {"policies": Policies((), (changed, *GUARDS[1:]), GUARDED)}


def nominating(scheduler: str) -> dict[str, Any]:
    """The policies of policy.yaml, where pods of one more scheduler may be nominated."""
    ours = "schedulerName.orValue('') == 'corral'"
    theirs = f"schedulerName.orValue('') in ['corral', '{scheduler}']"
    rules = [
        {**each, "expression": each["expression"].replace(ours, theirs)}
        for each in GUARDS[0]["spec"]["validations"]
    ]
    return guarding(("validations",), rules)


def marking(config: object = MEMBERS_ALONE, policy: str = "Fail", **changed: object) -> Any:
    """kube-scheduler asks about members alone, and the webhook marks them, also those of Grove."""
    return {
        "config": config_from(config),
        "settings": settings(**MARKS | changed),
        "webhooks": webhooks(edited(ALL_MEMBERS, (*HOOK, "failurePolicy"), policy)),
    }


def sending(conditions: list[dict[str, Any]], **changed: object) -> Any:
    """The same, where the webhook for new pods has other conditions."""
    whole = marking(**changed)
    hook = edited(whole["webhooks"].mutating[0], (*HOOK, "matchConditions"), conditions)
    return {**whole, "webhooks": webhooks(hook)}


CONDITIONS = MUTATING["webhooks"][0]["matchConditions"]
WITHOUT_GROVES = [each for each in CONDITIONS if each["name"] != "not-of-grove-alone"]
ALL_MEMBERS = edited(BUNDLED, (*HOOK, "matchConditions"), WITHOUT_GROVES)


def without_word(word: str) -> list[dict[str, Any]]:
    """The conditions of the same, which look for one word less."""
    said = [each["expression"] for each in WITHOUT_GROVES]
    assert any(word in each for each in said)
    return [
        {**each, "expression": each["expression"].replace(word, "other")} for each in WITHOUT_GROVES
    ]


SAMPLED = {"percentage_of_nodes_to_score": 0}
MARKS = {"marker_resource": True, "needs_nodes": "off", **SAMPLED}
RESOURCES = ("extenders", 1, "managedResources")
LEASE = ("leaderElection", "resourceName")
SHARE = ("profiles", 0, "percentageOfNodesToScore")
NO_WEBHOOK = {"settings": settings(with_webhook=False), "webhooks": webhooks(ABSENT)}
POLICIES = {**NO_WEBHOOK, "policies": policies()}
OF_KAI = "object.spec.?schedulerName.orValue('') in ['corral', 'kai-scheduler']"
OF_ANOTHER = "request.userInfo.username in ['system:serviceaccount:other:corral']"
BORN = {"settings": settings(born_seconds="10")}
KAI_TOO = {"with_webhook": False, "scheduler_name": "corral,kai-scheduler"}
TWO_SCHEDULERS = {
    "settings": settings(**KAI_TOO),
    "config": config_from(edited(CONFIG, ("profiles",), [
        *CONFIG["profiles"], {**CONFIG["profiles"][0], "schedulerName": "kai-scheduler"}])),
    "webhooks": Webhooks((), (), {}),
    "canary": canary(()),
}  # fmt: skip
OF_THE_CLUSTER = edited(CONFIG, ("profiles", 0, "schedulerName"), "default-scheduler")
THE_CLUSTERS = {"with_webhook": False, "scheduler_name": "default-scheduler"}
NOT_NOMINATED = {"settings": settings(**KAI_TOO, nominate_planned="false")}
PLANTED = [
    pytest.param(configured(("extenders", 1, "httpTimeout"), "30s"),
                 {"bind-timeout": "error"}, id="bind_waits_less_than_it_is_held"),
    pytest.param(configured(("extenders", 1, "httpTimeout"), ABSENT),
                 {"bind-timeout": "error"}, id="bind_waits_five_seconds_by_default"),
    pytest.param({"settings": settings(bind_seconds=20)},
                 {"bind-timeout": "error"}, id="settings_hold_just_as_long"),
    pytest.param({"settings": settings(bind_seconds=30)},
                 {"bind-timeout": "error"}, id="settings_hold_longer"),
    pytest.param(configured(("extenders", 0, "httpTimeout"), "1s"),
                 {"bind-timeout": "warning"}, id="filter_waits_less_than_a_body_may_take"),
    pytest.param({"settings": settings(extender_listen="127.0.0.1:8889")},
                 {"extender-address": "error"}, id="another_port"),
    pytest.param(configured(("profiles",), TWO_PROFILES),
                 {"profile-names": "error"}, id="profile_that_corral_does_not_plan_for"),
    pytest.param(configured(SHARE, ABSENT),
                 {"node-sampling": "warning"}, id="sample_that_settings_do_not_know"),
    pytest.param({**configured(SHARE, 50),
                  "settings": settings(with_webhook=False, percentage_of_nodes_to_score=50,
                                       nominate_planned=False),
                  "webhooks": webhooks(ABSENT), "canary": Unread("")},
                 {"node-sampling": "error"}, id="sample_while_nothing_gates"),
    pytest.param(marking(), {}, id="marker"),
    pytest.param(marking(policy="Ignore"),
                 {"webhook-policy": "warning"}, id="marker_may_be_missing"),
    pytest.param(marking(edited(CONFIG, SHARE, ABSENT)), {"marker": "error"}, id="marker_counted"),
    pytest.param(marking(edited(MEMBERS_ALONE, RESOURCES, ABSENT)),
                 {"marker": "error"}, id="marker_counted_of_one_extender"),
    pytest.param(marking(policy="Ignore", marker_resource=False),
                 {"marker": "error"}, id="marker_that_no_pod_has"),
    pytest.param({**marking(), "settings": settings(with_webhook=False, **MARKS),
                  "webhooks": webhooks(ABSENT), "policies": policies()},
                 {"marker": "error"}, id="marker_that_policies_do_not_add"),
    pytest.param(sending(CONDITIONS), {"webhook-members": "error"}, id="groves_without_marker"),
    pytest.param(sending(CONDITIONS, scheduler_vocabularies="corral=kueue"),
                 {}, id="groves_that_are_not_read"),
    pytest.param(sending([]), {}, id="every_pod_is_sent"),
    *(pytest.param(sending(without_word(word), native_pod_groups="on"),
                   {"webhook-members": "error"}, id=f"without_{word}")
      for words in DIALECTS.configured(EngineOptions(native_pod_groups="on")).words().values()
      for word in words),
    pytest.param(sending(without_word("schedulingGroup")),
                 {}, id="native_groups_that_are_kube_schedulers"),
    pytest.param({**marking(), "webhooks": webhooks(ABSENT)},
                 {"webhook": "error"}, id="nothing_marks"),
    pytest.param(marking(edited(MEMBERS_ALONE, ("profiles",), [
                     *MEMBERS_ALONE["profiles"],
                     {**MEMBERS_ALONE["profiles"][0], "schedulerName": "volcano"}]),
                     scheduler_name="corral,volcano") | nominating("volcano"),
                 {"webhook-schedulers": "error"}, id="marker_of_one_scheduler"),
    pytest.param(configured(LEASE, "other"), {"lease": "error"}, id="another_lease"),
    pytest.param(configured(("leaderElection", "leaderElect"), False),
                 {"lease": "error"}, id="nobody_leads"),
    pytest.param({"settings": settings(neighbour_lease="")},
                 {"replicas": "error"}, id="two_act_at_once"),
    pytest.param({"settings": settings(neighbour_lease="", own_lease="corral-system/corral")},
                 {}, id="a_lease_of_their_own"),
    pytest.param({**configured(("leaderElection",), {}),
                  "settings": settings(neighbour_lease="kube-system/kube-scheduler")},
                 {"replicas": "error"}, id="lease_of_the_clusters_own_scheduler"),
    pytest.param({"skew": -61.0}, {"clock": "warning"}, id="clock"),
    pytest.param({"version": "v1.38.0"}, {"versions": "warning"}, id="api_server_too_new"),
    pytest.param({"version": "v1.35.9"}, {"versions": "warning"}, id="api_server_too_old"),
    pytest.param({"deployment": edited(DEPLOYMENT, IMAGE, "r/kube-scheduler:v1.30.1"),
                  "version": "v1.30.1"}, {"versions": "warning"}, id="never_tried"),
    pytest.param({"pods": ()}, {"pods-ready": "error"}, id="no_pods"),
    pytest.param({"pods": (edited(POD, ("status", "containerStatuses", 1, "ready"), False),)},
                 {"pods-ready": "error"}, id="corral_not_ready"),
    pytest.param({"readiness": (Readiness("corral-1", "not ready", "pods are not read"),)},
                 {"readyz": "error"}, id="not_ready"),
    pytest.param({"topology": topology("n1 b1/r1\nn2 b1/-")},
                 {"node-labels": "warning"}, id="node_without_a_label"),
    pytest.param({"topology": topology("n1 -/-\nn2 -/-")},
                 {"node-labels": "error"}, id="no_node_has_a_label"),
    pytest.param({"topology": topology("n1 b1/r1\nn2 b2/r1")},
                 {"level-nesting": "note"}, id="rack_in_two_blocks"),
    pytest.param({"topology": topology("n1 b1/r1", TopologyObject("Topology t", ("twice",)))},
                 {"topology-objects": "error"}, id="topology_that_is_none"),
    pytest.param({"settings": settings(levels="")}, {"levels": "warning"}, id="no_levels"),
    pytest.param({"settings": settings(levels="gkee")}, {"levels": "error"}, id="no_preset"),
    pytest.param({"webhooks": webhooks(ABSENT)}, {"webhook": "warning"}, id="no_configuration"),
    pytest.param({"settings": settings(with_webhook=False),
                  "canary": canary(())}, {"webhook": "error"}, id="no_port"),
    pytest.param({"settings": settings(with_webhook=False), "policies": policies()},
                 {"webhook": "error"}, id="no_port_beside_policies"),
    pytest.param({**POLICIES, "policies": policies(binding="other"), "canary": canary(())},
                 {"policies-bound": "warning"}, id="policy_that_is_not_bound"),
    pytest.param({**POLICIES, "canary": canary(())},
                 {"canary": "error"}, id="not_gated_by_a_policy"),
    pytest.param(ruled(("failurePolicy",), "Fail"),
                 {"policies-fail": "warning"}, id="policy_fails_closed"),
    pytest.param(ruled(("matchConstraints", "namespaceSelector"), {}),
                 {"policies-namespaces": "error"}, id="policy_gates_kube_system"),
    pytest.param(ruled(("matchConditions", 0, "expression"), OF_KAI),
                 {"policies-settings": "error"}, id="policy_gates_what_corral_does_not_plan"),
    pytest.param({**POLICIES, "settings": settings(with_webhook=False, kueue_manages="true")},
                 {"policies-settings": "error"}, id="policy_gates_what_kueue_manages"),
    pytest.param({**POLICIES, "settings": settings(with_webhook=False, native_pod_groups="on")},
                 {"policies-settings": "warning"}, id="policy_leaves_out_native_pod_groups"),
    pytest.param({**POLICIES, "settings": settings(with_webhook=False, born_seconds="10")},
                 {"policies-settings": "warning"}, id="policy_gates_what_would_be_born_in_place"),
    pytest.param(ruled(("variables",), []),
                 {"policies-settings": "error"}, id="policy_gates_pods_of_native_groups"),
    pytest.param({"policies": Policies((), (), frozenset())},
                 {"guard": "warning"}, id="no_policy_over_corral"),
    pytest.param({"policies": Policies((), GUARDS, frozenset())},
                 {"guard": "warning"}, id="policy_over_corral_that_is_not_bound"),
    pytest.param(guarding(("failurePolicy",), "Ignore"),
                 {"guard": "warning"}, id="policy_over_corral_fails_open"),
    pytest.param({**BORN, "policies": Policies((), guards_but("suspends"), GUARDED)},
                 {"guard": "warning"}, id="no_policy_over_what_corral_suspends"),
    pytest.param({"policies": Policies((), guards_but("suspends"), GUARDED)},
                 {}, id="no_policy_over_what_corral_never_suspends"),
    pytest.param({"policies": Policies((), guards_but("marks"), GUARDED)},
                 {"guard": "warning"}, id="no_policy_over_nodes"),
    pytest.param(guarding(("matchConditions", 0, "expression"), OF_ANOTHER),
                 {"guard": "warning"}, id="policy_over_another_account"),
    pytest.param(guarding(("variables", 0, "expression"), OF_ANOTHER),
                 {"guard": "warning"}, id="policy_that_restricts_another_account"),
    pytest.param(TWO_SCHEDULERS,
                 {"guard": "warning"}, id="policy_forbids_to_nominate_pods"),
    pytest.param({**TWO_SCHEDULERS, **nominating("kai-scheduler")},
                 {}, id="policy_that_names_both_schedulers"),
    pytest.param({**TWO_SCHEDULERS, **NOT_NOMINATED},
                 {}, id="policy_over_nominations_that_are_off"),
    pytest.param({"webhooks": webhooks(None, None, WebhookService(False))},
                 {"webhook-service": "error"}, id="no_service"),
    pytest.param({"webhooks": webhooks(None, None, WebhookService(True, 0, (443,)))},
                 {"webhook-service": "error"}, id="no_endpoint"),
    pytest.param({"webhooks": webhooks(None, None, WebhookService(True, 2, (8443,)))},
                 {"webhook-service": "error"}, id="another_service_port"),
    pytest.param({"webhooks": webhooks(MUTATING)},
                 {"webhook-authority": "error"}, id="no_ca_bundle"),
    pytest.param({"handshakes": {each: Handshake("10.0.0.7:9443", "self-signed certificate")
                                 for each in right().handshakes}},
                 {"webhook-certificate": "error"}, id="ca_bundle_of_another"),
    pytest.param(hooked(("failurePolicy",), "Fail"),
                 {"webhook-policy": "warning"}, id="fails_closed"),
    pytest.param({"webhooks": webhooks(None, None, None,
                                       KUEUE)},
                 {}, id="kueue_comes_first"),
    pytest.param({"webhooks": webhooks(BEFORE, None, None, KUEUE)},
                 {"webhook-order": "warning"}, id="kueue_comes_later"),
    pytest.param(hooked(("namespaceSelector",), EVERYWHERE),
                 {"webhook-namespaces": "error"}, id="kube_system_is_sent"),
    pytest.param(hooked(("namespaceSelector",), TEAM),
                 {"webhook-namespaces": "warning"}, id="fewer_namespaces_than_settings"),
    pytest.param({"settings": settings(scheduler_name="corral,kai"),
                  "config": config_from(edited(CONFIG, ("profiles",), [
                      *CONFIG["profiles"], {**CONFIG["profiles"][0], "schedulerName": "kai"}])),
                  **nominating("kai")},
                 {"webhook-schedulers": "warning"}, id="second_scheduler_not_sent"),
    pytest.param({"config": config_from(OF_THE_CLUSTER), "settings": settings(**THE_CLUSTERS),
                  "webhooks": Webhooks((), (), {}), "canary": canary((), "default-scheduler"),
                  **nominating("default-scheduler")},
                 {"cluster-profile": "error"}, id="profile_of_the_clusters_own_scheduler"),
    pytest.param({"members": pods(pod("default-scheduler", annotations=GROUP))},
                 {"pod-schedulers": "warning"}, id="another_scheduler"),
    pytest.param({"members": pods(pod(annotations=REQUIRED, ownerReferences=[REPLICA_SET]))},
                 {"pod-owners": "warning"}, id="owner_that_is_not_read"),
    pytest.param({"canary": canary(())}, {"canary": "error"}, id="not_gated"),
    pytest.param({"canary": Canary("default", None, "403 Forbidden")},
                 {"canary": "error"}, id="canary_refused"),
    pytest.param({"canary": canary(scheduler="other")},
                 {"canary-profile": "error"}, id="no_profile_for_the_canary"),
]  # fmt: skip


@pytest.mark.parametrize(("parts", "wanted"), PLANTED)
def test_a_mistake_is_found_by_the_check_that_is_meant(parts, wanted):
    assert found(replace(right(), **parts)) == wanted


def test_a_right_installation_has_no_finding():
    assert [each for each in checks.run(right()) if each.level != "ok"] == []


def test_one_without_a_webhook_is_right_as_well():
    without = replace(right(), **NO_WEBHOOK, canary=canary(()))
    assert found(without) == {}


def test_of_a_webhook_or_policy_that_is_not_there_nothing_is_said_to_be_right():
    said = {
        each.check: each.text
        for each in checks.run(replace(right(), webhooks=Webhooks((), (), {})))
        if each.check.startswith(("webhook-", "policies-"))
    }
    assert len(said) > 8, said
    assert {text for check, text in said.items() if check.startswith("policies-")} == {
        "no policy of deploy/policies.yaml is there"
    }
    assert said["webhook-certificate"] == said["webhook-service"] == said["webhook-order"]
    assert said["webhook-service"] == "no webhook of Corral's is there"
    there = {each.check: each.text for each in checks.run(right())}
    assert there["webhook-service"] == "ready pods are behind the webhook's Service"


@pytest.mark.parametrize(
    ("gates", "text", "mend"),
    [
        pytest.param([], "one by one", "schedulerName: corral", id="which_starts_it"),
        pytest.param(
            [{"name": "corral.dev/gang"}],
            "the gate corral.dev/gang stays",
            "scheduler_name: corral,another, or take the gate off as deploy/policy.yaml says",
            id="which_it_waits_for_behind_our_gate",
        ),
    ],
)
def test_what_becomes_of_a_pod_of_another_scheduler_is_said(gates, text, mend):
    of_another = pod("another", annotations=GROUP)
    of_another["spec"]["schedulingGates"] = gates
    (said,) = findings(replace(right(), members=pods(of_another)))
    assert text in said.text
    assert said.mend == mend


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        pytest.param(
            {"deployment": edited(DEPLOYMENT, IMAGE, f"r/kube-scheduler@sha256:{'0' * 64}")},
            "no version",
            id="image_by_its_digest",
        ),
        pytest.param(
            {"deployment": one("deploy/beside.yaml", "Deployment")}, "elsewhere", id="beside"
        ),
    ],
)
def test_of_a_kube_scheduler_whose_version_is_not_known_nothing_is_said_to_fit(changed, why):
    every = checks.run(replace(right(), **changed))
    (said,) = [each for each in every if each.check == "versions"]
    assert said.level == "not checked"
    assert why in said.text


def test_the_clusters_own_kube_scheduler_has_a_profile_of_its_name():
    beside = one("deploy/beside.yaml", "Deployment")
    parts = {"config": config_from(OF_THE_CLUSTER), "deployment": beside}
    assert "cluster-profile" not in found(replace(right(), **parts))


def test_without_gates_a_sample_is_enough_where_pods_are_nominated():
    sampled = {**configured(SHARE, 50), **NO_WEBHOOK, "canary": canary(())}
    few = settings(with_webhook=False, percentage_of_nodes_to_score=50)
    assert found(replace(right(), **{**sampled, "settings": few})) == {}


def test_one_with_policies_and_no_webhook_is_right_as_well():
    assert found(replace(right(), **POLICIES)) == {}
    sampled = configured(("profiles", 0, "percentageOfNodesToScore"), 50)
    few = {"settings": settings(with_webhook=False, percentage_of_nodes_to_score=50)}
    assert found(replace(right(), **{**POLICIES, **sampled, **few})) == {}


def test_a_webhook_without_a_port_costs_the_gate_only_where_no_policy_gates():
    broken = replace(right(), settings=settings(with_webhook=False))
    both = (broken, replace(broken, policies=policies()))
    said = [next(each.text for each in findings(seen) if each.check == "webhook") for seen in both]
    assert ["without the gate" in text for text in said] == [True, False]


OVER_TLS = {
    "extender_listen": "0.0.0.0:8888",
    "extender_cert": "/tls.crt",
    "extender_key": "/tls.key",
    "extender_client_ca": "/ca.crt",
}


def test_one_over_tls_is_right_as_well():
    beside = settings(**OVER_TLS, **SAMPLED)
    assert found(replace(right(), config=config_from(BESIDE), settings=beside)) == {}


def test_one_over_tls_may_be_asked_about_members_alone():
    marked = replace(right(), **marking(MEMBERS_BESIDE, **OVER_TLS))
    assert found(marked) == {}
    (unmanaged,) = findings(replace(marked, config=config_from(BESIDE)))
    assert unmanaged.check == "marker"
    written = shipped.scheduler_config("1.36", unmanaged.mend.rpartition(" ")[2])
    assert yaml.safe_load(written) == MEMBERS_BESIDE


@pytest.mark.parametrize(
    ("document", "own"),
    [
        pytest.param(BESIDE, settings(**SAMPLED), id="corral_on_loopback"),
        pytest.param(
            BESIDE, settings(extender_listen="0.0.0.0:8888", **SAMPLED), id="corral_without_tls"
        ),
        pytest.param(CONFIG, settings(extender_cert="/tls.crt"), id="kube_scheduler_without_tls"),
    ],
)
def test_both_sides_have_to_speak_tls(document, own):
    seen = replace(right(), config=config_from(document), settings=own)
    assert found(seen) == {"extender-address": "error"}


def test_every_planted_check_is_registered_and_every_check_is_planted():
    from tests.app.cli.doctor.test_extender import PLANTED as IN_THE_CONFIGURATION

    planted = {name for each in IN_THE_CONFIGURATION for name in each.values[-1]}
    planted |= {name for each in PLANTED for name in each.values[-1]}
    names = [each.name for each in checks.CHECKS]
    assert len(names) == len(set(names))
    assert {*names} - planted == {"rights"}  # tried below


def test_what_is_not_read_is_said_by_every_check_that_needs_it():
    lines = list(checks.run(Seen(config=config_from(CONFIG), settings=Unread("no settings"))))
    said = {each.check: each.text for each in lines if each.level == "not checked"}
    assert said["bind-timeout"] == "no settings"
    assert "node-cache-capable" not in said


ACCOUNTS = {"corral": "here/corral", "corral-scheduler": "here/corral-scheduler"}


def needed(own: OwnSettings) -> tuple[rights.Right, ...]:
    return rights.needed(rights.documents(), own.values, ACCOUNTS, "here")


def test_missing_rights_are_one_line_for_each_role():
    lines = findings(replace(right(), denied=needed(settings(preempt="on"))))
    assert {each.check for each in lines} == {"rights"}
    evict = next(each for each in lines if "corral-evict" in each.text)
    assert "create pods/eviction" in evict.text
    assert evict.mend == (
        "kubectl create clusterrolebinding corral-evict --clusterrole=corral-evict"
        " --serviceaccount=here:corral"
    )
    assert not [each for each in lines if "corral-delete-excess" in each.text]


@pytest.mark.parametrize(
    ("changed", "role"),
    [
        ({"preempt": "on"}, "corral-evict"),
        ({"fail_fast": True}, "corral-evict"),
        ({"born_seconds": 10}, "corral-evict"),
        ({"born_seconds": 10}, "corral-suspend"),
        ({"delete_excess_pods": True}, "corral-delete-excess"),
        ({"admission_namespace_selector": "team=a"}, "corral-namespaces"),
        ({"hyper_nodes_from": "gke"}, "corral-hypernodes"),
        ({"native_pod_groups": "on"}, "corral-native-pod-groups"),
        ({"protect_held_nodes": True}, "corral-protect-nodes"),
        ({"provisioning_class": "*"}, "corral-provisioning"),
        ({"api_cert": "/tls.crt"}, "corral-readers"),
    ],
)
def test_what_a_setting_needs_is_needed_with_it_only(changed, role):
    assert role in {each.role for each in needed(settings(**changed))}
    assert role not in {each.role for each in needed(settings())}


def test_a_corral_with_a_lease_of_its_own_needs_the_rights_to_take_it():
    own = settings(neighbour_lease="", own_lease="there/leads", leader_service="asked").values
    lines = findings(replace(right(), denied=rights.leading(own, "here/corral")))
    (only,) = lines
    assert (only.check, only.level) == ("rights", "error")
    assert "role corral-leader of deploy/beside.yaml" in only.text
    assert only.mend == "kubectl apply -f deploy/beside.yaml"
    wanted = {checks_words(each) for each in rights.leading(own, "here/corral")}
    assert wanted == {
        "create leases.coordination.k8s.io in there",
        "get leases.coordination.k8s.io leads in there",
        "update leases.coordination.k8s.io leads in there",
        "create endpointslices.discovery.k8s.io in there",
        "get endpointslices.discovery.k8s.io asked in there",
        "update endpointslices.discovery.k8s.io asked in there",
    }
    alone = rights.leading(
        settings(neighbour_lease="", own_lease="there/leads").values, "here/corral"
    )
    assert {each.resource for each in alone} == {"leases"}
    assert rights.leading(settings().values, "here/corral") == ()


def test_rights_are_those_of_the_namespace_where_corral_is():
    of_leases = [each for each in needed(settings()) if each.resource == "leases"]
    assert {each.namespace for each in of_leases} == {"here"}
    assert {each.account for each in of_leases} == {"here/corral", "here/corral-scheduler"}


def test_a_handshake_with_another_bundle_says_nothing_of_this_one():
    strange = {("corral-system/corral-webhook", "b3RoZXI="): Handshake("10.0.0.7:9443", "expired")}
    assert found(replace(right(), handshakes=strange)) == {}


def test_the_validating_webhooks_are_checked_like_the_mutating_one():
    changed = edited(with_bundle(VALIDATING), ("webhooks", 2, "failurePolicy"), "Fail")
    (only,) = findings(replace(right(), webhooks=webhooks(None, changed)))
    assert only.thing.startswith("ValidatingWebhookConfiguration webhook.corral.dev: volcano.")
