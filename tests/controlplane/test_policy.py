"""deploy/policy.yaml on a real API server: what Corral may change, and what nobody else may write.

That Corral's own writes pass it, test_writes.py and every other test of this folder show: it is in
effect in all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
import yaml

from tests.autoscaling.objects import CLASS_NAME, CONSUME
from tests.cluster import MERGE, STRATEGIC, Cluster, Object, Refused, node, pod
from tests.controlplane.plane import POLICY, SERVED, ControlPlane
from tests.workloads import GATE, gates_of

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

POLICY_NAME = "what-corral-writes.corral.dev"
POLICIES = [
    each["metadata"]["name"]
    for each in yaml.safe_load_all(POLICY.read_text(encoding="utf-8"))
    if each["kind"] == "ValidatingAdmissionPolicy"
]
EFFECTIVE_SECONDS = 20.0  # until an API server enforces a policy it was given; 1 s as a rule
FOREIGN = "example.org/quota"
SAFE_TO_EVICT = "cluster-autoscaler.kubernetes.io/safe-to-evict"
POD = "/api/v1/namespaces/default/pods/p"
OURS = ("domain", "gang", "narrowed", "nominated", "pod-sets", "succeeded", "wake")
USERS_OWN = {
    "corral.dev/workload-required-topology": "rack",
    "corral.dev/workload-preferred-topology": "rack",
    "corral.dev/spare-pods": "1",
}
IMAGE = {"spec": {"containers": [{"name": "work", "image": "example.invalid/other"}]}}
UNGATE = {"spec": {"schedulingGates": [{"$patch": "delete", "name": GATE}]}}
ALL_ON_PODS = {
    "apiVersion": "rbac.authorization.k8s.io/v1",
    "kind": "ClusterRole",
    "metadata": {"name": "all-on-pods"},
    "rules": [
        {
            "apiGroups": [""],
            "resources": ["pods", "pods/status", "pods/binding", "bindings"],
            "verbs": ["get", "create", "update", "patch"],
        }
    ],
}


@pytest.fixture
def corral(plane: ControlPlane, cluster: Cluster) -> Cluster:
    """Corral's identity, once the policies are in effect."""
    corral = plane.cluster("corral")
    cluster.create(pod("probe", scheduler="none"))

    def is_refused() -> bool:
        try:
            corral.request(
                "PATCH", f"{POD}robe", body=IMAGE, content_type=STRATEGIC, params={"dryRun": "All"}
            )
        except Refused as refused:
            return refused.status == 403
        return False

    corral.wait(is_refused, EFFECTIVE_SECONDS, "the policy")
    plane.denials()
    return corral


@pytest.fixture
def tenant(plane: ControlPlane, corral: Cluster) -> Iterator[Cluster]:
    """Somebody who may do to pods whatever RBAC can allow."""
    plane.cluster().apply(ALL_ON_PODS)
    with plane.granted("all-on-pods", "tenant"):
        yield plane.cluster("tenant")


def change(user: Cluster, body: object, content_type: str = MERGE, path: str = POD) -> Object:
    answer: Object = user.request("PATCH", path, body=body, content_type=content_type).json()
    return answer


def refusal(plane: ControlPlane, ask: Callable[[], object]) -> str:
    """What the policy says to this request, which it must refuse."""
    with pytest.raises(Refused) as refused:
        ask()
    plane.denials()
    assert refused.value.status == 403
    assert f"ValidatingAdmissionPolicy '{POLICY_NAME}'" in refused.value.message
    return refused.value.message


def annotated(**annotations: str | None) -> Object:
    return {"metadata": {"annotations": annotations}}


def binding(**metadata: object) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": "p", "namespace": "default", **metadata},
        "target": {"apiVersion": "v1", "kind": "Node", "name": "only"},
    }


