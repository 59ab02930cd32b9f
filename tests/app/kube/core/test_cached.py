"""What is kept of users' texts: shared, and bounded in bytes over all caches together."""

from __future__ import annotations

import gc
import importlib
import json
import pkgutil
import re
import tracemalloc
from dataclasses import dataclass
from pathlib import Path

import msgspec
import pytest

import app
from app.kube.core.cached import BOUNDS, KIB, cached, weight
from app.kube.core.objects import Requirement, Term
from app.kube.decoding.decode import decode_pod

MIB = 1024 * KIB
NOT_USERS_OR_SHORT = {
    "app/kube/core/cached.py",  # weighs what it keeps
    "app/kube/core/quantity.py",  # 4,096 texts of at most 64 characters
    "app/kube/decoding/large/parts.py",  # a decoder for each kind of object, of two dozen
    "app/kube/decoding/texts.py",  # 8,192 texts of at most 253 characters
    "app/patterns.py",  # what is wrong with 1,024 patterns of at most 1,024 characters, or nothing
    "app/kube/core/node_terms.py",  # 64 encoded affinities of our own plans
}


@dataclass(frozen=True, slots=True)
class Sentence:
    """A value of the kind that most results are."""

    text: str
    more: tuple[str, ...]


def test_equal_texts_share_one_light_result_and_heavy_ones_are_read_anew():
    read = []

    @cached(4, KIB)
    def letters(text: str) -> tuple[str, ...]:
        read.append(len(text))
        return tuple(text)

    assert letters("abc") is letters("abc")
    assert letters("abc" * 100) == tuple("abc" * 100) == letters("abc" * 100)
    assert read == [3, 300, 300]
    assert BOUNDS.pop().now() == 1


def test_what_a_function_raises_is_raised_and_not_kept():
    @cached(4, KIB)
    def refuse(text: str) -> str:
        raise ValueError(text)

    for _ in range(2):
        with pytest.raises(ValueError, match="abc"):
            refuse("abc")
    assert BOUNDS.pop().now() == 0


@pytest.mark.parametrize(
    "make",
    [
        pytest.param(lambda: [f"text {i}" for i in range(500)], id="strings"),
        pytest.param(lambda: {f"key {i}": f"value {i}" for i in range(500)}, id="map"),
        pytest.param(
            lambda: tuple(Term((Requirement(f"k{i}", "In", (f"v{i}",)),)) for i in range(500)),
            id="affinity_terms",
        ),
        pytest.param(
            lambda: [Sentence(f"text {i}", (f"more {i}",)) for i in range(500)], id="dataclasses"
        ),
        pytest.param(
            lambda: msgspec.json.decode(b"[" + b",".join([b'"abcdef"'] * 500) + b"]"), id="decoded"
        ),
    ],
)
def test_the_weight_of_a_value_is_what_it_takes(make):
    gc.collect()  # which gives back what small tuples would be made of again, unseen
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    value = make()
    taken = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    assert weight(value, MIB) == pytest.approx(taken, rel=0.15)


def test_a_value_is_not_weighed_much_further_than_the_most():
    assert 1_000 < weight(tuple(bytes(100) + bytes([i % 256]) for i in range(10**5)), 1_000) < MIB


def modules():
    """Every module of Corral but the sandbox, imported."""
    for found in pkgutil.walk_packages(app.__path__, "app."):
        if not found.name.startswith(("app.sandbox", "app.__main__")):
            yield importlib.import_module(found.name)


def test_all_caches_together_keep_at_most_64_mib():
    assert list(modules())
    assert sum(each.entries * each.most_bytes for each in BOUNDS) <= 64 * MIB
    assert len({each.name for each in BOUNDS}) == len(BOUNDS) > 10


def test_no_cache_is_bounded_in_entries_alone():
    root = Path(app.__file__).parent.parent
    found = {
        str(path.relative_to(root))
        for path in root.glob("app/**/*.py")
        if "sandbox" not in path.parts
        and re.search(r"lru_cache|functools.*\bcache\b", path.read_text())
    }
    assert found == NOT_USERS_OR_SHORT


def affinity(name, terms):
    lines = [
        {"matchExpressions": [{"key": f"{name}-{i}", "operator": "Exists"}]} for i in range(terms)
    ]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": lines}}
    return {"affinity": {"nodeAffinity": required}}


def tolerations(name, lines):
    return {"tolerations": [{"key": f"{name}-{i}" * 9} for i in range(lines)]}


def requests(name, lines):
    amounts = {f"example.com/{name}-{i}": "1" for i in range(lines)}
    return {"containers": [{"resources": {"requests": amounts}}]}


def selector(name, lines):
    return {"nodeSelector": {f"{name}-{i}": "x" * 60 for i in range(lines)}}


@pytest.mark.slow
@pytest.mark.parametrize("make", [affinity, tolerations, requests, selector])
def test_pods_that_are_gone_leave_little_behind(make):
    def read(i):
        spec = make(f"unique{i}", 4_000)
        decode_pod(json.dumps({"metadata": {"name": "x"}, "spec": spec}).encode(), bool)

    read(-1)
    tracemalloc.start()
    for i in range(12):
        read(i)
    left, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert left < 6 * MIB  # 4 of it is Python's table of interned texts, made larger
    assert peak < 16 * MIB


def test_a_gangs_pods_narrowed_to_32_nodes_share_their_shape():
    required = {
        "nodeSelectorTerms": [
            {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [f"n{i}" * 30]}]}
            for i in range(32)
        ]
    }
    node_affinity = {"requiredDuringSchedulingIgnoredDuringExecution": required}
    pods = [
        {"metadata": {"name": f"p{i}"}, "spec": {"affinity": {"nodeAffinity": node_affinity}}}
        for i in range(2)
    ]
    first, second = (decode_pod(json.dumps(pod).encode(), bool) for pod in pods)
    assert first.shape is second.shape
    assert first.request is second.request
