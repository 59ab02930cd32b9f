"""deploy/policies.yaml takes in the pods that webhook.yaml and the vocabularies do, by their words.

That its expressions mean it, tests/controlplane/test_policies.py shows on a real kube-apiserver.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from app.admission.scope import has_opted_out
from app.dialects import corral, flaw, spec
from app.dialects.grove import keys as grove
from app.dialects.kai import keys as kai
from app.dialects.kai import topology as kai_topology
from app.dialects.kueue import annotations, driver_sets, group_rules, in_charge, pod_groups, rules
from app.dialects.registry import DIALECTS
from app.dialects.rules import _BOOLEANS
from app.dialects.volcano import keys as volcano
from app.dialects.workloads import KINDS, job, leader_worker_set
from app.settings import ENV_PREFIX, EngineOptions, Settings
from tests.deploy.test_readme import README
from tests.records import pod

DEPLOY = Path(__file__).resolve().parent.parent.parent / "deploy"
TEXT = (DEPLOY / "policies.yaml").read_text(encoding="utf-8")
GATE, CHECK = "MutatingAdmissionPolicy", "ValidatingAdmissionPolicy"
WORKLOADS_OWN = {"Job": "batch", "StatefulSet": "apps"}  # kinds of one template
ASKING = (
    *(annotations.REQUIRED, annotations.PREFERRED, *annotations.SLICES),
    *(annotations.POD_SET_GROUP, *corral.WORKLOAD),
)


def policy(kind: str) -> dict[str, Any]:
    (found,) = [each for each in yaml.safe_load_all(TEXT) if each["kind"] == kind]
    return dict(found["spec"])


def webhook(name: str) -> dict[str, Any]:
    every = yaml.safe_load_all((DEPLOY / "webhook.yaml").read_text(encoding="utf-8"))
    (found,) = [one for each in every for one in each.get("webhooks", []) if one["name"] == name]
    return dict(found)


def conditions(rule: dict[str, Any]) -> dict[str, str]:
    """Name -> expression, with single blanks."""
    return {each["name"]: " ".join(each["expression"].split()) for each in rule["matchConditions"]}


def variable(kind: str, name: str) -> str:
    (found,) = [each for each in policy(kind)["variables"] if each["name"] == name]
    return str(found["expression"])


def lists_in(expression: str) -> list[set[str]]:
    """The lists of texts in an expression."""
    return [
        set(re.findall(r"'([^']*)'", each))
        for each in re.findall(r"\[((?:\s*'[^']*',?)+)\]", expression)
    ]


def test_the_policy_that_gates_is_asked_of_what_the_webhook_is_asked_of() -> None:
    gate, ours = webhook("gate.corral.dev"), policy(GATE)
    constraints = ours["matchConstraints"]
    assert constraints["resourceRules"] == gate["rules"]
    assert constraints["namespaceSelector"] == gate["namespaceSelector"]
    asked = ("of-our-scheduler", "asks-for-something")
    assert all(conditions(ours)[name] == conditions(gate)[name] for name in asked)
    assert ours["reinvocationPolicy"] == gate["reinvocationPolicy"] == "IfNeeded"


def test_the_policy_that_gates_leaves_out_what_the_webhook_leaves_as_it_is() -> None:
    (opted_out,) = policy(GATE)["matchConstraints"]["objectSelector"]["matchExpressions"]
    assert opted_out == {"key": corral.MANAGED, "operator": "NotIn", "values": ["false"]}
    assert has_opted_out({corral.MANAGED: "false"})
    lifts = conditions(policy(GATE))["not-of-grove"]
    assert lifts == f"!('{grove.POD_GANG}' in object.metadata.?labels.orValue({{}}))"
    assert DIALECTS.lifts_gates(pod("p", labels={grove.POD_GANG: "g"}))
    bound = conditions(policy(GATE))["not-bound"]
    assert bound == "object.spec.?nodeName.orValue('') == ''"


def test_the_policy_that_checks_is_asked_of_what_the_webhook_is_asked_of() -> None:
    pods, templates, ours = (
        webhook("pods.corral.dev"),
        webhook("templates.corral.dev"),
        policy(CHECK),
    )
    constraints, found = ours["matchConstraints"], conditions(ours)
    # A new pod is checked by the webhook that gates it.
    (new_pods,), (changed_pods,) = webhook("gate.corral.dev")["rules"], pods["rules"]
    operations = [*new_pods["operations"], *changed_pods["operations"]]
    known = [{**changed_pods, "operations": operations}, *templates["rules"]]
    assert constraints["namespaceSelector"] == pods["namespaceSelector"]
    assert all(rule in known for rule in constraints["resourceRules"])
    assert {
        (group, resource)
        for rule in constraints["resourceRules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
    } == {("", "pods"), ("batch", "jobs"), ("apps", "statefulsets")}
    changes, created = conditions(pods), conditions(webhook("gate.corral.dev"))
    scheduler = changes["of-our-scheduler"]
    assert found["of-our-scheduler"] == f"request.kind.kind != 'Pod' || ({scheduler})"
    said = re.sub(r"\(\s+|\s+\)", lambda it: it.group().strip(), found["says-something-new"])
    _, _, of_new = created["not-of-grove-alone"].partition(" || ")  # the pods of Grove that do
    assert said == (
        f"request.kind.kind != 'Pod' || (oldObject == null ? ({of_new})"
        f" : ({changes['says-something-new']}))"
    )
    for name, expression in conditions(templates).items():
        assert found[name] == f"request.kind.kind == 'Pod' || ({expression})"


@pytest.mark.parametrize("kind", [GATE, CHECK])
def test_each_is_bound_and_fails_open(kind: str) -> None:
    names = {each["kind"]: each["metadata"]["name"] for each in yaml.safe_load_all(TEXT)}
    (binding,) = [each for each in yaml.safe_load_all(TEXT) if each["kind"] == f"{kind}Binding"]
    assert binding["spec"]["policyName"] == names[kind]
    assert binding["spec"].get("validationActions", ["Deny"]) == ["Deny"]
    assert policy(kind)["failurePolicy"] == webhook("gate.corral.dev")["failurePolicy"] == "Ignore"
    assert all(name.endswith(corral.WEBHOOKS) for name in names.values())


def test_a_member_is_who_has_a_key_that_a_vocabulary_reads() -> None:
    (condition,) = [each for name, each in conditions(policy(GATE)).items() if name == "in-a-gang"]
    gangs, falses, owners = lists_in(condition)
    assert gangs == {
        *(pod_groups.GROUP_NAME, pod_groups.TOTAL_COUNT, *ASKING),
        *(volcano.MODE, volcano.HIGHEST_TIER, volcano.MIN_MEMBER, *kai.FOR_GROUPER),
    }
    assert falses == {text for text, value in _BOOLEANS.items() if not value}
    for key in (volcano.GROUP_NAME, kai.GROUP_NAME, in_charge.QUEUE_NAME):
        assert f"[?'{key}'].orValue('') != ''" in condition
    # The pods of an owner that is read are no gangs of one, nor those of some others.
    by_owner = {(kind.group, kind.kind) for kind in KINDS} | in_charge._NOT_ALONE
    of_labels = {("leaderworkerset.x-k8s.io", "LeaderWorkerSet"), ("jobset.x-k8s.io", "JobSet")}
    assert owners == {f"{group}/{kind}" for group, kind in by_owner - of_labels}
    for key in (leader_worker_set.NAME, leader_worker_set.GROUP_INDEX):
        assert f"'{key}' in object.metadata.?labels" in condition


def test_what_is_left_to_others_is_what_is_known_of_them() -> None:
    left = variable(GATE, "isKueues")
    kept = (in_charge.MANAGED, in_charge.POD_SET, in_charge.WORKLOAD, in_charge.SUSPENDED_BY)
    assert set(re.findall(r"'([^']+/[^']+)'", left)) == {*kept, *in_charge.GATES}
    checked = conditions(policy(CHECK))["not-kueues"]
    assert set(re.findall(r"'([^']+/[^']+)'", checked)) == {*kept, *in_charge.GATES}
    asked, _ = lists_in(variable(GATE, "isKubeSchedulers"))
    assert asked == {pod_groups.GROUP_NAME, *ASKING}


def test_what_is_added_is_what_the_webhook_adds() -> None:
    (mutation,) = policy(GATE)["mutations"]
    expression = mutation["jsonPatch"]["expression"]
    for key in (corral.MANAGED, pod_groups.POD_INDEX):
        assert f"'/metadata/labels/{key.replace('/', '~1')}'" in expression
    assert set(re.findall(r"\{'name': '([^']+)'\}", expression)) == {corral.GATE}
    assert corral.GATE in variable(GATE, "place")
    assert pod_groups.INDEX_LABEL in variable(GATE, "index")


def test_the_bounds_that_are_told_are_those_that_the_vocabularies_have() -> None:
    checks = str(policy(CHECK))
    for text in (
        f"must be less than or equal to {spec.MOST_PODS}'",
        f"> {spec.MOST_PODS} ?",
        f"must have 1 to {annotations.MOST_NAME} characters",
        f".size() <= {annotations.MOST_LAYERS_TEXT} ?",
        f"must be a whole number from 0 to {pod_groups.MOST_SPARES}'",
        f"must be a whole number from 0 to {pod_groups.MOST_ABSENT_SECONDS}'",
        f"may not be more than {kai_topology.LONGEST_KEY} bytes",
        f".size() > {kai_topology.LONGEST_KEY})",
        f".size() > {annotations.LONGEST_NAME}",
        f"<= {rules.INT32}",
        f".size() <= {flaw.MOST_SHOWN}",
    ):
        assert text in checks.replace("\\'", "'"), text


def test_every_annotation_that_a_rule_is_about_is_looked_at() -> None:
    checks = str(policy(CHECK)["variables"])
    read = {
        *(*annotations.KEPT, *pod_groups.KEPT, *corral.WORKLOAD, *kai.FOR_GROUPER),
        *(corral.DISRUPTION, corral.MANAGED, group_rules.PREBUILT, in_charge.MANAGED),
        *(rules.ELASTIC, kai.INDEX_LABEL, kai.SKIP_GROUPER, *kai.INDEXES),
    }
    assert {key for key in read if f"'{key}'" not in checks and key not in checks} == {
        annotations.ROLE_HASH,
        pod_groups.INDEX_LABEL,  # the number that it leads to is looked at
    }


def test_what_a_policy_cannot_do_is_said_where_it_is_chosen() -> None:
    head = " ".join(TEXT.partition("apiVersion:")[0].replace("\n#", " ").split())
    for words in (annotations.ROLE_HASH, driver_sets.SETS, annotations.SLICE_LAYERS):
        assert words in head
    (names,) = re.findall(r"Templates are checked in (\w+)s and (\w+)s\.", head)
    assert set(names) == set(WORKLOADS_OWN)
    others = {kind.kind for kind in KINDS if kind.group != "kubeflow.org"} - set(names)
    assert all(f"{kind}s" in head for kind in others)


def test_the_settings_that_are_repeated_are_settings() -> None:
    named = set(re.findall(rf"{ENV_PREFIX}([A-Z_]+)", TEXT))
    assert {name.lower() for name in named} <= Settings.model_fields.keys()
    repeated = ("scheduler_name", "kueue_manages", "native_pod_groups", "scheduler_vocabularies")
    assert named >= {name.upper() for name in repeated}
    assert all(f"`{name}`" in README for name in repeated)
    options = EngineOptions()
    assert not options.kueue_manages
    assert options.native_pod_groups == "off"  # as the expressions have it
    assert f"'{options.kai_grouped_schedulers[0]}'" in variable(CHECK, "ofKai")


def test_readme_says_when_to_apply_it() -> None:
    assert "(deploy/policies.yaml)" in README
    for words in ("1.36", "MutatingAdmissionPolicy", "role hash"):
        assert words in README


def test_the_number_of_a_jobs_pods_is_read_where_it_is_read_elsewhere() -> None:
    said = variable(CHECK, "said")
    assert all(f"each.spec.?{field}" in said for field in job.COUNTS)
