"""Numbers that no pod has are left out when pods are numbered."""

from __future__ import annotations

from itertools import islice

from hypothesis import given
from hypothesis import strategies as st

from topology.pod_set.gaps import NO_GAPS, Gaps
from topology.pod_set.ranks import Numbering, rank_of

numbers = st.integers(0, 30)
spans = st.lists(st.tuples(numbers, numbers).map(sorted).map(tuple), max_size=5)


def covered(given_spans: list[tuple[int, int]]) -> set[int]:
    return {number for first, last in given_spans for number in range(first, last + 1)}


@given(spans, numbers)
def test_gaps_are_the_numbers_of_their_spans(given_spans: list[tuple[int, int]], at: int) -> None:
    gaps, gone = Gaps.of(given_spans), covered(given_spans)
    assert (at in gaps) == (at in gone)
    assert gaps.below(at) == len([each for each in gone if each < at])
    left = [each for each in range(at, 100) if each not in gone]
    assert list(islice(gaps.numbers(at), 10)) == left[:10]


@given(spans, st.integers(1, 8), numbers)
def test_the_numbers_left_are_the_ranks_in_order(
    given_spans: list[tuple[int, int]], pods: int, offset: int
) -> None:
    gaps = Gaps.of(given_spans)
    numbering = Numbering(pods, offset, gaps=gaps)
    its = list(islice(gaps.numbers(offset), pods + 1))
    assert [rank_of(numbering, each) for each in its] == [*range(pods), None]
    assert all(rank_of(numbering, each) is None for each in covered(given_spans))


def test_spans_that_touch_are_one() -> None:
    assert Gaps.of([(3, 4), (0, 2), (9, 9)]) == Gaps((0, 9), (4, 9), (0, 5))
    assert Gaps.of([]) == NO_GAPS


def test_parts_are_numbered_without_gaps() -> None:
    numbering = Numbering(4, parts=2, gaps=Gaps.of([(0, 0)]))
    assert [rank_of(numbering, index, part) for part in (0, 1) for index in (0, 1)] == [0, 1, 2, 3]
