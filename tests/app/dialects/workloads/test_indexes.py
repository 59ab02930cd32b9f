"""Which numbers of an indexed Job have ended is read from its status, whatever that says."""

from __future__ import annotations

from itertools import islice

import pytest

from app.dialects.workloads import indexes
from app.kube.core.turns import give_way
from topology.pod_set.gaps import NO_GAPS
from topology.pod_set.gaps import Gaps as Of


@pytest.mark.parametrize(
    ("text", "spans"),
    [
        pytest.param("", [], id="none"),
        pytest.param("3", [(3, 3)], id="one"),
        pytest.param("1,3-5,7", [(1, 1), (3, 5), (7, 7)], id="spans"),
        pytest.param("0,1,2-4", [(0, 0), (1, 1), (2, 4)], id="that_touch"),
        pytest.param("7-12,20", [(7, 9)], id="beyond_the_completions"),
        pytest.param("x,1,-2,3-,4-y, 5,6", [(1, 1), (6, 6)], id="what_is_no_number"),
        pytest.param("5,2,6-4,7", [(5, 5), (7, 7)], id="what_is_not_in_order"),
        pytest.param("1" * 5_000 + ",2", [(2, 2)], id="a_number_without_end"),
        pytest.param("1-2,3", [(1, 2), (3, 3)], id="that_follow"),
        pytest.param("١,2", [(2, 2)], id="digits_of_other_scripts"),
    ],
)
def test_spans_are_read_as_the_controller_reads_them(
    text: str, spans: list[tuple[int, int]]
) -> None:
    assert list(indexes.spans(text, 10)) == spans
    assert indexes.how_many(text, 10) == sum(last - first + 1 for first, last in spans)
    assert indexes.gaps([text], 10) == Of.of(spans)


def test_those_that_failed_and_those_that_succeeded_are_gaps_alike() -> None:
    gaps = indexes.gaps(("0,4-5", "1,7"), 10)
    assert list(islice(gaps.numbers(0), 5)) == [2, 3, 6, 8, 9]


def test_a_span_of_all_pods_takes_no_more_room_than_one() -> None:
    assert indexes.gaps([f"0-{10**9}"], 10**9) == Of((0,), (10**9 - 1,), (0,))


def test_numbers_with_too_many_gaps_are_counted_and_not_kept() -> None:
    text = ",".join(str(each) for each in range(0, 100_000, 2))
    assert indexes.how_many(text, 100_000) == 50_000
    assert indexes.gaps([text], 100_000) is NO_GAPS


def test_of_a_text_without_end_only_so_many_spans_are_read() -> None:
    text = ",".join(["1"] + ["x"] * (indexes.MOST_READ - 1) + ["2"])
    assert list(indexes.spans(text, 10)) == [(1, 1)]


def test_others_have_their_turn_while_a_long_text_is_read() -> None:
    turns = []
    token = give_way.set(lambda: turns.append(1))
    try:
        indexes.how_many(",".join(map(str, range(50_000))), 50_000)
    finally:
        give_way.reset(token)
    assert len(turns) >= 50_000 // indexes.AT_ONCE
