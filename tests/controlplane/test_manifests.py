"""What deploy/ ships, against a real API server: accepted as written, and no right too many."""

from __future__ import annotations

import pytest
import yaml

from tests.cluster import Cluster, Object, Refused, node, pod
from tests.controlplane.plane import RBAC, ROOT, ControlPlane, may

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

DEPLOYMENT = ROOT / "deploy" / "corral.yaml"
API = ROOT / "deploy" / "api.yaml"
NETWORK = ROOT / "deploy" / "network-policy.yaml"
WEBHOOK = ROOT / "deploy" / "webhook.yaml"

# (verb, API group, resource, subresource, namespace, name) of everything Corral does; that it lists
# and watches what its vocabularies read is in tests/deploy/test_rights.py.
NEEDED = [
    *[
        (verb, group, resource, "", "", "")
        for group, resource in [("", "nodes"), ("", "pods"), ("kubeflow.org", "mpijobs")]
        for verb in ("list", "watch")
    ],
    ("get", "", "pods", "", "default", ""),
    ("patch", "", "pods", "", "default", ""),
    ("patch", "", "pods", "status", "default", ""),
    ("create", "", "pods", "binding", "default", ""),
    ("create", "", "events", "", "default", ""),
    ("get", "coordination.k8s.io", "leases", "", "corral-system", "corral-scheduler"),
]
# What only a setting needs: the ClusterRole that README names beside it.
APART = {
    "corral-evict": ("create", "", "pods", "eviction", "default", ""),
    "corral-suspend": ("patch", "batch", "jobs", "", "default", ""),
    "corral-delete-excess": ("delete", "", "pods", "", "default", ""),
    "corral-namespaces": ("watch", "", "namespaces", "", "", ""),
    "corral-hypernodes": ("delete", "topology.volcano.sh", "hypernodes", "", "", ""),
    "corral-native-pod-groups": ("watch", "scheduling.k8s.io", "podgroups", "", "", ""),
    "corral-protect-nodes": ("patch", "", "nodes", "", "", ""),
    "corral-readers": ("create", "authentication.k8s.io", "tokenreviews", "", "", ""),
}
REFUSED = [
    *APART.values(),
    ("create", "authorization.k8s.io", "subjectaccessreviews", "", "", ""),
    ("get", "", "secrets", "", "corral-system", ""),
    ("list", "", "secrets", "", "", ""),
    ("get", "", "nodes", "", "", ""),
    ("update", "", "nodes", "", "", ""),
    ("delete", "", "nodes", "", "", ""),
    ("create", "", "pods", "", "default", ""),
    ("update", "", "pods", "", "default", ""),
    ("patch", "", "pods", "ephemeralcontainers", "default", ""),
    ("patch", "", "pods", "resize", "default", ""),
    ("create", "", "pods", "exec", "default", ""),
    ("create", "", "bindings", "", "default", ""),
    ("get", "", "namespaces", "", "", "default"),
    ("patch", "", "events", "", "default", ""),
    ("create", "events.k8s.io", "events", "", "default", ""),
    ("patch", "batch", "jobs", "", "default", ""),
    ("patch", "apps", "statefulsets", "", "default", ""),
    ("patch", "jobset.x-k8s.io", "jobsets", "", "default", ""),
    ("delete", "kueue.x-k8s.io", "topologies", "", "", ""),
    ("get", "coordination.k8s.io", "leases", "", "kube-system", "kube-scheduler"),
    ("get", "coordination.k8s.io", "leases", "", "corral-system", "other"),
    *[
        (verb, "coordination.k8s.io", "leases", "", "corral-system", "corral-scheduler")
        for verb in ("list", "watch", "create", "update", "patch", "delete")
    ],
    ("create", "rbac.authorization.k8s.io", "clusterrolebindings", "", "", ""),
    ("create", "", "serviceaccounts", "token", "corral-system", ""),
    ("impersonate", "", "users", "", "", ""),
]


@pytest.mark.parametrize("right", NEEDED, ids=lambda right: _words(right))
def test_corral_may_do_what_it_does(plane: ControlPlane, right: tuple[str, ...]) -> None:
    assert _may(plane.cluster("corral"), right)


@pytest.mark.parametrize("right", REFUSED, ids=lambda right: _words(right))
def test_corral_may_do_nothing_else(plane: ControlPlane, right: tuple[str, ...]) -> None:
    assert not _may(plane.cluster("corral"), right)


