"""What the inputs are given to: the routes and decoders of the program around one engine.

    body ───▶ /filter /prioritize /preempt /bind /mutate /validate   an answer, no failure of ours
    object ─▶ its decoder ─▶ the engine                              a record, or a DecodeError

A gang of which nothing is said, the canary, has its place before and must have the same one after.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from fastapi import FastAPI

from app.admission.routes import BROKEN, Desk, webhook
from app.admission.scope import Scope
from app.api.routes import people
from app.api.standing import Standing
from app.dialects.making import MAKERS
from app.dialects.registry import DIALECTS
from app.errors import DecodeError
from app.extender.routes import OUR_BUG, Limits, Port, verbs
from app.kube.core.objects import PodRecord
from app.kube.watch.events import Applied, Deleted, Listed
from app.kube.watch.resource import Resource
from app.metrics import Metrics
from app.settings import EngineOptions
from app.simulate.simulating import Rules
from app.state.effects import Bind, BindFailed, Effect, RejectBind
from app.state.engine import Engine
from app.state.filter_result import Pinned
from app.state.settings import EngineSettings
from app.verbs.bind import BindDesk
from tests.cluster import BLOCK, GPU, RACK, grid, node, pod
from tests.hostile.objects import members_of, of_kinds
from tests.workloads import asking, members

VERBS = ("/filter", "/prioritize", "/preempt", "/bind")
REVIEWS = ("/mutate", "/validate")
SIMULATE = "/v1/simulate"
MIB = 1024 * 1024
ANSWER_SECONDS = 0.01  # of a /bind that waits for its gang
MOST_STALL_SECONDS = 0.05  # of the loop, for one input; printed, never asserted
CANARY = "canary"
NAMES = [each["metadata"]["name"] for each in grid(racks=2, nodes=2)]
# Everything that is off as it comes and reads something more.
OPTIONS = EngineOptions(
    levels=(BLOCK, RACK),
    native_pod_groups="on",
    provisioning_class="*",
    born_seconds=1e-6,  # what is held for pods that never come ends at the next tick
    preempt="on",
    unpreemptible_in=("*",),
    fewest_fragments=True,
    device_parts=((GPU, 2),),
    protect_held_nodes=True,
)
READ = DIALECTS.configured(OPTIONS)
Json = Any


class Broken(Exception):
    """Something that must hold whatever comes does not."""


@dataclass(frozen=True, slots=True)
class Target:
    """Where an input goes, and a valid one."""

    name: str  # a path, or a kind
    thing: Json


def targets() -> Iterator[Target]:
    """Every route and every kind that is watched."""
    member = _of_api(members("g", 2, annotations=_SAID)[0])
    args = {"Pod": member, "Nodes": None, "NodeNames": NAMES}
    simulated = {"Pod": member, "Nodes": {"metadata": {}, "items": _simulated()}, "NodeNames": None}
    for asked in (args, simulated):
        yield Target("/filter", asked)
        yield Target("/prioritize", asked)
    victims = {"Pods": [{"UID": "uid-v"}], "NumPDBViolations": 0}
    yield Target("/preempt", {"Pod": member, "NodeNameToMetaVictims": {NAMES[0]: victims}})
    named = {"PodName": "g-0", "PodNamespace": "default", "PodUID": "uid-g-0", "Node": NAMES[0]}
    yield Target("/bind", named)
    for path in REVIEWS:
        for thing in (member, _workload("Job", "batch/v1")):
            yield Target(path, _review(thing))
    for thing in _examples().values():
        yield Target("/validate", _review(thing))
    yield Target("/mutate", _review(_unborn()))
    for thing in (_workload("Job", "batch/v1"), *_examples().values()):
        if (thing["apiVersion"].rpartition("/")[0], thing["kind"]) in MAKERS:
            yield Target(SIMULATE, [thing])
    for each in _resources():
        yield Target(each.kind, _object(each, member))
    for thing in members_of():
        yield Target("Pod", _of_api(thing))


@dataclass(slots=True)
class Rig:
    """One engine with a canary, its routes, and what the inputs so far have left."""

    engine: Engine = field(init=False)
    slowest: tuple[float, str] = (0.0, "")
    stalls: int = 0
    most_visits: tuple[int, str] = (0, "")
    """Of nodes, by searches for one input: what may be asserted, as it is counted."""
    _app: FastAPI = field(init=False)
    _desk: BindDesk = field(init=False)
    _canary: list[PodRecord] = field(init=False)
    _place: dict[str, str] = field(init=False)
    _applied: dict[tuple[str, str], Any] = field(default_factory=dict)
    _resources: dict[str, Resource] = field(init=False)

    def __post_init__(self) -> None:
        kinds = READ.kinds
        settings = EngineSettings(**dict(OPTIONS), kinds=kinds)
        self.engine = Engine(settings)
        self._resources = {each.kind: each for each in _resources()}
        said = asking(required=RACK)
        gang = [_of_api(each) for each in members(CANARY, 2, annotations=said)]
        self._canary = [self.taken_of("Pod", json.dumps(each).encode()) for each in gang]
        nodes = [
            self.taken_of("Node", json.dumps(_of_api(each)).encode())
            for each in grid(racks=2, nodes=2)
        ]
        for kind in settings.kinds:
            there = {"Node": nodes, "Pod": self._canary}.get(kind, [])
            self._feed(self.engine.apply(Listed(kind, tuple(there)), time.monotonic()))
        self._feed(self.engine.tick(time.monotonic()))
        self._place = self._placed()
        metrics = Metrics(kinds)
        self._desk = BindDesk(
            self.engine, self._feed, answer_seconds=ANSWER_SECONDS, most_held=1_000
        )
        limits = Limits(8 * MIB, 32 * MIB, 64 * 1024, full_nodes=True)
        self._app = FastAPI(redirect_slashes=False, openapi_url=None, docs_url=None, redoc_url=None)
        port = Port(
            self.engine,
            READ.keeps,
            self._feed,
            self._desk,
            metrics,
            limits,
            hypothetical=self.engine.hypothetical,
        )
        self._app.include_router(verbs(port))
        scope = Scope("corral")
        desk = Desk(scope, READ, metrics, 8 * MIB, place=self._placed_at_birth)
        self._app.include_router(webhook(desk))
        self._app.include_router(people(self.engine, Standing(lambda: "", rules=Rules(scope))))

    async def give(self, target: Target, body: bytes) -> None:
        """Give the input to its reader. Raises: Broken, or whatever the reader raises."""
        # Of this thread alone: what is done beside the loop, and by others, keeps no other waiting.
        began, visits = time.thread_time(), self.engine.planner.node_table.visits
        before = visits.total
        if target.name.startswith("/"):
            await self.answer(target.name, body)
        else:
            self._apply(target.name, body)
        if target.name == SIMULATE:
            return  # beside the loop
        seconds = time.thread_time() - began
        self.stalls += seconds > MOST_STALL_SECONDS
        self.slowest = max(self.slowest, (seconds, target.name))
        self.most_visits = max(self.most_visits, (visits.total - before, target.name))

    async def answer(self, path: str, body: bytes) -> bytes:
        """What a route answers. Raises: Broken."""
        status, answer = await _asked(self._app, path, body)
        is_refused = path not in VERBS and 400 <= status < 500
        if status != 200 and not is_refused:
            raise Broken(f"{path} answers {status}: {answer[:200]!r}")
        if OUR_BUG.encode() in answer or BROKEN.encode() in answer:
            raise Broken(f"{path} failed: {answer[:200]!r}")
        if status == 200:
            json.loads(answer)
        return answer

    def taken_of(self, kind: str, body: bytes) -> Any:
        """The record that the decoder of a kind makes. Raises: DecodeError."""
        return self._resources[kind].decode(body)

    def forget(self) -> None:
        """Leave what was applied where it is."""
        self._applied.clear()

    def settle(self) -> None:
        """Take everything away again. Raises: Broken if something of it is left."""
        if found := self.engine.differences():
            raise Broken(f"the books differ: {found[:3]}")
        now = time.monotonic()
        for record in self._applied.values():
            self._feed(self.engine.apply(Deleted(record), now))
        self._applied.clear()
        self._feed(self.engine.tick(time.monotonic()))
        if self._placed() != self._place:
            raise Broken(f"the canary is at {self._placed()}, and was at {self._place}")
        gangs = [str(key) for key in self.engine.gangs.by_key if key.name != CANARY]
        if gangs or set(self.engine.books.nodes) != set(NAMES):
            raise Broken(f"left behind: gangs {gangs[:3]}, {len(self.engine.books.nodes)} nodes")
        if self.engine.books.bound or self.engine.books.held.keys() != self._place.keys():
            raise Broken("capacity is booked for pods that are gone")

    def _placed_at_birth(self, pod: PodRecord, namespace: str) -> tuple[str, ...] | None:
        nodes, effects = self.engine.admit(pod, namespace, time.monotonic())
        self._feed(effects)
        return nodes

    def _placed(self) -> dict[str, str]:
        found = {}
        for each in self._canary:
            answer, effects = self.engine.filter(each, _Names(), time.monotonic())
            self._feed(effects)
            if isinstance(answer, Pinned):
                found[each.uid] = answer.node
        return found

    def _apply(self, kind: str, body: bytes) -> None:
        try:
            record = self.taken_of(kind, body)
        except DecodeError:
            return
        self._applied[kind, record.uid if kind != "Node" else record.name] = record
        now = time.monotonic()
        self._feed(self.engine.apply(Applied(record), now))
        self._feed(self.engine.tick(now))

    def _feed(self, effects: Any) -> None:
        """What the API server would refuse is refused: no pod of this cluster is really there."""
        each: Effect
        for each in effects:
            if isinstance(each, Bind):
                outcome = BindFailed("no such pod")
                self._feed(self.engine.bind_finished(each.uid, outcome, time.monotonic()))
            elif isinstance(each, RejectBind):
                self._desk.refuse(each)


class _Names(list[str]):
    """The candidates of the canary: all nodes."""

    def __init__(self) -> None:
        super().__init__(NAMES)

    def names(self) -> list[str]:
        return NAMES


async def _asked(app: FastAPI, path: str, body: bytes) -> tuple[int, bytes]:
    """Status and body of one answer, without a socket."""
    sent: list[dict[str, Any]] = []
    parts = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive() -> dict[str, Any]:
        return parts.pop() if parts else await asyncio.Future()  # the client stays

    async def send(message: Any) -> None:
        sent.append(message)

    length = str(len(body)).encode()
    scope = {
        "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": "POST",
        "scheme": "http", "path": path, "raw_path": path.encode(), "query_string": b"",
        "root_path": "", "headers": [(b"host", b"127.0.0.1"), (b"content-length", length)],
        "client": ("127.0.0.1", 1), "server": ("127.0.0.1", 2),
    }  # fmt: skip
    await app(scope, receive, send)
    return sent[0]["status"], b"".join(part.get("body", b"") for part in sent[1:])


def _resources() -> tuple[Resource, ...]:
    """Everything that is watched, by the registry."""
    return READ.resources()


def _examples() -> dict[str, Json]:
    return {kind: _of_api(thing) for kind, thing in of_kinds().items()}


def _unborn() -> Json:
    """A pod that is placed as it is created: others of its group need not exist."""
    said = asking(required=RACK) | {
        "kueue.x-k8s.io/pod-group-fast-admission": "true",
        "kueue.x-k8s.io/pod-group-total-count": "2",
    }
    (made,) = members("unborn", 1, annotations=said)
    return made


_SAID = asking(required=RACK) | {
    "kueue.x-k8s.io/pod-group-fast-admission": "true",
    "kueue.x-k8s.io/podset-slice-size": "2",
    "kueue.x-k8s.io/podset-slice-required-topology": RACK,
    "corral.dev/pod-group-sets": '[{"name":"a","count":2}]',
    "corral.dev/absent-seconds": "60",
}


def _of_api(thing: Json) -> Json:
    """As the API server shows it: with a uid and a version."""
    name = thing["metadata"]["name"]
    thing["metadata"] |= {
        "uid": f"uid-{name}",
        "resourceVersion": "1",
        "creationTimestamp": "2026-01-01T00:00:00Z",
    }
    thing.setdefault("status", {})["phase"] = "Pending"
    return thing


def _simulated() -> list[Json]:
    """A node that is there, one that is not, and one made from a template."""
    template = node("template", labels={"cluster-autoscaler.kubernetes.io/template-node": ""})
    return [_of_api(each) for each in (node(NAMES[0]), node("unknown", gpus=8), template)]


def _object(each: Resource, member: Json) -> Json:
    if each.kind == "Pod":
        return member
    if each.kind == "Node":
        return _of_api(node("fuzz", labels={BLOCK: "b9", RACK: "b9-r9"}, gpus=8))
    if (thing := of_kinds().get(each.kind)) is not None:
        return _of_api(thing)
    return _workload(each.kind, "v1")


def _workload(kind: str, api_version: str) -> Json:
    """An object with the fields of every kind: a decoder reads its own, and no others."""
    template = {
        "metadata": {"labels": {"a": "b"}, "annotations": dict(_SAID)},
        "spec": pod("t", requests={GPU: 1})["spec"],
    }
    jobs = [
        {"name": "w", "replicas": 2, "template": {"spec": {"parallelism": 2, "template": template}}}
    ]
    in_order = {"startupPolicyOrder": "InOrder"} if kind == "JobSet" else "LeaderReady"
    replicas = {"Worker": {"replicas": 2, "template": template}}
    pack = {"packConstraint": {"required": BLOCK, "preferred": RACK}}
    spec = {
        "template": template, "parallelism": 2, "completions": 2, "replicas": 2, "suspend": False,
        "backoffLimit": 3, "completionMode": "Indexed", "replicatedJobs": jobs,
        "leaderWorkerTemplate": {"size": 2, "leaderTemplate": template, "workerTemplate": template},
        "pytorchReplicaSpecs": replicas, "tfReplicaSpecs": replicas, "mpiReplicaSpecs": replicas,
        "levels": [{"nodeLabel": key, "domain": "d", "key": key} for key in (BLOCK, RACK)],
        "podgroups": [{"name": at, "minReplicas": 1, "topologyConstraint": pack} for at in "ab"],
        "topologyConstraintGroupConfigs": [
            {"name": "c", "podGroupNames": ["a"], "topologyConstraint": pack}
        ],
        "hard": {"pods": "10", "requests.nvidia.com/gpu": "8"}, "podManagementPolicy": "Parallel",
        "startupPolicy": in_order, "selector": {"matchLabels": {"a": "b"}},
    }  # fmt: skip
    named = {"name": f"fuzz-{kind.lower()}", "namespace": "default", "annotations": dict(_SAID)}
    status = {"succeeded": 0, "ready": 0, "used": {"pods": "1"}}
    thing = {
        "apiVersion": api_version,
        "kind": kind,
        "metadata": named,
        "spec": spec,
        "status": status,
    }
    return _of_api(thing)


def _review(thing: Json) -> Json:
    group, _, version = thing["apiVersion"].rpartition("/")
    return {
        "kind": "AdmissionReview",
        "apiVersion": "admission.k8s.io/v1",
        "request": {
            "uid": "u",
            "kind": {"group": group, "version": version, "kind": thing["kind"]},
            "namespace": "default",
            "name": thing["metadata"]["name"],
            "operation": "CREATE",
            "object": thing,
            "oldObject": None,
            "dryRun": False,
        },
    }
