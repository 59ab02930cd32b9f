"""Every rule about what labels and annotations say. Sections are those of reference kueue.md."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app import dialects
from app.dialects import validation
from app.dialects.in_charge import is_kueues
from app.dialects.membership import Mistake
from app.dialects.validation import Flaw, PodSetClaim, change, flaws, together
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
    pod,
)

POD_SET_GROUP = "kueue.x-k8s.io/podset-group-name"
OFFSET = "kueue.x-k8s.io/pod-index-offset"
INDEX = "kueue.x-k8s.io/pod-group-pod-index"
MANAGED = "kueue.x-k8s.io/managed"
PREBUILT = "kueue.x-k8s.io/prebuilt-workload-name"
RETRIABLE = "kueue.x-k8s.io/retriable-in-group"
SETS = "kueue.x-k8s.io/pod-group-sets"
ROLE = "kueue.x-k8s.io/pod-group-role"
LABEL_KEY = "must be the key of a node label"
BOTH = "should be set"


def said(found: list[Flaw]) -> list[tuple[str, str, str]]:
    """Field without its annotation's prefix, problem, and text."""
    return [(flaw.field.replace("kueue.x-k8s.io/", ""), flaw.problem, flaw.text) for flaw in found]


def one(found: list[Flaw], field: str, problem: str, text: str) -> None:
    """There is exactly one flaw, and it is this one."""
    (flaw,) = found
    assert (flaw.field, flaw.problem) == (field, problem)
    assert text in flaw.text


@pytest.mark.parametrize(
    "annotations",
    [
        pytest.param({}, id="nothing"),
        pytest.param({REQUIRED: RACK}, id="required"),
        pytest.param({PREFERRED: "kubernetes.io/hostname"}, id="preferred"),
        pytest.param({UNCONSTRAINED: "T"}, id="unconstrained_as_go_spells_true"),
        pytest.param({UNCONSTRAINED: "0"}, id="unconstrained_false"),
        pytest.param({SLICE_LEVEL: RACK, SLICE_SIZE: "4"}, id="slices_alone"),
        pytest.param({REQUIRED: BLOCK, SLICE_LEVEL: RACK, SLICE_SIZE: "8"}, id="one_slice_of_all"),
        pytest.param(
            {SLICE_LAYERS: f'[{{"topology":"{BLOCK}","size":8}},{{"topology":"{RACK}","size":4}}]'},
            id="layers",
        ),
        pytest.param(
            {SLICE_LAYERS: f'[{{"topology":"{RACK}","size":8,"why":"?"}}]'}, id="unknown_fields"
        ),
        pytest.param({REQUIRED: RACK, POD_SET_GROUP: "leader-and-workers"}, id="pod_set_group"),
        pytest.param({REQUIRED: RACK, OFFSET: "0"}, id="offset"),
        pytest.param({"example.com/required-topology": "??"}, id="foreign"),
    ],
)
def test_1_3_what_can_be_meant_is_let_in(annotations):
    assert flaws({}, annotations, pods=8) == []


@pytest.mark.parametrize(
    "modes",
    [
        pytest.param((REQUIRED, PREFERRED), id="required_preferred"),
        pytest.param((REQUIRED, UNCONSTRAINED), id="required_unconstrained"),
        pytest.param((REQUIRED, PREFERRED, UNCONSTRAINED), id="all"),
    ],
)
def test_1_3_more_than_one_mode_is_refused(modes):
    values = {REQUIRED: RACK, PREFERRED: RACK, UNCONSTRAINED: "true"}
    found = flaws({}, {mode: values[mode] for mode in modes})
    one(found, "annotations", "Invalid value", "must not contain more than one topology annotation")
    assert found[0].value is None


