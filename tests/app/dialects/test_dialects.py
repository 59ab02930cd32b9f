"""What workloads say, and what we understand of it. Sections are those of KEP-2724 and KEP-976."""

from __future__ import annotations

import json

import pytest

from app import dialects
from app.dialects import jobs, kueue
from app.dialects.membership import Declared, GangKey, Membership, Mistake
from app.kube.core.objects import Owner
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
    job,
    job_owner,
    pod,
)
from topology.model.request import Constraint, Slice

INDEX = "batch.kubernetes.io/job-completion-index"


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
    claim = dialects.read(pod("p", annotations=annotations))
    assert isinstance(claim, Membership)
    assert claim.constraint == constraint
    assert claim.gang == GangKey("default", "p", "pod", "uid-p")
    assert claim.declared is not None
    assert claim.declared.members == 1


@pytest.mark.parametrize(
    "annotations",
    [
        pytest.param({}, id="none"),
        pytest.param({UNCONSTRAINED: "false"}, id="unconstrained_false_asks_for_nothing"),
        pytest.param({"example.com/other": "x"}, id="foreign_annotations"),
    ],
)
def test_a_pod_that_asks_for_nothing_is_ordinary(annotations):
    assert dialects.read(pod("p", annotations=annotations)) is None


def test_a_group_is_named_by_label_or_annotation():
    by_label = dialects.read(pod("p", labels={GROUP: "g"}, annotations={TOTAL: "3"}))
    by_annotation = dialects.read(pod("p", annotations=group("g", 3)))
    assert by_label == by_annotation
    assert isinstance(by_label, Membership)
    assert by_label.gang == GangKey("default", "g", "group")
    assert by_label.declared == Declared(3, f"annotation {TOTAL}")


def test_a_groups_name_wins_over_the_owning_job():
    claim = dialects.read(pod("p", annotations=group("g", 3), owner=job_owner("j")))
    assert isinstance(claim, Membership)
    assert claim.gang.source == "group"


def test_jobs_of_the_same_name_and_other_uid_are_other_gangs():
    claims = [
        dialects.read(
            pod("p", annotations={REQUIRED: RACK}, owner=Owner("batch/v1", "Job", "j", uid))
        )
        for uid in ("one", "two")
    ]
    assert claims[0].gang != claims[1].gang
    assert str(claims[0].gang) == str(claims[1].gang) == "default/j"


@pytest.mark.parametrize(
    ("annotations", "labels", "said"),
    [
        pytest.param({REQUIRED: RACK, PREFERRED: RACK}, {}, "more than one", id="two_modes"),
        pytest.param({REQUIRED: "no key"}, {}, "'no key'", id="not_a_label_key"),
        pytest.param({PREFERRED: ""}, {}, "got ''", id="empty_level"),
        pytest.param({UNCONSTRAINED: "yes"}, {}, "must be a boolean, got 'yes'", id="no_boolean"),
        pytest.param({GROUP: "g"}, {}, "must be set beside", id="group_without_total_count"),
        pytest.param({TOTAL: "3"}, {}, "set without", id="total_count_without_group"),
        pytest.param({GROUP: "", TOTAL: "1"}, {}, "must not be empty", id="empty_group_name"),
        pytest.param(group("g", "0"), {}, "got '0'", id="zero"),
        pytest.param(group("g", "-1"), {}, "got '-1'", id="negative"),
        pytest.param(group("g", "1.5"), {}, "got '1.5'", id="fraction"),
        pytest.param(group("g", "٣"), {}, "got '٣'", id="other_digits"),
        pytest.param(group("g", "9" * 30), {}, "got '999", id="enormous"),
        pytest.param(group("g", 2), {GROUP: "h"}, "annotation says 'g'", id="two_names"),
    ],
)
def test_a_claim_that_cannot_be_meant_names_pod_field_and_value(annotations, labels, said):
    claim = dialects.read(pod("p", annotations=annotations, labels=labels))
    assert isinstance(claim, Mistake)
    assert claim.sentence.startswith("pod default/p: ")
    assert said in claim.sentence


