"""Clusters that stand still, drawn at random: nodes, what runs on them, what is held and waits."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from enum import Enum
from random import Random
from typing import Any

import msgspec
import numpy as np

from app.dialects.registry import DIALECTS
from app.kube.core.objects import NodeRecord, ObjectRecord, Owner, PodRecord, Taint
from app.kube.watch.events import Applied, Listed
from app.state.engine import Engine
from app.state.settings import EngineSettings
from tests.records import BLOCK, RACK, group, node, pod

NOW = 1_000.0
WEB = Owner("apps/v1", "ReplicaSet", "web", "uid-web")
AT_ONCE = {"native_pod_groups": "on"}
HOST = "kubernetes.io/hostname"
WHOLE = 1_000_000_000  # visits of a search: more than any makes


def engine_of(
    nodes: Iterable[NodeRecord],
    pods: Iterable[PodRecord] = (),
    objects: Iterable[ObjectRecord] = (),
    **settings: Any,
) -> Engine:
    """An engine that has read a cluster, and ends each search on the loop.

    While one goes on in a thread, gangs that come later may be placed first.
    """
    chosen = EngineSettings(levels=(BLOCK, RACK), visits_per_search=WHOLE, **settings)
    kinds = DIALECTS.configured(chosen).kinds
    engine = Engine(chosen.model_copy(update={"kinds": kinds}))
    its = list(objects)
    for kind in kinds:
        if kind not in ("Node", "Pod"):
            engine.apply(Listed(kind, tuple(each for each in its if each.kind == kind)), NOW)
    engine.apply(Listed("Node", tuple(nodes)), NOW)
    engine.apply(Listed("Pod", tuple(pods)), NOW)
    engine.tick(NOW)
    return engine


def read(engine: Engine, kind: str, content: Mapping[str, Any]) -> ObjectRecord:
    """An object as the watch shows it."""
    resource = next(each for each in engine.dialects.resources() if each.kind == kind)
    record = resource.decode(msgspec.json.encode(content))
    assert isinstance(record, ObjectRecord)
    return record


def drawn(rng: Random, load: tuple[int, ...] | None = None) -> Engine:
    """A small cluster with pods that run, gangs that run, are placed and wait.

    `load`: how many ordinary pods a node may have; None: that is drawn as well.
    """
    racks, per_rack = rng.choice((2, 3, 4, 6)), rng.choice((2, 3, 4))
    nodes = [_node(rng, rack, at) for rack in range(racks) for at in range(per_rack)]
    load = rng.choice(((0, 0, 0, 1, 2), (0, 1, 2), (1, 2, 2, 3))) if load is None else load
    pods = [each for on in nodes for each in _running(rng, on.name, load)]
    if rng.random() < 0.5:  # a gang that runs
        size, priority = rng.randint(1, 3), rng.choice((-5, 0, 0, 5))
        said = group("runs", size, RACK)
        pods += [
            pod(
                f"runs-{at}", gpus=rng.choice((1, 2)), on=nodes[at].name, phase="Running",
                annotations=said, priority=priority,
            )
            for at in range(size)
        ]  # fmt: skip
    engine = engine_of(nodes, pods, native_pod_groups="on")
    for each in _declared(engine, racks, per_rack):
        engine.apply(Applied(each), NOW)
    for name, size, gpus in (("held", rng.randint(1, 3), 2), ("waits", 40, 8)):
        if rng.random() < 0.5:
            said = group(name, size, rng.choice((RACK, BLOCK)))
            for at in range(size):
                waiting = pod(f"{name}-{at}", gpus=gpus, annotations=said, priority=3)
                engine.apply(Applied(waiting), NOW)
    for _ in range(3):
        engine.tick(NOW)
    return engine


def _node(rng: Random, rack: int, at: int) -> NodeRecord:
    labels = {"pool": "a"} if rng.random() < 0.5 else {}
    taints = (Taint("dedicated", "x", "NoSchedule"),) if rng.random() < 0.08 else ()
    path = f"b{rack // 2}/r{rack}/n{rack}x{at}" if rng.random() > 0.04 else f"n{rack}x{at}"
    return node(
        path,
        gpus=rng.choice((4, 8, 8, 8)),
        cpu=rng.choice((8_000, 64_000)),
        is_ready=rng.random() > 0.05,
        is_cordoned=rng.random() < 0.08,
        labels=labels,
        taints=taints,
    )


def _running(rng: Random, name: str, load: tuple[int, ...]) -> list[PodRecord]:
    """Ordinary pods that run on a node."""
    priorities = (-10, 0, 0, 0)
    return [
        pod(
            f"on-{name}-{at}", gpus=rng.choice((0, 1, 2, 4)), on=name, phase="Running",
            priority=rng.choice(priorities), owner=rng.choice((None, WEB)),
        )
        for at in range(rng.choice(load))
    ]  # fmt: skip


def _declared(engine: Engine, racks: int, per_rack: int) -> list[ObjectRecord]:
    """HyperNodes of the racks and their blocks, and topologies of Grove's and KAI's."""
    found = []
    for rack in range(racks):
        members = [_exact("Node", f"n{rack}x{at}") for at in range(per_rack)]
        found.append(_hyper_node(engine, f"rack{rack}", 1, members))
    for block in range((racks + 1) // 2):
        inside = [f"rack{rack}" for rack in range(racks) if rack // 2 == block]
        members = [_exact("HyperNode", each) for each in inside]
        found.append(_hyper_node(engine, f"block{block}", 2, members))
    levels = [("block", BLOCK), ("rack", RACK), ("host", HOST)]
    grove = {
        "metadata": {"name": "grove-topology", "uid": "uid-grove"},
        "spec": {"levels": [{"domain": name, "key": key} for name, key in levels]},
    }
    found.append(read(engine, "ClusterTopology", grove))
    kai = {
        "metadata": {"name": "net", "uid": "uid-kai"},
        "spec": {"levels": [{"nodeLabel": key} for _, key in levels]},
    }
    kind = next(each.kind for each in engine.dialects.resources() if "kai.scheduler" in each.path)
    found.append(read(engine, kind, kai))
    return found


def _exact(kind: str, name: str) -> dict[str, Any]:
    return {"type": kind, "selector": {"exactMatch": {"name": name}}}


def _hyper_node(engine: Engine, name: str, tier: int, members: list[Any]) -> ObjectRecord:
    spec = {"tier": tier, "members": members}
    return read(
        engine, "HyperNode", {"metadata": {"name": name, "uid": f"uid-{name}"}, "spec": spec}
    )


def digest(engine: Engine) -> str:
    """A hash of all that an engine knows, down to the last counter."""
    engine.books.bound_now()  # which nodes it shares with a copy is no knowledge: all of them here
    found = hashlib.sha256()
    _hash(engine, found, {})
    return found.hexdigest()


_LEAVES = (str, bytes, int, float, bool, type(None), Enum, msgspec.Struct, frozenset)


def _hash(thing: Any, found: Any, seen: dict[int, int]) -> None:
    if isinstance(thing, np.ndarray):
        found.update(thing.tobytes())
    elif isinstance(thing, frozenset):
        found.update(repr(sorted(map(repr, thing))).encode())
    elif isinstance(thing, _LEAVES):
        found.update(repr(thing).encode())
    elif id(thing) in seen:
        found.update(b"%d" % seen[id(thing)])
    elif isinstance(thing, set):
        found.update(repr(sorted(map(repr, thing))).encode())
    elif isinstance(thing, Mapping):
        seen[id(thing)] = len(seen)
        for key, value in thing.items():
            found.update(repr(key).encode())
            _hash(value, found, seen)
    elif isinstance(thing, list | tuple) or type(thing).__name__ == "deque":
        seen[id(thing)] = len(seen)
        for each in thing:
            _hash(each, found, seen)
    elif type(thing).__module__.partition(".")[0] in ("app", "topology"):
        seen[id(thing)] = len(seen)
        found.update(type(thing).__qualname__.encode())
        for name in _fields(thing):
            found.update(name.encode())
            _hash(getattr(thing, name, None), found, seen)


def _fields(thing: Any) -> list[str]:
    slots: set[str] = set()
    for each in type(thing).__mro__:
        its = getattr(each, "__slots__", ())
        slots.update((its,) if isinstance(its, str) else its)
    own = getattr(thing, "__dict__", {})
    return [*sorted(slots - {"__weakref__", "__dict__"}), *sorted(own)]
