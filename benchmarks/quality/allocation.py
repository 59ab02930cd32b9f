"""How many GPUs ordinary pods get of a recorded cluster when they ask for all of them.

Pods come in random order, drawn again where the list ends, and none leaves. Corral's engine is
asked at /filter and /prioritize as kube-scheduler asks it, and told of each binding. The GPUs of
a node are kept here, as a device plugin keeps them: a pod that asks for a part of one stands on
that with the least room, one that asks for whole ones has them alone, and a node without such GPUs
is no candidate. Of the nodes with the highest score one is drawn.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
from msgspec.structs import replace

from app.kube.core.objects import Amounts, NodeRecord, PodRecord
from app.kube.watch.events import Applied, Listed
from app.state.cache.books import ALL_NODES
from app.state.engine import Engine
from app.state.filter_result import Passed
from app.state.settings import EngineSettings
from tests.app.state.world import LISTED, Names
from tests.records import BLOCK, RACK, node, pod
from topology import Counts, Rows

NODES, OVERLAY = "openb-2023.json.gz", "openb-2023.topology-overlay.json.gz"
TRACES = {"default": NODES, "multi-GPU": "openb-2023.pods-multigpu50.json.gz"}
GPU = "alibabacloud.com/gpu-milli"
WHOLE = 1_000  # of a GPU
MOST_GPUS = 8  # of a node
NO_GPU = -1
MOST_PODS = 100_000  # that are asked for; they end before, unless none asks for a GPU
MIB = 2**20


@dataclass(frozen=True, slots=True)
class Asked:
    """What a recorded pod requests; `part`: of its only GPU, WHOLE if it has them alone."""

    request: Amounts
    gpus: int
    part: int


@dataclass(frozen=True, slots=True)
class Trace:
    """The recorded nodes that have GPUs, in made-up racks, and pods."""

    nodes: Sequence[NodeRecord]
    racks: Sequence[str]
    pods: Sequence[Asked]


def trace(data: Path, name: str) -> Trace:
    """Read the nodes and one of the lists of pods. Raises: OSError."""
    place_of = _read(data / OVERLAY)["overlays"]["homogeneous"]["nodes"]
    nodes, racks = [], []
    for each in _read(data / NODES)["nodes"]:
        amounts = _amounts(each["status"]["allocatable"])
        if GPU in amounts:
            place = "/".join((*place_of[each["metadata"]["name"]], each["metadata"]["name"]))
            nodes.append(replace(node(place), allocatable=_sorted({**amounts, "pods": 1001})))
            racks.append(place.rpartition("/")[0])
    return Trace(nodes, racks, [_asked(each) for each in _read(data / TRACES[name])["pods"]])


def _read(path: Path) -> Any:
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return json.load(file)


def _amounts(said: Mapping[str, str]) -> dict[str, int]:
    """GPUs are counted in parts alone: both numbers together would count them twice."""
    found = {"cpu": int(said["cpu"].removesuffix("m"))}
    found["memory"] = int(said["memory"].removesuffix("Mi")) * MIB
    return found | ({GPU: int(said[GPU])} if GPU in said else {})


def _sorted(amounts: Mapping[str, int]) -> Amounts:
    return tuple(sorted(amounts.items()))


def _asked(recorded: Mapping[str, Any]) -> Asked:
    said = recorded["spec"]["containers"][0]["resources"]["requests"]
    parts = int(said.get(GPU, 0))
    gpus = -(-parts // WHOLE)
    return Asked(_sorted({**_amounts(said), "pods": 1}), gpus, parts // gpus if gpus else 0)


@dataclass(slots=True)
class Gpus:
    """What is free of each GPU. Shapes: left (N, MOST_GPUS), NO_GPU where a node has fewer."""

    left: Counts = field(default_factory=lambda: np.empty((0, MOST_GPUS), dtype=np.int64))

    def having(self, asked: Asked) -> Rows:
        """The nodes that have such GPUs."""
        if not asked.gpus:
            return np.arange(self.left.shape[0])
        enough: Rows = ((self.left >= asked.part).sum(axis=1) >= asked.gpus).nonzero()[0]
        return enough

    def use(self, at: int, asked: Asked) -> None:
        """Give a pod the fullest ones that it fits on."""
        fits = [gpu for gpu in range(MOST_GPUS) if self.left[at, gpu] >= asked.part]
        for gpu in sorted(fits, key=lambda gpu: int(self.left[at, gpu]))[: asked.gpus]:
            self.left[at, gpu] -= asked.part


@dataclass(frozen=True, slots=True)
class Moment:
    """What the cluster was like after a pod. Shares are of its GPUs, 0 to 1."""

    asked: float
    given: float
    free_racks: int
    """In which nothing ran."""


@dataclass(frozen=True, slots=True)
class Replayed:
    """What became of all pods."""

    course: tuple[Moment, ...]
    """After each pod, in their order."""

    @property
    def allocated(self) -> float:
        """Of the GPUs, 0 to 1."""
        return self.course[-1].given

    @property
    def free_racks(self) -> int:
        """When half of the GPUs were given out."""
        return next((each.free_racks for each in self.course if each.given >= 0.5), 0)


def replayed(of: Trace, seed: int, **settings: Any) -> Replayed:
    """Have pods ask for all GPUs there are."""
    rng, run = Random(seed), _Run(of, settings)
    pods = rng.sample(of.pods, len(of.pods))
    for number in range(MOST_PODS):
        asked = pods[number] if number < len(pods) else rng.choice(of.pods)
        if not run.ask(f"p{number}", asked, rng):
            break
    return Replayed(tuple(run.course))


class _Run:
    """One engine, and the GPUs of its nodes."""

    def __init__(self, of: Trace, settings: Mapping[str, Any]) -> None:
        self.engine = Engine(EngineSettings(levels=(BLOCK, RACK), kinds=LISTED, **settings))
        for kind in LISTED:
            self.engine.apply(Listed(kind, tuple(of.nodes) if kind == "Node" else ()), 0.0)
        self.racks, self.names = of.racks, [each.name for each in of.nodes]
        has = np.array([dict(each.allocatable)[GPU] // WHOLE for each in of.nodes])
        numbers = np.arange(MOST_GPUS)
        self.gpus = Gpus(np.where(numbers < has[:, np.newaxis], WHOLE, NO_GPU))
        self.most, self.asked, self.given = WHOLE * int(has.sum()), 0, 0
        self.used: set[str] = set()  # racks
        self.course: list[Moment] = []
        self.slot_of = {name: at for at, name in enumerate(self.names)}
        self.now = 0.0

    def ask(self, name: str, asked: Asked, rng: Random) -> bool:
        """Have one more pod placed; False: with it more would be asked for than there is."""
        self.asked += asked.gpus * asked.part
        if self.asked > self.most:
            return False
        self.now += 1.0
        waits = replace(pod(name), request=asked.request)
        chosen = self._chosen(waits, asked, rng)
        if chosen:
            at = self.slot_of[chosen]
            self.engine.apply(Applied(replace(waits, node=chosen, phase="Running")), self.now)
            self.gpus.use(at, asked)
            self.given += asked.gpus * asked.part
            self.used.add(self.racks[at])
        free_racks = len(set(self.racks)) - len(self.used)
        self.course.append(Moment(self.asked / self.most, self.given / self.most, free_racks))
        return True

    def _chosen(self, waits: PodRecord, asked: Asked, rng: Random) -> str:
        """The node that kube-scheduler would take, "" if none has room."""
        books = self.engine.books
        every = books.topologies[ALL_NODES]
        covers = every.capacity.may_cover(every.tree.node_level, books.vector(waits.request))
        slot_of = every.tree.slot_of
        having = (self.names[at] for at in self.gpus.having(asked).tolist())
        has_room = [name for name in having if covers[slot_of[name]]]
        answer, _ = self.engine.filter(waits, Names(has_room), self.now)
        assert isinstance(answer, Passed)
        possible = [name for name in has_room if name not in answer.without]
        if not possible:
            return ""
        scores = self.engine.prioritize(waits, Names(possible), self.now)
        best = max(scores)
        return rng.choice([n for n, score in zip(possible, scores, strict=True) if score == best])