def test_a_mistake_in_a_group_names_the_group():
    claim = dialects.read(pod("p", annotations=group("g", "x")))
    assert claim is not None
    assert claim.gang == GangKey("default", "g", "group")


@pytest.mark.parametrize(
    ("index", "rank"),
    [("0", 0), ("17", 17), ("-1", None), ("x", None), ("", None), ("٣", None)],
)
def test_ranks_come_from_the_completion_index(index, rank):
    annotations = {REQUIRED: RACK, INDEX: index}
    claim = dialects.read(pod("p", annotations=annotations, owner=job_owner("j")))
    assert isinstance(claim, Membership)
    assert (claim.number.index if claim.number else None) == rank


@pytest.mark.parametrize(
    ("record", "members"),
    [
        pytest.param(job("j", 4), 4, id="parallelism"),
        pytest.param(job("j", 4, completions=10, succeeded=3), 4, id="many_left"),
        pytest.param(job("j", 4, completions=10, succeeded=8), 2, id="few_left"),
        pytest.param(job("j", 4, completions=2, succeeded=3), 0, id="none_left"),
    ],
)
def test_a_jobs_members(record, members):
    assert jobs.members(record).members == members


@pytest.mark.parametrize(
    ("text", "is_key"),
    [
        ("cloud.provider.com/topology-rack", True),
        ("rack", True),
        ("kubernetes.io/hostname", True),
        ("a/b/c", False),
        ("/rack", False),
        ("rack/", False),
        ("UPPER.com/rack", False),
        ("-rack", False),
        ("r" * 64, False),
        ("räck", False),
    ],
)
def test_label_keys_are_those_of_the_api_server(text, is_key):
    assert kueue.is_label_key(text) is is_key


def test_every_key_that_is_read_is_kept():
    assert {REQUIRED, PREFERRED, UNCONSTRAINED, GROUP, TOTAL, INDEX} <= dialects.KEPT
    assert not dialects.is_kept("kubectl.kubernetes.io/last-applied-configuration")


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
    claim = dialects.read(pod("p", annotations={**group("g", 8), **annotations}))
    assert isinstance(claim, Membership)
    assert claim.slices == slices


def layers(*sizes: object, level: str = RACK) -> dict[str, str]:
    return {
        SLICE_LAYERS: json.dumps(
            [{"topology": f"{level}{place}", "size": size} for place, size in enumerate(sizes)]
        )
    }


@pytest.mark.parametrize(
    ("annotations", "said"),
    [
        pytest.param({SLICE_LEVEL: RACK}, f"{SLICE_SIZE}: must be set", id="level_alone"),
        pytest.param({SLICE_SIZE: "2"}, f"{SLICE_LEVEL}: must be set", id="size_alone"),
        pytest.param({SLICE_LEVEL: RACK, SLICE_SIZE: "0"}, "got 0", id="size_0"),
        pytest.param({SLICE_LEVEL: RACK, SLICE_SIZE: "two"}, "got 'two'", id="size_is_text"),
        pytest.param({SLICE_LEVEL: "no key", SLICE_SIZE: "2"}, "'no key'", id="not_a_label_key"),
        pytest.param({**layers(4), SLICE_SIZE: "2"}, "must not carry both", id="both_forms"),
        pytest.param({SLICE_LAYERS: "[{"}, "got '[{'", id="broken_json"),
        pytest.param(layers("4"), "Expected `int`", id="size_in_quotes"),
        pytest.param(layers(), "got 0", id="no_layer"),
        pytest.param(layers(16, 8, 4, 2), "got 4", id="four_layers"),
        pytest.param(layers(8, 3), "size 3 does not divide 8", id="not_dividing"),
        pytest.param(layers(8, 0), "got 0", id="zero_below"),
        pytest.param(layers(4, level="no key"), "'no key0'", id="layer_of_no_label"),
        pytest.param(
            {SLICE_LAYERS: json.dumps([{"topology": RACK, "size": 4}] * 2)}, "twice", id="twice"
        ),
    ],
)
def test_slices_that_cannot_be_meant_name_field_and_value(annotations, said):
    claim = dialects.read(pod("p", annotations={**group("g", 8), **annotations}))
    assert isinstance(claim, Mistake)
    assert said in claim.sentence