PREFERRED = {
    "nodeAffinity": {
        "preferredDuringSchedulingIgnoredDuringExecution": [
            {
                "weight": 1,
                "preference": {"matchExpressions": [{"key": "z", "operator": "Exists"}]},
            }
        ]
    }
}
OF_OTHERS = [
    pytest.param(IMAGE, "spec", id="image"),
    pytest.param({"spec": {"activeDeadlineSeconds": 1}}, "spec", id="deadline"),
    pytest.param(
        [{"op": "add", "path": "/spec/tolerations/-", "value": {"operator": "Exists"}}],
        "spec",
        id="toleration",
    ),
    pytest.param({"spec": {"affinity": PREFERRED}}, "affinity", id="preferred_affinity"),
    pytest.param(
        {"spec": {"schedulingGates": [{"$patch": "delete", "name": FOREIGN}]}},
        "the only gate",
        id="foreign_gate",
    ),
    pytest.param({"metadata": {"labels": {"app": "b"}}}, "metadata", id="label"),
    pytest.param({"metadata": {"labels": {"app": None}}}, "metadata", id="last_label_gone"),
    pytest.param({"metadata": {"finalizers": ["example.org/f"]}}, "metadata", id="finalizer"),
    pytest.param(annotated(team="b"), "annotations", id="annotation_changed"),
    pytest.param(annotated(team=None), "annotations", id="annotation_removed"),
    pytest.param(annotated(other="a"), "annotations", id="annotation_added"),
]


@pytest.mark.parametrize(("body", "why"), OF_OTHERS)
def test_corral_changes_nothing_that_is_not_its_own(
    plane: ControlPlane, cluster: Cluster, corral: Cluster, body: object, why: str
) -> None:
    kind = "application/json-patch+json" if isinstance(body, list) else STRATEGIC
    gated = pod("p", labels={"app": "a"}, annotations={"team": "a"}, gates=(FOREIGN, GATE))
    before = cluster.create(gated)
    said = refusal(plane, lambda: change(corral, body, kind))
    assert why in said.partition("denied request: ")[2]
    assert cluster.get("Pod", "p") == before
    change(cluster, body, kind)  # it is the identity that is refused
    change(cluster, {"metadata": {"finalizers": None}})


def test_corral_takes_its_gate_off_narrows_and_notes_in_one_patch(
    cluster: Cluster, corral: Cluster
) -> None:
    cluster.create(pod("p", annotations={"team": "a"}, gates=(FOREIGN, GATE)))
    field = {"key": "metadata.name", "operator": "In", "values": ["only"]}
    required = {"nodeSelectorTerms": [{"matchFields": [field]}]}
    narrowed = {"requiredDuringSchedulingIgnoredDuringExecution": required}
    body = annotated(**{"corral.dev/narrowed": "nodes"})
    body["spec"] = {
        **UNGATE["spec"],
        "affinity": {"nodeAffinity": narrowed},
        "nodeSelector": {"rack": "r"},
    }
    after = change(corral, body, STRATEGIC)
    assert gates_of(after) == [FOREIGN]
    assert after["spec"]["affinity"]["nodeAffinity"] == narrowed
    assert after["spec"]["nodeSelector"] == {"rack": "r"}
    assert after["metadata"]["annotations"] == {"team": "a", "corral.dev/narrowed": "nodes"}


def test_a_binding_of_corrals_brings_annotations_of_corrals_alone(
    plane: ControlPlane, cluster: Cluster, corral: Cluster
) -> None:
    plane.nodes([node("only")])
    cluster.create(pod("p", scheduler="none"))

    def bind(**metadata: object) -> None:
        corral.request("POST", f"{POD}/binding", body=binding(**metadata))

    refusal(plane, lambda: bind(annotations={"team": "b"}))
    refusal(plane, lambda: bind(annotations={SAFE_TO_EVICT: "true"}))
    refusal(plane, lambda: bind(labels={"app": "b"}))
    refusal(plane, lambda: change(corral, annotated(**{SAFE_TO_EVICT: "false"})))
    assert cluster.bound() == {}
    bind(annotations={"corral.dev/gang": "g", SAFE_TO_EVICT: "false"})
    assert cluster.bound() == {"p": "only"}


def test_kube_apiserver_adds_the_zone_and_region_of_the_node_to_a_binding_of_corrals(
    plane: ControlPlane, cluster: Cluster, corral: Cluster
) -> None:
    where = {f"topology.kubernetes.io/{name}": f"{name}-a" for name in ("zone", "region")}
    plane.nodes([node("only", labels=where)])
    cluster.create(pod("p", labels={"app": "a"}, scheduler="none"))
    corral.request("POST", f"{POD}/binding", body=binding(annotations={"corral.dev/gang": "g"}))
    bound = cluster.get("Pod", "p")
    assert bound is not None
    assert bound["metadata"]["labels"] == {"app": "a", **where}


