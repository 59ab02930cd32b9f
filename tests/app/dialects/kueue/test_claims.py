"""What pods say, and what we understand of it. Sections are those of KEP-2724 and KEP-976."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.dialects.kueue.annotations import INDEX_OFFSET, POD_SET_GROUP, ROLE_HASH
from app.dialects.registry import DIALECTS
from app.dialects.spec import GangKey, Index
from app.kube.core.objects import Owner, PodRecord
from tests.app.dialects.claims import claim_of, flaw_of
from tests.app.dialects.kueue.test_group_rules import BROKEN as BROKEN_GROUPS
from tests.app.dialects.kueue.test_rules import BROKEN as BROKEN_POD_SETS
from tests.records import (
    BLOCK,
    GROUP,
    PREFERRED,
    RACK,
    REQUIRED,
    SLICE_LAYERS,
    SLICE_LEVEL,
    SLICE_SIZE,
    TOTAL,
    UNCONSTRAINED,
    group,
    job_owner,
    pod,
)
from tests.workload_pods import group_pods
from topology.model.request import Constraint, Slice

INDEX = "batch.kubernetes.io/job-completion-index"
LABEL_KEY = "must be the key of a node label"


@pytest.mark.parametrize(
    ("annotations", "constraint"),
    [
        pytest.param({REQUIRED: RACK}, Constraint(required=RACK), id="required"),
        pytest.param({PREFERRED: BLOCK}, Constraint(preferred=BLOCK), id="preferred"),
        pytest.param({UNCONSTRAINED: "true"}, Constraint(), id="unconstrained"),
        pytest.param({UNCONSTRAINED: "T"}, Constraint(), id="as_go_spells_true"),
    ],
)
def test_a_topology_annotation_alone_makes_a_gang_of_one(annotations, constraint):
    claim = claim_of(pod("p", annotations=annotations))
    assert claim.said.constraint == constraint
    assert claim.gang == GangKey("default", "p", "pod", "uid-p")
    assert claim.said.pods == 1


@pytest.mark.parametrize(
    "annotations",
    [
        pytest.param({}, id="none"),
        pytest.param({UNCONSTRAINED: "false"}, id="unconstrained_false_asks_for_nothing"),
        pytest.param({"example.com/other": "x"}, id="foreign_annotations"),
    ],
)
def test_a_pod_that_asks_for_nothing_is_ordinary(annotations):
    assert DIALECTS.claim(pod("p", annotations=annotations)) is None


# -- a queue name alone --------------------------------------------------------------------------

QUEUED = {"kueue.x-k8s.io/queue-name": "team"}


@pytest.mark.parametrize(
    "owner",
    [
        pytest.param(None, id="plain"),
        pytest.param(Owner("apps/v1", "ReplicaSet", "web-5d9", "u"), id="of_a_replica_set"),
        pytest.param(Owner("example.com/v1", "Workflow", "w", "u"), id="of_an_unknown_owner"),
    ],
)
def test_story_1_a_queue_name_alone_makes_a_gang_of_one(owner):
    claim = claim_of(pod("foo", labels=QUEUED, owner=owner))
    assert claim.gang == GangKey("default", "foo", "pod", "uid-foo")
    assert claim.said.pods == 1
    assert claim.said.constraint == Constraint()


@pytest.mark.parametrize(
    "owner",
    [
        pytest.param(job_owner("j"), id="job"),
        pytest.param(Owner("apps/v1", "StatefulSet", "s", "u"), id="stateful_set"),
        pytest.param(Owner("kubeflow.org/v1", "PyTorchJob", "t", "u"), id="kubeflow"),
        pytest.param(Owner("ray.io/v1", "RayCluster", "r", "u"), id="ray"),
        pytest.param(Owner("v1", "Pod", "driver", "u"), id="spark_executor"),
        pytest.param(Owner("apps/v1", "DaemonSet", "d", "u"), id="daemon_set"),
    ],
)
def test_story_1_pods_that_are_queued_with_others_or_bound_to_a_node_stay_ordinary(owner):
    labels = {**QUEUED, "training.kubeflow.org/job-name": "t"}
    assert DIALECTS.claim(pod("foo", labels=labels, owner=owner)) is None


def test_an_empty_queue_name_is_none():
    assert DIALECTS.claim(pod("foo", labels={"kueue.x-k8s.io/queue-name": ""})) is None


def test_a_queue_name_beside_a_group_or_a_topology_changes_nothing():
    for said in (group("g", 3), {REQUIRED: RACK}):
        queued = pod("foo", labels=QUEUED, annotations=said)
        assert claim_of(queued) == claim_of(pod("foo", annotations=said))


def test_queued_pods_of_an_unknown_owner_that_ask_for_something_together_are_refused():
    owner = Owner("apps/v1", "ReplicaSet", "web-5d9", "u")
    together = {"corral.dev/workload-required-topology": RACK}
    flaw = flaw_of(pod("foo", labels=QUEUED, annotations=together, owner=owner))
    assert "its controller is the ReplicaSet web-5d9, whose size" in flaw


@pytest.mark.parametrize("key", ["required", "preferred"])
def test_what_is_requested_of_all_pods_of_a_workload_makes_its_pods_members(key):
    said = {f"corral.dev/workload-{key}-topology": RACK}
    claim = claim_of(pod("p", annotations=said, owner=job_owner("j")))
    assert claim.gang == GangKey("default", "j", "job", "uid-job-j")
    assert getattr(claim.said.together, key) == RACK


# -- groups --------------------------------------------------------------------------------------


def test_a_group_is_named_by_label_or_annotation():
    by_label = claim_of(pod("p", labels={GROUP: "g"}, annotations={TOTAL: "3"}))
    by_annotation = claim_of(pod("p", annotations=group("g", 3)))
    assert by_label == by_annotation
    assert by_label.gang == GangKey("default", "g", "group")
    assert (by_label.said.pods, by_label.said.where) == (3, f"annotation {TOTAL}")


def test_a_groups_name_wins_over_the_owning_job():
    claim = claim_of(pod("p", annotations=group("g", 3), owner=job_owner("j")))
    assert claim.gang.source == "group"


def test_jobs_of_the_same_name_and_other_uid_are_other_gangs():
    claims = [
        claim_of(pod("p", annotations={REQUIRED: RACK}, owner=Owner("batch/v1", "Job", "j", uid)))
        for uid in ("one", "two")
    ]
    assert claims[0].gang != claims[1].gang
    assert str(claims[0].gang) == str(claims[1].gang) == "default/j"


def test_what_the_pods_of_a_template_say_is_one_object():
    one, other = (claim_of(pod(name, annotations=group("g", 2, RACK))) for name in "ab")
    assert one.said is other.said


NUMBER = "must be a numeric value"
AT_LEAST_1 = "must be greater than or equal to 1"
BOTH = f"both the '{TOTAL}' annotation and the '{GROUP}' label should be set"


@pytest.mark.parametrize(
    ("annotations", "labels", "told"),
    [
        pytest.param(
            {REQUIRED: RACK, PREFERRED: RACK},
            {},
            "annotations: Invalid value: must not contain more than one topology annotation",
            id="two_modes",
        ),
        pytest.param(
            {REQUIRED: "no key"},
            {},
            f'annotations[{REQUIRED}]: Invalid value: "no key": {LABEL_KEY}',
            id="not_a_label_key",
        ),
        pytest.param(
            {PREFERRED: ""},
            {},
            f'annotations[{PREFERRED}]: Invalid value: "": {LABEL_KEY}',
            id="empty_level",
        ),
        pytest.param(
            {UNCONSTRAINED: "yes"},
            {},
            f'annotations[{UNCONSTRAINED}]: Invalid value: "yes": must be a boolean value',
            id="no_boolean",
        ),
        pytest.param(
            {GROUP: "g"},
            {},
            f"annotations[{TOTAL}]: Required value: {BOTH}",
            id="group_without_total_count",
        ),
        pytest.param(
            {TOTAL: "3"},
            {},
            f"labels[{GROUP}]: Required value: {BOTH}",
            id="total_count_without_group",
        ),
        pytest.param(
            {GROUP: "", TOTAL: "1"},
            {},
            f'annotations[{GROUP}]: Invalid value: "": must be a lowercase RFC 1123 subdomain',
            id="empty_group_name",
        ),
        *(
            pytest.param(
                group("g", total),
                {},
                f'annotations[{TOTAL}]: Invalid value: "{total}": {text}',
                id=name,
            )
            for name, total, text in (
                ("zero", "0", AT_LEAST_1),
                ("negative", "-1", AT_LEAST_1),
                ("fraction", "1.5", NUMBER),
                ("other_digits", "٣", NUMBER),
                ("enormous", "9" * 30, NUMBER),
            )
        ),
        pytest.param(
            group("g", 2),
            {GROUP: "h"},
            f'labels[{GROUP}]: Invalid value: "h": must be equal to the annotation "g"',
            id="two_names",
        ),
    ],
)
def test_a_claim_that_cannot_be_meant_names_pod_field_and_value(annotations, labels, told):
    flaw = flaw_of(pod("p", annotations=annotations, labels=labels))
    assert flaw.startswith(f"pod default/p: metadata.{told}")


def test_a_flaw_in_a_group_names_the_group():
    claim = DIALECTS.claim(pod("p", annotations=group("g", "x")))
    assert claim is not None
    assert claim.flaw != ""
    assert claim.gang == GangKey("default", "g", "group")


@pytest.mark.parametrize(
    ("index", "rank"),
    [("0", 0), ("17", 17), ("-1", None), ("x", None), ("", None), ("٣", None)],
)
def test_ranks_come_from_the_completion_index(index, rank):
    annotations = {REQUIRED: RACK, INDEX: index}
    claim = claim_of(pod("p", annotations=annotations, owner=job_owner("j")))
    assert (claim.index.index if claim.index else None) == rank


def test_every_key_that_is_read_is_kept():
    for key in (REQUIRED, PREFERRED, UNCONSTRAINED, GROUP, TOTAL, INDEX):
        assert DIALECTS.keeps(key)
    assert not DIALECTS.keeps("kubectl.kubernetes.io/last-applied-configuration")


# -- slices --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("annotations", "slices"),
    [
        pytest.param({REQUIRED: BLOCK}, (), id="none"),
        pytest.param({SLICE_LEVEL: RACK, SLICE_SIZE: "4"}, (Slice(4, RACK),), id="one_layer"),
        pytest.param(
            {
                REQUIRED: BLOCK,
                SLICE_LAYERS: json.dumps(
                    [{"topology": BLOCK, "size": 8}, {"topology": RACK, "size": 4, "more": 1}]
                ),
            },
            (Slice(8, BLOCK), Slice(4, RACK)),
            id="two_layers_and_unknown_fields",
        ),
    ],
)
def test_slices_are_read_coarsest_first(annotations, slices):
    claim = claim_of(pod("p", annotations={**group("g", 8), **annotations}))
    assert claim.said.slices == slices


def layers(*sizes: object, level: str = RACK) -> dict[str, str]:
    return {
        SLICE_LAYERS: json.dumps(
            [{"topology": f"{level}{place}", "size": size} for place, size in enumerate(sizes)]
        )
    }


ENTRIES = "topology constraints must contain between 1 and 3 entries"


@pytest.mark.parametrize(
    ("annotations", "field", "told"),
    [
        pytest.param(
            {SLICE_LEVEL: RACK}, SLICE_SIZE, "Required value: must be set when", id="level_alone"
        ),
        pytest.param(
            {SLICE_SIZE: "2"},
            SLICE_SIZE,
            f"Forbidden: may not be set when '{SLICE_LEVEL}' is not specified",
            id="size_alone",
        ),
        pytest.param(
            {SLICE_LEVEL: RACK, SLICE_SIZE: "0"},
            SLICE_SIZE,
            f'Invalid value: "0": {AT_LEAST_1}',
            id="size_0",
        ),
        pytest.param(
            {SLICE_LEVEL: RACK, SLICE_SIZE: "two"},
            SLICE_SIZE,
            f'Invalid value: "two": {NUMBER}',
            id="size_is_text",
        ),
        pytest.param(
            {SLICE_LEVEL: "no key", SLICE_SIZE: "2"},
            SLICE_LEVEL,
            f'Invalid value: "no key": {LABEL_KEY}',
            id="not_a_label_key",
        ),
        pytest.param(
            {**layers(4), SLICE_LEVEL: RACK, SLICE_SIZE: "2"},
            SLICE_LAYERS,
            f"Forbidden: may not be set when '{SLICE_LEVEL}' is specified",
            id="both_forms",
        ),
        pytest.param(
            {SLICE_LAYERS: "[{"},
            SLICE_LAYERS,
            'Invalid value: "[{": must be a valid JSON array: ',
            id="broken_json",
        ),
        pytest.param(layers(), SLICE_LAYERS, f'Invalid value: "[]": {ENTRIES}', id="no_layer"),
        pytest.param(
            layers(8, 3),
            f"{SLICE_LAYERS}][1].size",
            "Invalid value: 3: must evenly divide the parent layer size 8",
            id="not_dividing",
        ),
        pytest.param(
            layers(8, 0),
            f"{SLICE_LAYERS}][1].size",
            f"Invalid value: 0: {AT_LEAST_1}",
            id="zero_below",
        ),
        pytest.param(
            layers(4, level="no key"),
            f"{SLICE_LAYERS}][0].topology",
            f'Invalid value: "no key0": {LABEL_KEY}',
            id="layer_of_no_label",
        ),
        pytest.param(
            {SLICE_LAYERS: json.dumps([{"topology": RACK, "size": 4}] * 2)},
            f"{SLICE_LAYERS}][1].topology",
            f'Duplicate value: "{RACK}": also at index 0',
            id="twice",
        ),
    ],
)
def test_slices_that_cannot_be_meant_name_field_and_value(annotations, field, told):
    flaw = flaw_of(pod("p", annotations={**group("g", 8), **annotations}))
    closed = field if "]" in field else f"{field}]"
    assert flaw.startswith(f"pod default/p: metadata.annotations[{closed}: {told}")


@pytest.mark.parametrize(
    ("annotations", "value", "text"),
    [
        pytest.param(layers("4"), "4", "Expected `int`", id="size_in_quotes"),
        pytest.param(layers(16, 8, 4, 2), "16", ENTRIES, id="four_layers"),
    ],
)
def test_layers_that_cannot_be_meant_are_shown_whole(annotations, value, text):
    flaw = flaw_of(pod("p", annotations={**group("g", 8), **annotations}))
    shown = json.dumps(annotations[SLICE_LAYERS])
    assert value in shown
    assert flaw.startswith(
        f"pod default/p: metadata.annotations[{SLICE_LAYERS}]: Invalid value: {shown}: "
    )
    assert text in flaw


def test_a_slice_size_beside_layers_is_a_flaw_that_names_it():
    flaw = flaw_of(pod("p", annotations={**group("g", 8), **layers(4), SLICE_SIZE: "2"}))
    assert f"annotations[{SLICE_SIZE}]: Forbidden: " in flaw


# -- offsets, roles, pod set groups --------------------------------------------------------------


@pytest.mark.parametrize(
    ("annotations", "index"),
    [
        pytest.param({INDEX_OFFSET: "1"}, Index(3, offset=1), id="offset"),
        pytest.param({}, Index(3), id="none"),
    ],
)
def test_an_offset_says_where_numbers_begin(annotations, index):
    made = pod(
        "p",
        owner=job_owner("j"),
        labels={INDEX: "3"},
        annotations={REQUIRED: RACK, **annotations},
    )
    assert claim_of(made).index == index


@pytest.mark.parametrize("offset", ["-1", "x", "1.5"])
def test_an_offset_that_is_none_is_a_flaw(offset):
    flaw = flaw_of(pod("p", annotations={REQUIRED: RACK, INDEX_OFFSET: offset}))
    assert flaw == (
        f"pod default/p: metadata.annotations[{INDEX_OFFSET}]: "
        f'Invalid value: "{offset}": must be a non-negative integer'
    )


def test_a_role_hash_names_the_leaf_of_a_group():
    annotations = {GROUP: "g", TOTAL: "2", ROLE_HASH: "1a2b3c4d"}
    assert claim_of(pod("p", annotations=annotations)).leaf == "1a2b3c4d"


LONG = "g" * 257


@pytest.mark.parametrize(
    ("annotations", "told"),
    [
        pytest.param(
            {POD_SET_GROUP: ""}, 'Invalid value: "": must have 1 to 256 characters', id="empty"
        ),
        pytest.param(
            {POD_SET_GROUP: LONG},
            f'Invalid value: "{LONG[:256]}…": must have 1 to 256 characters',
            id="too_long",
        ),
        pytest.param(
            {POD_SET_GROUP: "17"}, 'Invalid value: "17": must not be a number', id="number"
        ),
        pytest.param(
            {POD_SET_GROUP: "g", SLICE_SIZE: "2", SLICE_LEVEL: RACK},
            f"Forbidden: may not be set when '{SLICE_LEVEL}' is specified",
            id="slices",
        ),
    ],
)
def test_a_pod_set_group_that_cannot_be_meant(annotations, told):
    flaw = flaw_of(pod("p", annotations={REQUIRED: RACK, **annotations}))
    assert flaw.startswith(f"pod default/p: metadata.annotations[{POD_SET_GROUP}]: {told}")


def test_a_pod_set_group_needs_a_level():
    flaw = flaw_of(pod("p", annotations={POD_SET_GROUP: "g"}))
    assert f"annotations[{POD_SET_GROUP}]: Forbidden: may not be set when neither" in flaw


# -- what is read and what is refused ------------------------------------------------------------

BROKEN = {
    **{
        name: replace(case, annotations={**group("g", 8), **case.annotations})
        for name, case in BROKEN_POD_SETS.items()
    },
    **BROKEN_GROUPS,
}


def agree(record: PodRecord) -> None:
    """What reading a pod tells is the first rule it breaks that is fatal, and nothing else."""
    claim = DIALECTS.claim(record)
    fatal = [str(flaw) for flaw in DIALECTS.rules(record, None) if flaw.is_fatal]
    if claim is not None:
        told = f"pod {record.namespace}/{record.name}: {fatal[0]}" if fatal else ""
        assert claim.flaw == told


@pytest.mark.parametrize("case", BROKEN.values(), ids=BROKEN)
def test_reading_a_pod_tells_what_the_webhook_refuses_it_for(case):
    record = pod("p", labels=case.labels, annotations=case.annotations)
    is_fatal = any(flaw.is_fatal for flaw in DIALECTS.rules(record, None))
    assert not is_fatal or DIALECTS.claim(record) is not None
    agree(record)


def test_a_group_of_a_leader_worker_set_whose_size_is_none_is_told_by_both():
    (first,) = group_pods("lws", 0, 1, RACK)
    size = "leaderworkerset.sigs.k8s.io/size"
    agree(pod("p", labels=first.labels, annotations={**first.annotations, size: "x"}))


def test_declared_sets_that_cannot_be_meant_are_told_beside_a_flaw_that_is_not_fatal():
    sets = {GROUP: "A", "kueue.x-k8s.io/pod-group-sets": "[]"}
    agree(pod("p", annotations=sets))


VALUES = st.sampled_from(
    ["", RACK, "a b", "true", "nay", "0", "1", "+4", "4", "8", "-2", "4294967296", "g", "G", "٤"]
    + [f'[{{"topology":"{RACK}","size":{size}}}]' for size in (4, 0, 200_000)]
    + [f'[{{"topology":"{BLOCK}","size":8}},{{"topology":"{RACK}","size":3}}]', "[]"]
)
KEYS = st.sampled_from(
    [
        *(REQUIRED, PREFERRED, UNCONSTRAINED, SLICE_LEVEL, SLICE_SIZE, SLICE_LAYERS),
        *(GROUP, TOTAL, POD_SET_GROUP, INDEX_OFFSET),
        *("kueue.x-k8s.io/retriable-in-group", "corral.dev/spare-pods"),
        *("kueue.x-k8s.io/pod-group-fast-admission", "kueue.x-k8s.io/pod-group-role"),
    ]
)


@given(labels=st.dictionaries(st.just(GROUP), VALUES), annotations=st.dictionaries(KEYS, VALUES))
def test_whatever_reading_a_gang_finds_wrong_is_the_first_rule_that_is_fatal(labels, annotations):
    agree(pod("p", labels=labels, annotations=annotations))


def test_a_group_name_of_any_length_is_no_group_and_a_role_is_cut():
    long = "a" * 250_000
    named = DIALECTS.claim(pod("p", annotations={**group("g", 2), GROUP: long}))
    assert named.flaw
    of_role = DIALECTS.claim(pod("p", annotations={**group("g", 2), ROLE_HASH: long}))
    assert len(of_role.leaf) == 253
