"""Objects decode into slim records; whatever else arrives is a DecodeError, never a crash."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.errors import DecodeError
from app.kube.core.objects import (
    NodeRecord,
    Owner,
    PodRecord,
    Requirement,
    Shape,
    Taint,
    Term,
    Toleration,
)
from app.kube.decoding.decode import (
    GRACE_SECONDS,
    MOST_DEADLINE_SECONDS,
    MOST_GRACE_SECONDS,
    decode_node,
    decode_pod,
    decode_version,
)
from app.kube.decoding.label_keys import LabelKeys
from app.kube.decoding.large.parts import LARGE
from tests.app.dialects.native.objects import ON

POD: dict[str, Any] = {
    "metadata": {
        "namespace": "team",
        "name": "worker-0",
        "uid": "u1",
        "resourceVersion": "42",
        "creationTimestamp": "2026-11-21T05:00:00Z",
        "labels": {"gang": "a", "noise": "x"},
        "annotations": {"gang": "b", "noise": "y"},
        "ownerReferences": [
            {"apiVersion": "v1", "kind": "ConfigMap", "name": "no", "uid": "o0"},
            {"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "o1", "controller": True},
        ],
        "managedFields": [{"fieldsV1": {"f:spec": {}}}],
    },
    "spec": {
        "nodeName": "n1",
        "schedulerName": "corral",
        "priority": -7,
        "schedulingGates": [{"name": "corral.dev/gang"}, {"name": "foreign"}],
        "nodeSelector": {"zone": "z", "disk": "ssd"},
        "tolerations": [{"key": "gpu", "value": "yes"}, {"operator": "Exists"}],
        "affinity": {
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {
                    "nodeSelectorTerms": [
                        {
                            "matchExpressions": [
                                {"key": "rack", "operator": "In", "values": ["r1", "r2"]}
                            ]
                        },
                        {
                            "matchFields": [
                                {"key": "metadata.name", "operator": "In", "values": ["n1"]}
                            ]
                        },
                    ]
                }
            }
        },
    },
    "status": {"phase": "Pending", "nominatedNodeName": "n2"},
}
DECODERS = {
    **{each.kind: each.decode for each in ON.resources(lambda _key: True)},
    "version": decode_version,
}


def pod_from(pod: object) -> PodRecord:
    return decode_pod(json.dumps(pod).encode(), lambda key: key == "gang")


def test_a_pod_keeps_what_scheduling_needs():
    assert pod_from(POD) == PodRecord(
        namespace="team",
        name="worker-0",
        uid="u1",
        node="n1",
        phase="Pending",
        scheduler="corral",
        priority=-7,
        request=(("pods", 1),),
        shape=Shape(
            selector=(("disk", "ssd"), ("zone", "z")),
            terms=(
                Term(expressions=(Requirement("rack", "In", ("r1", "r2")),)),
                Term(fields=(Requirement("metadata.name", "In", ("n1",)),)),
            ),
            tolerations=(
                Toleration("gpu", "Equal", "yes", ""),
                Toleration("", "Exists", "", ""),
            ),
        ),
        gates=("corral.dev/gang", "foreign"),
        is_terminating=False,
        created="2026-11-21T05:00:00Z",
        labels={"gang": "a"},
        annotations={"gang": "b"},
        owner=Owner("batch/v1", "Job", "j", "o1"),
        nominated_node="n2",
        version="42",
        termination_seconds=GRACE_SECONDS,
    )


def test_a_key_that_objects_name_is_kept_as_a_label_and_not_as_an_annotation():
    labels = LabelKeys(lambda key: key == "gang")
    labels.add("noise")
    pod = decode_pod(json.dumps(POD).encode(), labels.always, labels.keeps)
    assert pod.labels == {"gang": "a", "noise": "x"}
    assert pod.annotations == {"gang": "b"}


def test_a_pod_says_whether_it_has_resource_claims():
    claims = {"resourceClaims": [{"name": "gpu", "resourceClaimName": "one"}]}
    assert pod_from({"spec": claims}).has_claims
    assert not pod_from({"spec": {"resourceClaims": []}}).has_claims


def ending(**more):
    """The condition that kube-scheduler writes before it deletes a victim."""
    return {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"} | more


@pytest.mark.parametrize(
    ("conditions", "is_preempted"),
    [
        pytest.param([None, {"type": "Ready"}, ending()], True, id="by_kube_scheduler"),
        pytest.param([ending(reason="EvictionByEvictionAPI")], False, id="by_an_eviction"),
        pytest.param([ending(status="False")], False, id="not_any_more"),
        pytest.param([ending(type="Ready")], False, id="another_condition"),
        pytest.param([{"message": "PreemptionByScheduler"}], False, id="another_field"),
        pytest.param([], False, id="none"),
        pytest.param(None, False, id="null"),
        pytest.param({"PreemptionByScheduler": 1}, False, id="no_list"),
        pytest.param([{"type": 3, "reason": "PreemptionByScheduler"}], False, id="no_text"),
    ],
)
def test_a_pod_says_whether_it_ends_for_one_of_higher_priority(conditions, is_preempted):
    assert pod_from({"status": {"conditions": conditions}}).is_preempted is is_preempted


def test_a_pod_says_since_when_it_ends_for_one_of_higher_priority():
    at = "2026-01-01T00:00:07Z"
    conditions = [
        ending(type="Ready", lastTransitionTime="2025-01-01T00:00:00Z"),
        ending(lastTransitionTime=at),
    ]
    assert pod_from({"status": {"conditions": conditions}}).preempted_at == at
    assert pod_from({"status": {"conditions": [ending()]}}).preempted_at == ""


def test_an_empty_pod_is_a_record_of_zero_values():
    record = pod_from({})
    assert (record.key, record.node, record.owner) == ("/", "", None)
    assert record.shape == Shape()
    assert record.request == (("pods", 1),)
    assert not record.is_terminating
    assert not record.is_finished


def test_equal_shapes_are_one_object():
    assert pod_from(POD).shape is pod_from(POD).shape


def test_phases_and_deletion():
    finished = [pod_from({"status": {"phase": p}}).is_finished for p in ("Failed", "Succeeded")]
    assert finished == [True, True]
    assert not pod_from({"status": {"phase": "Running"}}).is_finished
    assert pod_from({"metadata": {"deletionTimestamp": "2026-11-21T05:00:00Z"}}).is_terminating


@pytest.mark.parametrize("terms", [[], None, [{}], [None]], ids=str)
def test_required_affinity_without_a_usable_term_matches_no_node(terms):
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    pod = {"spec": {"affinity": {"nodeAffinity": required}}}
    assert pod_from(pod).shape.terms == (Term(),)


def test_a_null_line_of_a_term_does_not_widen_it():
    lines = {"matchExpressions": [None, {"key": "rack", "operator": "Exists", "values": None}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [lines]}}
    (term,) = pod_from({"spec": {"affinity": {"nodeAffinity": required}}}).shape.terms
    assert term.expressions == (Requirement("", "", ()), Requirement("rack", "Exists", ()))


def preferring(*lines):
    preferred = {"preferredDuringSchedulingIgnoredDuringExecution": list(lines)}
    return pod_from({"spec": {"affinity": {"nodeAffinity": preferred}}}).shape


def test_preferred_affinity_is_not_a_constraint():
    assert preferring({"weight": 1}) == Shape()


def test_preferred_affinity_is_kept_with_weights_as_the_api_allows_them():
    term = {"matchExpressions": [{"key": "zone", "operator": "Exists"}]}
    lines = [{"weight": weight, "preference": term} for weight in (7, -3, 2**31 - 1, None)]
    zone = Term((Requirement("zone", "Exists", ()),))
    assert preferring(None, *lines) == Shape(
        preferred=((7, zone), (0, zone), (100, zone), (0, zone))
    )


def test_a_node_keeps_labels_taints_and_readiness():
    node = {
        "metadata": {"name": "n1", "uid": "u", "resourceVersion": "7", "labels": {"rack": "r1"}},
        "spec": {
            "unschedulable": True,
            "taints": [
                {"key": "gpu", "value": "yes", "effect": "NoSchedule"},
                {"key": "soft", "effect": "PreferNoSchedule"},
            ],
        },
        "status": {
            "allocatable": {"cpu": "8", "pods": "110"},
            "conditions": [
                {"type": "MemoryPressure", "status": "False"},
                {"type": "Ready", "status": "True"},
            ],
        },
    }
    assert decode_node(json.dumps(node).encode()) == NodeRecord(
        name="n1",
        uid="u",
        labels={"rack": "r1"},
        allocatable=(("cpu", 8000), ("pods", 110)),
        is_ready=True,
        is_unschedulable=True,
        taints=(Taint("gpu", "yes", "NoSchedule"), Taint("soft", "", "PreferNoSchedule")),
        version="7",
    )


@pytest.mark.parametrize("status", ["False", "Unknown", None])
def test_a_node_is_ready_only_if_it_says_true(status):
    node = {"status": {"conditions": [{"type": "Ready", "status": status}]}}
    assert not decode_node(json.dumps(node).encode()).is_ready


def nulled(value: Any) -> Any:
    """The same document with every leaf null."""
    if isinstance(value, dict):
        return {key: nulled(inner) for key, inner in value.items()}
    return [nulled(inner) for inner in value] if isinstance(value, list) else None


@pytest.mark.parametrize("decode", DECODERS.values(), ids=DECODERS)
@pytest.mark.parametrize(
    "document",
    [
        nulled(POD),
        {"metadata": None, "spec": None, "status": None},
        {"spec": {"containers": [None], "tolerations": [None], "taints": [None]}},
        {"status": {"conditions": [None], "allocatable": {"cpu": None}}},
        {"metadata": {"labels": {"a": None}, "ownerReferences": [None]}},
    ],
    ids=["every_leaf", "every_section", "list_elements", "conditions", "map_values"],
)
def test_nulls_are_zero_values(decode, document):
    assert decode(json.dumps(document).encode()) is not None


def test_a_pod_of_nulls_is_as_one_that_says_nothing():
    spec = {
        "tolerations": [None],
        "schedulingGates": [None],
        "containers": [None],
        "nodeSelector": None,
        "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": None}},
        "resourceClaims": None,
    }
    metadata = {"labels": {"other": None}, "annotations": None, "ownerReferences": [None]}
    assert pod_from({"metadata": metadata, "spec": spec, "status": {}}) == pod_from({})


def test_a_null_in_a_part_of_a_pod_is_the_empty_text():
    metadata = {
        "labels": {"gang": None},
        "ownerReferences": [{"kind": None, "controller": False}, {"controller": True}],
    }
    spec = {
        "nodeSelector": {"a": None},
        "tolerations": [{"key": None, "tolerationSeconds": 0}, {"value": None}],
        "schedulingGates": [{"name": None}],
    }
    record = pod_from({"metadata": metadata, "spec": spec})
    assert record.labels == {"gang": ""}
    assert record.owner == Owner("", "", "", "")
    assert record.shape.selector == (("a", ""),)
    assert record.shape.tolerations == (
        Toleration("", "Equal", "", "", True),
        Toleration("", "Equal", "", "", False),
    )
    assert record.gates == ("",)


def test_a_node_of_nulls_is_as_one_that_says_nothing():
    node = {
        "metadata": {"labels": None},
        "spec": {"taints": [None], "unschedulable": None},
        "status": {"conditions": [None], "allocatable": None, "capacity": None},
    }
    assert decode_node(json.dumps(node).encode()) == decode_node(b"{}")
    assert decode_node(b"{}") == NodeRecord(
        name="",
        uid="",
        labels={},
        allocatable=(),
        is_ready=False,
        is_unschedulable=False,
        taints=(),
        version="",
    )
    node = {"metadata": {"labels": {"rack": None}}, "spec": {"taints": [{}]}}
    record = decode_node(json.dumps(node).encode())
    assert (record.labels, record.taints) == ({"rack": ""}, (Taint("", "", ""),))


@pytest.mark.parametrize(
    ("metadata", "name"),
    [
        ({"namespace": "team", "name": "p", "labels": 7}, "Pod team/p: "),
        ({"name": "p", "labels": 7}, "Pod p: "),
        ({"namespace": "team", "labels": 7}, "Pod team/: "),
        ({"name": 7}, "Pod without a readable name: "),
    ],
)
def test_a_decode_error_names_the_object_as_far_as_it_says_its_name(metadata, name):
    with pytest.raises(DecodeError, match=f"^{name}"):
        pod_from({"metadata": metadata})


@pytest.mark.parametrize(
    ("metadata", "version"),
    [({"resourceVersion": "7"}, "7"), ({"resourceVersion": None}, ""), ({}, ""), (None, "")],
)
def test_the_version_of_any_object(metadata, version):
    assert decode_version(json.dumps({"metadata": metadata}).encode()) == version


@pytest.mark.parametrize(
    ("said", "name"),
    [
        pytest.param({"podGroupName": "train"}, "train", id="named"),
        pytest.param({"podGroupName": None}, "", id="null_name"),
        pytest.param({}, "", id="empty"),
        pytest.param(None, "", id="null"),
    ],
)
def test_a_pod_names_its_pod_group(said, name):
    small = pod_from({"spec": {"schedulingGroup": said}})
    filling = {"name": "c", "env": [{"name": "A", "value": "x" * LARGE}]}
    large = pod_from({"spec": {"schedulingGroup": said, "containers": [filling]}})
    assert (small.pod_group, large.pod_group) == (name, name)


@pytest.mark.parametrize(
    ("said", "seconds"), [(None, 0), (60, 60), (-1, 0), (2**40, MOST_DEADLINE_SECONDS)]
)
def test_a_pod_says_when_its_kubelet_ends_it(said, seconds):
    filling = {"name": "c", "env": [{"name": "A", "value": "x" * LARGE}]}
    for more in ({}, {"containers": [filling]}):
        spec = {"activeDeadlineSeconds": said, **more}
        assert pod_from({"spec": spec}).deadline_seconds == seconds


@pytest.mark.parametrize(
    ("said", "seconds"),
    [(None, GRACE_SECONDS), (0, 0), (300, 300), (-1, 0), (2**40, MOST_GRACE_SECONDS)],
)
def test_a_pod_says_how_long_it_may_take_to_end(said, seconds):
    filling = {"name": "c", "env": [{"name": "A", "value": "x" * LARGE}]}
    for more in ({}, {"containers": [filling]}):
        spec = {"terminationGracePeriodSeconds": said, **more}
        assert pod_from({"spec": spec}).termination_seconds == seconds


@pytest.mark.parametrize(
    ("policy", "preempts"), [(None, True), ("PreemptLowerPriority", True), ("Never", False)]
)
def test_a_pod_says_whether_it_may_preempt_others(policy, preempts):
    assert pod_from({"spec": {"preemptionPolicy": policy}}).preempts is preempts


@pytest.mark.parametrize("decode", DECODERS.values(), ids=DECODERS)
@pytest.mark.parametrize(
    "raw",
    [
        *(b"", b"null", b"[]", b"1", b'"pod"', b"{", b'{"metadata":', b"\xff\xfe", b"{}{}"),
        b'{"metadata":{"name":"\xff"}}',
        b'{"metadata":{"name":"\\ud800 alone"}}',
        b'{"metadata":{"name":7}}',
        b'{"metadata":[]}',
        b'{"deep":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
        b'{"metadata":' + b'{"labels":' * 100_000,
    ],
    ids=lambda raw: ascii(raw)[:32],
)
def test_what_is_not_such_an_object_is_a_decode_error(decode, raw):
    with pytest.raises(DecodeError):
        decode(raw)


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        pytest.param({"priority": 2**31}, "$.spec.priority", id="a_priority_beyond_int32"),
        pytest.param({"priority": "1"}, "$.spec.priority", id="a_text_for_a_number"),
        pytest.param({"nodeName": 1}, "$.spec.nodeName", id="a_number_for_a_text"),
        pytest.param({"containers": {}}, "$.spec.containers", id="an_object_for_a_list"),
        pytest.param(
            {"overhead": {"cpu": [1]}}, "$.spec.overhead[...]", id="a_list_for_a_quantity"
        ),
    ],
)
def test_a_decode_error_names_object_and_field(spec, field):
    raw = json.dumps({"metadata": {"namespace": "team", "name": "p"}, "spec": spec}).encode()
    with pytest.raises(DecodeError) as refused:
        decode_pod(raw, lambda _key: True)
    assert "Pod team/p" in str(refused.value)
    assert field in str(refused.value)


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=5,
)


@given(data=st.data())
def test_any_value_in_any_field_is_a_record_or_a_decode_error(data):
    pod = json.loads(json.dumps(POD))
    place = pod
    while True:
        key = data.draw(st.sampled_from(sorted(place)))
        if not isinstance(place[key], dict) or data.draw(st.booleans()):
            break
        place = place[key]
    place[key] = data.draw(JSON_VALUES)
    try:
        record = pod_from(pod)
    except DecodeError:
        return
    assert isinstance(record, PodRecord)


@given(st.binary(max_size=60))
def test_any_bytes_are_a_record_or_a_decode_error(raw):
    for decode in DECODERS.values():
        try:
            record = decode(raw)
        except DecodeError:
            continue
        assert record is not None


def test_views_and_raw_parts_of_a_larger_body_decode_alike():
    raw = json.dumps(POD).encode()
    expected = pod_from(POD)
    assert decode_pod(memoryview(raw), lambda key: key == "gang") == expected
    assert decode_pod(msgspec.Raw(raw), lambda key: key == "gang") == expected


def test_records_survive_a_round_trip_through_json():
    record = pod_from(POD)
    assert msgspec.json.decode(msgspec.json.encode(record), type=PodRecord) == record


def marked(**more: object) -> dict[str, Any]:
    """A gated pod whose condition says that no node takes it."""
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", **more}
    spec = {"schedulingGates": [{"name": "corral.dev/gang"}]}
    others = [{"type": "Ready", "status": "False"}, None]
    status = {"conditions": [*others, condition]}
    return {"metadata": {"name": "p"}, "spec": spec, "status": status}


def test_a_gated_pod_is_marked_by_the_condition_that_autoscalers_look_for():
    assert pod_from(marked()).is_marked


@pytest.mark.parametrize(
    "more",
    [
        {"reason": "SchedulingGated"},
        {"reason": "SchedulerError"},
        {"status": "True"},
        {"type": "Ready"},
        {"reason": None, "message": "Unschedulable"},
    ],
)
def test_no_other_condition_is_a_mark(more):
    assert not pod_from(marked(**more)).is_marked


def test_a_pod_without_a_gate_has_no_mark():
    pod = marked()
    del pod["spec"]["schedulingGates"]
    assert not pod_from(pod).is_marked


def test_a_mark_alone_is_no_news_of_a_pod():
    before = pod_from({**marked(), "status": {}})
    assert pod_from(marked()).repeats(before)
