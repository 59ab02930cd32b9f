"""The API server's truth: objects with resource versions, and who wants to hear of changes.

Only what the world needs: nodes, pods, workloads and Topologies as the slim records of `app.kube`,
bindings, evictions and patches with their preconditions. What may go wrong on the way here is
`calls.py`; what is heard late, twice or not at all is `watch.py`.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from app.dialects import corral as own
from app.dialects.budgets.dialect import KIND as BUDGET
from app.dialects.budgets.dialect import BudgetRecord
from app.dialects.kueue import pod_groups
from app.dialects.spec import GangKey
from app.kube.core.objects import NodeRecord, PodRecord, Record, Requirement, Shape, Term
from app.kube.watch.events import Kind
from app.state.gang.members.member import member_of
from tests.sim.clock import Clock, History
from tests.sim.dialects import DIALECTS
from tests.sim.violation import require

KINDS: tuple[Kind, ...] = ("Topology", "Job", "StatefulSet", "Node", "Pod")
WITH_BUDGETS: tuple[Kind, ...] = (BUDGET, *KINDS)  # where pods are evicted for gangs
HYPER_NODE, QUEUE = "HyperNode", "Queue.scheduling.volcano.sh"
POD_GROUP, VCJOB = "PodGroup.scheduling.volcano.sh", "Job.batch.volcano.sh"
VOLCANO: tuple[Kind, ...] = (HYPER_NODE, QUEUE, POD_GROUP, VCJOB)
POD_GANG, CLUSTER_TOPOLOGY = "PodGang", "ClusterTopology"
GROVE: tuple[Kind, ...] = (CLUSTER_TOPOLOGY, POD_GANG)
NATIVE_GROUP = "PodGroup.scheduling.k8s.io"
NATIVE: tuple[Kind, ...] = (NATIVE_GROUP,)
COMPOSITE = "CompositePodGroup"
WITH_COMPOSITES: tuple[Kind, ...] = (*NATIVE, COMPOSITE)
KAI_GROUP, KAI_TOPOLOGY = "PodGroup.scheduling.run.ai", "Topology.kai.scheduler"
KAI: tuple[Kind, ...] = (KAI_TOPOLOGY, KAI_GROUP)
OF_ALL: tuple[Kind, ...] = (
    HYPER_NODE,
    QUEUE,
    CLUSTER_TOPOLOGY,
    KAI_TOPOLOGY,
)  # those without a namespace
_ALL: tuple[Kind, ...] = (*WITH_BUDGETS, *VOLCANO, *GROVE, *WITH_COMPOSITES, *KAI)


class Refused(Exception):
    """The API server answered, and not with a success."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(f"{status} {reason}")
        self.status = status


@dataclass(frozen=True, slots=True)
class Change:
    """One write: the object as it is now, or as it was last."""

    record: Record
    is_deleted: bool
    version: int


