"""deploy/policy.yaml guards what the code writes, for the identity that is shipped."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml

from app.dialects import autoscalers, corral
from app.dialects.provisioning import keys
from app.settings import ENV_PREFIX, Settings
from tests.deploy.test_readme import README, table

ROOT = Path(__file__).resolve().parent.parent.parent
TEXT = (ROOT / "deploy" / "policy.yaml").read_text(encoding="utf-8")
WRITES = "what-corral-writes.corral.dev"
SUSPENDS = "what-corral-suspends.corral.dev"
MARKS = "what-corral-marks.corral.dev"


def policy(name: str) -> dict[str, Any]:
    (found,) = [
        one
        for one in yaml.safe_load_all(TEXT)
        if one["kind"] == "ValidatingAdmissionPolicy" and one["metadata"]["name"] == name
    ]
    return dict(found["spec"])


def variable(name: str) -> str:
    return next(
        str(each["expression"]) for each in policy(WRITES)["variables"] if each["name"] == name
    )


def test_the_annotations_that_are_guarded_are_those_that_corral_writes() -> None:
    (condition,) = policy(WRITES)["matchConditions"]
    (named,) = re.findall(r"\[([^]]+)\]\.exists\(", condition["expression"])
    for words in (variable("words"), named):
        assert sorted(re.findall(r"'([^']+)'", words)) == sorted(corral.WRITTEN)


def test_each_word_of_ours_is_guarded_or_one_that_users_write() -> None:
    names = set(
        re.findall(r'(?m)^[A-Z_]+ = PREFIX \+ "([a-z-]+)"', Path(corral.__file__).read_text())
    )
    for path in (ROOT / "app").rglob("*.py"):
        names |= set(re.findall(r'corral\.PREFIX \+ "([a-z-]+)"', path.read_text(encoding="utf-8")))
    words = {corral.PREFIX + name for name in names}
    readme = " ".join(row[0] for row in table("annotation"))
    users_own = {word for word in words if f"/{word.partition('/')[2]}" in readme}
    assert words >= {*corral.WRITTEN, *corral.WORKLOAD}  # the search above finds them
    labels = {corral.MANAGED, keys.GANG_UID}
    assert words - users_own - labels == {*corral.WRITTEN}
    assert not users_own & {*corral.WRITTEN}


def test_what_a_binding_may_bring_beside_words_of_ours_is_what_protects_a_pod() -> None:
    (said,) = [each for each in policy(WRITES)["variables"] if each["name"] == "protection"]
    pairs = re.findall(r"'([^']+)': '([^']+)'", str(said["expression"]))
    assert tuple(pairs) == autoscalers.PROTECTION


def test_what_may_come_with_the_gate_beside_words_of_ours_is_what_says_whose_nodes_a_pod_gets() -> (
    None
):
    (said,) = [each for each in policy(WRITES)["variables"] if each["name"] == "consumed"]
    pairs = dict(re.findall(r"'([^']+)': '([^']*)'", str(said["expression"])))
    assert pairs == {keys.CONSUME: keys.NAME, keys.CONSUME_CLASS: ""}
    assert {*pairs} == {*keys.CONSUMED}


def test_the_schedulers_whose_pods_are_nominated_are_those_that_corral_plans_for() -> None:
    (said,) = [
        str(each["expression"])
        for each in policy(WRITES)["validations"]
        if "nominatedNodeName" in str(each["expression"])
    ]
    # The chart writes the names of its values in the place of these very words.
    assert f"schedulerName.orValue('') == '{Settings().scheduler_name}'" in said
    assert f"{ENV_PREFIX}SCHEDULER_NAME" in TEXT


def test_what_may_be_written_on_nodes_is_what_keeps_autoscalers_off_them() -> None:
    (said,) = [each for each in policy(MARKS)["variables"] if each["name"] == "words"]
    words = re.findall(r"'([^']+/[^']+)'", str(said["expression"]))
    assert {*words} == {*autoscalers.OF_NODES}


def test_the_gate_that_is_guarded_is_ours() -> None:
    assert set(re.findall(r"'name': '([^']+)'", TEXT)) == {corral.GATE}


def test_the_identity_that_is_restricted_is_the_one_that_is_shipped() -> None:
    (condition,) = policy(WRITES)["matchConditions"]
    suspending, marking = (
        policy(name)["matchConditions"][0]["expression"] for name in (SUSPENDS, MARKS)
    )
    deployment = (ROOT / "deploy" / "corral.yaml").read_text(encoding="utf-8")
    (shipped,) = [one for one in yaml.safe_load_all(deployment) if one["kind"] == "Deployment"]
    (keeper,) = shipped["spec"]["template"]["spec"]["initContainers"]
    user = f"system:serviceaccount:{keeper['command'][2].replace('/', ':')}"
    (by_corral,) = [
        each["expression"] for each in policy(SUSPENDS)["variables"] if each["name"] == "byCorral"
    ]
    for said in (condition["expression"], variable("byCorral"), suspending, by_corral, marking):
        assert re.findall(r"username in \['([^']+)'\]", said) == [user]
    assert TEXT.count("userInfo") == 5, "who runs Corral as another user finds it named there"


def test_a_right_within_a_namespace_alone_counts_for_nothing() -> None:
    """Who may do everything in a namespace, by a Role, could else forge what Corral writes."""
    rights = re.findall(r"authorizer[^\n]*(?:\n\s+\.[^\n]*)?allowed\(\)", TEXT)
    assert len(rights) == 3
    for name, said in zip(("annotations", "gates", "annotations"), rights, strict=True):
        calls = re.findall(r"\.(\w+)\(", said)
        assert calls == ["group", "resource", "check", "allowed"]
        assert f"resource('{name}')" in said


def test_each_policy_is_bound_refuses_and_fails_closed() -> None:
    bindings = {
        one["spec"]["policyName"]: one["spec"]["validationActions"]
        for one in yaml.safe_load_all(TEXT)
        if one["kind"] == "ValidatingAdmissionPolicyBinding"
    }
    assert bindings == {WRITES: ["Deny"], SUSPENDS: ["Deny"], MARKS: ["Deny"]}
    assert {policy(name)["failurePolicy"] for name in bindings} == {"Fail"}


def test_one_policy_alone_is_about_pods() -> None:
    """Each costs every write of a pod, in the whole cluster, two maps of the pod."""
    about_pods = [
        name
        for name in (WRITES, SUSPENDS, MARKS)
        for rule in policy(name)["matchConstraints"]["resourceRules"]
        if any(resource.startswith("pods") for resource in rule["resources"])
    ]
    assert about_pods == [WRITES]


def test_readme_says_to_apply_it() -> None:
    assert "(deploy/policy.yaml)" in README