@pytest.mark.parametrize("key", [REQUIRED, PREFERRED, SLICE_LEVEL])
@pytest.mark.parametrize(
    "value",
    [
        pytest.param("", id="empty"),
        pytest.param("my rack", id="space"),
        pytest.param("a/b/c", id="two_slashes"),
        pytest.param("/rack", id="empty_prefix"),
        pytest.param("Cloud.com/rack", id="upper_case_prefix"),
        pytest.param("x" * 64, id="64_characters"),
        pytest.param("rack\n", id="newline"),
        pytest.param("rаck", id="a_cyrillic_letter"),
    ],
)
def test_1_3_a_level_that_is_no_label_key_is_refused(key, value):
    size = {SLICE_SIZE: "1"} if key == SLICE_LEVEL else {}
    found = flaws({}, {key: value, **size})
    one(found, f"annotations[{key}]", "Invalid value", LABEL_KEY)
    assert found[0].value == value


@pytest.mark.parametrize("value", ["", "yes", "TrUe", "2", " true"])
def test_1_3_unconstrained_that_is_no_boolean_is_refused(value):
    found = flaws({}, {UNCONSTRAINED: value})
    one(found, f"annotations[{UNCONSTRAINED}]", "Invalid value", "must be a boolean value")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        pytest.param("four", "must be a numeric value", id="word"),
        pytest.param("", "must be a numeric value", id="empty"),
        pytest.param("4.0", "must be a numeric value", id="fraction"),
        pytest.param("٤", "must be a numeric value", id="arabic_digit"),
        pytest.param("2147483648", "must be a numeric value", id="past_int32"),
        pytest.param("9" * 5000, "must be a numeric value", id="thousands_of_digits"),
        pytest.param("0", "must be greater than or equal to 1", id="zero"),
        pytest.param("-3", "must be greater than or equal to 1", id="negative"),
        pytest.param("100001", "must be less than or equal to 100000", id="more_than_a_gang"),
    ],
)
def test_1_3_a_slice_size_that_is_no_count_is_refused(value, text):
    found = flaws({}, {SLICE_LEVEL: RACK, SLICE_SIZE: value})
    one(found, f"annotations[{SLICE_SIZE}]", "Invalid value", text)


def test_1_3_a_slice_level_without_its_size_is_refused():
    found = flaws({}, {SLICE_LEVEL: RACK})
    one(found, f"annotations[{SLICE_SIZE}]", "Required value", f"'{SLICE_LEVEL}' is specified")


def test_1_3_a_slice_size_without_its_level_is_refused():
    found = flaws({}, {SLICE_SIZE: "4"})
    one(found, f"annotations[{SLICE_SIZE}]", "Forbidden", f"'{SLICE_LEVEL}' is not specified")


@pytest.mark.parametrize(
    "annotations",
    [
        pytest.param({SLICE_LEVEL: RACK, SLICE_SIZE: "9"}, id="size"),
        pytest.param({SLICE_LAYERS: f'[{{"topology":"{RACK}","size":9}}]'}, id="first_layer"),
    ],
)
def test_1_3_a_slice_larger_than_the_pod_set_is_refused_where_its_size_is_known(annotations):
    (field,) = (key for key in annotations if key != SLICE_LEVEL)
    found = flaws({}, annotations, pods=8)
    one(found, f"annotations[{field}]", "Invalid value", "greater than pod set count 8")
    assert flaws({}, annotations, pods=9) == []
    assert flaws({}, annotations) == []


@pytest.mark.parametrize("name", ["0", "17", "18446744073709551615"])
def test_1_3_a_pod_set_group_that_is_a_number_is_refused(name):
    found = flaws({}, {REQUIRED: RACK, POD_SET_GROUP: name})
    one(found, f"annotations[{POD_SET_GROUP}]", "Invalid value", "must not be a number")


@pytest.mark.parametrize(
    "slices",
    [
        pytest.param({SLICE_LEVEL: RACK, SLICE_SIZE: "2"}, id="level_and_size"),
        pytest.param({SLICE_LAYERS: f'[{{"topology":"{RACK}","size":2}}]'}, id="layers"),
    ],
)
def test_1_3_a_pod_set_group_with_slices_is_refused_for_each_of_them(slices):
    found = flaws({}, {REQUIRED: BLOCK, POD_SET_GROUP: "g", **slices})
    assert said(found) == [
        ("annotations[podset-group-name]", "Forbidden", f"may not be set when '{key}' is specified")
        for key in slices
    ]


