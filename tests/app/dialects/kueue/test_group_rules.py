"""Every rule about what pods say of their group.

Source: kueue pkg/controller/jobs/pod/pod_webhook.go (v0.16).
"""

from __future__ import annotations

import pytest

from app.dialects.flaw import Flaw
from app.dialects.kueue import group_rules
from tests.app.dialects.kueue.cases import Case, flaws, one
from tests.records import GROUP, TOTAL, group, pod

INDEX = "kueue.x-k8s.io/pod-group-pod-index"
MANAGED = "kueue.x-k8s.io/managed"
PREBUILT = "kueue.x-k8s.io/prebuilt-workload-name"
RETRIABLE = "kueue.x-k8s.io/retriable-in-group"
SETS = "kueue.x-k8s.io/pod-group-sets"
ROLE = "kueue.x-k8s.io/pod-group-role"
SPARES = "corral.dev/spare-pods"
ABSENT = "corral.dev/absent-seconds"
DISRUPTION = "corral.dev/disruption"
FLAGS = (RETRIABLE, "kueue.x-k8s.io/pod-group-serving", "kueue.x-k8s.io/pod-group-fast-admission")
OURS = "corral.dev/managed"
BOTH = "should be set"
NUMBER = "must be a numeric value"
AT_LEAST_1 = "must be greater than or equal to 1"

Pair = tuple[dict[str, str], dict[str, str]]  # labels and annotations


def at(where: str, text: str) -> Pair:
    """A group's name in one of the two places."""
    return ({GROUP: text}, {}) if where == "labels" else ({}, {GROUP: text})


