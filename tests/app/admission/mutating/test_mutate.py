"""What the webhook changes in a pod, and what it leaves alone.

Source: KEP-976; kueue pkg/controller/jobs/pod/pod_webhook.go (v0.16).
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.admission.mutating.mutate import adds_gate, mutate
from app.admission.namespaces import METADATA_NAME, Namespaces
from app.admission.operations import Operation
from app.admission.scope import Scope
from app.dialects.registry import DIALECTS, Dialects
from app.errors import DecodeError
from app.labels import selector_from_text
from app.settings import EngineOptions
from tests.app.admission.port import BESIDE_KUEUE, SCOPE, patched
from tests.cluster import RACK, Object, pod
from tests.workloads import GROUP, TOTAL, asking, member

GATE = {"name": "corral.dev/gang"}
MANAGED = "corral.dev/managed"
ROLE_HASH = "kueue.x-k8s.io/role-hash"
INDEX = "kueue.x-k8s.io/pod-group-pod-index"
INDEX_LABEL = "kueue.x-k8s.io/pod-group-pod-index-label"
QUEUE = {"kueue.x-k8s.io/queue-name": "team"}
IN_RACK = asking(required=RACK)
OUTSIDE_SYSTEM = replace(
    SCOPE, namespaces=Namespaces(selector_from_text(f"{METADATA_NAME}!=kube-system"))
)


def operations(
    thing: Object, scope: Scope = SCOPE, dialects: Dialects = DIALECTS
) -> list[Operation]:
    namespace = thing["metadata"].get("namespace", "")
    return mutate(json.dumps(thing).encode(), namespace, scope, dialects).operations


def after(thing: Object, scope: Scope = SCOPE) -> Any:
    """The pod as the API server goes on with it."""
    return patched(thing, msgspec.to_builtins(operations(thing, scope)))


def of_job(thing: Object) -> Object:
    """The pod as a Job's controller makes it."""
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "u", "controller": True}
    return {**thing, "metadata": {**thing["metadata"], "ownerReferences": [owner]}}


def with_labels(thing: Object, **labels: str) -> Object:
    return {**thing, "metadata": {**thing["metadata"], "labels": labels}}


@pytest.mark.parametrize(
    "thing",
    [
        pytest.param(pod("p", annotations=IN_RACK), id="required"),
        pytest.param(pod("p", annotations=asking(preferred=RACK)), id="preferred"),
        pytest.param(pod("p", annotations=asking(unconstrained=True)), id="unconstrained"),
        pytest.param(member("g", 0, 2), id="group_as_annotation"),
        pytest.param(pod("p", labels={GROUP: "g"}, annotations={TOTAL: "2"}), id="group_as_label"),
        pytest.param(pod("p", labels={GROUP: "g"}), id="group_without_its_size"),
        pytest.param(pod("p", annotations={**IN_RACK, GROUP: "a b"}), id="mistaken_group"),
        pytest.param(pod("p", labels=QUEUE), id="queue_name_alone"),
    ],
)
def test_a_pod_of_a_gang_gets_the_gate_and_the_managed_label(thing):
    changed = after(thing)
    assert changed["spec"]["schedulingGates"] == [GATE]
    assert changed["metadata"]["labels"][MANAGED] == "true"
    assert adds_gate(operations(thing))


@pytest.mark.parametrize(
    "thing",
    [
        pytest.param(pod("p"), id="ordinary"),
        pytest.param(of_job(pod("p", labels=QUEUE)), id="queue_name_alone_on_a_jobs_pod"),
        pytest.param(
            pod("p", annotations=IN_RACK, scheduler="default-scheduler"), id="of_another_scheduler"
        ),
        pytest.param(pod("p", annotations=asking()), id="asks_for_nothing"),
        pytest.param(pod("p", annotations=IN_RACK, nodeName="n1"), id="bound_already"),
        pytest.param(pod("p", annotations=IN_RACK, namespace="kube-system"), id="excluded"),
        pytest.param(pod("p", annotations=IN_RACK, labels={MANAGED: "false"}), id="opted_out"),
    ],
)
def test_other_pods_are_left_alone(thing):
    assert operations(thing, OUTSIDE_SYSTEM) == []