@pytest.mark.parametrize("mode", [{}, {UNCONSTRAINED: "true"}])
def test_1_3_a_pod_set_group_without_a_level_is_refused(mode):
    found = flaws({}, {POD_SET_GROUP: "g", **mode})
    one(found, f"annotations[{POD_SET_GROUP}]", "Forbidden", "neither")


@pytest.mark.parametrize("offset", ["", "-1", "one", "2147483648"])
def test_1_2_an_index_offset_that_is_no_index_is_refused(offset):
    found = flaws({}, {REQUIRED: RACK, OFFSET: offset})
    one(found, f"annotations[{OFFSET}]", "Invalid value", "must be a non-negative integer")


@pytest.mark.parametrize("name", ["", "x" * 257])
def test_1_2_a_pod_set_group_without_a_name_or_with_a_long_one_is_refused(name):
    found = flaws({}, {REQUIRED: RACK, POD_SET_GROUP: name})
    one(found, f"annotations[{POD_SET_GROUP}]", "Invalid value", "must have 1 to 256 characters")


@pytest.mark.parametrize("other", [{SLICE_LEVEL: RACK, SLICE_SIZE: "2"}, {SLICE_SIZE: "2"}])
def test_1_3_layers_beside_a_slice_are_refused(other):
    layers = {SLICE_LAYERS: f'[{{"topology":"{RACK}","size":2}}]'}
    found = [flaw for flaw in flaws({}, layers | other) if SLICE_LAYERS in flaw.field]
    assert [flaw.problem for flaw in found] == ["Forbidden"] * len(other)
    assert all(key in flaw.text for key, flaw in zip(other, found, strict=True))


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("", id="empty"),
        pytest.param("{}", id="no_array"),
        pytest.param('[{"topology":"a/b","size":"64"}]', id="size_as_a_string"),
        pytest.param('[{"topology":"a/b","size":1}', id="cut_off"),
        pytest.param("[" * 100_000, id="deep"),
        pytest.param('[{"topology":"a/b","size":1e3}]junk', id="more_after_it"),
    ],
)
def test_1_3_layers_that_are_no_json_array_are_refused(text):
    found = flaws({}, {SLICE_LAYERS: text})
    one(found, f"annotations[{SLICE_LAYERS}]", "Invalid value", "must be a valid JSON array: ")


@pytest.mark.parametrize("layers", [0, 4])
def test_1_3_no_layer_and_four_layers_are_refused(layers):
    text = ",".join(f'{{"topology":"a/l{n}","size":{16 >> n}}}' for n in range(layers))
    found = flaws({}, {SLICE_LAYERS: f"[{text}]"})
    one(found, f"annotations[{SLICE_LAYERS}]", "Invalid value", "between 1 and 3 entries")


@pytest.mark.parametrize(
    ("layers", "field", "problem", "text"),
    [
        pytest.param('{"topology":"a b","size":2}', "[0].topology", "Invalid value", LABEL_KEY),
        pytest.param('{"size":2}', "[0].topology", "Invalid value", LABEL_KEY, id="no_level"),
        pytest.param('{"topology":"a/b","size":0}', "[0].size", "Invalid value", "equal to 1"),
        pytest.param('{"topology":"a/b"}', "[0].size", "Invalid value", "equal to 1", id="no_size"),
        pytest.param(
            '{"topology":"a/b","size":6},{"topology":"a/c","size":4}',
            "[1].size",
            "Invalid value",
            "must evenly divide the parent layer size 6",
        ),
        pytest.param(
            '{"topology":"a/b","size":4},{"topology":"a/b","size":2}',
            "[1].topology",
            "Duplicate value",
            "also at index 0",
        ),
    ],
)
def test_1_3_each_layer_is_checked_at_its_own_place(layers, field, problem, text):
    found = flaws({}, {SLICE_LAYERS: f"[{layers}]"})
    one(found, f"annotations[{SLICE_LAYERS}]{field}", problem, text)


