from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from topology import NoFit, Pairs, PodSetPlacement
from topology.model.answer import SENTENCE_MAX

RACK = "cloud.provider.com/topology-rack"

PAIRS = st.lists(st.tuples(st.integers(0, 10**6), st.integers(1, 2**31 - 1)), max_size=6)


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


@pytest.mark.parametrize(
    ("fields", "end"),
    [
        pytest.param({"leader": "boss"}, "with leader boss", id="a_leader"),
        pytest.param({"beside": ("a",)}, "beside pod set a", id="another_pod_set"),
        pytest.param({"beside": ("a", "b")}, "beside pod sets a, b", id="two"),
        pytest.param(
            {"beside": tuple("abcde")}, "beside pod sets a, b, c and 2 more", id="too_many_to_list"
        ),
        pytest.param({"beside": ("a" * 90, "b" * 90)}, "beside 2 other pod sets", id="long_names"),
    ],
)
def test_what_fits_alone_says_beside_what_it_does_not(fields: dict[str, Any], end: str) -> None:
    answer = NoFit("w", RACK, needed=4, available=9, **fields)
    assert str(answer) == f"4 of 4 pods fit in one {RACK}, but not {end}"


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        pytest.param("n" * 100, "n" * 100, id="a_hundred_characters_are_whole"),
        pytest.param("a" * 50 + "b" * 51, "a" * 48 + "..." + "b" * 48, id="one_more_is_not"),
        pytest.param("a" * 300 + "z" * 48, "a" * 48 + "..." + "z" * 48, id="both_ends_are_shown"),
    ],
)
def test_a_long_name_is_shown_by_both_of_its_ends(name: str, shown: str) -> None:
    assert str(NoFit("w", name, needed=4, available=1)) == f"1 of 4 pods fit in one {shown}"


def test_pod_sets_are_listed_as_long_as_that_is_no_longer_than_a_name() -> None:
    beside = ("a" * 44, "b" * 45)  # and the words around them
    assert len(f"pod sets {beside[0]}, {beside[1]}") == 100
    listed = str(NoFit("w", "", needed=4, available=4, beside=beside))
    assert listed.endswith(f"but not beside pod sets {beside[0]}, {beside[1]}")
    counted = str(NoFit("w", "", needed=4, available=4, beside=(*beside[:1], "b" * 46)))
    assert counted.endswith("but not beside 2 other pod sets")


def test_three_pod_sets_are_listed_whole() -> None:
    answer = NoFit("w", "", needed=4, available=4, beside=("a", "b", "c"))
    assert str(answer) == "4 of 4 pods fit, but not beside pod sets a, b, c"


def test_a_leader_that_does_not_fit_is_said_and_not_what_is_beside_it() -> None:
    answer = NoFit("w", "", needed=4, available=4, leader="boss", beside=("a",))
    assert str(answer) == "4 of 4 pods fit, but not with leader boss"


def test_inner_layers_of_slices_say_how_many_of_their_slices_fit() -> None:
    answer = NoFit(
        "w",
        "block",
        needed=2,
        available=5,
        unit="slice",
        layers=(("block", 5, 2), ("rack", 3, 4), ("host", 9, 8)),
        excluded=(("not ready", 1),),
        is_cut_short=True,
    )
    assert str(answer) == (
        "2 of 2 slices fit in one block, 3 of 4 slices in rack, 8 of 8 slices in host, "
        "not everything was tried; excluded nodes: not ready 1"
    )


def sentence_of(characters: int) -> NoFit:
    """An answer whose sentence has so many, if as many are allowed."""
    layers = [("x" * 100, 1, 2)] * 2
    whole = NoFit("w", "", needed=2, available=1, layers=(("", 0, 0), *layers))
    rest = characters - len(str(whole)) - len(", 1 of 2 slices in ")
    return NoFit("w", "", needed=2, available=1, layers=(*whole.layers, ("y" * rest, 1, 2)))


@pytest.mark.parametrize(
    ("characters", "is_clipped"),
    [
        pytest.param(SENTENCE_MAX, False, id="the_longest"),
        pytest.param(SENTENCE_MAX + 1, True, id="one_more"),
    ],
)
def test_a_sentence_is_clipped_where_it_is_too_long(characters: int, is_clipped: bool) -> None:
    sentence = str(sentence_of(characters))
    assert len(sentence) == SENTENCE_MAX
    assert sentence.endswith("y...") == is_clipped
    assert sentence.endswith("yyyy") != is_clipped