NO_COUNTS = {
    "empty": ("", NUMBER),
    "word": ("three", NUMBER),
    "exponent": ("1e3", NUMBER),
    "zero": ("0", AT_LEAST_1),
    "negative": ("-1", AT_LEAST_1),
    "too_many": ("1000000000", "must be less than or equal to 100000"),
}
NO_SUBDOMAINS = (
    *("", "Group", "a_b", "-a", "a-", "a..b", ".a", "a b", "a\n", "é", "a/../b"),
    "x" * 254,
)
NO_INDICES = ("", "-1", "1.0", "x", "٣", "18446744073709551616", "9" * 100)
BROKEN = {
    **{
        f"managed_{value!r}": Case(
            {}, f"labels[{MANAGED}]", "Forbidden", "can only be 'true'", {MANAGED: value}
        )
        for value in ("", "false", "True", "yes")
    },
    "our_managed_label": Case(
        {}, f"labels[{OURS}]", "Invalid value", "'true' or 'false'", {OURS: "maybe"}
    ),
    **{
        f"name_in_{where}_without_a_total_count": Case(
            at(where, "g")[1], f"annotations[{TOTAL}]", "Required value", BOTH, at(where, "g")[0]
        )
        for where in ("labels", "annotations")
    },
    "total_count_without_a_name": Case({TOTAL: "3"}, f"labels[{GROUP}]", "Required value", BOTH),
    **{
        f"total_count_{name}": Case(
            group("g", total), f"annotations[{TOTAL}]", "Invalid value", text
        )
        for name, (total, text) in NO_COUNTS.items()
    },
    **{
        f"name_in_{where}_{name[:9]!r}": Case(
            {TOTAL: "2", **at(where, name)[1]},
            f"{where}[{GROUP}]",
            "Invalid value",
            "RFC 1123 subdomain",
            at(where, name)[0],
        )
        for where in ("labels", "annotations")
        for name in NO_SUBDOMAINS
    },
    "two_names": Case(
        group("two", 3),
        f"labels[{GROUP}]",
        "Invalid value",
        'must be equal to the annotation "two"',
        {GROUP: "one"},
    ),
    **{
        f"index_{index[:21]!r}": Case(
            group("g", 3),
            f"labels[{INDEX}]",
            "Invalid value",
            "must be an unsigned integer",
            {INDEX: index},
        )
        for index in NO_INDICES
    },
    **{
        f"index_past_the_size_{index}": Case(
            group("g", 3),
            f"labels[{INDEX}]",
            "Invalid value",
            "must be less than 3",
            {INDEX: index},
        )
        for index in ("3", "4", "18446744073709551615")
    },
    "prebuilt_label": Case(
        group("g", 3),
        f"labels[{PREBUILT}]",
        "Invalid value",
        "equal to the name of the pod group",
        {PREBUILT: "other"},
    ),
    "prebuilt_annotation": Case(
        {**group("g", 3), PREBUILT: "other"},
        f"annotations[{PREBUILT}]",
        "Invalid value",
        "equal to the name of the pod group",
    ),
    **{
        f"{key.rpartition('/')[2]}_{text!r}": Case(
            {**group("g", 3), key: text},
            f"annotations[{key}]",
            "Invalid value",
            "must be a boolean value",
        )
        for key in FLAGS
        for text in ("", "yes", "FALSCH", "2")
    },
    **{
        f"{key}_{text!r}": Case(
            {**group("g", 3), key: text},
            f"annotations[{key}]",
            "Invalid value",
            f"must be a whole number from 0 to {most}",
        )
        for key, most in ((SPARES, 100), (ABSENT, 86_400))
        for text in ("", "-1", "1.5", "two", "٣", str(most + 1), "1000000")
    },
    **{
        f"disruption_{text!r}": Case(
            {**group("g", 3), DISRUPTION: text},
            f"annotations[{DISRUPTION}]",
            "Invalid value",
            "must be 'single' or 'all'",
        )
        for text in ("", "All", "none")
    },
    "story_3_no_set": Case(
        {GROUP: "g", SETS: "[]"}, f"annotations[{SETS}]", "Invalid value", "must have 1 to 18 sets"
    ),
}


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
        pytest.param({}, {SETS: "[]"}, id="sets_of_no_group"),
        pytest.param({OURS: "false"}, group("g", 3), id="opted_out"),
        pytest.param({OURS: "true"}, group("g", 3), id="taken_in"),
        pytest.param({}, group("x" * 253, 3), id="the_longest_name"),
        pytest.param({}, group("g", 1), id="a_group_of_one"),
        pytest.param({}, group("g", 100_000), id="the_largest_group"),
        pytest.param({INDEX: "0"}, group("g", 1), id="index_of_the_only_pod"),
        pytest.param({INDEX: str(2**64 - 1)}, {}, id="the_largest_index"),
        pytest.param({}, {**group("g", 3), SPARES: "0", ABSENT: "0"}, id="no_spares_and_no_wait"),
        pytest.param({}, {**group("g", 3), SPARES: "100", ABSENT: "86400"}, id="most_of_both"),
        pytest.param({}, {**group("g", 3), DISRUPTION: "single"}, id="single"),
        pytest.param({}, {**group("g", 3), DISRUPTION: "all"}, id="all"),
        pytest.param({}, {**group("g", 3), **dict.fromkeys(FLAGS, "f")}, id="flags_as_go_spells"),
        pytest.param({}, {DISRUPTION: "none", SPARES: "x"}, id="the_life_of_no_gang"),
    ],
)
def test_what_can_be_meant_is_let_in(labels, annotations):
    assert flaws(labels, annotations) == []


@pytest.mark.parametrize("case", BROKEN.values(), ids=BROKEN)
def test_what_cannot_be_meant_is_told_once_and_at_its_own_field(case):
    one(flaws(case.labels, case.annotations), case.field, case.kind, case.text)


# -- changes -------------------------------------------------------------------------------------


def change(before: Pair, after: Pair) -> list[Flaw]:
    earlier, later = (
        pod("p", labels=labels, annotations=annotations) for labels, annotations in (before, after)
    )
    return list(group_rules.change(earlier, later))


@pytest.mark.parametrize(
    ("before", "after", "field"),
    [
        pytest.param(({}, {GROUP: "a"}), ({}, {GROUP: "b"}), "annotations", id="annotation"),
        pytest.param(({GROUP: "a"}, {}), ({GROUP: "b"}, {}), "labels", id="label"),
        pytest.param(({GROUP: "a"}, {}), ({}, {}), "labels", id="removed"),
    ],
)
def test_a_group_name_may_not_change(before, after, field):
    found = change(before, after)
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
def test_what_may_change_may_change(before, after):
    assert change(before, after) == []


@pytest.mark.parametrize("after", [{}, {RETRIABLE: "true"}])
def test_a_pod_that_ends_its_group_stays_one(after):
    before = {GROUP: "g", RETRIABLE: "false"}
    found = change(({}, before), ({}, {GROUP: "g", **after}))
    one(found, f"annotations[{RETRIABLE}]", "Forbidden", "can't be converted to retriable")
