"""Label keys, and selectors: what they say, what they select, what is no selector."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.labels import (
    EVERYTHING,
    LabelSelector,
    Requirement,
    is_label_key,
    is_label_value,
    selector_from_text,
)


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
    assert is_label_key(text) is is_key


@pytest.mark.parametrize("text", ["", "a", "A-1_b.c", "v" * 63])
def test_label_values_are_short_words_or_empty(text):
    assert is_label_value(text)


@pytest.mark.parametrize("text", ["v" * 64, "-a", "a/b", "a b", "٣"])
def test_what_the_api_server_takes_for_no_label_value_is_none(text):
    assert not is_label_value(text)


# -- what a selector says ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "requirement"),
    [
        pytest.param("team=a", Requirement("team", "In", frozenset({"a"})), id="equal"),
        pytest.param("team == a", Requirement("team", "In", frozenset({"a"})), id="double_equal"),
        pytest.param("team!=a", Requirement("team", "NotIn", frozenset({"a"})), id="not_equal"),
        pytest.param("team=", Requirement("team", "In", frozenset({""})), id="empty_value"),
        pytest.param("team in (a, b)", Requirement("team", "In", frozenset("ab")), id="in"),
        pytest.param("team notin(a)", Requirement("team", "NotIn", frozenset("a")), id="notin"),
        pytest.param("team in ()", Requirement("team", "In", frozenset({""})), id="in_nothing"),
        pytest.param("team in (a,)", Requirement("team", "In", frozenset({"a", ""})), id="or_none"),
        pytest.param("team", Requirement("team", "Exists"), id="exists"),
        pytest.param("! team", Requirement("team", "DoesNotExist"), id="does_not_exist"),
        pytest.param("in in (in)", Requirement("in", "In", frozenset({"in"})), id="a_key_in"),
        pytest.param(
            "kubernetes.io/metadata.name notin (kube-system)",
            Requirement("kubernetes.io/metadata.name", "NotIn", frozenset({"kube-system"})),
            id="a_prefixed_key",
        ),
    ],
)
def test_one_requirement_is_read_as_kubectl_reads_it(text, requirement):
    assert selector_from_text(text) == LabelSelector((requirement,))


@pytest.mark.parametrize("text", ["", "  "])
def test_no_text_selects_everything(text):
    assert selector_from_text(text) == EVERYTHING
    assert EVERYTHING.matches({})


@pytest.mark.parametrize(
    ("labels", "is_selected"),
    [
        ({"team": "a"}, True),
        ({"team": "b", "other": ""}, True),
        ({"team": "c"}, False),
        ({}, False),
        ({"team": "a", "legacy": ""}, False),
    ],
)
def test_every_requirement_must_hold(labels, is_selected):
    assert selector_from_text("team in (a,b),!legacy").matches(labels) is is_selected


@pytest.mark.parametrize("text", ["team!=a", "team notin (a)"])
def test_what_must_not_be_there_may_be_missing(text):
    selector = selector_from_text(text)
    assert selector.matches({})
    assert not selector.matches({"team": "a"})


def test_a_selector_knows_the_keys_that_matter_to_it():
    assert selector_from_text("team in (a),!legacy,team!=b").keys == {"team", "legacy"}


# -- what is none --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "told"),
    [
        pytest.param(
            "team=a,", "expected the key of a label, found the end", id="comma_at_the_end"
        ),
        pytest.param(",team", "expected the key of a label, found ','", id="comma_first"),
        pytest.param("team a", "found 'a'", id="no_operator"),
        pytest.param("team=a b", "expected ',', found 'b'", id="two_values"),
        pytest.param("team in a", "expected '(', found 'a'", id="no_parentheses"),
        pytest.param("team in (a", "expected ',' or ')', found the end", id="open_parenthesis"),
        pytest.param("team in (a b)", "expected ',' or ')', found 'b'", id="no_comma"),
        pytest.param("team In (a)", "found 'In'", id="capitals"),
        pytest.param("!team=a", "expected ',', found '='", id="not_and_equal"),
        pytest.param("replicas>3", "found '>'", id="a_comparison"),
        pytest.param("te am/x=a", "found 'am/x'", id="key_with_a_space"),
        pytest.param("a/b/c", "expected the key of a label, found 'a/b/c'", id="no_key"),
        pytest.param("team=a/b", "expected the value of a label, found 'a/b'", id="no_value"),
        pytest.param("team=" + "v" * 64, "expected the value of a label", id="long_value"),
    ],
)
def test_what_is_no_selector_names_what_is_wrong(text, told):
    with pytest.raises(ValueError, match="expected") as error:
        selector_from_text(text)
    assert told in str(error.value)


# -- both together -------------------------------------------------------------------------------

KEYS = st.sampled_from(["team", "in", "notin", "example.com/tier"])
VALUES = st.sampled_from(["", "a", "in", "notin", "B-1"])
BLANK = st.sampled_from(["", " ", "\t "])
REQUIREMENTS = st.one_of(
    st.builds(
        Requirement,
        KEYS,
        st.sampled_from(["In", "NotIn"]),
        st.frozensets(VALUES, min_size=1),
    ),
    st.builds(Requirement, KEYS, st.sampled_from(["Exists", "DoesNotExist"])),
)


def written(requirement: Requirement, blank: str) -> str:
    """One of the ways to write a requirement."""
    values = f"{blank},{blank}".join(sorted(requirement.values))
    match requirement.operator:
        case "Exists":
            return requirement.key
        case "DoesNotExist":
            return f"!{blank}{requirement.key}"
        case "In" if len(requirement.values) == 1:
            return f"{requirement.key}{blank}={blank}{values}"
        case operator:
            return f"{requirement.key} {operator.lower()}{blank}({blank}{values}{blank})"


@given(st.lists(REQUIREMENTS), BLANK)
def test_a_selector_that_is_written_is_read_again(requirements, blank):
    text = f"{blank},{blank}".join(written(each, blank) for each in requirements)
    assert selector_from_text(text) == LabelSelector(tuple(requirements))


@given(st.text(alphabet="ab ,()!=<>/-\tin", max_size=20))
def test_any_text_is_a_selector_or_told_what_is_wrong(text):
    try:
        keys = selector_from_text(text).keys
    except ValueError:
        with pytest.raises(ValueError, match=r"^expected .*, found "):
            selector_from_text(text)
    else:
        assert all(is_label_key(key) for key in keys)
