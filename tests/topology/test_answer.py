from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from topology import NoFit
from topology.answer import SENTENCE_MAX

RACK = "cloud.provider.com/topology-rack"


def test_the_sentence_says_how_many_fit_where_and_which_nodes_take_none() -> None:
    answer = NoFit(
        pod_set="workers",
        level=RACK,
        needed=16,
        available=12,
        excluded=(("insufficient nvidia.com/gpu", 3), ("not ready", 1)),
    )
    assert str(answer) == (
        "12 of 16 pods fit in one cloud.provider.com/topology-rack; "
        "excluded nodes: insufficient nvidia.com/gpu 3, not ready 1"
    )


def test_without_a_level_the_sentence_names_no_place() -> None:
    assert str(NoFit("workers", "", needed=4, available=0)) == "0 of 4 pods fit"


def test_at_most_four_reasons_are_told() -> None:
    reasons = tuple((f"reason {letter}", 9) for letter in "abcdef")
    sentence = str(NoFit("w", RACK, 2, 1, excluded=reasons))
    assert "reason d" in sentence
    assert "reason e" not in sentence


def test_reasons_that_would_make_the_sentence_too_long_are_left_out() -> None:
    reasons = tuple((f"insufficient {letter * 300}", 9) for letter in "abc")
    sentence = str(NoFit("w", "l" * 317, 2, 1, excluded=reasons))
    assert "aaa" in sentence
    assert "bbb" not in sentence
    assert len(sentence) <= SENTENCE_MAX


@pytest.mark.slow
@given(
    st.text(max_size=400),
    st.integers(0, 2**31),
    st.lists(st.tuples(st.text(min_size=1, max_size=400), st.integers(1, 10**6)), max_size=8),
)
def test_the_sentence_stays_short_whatever_the_cluster(
    level: str, needed: int, excluded: list[tuple[str, int]]
) -> None:
    answer = NoFit("w", level, needed, needed, excluded=tuple(excluded))
    assert len(str(answer)) <= SENTENCE_MAX
    assert str(answer) == str(NoFit("w", level, needed, needed, excluded=tuple(excluded)))
