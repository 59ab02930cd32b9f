"""A large object is read like a small one, but for what holds more than any real one does."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from typing import Any

import msgspec
import pytest

from app.dialects.registry import DIALECTS
from app.dialects.volcano.hyper_nodes import MOST_MEMBERS
from app.errors import DecodeError
from app.kube.core.objects import PodRecord
from app.kube.decoding.decode import decode_node, decode_pod
from app.kube.decoding.large.parts import (
    LARGE,
    MOST_AFFINITY,
    MOST_TEXTS,
    MOST_VALUES,
)
from app.kube.decoding.texts import kept_text
from tests.app.dialects.native.objects import ON
from tests.app.kube.decoding.test_decode import POD
from tests.work import lines_run

FILLING = {"name": "A", "value": "<" * LARGE}


def keep(key: str) -> bool:
    return key in ("gang", "kueue.x-k8s.io/queue-name")


def pod_with(metadata: object = None, **spec: object) -> bytes:
    """The pod of the other tests with these fields, and large."""
    containers = [{"name": "c", "env": [FILLING], "resources": {"requests": {"cpu": "1"}}}]
    return json.dumps(
        {
            "metadata": {**POD["metadata"], **(metadata or {})},
            "spec": {**POD["spec"], "containers": containers, **spec},
            "status": POD["status"],
        }
    ).encode()


def decoded(raw: bytes) -> PodRecord:
    return decode_pod(raw, keep)


def node_affinity(*terms: object) -> dict[str, Any]:
    required = {"nodeSelectorTerms": list(terms)}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}


def test_a_large_pod_is_read_like_a_small_one():
    claims = [{"name": "gpu"}]
    long = pod_with(resourceClaims=claims)
    short = json.loads(long)
    short["spec"]["containers"][0]["env"] = []
    assert len(long) > LARGE > len(json.dumps(short))
    record = decoded(long)
    assert record == decoded(json.dumps(short).encode())
    assert (record.problem, record.has_claims, dict(record.request)) == (
        "",
        True,
        {"cpu": 1000, "pods": 1},
    )


@pytest.mark.parametrize("claims", [None, []])
def test_a_large_pod_without_claims_has_none(claims):
    assert not decoded(pod_with(resourceClaims=claims)).has_claims


def test_a_large_object_of_nothing_is_zero_values():
    nothing = {"metadata": None, "spec": None, "status": None, "padding": "x" * LARGE}
    assert decoded(json.dumps(nothing).encode()) == decoded(b"{}")


def test_a_large_node_is_read_like_a_small_one():
    node = {
        "metadata": {"name": "n", "uid": "u", "resourceVersion": "7", "labels": {"rack": "r"}},
        "spec": {"unschedulable": True, "taints": [{"key": "k", "effect": "NoSchedule"}]},
        "status": {
            "allocatable": {"cpu": "4"},
            "conditions": [{"type": "Ready", "status": "True"}],
            "images": [],
        },
    }
    short = decode_node(json.dumps(node).encode())
    node["status"]["images"] = [{"names": ["x" * LARGE]}]
    assert decode_node(json.dumps(node).encode()) == short
    assert short.is_ready
    assert not short.problem


MANY = {
    "metadata.labels": (lambda n: {"metadata": {"labels": {f"k{i}": "" for i in range(n)}}}, 2),
    "metadata.annotations": (
        lambda n: {"metadata": {"annotations": {f"k{i}": "" for i in range(n)}}},
        2,
    ),
    "metadata.ownerReferences": (
        lambda n: {"metadata": {"ownerReferences": [{"name": "o"}] * n}},
        3,
    ),
    "spec.nodeSelector": (lambda n: {"nodeSelector": {f"k{i}": "" for i in range(n)}}, 2),
    "spec.tolerations": (lambda n: {"tolerations": [{"operator": "Exists"}] * n}, 3),
    "spec.schedulingGates": (lambda n: {"schedulingGates": [{"name": "g"}] * n}, 3),
}
MOST = {
    "metadata.labels": MOST_TEXTS,
    "metadata.annotations": MOST_TEXTS,
    "spec.nodeSelector": MOST_TEXTS,
}


@pytest.mark.parametrize("field", MANY)
def test_a_part_is_read_up_to_its_bound_and_left_out_beyond(field):
    made, values_of_one = MANY[field]
    most = MOST.get(field, MOST_VALUES)
    at_most = most // values_of_one
    assert decoded(pod_with(**made(at_most))).problem == ""
    record = decoded(pod_with(**made(at_most + 1)))
    found = (at_most + 1) * values_of_one
    assert record.problem == (
        f"Pod team/worker-0: {field} is not read: it has {found} values, more than {most}"
    )
    assert record.uid == "u1"
    assert dict(record.request) == {"cpu": 1000, "pods": 1}


@pytest.mark.parametrize(
    "terms",
    [
        pytest.param([{}] * (MOST_AFFINITY + 1), id="terms_without_a_word"),
        pytest.param(
            [
                {
                    "matchExpressions": [
                        {"key": "k", "operator": "In", "values": ["v"] * MOST_AFFINITY}
                    ]
                }
            ],
            id="values_of_one_line",
        ),
    ],
)
def test_affinity_that_is_not_read_matches_no_node(terms):
    record = decoded(pod_with(affinity=node_affinity(*terms)))
    assert "spec.affinity.nodeAffinity is not read" in record.problem
    (term,) = record.shape.terms
    assert (term.expressions, term.fields) == ((), ())


def test_what_corral_itself_narrows_a_pod_to_is_read():
    """1,024 nodes, the most that `narrow_nodes` may be."""
    lines = [{"key": "metadata.name", "operator": "In", "values": [f"n{at}"]} for at in range(1024)]
    terms = [{"matchFields": [each]} for each in lines]
    record = decoded(pod_with(affinity=node_affinity(*terms)))
    assert not record.problem
    assert len(record.shape.terms) == 1024
    (listed,) = [{"matchExpressions": [{"key": "k", "operator": "In", "values": ["v"] * 2_000}]}]
    assert not decoded(pod_with(affinity=node_affinity(*terms, listed))).problem
    more = decoded(pod_with(affinity=node_affinity(*terms, *terms)))
    assert "spec.affinity.nodeAffinity is not read" in more.problem


def test_affinity_to_pods_does_not_count():
    terms = [{"topologyKey": "k", "labelSelector": {}}] * MOST_AFFINITY
    affinity = {**node_affinity({}), "podAffinity": {"required": terms}}
    assert not decoded(pod_with(affinity=affinity)).problem


def test_quotes_and_braces_inside_of_a_text_do_not_count():
    """As kubectl's last-applied-configuration has them; also JSON inside of that JSON."""
    applied = json.dumps([{"a": "b"}] * 20_000)
    record = decoded(pod_with({"annotations": {"applied": applied, "gang": json.dumps(applied)}}))
    assert not record.problem
    assert record.annotations["gang"] == kept_text("gang", json.dumps(applied))


