"""An API server whose watch is late, loses its place and is listed anew, and who writes to it.

history: users, controllers ──▶ api ──▶ a queue for each kind ──▶ World, in any order of kinds
                                 ▲                                  │
                                 └── bindings, gates, statuses ◀────┘ some of them are lost
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from app.dialects.spec import GroupSpec, LeafSpec
from app.dialects.written import AT_WRITE
from app.kube.core.objects import PodRecord
from app.kube.watch.events import Applied, Deleted, Event, Listed
from app.state.effects import Bind, BindFailed, Bound, ReadAgain, Ungate, Ungated, WriteStatus
from app.state.filter_result import Pinned
from app.state.gang.gang import Gang, Phase
from app.state.gang.members import minimum
from tests.app.state.stories import GATED
from tests.app.state.world import World, ungated

STEPS = {
    "make": 6, "delete": 2, "make_anew": 2, "create_pod": 10, "delete_pod": 4, "end_pod": 3,
    "change_pod": 3, "change_node": 3, "deliver": 14, "list_anew": 1, "schedule": 6, "write": 4,
    "wait": 6,
}  # fmt: skip
# What statuses say, by the name that records have for it.
SAID = {"phase": "phase", "conditions": "conditions", "schedulingConditions": "conditions"}


@dataclass(frozen=True)
class Story:
    """What there is in the end: the last version of each object, the nodes and the pods."""

    kinds: Sequence[str]
    nodes: Sequence[Any]
    objects: Sequence[tuple[str, Sequence[Any]]]
    """Kind and versions, some of them mistaken."""
    pods: Sequence[PodRecord]
    levels: dict[str, str] = field(default_factory=dict)
    """Other names of levels."""
    settings: dict[str, Any] = field(default_factory=dict)


class LateCluster:
    """A cluster in which one history goes by; equal seeds make equal ones."""

    def __init__(self, story: Story, seed: int) -> None:
        self.story, self.random = story, random.Random(seed)
        self.api: dict[str, dict[str, Any]] = {kind: {} for kind in story.kinds}
        self.queues: dict[str, list[Event]] = {kind: [] for kind in story.kinds}
        self.changes, self.losing = 0, 0.2
        self.written: list[WriteStatus] = []
        self.begun: set[int] = set()
        self.world = World((), kinds=story.kinds, **story.settings)
        for each in story.nodes:
            self.put("Node", each)
        for kind in story.kinds:
            self.list_anew(kind)
        self.world.tick()

    # -- what users and controllers do -------------------------------------------------------------

    def put(self, kind: str, record: Any) -> None:
        self.changes += 1
        record = msgspec.structs.replace(record, version=str(self.changes))
        self.api[kind][record.name] = record
        self.queues[kind].append(Applied(record))

    def make(self, kind: str, record: Any) -> None:
        """Create an object, or change the one that is there."""
        there = self.api[kind].get(record.name)
        uid = f"{record.uid}-{self.changes}" if there is None else there.uid
        self.put(kind, msgspec.structs.replace(record, uid=uid))

    def delete(self, kind: str, name: str) -> None:
        if record := self.api[kind].pop(name, None):
            self.queues[kind].append(Deleted(record))

    def create_pod(self, pod: PodRecord) -> None:
        gates = GATED if self.random.random() < 0.5 else ()
        self.make("Pod", msgspec.structs.replace(pod, gates=gates))

    def step(self) -> None:
        """Something happens, as likely as it is said above."""
        (what,) = self.random.choices(list(STEPS), list(STEPS.values()))
        kind, versions = self.random.choice(self.story.objects)
        pods = list(self.api["Pod"].values())
        match what:
            case "make" | "make_anew":
                if what == "make_anew":
                    self.delete(kind, versions[0].name)
                self.make(kind, self.random.choice(versions))
            case "delete":
                self.delete(kind, versions[0].name)
            case "create_pod":
                pod = self.random.choice(self.story.pods)
                if pod.name not in self.api["Pod"]:
                    self.create_pod(pod)
            case "delete_pod":
                self.delete("Pod", self.random.choice(self.story.pods).name)
            case "end_pod":
                self._end_one([each for each in pods if each.node])
            case "change_pod":
                self._rewrite([each for each in pods if not each.node])
            case "change_node":
                self._change_node(self.random.choice(self.story.nodes))
            case "deliver":
                for _ in range(self.random.choice([1, 3, 10])):
                    self.deliver()
            case "list_anew":
                self.list_anew(self.random.choice(self.story.kinds))
            case "schedule":
                self.schedule(failing=self.random.choice([0, 0, 0.3]))
            case "write":
                self.write()
            case "wait":
                self.wait(self.random.choice([0.1, 0.1, 1.0, 5.0, 61.0]))
        for gang in self.world.engine.gangs.by_key.values():
            assert gang.phase not in (Phase.GATHERING, Phase.WAITING) or not gang.plan.nodes

    def _end_one(self, running: list[PodRecord]) -> None:
        ends = [{"phase": "Succeeded"}, {"phase": "Failed"}, {"is_terminating": True}]
        if running:
            pod = self.random.choice(running)
            self.put("Pod", msgspec.structs.replace(pod, **self.random.choice(ends)))

    def _rewrite(self, pods: list[PodRecord]) -> None:
        """A controller writes on a pod, or somebody takes for another what it says."""
        if pods:
            pod = self.random.choice(pods)
            its = next(each for each in self.story.pods if each.name == pod.name)
            like = self.random.choice([its, its, self.random.choice(self.story.pods)])
            ours = {key: text for key, text in pod.annotations.items() if "corral.dev" in key}
            said = {"labels": like.labels, "annotations": {**like.annotations, **ours}}
            self.put("Pod", msgspec.structs.replace(pod, **said))

    def _change_node(self, node: Any) -> None:
        what = self.random.choice(["gone", "cordoned", "there"])
        if what == "gone":
            self.delete("Node", node.name)
        else:
            self.put("Node", msgspec.structs.replace(node, is_unschedulable=what == "cordoned"))

    # -- the watch ---------------------------------------------------------------------------------

    def deliver(self) -> bool:
        """Show the next event of some kind; whether there was one."""
        kinds = [kind for kind in self.story.kinds if self.queues[kind]]
        if kinds:
            event = self.queues[self.random.choice(kinds)].pop(0)
            assert isinstance(event, Applied | Deleted)
            show = self.world.put if isinstance(event, Applied) else self.world.delete
            show(event.record)
        return bool(kinds)

    def deliver_all(self) -> None:
        while self.deliver():
            pass

    def list_anew(self, kind: str, world: World | None = None) -> None:
        """Show all objects of a kind at once, in any order, and none of what came before."""
        records = list(self.api[kind].values())
        self.random.shuffle(records)
        if world is None:
            self.queues[kind].clear()
        world = world or self.world
        if kind == "Pod":
            world.pods = {each.uid: each for each in records}
        self.changes += 1
        world.apply(Listed(kind, tuple(records), edition=self.changes if kind == "Pod" else 0))

    # -- kube-scheduler, and what Corral writes ----------------------------------------------------

    def schedule(self, failing: float = 0.0) -> None:
        """All pods without a node go to /filter and /bind; so many bindings fail."""
        waiting = [
            each
            for each in self.world.pods.values()
            if not (each.node or each.gates or each.is_finished) and not self._has_node(each)
        ]
        self.random.shuffle(waiting)
        for pod in waiting:
            answer = self.world.filter(pod)
            if isinstance(answer, Pinned):
                self._bind(self.world.bind(pod, answer.node), failing)

    def _has_node(self, pod: PodRecord) -> bool:
        there = self.api["Pod"].get(pod.name)
        return there is not None and there.uid == pod.uid and bool(there.node)

    def _bind(self, effects: Sequence[Any], failing: float) -> None:
        binds = [each for each in effects if isinstance(each, Bind)]
        self._check_start(binds)
        for each in binds:
            there, outcome = self.api["Pod"].get(each.name), Bound()
            if there is None or there.uid != each.uid:
                outcome = BindFailed("404", is_gone=True)
            elif self.random.random() < failing:
                outcome = BindFailed("503")
            self.world._take(self.world.inputs.bind_finished(each.uid, outcome, self.world.now))
            if outcome == Bound():
                said = {**there.annotations, **dict(each.annotations)}
                self.put("Pod", msgspec.structs.replace(there, node=each.node, annotations=said))

    def _check_start(self, binds: Sequence[Bind]) -> None:
        """What starts of a gang at first is all that it takes, in the domains that it requires."""
        on = {each.uid: each.node for each in binds}
        gangs = [self.world.engine.gangs.of_pod(uid) for uid in on]
        for gang in {gang.number: gang for gang in gangs if gang is not None}.values():
            its = {uid for uid in gang.members if uid in on}
            runs = [each for each in self.api["Pod"].values() if each.uid in gang.members]
            is_first = not any(each.node for each in runs) and gang.number not in self.begun
            self.begun.add(gang.number)
            if is_first and not gang.membership.bound and gang.binding.posted <= its:
                spec = gang.membership.spec
                names = minimum.names_of(spec)
                starts = [each for uid, each in gang.members.items() if uid in its or each.is_done]
                has = Counter(minimum.leaf_of(names, each.leaf) for each in starts)
                assert minimum.has_enough(spec, has)
                self.check_domains(gang, {uid: on[uid] for uid in its})

    def check_domains(self, gang: Gang, on: dict[str, str]) -> None:
        """The pods of each group with a required level are in one domain of it."""
        spec, labels = gang.membership.spec, {each.name: each.labels for each in self.story.nodes}
        names = minimum.names_of(spec)
        groups: list[GroupSpec] = [spec.root]
        while groups:
            group = groups.pop()
            groups += [each for each in group.members if isinstance(each, GroupSpec)]
            level = group.constraint.required
            if level and group.within is None:
                key = self.story.levels.get(level, level)
                leaves = {leaf.name for leaf in _leaves(group)}
                its = [u for u in on if minimum.leaf_of(names, gang.members[u].leaf) in leaves]
                assert len({labels[on[uid]].get(key) for uid in its}) <= 1, (gang.key, group.name)

    def write(self) -> None:
        """The API server takes what Corral has asked to be written, but for what is lost."""
        effects, self.world.effects = self.world.effects, []
        for each in effects:
            if isinstance(each, Ungate):
                there = self.api["Pod"].get(each.name)
                if there is not None and there.uid == each.uid and each.gate in there.gates:
                    done = self.world.inputs.ungate_finished(each.uid, Ungated(), self.world.now)
                    self.world._take(done)
                    self.put("Pod", ungated(there, each))
            elif isinstance(each, ReadAgain):
                self.list_anew("Pod")
            elif isinstance(each, WriteStatus):
                self._write_status(each)

    def _write_status(self, effect: WriteStatus) -> None:
        self.written.append(effect)
        every = ((kind, each) for kind in self.api for each in self.api[kind].values())
        found = next(((kind, each) for kind, each in every if each.uid == effect.uid), None)
        is_outdated = found and effect.version and effect.version != found[1].version
        if is_outdated or self.random.random() < self.losing:
            lost = (effect.gang, "status", effect.uid, self.world.now)
            self.world._take(self.world.inputs.write_lost(*lost))
        elif found is not None:
            kind, record = found
            self.put(kind, msgspec.structs.replace(record, **self._said(record, effect.status)))

    def _said(self, record: Any, status: Any) -> dict[str, Any]:
        """What a record shows of a status that was written."""
        now = f"then-{self.changes}"
        said = {SAID[key]: value for key, value in status.items() if key in SAID}
        if "conditions" in said:
            said["conditions"] = tuple(
                {key: now if text == AT_WRITE else text for key, text in each.items()}
                for each in said["conditions"]
            )
        if "nodeCount" in status:  # of a HyperNode
            (own,) = said.pop("conditions")
            said["condition"] = own["status"], own["reason"], own["message"]
            said |= {"turned_at": own["lastTransitionTime"], "node_count": status["nodeCount"]}
        if "running" in status:  # of a PodGroup of Volcano's
            said["counted"] = status["running"], status["succeeded"], status["failed"]
        if "placementScore" in status:
            said["score"] = status["placementScore"]
        return said

    def wait(self, seconds: float) -> None:
        self._bind(self.world.tick(seconds), 0.0)

    def settle(self, seconds: int) -> None:
        """Everything comes, and goes well."""
        for _ in range(seconds):
            self.deliver_all()
            self.write()
            self.wait(1.0)
            self.deliver_all()
            self.schedule()
        self.deliver_all()

    # -- what has to be true -----------------------------------------------------------------------

    def check_restart(self) -> None:
        """A Corral that starts from what the API server has comes to the same."""
        for _ in range(3):
            self.deliver_all()
            self.write()
            self.wait(0.1)
        self.deliver_all()
        self.wait(0.1)
        again = World((), kinds=self.story.kinds, **self.story.settings)
        for kind in self.random.sample(list(self.story.kinds), len(self.story.kinds)):
            self.list_anew(kind, again)
        again.tick()
        assert _state(self.world) == _state(again)

    def check_end(self) -> None:
        """Once all is as it should be every gang starts whole, is told so, and leaves nothing."""
        for name in list(self.api["Pod"]):
            self.delete("Pod", name)
        for each in self.story.nodes:
            self.put("Node", each)
        self.deliver_all()
        self.wait(1.0)
        for kind, versions in self.story.objects:
            self.make(kind, versions[-1])
        self.deliver_all()
        self.write()
        for pod in self.random.sample(list(self.story.pods), len(self.story.pods)):
            self.create_pod(pod)
        self.settle(40)
        assert [each.name for each in self.api["Pod"].values() if not each.node] == []
        assert self.world.held == {}
        for gang in self.world.engine.gangs.by_key.values():
            self.check_domains(gang, {uid: each.pod.node for uid, each in gang.members.items()})
        self.losing = 0.0
        for _ in range(6):
            self.wait(400.0)
            self.settle(1)
        self.written.clear()
        self.settle(12)
        assert self.written == []

    def check_nothing_is_left(self) -> None:
        """Of objects and pods that are gone nothing is kept."""
        for kind, its in self.api.items():
            for name in list(its):
                self.delete(kind, name)
        self.deliver_all()
        for _ in range(6):
            self.wait(400.0)
        engine = self.world.engine
        assert engine.gangs.by_key == {}
        assert engine.objects.by_uid == {}
        assert (engine.objects.by_gang, engine.objects.inside) == ({}, {})


def _leaves(group: GroupSpec) -> list[LeafSpec]:
    inner = [each for each in group.members if isinstance(each, GroupSpec)]
    own = [each for each in group.members if isinstance(each, LeafSpec)]
    return own + [leaf for each in inner for leaf in _leaves(each)]


def _state(world: World) -> dict[str, Any]:
    """All that does not depend on the order in which things came."""
    engine = world.engine
    return {
        "bound": dict(engine.books.bound),
        "problem": engine.topologies.problem,
        "levels": {name: each.tree.levels for name, each in engine.books.topologies.items()},
        "nodes": {name: list(each.tree.nodes) for name, each in engine.books.topologies.items()},
        "domains": {
            uid: engine.topologies.view(uid)
            for uid in engine.objects.by_uid
            if engine.topologies.has_domain(uid)
        },
        "gangs": {
            str(key): (
                {uid: (m.leaf, m.index, m.flaw, m.said) for uid, m in gang.members.items()},
                gang.membership.spec,
                gang.membership.problem,
                {each.pod.uid for each in gang.membership.bound},
            )
            for key, gang in engine.gangs.by_key.items()
            if gang.members
        },
    }
