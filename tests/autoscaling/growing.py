"""A cluster of plain objects in virtual time in which Corral's engine has gangs placed.

    world = Growing(ClusterAutoscaler([group]), provisioning_class=ATOMIC_SCALE_UP)
    world.create(*map(behind_gate, members("g", 8)))
    world.run(300.0)
    world.bound()

Real are the engine, what decodes its objects, and what writes requests; kube-scheduler binds what
it is allowed to, and the rest of the API server is what those writes need of it. Nothing collects
what has lost its owners, so whatever Corral leaves behind is seen.

`kill_after`: right after so many writes Corral is killed, and another begins with what is there.
"""

from __future__ import annotations

import asyncio
import copy
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from app.controllers.objects.provisioning import ProvisioningController
from app.dialects.provisioning import keys
from app.errors import NotFound, Unreachable
from app.kube.core.objects import PodRecord, Record
from app.kube.decoding.decode import decode_node, decode_pod
from app.kube.watch.events import Applied, Deleted, Listed
from app.state.effects import (
    AskNodes,
    Bind,
    Bound,
    Effect,
    EmitEvent,
    EndAsk,
    Mark,
    Ungate,
    Ungated,
)
from app.state.engine import Engine
from app.state.filter_result import Pinned
from app.state.settings import EngineSettings
from tests.autoscaling.machines.actions import (
    Action,
    ChangeNode,
    DeleteNode,
    EvictPod,
    MakeNode,
    PatchRequest,
    SetTaint,
)
from tests.autoscaling.reading.seen import Seen
from tests.autoscaling.small import Autoscaler, changed
from tests.cluster import RACK, Object, Objects

SEEN = ("Pod", "Node", "PodTemplate", "ProvisioningRequest")  # by the autoscaler
KINDS = (*SEEN, "Topology")
KIND_OF = {"podtemplates": "PodTemplate", "provisioningrequests": "ProvisioningRequest"}
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
STEP_SECONDS = 1.0
Key = tuple[str, str]  # kind and name; all in one namespace


class Killed(BaseException):
    """Corral is killed right after a write."""


class Names(Sequence[str]):
    """Candidates as kube-scheduler sends them."""

    def __init__(self, names: Iterable[str]) -> None:
        self._names = list(names)

    def __getitem__(self, index):  # type: ignore[no-untyped-def]
        return self._names[index]

    def __len__(self) -> int:
        return len(self._names)

    def names(self) -> Sequence[str]:
        return self._names


