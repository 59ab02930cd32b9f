"""Many patterns searched for at once find what each of them finds alone."""

from __future__ import annotations

import pytest
import re2  # type: ignore[import-untyped]
from hypothesis import given
from hypothesis import strategies as st

from app import patterns
from app.patterns import InvalidPattern, Patterns, check

TEXTS = ["node-1", "node-12", "gpu-a", "", "a.b"]


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        pytest.param("node", ["node-1", "node-12"], id="anywhere"),
        pytest.param("^node-1$", ["node-1"], id="anchored"),
        pytest.param("ode-[0-9]{2}", ["node-12"], id="in_the_middle"),
        pytest.param("(?i)NODE-1$", ["node-1"], id="a_flag"),
        pytest.param("a.b", ["a.b"], id="any_character"),
        pytest.param("", TEXTS, id="the_empty_pattern_is_everywhere"),
    ],
)
def test_a_pattern_is_found_anywhere_in_a_text(pattern: str, found: list[str]) -> None:
    many = Patterns()
    many.put("key", [pattern])
    assert [text for text in TEXTS if many.find(text) == {"key"}] == found
    assert list(many.occurring("key", TEXTS)) == found


@pytest.mark.parametrize(
    ("pattern", "why"),
    [
        pytest.param("(", "missing )", id="unbalanced"),
        pytest.param("a(?=b)", "invalid perl operator", id="look_ahead"),
        pytest.param(r"(a)\1", "invalid escape sequence", id="back_reference"),
        pytest.param("a{1001}", "repetition size", id="too_many_times"),
        pytest.param("a" * 1025, "longer than 1024", id="too_long"),
        pytest.param(r"\pL" * 11, "Unicode class counts for 100", id="too_many_classes"),
        pytest.param("x.{999}.{999}.{999}", "pattern too large", id="too_large"),
    ],
)
def test_what_go_does_not_take_is_refused_and_said(pattern: str, why: str) -> None:
    with pytest.raises(InvalidPattern, match=why.replace(")", r"\)")):
        check(pattern)


def test_a_pattern_that_would_take_for_ever_elsewhere_takes_no_time() -> None:
    many = Patterns()
    many.put("key", ["^(a+)+$"])  # a backtracking engine tries 2^60 ways here
    assert many.find("a" * 60 + "b") == set()
    assert many.find("a" * 60) == {"key"}


def test_patterns_are_compiled_anew_in_blocks_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patterns, "MOST_IN_BLOCK", 4)
    many = Patterns()
    for number in range(10):
        many.put(f"k{number}", [f"^n{number}$"])
    assert [len(block.patterns) for block in many._blocks] == [4, 4, 2]
    assert all(many.find(f"n{number}") == {f"k{number}"} for number in range(10))
    for number in range(9):
        many.drop(f"k{number}")
    many.put("more", ["^m$"])  # what nobody looks for any more is left out by now
    assert [len(block.patterns) for block in many._blocks] == [2]
    assert (many.find("n9"), many.find("m"), many.find("n1")) == ({"k9"}, {"more"}, set())


def test_patterns_that_are_too_large_to_be_searched_for_at_once_are_found_one_by_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cramped = re2.Options()
    cramped.max_mem = 1 << 16
    cramped.log_errors = False
    monkeypatch.setattr(patterns, "_OPTIONS", cramped)
    words = [f"x[0-9]*y{number}$" for number in range(400)]
    assert patterns._together(words) is False, "there is room, so nothing is shown here"
    many = Patterns()
    for number, word in enumerate(words):
        many.put(f"k{number}", [word])
    assert many.find("x12y399") == {"k399"}


KEYS, WORDS = ("a", "b", "c"), ("x", "^x", "x$", "y", "x.*y", "^$")


@given(
    st.lists(st.tuples(st.sampled_from(KEYS), st.lists(st.sampled_from(WORDS), max_size=3))),
    st.sampled_from(["x", "xy", "yx", "zx", ""]),
)
def test_keys_have_what_they_were_given_last(puts: list[tuple[str, list[str]]], text: str) -> None:
    many, last = Patterns(), dict[str, list[str]]()
    for key, words in puts:
        many.put(key, words)
        last[key] = words
    expected = {key for key, words in last.items() if any(re2.search(each, text) for each in words)}
    assert many.find(text) == expected
