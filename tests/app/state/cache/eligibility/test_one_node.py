"""Selectors, affinity and taints decide as kube-scheduler's own filters do."""

from __future__ import annotations

import pytest

from app.kube.core.objects import Requirement, Shape, Taint, Term, Toleration
from app.state.cache.eligibility.one_node import (
    AFFINITY,
    SELECTOR,
    may_host,
    may_stay,
    preference,
    whole_number,
    why_not,
)
from tests.records import node

LABELS = {"zone": "a", "cores": "32"}


@pytest.mark.parametrize(
    ("operator", "values", "holds"),
    [
        ("In", ("a", "b"), True),
        ("In", ("b",), False),
        ("NotIn", ("b",), True),
        ("NotIn", ("a",), False),
        ("Exists", (), True),
        ("DoesNotExist", (), False),
        ("Gt", ("1",), False),  # "a" is no number
        ("Future", ("a",), False),
    ],
)
def test_operators_on_a_label_that_is_there(operator, values, holds):
    shape = Shape(terms=(Term(expressions=(Requirement("zone", operator, values),)),))
    assert may_host(node("n1", labels=LABELS), shape) is holds


@pytest.mark.parametrize(
    ("operator", "values", "holds"),
    [
        ("In", ("a",), False),
        ("NotIn", ("a",), True),
        ("Exists", (), False),
        ("DoesNotExist", (), True),
    ],
)
def test_operators_on_a_label_that_is_missing(operator, values, holds):
    shape = Shape(terms=(Term(expressions=(Requirement("missing", operator, values),)),))
    assert may_host(node("n1", labels=LABELS), shape) is holds


@pytest.mark.parametrize(
    ("operator", "bound", "holds"),
    [
        ("Gt", "31", True),
        ("Gt", "32", False),
        ("Gt", "4", True),
        ("Lt", "33", True),
        ("Lt", "32", False),
        ("Lt", "100", True),
        ("Lt", " 33", False),
    ],
)
def test_numbers_are_compared_as_numbers(operator, bound, holds):
    shape = Shape(terms=(Term(expressions=(Requirement("cores", operator, (bound,)),)),))
    assert may_host(node("n1", labels=LABELS), shape) is holds


@pytest.mark.parametrize(
    ("text", "number"),
    [
        (str(2**63 - 1), 2**63 - 1),
        (str(-(2**63)), -(2**63)),
        (str(2**62), 2**62),
        ("0", 0),
        ("-0", 0),
        ("", None),
        ("+1", None),
        ("1.0", None),
        (str(2**63), None),
        (str(-(2**63) - 1), None),
        ("1_0", None),
        ("٣", None),
    ],
)
def test_a_number_is_an_int64_in_ascii_digits(text, number):
    assert whole_number(text) == number


@pytest.mark.parametrize("operator", ["Gt", "Lt"])
def test_numbers_are_compared_only_where_there_are_two(operator):
    for key, values in (("cores", ()), ("missing", ("1",))):
        shape = Shape(terms=(Term(expressions=(Requirement(key, operator, values),)),))
        assert not may_host(node("n1", labels=LABELS), shape)


def test_all_labels_of_a_selector_are_on_the_node():
    n1 = node("n1", labels=LABELS)
    assert may_host(n1, Shape(selector=(("zone", "a"), ("cores", "32"))))
    assert not may_host(n1, Shape(selector=(("zone", "a"), ("cores", "33"))))
    assert not may_host(n1, Shape(selector=(("zone", "b"), ("cores", "32"))))
    assert not may_host(n1, Shape(selector=(("missing", ""),)))


def test_terms_are_alternatives_and_lines_of_a_term_are_not():
    here = Requirement("zone", "In", ("a",))
    there = Requirement("zone", "In", ("b",))
    n1 = node("n1", labels=LABELS)
    assert may_host(n1, Shape(terms=(Term(expressions=(there,)), Term(expressions=(here,)))))
    assert not may_host(n1, Shape(terms=(Term(expressions=(here, there)),)))


def test_an_empty_term_matches_no_node():
    assert not may_host(node("n1"), Shape(terms=(Term(),)))


def test_fields_and_expressions_of_a_term_both_hold():
    named = (Requirement("metadata.name", "In", ("n1",)),)
    zone = (Requirement("zone", "In", ("a",)),)
    shape = Shape(terms=(Term(expressions=zone, fields=named),))
    assert may_host(node("n1", labels=LABELS), shape)
    assert not may_host(node("n2", labels=LABELS), shape)
    assert not may_host(node("n1"), shape)


def test_no_field_but_the_name_is_known():
    shape = Shape(terms=(Term(fields=(Requirement("metadata.namespace", "In", ("n1",)),)),))
    assert not may_host(node("n1"), shape)


def test_match_fields_name_the_node():
    shape = Shape(terms=(Term(fields=(Requirement("metadata.name", "In", ("n1",)),)),))
    assert may_host(node("n1"), shape)
    assert not may_host(node("n2"), shape)


