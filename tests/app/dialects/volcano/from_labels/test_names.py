"""Names from paths: valid, unique, and the same whatever other domains there are."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.dialects.volcano.from_labels.names import path_name
from app.labels import is_subdomain

VALUES = st.from_regex(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?", fullmatch=True)


def path(*values: str) -> tuple[tuple[str, str], ...]:
    return tuple((f"level-{at}", value) for at, value in enumerate(values))


def test_a_plain_path_can_be_read_in_the_name() -> None:
    assert path_name(path("b1", "r1")) == "hypernode-b1.r1"
    assert path_name(path("b1"), prefix="fabric") == "fabric-b1"


@given(st.lists(VALUES, min_size=1, max_size=16))
def test_every_name_is_one_that_the_api_server_takes(values: list[str]) -> None:
    name = path_name(path(*values))
    assert is_subdomain(name)
    assert len(name) <= 253


@given(st.lists(st.lists(VALUES, min_size=1, max_size=4).map(tuple), unique=True, max_size=20))
def test_different_paths_have_different_names(paths: list[tuple[str, ...]]) -> None:
    assert len({path_name(path(*values)) for values in paths}) == len(paths)


@pytest.mark.parametrize(
    "paths",
    [
        pytest.param([("R1",), ("r1",)], id="case"),
        pytest.param([("r_1",), ("r-1",), ("r.1",)], id="signs"),
        pytest.param([("a.b", "c"), ("a", "b.c"), ("a", "b", "c")], id="where_the_path_is_split"),
        pytest.param([("a" * 63,) * 5 + (end,) for end in "xy"], id="longer_than_a_name"),
    ],
)
def test_paths_that_look_alike_have_different_names(paths: list[tuple[str, ...]]) -> None:
    names = [path_name(path(*values)) for values in paths]
    assert all(one != other for one, other in itertools.combinations(names, 2))
    assert all(is_subdomain(name) and len(name) <= 253 for name in names)


def test_a_value_that_looks_like_a_hashed_name_is_no_other_domains_name() -> None:
    hashed = path_name(path("R1"))
    value = hashed.removeprefix("hypernode-")
    assert path_name(path(value)) != hashed
