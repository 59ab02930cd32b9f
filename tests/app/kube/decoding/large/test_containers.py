"""The containers of a large pod are read in slices, and say what they say when read at once."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.errors import DecodeError
from app.kube.core.objects import PodRecord
from app.kube.core.turns import give_way
from app.kube.decoding.decode import decode_pod
from app.kube.decoding.large import containers
from app.kube.decoding.large import parts as large


def decoded(raw: bytes) -> PodRecord:
    return decode_pod(raw, lambda _key: True)


def a_pod(**spec: Any) -> bytes:
    return json.dumps({"metadata": {"name": "p", "namespace": "n"}, "spec": spec}).encode()


def asking(requests: dict[str, str]) -> dict[str, Any]:
    return {"name": "c", "resources": {"requests": requests}}


def turns_of(read: Callable[[], object]) -> int:
    """How often others may have their turn meanwhile."""
    turns: list[None] = []
    token = give_way.set(lambda: turns.append(None))
    try:
        read()
    finally:
        give_way.reset(token)
    return len(turns)


def slices_of(raw: bytes) -> list[tuple[int, int]]:
    """Of the pod's containers: the index of the first of a slice, and how many it has."""
    pod, _ = large.pod(raw)
    assert pod.spec is not None
    found = containers.slices(pod.spec.containers or [])
    return [(first, len(part)) for first, part in found]


@pytest.mark.parametrize("number", [1, containers.MOST, containers.MOST + 1, 5 * containers.MOST])
def test_no_slice_has_more_containers_than_are_read_at_once(number):
    raw = a_pod(containers=[asking({"cpu": "1"})] * number, padding="x" * large.LARGE)
    full, rest = divmod(number, containers.MOST)
    sizes = [containers.MOST] * full + [rest] * (rest > 0)
    assert slices_of(raw) == [(at * containers.MOST, size) for at, size in enumerate(sizes)]
    assert decoded(raw).request == (("cpu", 1_000 * number), ("pods", 1))


