"""How long recorded gangs wait in a recorded cluster, with and without earmarks.

Gangs come in the order of a trace, closer together than they did so that the cluster is as loaded
as is said, and each takes whole hosts for as long as it ran there. Corral's engine is told of each
pod, asked at /filter and /bind as kube-scheduler asks it, and ticks whenever something happens.
Each gang prefers to be in few ASWs, or requires one ASW if it has 8 pods at most and one PSW if it
has more. One trace is one draw: sizes with run times are dealt out anew over the same arrivals.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from math import ceil
from pathlib import Path
from random import Random
from typing import Any, Literal

from msgspec.structs import replace

from app.kube.core.objects import NodeRecord, PodRecord
from app.kube.watch.events import Applied, Deleted, Listed
from app.state.effects import Bind, Bound, Effect
from app.state.engine import Engine
from app.state.filter_result import Pinned
from app.state.gang.gang import Phase
from app.state.settings import EngineSettings
from tests.app.state.world import LISTED, Names
from tests.records import PREFERRED, REQUIRED, group, node, pod

GANGS, TOPOLOGY = "gang-workloads.json.gz", "topologies/lingjun-2023.json"
PSW, ASW = "example.com/psw", "example.com/asw"
GPUS = 8  # of a host, all of which each pod requests
MOST_IN_ASW = 8  # pods
STARVATION_SECONDS = 300.0
REVIEW_SECONDS = 5.1  # at which Corral looks at earmarks again, and a moment
MOST_TICKS = 50  # at one moment; a pass over some dozens of gangs takes one or two

Mode = Literal["preferred", "required"]
MODES: tuple[Mode, ...] = ("preferred", "required")


@dataclass(frozen=True, slots=True)
class Job:
    """One gang: when it comes, how many hosts it takes, and for how long."""

    arrival: float
    pods: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Trace:
    """Recorded hosts by their path, and recorded gangs."""

    nodes: Sequence[NodeRecord]
    jobs: Sequence[Job]


@dataclass(frozen=True, slots=True)
class Waits:
    """How long the gangs waited, in seconds, in the order in which they came."""

    seconds: Sequence[float]

    @property
    def mean(self) -> float:
        return sum(self.seconds) / len(self.seconds)

    @property
    def longest(self) -> float:
        return max(self.seconds)


def trace(data: Path) -> Trace:
    """Read the hosts and the gangs whose pods take whole ones. Raises: OSError."""
    tree = json.loads((data / TOPOLOGY).read_text(encoding="utf-8"))["tree"]
    with gzip.open(data / GANGS, "rt", encoding="utf-8") as file:
        recorded = json.load(file)["streams"]["acme-kalos-2023"]["jobs"]
    jobs = [
        Job(each["arrival"], role["count"], each["duration"])
        for each in recorded
        for role in each["roles"]
        if role["requests"].get("nvidia.com/gpu") == GPUS and each["duration"]
    ]
    return Trace([host(*path) for path in _paths(tree, ())], jobs)


def host(psw: str, asw: str, name: str) -> NodeRecord:
    """A host that a whole pod takes."""
    return node(name, gpus=GPUS, labels={PSW: psw, ASW: asw})


def _paths(tree: Any, above: tuple[str, ...]) -> Iterator[tuple[str, str, str]]:
    if isinstance(tree, list):
        psw, asw = above[-2:]
        yield from ((psw, asw, name) for name in tree)
        return
    for name, inside in tree.items():
        yield from _paths(inside, (*above, name))


def loaded(of: Trace, load: float, deal: int | None = None) -> Trace:
    """The same gangs closer together, so that they ask for this share of the hosts.

    `deal`: sizes with run times are dealt out anew, the same for the same number; None: as
    recorded.
    """
    arrivals = [job.arrival for job in of.jobs]
    first, last = min(arrivals), max(arrivals)
    work = sum(job.pods * job.seconds for job in of.jobs)
    closer = work / (len(of.nodes) * load) / (last - first)
    taken = list(of.jobs)
    if deal is not None:
        Random(deal).shuffle(taken)
    jobs = [
        Job((came.arrival - first) * closer, each.pods, each.seconds)
        for came, each in zip(of.jobs, taken, strict=True)
    ]
    return Trace(of.nodes, jobs)


def replayed(of: Trace, mode: Mode, *, has_deadlines: bool = False, **settings: Any) -> Waits:
    """How long each gang waits. Raises: ValueError if one never starts.

    `has_deadlines`: each says in activeDeadlineSeconds how long it runs.
    """
    return _Run(of, mode, has_deadlines=has_deadlines, **settings).waits()


_ENDS, _COMES, _IS_DUE, _IS_REVIEWED = range(4)  # what happens to a gang; at one time in this order


class _Run:
    """One engine in virtual time."""

    def __init__(self, of: Trace, mode: Mode, *, has_deadlines: bool, **settings: Any) -> None:
        chosen = {"starvation_seconds": STARVATION_SECONDS, **settings}
        self.engine = Engine(EngineSettings(levels=(PSW, ASW), kinds=LISTED, **chosen))
        for kind in LISTED:
            self.engine.apply(Listed(kind, tuple(of.nodes) if kind == "Node" else ()), 0.0)
        self.jobs, self.mode, self.has_deadlines = of.jobs, mode, has_deadlines
        self.candidates = Names(each.name for each in of.nodes)
        self.pods: dict[str, PodRecord] = {}  # by uid
        self.due = [(job.arrival, _COMES, at) for at, job in enumerate(of.jobs)]
        heapify(self.due)
        self.began: dict[int, float] = {}  # by gang
        self.now = 0.0

    def waits(self) -> Waits:
        """Have all gangs come, and start."""
        while self.due and len(self.began) < len(self.jobs):
            self.now = self.due[0][0]
            is_news = self.due[0][1] == _ENDS
            while self.due and self.due[0][:2] == (self.now, _ENDS):
                self._end(heappop(self.due)[2])
            self._tick()
            while self.due and self.due[0][0] <= self.now:
                _, what, at = heappop(self.due)
                if what == _COMES:
                    self._come(at)
                is_news = is_news or what != _IS_REVIEWED
            self._tick()
            if is_news and self.engine.gangs.plannable_in:
                heappush(self.due, (self.now + REVIEW_SECONDS, _IS_REVIEWED, 0))
        if len(self.began) < len(self.jobs):
            raise ValueError(f"{len(self.jobs) - len(self.began)} gangs never start")
        return Waits([self.began[at] - job.arrival for at, job in enumerate(self.jobs)])

    def _come(self, at: int) -> None:
        job = self.jobs[at]
        level = PREFERRED if self.mode == "preferred" else REQUIRED
        domain = ASW if self.mode == "preferred" or job.pods <= MOST_IN_ASW else PSW
        annotations = {**group(f"g{at}", job.pods), level: domain}
        deadline = ceil(job.seconds) if self.has_deadlines else 0
        for number in range(job.pods):
            name = f"g{at}-{number}"
            each = replace(pod(name, gpus=GPUS, annotations=annotations), deadline_seconds=deadline)
            self.pods[each.uid] = each
            self.engine.apply(Applied(each), self.now)
        self._start()
        heappush(self.due, (self.now + STARVATION_SECONDS, _IS_DUE, at))

    def _end(self, at: int) -> None:
        uids = [f"uid-g{at}-{number}" for number in range(self.jobs[at].pods)]
        for uid in uids:
            self.engine.apply(Applied(replace(self.pods[uid], phase="Succeeded")), self.now)
        for uid in uids:
            self.engine.apply(Deleted(self.pods.pop(uid)), self.now)

    def _tick(self) -> None:
        """Tick until every gang has had its turn."""
        starvation = self.engine.starvation
        for _ in range(MOST_TICKS):
            self.engine.tick(self.now)
            self._start()
            if not self.engine.queue.is_busy():
                break
        ends = [each.until for each in starvation.of.values()]
        ends.append(starvation.rests_until("default"))
        if later := [end for end in ends if end > self.now]:
            heappush(self.due, (min(later), _IS_DUE, 0))

    def _start(self) -> None:
        """Have kube-scheduler bring the pods of gangs that have a plan."""
        placed = [each for each in self.engine.gangs.by_key.values() if each.phase is Phase.PLACED]
        for gang in placed:
            for uid in list(gang.plan.nodes):
                each = self.pods[uid]
                answer, _ = self.engine.filter(each, self.candidates, self.now)
                assert isinstance(answer, Pinned)
                said = (each.namespace, each.name, uid, answer.node, self.now)
                self._bind(self.engine.bind_arrived(*said))
            at = int(gang.key.name.removeprefix("g"))
            self.began[at] = self.now
            heappush(self.due, (self.now + self.jobs[at].seconds, _ENDS, at))

    def _bind(self, effects: Sequence[Effect]) -> None:
        for effect in effects:
            if isinstance(effect, Bind):
                self.engine.bind_finished(effect.uid, Bound(), self.now)
                annotations = {**self.pods[effect.uid].annotations, **dict(effect.annotations)}
                bound = replace(
                    self.pods[effect.uid],
                    node=effect.node,
                    phase="Running",
                    annotations=annotations,
                )
                self.pods[effect.uid] = bound
                self.engine.apply(Applied(bound), self.now)