def test_1_3_every_broken_rule_is_told_and_not_the_first_only():
    found = flaws({}, {REQUIRED: "a b", PREFERRED: "c d", SLICE_SIZE: "x", UNCONSTRAINED: "maybe"})
    assert {flaw.field.partition("[")[2].rstrip("]") for flaw in found} == {
        "",  # more than one mode: all annotations together
        REQUIRED,
        PREFERRED,
        SLICE_SIZE,
        UNCONSTRAINED,
    }
    assert len(found) == 6


def claim(name: str, pods: int | None, group: str = "g", **levels: str) -> PodSetClaim:
    return PodSetClaim(f"spec.{name}.metadata", {POD_SET_GROUP: group, **levels}, pods)


IN_RACK = {REQUIRED: RACK}


@pytest.mark.parametrize(
    "claims",
    [
        pytest.param([claim("leader", 1, **IN_RACK), claim("workers", 7, **IN_RACK)], id="whole"),
        pytest.param([claim("a", 1, **IN_RACK), claim("b", 1, **IN_RACK)], id="two_leaders"),
        pytest.param([claim("a", None, **IN_RACK), claim("b", 5, **IN_RACK)], id="size_not_known"),
        pytest.param([PodSetClaim("a", {}, 3), PodSetClaim("b", {}, 4)], id="no_group"),
        pytest.param(
            [claim(name, 1, name[0], **IN_RACK) for name in ("x1", "y1", "x2", "y2")],
            id="two_groups",
        ),
    ],
)
def test_1_3_pod_set_groups_of_a_leader_and_its_workers_are_let_in(claims):
    assert list(together(claims)) == []


@pytest.mark.parametrize("sets", [1, 3])
def test_1_3_a_group_of_other_than_two_pod_sets_is_refused_at_each(sets):
    claims = [claim(f"set{n}", 1, **IN_RACK) for n in range(sets)]
    found = list(together(claims))
    assert [where for where, _ in found] == claims
    for _, flaw in found:
        assert flaw.field == f"annotations[{POD_SET_GROUP}]"
        assert f"exactly 2 pod sets, got: {sets} pod set(s)" in flaw.text


def test_1_3_a_group_without_a_pod_set_of_one_is_refused():
    found = list(together([claim("a", 2, **IN_RACK), claim("b", 3, **IN_RACK)]))
    assert [where.pods for where, _ in found] == [2, 3]
    assert all("got: 2 replica(s) and 3 replica(s)" in flaw.text for _, flaw in found)


@pytest.mark.parametrize(
    "levels", [{REQUIRED: BLOCK}, {PREFERRED: RACK}, {}], ids=["level", "mode", "none"]
)
def test_1_3_a_group_whose_pod_sets_want_different_things_is_refused(levels):
    found = list(together([claim("a", 1, **IN_RACK), claim("b", 3, **levels)]))
    assert [flaw.field for _, flaw in found] == ["annotations", "annotations"]
    assert "'spec.b.metadata.annotations' in group 'g'" in found[0][1].text
    assert "'spec.a.metadata.annotations' in group 'g'" in found[1][1].text


@pytest.mark.parametrize("key", [REQUIRED, PREFERRED])
def test_1_3_an_elastic_job_may_not_ask_for_one_domain(key):
    found = list(validation.elastic({key: RACK}))
    one(found, f"annotations[{key}]", "Forbidden", "elastic-job")
    assert list(validation.elastic({UNCONSTRAINED: "true"})) == []


@pytest.mark.parametrize(
    ("labels", "annotations"),
    [
        pytest.param({}, group("g", 3), id="name_as_annotation"),
        pytest.param({GROUP: "g"}, {TOTAL: "3"}, id="name_as_label"),
        pytest.param({GROUP: "g"}, group("g", 3), id="both_alike"),
        pytest.param({INDEX: "2"}, group("g", 3), id="last_index"),
        pytest.param({INDEX: "7"}, {}, id="index_of_no_group"),
        pytest.param({MANAGED: "true"}, {}, id="managed"),
        pytest.param({PREBUILT: "g"}, group("g", 3), id="prebuilt_of_that_name"),
        pytest.param({PREBUILT: "w"}, {}, id="prebuilt_of_a_single_pod"),
        pytest.param({}, {GROUP: "g", SETS: '[{"name":"d","count":1}]'}, id="driver_counts"),
        pytest.param({ROLE: "workers"}, {GROUP: "g"}, id="worker_of_a_driver"),
        pytest.param({"corral.dev/managed": "false"}, group("g", 3), id="opted_out"),
    ],
)
def test_5_3_what_can_be_meant_is_let_in(labels, annotations):
    assert flaws(labels, annotations) == []