def test_no_slice_is_longer_than_is_read_at_once_but_for_one_container():
    third = {"name": "c", "args": ["x" * (containers.MOST_BYTES // 3)]}
    long = {"name": "c", "args": ["x" * (2 * containers.MOST_BYTES)]} | asking({"cpu": "1"})
    raw = a_pod(containers=[third, third, third, long, third])
    assert slices_of(raw) == [(0, 2), (2, 1), (3, 1), (4, 1)]


def test_a_container_with_very_many_resources_is_told_in_parts_of_bounded_size():
    number = 20_000
    requests = {f"example.com/r{at}": "1" for at in range(number)}
    pod, _ = large.pod(a_pod(containers=[{"name": "a"}, asking(requests)]))
    assert pod.spec is not None
    told = []
    for first, part in containers.slices(pod.spec.containers or []):
        for each in part:
            amounts = (each and each.resources and each.resources.requests) or {}
            assert len(amounts) <= containers.MOST
            told += [(first, name) for name in amounts]
    assert told == [(1, name) for name in requests]


@pytest.mark.parametrize("field", ["containers", "initContainers"])
def test_others_have_a_turn_before_every_slice(field):
    def turns(number: int) -> int:
        raw = a_pod(**{field: [asking({"cpu": "1"})] * number, "padding": "x" * large.LARGE})
        return turns_of(lambda: decoded(raw))

    assert turns(21 * containers.MOST) - turns(containers.MOST) == 20


def test_others_have_turns_between_the_resources_of_one_container():
    def turns(number: int) -> int:
        requests = {f"example.com/r{at}": "0" for at in range(number)}
        return turns_of(lambda: decoded(a_pod(containers=[asking(requests)])))

    assert turns(30_000) - turns(10_000) >= 20_000 // containers.MOST


def test_an_ordinary_pod_is_read_without_a_turn():
    raw = a_pod(containers=[asking({"cpu": "1"})] * 3, initContainers=[asking({"cpu": "2"})])
    assert turns_of(lambda: decoded(raw)) <= 2  # of its init containers, which are added up twice


# -- the same as at once ---------------------------------------------------------------------------

NAMES = st.sampled_from(["cpu", "memory", "a.b/c", "a.b/d", "pods", ",", '","', "\\", "é", ""])
AMOUNTS = st.sampled_from(["1", "500m", "2Ki", "0", "-5", "0.5", "1e3", ",", "x", "", None, 3, 0.5])
POLICIES = st.sampled_from(["Always", None, "OnFailure"])
FAULTS = st.sampled_from(
    [
        5,
        "text",
        [[]],
        {"resources": 5},
        {"resources": {"requests": ["cpu"]}},
        {"resources": {"requests": "cpu" * 100}},
        {"resources": {"requests": {"cpu": ["1"]}}},
        {"resources": {"requests": {"cpu": "1", "a.b/c": {}, "memory": "1"}}},
        {"restartPolicy": 5},
    ]
)


@st.composite
def container_texts(draw: st.DrawFn) -> str:
    """A container as JSON; keys may be there twice, as not even the API server would send it."""
    pairs = draw(st.lists(st.tuples(NAMES, AMOUNTS), max_size=12))
    requests = ",".join(f"{json.dumps(name)}:{json.dumps(value)}" for name, value in pairs)
    policy = json.dumps(draw(POLICIES))
    args = json.dumps(draw(st.lists(st.text(max_size=8), max_size=4)))
    whole = f'{{"args":{args},"resources":{{"requests":{{{requests}}}}},"restartPolicy":{policy}}}'
    return draw(st.sampled_from([whole, whole, whole, "null", "{}", '{"resources":null}']))


@st.composite
def pods(draw: st.DrawFn) -> bytes:
    """A pod with containers, of which at most one is not valid."""
    lists = [draw(st.lists(container_texts(), max_size=9)) for _ in range(2)]
    if draw(st.booleans()):
        spoilt = draw(st.sampled_from(lists))
        spoilt.insert(draw(st.integers(0, len(spoilt))), json.dumps(draw(FAULTS)))
    own = draw(st.sampled_from(["null", "5", "[]", "{}"])) if draw(st.integers(0, 9)) == 0 else ""
    ordinary, init = (f"[{','.join(each)}]" for each in lists)
    spec = f'{{"initContainers":{init},"containers":{own or ordinary}}}'
    return f'{{"metadata":{{"name":"p"}},"spec":{spec}}}'.encode()


@contextmanager
def slices(most: int, most_bytes: int) -> Iterator[None]:
    """Every pod counts as large, and slices have at most so many containers and bytes."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(large, "LARGE", 0)
        patch.setattr(containers, "MOST", most)
        patch.setattr(containers, "MOST_BYTES", most_bytes)
        yield


def outcome(raw: bytes) -> PodRecord | str:
    try:
        return decoded(raw)
    except DecodeError as error:
        return str(error)


def _first_error_of_either(raw: bytes) -> bool:
    """Whether both lists may have an error, of which either may be told."""
    spec = json.loads(raw)["spec"]
    return not isinstance(spec["containers"], list)


@given(pods(), st.integers(1, 4), st.sampled_from([1, 16, 64, 400, 100_000]))
def test_a_pod_read_in_slices_is_the_pod_read_at_once(raw, most, most_bytes):
    at_once = outcome(raw)
    with slices(most, most_bytes):
        in_slices = outcome(raw)
    if isinstance(at_once, str) and _first_error_of_either(raw):
        assert isinstance(in_slices, str)
    else:
        assert in_slices == at_once


@given(st.text(alphabet='a"\\{é', max_size=40), st.integers(1, 7), st.booleans())
def test_values_are_counted_alike_in_steps_of_any_length(text, step, has_objects):
    raw = json.dumps({"k": text, "l": [text, {}]}).encode()
    at_once = large.values_in(raw, has_objects=has_objects)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(large, "COUNTED_BYTES", step)
        assert large.values_in(raw, has_objects=has_objects) == at_once
