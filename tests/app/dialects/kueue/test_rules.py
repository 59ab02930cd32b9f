"""Every rule about what topology annotations say.

Source: kueue pkg/controller/jobframework/tas_validation.go (v0.16).
"""

from __future__ import annotations

import pytest

from app.dialects.dialect import PodSetClaim, TemplateOwner
from app.dialects.flaw import Flaw
from app.dialects.kueue.annotations import MOST_LAYERS_TEXT
from app.dialects.kueue.rules import together
from app.dialects.spec import MOST_PODS
from tests.app.dialects.kueue.cases import Case, flaws, one
from tests.records import (
    BLOCK,
    PREFERRED,
    RACK,
    REQUIRED,
    SLICE_LAYERS,
    SLICE_LEVEL,
    SLICE_SIZE,
    UNCONSTRAINED,
)

POD_SET_GROUP = "kueue.x-k8s.io/podset-group-name"
OFFSET = "kueue.x-k8s.io/pod-index-offset"
ELASTIC = "kueue.x-k8s.io/elastic-job"
LABEL_KEY = "must be the key of a node label"
NUMBER = "must be a numeric value"
AT_LEAST_1 = "must be greater than or equal to 1"


def invalid(annotations: dict[str, str], key: str, text: str, below: str = "") -> Case:
    """A pod whose annotation has a value it may not have."""
    return Case(annotations, f"annotations[{key}]{below}", "Invalid value", text)


def in_layers(layers: str, below: str, text: str) -> Case:
    """A pod of whose layers one is wrong."""
    return invalid({SLICE_LAYERS: f"[{layers}]"}, SLICE_LAYERS, text, below)


def of_layers(number: int) -> str:
    return ",".join(f'{{"topology":"a/l{n}","size":{16 >> n}}}' for n in range(number))