@pytest.mark.parametrize(
    ("labels", "namespace", "is_taken"),
    [
        pytest.param({"team": "a"}, "default", True, id="both_select_it"),
        pytest.param({"team": "b"}, "default", False, id="the_pod_selector_does_not"),
        pytest.param({}, "default", False, id="without_the_label"),
        pytest.param({"team": "a"}, "kube-system", False, id="the_namespace_selector_does_not"),
    ],
)
def test_976_a_pod_is_taken_in_where_both_selectors_select_it(labels, namespace, is_taken):
    scope = replace(OUTSIDE_SYSTEM, pods=selector_from_text("team in (a)"))
    thing = pod("p", annotations=IN_RACK, labels=labels, namespace=namespace)
    assert bool(operations(thing, scope)) is is_taken


def test_several_schedulers_may_be_ours():
    scope = replace(SCOPE, scheduler_name="corral, kai-scheduler")
    for name, is_taken in (("corral", True), ("kai-scheduler", True), ("stock", False)):
        thing = pod("p", annotations=IN_RACK, scheduler=name)
        assert bool(operations(thing, scope)) is is_taken


def test_any_scheduler_is_ours_where_none_is_named():
    thing = pod("p", annotations=IN_RACK, scheduler="default-scheduler")
    assert after(thing, replace(SCOPE, scheduler_name=""))["spec"]["schedulingGates"] == [GATE]


@pytest.mark.parametrize(
    "thing",
    [
        pytest.param(pod("p", annotations=IN_RACK), id="empty_labels"),
        pytest.param(pod("p", labels={"app": "x"}, annotations=IN_RACK), id="labels"),
        pytest.param(pod("p", annotations=IN_RACK, gates=["example.com/quota"]), id="gates"),
    ],
)
def test_what_is_there_stays(thing):
    changed = after(thing)
    assert changed["metadata"]["labels"] == {**thing["metadata"]["labels"], MANAGED: "true"}
    before = thing["spec"].get("schedulingGates", [])
    assert changed["spec"]["schedulingGates"] == [*before, GATE]
    assert changed["metadata"]["annotations"] == thing["metadata"]["annotations"]


def test_fields_that_do_not_exist_yet_are_made():
    thing = pod("p", labels={GROUP: "g"})
    del thing["metadata"]["annotations"]
    assert list(after(thing)["metadata"]["annotations"]) == [ROLE_HASH]


def test_a_second_call_changes_nothing():
    thing = member("g", 0, 2, annotations={INDEX_LABEL: "job-index"})
    thing["metadata"]["labels"] = {"job-index": "1"}
    once = after(thing)
    assert operations(once) == []


def test_the_index_label_is_copied_from_the_label_that_is_named():
    thing = member("g", 0, 2, annotations={INDEX_LABEL: "example.com/rank"})
    changed = after(with_labels(thing, **{"example.com/rank": "1"}))
    assert changed["metadata"]["labels"][INDEX] == "1"


def test_a_missing_source_gives_an_empty_index():
    changed = after(member("g", 0, 2, annotations={INDEX_LABEL: "example.com/rank"}))
    assert changed["metadata"]["labels"][INDEX] == ""


def test_the_named_label_wins_over_an_index_of_the_pods_own():
    thing = member("g", 0, 2, annotations={INDEX_LABEL: "rank"})
    assert after(with_labels(thing, rank="1", **{INDEX: "0"}))["metadata"]["labels"][INDEX] == "1"


def test_members_of_a_group_carry_their_role():
    one, other, large = (
        after(thing)["metadata"]["annotations"][ROLE_HASH]
        for thing in (
            member("g", 0, 3),
            member("g", 1, 3),
            member("g", 2, 3, requests={"cpu": "31"}),
        )
    )
    assert one == other != large


def test_a_role_that_is_there_is_trusted():
    changed = after(member("g", 0, 2, annotations={ROLE_HASH: "driver"}))
    assert changed["metadata"]["annotations"][ROLE_HASH] == "driver"


