"""A cluster in virtual time around the engine: what the watch and kube-scheduler would do.

After every step the books are audited; a test that breaks an invariant fails at that step.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from app.dialects.spec import GangKey
from app.kube.core.objects import (
    NodeRecord,
    ObjectRecord,
    PodRecord,
    Requirement,
    Shape,
    Term,
)
from app.kube.watch.events import Applied, Deleted, Event, Listed
from app.state.effects import (
    Bind,
    Bound,
    Effect,
    EmitEvent,
    RejectBind,
    Requeue,
    SeekPlace,
    Ungate,
    Ungated,
)
from app.state.engine import Engine
from app.state.filter_result import FilterAnswer, Pinned
from app.state.gang.gang import Gang
from app.state.inputs import Inputs
from app.state.journal.record import Recorder
from app.state.settings import EngineSettings
from tests.records import BLOCK, RACK, group, node, pod
from topology import invariants

LISTED = ("Topology", "Job", "Node", "Pod")


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


class World:
    """Feeds one engine and keeps what it wants written."""

    recorder: Recorder | None = None

    def __init__(
        self,
        nodes: Iterable[NodeRecord] = (),
        pods: Iterable[PodRecord] = (),
        jobs: Iterable[ObjectRecord] = (),
        topologies: Iterable[ObjectRecord] = (),
        **settings: object,
    ) -> None:
        chosen = {"levels": (BLOCK, RACK), "kinds": LISTED, **settings}
        self.settings = EngineSettings(**chosen)
        self.engine = self.built()
        self.now = 1000.0
        self.pods = {pod.uid: pod for pod in pods}
        self.effects: list[Effect] = []
        self.seeking: list[GangKey] = []
        for listed in (
            Listed("Topology", tuple(topologies)),
            Listed("Job", tuple(jobs)),
            Listed("Node", tuple(nodes)),
            Listed("Pod", tuple(self.pods.values())),
        ):
            self.apply(listed)
        self.tick()

    def built(self) -> Engine:
        """An engine that knows nothing yet."""
        return Engine(self.settings)

    @property
    def inputs(self) -> Inputs:
        """The engine, or the recorder before it."""
        return self.recorder or self.engine

    def _take(self, effects: list[Effect]) -> list[Effect]:
        self.effects.extend(effects)
        self.seeking += [each.gang for each in effects if isinstance(each, SeekPlace)]
        self.engine.books.refresh()
        assert self.engine.differences() == []
        for topology in self.engine.books.topologies.values():
            invariants.check(topology.tree, topology.capacity)
        return effects

    def apply(self, event: Event) -> list[Effect]:
        return self._take(self.inputs.apply(event, self.now))

    def put(self, *records: PodRecord | NodeRecord | ObjectRecord) -> None:
        for record in records:
            if isinstance(record, PodRecord):
                self.pods[record.uid] = record
            self.apply(Applied(record))

    def delete(self, *records: PodRecord | NodeRecord | ObjectRecord) -> None:
        for record in records:
            if isinstance(record, PodRecord):
                self.pods.pop(record.uid, None)
            self.apply(Deleted(record))

    def tick(self, seconds: float = 0.1) -> list[Effect]:
        self.now += seconds
        self.search_on()
        return self._take(self.inputs.tick(self.now))

    def search_on(self) -> None:
        """Answer what gangs have asked since the last tick, as the thread would."""
        seeking, self.seeking = self.seeking, []
        for key in seeking:
            question = self.engine.searches_on.request(key)
            answer = None if question is None else question.answer()
            self._take(self.inputs.place_found(key, answer, 0.01, self.now))

    def filter(self, pod: PodRecord, nodes: Iterable[str] | None = None) -> FilterAnswer:
        """What kube-scheduler is answered; it asks about no pod with a gate (SchedulingGates)."""
        assert not pod.gates, f"kube-scheduler does not ask about {pod.name}: {pod.gates}"
        names = Names(self.engine.books.nodes if nodes is None else nodes)
        answer, effects = self.inputs.filter(pod, names, self.now)
        self._take(effects)
        return answer

    def bind(self, pod: PodRecord, node: str) -> list[Effect]:
        return self._take(
            self.inputs.bind_arrived(pod.namespace, pod.name, pod.uid, node, self.now)
        )

    def confirm(self, effects: Iterable[Effect]) -> None:
        """The API server does what Bind effects ask, and the watch shows it."""
        for effect in effects:
            if isinstance(effect, Bind) and effect.uid in self.pods:
                self._take(self.inputs.bind_finished(effect.uid, Bound(), self.now))
                pod = self.pods[effect.uid]
                if not pod.node:
                    said = {**pod.annotations, **dict(effect.annotations)}
                    self.put(msgspec.structs.replace(pod, node=effect.node, annotations=said))

    def patch(self, effects: Iterable[Effect]) -> None:
        """The API server takes gates off as Ungate effects ask, and the watch shows it."""
        for effect in effects:
            if isinstance(effect, Ungate) and effect.uid in self.pods:
                self._take(self.inputs.ungate_finished(effect.uid, Ungated(), self.now))
                self.put(ungated(self.pods[effect.uid], effect))

    def schedule(self, *pods: PodRecord) -> dict[str, str]:
        """Take these pods through /filter and /bind as kube-scheduler would; name -> node.

        A pod that the API server has with a gate, or not at all, is not tried.
        """
        for each in [self.pods[each.uid] for each in pods if each.uid in self.pods]:
            if each.gates:
                continue
            answer = self.filter(each)
            if isinstance(answer, Pinned):
                self.confirm(self.bind(each, answer.node))
        return {
            each.name: self.pods[each.uid].node
            for each in pods
            if each.uid in self.pods and self.pods[each.uid].node
        }

    def gang(self, name: str = "") -> Gang:
        """The gang of this name; "": the only one there is."""
        gangs = self.engine.gangs.by_key.values()
        (found,) = [gang for gang in gangs if name in ("", gang.key.name)]
        return found

    def told(self, kind: type[Effect]) -> list[Effect]:
        return [effect for effect in self.effects if isinstance(effect, kind)]

    @property
    def reports(self) -> list[str]:
        return [effect.sentence for effect in self.effects if isinstance(effect, EmitEvent)]

    @property
    def ungated(self) -> list[str]:
        return [effect.name for effect in self.effects if isinstance(effect, Ungate)]

    @property
    def woken(self) -> list[str]:
        return [effect.name for effect in self.effects if isinstance(effect, Requeue)]

    @property
    def refused(self) -> list[str]:
        return [effect.uid for effect in self.effects if isinstance(effect, RejectBind)]

    @property
    def held(self) -> dict[str, str]:
        return {uid: booking.node for uid, booking in self.engine.books.held.items()}


def ungated(pod: PodRecord, patch: Ungate) -> PodRecord:
    """The pod as the API server has it after the patch."""
    shape = pod.shape
    terms = tuple(
        Term(fields=(Requirement("metadata.name", "In", (node,)),)) for node in patch.nodes
    )
    selector = tuple(sorted({**dict(shape.selector), **dict(patch.selector)}.items()))
    gates = tuple(gate for gate in pod.gates if gate != patch.gate)
    return msgspec.structs.replace(
        pod,
        gates=gates,
        is_marked=pod.is_marked and bool(gates),
        shape=Shape(selector, terms or shape.terms, shape.tolerations),
        annotations={**pod.annotations, **dict(patch.annotations)},
    )


def four_racks(**more):
    """4 racks × 4 nodes × 8 GPUs in two blocks."""
    return [node(f"b{r // 2}/r{r}/n{r}{i}", **more) for r in range(4) for i in range(4)]


def members(name, total, required=RACK, gpus=8, **more):
    annotations = group(name, total, required)
    return [pod(f"{name}{i}", gpus=gpus, annotations=annotations, **more) for i in range(total)]


def racks(placed):
    return {on[:2] for on in placed.values()}