NO_LABEL_KEYS = {
    "empty": "",
    "space": "my rack",
    "two_slashes": "a/b/c",
    "empty_prefix": "/rack",
    "upper_case_prefix": "Cloud.com/rack",
    "64_characters": "x" * 64,
    "newline": "rack\n",
    "a_cyrillic_letter": "rаck",
}
NO_COUNTS = {
    "word": ("four", NUMBER),
    "empty": ("", NUMBER),
    "fraction": ("4.0", NUMBER),
    "arabic_digit": ("٤", NUMBER),
    "past_int32": ("2147483648", NUMBER),
    "thousands_of_digits": ("9" * 5000, NUMBER),
    "zero": ("0", AT_LEAST_1),
    "negative": ("-3", AT_LEAST_1),
    "past_int32_below_zero": ("-2147483648", NUMBER),
    "int32": ("2147483647", "must be less than or equal to 100000"),
    "more_than_a_gang": ("100001", "must be less than or equal to 100000"),
}
NO_LAYERS = {
    "empty": "",
    "no_array": "{}",
    "size_as_a_string": '[{"topology":"a/b","size":"64"}]',
    "cut_off": '[{"topology":"a/b","size":1}',
    "deep": "[" * 4_000,
    "more_after_it": '[{"topology":"a/b","size":1e3}]junk',
}
BROKEN = {
    **{
        f"level_{key.rpartition('-')[0][-8:]}_{name}": invalid(
            {key: value, **({SLICE_SIZE: "1"} if key == SLICE_LEVEL else {})}, key, LABEL_KEY
        )
        for key in (REQUIRED, PREFERRED, SLICE_LEVEL)
        for name, value in NO_LABEL_KEYS.items()
    },
    **{
        f"unconstrained_{value!r}": invalid(
            {UNCONSTRAINED: value}, UNCONSTRAINED, "must be a boolean value"
        )
        for value in ("", "yes", "TrUe", "2", " true")
    },
    **{
        f"slice_size_{name}": invalid({SLICE_LEVEL: RACK, SLICE_SIZE: value}, SLICE_SIZE, text)
        for name, (value, text) in NO_COUNTS.items()
    },
    "slice_level_without_its_size": Case(
        {SLICE_LEVEL: RACK},
        f"annotations[{SLICE_SIZE}]",
        "Required value",
        f"'{SLICE_LEVEL}' is specified",
    ),
    "slice_size_without_its_level": Case(
        {SLICE_SIZE: "4"},
        f"annotations[{SLICE_SIZE}]",
        "Forbidden",
        f"'{SLICE_LEVEL}' is not specified",
    ),
    **{
        f"pod_set_group_{name}": invalid(
            {REQUIRED: RACK, POD_SET_GROUP: name}, POD_SET_GROUP, "must not be a number"
        )
        for name in ("0", "17", "18446744073709551615")
    },
    **{
        f"pod_set_group_without_a_level_{name}": Case(
            {POD_SET_GROUP: "g", **mode}, f"annotations[{POD_SET_GROUP}]", "Forbidden", "neither"
        )
        for name, mode in {"none": {}, "unconstrained": {UNCONSTRAINED: "true"}}.items()
    },
    **{
        f"offset_{value!r}": invalid(
            {REQUIRED: RACK, OFFSET: value}, OFFSET, "must be a non-negative integer"
        )
        for value in ("", "-1", "one", "2147483648", "1000000000")
    },
    **{
        f"pod_set_group_of_{len(name)}_characters": invalid(
            {REQUIRED: RACK, POD_SET_GROUP: name}, POD_SET_GROUP, "must have 1 to 256 characters"
        )
        for name in ("", "x" * 257)
    },
    **{
        "too_long_layers": invalid(
            {SLICE_LAYERS: f"[{of_layers(3)}]" + " " * MOST_LAYERS_TEXT},
            SLICE_LAYERS,
            f"must have at most {MOST_LAYERS_TEXT} characters",
        ),
    },
    **{
        f"no_layers_{name}": invalid(
            {SLICE_LAYERS: text}, SLICE_LAYERS, "must be a valid JSON array: "
        )
        for name, text in NO_LAYERS.items()
    },
    **{
        f"{number}_layers": in_layers(of_layers(number), "", "between 1 and 3 entries")
        for number in (0, 4)
    },
    "layer_space": in_layers('{"topology":"a b","size":2}', "[0].topology", LABEL_KEY),
    "layer_no_level": in_layers('{"size":2}', "[0].topology", LABEL_KEY),
    "layer_size_0": in_layers('{"topology":"a/b","size":0}', "[0].size", "equal to 1"),
    "layer_size_below_0": in_layers('{"topology":"a/b","size":-2}', "[0].size", "equal to 1"),
    "layer_size_of_more_than_a_gang": in_layers(
        '{"topology":"a/b","size":100001}', "[0].size", "less than or equal to 100000"
    ),
    "inner_layer_size_0": in_layers(
        '{"topology":"a/b","size":4},{"topology":"a/c","size":0}', "[1].size", "equal to 1"
    ),
    "inner_layer_size_below_0": in_layers(
        '{"topology":"a/b","size":4},{"topology":"a/c","size":-3}', "[1].size", "equal to 1"
    ),
    "inner_layer_larger_than_the_outer": in_layers(
        '{"topology":"a/b","size":4},{"topology":"a/c","size":8}',
        "[1].size",
        "must evenly divide the parent layer size 4",
    ),
    "third_layer_not_dividing": in_layers(
        '{"topology":"a/b","size":12},{"topology":"a/c","size":4},{"topology":"a/d","size":3}',
        "[2].size",
        "must evenly divide the parent layer size 4",
    ),
    "layer_no_size": in_layers('{"topology":"a/b"}', "[0].size", "equal to 1"),
    "layer_not_dividing": in_layers(
        '{"topology":"a/b","size":6},{"topology":"a/c","size":4}',
        "[1].size",
        "must evenly divide the parent layer size 6",
    ),
    "layer_twice": Case(
        {SLICE_LAYERS: '[{"topology":"a/b","size":4},{"topology":"a/b","size":2}]'},
        f"annotations[{SLICE_LAYERS}][1].topology",
        "Duplicate value",
        "also at index 0",
    ),
}


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
        pytest.param({REQUIRED: RACK, POD_SET_GROUP: "g"}, id="pod_set_group_of_one_letter"),
        pytest.param({PREFERRED: RACK, POD_SET_GROUP: "x" * 256}, id="the_longest_group_name"),
        pytest.param({REQUIRED: RACK, POD_SET_GROUP: "17th"}, id="group_name_with_digits"),
        pytest.param({REQUIRED: RACK, OFFSET: "0"}, id="offset"),
        pytest.param({REQUIRED: RACK, OFFSET: "999999999"}, id="the_largest_offset"),
        pytest.param({SLICE_LEVEL: RACK, SLICE_SIZE: "1"}, id="slices_of_one"),
        pytest.param(
            {SLICE_LAYERS: f"[{of_layers(3)}]".replace("16", "8")},
            id="as_many_layers_as_there_may_be",
        ),
        pytest.param(
            {SLICE_LAYERS: f"[{of_layers(1)}]".replace("16", "8").ljust(MOST_LAYERS_TEXT)},
            id="layers_as_long_as_they_may_be",
        ),
        pytest.param({"example.com/required-topology": "??"}, id="foreign"),
    ],
)
def test_what_can_be_meant_is_let_in(annotations):
    assert flaws({}, annotations, pods=8) == []


