"""The role hash: Kueue's digits and the KEP's, and what counts as another role.

Source: kueue pkg/util/pod/pod.go (v0.16); KEP-976 "Groups of Pods created beforehand".
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

import pytest

from app.admission.mutating.role_hash import role_hash
from app.errors import DecodeError
from app.settings import RoleRules


def hashed(
    rules: RoleRules = "kueue",
    *,
    container: dict[str, Any] | None = None,
    labels: dict[str, str] | None = None,
    **spec: Any,
) -> str:
    """The hash of a pod with one container."""
    main = {"name": "main", "image": "a", "resources": {"requests": {"cpu": "1"}}}
    whole = {"containers": [main | (container or {})], **spec}
    metadata = {"name": "p", "labels": labels or {}}
    return role_hash(json.dumps({"metadata": metadata, "spec": whole}).encode(), rules)


def test_it_is_what_kueue_writes_for_the_same_pod():
    # Kueue's own tests state this value for a pod of one container with an empty map of requests.
    pod = {"spec": {"containers": [{"name": "c", "resources": {"requests": {}}}]}}
    assert role_hash(json.dumps(pod).encode()) == "a9f06f3a"


def test_it_is_eight_digits_of_the_sha256_of_gos_json():
    go = (
        '{"spec":{"affinity":null,"containers":[{"ports":[{"containerPort":80,"protocol":"TCP"}],'
        '"resources":{"requests":{"cpu":"1","memory":"2Gi"}}}],"initContainers":[{"ports":null,'
        '"resources":{"requests":null}}],"nodeSelector":{"pool":"a\\u003cb\\u0026c\\u003e"},'
        '"overhead":null,"priority":7,"resourceClaims":null,"resources":{"cpu":"4"},'
        '"runtimeClassName":"kata","tolerations":[{"key":"gpu","operator":"Exists"}],'
        '"topologySpreadConstraints":null}}'
    )
    spec = {
        "containers": [
            {
                "name": "main",
                "ports": [{"containerPort": 80, "protocol": "TCP"}],
                "resources": {"requests": {"cpu": "1", "memory": "2Gi"}, "limits": {"cpu": "2"}},
            }
        ],
        "initContainers": [{"name": "fetch", "resources": {}}],
        "nodeSelector": {"pool": "a<b&c>"},
        "priority": 7,
        "resources": {"requests": {"cpu": "4"}},
        "runtimeClassName": "kata",
        "tolerations": [{"key": "gpu", "operator": "Exists"}],
    }
    expected = hashlib.sha256(go.encode()).hexdigest()[:8]
    assert role_hash(json.dumps({"spec": spec}).encode()) == expected


PLACING = [
    pytest.param({"container": {"resources": {"requests": {"cpu": "2"}}}}, id="requests"),
    pytest.param({"container": {"ports": [{"containerPort": 80}]}}, id="ports"),
    pytest.param({"nodeSelector": {"pool": "a"}}, id="node_selector"),
    pytest.param({"tolerations": [{"operator": "Exists"}]}, id="tolerations"),
    pytest.param({"priority": 1}, id="priority"),
    pytest.param({"runtimeClassName": "kata"}, id="runtime_class"),
    pytest.param({"overhead": {"cpu": "1"}}, id="overhead"),
    pytest.param({"affinity": {}}, id="affinity"),
    pytest.param({"resources": {"requests": {"cpu": "1"}}}, id="pod_level_resources"),
    pytest.param({"resourceClaims": [{"name": "gpu"}]}, id="resource_claims"),
    pytest.param({"topologySpreadConstraints": [{"maxSkew": 1}]}, id="spread"),
    pytest.param({"initContainers": [{"name": "i"}]}, id="init_containers"),
]


@pytest.mark.parametrize("change", PLACING)
@pytest.mark.parametrize("rules", ["kueue", "kep"])
def test_another_shape_is_another_role(rules, change):
    assert hashed(rules, **change) != hashed(rules)


ONLY_THE_KEPS = [
    pytest.param({"container": {"image": "b"}}, id="image"),
    pytest.param({"labels": {"role": "driver"}}, id="label"),
    pytest.param({"preemptionPolicy": "Never"}, id="preemption_policy"),
]


@pytest.mark.parametrize("change", ONLY_THE_KEPS)
def test_976_labels_images_and_preemption_policy_tell_roles_apart_by_the_keps_rules(change):
    assert hashed("kep", **change) != hashed("kep")
    assert hashed("kueue", **change) == hashed("kueue")


def test_976_an_image_of_an_init_container_tells_roles_apart_too():
    one, other = (
        hashed("kep", initContainers=[{"name": "i", "image": image}]) for image in ("a", "b")
    )
    assert one != other


@pytest.mark.parametrize("key", ["kueue.x-k8s.io/pod-group-pod-index", "corral.dev/managed"])
def test_976_labels_of_queues_and_gangs_do_not_count(key):
    assert hashed("kep", labels={key: "1"}) == hashed("kep")


def test_976_the_order_of_labels_does_not_matter():
    one, other = {"a": "1", "b": "2"}, {"b": "2", "a": "1"}
    assert hashed("kep", labels=one) == hashed("kep", labels=other)


@pytest.mark.parametrize("rules", ["kueue", "kep"])
@pytest.mark.parametrize(
    "pod",
    [
        pytest.param({"metadata": {"name": "p"}}, id="no_spec"),
        pytest.param({"metadata": {"name": "p"}, "spec": None}, id="spec_null"),
        pytest.param({"spec": {}}, id="no_metadata"),
        pytest.param({"metadata": {"labels": None}, "spec": {"containers": []}}, id="nulls"),
    ],
)
def test_a_pod_that_says_nothing_has_the_role_of_an_empty_one(rules, pod):
    assert role_hash(json.dumps(pod).encode(), rules) == role_hash(b"{}", rules)


def test_976_the_keps_hash_has_as_many_digits_as_kueues():
    assert len(hashed("kep")) == len(hashed("kueue")) == 8
    assert hashed("kep") != hashed("kueue")


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({"container": {"env": [{"name": "RANK", "value": "1"}]}}, id="env"),
        pytest.param({"container": {"args": ["--index", "1"]}}, id="arguments"),
        pytest.param({"volumes": [{"name": "data-1"}]}, id="volumes"),
        pytest.param({"hostname": "worker-1"}, id="hostname"),
    ],
)
@pytest.mark.parametrize("rules", ["kueue", "kep"])
def test_what_does_not_matter_for_placing_is_the_same_role(rules, change):
    assert hashed(rules, **change) == hashed(rules)


@pytest.mark.parametrize("body", [b"{}", b'{"spec":null}', b'{"spec":{"containers":[]}}'])
def test_a_pod_that_says_nothing_has_a_role_too(body):
    assert role_hash(body) == role_hash(b'{"spec":{}}')


@pytest.mark.parametrize(
    "body", [b"", b"[]", b'{"spec":{"containers":{}}}', b'{"spec":{"affinity":' + b"[" * 100_000]
)
def test_what_is_no_pod_is_an_error(body):
    with pytest.raises(DecodeError):
        role_hash(body)


@pytest.mark.parametrize("rules", ["kueue", "kep"])
@pytest.mark.parametrize("requests", [{"cpu": "1"}, None], ids=["some", "none"])
def test_markers_make_no_other_role(rules, requests):
    marked = {**(requests or {}), "corral.dev/member": "1", "corral.dev/member-bind": "1"}
    with_markers = {"resources": {"requests": marked, "limits": marked}}
    without = {"resources": {"requests": requests} if requests else {}}
    assert hashed(rules, container=with_markers) == hashed(rules, container=without)
