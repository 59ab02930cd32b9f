"""deploy/rbac.yaml grants what the code uses: no right is missing, and none is left over."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from app.admission.namespaces import Namespaces
from app.dialects.registry import DIALECTS
from app.labels import selector_from_text
from app.settings import EngineOptions
from tests.deploy.test_readme import README

RBAC = Path(__file__).resolve().parent.parent.parent / "deploy" / "rbac.yaml"
READ = {"list", "watch"}
# The writes of app/kube/client/writes.py, and its reads of one object.
WRITTEN = {
    ("", "pods/binding"): {"create"},
    ("", "pods/status"): {"patch"},
    ("", "pods"): {"get", "patch"},
    ("", "events"): {"create"},
    ("topology.volcano.sh", "hypernodes/status"): {"patch"},
    ("scheduling.volcano.sh", "podgroups"): {"patch"},
    ("scheduling.volcano.sh", "queues"): {"get", "create"},
    ("scheduling.run.ai", "podgroups/status"): {"patch"},
    ("scheduler.grove.io", "podgangs/status"): {"patch"},
    # The words on pods that deploy/policy.yaml asks this right of.
    ("corral.dev", "annotations"): {"write"},
    ("corral.dev", "gates"): {"write"},
}
APART = {
    "corral-evict": {("", "pods/eviction"): {"create"}},
    "corral-suspend": {("batch", "jobs"): {"patch"}, ("jobset.x-k8s.io", "jobsets"): {"patch"}},
    "corral-delete-excess": {("", "pods"): {"delete"}},
    "corral-namespaces": {("", "namespaces"): READ},
    "corral-hypernodes": {("topology.volcano.sh", "hypernodes"): {"create", "patch", "delete"}},
    "corral-native-pod-groups": {
        ("scheduling.k8s.io", "podgroups"): READ,
        ("scheduling.k8s.io", "compositepodgroups"): READ,
        ("scheduling.k8s.io", "podgroups/status"): {"patch"},
        ("scheduling.k8s.io", "compositepodgroups/status"): {"patch"},
    },
    "corral-protect-nodes": {("", "nodes"): {"patch"}},
    "corral-provisioning": {
        ("autoscaling.x-k8s.io", "provisioningrequests"): {*READ, "get", "create", "delete"},
        ("", "podtemplates"): {*READ, "get", "create", "patch", "delete"},
    },
    "corral-readers": {
        ("authentication.k8s.io", "tokenreviews"): {"create"},
        ("authorization.k8s.io", "subjectaccessreviews"): {"create"},
    },
    "corral-gates": {("corral.dev", "gates"): {"write"}},
}


def granted(role: str) -> dict[tuple[str, str], set[str]]:
    """(API group, resource) -> the verbs that a ClusterRole allows."""
    rights: dict[tuple[str, str], set[str]] = {}
    for rule in next(one for one in documents("ClusterRole") if named(one) == role)["rules"]:
        for group in rule["apiGroups"]:
            for resource in rule["resources"]:
                rights.setdefault((group, resource), set()).update(rule["verbs"])
    return rights


def documents(kind: str) -> list[dict[str, Any]]:
    content = yaml.safe_load_all(RBAC.read_text(encoding="utf-8"))
    return [one for one in content if one["kind"] == kind]


def named(thing: dict[str, Any]) -> str:
    return str(thing["metadata"]["name"])


def watched(path: str) -> tuple[str, str]:
    """The API group and the resource of a collection's path."""
    parts = path.strip("/").split("/")
    return ("" if parts[0] == "api" else parts[1], parts[-1])


def test_corral_reads_what_its_vocabularies_name_and_writes_what_its_client_does() -> None:
    rights = {watched(each.path): set(READ) for each in DIALECTS.resources()}
    for what, verbs in WRITTEN.items():
        rights.setdefault(what, set()).update(verbs)
    assert granted("corral") == rights


def test_what_a_vocabulary_reads_only_with_a_setting_its_cluster_role_has() -> None:
    usual = {each.kind for each in DIALECTS.resources()}
    native = DIALECTS.configured(EngineOptions(native_pod_groups="on"))
    more = [each for each in native.resources() if each.kind not in usual]
    paths = {watched(one.path) for each in more for one in (each, *each.older)}
    assert {kind for _, kind in paths} == {"podgroups", "compositepodgroups"}
    for path in paths:
        assert granted("corral-native-pod-groups")[path] == READ


def test_requests_for_nodes_are_read_only_with_a_class_and_by_a_role_of_their_own() -> None:
    usual = {each.kind for each in DIALECTS.resources()}
    asking = DIALECTS.configured(EngineOptions(provisioning_class="*"))
    more = {watched(each.path) for each in asking.resources() if each.kind not in usual}
    assert more == APART["corral-provisioning"].keys()


def test_what_only_a_setting_needs_is_bound_to_nobody_and_readme_names_it() -> None:
    bound = {one["roleRef"]["name"] for one in documents("ClusterRoleBinding")}
    for role, rights in APART.items():
        assert granted(role) == rights
        assert role not in bound
        assert f"`{role}`" in README


def test_namespaces_are_read_only_where_the_setting_that_needs_them_is_used() -> None:
    by_label = Namespaces(selector_from_text("team=a")).resources()
    assert [watched(each.path) for each in by_label] == [*APART["corral-namespaces"]]
    by_name = Namespaces(selector_from_text("kubernetes.io/metadata.name!=kube-system"))
    assert by_name.resources() == ()