def test_texts_that_end_in_a_backslash_are_counted():
    labels = {f"{at}\\": "\\" for at in range(MOST_TEXTS + 1)}
    assert "metadata.labels" in decoded(pod_with({"labels": labels})).problem


def test_what_containers_request_is_exact_however_many_there_are():
    """A gang beside such a pod would be narrowed to a node that has no room for it."""
    asked = [{"resources": {"requests": {"cpu": f"{at}m"}}} for at in range(5_000)]
    record = decoded(pod_with(containers=asked, initContainers=asked[:4]))
    assert not record.problem
    assert dict(record.request) == {"cpu": sum(range(5_000)), "pods": 1}


@pytest.mark.parametrize("field", ["overhead", "resources"])
def test_amounts_of_the_pod_itself_are_bounded(field):
    amounts = {f"a.com/r{at}": "1" for at in range(MOST_VALUES + 1)}
    spec = {field: amounts if field == "overhead" else {"requests": amounts}}
    assert f"spec.{field} is not read" in decoded(pod_with(**spec)).problem


@pytest.mark.parametrize("field", MANY)
def test_the_largest_part_takes_no_more_steps_than_one_at_its_bound(field):
    """Not even through what msgspec builds: a part beyond its bound is never built."""
    made, values_of_one = MANY[field]
    at_bound = pod_with(**made(MOST.get(field, MOST_VALUES) // values_of_one))
    largest = pod_with(**made(60_000))
    assert lines_run(lambda: decoded(largest)) <= lines_run(lambda: decoded(at_bound))


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"tolerations": [{"key": 5}]}, "$.spec.tolerations[0].key"),
        ({"nodeSelector": {"a": 5}}, "$.spec.nodeSelector[...]"),
        ({"schedulingGates": 5}, "$.spec.schedulingGates"),
        ({"containers": 5, "padding": "x" * LARGE}, "$.spec.containers"),
        ({"affinity": {"nodeAffinity": 5}}, "$.spec.affinity.nodeAffinity"),
    ],
)
def test_a_decode_error_of_a_large_pod_names_object_and_field(spec, field):
    with pytest.raises(DecodeError) as told:
        decoded(pod_with(**spec))
    assert str(told.value).startswith("Pod team/worker-0: ")
    assert f"`{field}`" in str(told.value)


def test_views_and_raw_parts_of_a_larger_body_decode_alike():
    raw = pod_with()
    assert decoded(memoryview(raw)) == decoded(msgspec.Raw(raw)) == decoded(raw)


def test_a_node_with_more_labels_than_are_read_is_closed_and_has_not_failed():
    node = {
        "metadata": {"name": "n", "labels": {f"k{at}": "" for at in range(MOST_TEXTS)}},
        "status": {"conditions": [{"type": "Ready", "status": "True"}]},
    }
    record = decode_node(json.dumps(node).encode())
    assert record.problem.startswith("Node n: metadata.labels is not read: it has ")
    assert record.is_ready
    assert not record.labels