def test_with_its_gate_corral_says_whose_nodes_a_pod_takes_and_at_no_other_time(
    plane: ControlPlane, cluster: Cluster, corral: Cluster
) -> None:
    takes = {CONSUME: "corral-1f-1", CLASS_NAME: "class.example"}
    cluster.create_all(
        [pod("p", gates=(FOREIGN, GATE)), pod("pq", gates=(GATE,), annotations={CONSUME: "his"})]
    )
    refusal(plane, lambda: change(corral, annotated(**takes), STRATEGIC))
    others = (annotated(**{CONSUME: "his"}), annotated(**takes, team="b"))
    for body in others:
        refusal(plane, lambda body=body: change(corral, {**body, **UNGATE}, STRATEGIC))
    both = {**annotated(**takes), **UNGATE}
    refusal(plane, lambda: change(corral, both, STRATEGIC, f"{POD}q"))
    after = change(corral, both, STRATEGIC)
    assert (after["metadata"]["annotations"], gates_of(after)) == (takes, [FOREIGN])
    assert change(corral, both, STRATEGIC)["metadata"]["annotations"] == takes
    refusal(plane, lambda: change(corral, annotated(**{CONSUME: None})))


def condition(type_: str = "PodScheduled", **said: object) -> Object:
    return {"type": type_, "status": "False", "reason": "Unschedulable", **said}


NO_MARKS = [
    pytest.param({"conditions": [condition("Ready")]}, id="other_condition"),
    pytest.param({"conditions": [condition(reason="SchedulerError")]}, id="other_reason"),
    pytest.param({"conditions": [condition(status="True")]}, id="other_status"),
    pytest.param({"phase": "Failed"}, id="phase"),
    pytest.param({"nominatedNodeName": "only"}, id="nomination"),
    pytest.param({"conditions": [condition(), condition("Ready")]}, id="mark_and_other"),
]


@pytest.mark.parametrize("status", NO_MARKS)
def test_of_a_pods_status_corral_writes_nothing_but_its_mark(
    plane: ControlPlane, cluster: Cluster, corral: Cluster, status: Object
) -> None:
    cluster.create(pod("p", gates=(GATE,)))
    before = cluster.get("Pod", "p")
    path = f"{POD}/status"
    refusal(plane, lambda: change(corral, {"status": status}, STRATEGIC, path))
    assert cluster.get("Pod", "p") == before


def test_corral_marks_only_what_is_behind_its_gate(
    plane: ControlPlane, cluster: Cluster, corral: Cluster
) -> None:
    path, mark = f"{POD}/status", {"status": {"conditions": [condition()]}}
    cluster.create(pod("p", gates=(FOREIGN, GATE)))
    ready = {"status": {"conditions": [condition("Ready", reason="NotYet")]}}
    change(cluster, ready, STRATEGIC, path)
    after = change(corral, mark, STRATEGIC, path)
    said = {each["type"]: each["reason"] for each in after["status"]["conditions"]}
    assert said == {"PodScheduled": "Unschedulable", "Ready": "NotYet"}
    change(cluster, UNGATE, STRATEGIC)
    back = {"status": {"conditions": [condition(reason="SchedulingGated")]}}
    refusal(plane, lambda: change(corral, back, STRATEGIC, path))


def test_corral_nominates_only_a_pod_that_waits_without_gates(
    plane: ControlPlane, cluster: Cluster, corral: Cluster
) -> None:
    path = f"{POD}/status"
    plane.nodes([node("only")])
    cluster.create(pod("p"))
    there = {"status": {"nominatedNodeName": "only"}}
    assert change(corral, there, path=path)["status"]["nominatedNodeName"] == "only"
    for more in ({"phase": "Failed"}, {"conditions": [condition("Ready")]}):
        body = {"status": {"nominatedNodeName": "other", **more}}
        refusal(plane, lambda body=body: change(corral, body, path=path))
    gone = change(corral, {"status": {"nominatedNodeName": None}}, path=path)
    assert "nominatedNodeName" not in gone["status"]
    corral.request("POST", f"{POD}/binding", body=binding())
    with pytest.raises(Refused, match="already bound to a node"):  # kube-apiserver itself
        change(corral, there, path=path)