class ApiServer:
    """All objects by kind and name (there is one namespace), and every change ever made."""

    def __init__(self, clock: Clock, history: History) -> None:
        self.version = 1
        self.objects: dict[Kind, dict[str, Any]] = {kind: {} for kind in _ALL}
        self.changes: dict[Kind, list[Change]] = {kind: [] for kind in _ALL}
        self.succeeded_and_gone: dict[GangKey, Counter[str]] = {}  # pods of groups, by set
        self.started: dict[str, float] = {}  # since when the pods are on their nodes, by uid
        self.stopped: set[GangKey] = set()  # groups of which a pod succeeded as it was deleted
        self._history = history
        self._clock = clock
        self._listeners: dict[Kind, list[Callable[[], None]]] = {kind: [] for kind in _ALL}
        self._uids = 0

    @property
    def pods(self) -> dict[str, PodRecord]:
        return self.objects["Pod"]

    @property
    def nodes(self) -> dict[str, NodeRecord]:
        return self.objects["Node"]

    def new_uid(self) -> str:
        """A uid that no object has had."""
        self._uids += 1
        return f"u{self._uids}"

    def subscribe(self, kind: Kind, listener: Callable[[], None]) -> None:
        """Have this called after every change of the kind."""
        self._listeners[kind].append(listener)

    def list(self, kind: Kind) -> tuple[Any, ...]:
        """All objects of a kind, by name."""
        return tuple(record for _, record in sorted(self.objects[kind].items()))

    # -- writes --------------------------------------------------------------------------------

    def create(self, kind: Kind, record: Any) -> Any:
        """Add an object.

        Raises: Refused (409) where the name is taken.
        """
        if record.name in self.objects[kind]:
            raise Refused(409, "AlreadyExists")
        return self._write(kind, record)

    def put(self, kind: Kind, record: Any) -> Any:
        """Add an object, or replace the whole of one that exists."""
        return self._write(kind, record)

    def change(self, kind: Kind, name: str, **fields: object) -> Any:
        """Change some fields of an object that exists."""
        return self._write(kind, msgspec.structs.replace(self.objects[kind][name], **fields))

    def remove(self, kind: Kind, name: str) -> None:
        """Delete at once and for good."""
        self.version += 1
        record = self.objects[kind].pop(name)
        gone = msgspec.structs.replace(record, version=str(self.version))
        if isinstance(gone, PodRecord):
            self.started.pop(gone.uid, None)
            self._count_succeeded(gone)
        self._history.say(f"api: {kind} {name} gone")
        self._note(kind, Change(gone, is_deleted=True, version=self.version))

    def end(self, name: str, phase: str) -> None:
        """The containers of a pod have ended."""
        pod = self.pods[name]
        key = _group_of(pod)
        if key is not None and pod.is_terminating and phase == "Succeeded":
            self.stopped.add(key)
        self.change("Pod", name, phase=phase)

    def _count_succeeded(self, gone: PodRecord) -> None:
        """Count a pod of a group; with the last pod of a group its count ends."""
        key, claim = _group_of(gone), DIALECTS.claim(gone)
        if key is None or claim is None:
            return
        if gone.phase == "Succeeded":
            pod_set = member_of(gone, claim).pod_set
            self.succeeded_and_gone.setdefault(key, Counter())[pod_set] += 1
        if not any(_group_of(each) == key for each in self.pods.values()):
            self.succeeded_and_gone.pop(key, None)

    def _write(self, kind: Kind, record: Any) -> Any:
        self.version += 1
        record = msgspec.structs.replace(record, version=str(self.version))
        self.objects[kind][record.name] = record
        if isinstance(record, PodRecord) and record.node:
            self.started.setdefault(record.uid, self._clock.now)
        self._note(kind, Change(record, is_deleted=False, version=self.version))
        return record

    def _note(self, kind: Kind, change: Change) -> None:
        self.changes[kind].append(change)
        for listener in self._listeners[kind]:
            listener()

    # -- pods ----------------------------------------------------------------------------------

    def get_pod(self, name: str, uid: str) -> PodRecord:
        """The pod of this name if it still is the one of this uid.

        Raises: Refused (404, or 409 where another pod has the name now).
        """
        pod = self.pods.get(name)
        if pod is None:
            raise Refused(404, "NotFound")
        if pod.uid != uid:
            raise Refused(409, "Conflict")
        return pod

    def delete_pod(self, name: str, uid: str, grace: float) -> None:
        """Delete as the API server does: a pod on a node is terminating until its kubelet is done.

        Raises: Refused.
        """
        pod = self.get_pod(name, uid)
        if not pod.node or pod.is_finished:
            self.remove("Pod", name)
        elif not pod.is_terminating:
            self._history.say(f"api: Pod {name} terminating")
            self.change("Pod", name, is_terminating=True)
            self._clock.after(grace, lambda: self.kill(name, uid))

    def check_eviction(self, name: str, uid: str, *, counts: bool) -> bool:
        """Whether the pod would be evicted and is not ending yet; `counts`: its budget counts it.

        Source: kubernetes v1.36 pkg/registry/core/pod/storage/eviction.go, canIgnorePDB and
        checkAndDecrement.
        Raises: Refused (429 where its budget allows none; 500 where two select it).
        """
        pod = self.get_pod(name, uid)
        if pod.is_finished or pod.is_terminating or pod.phase == "Pending":
            return not pod.is_terminating
        found = [budget for budget in self.objects[BUDGET].values() if selects(budget, pod)]
        if len(found) > 1:
            raise Refused(500, "InternalError: two budgets")
        if found and not found[0].allowed:
            raise Refused(429, f"TooManyRequests: {found[0].name}")
        if found and counts:
            self.change(BUDGET, found[0].name, allowed=found[0].allowed - 1)
        return True

    def evict(self, name: str, uid: str, grace: int, seconds: float) -> None:
        """Evict a pod, which ends after so long; its containers may run for `grace` seconds.

        Raises: Refused.
        """
        if not self.check_eviction(name, uid, counts=True):
            return
        pod = self.pods[name]
        if not pod.node or pod.is_finished:
            self.remove("Pod", name)
            return
        self._history.say(f"api: Pod {name} evicted, {grace} s; ends in {seconds:.1f} s")
        self.change("Pod", name, is_terminating=True, grace_seconds=grace)
        if seconds < math.inf:
            self._clock.after(seconds, lambda: self.kill(name, uid))

    def kill(self, name: str, uid: str) -> None:
        """The pod is gone, if it still is the one of this uid."""
        pod = self.pods.get(name)
        if pod is not None and pod.uid == uid:
            self.remove("Pod", name)

    def bind(self, name: str, uid: str, node: str, annotations: Iterable[tuple[str, str]]) -> None:
        """POST pods/binding with the uid as its precondition.

        Raises: Refused.
        """
        pod = self.get_pod(name, uid)
        if pod.node or pod.gates or pod.is_terminating or pod.is_finished:
            raise Refused(409, "Conflict")
        self._history.say(f"api: Pod {name} ({uid}) bound to {node}")
        merged = {**pod.annotations, **dict(annotations)}
        self.change("Pod", name, node=node, annotations=merged, nominated_node="")

    def annotate(self, name: str, uid: str, annotations: Mapping[str, str]) -> None:
        """Merge annotations into a pod.

        Raises: Refused.
        """
        pod = self.get_pod(name, uid)
        self.change("Pod", name, annotations={**pod.annotations, **annotations})

    def suspend(self, name: str, uid: str, version: str, *, ends: bool) -> None:
        """Suspend a Job in our name, or have it go on.

        Raises: Refused.
        """
        job = self.objects["Job"].get(name)
        if job is None:
            raise Refused(404, "NotFound")
        if (job.uid, job.version) != (uid, version):
            raise Refused(409, "Conflict")
        said = {key: value for key, value in job.annotations.items() if key != own.SUSPENDED}
        annotations = said if ends else {**said, own.SUSPENDED: "true"}
        self.change("Job", name, is_suspended=not ends, annotations=annotations)

    def nominate(self, name: str, uid: str, node: str) -> None:
        """Write the nominated node of a pod; "": none.

        Raises: Refused (422 where the pod is bound); Violation.
        Source: kubernetes v1.36 pkg/apis/core/validation/validation.go, ValidatePodStatusUpdate.
        """
        pod = self.get_pod(name, uid)
        require(not pod.gates, f"nominations: pod {name} is gated")
        if pod.node and node:
            raise Refused(422, "Invalid")
        said = {key: text for key, text in pod.annotations.items() if key != own.NOMINATED}
        if node:
            said[own.NOMINATED] = node
        self.change("Pod", name, nominated_node=node, annotations=said)

    def mark(self, name: str, uid: str, version: str, is_marked: bool) -> None:
        """Say that a pod behind a gate needs a node, or no more; what is said must be news.

        Raises: Refused (409 for another version); Violation.
        """
        pod = self.get_pod(name, uid)
        if pod.version != version:
            raise Refused(409, "Conflict")
        require(own.GATE in pod.gates, f"marks: pod {name} has no gate of ours")
        require(pod.is_marked != is_marked, f"marks: pod {name} has been marked so already")
        self._history.say(f"api: Pod {name} ({uid}) {'is' if is_marked else 'is not'} marked")
        self.change("Pod", name, is_marked=is_marked)

    def ungate(
        self,
        name: str,
        uid: str,
        gate: str,
        nodes: tuple[str, ...],
        selector: tuple[tuple[str, str], ...],
        annotations: Iterable[tuple[str, str]],
    ) -> None:
        """Take one gate off and narrow the pod, which the API allows while it is gated only.

        Terms of its own may not be replaced. Saying again what holds already is no change.
        Raises: Refused (422 for a change that is not allowed).
        """
        pod = self.get_pod(name, uid)
        terms = tuple(Term(fields=(Requirement("metadata.name", "In", (node,)),)) for node in nodes)
        shape = Shape(
            tuple(sorted({**dict(pod.shape.selector), **dict(selector)}.items())),
            terms or pod.shape.terms,
            pod.shape.tolerations,
        )
        replaces_terms = pod.shape.terms and shape.terms != pod.shape.terms
        if replaces_terms or (shape != pod.shape and not pod.gates):
            raise Refused(422, "Invalid")
        gates = tuple(each for each in pod.gates if each != gate)
        self._history.say(f"api: Pod {name} ({uid}) ungated, {len(nodes)} nodes allowed")
        self.change(
            "Pod",
            name,
            gates=gates,
            is_marked=pod.is_marked and bool(gates),
            shape=shape,
            annotations={**pod.annotations, **dict(annotations)},
        )


def selects(budget: BudgetRecord, pod: PodRecord) -> bool:
    """Whether a budget counts a pod: by one label that has one of these values."""
    return any(pod.labels.get(key) in values for key, _, values in budget.requirements or ())


def _group_of(pod: PodRecord) -> GangKey | None:
    claim = DIALECTS.claim(pod)
    return claim.gang if claim is not None and claim.gang.source == pod_groups.SOURCE else None