@pytest.mark.parametrize("value", ["", "false", "True", "yes"])
def test_5_3_a_managed_label_other_than_true_is_refused(value):
    one(flaws({MANAGED: value}, {}), f"labels[{MANAGED}]", "Forbidden", "can only be 'true'")


def test_our_managed_label_is_true_or_false():
    found = flaws({"corral.dev/managed": "maybe"}, {})
    one(found, "labels[corral.dev/managed]", "Invalid value", "'true' or 'false'")


@pytest.mark.parametrize("where", ["labels", "annotations"])
def test_5_3_a_group_name_without_a_total_count_is_refused(where):
    strings = {"labels": {}, "annotations": {}, where: {GROUP: "g"}}
    found = flaws(strings["labels"], strings["annotations"])
    one(found, f"annotations[{TOTAL}]", "Required value", BOTH)


def test_5_3_a_total_count_without_a_group_name_is_refused():
    one(flaws({}, {TOTAL: "3"}), f"labels[{GROUP}]", "Required value", BOTH)


@pytest.mark.parametrize(
    ("total", "text"),
    [
        pytest.param("", "must be a numeric value", id="empty"),
        pytest.param("three", "must be a numeric value", id="word"),
        pytest.param("1e3", "must be a numeric value", id="exponent"),
        pytest.param("0", "must be greater than or equal to 1", id="zero"),
        pytest.param("-1", "must be greater than or equal to 1", id="negative"),
        pytest.param("1000000000", "must be less than or equal to 100000", id="too_many"),
    ],
)
def test_5_3_a_total_count_that_is_no_count_is_refused(total, text):
    one(flaws({}, group("g", total)), f"annotations[{TOTAL}]", "Invalid value", text)


@pytest.mark.parametrize(
    "name",
    ["", "Group", "a_b", "-a", "a-", "a..b", ".a", "a b", "a\n", "é", "a/../b", "x" * 254],
)
@pytest.mark.parametrize("where", ["labels", "annotations"])
def test_5_3_a_group_name_that_is_no_subdomain_is_refused(name, where):
    strings = {"labels": {}, "annotations": {}, where: {GROUP: name}}
    found = flaws(strings["labels"], {TOTAL: "2", **strings["annotations"]})
    one(found, f"{where}[{GROUP}]", "Invalid value", "RFC 1123 subdomain")


def test_5_3_label_and_annotation_that_name_two_groups_are_refused():
    found = flaws({GROUP: "one"}, group("two", 3))
    one(found, f"labels[{GROUP}]", "Invalid value", 'must be equal to the annotation "two"')


@pytest.mark.parametrize("index", ["", "-1", "1.0", "x", "٣", "18446744073709551616", "9" * 100])
def test_5_3_a_pod_index_that_is_no_unsigned_integer_is_refused(index):
    found = flaws({INDEX: index}, group("g", 3))
    one(found, f"labels[{INDEX}]", "Invalid value", "must be an unsigned integer")


@pytest.mark.parametrize("index", ["3", "4", "18446744073709551615"])
def test_5_3_a_pod_index_past_the_groups_size_is_refused(index):
    found = flaws({INDEX: index}, group("g", 3))
    one(found, f"labels[{INDEX}]", "Invalid value", "must be less than 3")


@pytest.mark.parametrize("where", ["labels", "annotations"])
def test_5_3_a_prebuilt_workload_of_another_name_is_refused(where):
    strings = {"labels": {}, "annotations": {}, where: {PREBUILT: "other"}}
    found = flaws(strings["labels"], group("g", 3) | strings["annotations"])
    one(found, f"{where}[{PREBUILT}]", "Invalid value", "equal to the name of the pod group")