class Growing:
    """One cluster; `writes` are Corral's, in words. `is_served`: there are ProvisioningRequests."""

    def __init__(
        self,
        autoscaler: Autoscaler | None = None,
        *,
        nodes: Iterable[Object] = (),
        kill_after: int = 0,
        is_served: bool = True,
        **settings: object,
    ) -> None:
        self.autoscaler, self.kill_after, self.is_served = autoscaler, kill_after, is_served
        self.is_scheduling = True  # kube-scheduler is at work
        self.is_away = False  # no write of a request reaches the API server
        self.objects: dict[Key, Object] = {}
        self.writes: list[str] = []
        self.calls = 0  # that were in vain, while it is away
        self.events: list[EmitEvent] = []
        self.ever: Counter[str] = Counter()  # how often an object of a name was made, by kind/name
        self.now = 0.0
        self._settings = settings
        self._uids = 0
        self._versions = 0
        self._shown: dict[Key, Object] = {}  # what the watch has told
        self._first: list[Effect] = []  # what the engine wants written as it begins
        for node in nodes:
            self._put("Node", node)
        self.engine = self._begun()

    def _begun(self) -> Engine:
        engine = Engine(EngineSettings(**{"levels": (RACK,), "kinds": (), **self._settings}))
        self._resources = {each.kind: each for each in engine.dialects.resources()}
        kinds = tuple(kind for kind in KINDS if kind in self._resources)
        engine = Engine(engine.settings.model_copy(update={"kinds": kinds}))
        self._keeps = engine.dialects.keeps
        self._first = []
        for kind in (*kinds[1:], "Pod"):
            records = tuple(self._record(key) for key in self.objects if key[0] == kind)
            self._first += engine.apply(Listed(kind, records), self.now)
        self._shown = dict(self.objects)
        return engine

    # -- what a test does ----------------------------------------------------------------------

    def create(self, *bodies: Object) -> None:
        """Somebody makes these objects."""
        for body in bodies:
            self._put(body["kind"], body)

    def delete(self, kind: str, name: str) -> None:
        """Somebody deletes an object."""
        self.objects.pop((kind, name), None)

    def say(self, **conditions: str) -> None:
        """Who serves the only request says this: type="status/reason"."""
        (name,) = self.names(keys.KIND)
        self.answer(name, **conditions)

    def answer(self, name: str, **conditions: str) -> None:
        """Who serves this request says this."""
        said = [
            {"type": type_, "status": text.partition("/")[0], "reason": text.partition("/")[2]}
            for type_, text in conditions.items()
        ]
        self._act(PatchRequest("default", name, tuple(said)))

    def mark(self, name: str) -> None:
        """A stranger says that no node takes a pod."""
        pod = self._pod(name)
        self._put_mark(Mark("default", name, pod.uid, pod.version, "a stranger's"))

    def restart(self, **settings: object) -> None:
        """Corral is killed, and another one begins, with these settings changed."""
        self._settings = {**self._settings, **settings}
        self.engine = self._begun()

    def run(self, seconds: float) -> None:
        """Let so many seconds pass."""
        until = self.now + seconds
        while self.now < until:
            self.now += STEP_SECONDS
            self._grow()
            try:
                first, self._first = self._first, []
                self._carry_out(first)
                self._show()
                self._carry_out(self.engine.tick(self.now))
                self._show()
                self._schedule()
            except Killed:
                self.restart()

    # -- what a test looks at ------------------------------------------------------------------

    def all(self, kind: str) -> Objects:
        return [body for (of_kind, _), body in self.objects.items() if of_kind == kind]

    def names(self, kind: str) -> list[str]:
        return sorted(name for of_kind, name in self.objects if of_kind == kind)

    def bound(self) -> dict[str, str]:
        """Where each pod is that has a node."""
        pods = {each["metadata"]["name"]: each["spec"].get("nodeName") for each in self.all("Pod")}
        return {name: node for name, node in pods.items() if node}

    def marked(self) -> list[str]:
        """The pods behind a gate of which it is said that no node takes them."""
        return sorted(each.name for each in map(self._pod, self.names("Pod")) if each.is_marked)

    def requests_ever(self) -> list[str]:
        """The name of every request that was there at any time."""
        return [name.partition("/")[2] for name in self.ever if name.startswith(keys.KIND)]

    def told(self, reason: str) -> list[str]:
        return [each.sentence for each in self.events if each.reason == reason]

    def end(self) -> object:
        """What is there, but for uids, versions and times."""
        return {
            "pods": {
                name: tuple(sorted(self._pod(name).annotations)) for name in sorted(self.bound())
            },
            "on": sorted(self.bound().values()),
            "marked": self.marked(),
            "others": [each for kind in KINDS[1:] for each in self.names(kind)],
        }

    # -- the API server ------------------------------------------------------------------------

    def _put(self, kind: str, body: Mapping[str, Any]) -> Object:
        made = copy.deepcopy(dict(body))
        metadata = made["metadata"]
        if "uid" not in metadata:
            self._uids += 1
            metadata["uid"] = f"uid-{self._uids}"
            self.ever[f"{kind}/{metadata['name']}"] += 1
        self._versions += 1
        metadata["resourceVersion"] = str(self._versions)
        self.objects[kind, metadata["name"]] = made
        return made

    def _changed(self, kind: str, name: str) -> Object:
        """A copy of an object, to be changed and put."""
        return copy.deepcopy(self.objects[kind, name])

    def _written(self, what: str) -> None:
        self.writes.append(what)
        if len(self.writes) == self.kill_after:
            raise Killed

    def _record(self, key: Key, body: Object | None = None) -> Record:
        raw = json.dumps(self.objects[key] if body is None else body).encode()
        kind = key[0]
        if kind == "Pod":
            return decode_pod(raw, self._keeps)
        return decode_node(raw) if kind == "Node" else self._resources[kind].decode(raw)

    def _pod(self, name: str) -> PodRecord:
        record = self._record(("Pod", name))
        assert isinstance(record, PodRecord)
        return record

    def _show(self) -> None:
        """The watches tell what has changed."""
        watched = [key for key in self.objects if key[0] in self.engine.settings.kinds]
        for key in watched:
            if self._shown.get(key) is not self.objects[key]:
                before = self._shown.get(key)
                if before and before["metadata"]["uid"] != self.objects[key]["metadata"]["uid"]:
                    self._carry_out(self.engine.apply(Deleted(self._record(key, before)), self.now))
                self._shown[key] = self.objects[key]
                self._carry_out(self.engine.apply(Applied(self._record(key)), self.now))
        for key in [key for key in self._shown if key not in self.objects]:
            record = self._record(key, self._shown.pop(key))
            self._carry_out(self.engine.apply(Deleted(record), self.now))

    # -- as `app.kube.client.writes.Client` ----------------------------------------------------

    async def read_pod(self, namespace: str, name: str) -> bytes | None:
        body = self.objects.get(("Pod", name))
        return None if body is None else json.dumps(body).encode()

    async def ensure(self, path: str, name: str, body: Mapping[str, object]) -> str:
        kind = self._kind(path)
        if (kind, name) not in self.objects:
            self._put(kind, body)
            self._written(f"create {kind} {name}")
        return str(self.objects[kind, name]["metadata"]["uid"])

    async def change(
        self, path: str, name: str, uid: str, version: str, patch: Mapping[str, Any]
    ) -> None:
        kind = self._kind(path)
        body = self._changed(kind, name)
        assert body["metadata"]["uid"] == uid
        body["metadata"].update(patch["metadata"])
        self._put(kind, body)
        self._written(f"change {kind} {name}")

    async def delete_named(self, path: str, name: str, uid: str, version: str) -> None:
        kind = self._kind(path)
        body = self.objects.get((kind, name))
        if body is None or body["metadata"]["uid"] != uid:
            raise NotFound(404, "NotFound", name)
        del self.objects[kind, name]
        self._written(f"delete {kind} {name}")

    def _kind(self, path: str) -> str:
        kind = KIND_OF[path.rpartition("/")[2]]
        if self.is_away:
            self.calls += 1
            raise Unreachable(path)
        if kind == keys.KIND and not self.is_served:
            raise NotFound(404, "NotFound", path)
        return kind

    # -- Corral's writes -----------------------------------------------------------------------

    def _carry_out(self, effects: Iterable[Effect]) -> None:
        for effect in effects:
            match effect:
                case Mark():
                    self._mark(effect)
                case Ungate():
                    self._ungate(effect)
                case AskNodes() | EndAsk():
                    controller = ProvisioningController(_Client(self), lambda how, outcome: None)
                    asyncio.run(controller.carried_out(effect))
                case Bind():
                    self._bind(effect)
                case EmitEvent():
                    self.events.append(effect)

    def _mark(self, mark: Mark) -> None:
        if self.objects.get(("Pod", mark.name), {}).get("metadata", {}).get("uid") != mark.uid:
            return
        self._put_mark(mark)
        self._written(f"{'mark' if mark.sentence else 'unmark'} {mark.name}")

    def _put_mark(self, mark: Mark) -> None:
        body = self._changed("Pod", mark.name)
        reason = "Unschedulable" if mark.sentence else "SchedulingGated"
        condition = {"type": "PodScheduled", "status": "False", "reason": reason}
        body["status"] = {**body.get("status", {}), "conditions": [condition]}
        self._put("Pod", body)

    def _ungate(self, ungate: Ungate) -> None:
        if ("Pod", ungate.name) not in self.objects:
            return
        body = self._changed("Pod", ungate.name)
        spec = body["spec"]
        gates = [each for each in spec["schedulingGates"] if each["name"] != ungate.gate]
        spec["schedulingGates"] = gates
        if ungate.nodes:
            terms = [
                {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}
                for node in ungate.nodes
            ]
            spec["affinity"] = {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": terms}}}
        spec.setdefault("nodeSelector", {}).update(dict(ungate.selector))
        body["metadata"].setdefault("annotations", {}).update(dict(ungate.annotations))
        self._put("Pod", body)
        self._written(f"ungate {ungate.name}")
        self.engine.ungate_finished(ungate.uid, Ungated(), self.now)

    def _bind(self, bind: Bind) -> None:
        body = self._changed("Pod", bind.name)
        if body["spec"].get("nodeName"):
            return
        body["spec"]["nodeName"] = bind.node
        body["metadata"].setdefault("annotations", {}).update(dict(bind.annotations))
        body["status"] = {"phase": "Running"}
        self._put("Pod", body)
        self._written(f"bind {bind.name}")
        self._carry_out(self.engine.bind_finished(bind.uid, Bound(), self.now))

    # -- the others ----------------------------------------------------------------------------

    def _schedule(self) -> None:
        """kube-scheduler tries each pod without a gate."""
        names = Names(self.names("Node"))
        for name in self.names("Pod") if self.is_scheduling else ():
            pod = self._pod(name)
            if pod.node or pod.gates or pod.scheduler != "corral":
                continue
            answer, effects = self.engine.filter(pod, names, self.now)
            self._carry_out(effects)
            if isinstance(answer, Pinned):
                self._carry_out(
                    self.engine.bind_arrived("default", name, pod.uid, answer.node, self.now)
                )

    def _grow(self) -> None:
        if self.autoscaler is not None and self.autoscaler.next_at <= self.now:
            seen = Seen(*(self.all(kind) for kind in SEEN))
            for action in self.autoscaler.step(seen, self.now):
                self._act(action)

    def _act(self, action: Action) -> None:
        match action:
            case MakeNode(body):
                self._put("Node", body)
            case ChangeNode(name) | SetTaint(name):
                if ("Node", name) in self.objects:
                    self._put("Node", changed(self.objects["Node", name], action))
            case DeleteNode(name):
                self.delete("Node", name)
            case EvictPod(_, name, _):
                self.delete("Pod", name)
            case PatchRequest(_, name, conditions):
                if (keys.KIND, name) in self.objects:
                    body = self._changed(keys.KIND, name)
                    body["status"] = {"conditions": [dict(each) for each in conditions]}
                    self._put(keys.KIND, body)


class _Client:
    """The world as the client that the controller has."""

    def __init__(self, world: Growing) -> None:
        self.read_pod, self.ensure = world.read_pod, world.ensure
        self.change, self.delete = world.change, world.delete_named


def raw(body: Object) -> msgspec.Raw:
    """An object as it comes from the API server."""
    return msgspec.Raw(json.dumps(body).encode())