@pytest.mark.parametrize(
    ("scheduler", "is_ours"), [*((each, True) for each in SERVED), ("x", False)]
)
def test_corral_nominates_only_pods_of_its_schedulers(
    plane: ControlPlane, cluster: Cluster, corral: Cluster, scheduler: str, is_ours: bool
) -> None:
    path, there = f"{POD}/status", {"status": {"nominatedNodeName": "only"}}
    cluster.create(pod("p", scheduler=scheduler))
    if is_ours:
        assert change(corral, there, path=path)["status"]["nominatedNodeName"] == "only"
        return
    refusal(plane, lambda: change(corral, there, path=path))
    change(cluster, there, path=path)
    refusal(plane, lambda: change(corral, {"status": {"nominatedNodeName": None}}, path=path))


@pytest.mark.parametrize("word", [f"corral.dev/{word}" for word in OURS])
def test_nobody_else_writes_what_corral_writes(
    plane: ControlPlane, cluster: Cluster, tenant: Cluster, word: str
) -> None:
    plane.nodes([node("only")])
    corral = plane.cluster("corral")
    forged = pod("p", scheduler="none", annotations={word: "forged"})
    said = refusal(plane, lambda: tenant.create(forged))
    assert f"only Corral writes the annotation {word};" in said
    tenant.create(pod("p", scheduler="none"))
    for path in (POD, f"{POD}/status"):
        refusal(plane, lambda path=path: change(tenant, annotated(**{word: "f"}), path=path))
    for path, kind in (
        (f"{POD}/binding", binding),
        ("/api/v1/namespaces/default/bindings", binding),
    ):
        body = kind(annotations={word: "forged"})
        refusal(plane, lambda path=path, body=body: tenant.request("POST", path, body=body))
    assert word not in (cluster.get("Pod", "p") or {})["metadata"].get("annotations", {})

    change(corral, annotated(**{word: "true"}))
    for value in ("forged", None):
        body = annotated(**{word: value})
        refusal(plane, lambda body=body: change(tenant, body))
    kept = change(tenant, {"metadata": {"labels": {"app": "b"}, "annotations": {"team": "b"}}})
    assert kept["metadata"]["annotations"] == {word: "true", "team": "b"}


def test_users_gate_their_pods_and_write_their_own_words_at_any_time(tenant: Cluster) -> None:
    managed = {"corral.dev/managed": "true"}
    created = tenant.create(pod("p", annotations=USERS_OWN, labels=managed, gates=(GATE,)))
    assert created["metadata"]["annotations"] == USERS_OWN
    assert gates_of(created) == [GATE]
    changed = change(tenant, annotated(**dict.fromkeys(USERS_OWN, "0")))
    assert set(changed["metadata"]["annotations"].values()) == {"0"}
    change(tenant, annotated(**dict.fromkeys(USERS_OWN)))
    change(tenant, IMAGE, STRATEGIC)


def test_only_corral_and_administrators_take_the_gate_off(
    plane: ControlPlane, cluster: Cluster, tenant: Cluster
) -> None:
    tenant.create(pod("p", gates=(FOREIGN, GATE)))
    said = refusal(plane, lambda: change(tenant, UNGATE, STRATEGIC))
    assert f"takes off the scheduling gate {GATE}" in said
    refusal(plane, lambda: change(tenant, {"spec": {"schedulingGates": None}}))
    others = {"spec": {"schedulingGates": [{"$patch": "delete", "name": FOREIGN}]}}
    assert gates_of(change(tenant, others, STRATEGIC)) == [GATE]
    assert gates_of(change(cluster, UNGATE, STRATEGIC)) == []