def test_976_the_role_is_told_by_the_rules_that_are_set():
    things = [member("g", 0, 2), member("g", 1, 2)]
    for thing, image in zip(things, ("driver", "worker"), strict=True):
        thing["spec"]["containers"][0]["image"] = image
    roles = {
        rules: [
            mutate(json.dumps(each).encode(), "team", SCOPE, DIALECTS, rules).operations
            for each in things
        ]
        for rules in ("kueue", "kep")
    }
    assert roles["kueue"][0] == roles["kueue"][1]
    assert roles["kep"][0] != roles["kep"][1]


def test_a_pod_of_no_group_has_no_role():
    assert ROLE_HASH not in after(pod("p", annotations=IN_RACK))["metadata"]["annotations"]


KUEUES = [
    pytest.param({"labels": {"kueue.x-k8s.io/managed": "true"}}, id="managed_label"),
    pytest.param({"gates": ["kueue.x-k8s.io/admission"]}, id="admission_gate"),
    pytest.param({"gates": ["kueue.x-k8s.io/topology"]}, id="topology_gate"),
    pytest.param({"labels": {"kueue.x-k8s.io/podset": "main"}}, id="pod_of_a_managed_job"),
    pytest.param(
        {"annotations": {**IN_RACK, "kueue.x-k8s.io/workload": "job-x"}}, id="pod_of_a_workload"
    ),
]


@pytest.mark.parametrize("fields", KUEUES)
def test_hands_off_what_kueue_manages(fields):
    assert operations(pod("p", **{"annotations": IN_RACK, **fields})) == []


def test_a_queue_name_is_kueues_only_where_kueue_runs():
    for thing in (pod("p", annotations=IN_RACK, labels=QUEUE), pod("p", labels=QUEUE)):
        assert adds_gate(operations(thing))
        assert operations(thing, dialects=BESIDE_KUEUE) == []


def test_a_pod_of_a_native_pod_group_is_gated_only_where_corral_starts_them():
    on = DIALECTS.configured(EngineOptions(native_pod_groups="on"))
    thing = pod("p", schedulingGroup={"podGroupName": "train"})
    assert adds_gate(operations(thing, dialects=on))
    assert operations(thing) == []


@pytest.mark.parametrize("label", [{MANAGED: "true"}, {}], ids=["with_our_label", "without_it"])
@pytest.mark.parametrize("fields", KUEUES)
def test_a_pod_that_kueue_took_in_after_us_is_given_back(fields, label):
    thing = pod("p", **{"annotations": IN_RACK, **fields})
    ours = {**label, **thing["metadata"]["labels"]}
    gates = [GATE, *thing["spec"].get("schedulingGates", [])]
    taken = {
        **thing,
        "metadata": {**thing["metadata"], "labels": ours},
        "spec": {**thing["spec"], "schedulingGates": gates},
    }
    changed = after(taken)
    assert changed["spec"]["schedulingGates"] == gates[1:]
    assert changed["metadata"]["labels"] == thing["metadata"]["labels"]
    assert not adds_gate(operations(taken))


@pytest.mark.parametrize(
    "raw",
    [
        pytest.param(b"", id="empty"),
        pytest.param(b"null", id="null"),
        pytest.param(b"[]", id="array"),
        pytest.param(b'{"spec":{"schedulingGates":{}}}', id="gates_that_are_no_list"),
        pytest.param(b'{"metadata":{"labels":{"a":1}}}', id="label_that_is_no_string"),
        pytest.param(b"[" * 100_000, id="deep"),
        pytest.param(b'{"metadata":{"name":"\\ud800"}}', id="lone_surrogate"),
    ],
)
def test_what_is_no_pod_is_an_error(raw):
    with pytest.raises(DecodeError):
        mutate(raw, "team", SCOPE, DIALECTS)


STRINGS = st.sampled_from(
    ["", "true", "false", "g", "a/b", "~", "1", "kueue.x-k8s.io/x", "é\u202e"]
)
KEYS = st.sampled_from(
    [GROUP, TOTAL, INDEX, INDEX_LABEL, MANAGED, ROLE_HASH, *IN_RACK, "a~b/c~1", "app"]
)


