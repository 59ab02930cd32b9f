"""Selectors, affinity and taints decide as kube-scheduler's own filters do."""

from __future__ import annotations

import pytest

from app.kube.core.objects import Requirement, Shape, Taint, Term, Toleration
from app.state.cache.eligibility import may_host, whole_number
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
    [("Gt", "31", True), ("Gt", "32", False), ("Lt", "33", True), ("Lt", " 33", False)],
)
def test_numbers_are_compared_as_numbers(operator, bound, holds):
    shape = Shape(terms=(Term(expressions=(Requirement("cores", operator, (bound,)),)),))
    assert may_host(node("n1", labels=LABELS), shape) is holds


@pytest.mark.parametrize(
    ("text", "number"),
    [
        (str(2**63 - 1), 2**63 - 1),
        (str(-(2**63)), -(2**63)),
        (str(2**63), None),
        (str(-(2**63) - 1), None),
        ("1_0", None),
        ("٣", None),
    ],
)
def test_a_number_is_an_int64_in_ascii_digits(text, number):
    assert whole_number(text) == number


def test_terms_are_alternatives_and_lines_of_a_term_are_not():
    here = Requirement("zone", "In", ("a",))
    there = Requirement("zone", "In", ("b",))
    n1 = node("n1", labels=LABELS)
    assert may_host(n1, Shape(terms=(Term(expressions=(there,)), Term(expressions=(here,)))))
    assert not may_host(n1, Shape(terms=(Term(expressions=(here, there)),)))


def test_an_empty_term_matches_no_node():
    assert not may_host(node("n1"), Shape(terms=(Term(),)))


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
            Taint("sla", "950", "NoSchedule"), Toleration("sla", "Gt", "900", ""), True, id="gt"
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