@pytest.mark.parametrize("role", APART)
def test_what_a_setting_needs_is_a_role_of_its_own(plane: ControlPlane, role: str) -> None:
    with plane.granted(role):
        assert _may(plane.cluster("corral"), APART[role])


def test_no_role_of_ours_has_a_wildcard() -> None:
    rules = [rule for role in _documents(RBAC) for rule in role.get("rules", [])]
    assert rules
    assert not [rule for rule in rules if any("*" in names for names in rule.values())]


def test_corral_binds_wakes_and_reports_with_its_own_rights(
    plane: ControlPlane, cluster: Cluster
) -> None:
    corral = plane.cluster("corral")
    plane.nodes([node("only")])
    created = cluster.create(pod("member"))
    uid = created["metadata"]["uid"]
    woken = corral.patch("Pod", "member", {"metadata": {"annotations": {"corral.dev/woken": "1"}}})
    corral.bind("member", "only", uid=uid)
    corral.create(
        {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": "placed", "namespace": "default"},
            "involvedObject": {"kind": "Pod", "namespace": "default", "name": "member", "uid": uid},
            "reason": "Placed",
            "message": "on one node",
        }
    )

    assert woken["metadata"]["annotations"]["corral.dev/woken"] == "1"
    assert corral.bound() == {"member": "only"}
    assert [event["reason"] for event in cluster.events(created)] == ["Placed"]


def test_corral_is_refused_secrets_nodes_and_deletions(
    plane: ControlPlane, cluster: Cluster
) -> None:
    corral = plane.cluster("corral")
    plane.nodes([node("only")])
    cluster.create(pod("member"))
    for attempt in (
        lambda: corral.list("Secret"),
        lambda: corral.patch("Node", "only", {"spec": {"unschedulable": True}}),
        lambda: corral.delete("Pod", "member"),
    ):
        with pytest.raises(Refused) as refused:
            attempt()
        assert refused.value.status == 403
    assert cluster.get("Pod", "member")
    denied = [(one.verb, one.path.partition("?")[0]) for one in plane.denials()]
    assert denied == [
        ("list", "/api/v1/secrets"),
        ("patch", "/api/v1/nodes/only"),
        ("delete", "/api/v1/namespaces/default/pods/member"),
    ]


def test_a_stranger_may_not_even_list_pods(plane: ControlPlane) -> None:
    with pytest.raises(Refused) as refused:
        plane.cluster("stranger").list("Pod")
    assert refused.value.status == 403


def test_the_api_server_accepts_every_manifest(cluster: Cluster) -> None:
    # The plane begins with policy.yaml; test_admission.py installs what webhook.yaml configures.
    beside_webhook = [one for one in _documents(WEBHOOK) if "webhooks" not in one]
    passing = [
        *_documents(DEPLOYMENT),
        *beside_webhook,
        *_documents(NETWORK),
        *_documents(API),
    ]
    shipped = [*_documents(RBAC), *passing]
    stored = [cluster.apply(document) for document in shipped]
    assert [one["metadata"]["name"] for one in stored] == [
        one["metadata"]["name"] for one in shipped
    ]
    for document in passing:
        cluster.delete(document["kind"], document["metadata"]["name"], "corral-system")


def test_the_shipped_pods_pass_the_restricted_security_standard(cluster: Cluster) -> None:
    template = next(one for one in _documents(DEPLOYMENT) if one["kind"] == "Deployment")["spec"][
        "template"
    ]
    shipped: Object = {"apiVersion": "v1", "kind": "Pod", **template}
    shipped["metadata"] |= {"name": "shipped", "namespace": "corral-system"}
    cluster.create(shipped)
    cluster.delete("Pod", "shipped", "corral-system")

    shipped["spec"]["containers"][1]["securityContext"]["allowPrivilegeEscalation"] = True
    with pytest.raises(Refused, match="restricted"):
        cluster.create(shipped)


def _documents(path: object) -> list[Object]:
    with open(str(path), encoding="utf-8") as manifest:
        return list(yaml.safe_load_all(manifest))


def _may(user: Cluster, right: tuple[str, ...]) -> bool:
    verb, group, resource, subresource, namespace, name = right
    rule = {
        "verbs": [verb],
        "apiGroups": [group],
        "resources": ["/".join(filter(None, (resource, subresource)))],
        "resourceNames": [name],
        "namespace": namespace,
    }
    return may(user, rule)


def _words(right: tuple[str, ...]) -> str:
    verb, _, resource, subresource, _, name = right
    return "_".join(word for word in (verb, resource, subresource, name) if word)