LABELS = ("jobset.sigs.k8s.io/jobset-name", "volcano.sh/network-topology-source")
OF_VOCABULARIES = {
    each.kind: each.decode
    for each in ON.resources(lambda _key: True)
    if each.kind not in ("Pod", "Node")
}


@pytest.mark.parametrize("decode", OF_VOCABULARIES.values(), ids=OF_VOCABULARIES.keys())
def test_an_object_with_more_labels_than_are_read_is_refused(decode):
    labels = {f"k{at}": "" for at in range(MOST_TEXTS)}
    many = {"metadata": {"namespace": "team", "name": "o", "labels": labels}}
    with pytest.raises(DecodeError, match=r"o: metadata\.labels is not read: it has 8192 values"):
        decode(json.dumps(many).encode())


def test_a_pod_of_which_not_all_is_read_is_refused_and_not_taken_for_an_ordinary_one():
    labels = {f"k{at}": "" for at in range(MOST_TEXTS)}
    pod = decoded(pod_with({"labels": {**labels, "kueue.x-k8s.io/queue-name": "q"}}))
    claim = DIALECTS.claim(pod)
    assert claim is not None
    assert claim.flaw == pod.problem
    assert "metadata.labels" in pod.problem


@pytest.mark.parametrize("decode", OF_VOCABULARIES.values(), ids=OF_VOCABULARIES.keys())
def test_a_large_object_is_read_like_a_small_one(decode):
    owner = {"apiVersion": "v1", "kind": "a", "name": "a", "uid": "a", "controller": True}
    said = {
        "namespace": "team",
        "name": "o",
        "uid": "u",
        "resourceVersion": "7",
        "generation": 3,
        "labels": {key: "v" for key in ("a", *LABELS)},
        "annotations": {"kueue.x-k8s.io/podset-required-topology": "rack"},
        "ownerReferences": [owner],
    }
    for metadata in (said, {}, None):
        long = {"metadata": metadata, "padding": "x" * LARGE}
        short = json.dumps({"metadata": metadata}).encode()
        assert decode(json.dumps(long).encode()) == decode(short)


@pytest.mark.parametrize("decode", OF_VOCABULARIES.values(), ids=OF_VOCABULARIES.keys())
def test_a_label_of_another_type_in_a_large_object_is_named(decode):
    metadata = {"namespace": "team", "name": "o", "labels": {"a": 5}}
    with pytest.raises(DecodeError, match=r"team/o: .*`\$\.metadata\.labels\[\.\.\.\]`"):
        decode(json.dumps({"metadata": metadata, "padding": "x" * LARGE}).encode())


def quota(part: str, count: int) -> dict[str, Any]:
    return {"status": {part: {f"requests.a.b/r{at}": "1" for at in range(count)}}}


def hyper_node(count: int) -> dict[str, Any]:
    named = [{"exactMatch": {"name": f"n{at}"}} for at in range(count)]
    return {"spec": {"members": [{"type": "Node", "selector": each} for each in named]}}


LISTS: dict[str, tuple[str, str, int, int, Callable[[int], dict[str, Any]]]] = {
    "levels": (
        "Topology",
        "spec.levels",
        3,
        MOST_VALUES,
        lambda count: {"spec": {"levels": [{"nodeLabel": "l"}] * count}},
    ),
    "hard": ("ResourceQuota", "status.hard", 2, MOST_VALUES - 1, partial(quota, "hard")),
    "members": ("HyperNode", "spec.members", 9, 9 * MOST_MEMBERS, hyper_node),
}


@pytest.mark.parametrize("name", LISTS)
def test_a_list_of_more_than_any_real_object_has_is_refused_before_it_is_built(name):
    kind, field, values_of_one, most, made = LISTS[name]
    decode = OF_VOCABULARIES[kind]

    def body(count: int) -> bytes:
        metadata = {"namespace": "team", "name": "o"}
        return json.dumps({"metadata": metadata, **made(count)}).encode()

    def refuse(raw: bytes) -> None:
        with pytest.raises(DecodeError, match=rf"{kind} team/o: {field} is not read: it has"):
            decode(raw)

    at_most = most // values_of_one
    assert decode(body(at_most)).name == "o"
    over, largest = body(at_most + 1), body(2 * at_most)
    refuse(over)
    steps = 10  # of counting what is longer than is counted at once
    assert lines_run(lambda: refuse(largest)) <= lines_run(lambda: refuse(over)) + steps


@pytest.mark.parametrize("scopes", [[{}], ["x"] * 60_000])
def test_scopes_of_a_quota_are_not_built(scopes):
    raw = json.dumps({"spec": {"scopes": scopes}, **quota("hard", 3)}).encode()
    assert OF_VOCABULARIES["ResourceQuota"](raw).lines == ()
