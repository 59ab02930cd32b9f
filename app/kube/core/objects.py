"""What Corral remembers of a Kubernetes object: slim, immutable records.

A pod takes about 1 KB here, 29 KB as a parsed dictionary, 44 KB as a client model: with 150,000
pods that is the difference between running and not. Strings that repeat, resource requests and
shapes are shared between records (`decode.py` interns them), so equal means identical, nearly.

`gc=False`: no record can reach itself, so the collector need not visit 150,000 of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import msgspec

Amounts = tuple[tuple[str, int], ...]
"""(resource, amount) sorted by resource; cpu in millicores, the rest in base units."""


class Owner(msgspec.Struct, frozen=True, gc=False):
    """The controller that made an object."""

    api_version: str
    kind: str
    name: str
    uid: str


class Taint(msgspec.Struct, frozen=True, gc=False):
    """A node's taint, whatever its effect."""

    key: str
    value: str
    effect: str


class Toleration(msgspec.Struct, frozen=True, gc=False):
    """A pod's toleration. `operator` is never empty: the API's default is Equal."""

    key: str
    operator: str
    value: str
    effect: str
    is_for_a_while: bool = False  # with tolerationSeconds: a pod that runs is evicted after them


class Requirement(msgspec.Struct, frozen=True, gc=False):
    """One line of a node selector term: key operator values."""

    key: str
    operator: str
    values: tuple[str, ...]


class Term(msgspec.Struct, frozen=True, gc=False):
    """One node selector term: every line must hold. A term without lines matches no node."""

    expressions: tuple[Requirement, ...] = ()
    fields: tuple[Requirement, ...] = ()


class Shape(msgspec.Struct, frozen=True, gc=False, cache_hash=True):
    """Which nodes a pod may use by its own words; equal shapes share one node mask.

    Order: `selector` by key; the rest as the pod lists it.
    """

    selector: tuple[tuple[str, str], ...] = ()
    terms: tuple[Term, ...] = ()  # required node affinity, any of them; () = no affinity at all
    tolerations: tuple[Toleration, ...] = ()
    preferred: tuple[tuple[int, Term], ...] = ()  # (weight, term) of preferred node affinity


class NodeRecord(msgspec.Struct, frozen=True, gc=False):
    """One node. With a `problem` it counts as closed; amounts that were not readable are 0."""

    name: str
    uid: str
    labels: Mapping[str, str]
    allocatable: Amounts
    is_ready: bool
    is_unschedulable: bool
    taints: tuple[Taint, ...]
    version: str
    problem: str = ""
    annotations: Mapping[str, str] = msgspec.field(default_factory=dict)
    """Only the keys that the decoder was told to keep; they decide nothing about pods."""


LASTING_KINDS = frozenset(
    ("DaemonSet", "Node", "ReplicaSet", "ReplicationController", "StatefulSet")
)
# ^ owners of pods that do not end by themselves; Node: of those that a kubelet reads from its disk


Health = Literal["", "ready", "failing"]


class PodRecord(msgspec.Struct, frozen=True, gc=False):
    """One pod, from the watch or from an extender request alike.

    `request` is what kube-scheduler subtracts from a node for it, ("pods", 1) included.
    Of `labels` and `annotations` only the keys the decoder was told to keep are here.
    """

    namespace: str
    name: str
    uid: str
    node: str  # "" while unbound
    phase: str
    scheduler: str
    priority: int
    request: Amounts
    shape: Shape
    gates: tuple[str, ...]
    is_terminating: bool
    created: str  # as the API server wrote it (RFC 3339, whole seconds)
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    owner: Owner | None
    nominated_node: str
    version: str
    problem: str = ""
    has_claims: bool = False  # of dynamic resource allocation, which `request` does not contain
    is_preempted: bool = False  # kube-scheduler ends it for a pod of higher priority …
    preempted_at: str = ""  # … since then, as the API server wrote it; "" if that is not known
    grace_seconds: int = 0  # while it terminates: for how long its containers may run on
    preempts: bool = True  # its preemptionPolicy lets pods of lower priority end for it
    offered_then: int | None = None
    """Of a pod with more resources than are counted: how many nodes were known to offer, all of
    which are counted. None: so is everything that the pod requests."""
    pod_group: str = ""  # its PodGroup, in the pod's namespace, by spec.schedulingGroup; "": none
    health: Health = ""
    """Of a pod with a node: "ready", "failing" if a container has ended with an error or has
    started and is not ready, and "" while it starts."""
    is_marked: bool = False
    """Of a pod behind a gate: its condition says that no node takes it, so that node autoscalers
    count it."""
    deadline_seconds: int = 0  # its kubelet ends it so long after its start; 0: never
    termination_seconds: int = 0  # how long it may take to end

    @property
    def is_finished(self) -> bool:
        """True once no container of it can run again: it holds no capacity."""
        return self.phase in ("Succeeded", "Failed")

    @property
    def lasts(self) -> bool:
        """Whether its owner lets it run without end, as far as its kind says."""
        return self.owner is not None and self.owner.kind in LASTING_KINDS

    @property
    def key(self) -> str:
        """namespace/name: unique at any one time, reused over time (`uid` is not)."""
        return f"{self.namespace}/{self.name}"

    def repeats(self, before: PodRecord) -> bool:
        """Whether nothing has changed that is kept, but from Pending to Running, and what status
        says of its health or of a mark for autoscalers.
        """
        if self.phase != before.phase and (self.is_finished or before.is_finished):
            return False
        return self == msgspec.structs.replace(
            before,
            phase=self.phase,
            health=self.health,
            is_marked=self.is_marked,
            version=self.version,
        )


class ObjectRecord(msgspec.Struct, frozen=True, gc=False):
    """What every object of a vocabulary has: Jobs, Topologies and the like are records of theirs.

    `namespace` is empty for objects of the whole cluster.
    """

    kind: str
    namespace: str
    name: str
    uid: str
    version: str

    @property
    def key(self) -> str:
        """namespace/name."""
        return f"{self.namespace}/{self.name}"


Record = NodeRecord | PodRecord | ObjectRecord