@pytest.mark.parametrize(
    ("before", "after", "field"),
    [
        pytest.param(({}, {GROUP: "a"}), ({}, {GROUP: "b"}), "annotations", id="annotation"),
        pytest.param(({GROUP: "a"}, {}), ({GROUP: "b"}, {}), "labels", id="label"),
        pytest.param(({GROUP: "a"}, {}), ({}, {}), "labels", id="removed"),
    ],
)
def test_5_3_a_group_name_may_not_change(before, after, field):
    found = list(change(*before, *after))
    one(found, f"{field}[{GROUP}]", "Invalid value", "field is immutable")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param(({}, {}), ({}, {GROUP: "a"}), id="added"),
        pytest.param(({GROUP: "a"}, {}), ({}, {GROUP: "a"}), id="moved_from_label_to_annotation"),
        pytest.param(({}, {GROUP: "a", TOTAL: "2"}), ({}, {GROUP: "a", TOTAL: "3"}), id="resized"),
        pytest.param(({}, {GROUP: "a"}), ({}, {GROUP: "a", RETRIABLE: "false"}), id="ended"),
        pytest.param(({}, {RETRIABLE: "false"}), ({}, {}), id="retriable_of_no_group"),
    ],
)
def test_5_3_what_may_change_may_change(before, after):
    assert list(change(*before, *after)) == []


@pytest.mark.parametrize("after", [{}, {RETRIABLE: "true"}])
def test_5_3_a_pod_that_ends_its_group_stays_one(after):
    before = {GROUP: "g", RETRIABLE: "false"}
    found = list(change({}, before, {}, {GROUP: "g", **after}))
    one(found, f"annotations[{RETRIABLE}]", "Forbidden", "can't be converted to retriable")


@pytest.mark.parametrize(
    ("labels", "annotations", "gates"),
    [
        pytest.param({MANAGED: "true"}, {}, (), id="managed_label"),
        pytest.param({}, {}, ("kueue.x-k8s.io/admission",), id="admission_gate"),
        pytest.param({}, {}, ("example.com/x", "kueue.x-k8s.io/topology"), id="topology_gate"),
        pytest.param({"kueue.x-k8s.io/podset": "main"}, {}, (), id="pod_of_a_managed_job"),
        pytest.param({}, {"kueue.x-k8s.io/workload": "w"}, (), id="workload"),
        pytest.param({}, {"kueue.x-k8s.io/pod-suspending-parent": "sts"}, (), id="parent"),
    ],
)
def test_what_kueue_has_taken_charge_of_is_kueues(labels, annotations, gates):
    assert is_kueues(labels, annotations, gates, by_queue=False)


@pytest.mark.parametrize("by_queue", [True, False])
def test_a_queue_name_alone_is_kueues_only_where_kueue_runs(by_queue):
    labels = {"kueue.x-k8s.io/queue-name": "team"}
    assert is_kueues(labels, {}, by_queue=by_queue) == by_queue


VALUES = st.sampled_from(
    ["", RACK, "a b", "true", "nay", "0", "1", "+4", "4", "8", "-2", "4294967296", "g", "G", "٤"]
    + [f'[{{"topology":"{RACK}","size":{size}}}]' for size in (4, 0, 200_000)]
    + [f'[{{"topology":"{BLOCK}","size":8}},{{"topology":"{RACK}","size":3}}]', "[]"]
)
KEYS = st.sampled_from(
    [
        *(REQUIRED, PREFERRED, UNCONSTRAINED, SLICE_LEVEL, SLICE_SIZE, SLICE_LAYERS),
        *(GROUP, TOTAL, POD_SET_GROUP, OFFSET),
    ]
)


@given(labels=st.dictionaries(st.just(GROUP), VALUES), annotations=st.dictionaries(KEYS, VALUES))
def test_whatever_reading_a_gang_finds_wrong_some_rule_has_refused(labels, annotations):
    claim = dialects.read(pod("p", labels=labels, annotations=annotations))
    if isinstance(claim, Mistake):
        assert flaws(labels, annotations) != []