@pytest.mark.parametrize(
    ("characters", "is_told"),
    [
        pytest.param(SENTENCE_MAX, True, id="the_longest"),
        pytest.param(SENTENCE_MAX + 1, False, id="one_more"),
    ],
)
def test_a_reason_is_told_if_the_sentence_stays_short_enough(
    characters: int, is_told: bool
) -> None:
    alone = str(NoFit("w", "x" * 100, needed=2, available=1, excluded=(("r" * 80, 1),)))
    last = "s" * (characters - len(alone) - len(",  1"))
    assert len(last) < 100, "or it would be shortened itself"
    answer = NoFit("w", "x" * 100, 2, 1, excluded=(("r" * 80, 1), (last, 1)))
    assert str(answer) == (f"{alone}, {last} 1" if is_told else alone)


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
    st.sampled_from(["leader", "beside", "layers"]),
    st.lists(st.text(min_size=1, max_size=400), min_size=1, max_size=16),
    st.booleans(),
)
def test_the_sentence_stays_short_whatever_the_cluster(
    level: str,
    needed: int,
    excluded: list[tuple[str, int]],
    kind: str,
    names: list[str],
    is_cut_short: bool,
) -> None:
    what = {
        "leader": names[0],
        "beside": tuple(names),
        "layers": tuple((name, needed, needed) for name in names),
    }[kind]

    def sentence() -> str:
        fields: Any = {kind: what, "is_cut_short": is_cut_short}
        return str(NoFit("w", level, needed, needed, excluded=tuple(excluded), **fields))

    assert len(sentence()) <= SENTENCE_MAX
    assert sentence() == sentence()
    assert ("not everything was tried" in sentence()) >= is_cut_short


@given(PAIRS, PAIRS)
def test_pairs_are_equal_to_pairs_and_tuples_of_the_same_numbers_and_to_nothing_else(
    one: list[tuple[int, int]], other: list[tuple[int, int]]
) -> None:
    pairs = Pairs.of(one)
    assert pairs == tuple(one)
    assert tuple(one) == pairs
    assert pairs == Pairs.of(one)
    assert hash(pairs) == hash(tuple(one))
    assert (pairs == Pairs.of(other)) is (one == other)
    assert (pairs == tuple(other)) is (tuple(other) == pairs) is (one == other)
    assert pairs != one, "a tuple is no list either"


@given(PAIRS)
def test_pairs_are_read_and_printed_as_the_tuple_of_them(wanted: list[tuple[int, int]]) -> None:
    pairs = Pairs.of(wanted)
    assert (len(pairs), list(pairs), dict(pairs)) == (len(wanted), wanted, dict(wanted))
    assert [pairs[position] for position in range(len(wanted))] == wanted
    assert all(type(number) is int for pair in (*pairs, *pairs[:1]) for number in pair)
    assert pairs[1:] == tuple(wanted[1:])
    assert repr(pairs) == repr(tuple(wanted))
    with pytest.raises(IndexError):
        pairs[len(wanted)]


def test_moved_pairs_have_the_same_pods_further_on() -> None:
    assert Pairs.of([(0, 3), (2, 1)]).moved(10) == ((10, 3), (12, 1))


@pytest.mark.parametrize(
    "again",
    [
        pytest.param(lambda pairs: pairs, id="made"),
        pytest.param(lambda pairs: pairs.moved(2), id="moved"),
        pytest.param(lambda pairs: pairs[:1], id="sliced"),
        pytest.param(copy.deepcopy, id="copied"),
        pytest.param(lambda pairs: pickle.loads(pickle.dumps(pairs)), id="pickled"),
    ],
)
def test_no_pairs_can_be_changed(again: Callable[[Pairs], Pairs]) -> None:
    pairs = again(Pairs.of([(0, 3), (2, 1)]))
    before = tuple(pairs)
    for numbers in (pairs.indices, pairs.pods):
        with pytest.raises(ValueError, match="read-only"):
            numbers[0] = 7
    with pytest.raises(AttributeError):
        pairs.pods = np.zeros(2, dtype=np.int64)  # type: ignore[misc]
    assert pairs == before


def test_equal_placements_are_one_in_a_set_and_survive_pickle() -> None:
    def placement() -> PodSetPlacement:
        return PodSetPlacement("w", 0, Pairs.of([(0, 4)]), Pairs.of([(0, 3), (2, 1)]))

    assert {placement(), placement(), pickle.loads(pickle.dumps(placement()))} == {placement()}
    assert placement().pods == 4
