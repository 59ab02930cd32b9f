"""Whatever a body says, it is answered or refused by name, and nothing changes.

Some of the random cases here; `python -m tests.app.simulate` has all of them.
"""

from __future__ import annotations

import tracemalloc
from copy import deepcopy
from random import Random
from typing import Any

import pytest

from app.kube.core.turns import give_way
from app.simulate.body import MOST_EVENTS, Unreadable, objects_in
from app.simulate.copying import Copy
from app.simulate.given import all_given
from app.simulate.made import MOST_MADE_BYTES, TooLarge
from app.simulate.simulating import MOST_TERMS, simulate
from app.simulate.view import Verdict
from tests.app.simulate import bodies, clusters
from tests.app.simulate.test_as_created import AT, RULES
from tests.records import RACK, REQUIRED

FAST = 200
VALUES = (
    None, 0, -1, 2**31, 2**70, 1.5, True, "", "x", "2", "\ud800".encode("utf-16", "surrogatepass"),
    [], [None], ["x"], {}, {"x": None}, {"": ""}, "é" * 300, [[]], {"name": {"name": 1}},
)  # fmt: skip


def places(thing: Any, at: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The path of everything in an object."""
    found = [at] if at else []
    if not isinstance(thing, dict | list):
        return found
    for key, value in thing.items() if isinstance(thing, dict) else enumerate(thing):
        found += places(value, (*at, key))
    return found


def changed(rng: Random, thing: Any) -> Any:
    """The object with a few fields of other types, gone, or moved."""
    made = deepcopy(thing)
    for _ in range(rng.choice((1, 1, 2, 4))):
        every = places(made)
        if rng.random() < 0.9:  # mostly below what says which kind it is
            every = [each for each in every if len(each) > 2]
        if not every:
            break
        *above, last = rng.choice(every)
        holder = made
        for key in above:
            holder = holder[key]
        value = rng.choice(VALUES)
        if isinstance(value, bytes):
            value = "\x00\x1b[31m"
        if rng.random() < 0.2 and isinstance(holder, dict):
            del holder[last]
        else:
            holder[last] = deepcopy(value)
    return made


def check(seed: int) -> str:
    rng = Random(seed)
    engine = ENGINE
    things = [each for at in range(2) for each in bodies.drawn(rng, f"g{at}")]
    body = bodies.text([changed(rng, each) for each in things])
    try:
        found = simulate(all_given(objects_in(body), "default"), Copy.of(engine, AT), RULES)
    except (Unreadable, TooLarge):
        return "refused"
    found.model_dump_json()
    for each in found.gangs:
        assert each.objects
        assert each.message
        assert each.verdict is not Verdict.INVALID or each.errors
    return "answered"


ENGINE = clusters.drawn(Random(11))


@pytest.mark.slow
def test_a_body_of_any_content_is_answered_or_refused() -> None:
    before = clusters.digest(ENGINE)
    outcomes = {check(seed) for seed in range(FAST)}
    assert outcomes == {"answered", "refused"}
    assert clusters.digest(ENGINE) == before


@pytest.mark.parametrize(
    "text",
    [
        "a: " + "[" * 200 + "]" * 200,
        "kind: Pod\napiVersion: v1\nmetadata: {name: !!python/object:os.system x}",
        "a: 1:1:1:1:1",
        "\x00",
        "? [a]\n: b",
        "- " * 5000,
        "{" * 5000,
        "[" * 100_000,
        "kind: PodList\napiVersion: v1\nitems: [1, 2]",
        "kind: List\napiVersion: v1\nitems: {}",
    ],
)
def test_a_text_that_is_no_list_of_objects_is_refused(text: str) -> None:
    with pytest.raises(Unreadable):
        all_given(objects_in(text.encode()), "default")


def large(pods: int, megabytes: float) -> bytes:
    """A Job whose pods have as much text each."""
    text = "y" * int(megabytes * 2**20)
    container = {"name": "m", "env": [{"name": "X", "value": text}]}
    template = {
        "metadata": {"annotations": {REQUIRED: RACK}},
        "spec": {"schedulerName": "corral", "containers": [container]},
    }
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j"}}
    return bodies.text([{**job, "spec": {"parallelism": pods, "template": template}}])


def test_pods_that_are_much_together_are_refused_by_name() -> None:
    given = all_given(objects_in(large(10_000, 0.9)), "default")
    with pytest.raises(TooLarge, match=r"Job default/j: .* bytes"):
        simulate(given, Copy.of(ENGINE, AT), RULES)


def test_pods_that_say_much_of_their_nodes_are_refused() -> None:
    """Each term is compared with every node, once for pods that say the same."""

    def asking(pods: int, *, alike: bool) -> bytes:
        made = []
        for at in range(pods):
            name = "n" if alike else f"n{at}"
            term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [name]}]}
            required = {"nodeSelectorTerms": [term] * (MOST_TERMS // 2)}
            affinity = {
                "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}
            }
            spec = {"schedulerName": "corral", "containers": [{"name": "m"}], "affinity": affinity}
            metadata = {"name": f"p{at}", "annotations": {REQUIRED: RACK}}
            made.append({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})
        return bodies.text(made)

    for body in asking(2, alike=False), asking(3, alike=True):
        assert simulate(all_given(objects_in(body), "default"), Copy.of(ENGINE, AT), RULES).gangs
    many = all_given(objects_in(asking(3, alike=False)), "default")
    with pytest.raises(TooLarge, match=r"more than 2000 different terms"):
        simulate(many, Copy.of(ENGINE, AT), RULES)


def test_yaml_of_more_values_than_are_read_slowly_is_refused_and_as_json_it_is_read() -> None:
    values = ",".join(["{}"] * (MOST_EVENTS // 2))  # each begins and ends
    with pytest.raises(Unreadable, match="more than 150000 names and values"):
        objects_in(f"kind: Pod\nspec: [{values}]".encode())
    assert objects_in(f'{{"kind": "Pod", "spec": [{values}]}}'.encode())


def test_a_few_large_pods_take_little_more_memory_than_their_text() -> None:
    given = all_given(objects_in(large(MOST_MADE_BYTES // 2**20 - 8, 0.9)), "default")
    tracemalloc.start()
    try:
        simulate(given, Copy.of(ENGINE, AT), RULES)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < 1.5 * MOST_MADE_BYTES


def test_fields_that_are_named_by_no_text_are_answered() -> None:
    """YAML has keys that JSON has not: they are what is written, as for kubectl."""
    job = "apiVersion: kubeflow.org/v1\nkind: PyTorchJob\nmetadata: {name: a, ~: x, true: y}\n"
    body = f"{job}spec: {{pytorchReplicaSpecs: {{1: {{replicas: 1}}, 1.5: {{}}, null: {{}}}}}}"
    (found,) = simulate(
        all_given(objects_in(body.encode()), "default"), Copy.of(ENGINE, AT), RULES
    ).gangs
    assert found.objects == ("PyTorchJob default/a",)
    (content,) = objects_in(body.encode())
    assert list(content["spec"]["pytorchReplicaSpecs"]) == ["1", "1.5", "null"]


def test_what_is_made_of_yaml_gives_way_as_often_as_what_is_looked_at() -> None:
    turns, mappings = 0, 500

    def count() -> None:
        nonlocal turns
        turns += 1

    before = give_way.set(count)
    try:
        objects_in(b"kind: Pod\nspec: [" + b"{}, " * mappings + b"]")
    finally:
        give_way.reset(before)
    assert turns > 3 * mappings  # two events of each, and itself