@pytest.mark.parametrize(
    ("taint", "toleration", "is_allowed"),
    [
        pytest.param(Taint("k", "v", "NoSchedule"), None, False, id="untolerated"),
        pytest.param(Taint("k", "v", "PreferNoSchedule"), None, True, id="prefer_only_scores"),
        pytest.param(
            Taint("k", "v", "NoExecute"), Toleration("k", "Equal", "v", ""), True, id="equal"
        ),
        pytest.param(
            Taint("k", "v", "NoExecute"), Toleration("k", "Equal", "w", ""), False, id="other_value"
        ),
        pytest.param(
            Taint("k", "v", "NoSchedule"), Toleration("k", "Exists", "", ""), True, id="exists"
        ),
        pytest.param(
            Taint("k", "v", "NoSchedule"), Toleration("", "Exists", "", ""), True, id="everything"
        ),
        pytest.param(
            Taint("k", "v", "NoSchedule"),
            Toleration("k", "Exists", "", "NoExecute"),
            False,
            id="other_effect",
        ),
        pytest.param(
            Taint("k", "v", "NoSchedule"),
            Toleration("k", "Exists", "", "NoSchedule"),
            True,
            id="the_same_effect",
        ),
        pytest.param(
            Taint("k", "v", "NoSchedule"), Toleration("l", "Exists", "", ""), False, id="other_key"
        ),
        pytest.param(
            Taint("k", "v", "NoSchedule"), Toleration("", "Equal", "v", ""), True, id="any_key"
        ),
        pytest.param(
            Taint("k", "", "NoSchedule"), Toleration("k", "Equal", "", ""), True, id="no_value"
        ),
        pytest.param(
            Taint("sla", "950", "NoSchedule"), Toleration("sla", "Gt", "900", ""), True, id="gt"
        ),
        pytest.param(
            Taint("sla", "0", "NoSchedule"),
            Toleration("sla", "Lt", "0", ""),
            False,
            id="equal_is_not_lt",
        ),
        pytest.param(
            Taint("sla", "1", "NoSchedule"),
            Toleration("sla", "Lt", "high", ""),
            False,
            id="no_number_to_compare_with",
        ),
        pytest.param(
            Taint("sla", "900", "NoSchedule"),
            Toleration("sla", "Gt", "900", ""),
            False,
            id="equal_is_not_gt",
        ),
        pytest.param(
            Taint("sla", "-5", "NoSchedule"), Toleration("sla", "Lt", "0", ""), True, id="lt"
        ),
        pytest.param(
            Taint("sla", "high", "NoSchedule"),
            Toleration("sla", "Gt", "1", ""),
            False,
            id="no_number",
        ),
        pytest.param(
            Taint("k", "v", "NoSchedule"), Toleration("k", "Future", "v", ""), False, id="unknown"
        ),
    ],
)
def test_taints_and_tolerations(taint, toleration, is_allowed):
    shape = Shape(tolerations=(toleration,) if toleration else ())
    assert may_host(node("n1", taints=(taint,)), shape) is is_allowed


def test_every_taint_is_tolerated_and_any_toleration_may_be_the_one():
    one, other = Taint("one", "", "NoSchedule"), Taint("other", "", "NoExecute")
    tolerations = tuple(Toleration(taint.key, "Exists", "", "") for taint in (one, other))
    both = node("n1", taints=(one, other))
    assert may_host(both, Shape(tolerations=tolerations))
    assert not may_host(both, Shape(tolerations=tolerations[:1]))
    assert not may_host(both, Shape(tolerations=tolerations[1:]))


def test_a_pod_may_stay_where_no_taint_will_evict_it_after_a_while():
    for_good = Toleration("k", "Exists", "", "NoExecute")
    for_a_while = Toleration("k", "Exists", "", "NoExecute", is_for_a_while=True)
    evicts, bars = Taint("k", "", "NoExecute"), Taint("k", "", "NoSchedule")
    tolerates_all = Toleration("k", "Exists", "", "", is_for_a_while=True)
    assert may_stay(node("n1"), Shape())
    assert may_stay(node("n1", taints=(evicts,)), Shape(tolerations=(for_good,)))
    assert not may_stay(node("n1", taints=(evicts,)), Shape(tolerations=(for_a_while,)))
    assert may_stay(node("n1", taints=(evicts,)), Shape(tolerations=(for_a_while, for_good)))
    assert may_stay(node("n1", taints=(bars,)), Shape(tolerations=(tolerates_all,)))
    assert not may_stay(node("n1", taints=(bars,)), Shape())


def test_preferred_terms_that_hold_add_their_weights():
    zone, cores, other = (
        Term(expressions=(Requirement(key, "In", (value,)),))
        for key, value in (("zone", "a"), ("cores", "32"), ("zone", "b"))
    )
    shape = Shape(preferred=((10, zone), (3, cores), (50, other), (100, Term())))
    assert preference(node("n1", labels=LABELS), shape) == 13
    assert preference(node("n2", labels={"zone": "b"}), shape) == 50
    assert preference(node("n3"), shape) == 0
    assert may_host(node("n3"), shape), "what is preferred keeps no pod off"


TAINT = Taint("k", "v", "NoSchedule")
WANTED = Shape(
    selector=(("zone", "a"),),
    terms=(Term(expressions=(Requirement("cores", "In", ("32",)),)),),
)


@pytest.mark.parametrize(
    ("labels", "taints", "reason"),
    [
        pytest.param(LABELS, (), "", id="nothing"),
        pytest.param({}, (TAINT,), 'taint "k=v:NoSchedule"', id="a_taint_first"),
        pytest.param(
            LABELS, (Taint("k", "", "NoExecute"),), 'taint "k:NoExecute"', id="without_a_value"
        ),
        pytest.param(
            LABELS,
            (Taint("soft", "", "PreferNoSchedule"), TAINT),
            'taint "k=v:NoSchedule"',
            id="the_first_taint_that_bars",
        ),
        pytest.param({"zone": "b"}, (), SELECTOR, id="the_selector_second"),
        pytest.param({"zone": "a", "cores": "33"}, (), AFFINITY, id="affinity_last"),
    ],
)
def test_the_first_reason_that_keeps_a_pod_off_is_named(labels, taints, reason):
    n1 = node("n1", labels=labels, taints=taints)
    assert why_not(n1, WANTED) == reason
    assert may_host(n1, WANTED) is (not reason)


def test_no_reason_keeps_a_pod_off_that_asks_for_nothing():
    assert why_not(node("n1", labels=LABELS), Shape()) == ""