@given(
    labels=st.none() | st.dictionaries(KEYS, STRINGS),
    annotations=st.none() | st.dictionaries(KEYS, STRINGS),
    gates=st.none() | st.lists(st.sampled_from(["x.y/z", "corral.dev/gang"]), unique=True),
)
def test_any_pod_can_be_patched_and_is_at_rest_after_it(labels, annotations, gates):
    given = {"labels": labels, "annotations": annotations}
    thing: Object = {
        "metadata": {"name": "p", **{k: v for k, v in given.items() if v is not None}},
        "spec": {"schedulerName": "corral"} | ({} if gates is None else {"schedulingGates": gates}),
    }
    if gates is not None:
        thing["spec"]["schedulingGates"] = [{"name": gate} for gate in gates]
    changed = after(thing)
    assert operations(changed) == []
    names = [gate["name"] for gate in changed["spec"].get("schedulingGates", [])]
    assert names[: len(gates or [])] == (gates or [])


MARKED = {"corral.dev/member": "1", "corral.dev/member-bind": "1"}


def marked(thing: Object, dialects: Dialects = DIALECTS) -> Any:
    """The pod where members get the markers."""
    raw = json.dumps(thing).encode()
    change = mutate(raw, "default", SCOPE, dialects, marks=True)
    return patched(thing, msgspec.to_builtins(change.operations))


def with_containers(*resources: Any) -> Object:
    """A member with containers of these resources; None: it says nothing of them."""
    containers = [
        {"name": f"c{at}", "image": "a"} | ({} if each is None else {"resources": each})
        for at, each in enumerate(resources)
    ]
    return member("g", 0, 2, containers=containers)


@pytest.mark.parametrize(
    "resources",
    [
        pytest.param(None, id="none_said"),
        pytest.param({}, id="empty"),
        pytest.param({"requests": {"cpu": "1"}}, id="requests"),
        pytest.param({"limits": {"cpu": "1"}, "requests": {"cpu": "1"}}, id="both"),
        pytest.param({"limits": None, "requests": None}, id="null"),
    ],
)
def test_a_member_gets_the_markers_in_its_first_container(resources):
    first, second = marked(with_containers(resources, {}))["spec"]["containers"]
    for part in ("requests", "limits"):
        own = (resources or {}).get(part) or {}
        assert first["resources"][part] == {**own, **MARKED}
    assert second["resources"] == {}


def test_a_second_call_adds_no_marker():
    once = marked(member("g", 0, 2))
    assert marked(once) == once


def test_markers_that_a_pod_has_anywhere_are_left_as_they_are():
    own = {"limits": {"corral.dev/member": "3"}, "requests": {"corral.dev/member": "3"}}
    first, second = marked(with_containers({}, own))["spec"]["containers"]
    rest = {"corral.dev/member-bind": "1"}
    assert first["resources"] == {"limits": rest, "requests": rest}
    assert second["resources"] == own


@pytest.mark.parametrize(
    "thing",
    [
        pytest.param(pod("p"), id="ordinary"),
        pytest.param(member("g", 0, 2, labels={MANAGED: "false"}), id="opted_out"),
        pytest.param(member("g", 0, 2, labels={"kueue.x-k8s.io/managed": "true"}), id="kueues"),
    ],
)
def test_pods_that_are_not_taken_in_get_no_marker(thing):
    assert marked(thing) == thing


def test_a_pod_whose_operator_takes_gates_off_gets_the_markers_and_no_gate():
    changed = marked(pod("p", labels={"grove.io/podgang": "g", "grove.io/podclique": "w"}))
    assert changed["spec"]["containers"][0]["resources"]["limits"].items() >= MARKED.items()
    assert "schedulingGates" not in changed["spec"]


def test_no_member_gets_a_marker_unless_it_is_wanted():
    assert not [each for each in operations(member("g", 0, 2)) if "resources" in each.path]
