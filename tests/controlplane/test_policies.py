"""deploy/policies.yaml on the real kube-apiserver: gates and checks without webhook and Corral.

What it gates and what it says is what the webhook's own code gates and says, case by case. That
gangs start behind these gates, and that both together do no harm, is in test_admitted_gangs.py.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from app.admission.mutating.mutate import mutate
from app.admission.scope import Scope, has_opted_out
from app.admission.validating.validate import Thing, Validator
from app.dialects import corral
from app.dialects.registry import DIALECTS, Dialects
from app.settings import EngineOptions
from tests.cluster import RACK, Cluster, Object, Refused, collection, job, pod
from tests.controlplane.admission import BROKEN, tried
from tests.controlplane.plane import START_SECONDS, ControlPlane
from tests.controlplane.policies import (
    MUTATING,
    SHIPPED,
    VALIDATING,
    applied,
    documents,
    unchecked,
)
from tests.controlplane.policy_cases import (
    IN_GROUP,
    IN_RACK,
    LOOKED_INTO,
    RETRIABLE,
    SAID,
    SAID_OF_PODS,
    Strings,
    pods_to_gate,
)
from tests.workloads import GATE, GROUP, MANAGED, QUEUE, REQUIRED, TOTAL, gates_of, member

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

READ = DIALECTS.configured(EngineOptions(scheduler_name="corral"))
SCOPE = Scope("corral")
DENIED = "denied request: "
OTHERS = "kube-system"


@pytest.fixture(scope="module")
def policies(plane: ControlPlane) -> Iterator[None]:
    """The policies in effect, and no webhook."""
    with applied(plane):
        yield


@pytest.fixture
def gating(policies: None, cluster: Cluster) -> Iterator[Cluster]:
    """The policy that gates, without the one that refuses."""
    with unchecked(cluster):
        yield cluster


def test_they_are_accepted_as_written_and_their_types_are_right(
    policies: None, cluster: Cluster
) -> None:
    for document in documents():
        path = collection(document["kind"], None, document["apiVersion"])
        changed = {**document, "metadata": {"name": "another.corral.dev"}}
        params = {"dryRun": "All", "fieldValidation": "Strict"}
        answer = cluster.request("POST", path, body=changed, params=params)
        assert answer.json()["spec"] == document["spec"] | answer.json()["spec"]

    def checked() -> Any:
        stored = cluster.get(VALIDATING, "pods.corral.dev", "")
        return stored and stored.get("status", {}).get("typeChecking")

    cluster.wait(lambda: checked() is not None, START_SECONDS, "the check of the types")
    assert checked() == {}


@pytest.mark.parametrize(("annotations", "labels"), SAID + SAID_OF_PODS)
def test_of_a_pod_they_say_what_the_webhook_says(
    policies: None, cluster: Cluster, annotations: Strings, labels: Strings
) -> None:
    thing = pod("p", annotations=annotations, labels=labels)
    assert_same(said_of(cluster, thing), errors_of("", thing))


@pytest.mark.parametrize(("annotations", "labels"), SAID)
@pytest.mark.parametrize("kind", ["Job", "StatefulSet"])
def test_of_a_template_they_say_what_the_webhook_says(
    policies: None, cluster: Cluster, kind: str, annotations: Strings, labels: Strings
) -> None:
    thing = job("j", pods=4, annotations=annotations)
    thing["spec"]["template"]["metadata"]["labels"] = {"app": "x", **labels}
    if kind == "StatefulSet":
        selector = {"matchLabels": {"app": "x"}}
        template = thing["spec"]["template"]
        template["spec"]["restartPolicy"] = "Always"
        thing |= {"apiVersion": "apps/v1", "kind": kind}
        thing["spec"] = {
            "replicas": 4, "selector": selector, "template": template, "serviceName": "s"
        }  # fmt: skip
    group = thing["apiVersion"].partition("/")[0]
    assert_same(said_of(cluster, thing), errors_of(group, thing))


def test_what_a_job_itself_says_is_checked_as_well(policies: None, cluster: Cluster) -> None:
    for of_job in ({"kueue.x-k8s.io/elastic-job": "true"}, {"kai.scheduler/topology": "t"}):
        thing = job("j", pods=4, annotations=IN_RACK)
        thing["metadata"]["annotations"] = of_job
        wanted = errors_of("batch", thing)
        assert len(wanted) == 1
        assert_same(said_of(cluster, thing), wanted)
    of_kueue = job("j", pods=4, annotations=BROKEN)
    of_kueue["metadata"]["labels"] = {"kueue.x-k8s.io/managed": "true"}
    of_another = job("j", pods=4, annotations=BROKEN, scheduler="another")
    for thing in (of_kueue, of_another):
        assert said_of(cluster, thing) == ""


def test_they_gate_what_the_webhook_gates(gating: Cluster) -> None:
    assert not gated_otherwise(gating, EngineOptions())
    gates = [GATE in gates_of(tried(gating, thing)) for thing in pods_to_gate()]
    assert {True, False} == set(gates)


def test_with_the_line_for_it_what_names_a_queue_is_left_to_kueue(gating: Cluster) -> None:
    options = EngineOptions(kueue_manages=True)
    queued = pod("p", labels={QUEUE: "team"}, annotations=IN_RACK)
    (more,) = re.findall(r"CORRAL_KUEUE_MANAGES=true add: (.+)", SHIPPED.read_text())
    assert gated_otherwise(gating, options)

    def is_left() -> bool:
        return gates_of(tried(gating, queued)) == []

    with changed(gating, "isKueues", lambda expression: f"{expression} {more}", is_left):
        assert not gated_otherwise(gating, options)


def test_with_the_line_for_it_pods_of_native_pod_groups_are_gated(gating: Cluster) -> None:
    options = EngineOptions(native_pod_groups="on")
    native = pod("p")
    native["spec"]["schedulingGroup"] = {"podGroupName": "g"}
    (instead,) = re.findall(r'CORRAL_NATIVE_POD_GROUPS=on: expression: "(.+)"', SHIPPED.read_text())
    assert gated_otherwise(gating, options)

    def is_gated() -> bool:
        return gates_of(tried(gating, native)) == [GATE]

    with changed(gating, "isKubeSchedulers", lambda _: str(instead), is_gated):
        assert not gated_otherwise(gating, options)


def test_with_the_line_for_it_what_kueue_manages_is_not_checked(
    policies: None, cluster: Cluster
) -> None:
    (more,) = re.findall(
        r"CORRAL_KUEUE_MANAGES=true add to the labels:\n +# (.+)", SHIPPED.read_text()
    )
    (document,) = [each for each in documents() if each["kind"] == VALIDATING]
    (condition,) = [
        each for each in document["spec"]["matchConditions"] if each["name"] == "not-kueues"
    ]
    condition["expression"] = condition["expression"].replace("== 'true'", f"== 'true' {more}", 1)
    queued = pod("p", labels={QUEUE: "team"}, annotations=BROKEN)
    assert said_of(cluster, queued)
    with put(cluster, document, lambda: not said_of(cluster, queued)):
        assert said_of(cluster, pod("p", annotations=BROKEN))


def test_a_second_look_changes_nothing(gating: Cluster) -> None:
    once = tried(gating, member("red", 0, 2))
    again = {key: once[key] for key in ("apiVersion", "kind", "spec")}
    again["metadata"] = {key: once["metadata"][key] for key in ("name", "namespace", "labels")}
    again["metadata"]["annotations"] = once["metadata"]["annotations"]
    twice = tried(gating, again)
    assert gates_of(twice) == [GATE]
    assert twice["metadata"]["labels"] == once["metadata"]["labels"] == {MANAGED: "true"}


def test_namespaces_of_the_cluster_itself_are_left_alone(policies: None, cluster: Cluster) -> None:
    assert gates_of(tried(cluster, pod("p", annotations=IN_RACK, namespace=OTHERS))) == []
    assert gates_of(tried(cluster, pod("p", annotations=BROKEN, namespace=OTHERS))) == []


def test_a_change_is_refused_only_for_what_it_brings_in(policies: None, cluster: Cluster) -> None:
    thing = pod("p", annotations={**IN_GROUP, **BROKEN, RETRIABLE: "false"})
    thing["metadata"]["finalizers"] = ["example.com/keep"]
    with unchecked(cluster):
        cluster.create(thing)
    # With another annotation beside it, so that the policy looks.
    noted = {"kueue.x-k8s.io/note": "x"}
    cluster.patch("Pod", "p", {"metadata": {"finalizers": None, "annotations": noted}})
    for said, error in (
        ({REQUIRED: "your rack"}, f'annotations[{REQUIRED}]: Invalid value: "your rack": must'),
        ({TOTAL: "none"}, f'annotations[{TOTAL}]: Invalid value: "none": must be a numeric'),
        ({GROUP: "blue"}, f'annotations[{GROUP}]: Invalid value: "blue": field is immutable'),
        ({GROUP: None}, f'annotations[{GROUP}]: Invalid value: "": field is immutable'),
        ({RETRIABLE: None}, f"annotations[{RETRIABLE}]: Forbidden: unretriable pod group"),
    ):
        with pytest.raises(Refused) as refused:
            cluster.patch("Pod", "p", {"metadata": {"annotations": said}})
        assert f"metadata.{error}" in str(refused.value)
        assert "my rack" not in str(refused.value)
    cluster.patch("Pod", "p", {"metadata": {"annotations": {REQUIRED: RACK}}})


@pytest.mark.parametrize("key", [*IN_RACK, *IN_GROUP, *LOOKED_INTO])
def test_no_rule_costs_more_than_the_api_server_allows(
    policies: None, cluster: Cluster, key: str
) -> None:
    # As much as annotations may have in all; what costs too much would be let in.
    said = {**IN_GROUP, key: "0" * 255_000 + "é"}
    told = said_of(cluster, pod("p", annotations=said))
    assert f"metadata.annotations[{key}]: Invalid value: " in told
    assert len(told) < 5 * 1024


def test_many_annotations_cost_no_more_than_the_api_server_allows(
    policies: None, cluster: Cluster
) -> None:
    many = {f"example.com/a{number}": "x" for number in range(1_000)}
    thing = pod("p", annotations={**many, **IN_RACK})
    assert gates_of(tried(cluster, thing)) == [GATE]
    assert "my rack" in said_of(cluster, pod("p", annotations={**many, **BROKEN}))


def gated_otherwise(cluster: Cluster, options: EngineOptions) -> list[Any]:
    """The pods that the webhook would leave with other labels or gates, with what both make."""
    dialects = DIALECTS.configured(options)
    wrong = []
    for thing in pods_to_gate():
        stored = tried(cluster, thing)
        found = stored["metadata"].get("labels", {}), gates_of(stored)
        wanted = changed_by_webhook(thing, dialects)
        if found != wanted:
            wrong.append((thing["metadata"], found, wanted))
    return wrong


@contextmanager
def changed(
    cluster: Cluster, variable: str, change: Callable[[str], str], is_effective: Callable[[], bool]
) -> Iterator[None]:
    """Another expression for a variable of the policy that gates, while the block lasts."""
    (document,) = [each for each in documents() if each["kind"] == MUTATING]
    (found,) = [each for each in document["spec"]["variables"] if each["name"] == variable]
    found["expression"] = change(found["expression"])
    with put(cluster, document, is_effective):
        yield


@contextmanager
def put(cluster: Cluster, document: Object, is_effective: Callable[[], bool]) -> Iterator[None]:
    """Another policy in the place of the one of its name, while the block lasts."""
    kind, name = document["kind"], document["metadata"]["name"]
    stored = cluster.get(kind, name, "")
    assert stored is not None
    path = f"{collection(kind)}/{name}"
    cluster.wait(lambda: _has_put(cluster, path, document["spec"]), START_SECONDS, "the change")
    try:
        cluster.wait(is_effective, START_SECONDS, "its effect")
        yield
    finally:
        cluster.wait(lambda: _has_put(cluster, path, stored["spec"]), START_SECONDS, "the spec")
        cluster.wait(lambda: not is_effective(), START_SECONDS, "the end of the change")


def _has_put(cluster: Cluster, path: str, spec: Object) -> bool:
    """Whether an object has this spec now; not if its status was written meanwhile."""
    latest = cluster.request("GET", path).json()
    try:
        cluster.request("PUT", path, body={**latest, "spec": spec})
    except Refused as refused:
        if refused.status != 409:
            raise
        return False
    return True


def said_of(cluster: Cluster, thing: Object) -> str:
    """What the policy says of an object that it refuses; "" of one that is let in."""
    refusal = refusal_of(cluster, thing)
    if refusal is None:
        return ""
    assert (refusal.status, refusal.reason) == (422, "Invalid")
    _, denied, said = str(refusal).partition(DENIED)
    assert denied, refusal
    return said


def refusal_of(cluster: Cluster, thing: Object) -> Refused | None:
    """How an object is refused, None if it is not."""
    try:
        tried(cluster, thing)
    except Refused as refused:
        return refused
    return None


def errors_of(group: str, thing: Object) -> list[str]:
    """What the webhook would say."""
    checked = Thing(group, thing["kind"], thing["metadata"]["namespace"], thing)
    return [str(error) for error in Validator(SCOPE, READ).errors(checked)]


def assert_same(said: str, errors: list[str]) -> None:
    """All of the errors and nothing else, in whatever order; six are shown."""
    told = [error for error in errors if error in said]
    assert len(told) == min(len(errors), 6), (said, errors)
    rest = said
    for error in sorted(told, key=len, reverse=True):
        rest = rest.replace(error, "", 1)
    more = f"and {len(errors) - 6} more" if len(errors) > 6 else ""
    assert rest.replace(", ", "") == more


def changed_by_webhook(thing: Object, dialects: Dialects) -> tuple[Any, list[str]]:
    """Labels and gates of a pod once the webhook's patch is applied."""
    raw = json.dumps(thing).encode()
    labels, gates = dict(thing["metadata"].get("labels") or {}), gates_of(thing)
    if has_opted_out(labels) or thing["metadata"].get("labels", {}).get("grove.io/podgang"):
        return labels, gates
    for each in mutate(raw, thing["metadata"]["namespace"], SCOPE, dialects).operations:
        *above, last = each.path.replace("~1", "/").removeprefix("/metadata/").split("/", 1)
        if each.op == "remove" and above == ["labels"]:
            del labels[last]
        elif each.op == "remove":
            gates.remove(corral.GATE)
        elif each.op == "add" and isinstance(each.value, dict) and last == "labels":
            labels |= each.value
        elif each.op == "add" and above == ["labels"]:
            labels[last] = str(each.value)
        elif each.op == "add" and "schedulingGates" in each.path:
            gates.append(corral.GATE)
    return labels, gates