def test_a_slice_may_have_as_many_pods_as_a_gang():
    most = str(MOST_PODS)
    assert flaws({}, {SLICE_LEVEL: RACK, SLICE_SIZE: most}) == []
    assert flaws({}, {SLICE_LAYERS: f'[{{"topology":"{RACK}","size":{most}}}]'}) == []


@pytest.mark.parametrize("case", BROKEN.values(), ids=BROKEN)
def test_what_cannot_be_meant_is_told_once_and_at_its_own_field(case):
    one(flaws(case.labels, case.annotations), case.field, case.kind, case.text)


@pytest.mark.parametrize(
    "case",
    [case for case in BROKEN.values() if case.kind == "Invalid value" and "][" not in case.field],
    ids=lambda case: case.field,
)
def test_a_value_that_is_refused_is_shown(case):
    (flaw,) = flaws(case.labels, case.annotations)
    assert flaw.value == case.annotations[case.field.removeprefix("annotations[").rstrip("]")]


@pytest.mark.parametrize(
    "modes",
    [
        pytest.param((REQUIRED, PREFERRED), id="required_preferred"),
        pytest.param((REQUIRED, UNCONSTRAINED), id="required_unconstrained"),
        pytest.param((REQUIRED, PREFERRED, UNCONSTRAINED), id="all"),
    ],
)
def test_more_than_one_mode_is_refused(modes):
    values = {REQUIRED: RACK, PREFERRED: RACK, UNCONSTRAINED: "true"}
    found = flaws({}, {mode: values[mode] for mode in modes})
    one(found, "annotations", "Invalid value", "must not contain more than one topology annotation")
    assert found[0].value is None


@pytest.mark.parametrize(
    "annotations",
    [
        pytest.param({SLICE_LEVEL: RACK, SLICE_SIZE: "9"}, id="size"),
        pytest.param({SLICE_LAYERS: f'[{{"topology":"{RACK}","size":9}}]'}, id="first_layer"),
    ],
)
def test_a_slice_larger_than_the_pod_set_is_refused_where_its_size_is_known(annotations):
    (field,) = (key for key in annotations if key != SLICE_LEVEL)
    found = flaws({}, annotations, pods=8)
    one(found, f"annotations[{field}]", "Invalid value", "greater than pod set count 8")
    assert flaws({}, annotations, pods=9) == []
    assert flaws({}, annotations) == []


@pytest.mark.parametrize(
    "annotations",
    [
        pytest.param({SLICE_LEVEL: RACK, SLICE_SIZE: "3"}, id="size"),
        pytest.param({SLICE_LAYERS: f'[{{"topology":"{RACK}","size":3}}]'}, id="first_layer"),
    ],
)
def test_a_slice_that_does_not_divide_the_pod_set_is_refused(annotations):
    (field,) = (key for key in annotations if key != SLICE_LEVEL)
    found = flaws({}, annotations, pods=8)
    one(found, f"annotations[{field}]", "Invalid value", "evenly divide pod set count 8")
    assert flaws({}, annotations, pods=9) == []


@pytest.mark.parametrize("size", [0, -3])
def test_a_slice_of_no_pods_is_told_once_where_the_size_of_the_pod_set_is_known(size):
    found = flaws({}, {SLICE_LEVEL: RACK, SLICE_SIZE: str(size)}, pods=8)
    one(found, f"annotations[{SLICE_SIZE}]", "Invalid value", AT_LEAST_1)
    layers = {SLICE_LAYERS: f'[{{"topology":"{RACK}","size":{size}}}]'}
    found = flaws({}, layers, pods=8)
    one(found, f"annotations[{SLICE_LAYERS}][0].size", "Invalid value", AT_LEAST_1)


@pytest.mark.parametrize(
    "slices",
    [
        pytest.param({SLICE_LEVEL: RACK, SLICE_SIZE: "2"}, id="level_and_size"),
        pytest.param({SLICE_LAYERS: f'[{{"topology":"{RACK}","size":2}}]'}, id="layers"),
    ],
)
def test_a_pod_set_group_with_slices_is_refused_for_each_of_them(slices):
    found = flaws({}, {REQUIRED: BLOCK, POD_SET_GROUP: "g", **slices})
    assert [(flaw.field, flaw.kind, flaw.text) for flaw in found] == [
        (f"annotations[{POD_SET_GROUP}]", "Forbidden", f"may not be set when '{key}' is specified")
        for key in slices
    ]


