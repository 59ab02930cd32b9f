"""Pods and objects as gangs that run: nothing is kept of a pod but what is judged.

    nodes ─▶ objects ─▶ pods, one at a time ──claim──▶ Seen ──spec──▶ RunningGang

The order matters: objects say which labels of pods count, and which pods they name. So all of them
come before the first pod, and each pod is read once.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Literal

import msgspec

from app.cli.audit.verdicts import Unread
from app.dialects import corral
from app.dialects.registry import DIALECTS, Dialects
from app.dialects.spec import GangKey, GangSpec, LeafPods, Said
from app.kube.core.objects import Amounts, NodeRecord, ObjectRecord, PodRecord, Shape
from app.kube.watch.resource import Resource
from app.state.cache.books import Books
from app.state.claims.claim_reader import ClaimReader
from app.state.claims.named_pods import NamedPods
from app.state.domains.topologies import Topologies
from app.state.gang.members.membership import leaf_by_kind
from app.state.objects.declared import Objects
from app.state.objects.kept_keys import KeptKeys
from app.state.settings import EngineSettings

State = Literal["runs", "waits", "ends", "succeeded", "failed"]
"""runs: it has a node and is not being deleted. ends: it terminates."""


Role = tuple[str, Amounts, Shape]
"""A leaf, and what its pods request and where they may be."""


class Seen(msgspec.Struct, frozen=True, gc=False):
    """What is kept of a pod of a gang; pods of one template share all but name and node."""

    name: str
    node: str
    state: State
    leaf: str
    role: Role
    """The same object for pods of the same leaf, request and shape."""
    said: Said
    priority: int
    flaw: str = ""

    @property
    def is_done(self) -> bool:
        """Whether it has succeeded and no other need take its place."""
        return self.state == "succeeded" and not self.said.is_serving


@dataclass(frozen=True, slots=True)
class RunningGang:
    """A gang of which a pod runs."""

    key: GangKey
    spec: GangSpec | None
    """None: that is not known, as `why` says."""
    pods: tuple[Seen, ...]
    why: str = ""
    unread: tuple[Unread, ...] = ()
    """Kinds of its vocabulary that could not be read."""


@dataclass(slots=True)
class Gathering:
    """Reads records of every kind, nodes and objects before pods."""

    settings: EngineSettings
    dialects: Dialects = field(init=False)
    books: Books = field(default_factory=Books)
    topologies: Topologies = field(init=False)
    unread: dict[str, Unread] = field(default_factory=dict)
    """By kind."""
    ordinary: int = 0
    """Pods of no gang."""
    managed: int = 0
    """Pods that another controller plans for, such as Kueue."""
    unreadable: list[str] = field(default_factory=list)
    _kept_keys: KeptKeys = field(init=False)
    _objects: Objects = field(init=False)
    _named_pods: NamedPods = field(init=False)
    _reader: ClaimReader = field(init=False)
    _pods: dict[GangKey, list[Seen]] = field(default_factory=dict)
    _roles: dict[Role, Role] = field(default_factory=dict)

    def __post_init__(self) -> None:
        # Quotas and budgets say nothing of where pods are, and take rights of their own to read.
        of_gangs = tuple(each for each in DIALECTS.each if each.sources)
        self.dialects = Dialects(of_gangs).configured(self.settings)
        self._kept_keys = KeptKeys(self.dialects)
        self._objects = Objects(self.dialects, self._kept_keys)
        self._named_pods = NamedPods(self.settings, self.dialects, self._objects)
        self._reader = ClaimReader(self.settings, self.dialects, self._named_pods)
        self.topologies = Topologies(self.settings, self.books, self.dialects)

    def resources(self) -> tuple[Resource, Resource, tuple[Resource, ...]]:
        """What to read: nodes, pods, and the objects of every vocabulary."""
        nodes, pods, *objects = self.dialects.resources(labels=self._kept_keys.labels)
        return nodes, pods, tuple(objects)

    # -- in this order -------------------------------------------------------------------------

    def put_node(self, node: NodeRecord) -> None:
        """A node; only its labels count here."""
        bare = msgspec.structs.replace(node, allocatable=(), taints=(), version="")
        self.books.put_node(bare)

    def put_objects(self, kind: str, objects: Collection[ObjectRecord]) -> None:
        """All objects of a kind."""
        for each in objects:
            for _ in self._objects.put(each):
                pass  # which gangs it concerns does not matter: no pod has been read
            self._named_pods.put_object(each)
        if any(self.dialects.topologies(each) for each in objects):
            self.topologies.replace(kind, objects)
        for each in objects:
            if any(self.dialects.joins(each)):
                self.topologies.put(each)

    def put_pods(self, pods: Iterable[PodRecord]) -> None:
        """Some of the pods, after all objects."""
        self._kept_keys.pods_read(self._kept_keys.labels.edition)
        for pod in pods:
            self._put_pod(pod)

    def _put_pod(self, pod: PodRecord) -> None:
        claim = self._reader.claim(pod)
        if claim is None:
            self.ordinary += 1
            self.managed += self.dialects.is_managed(
                pod.labels, pod.annotations, pod.gates, pod.pod_group
            )
            return
        shape, _ = corral.own_shape(pod)
        role = (claim.leaf, pod.request, shape)
        seen = Seen(
            pod.name,
            pod.node,
            _state(pod),
            claim.leaf,
            self._roles.setdefault(role, role),
            claim.said,
            pod.priority,
            claim.flaw,
        )
        self._pods.setdefault(claim.gang, []).append(seen)

    # -- gangs ---------------------------------------------------------------------------------

    @property
    def waiting(self) -> int:
        """Gangs of which no pod runs."""
        return len(self._pods) - sum(map(_runs, self._pods.values()))

    def running(self) -> Iterator[RunningGang]:
        """The gangs of which a pod runs, in the order of their names."""
        for key in sorted(self._pods, key=lambda key: (key.namespace, key.name, key.source)):
            if _runs(self._pods[key]):
                yield self._gang(key, self._pods[key])

    def _gang(self, key: GangKey, pods: list[Seen]) -> RunningGang:
        live = [each for each in pods if each.state == "runs"]
        live += [each for each in pods if each.state == "waits"]
        failed = [each for each in pods if each.state == "failed"]
        counted = [each for each in pods if each.state in ("runs", "waits") or each.is_done]
        spec = self._objects.spec(key, _said(live), _said(failed), _by_leaf(counted))
        dialect = self.dialects.of(key)
        kinds = [each.kind for each in dialect.resources(self.dialects.keeps)]
        unread = tuple(self.unread[kind] for kind in kinds if kind in self.unread)
        if spec is not None:
            pods = self._likened(pods, spec)
            # Without its objects a tier would be no constraint at all.
            lost = sorted(spec.topologies - self.books.topologies.keys()) if unread else []
            why = f"its topology {lost[0]} is not known" if lost else ""
            return RunningGang(key, self.topologies.resolved(spec), tuple(pods), why, unread)
        lacking = self._objects.lacking(key)
        if lacking is not None:
            keys = ", ".join((*lacking.refused, *lacking.unread))
            why = f"its objects name label keys that are not read: {keys}"
        else:
            why = f"that is known once {dialect.awaited(key)}"
        return RunningGang(key, None, tuple(pods), why, unread)

    def _likened(self, pods: list[Seen], spec: GangSpec) -> list[Seen]:
        """The pods of a gang; those of a group that name no leaf are of that of pods like them."""
        leaves = leaf_by_kind(spec, ((each.role[1:], each.leaf) for each in pods))
        return [self._of_leaf(each, each.leaf or leaves.get(each.role[1:], "")) for each in pods]

    def _of_leaf(self, pod: Seen, leaf: str) -> Seen:
        if leaf == pod.leaf:
            return pod
        role = (leaf, *pod.role[1:])
        return msgspec.structs.replace(pod, leaf=leaf, role=self._roles.setdefault(role, role))


def _state(pod: PodRecord) -> State:
    if pod.is_finished:
        return "succeeded" if pod.phase == "Succeeded" else "failed"
    if pod.is_terminating:
        return "ends"
    return "runs" if pod.node else "waits"


def _runs(pods: Iterable[Seen]) -> bool:
    return any(each.state == "runs" for each in pods)


def _said(pods: Iterable[Seen]) -> tuple[Said, ...]:
    """What pods say, each thing once, in their order."""
    return tuple({id(each.said): each.said for each in pods if not each.flaw}.values())


def _by_leaf(pods: Iterable[Seen]) -> dict[str, LeafPods]:
    found: dict[str, list[int]] = {}
    for each in pods:
        found.setdefault(each.leaf, []).append(each.priority)
    return {leaf: LeafPods(len(its), max(its)) for leaf, its in found.items()}
