"""What deploy/ ships, against a real API server: accepted as written, and no right too many."""

from __future__ import annotations

import pytest
import yaml

from tests.cluster import Cluster, Object, Refused, node, pod
from tests.controlplane.plane import RBAC, ROOT, ControlPlane

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

DEPLOYMENT = ROOT / "deploy" / "corral.yaml"

# (verb, API group, resource, subresource, namespace) of everything Corral does.
NEEDED = [
    *[
        (verb, group, resource, "", "")
        for group, resource in [
            ("", "nodes"),
            ("", "pods"),
            ("", "namespaces"),
            ("batch", "jobs"),
            ("apps", "statefulsets"),
            ("kueue.x-k8s.io", "topologies"),
            ("jobset.x-k8s.io", "jobsets"),
            ("leaderworkerset.x-k8s.io", "leaderworkersets"),
            ("kubeflow.org", "pytorchjobs"),
            ("kubeflow.org", "mpijobs"),
        ]
        for verb in ("get", "list", "watch")
    ],
    ("create", "", "pods", "binding", "default"),
    ("create", "", "pods", "eviction", "default"),
    ("patch", "", "pods", "", "default"),
    ("create", "", "events", "", "default"),
    ("patch", "", "events", "", "default"),
    ("create", "events.k8s.io", "events", "", "default"),
    ("get", "coordination.k8s.io", "leases", "", "corral-system"),
    ("create", "coordination.k8s.io", "leases", "", "corral-system"),
]
REFUSED = [
    ("get", "", "secrets", "", "corral-system"),
    ("list", "", "secrets", "", ""),
    ("patch", "", "nodes", "", ""),
    ("update", "", "nodes", "", ""),
    ("delete", "", "nodes", "", ""),
    ("create", "", "pods", "", "default"),
    ("update", "", "pods", "", "default"),
    ("delete", "", "pods", "", "default"),
    ("patch", "", "pods", "status", "default"),
    ("create", "", "pods", "exec", "default"),
    ("patch", "batch", "jobs", "", "default"),
    ("patch", "apps", "statefulsets", "", "default"),
    ("patch", "jobset.x-k8s.io", "jobsets", "", "default"),
    ("delete", "kueue.x-k8s.io", "topologies", "", ""),
    ("get", "coordination.k8s.io", "leases", "", "kube-system"),
    ("update", "coordination.k8s.io", "leases", "", "corral-system"),
    ("create", "rbac.authorization.k8s.io", "clusterrolebindings", "", ""),
    ("create", "", "serviceaccounts", "token", "corral-system"),
    ("impersonate", "", "users", "", ""),
]


@pytest.mark.parametrize("right", NEEDED, ids=lambda right: _words(right))
def test_corral_may_do_what_it_does(plane: ControlPlane, right: tuple[str, ...]) -> None:
    assert _may(plane.cluster("corral"), right)


@pytest.mark.parametrize("right", REFUSED, ids=lambda right: _words(right))
def test_corral_may_do_nothing_else(plane: ControlPlane, right: tuple[str, ...]) -> None:
    assert not _may(plane.cluster("corral"), right)


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


def test_a_stranger_may_not_even_list_pods(plane: ControlPlane) -> None:
    with pytest.raises(Refused) as refused:
        plane.cluster("stranger").list("Pod")
    assert refused.value.status == 403


def test_the_api_server_accepts_every_manifest(cluster: Cluster) -> None:
    shipped = [*_documents(RBAC), *_documents(DEPLOYMENT)]
    stored = [cluster.apply(document) for document in shipped]
    assert [one["metadata"]["name"] for one in stored] == [
        one["metadata"]["name"] for one in shipped
    ]
    for document in _documents(DEPLOYMENT):
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
    verb, group, resource, subresource, namespace = right
    review = user.create(
        {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectAccessReview",
            "spec": {
                "resourceAttributes": {
                    "verb": verb,
                    "group": group,
                    "resource": resource,
                    "subresource": subresource,
                    "namespace": namespace,
                }
            },
        }
    )
    return bool(review["status"]["allowed"])


def _words(right: tuple[str, ...]) -> str:
    verb, _, resource, subresource, _ = right
    return f"{verb}_{resource}" + (f"_{subresource}" if subresource else "")