@pytest.mark.parametrize("other", [{SLICE_LEVEL: RACK, SLICE_SIZE: "2"}, {SLICE_SIZE: "2"}])
def test_layers_beside_a_slice_are_refused(other):
    layers = {SLICE_LAYERS: f'[{{"topology":"{RACK}","size":2}}]'}
    found = [flaw for flaw in flaws({}, layers | other) if SLICE_LAYERS in flaw.field]
    assert [flaw.kind for flaw in found] == ["Forbidden"] * len(other)
    assert all(key in flaw.text for key, flaw in zip(other, found, strict=True))


def test_every_broken_rule_is_told_and_not_the_first_only():
    found = flaws({}, {REQUIRED: "a b", PREFERRED: "c d", SLICE_SIZE: "x", UNCONSTRAINED: "maybe"})
    assert {flaw.field.partition("[")[2].rstrip("]") for flaw in found} == {
        "",  # more than one mode: all annotations together
        REQUIRED,
        PREFERRED,
        SLICE_SIZE,
        UNCONSTRAINED,
    }
    assert len(found) == 6


# -- the templates of one object -----------------------------------------------------------------


def claim(name: str, pods: int | None, group: str = "g", **levels: str) -> PodSetClaim:
    return PodSetClaim(f"spec.{name}.metadata", {POD_SET_GROUP: group, **levels}, pods)


def found_in(*claims: PodSetClaim) -> list[tuple[PodSetClaim, Flaw]]:
    """What the templates of a JobSet break together."""
    return list(together(TemplateOwner("jobset.x-k8s.io", "JobSet", {}, claims)))


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
        pytest.param(
            [PodSetClaim("a", {POD_SET_GROUP: "g", **IN_RACK}, 4, is_grouped=False)],
            id="one_of_the_templates_of_another_object",
        ),
    ],
)
def test_pod_set_groups_of_a_leader_and_its_workers_are_let_in(claims):
    assert found_in(*claims) == []


@pytest.mark.parametrize("sets", [1, 3])
def test_a_group_of_other_than_two_pod_sets_is_refused_at_each(sets):
    claims = [claim(f"set{n}", 1, **IN_RACK) for n in range(sets)]
    found = found_in(*claims)
    assert [where for where, _ in found] == claims
    for _, flaw in found:
        assert flaw.field == f"annotations[{POD_SET_GROUP}]"
        assert f"exactly 2 pod sets, got: {sets} pod set(s)" in flaw.text


def test_a_group_without_a_pod_set_of_one_is_refused():
    found = found_in(claim("a", 2, **IN_RACK), claim("b", 3, **IN_RACK))
    assert [where.pods for where, _ in found] == [2, 3]
    assert all("got: 2 replica(s) and 3 replica(s)" in flaw.text for _, flaw in found)


@pytest.mark.parametrize(
    "levels", [{REQUIRED: BLOCK}, {PREFERRED: RACK}, {}], ids=["level", "mode", "none"]
)
def test_a_group_whose_pod_sets_want_different_things_is_refused(levels):
    found = found_in(claim("a", 1, **IN_RACK), claim("b", 3, **levels))
    assert [flaw.field for _, flaw in found] == ["annotations", "annotations"]
    assert "'spec.b.metadata.annotations' in group 'g'" in found[0][1].text
    assert "'spec.a.metadata.annotations' in group 'g'" in found[1][1].text


def elastic(
    template: dict[str, str], group: str = "batch", said: str = "true", kind: str = "Job"
) -> list[Flaw]:
    """What is wrong with the template of an elastic Job."""
    pod_set = PodSetClaim("spec.template.metadata", template, 4, is_grouped=False)
    owner = TemplateOwner(group, kind, {ELASTIC: said}, (pod_set,))
    return [flaw for _, flaw in together(owner)]


@pytest.mark.parametrize("key", [REQUIRED, PREFERRED])
def test_an_elastic_job_may_not_ask_for_one_domain(key):
    one(elastic({key: RACK}), f"annotations[{key}]", "Forbidden", "elastic-job")
    assert elastic({key: RACK}, said="false") == []
    assert elastic({key: RACK}, group="example.com") == []
    assert elastic({key: RACK}, kind="CronJob") == []
    assert elastic({UNCONSTRAINED: "true"}) == []