def test_an_operator_with_the_role_for_it_takes_off_every_gate_and_writes_no_word_of_ours(
    plane: ControlPlane, tenant: Cluster
) -> None:
    tenant.create(pod("p", gates=(FOREIGN, GATE)))
    with plane.granted("corral-gates", "tenant"):
        lifted = change(tenant, {"spec": {"schedulingGates": None}})
        refusal(plane, lambda: change(tenant, annotated(**{"corral.dev/wake": "1"})))
    assert gates_of(lifted) == []


def test_whoever_runs_corral_under_another_name_has_its_words_by_its_role(
    plane: ControlPlane, tenant: Cluster
) -> None:
    tenant.create(pod("p", gates=(GATE,)))
    with plane.granted("corral", "tenant"):
        body = annotated(**{"corral.dev/narrowed": "nodes"}) | UNGATE
        assert gates_of(change(tenant, body, STRATEGIC)) == []


def lines_with(text: str) -> list[str]:
    return [each for each in POLICY.read_text().splitlines() if text in each]


def test_the_line_that_frees_pods_after_corral_is_gone_finds_those_behind_its_gate(
    cluster: Cluster, tenant: Cluster
) -> None:
    line, _ = lines_with("--field-selector=")
    selector = line.partition("--field-selector=")[2].split()[0]
    patch, _ = lines_with('patch pod "$pod"')
    tenant.create(pod("p", gates=(FOREIGN, GATE)))
    tenant.create(pod("q", scheduler="none", gates=(GATE,)))
    found = cluster.list("Pod", "default", fieldSelector=selector)
    assert [each["metadata"]["name"] for each in found] == ["p"]
    assert gates_of(change(cluster, yaml.safe_load(patch.split("'")[1]), STRATEGIC)) == [FOREIGN]


def test_the_line_that_ends_nominations_after_corral_is_gone_does_so(
    cluster: Cluster, corral: Cluster
) -> None:
    _, patch = lines_with('patch pod "$pod"')
    path = f"{POD}/status"
    assert "--subresource=status --type=merge" in patch
    cluster.create(pod("p"))
    there = {"status": {"nominatedNodeName": "only"}}
    assert change(corral, there, path=path)["status"]["nominatedNodeName"] == "only"
    after = change(cluster, yaml.safe_load(patch.split("'")[1]), path=path)
    assert "nominatedNodeName" not in after["status"]


def test_of_a_pod_with_too_many_annotations_corral_changes_nothing(
    plane: ControlPlane, corral: Cluster, tenant: Cluster
) -> None:
    many = {f"{number:04x}": "" for number in range(1_001)}
    tenant.create(pod("p", annotations=many, gates=(GATE,)))
    said = refusal(plane, lambda: change(corral, UNGATE, STRATEGIC))
    assert "no pod with more than 1,000 annotations" in said
    change(tenant, annotated(**{"0000": None}))
    assert gates_of(change(corral, UNGATE, STRATEGIC)) == []


@pytest.mark.thorough
def test_no_number_of_annotations_and_gates_exceeds_what_an_expression_may_cost(
    cluster: Cluster, corral: Cluster, tenant: Cluster
) -> None:
    # As many as the API server takes: 256 KiB of keys and values, and an object of 1.5 MiB.
    many = {f"{number:04x}": "" for number in range(0x10000)}
    tenant.create(pod("p", scheduler="none", annotations=many))
    change(tenant, {"metadata": {"labels": {"app": "b"}}})
    cluster.delete("Pod", "p")
    cluster.wait(lambda: not cluster.get("Pod", "p"), 10, "the pod's end")

    gates = tuple(f"example.org/{number}" for number in range(10_000))
    tenant.create(pod("p", gates=(*gates, GATE)))
    change(tenant, {"metadata": {"labels": {"app": "b"}}})
    assert gates_of(change(corral, UNGATE, STRATEGIC)) == list(gates)


@pytest.mark.parametrize("name", POLICIES)
def test_the_api_server_warns_of_no_expression(
    cluster: Cluster, corral: Cluster, name: str
) -> None:
    def checked() -> Object | None:
        policy = cluster.get("ValidatingAdmissionPolicy", name) or {}
        status: Object = policy.get("status", {})
        return status if "typeChecking" in status else None

    found = cluster.wait(checked, EFFECTIVE_SECONDS, "the type check")
    assert found["typeChecking"].get("expressionWarnings", []) == []
