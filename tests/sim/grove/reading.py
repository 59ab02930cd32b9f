"""What PodGangs mean, read from their JSON apart from `app/dialects` and `topology`.

Only what the simulated ones use: every PodGang with a level names its topology, and every node has
the labels of all levels.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from app.kube.core.objects import NodeRecord, PodRecord
from tests.sim.grove.pod_clique_set import HOST, POD_CLIQUE, POD_GANG, TOPOLOGY_NAME
from tests.sim.objects import Json

Levels = Sequence[str]
"""Keys of a topology, widest first."""


@dataclass(frozen=True, slots=True)
class PodGroup:
    """One pod group. `level`: the key that its pods must have one value of; "": none."""

    name: str
    least: int
    level: str


@dataclass(frozen=True, slots=True)
class Scope:
    """Pods that have to be in one domain of a level, and what is inside; "": in any."""

    name: str
    level: str
    pods: tuple[PodRecord, ...]
    inside: tuple[Scope, ...] = ()

    def each(self) -> Iterable[Scope]:
        """It, and all that is inside."""
        yield self
        for scope in self.inside:
            yield from scope.each()


@dataclass(frozen=True, slots=True)
class PodGang:
    """What a PodGang says."""

    name: str
    uid: str
    topology: str
    level: str
    groups: tuple[PodGroup, ...]
    together: tuple[tuple[str, tuple[str, ...], str], ...]  # name, pod groups, level
    phase: str
    conditions: Mapping[str, Json]
    score: float | None
    named: Mapping[str, str]  # the pod group of each pod that it names, by the name of the pod

    def has(self, pod: PodRecord) -> bool:
        """Whether a pod is in it, by its own word or, if it says none, by that of the PodGang."""
        label = pod.labels.get(POD_GANG, "")
        return label == self.name if label else pod.name in self.named

    def group_of(self, pod: PodRecord) -> str:
        """The pod group of a pod."""
        return pod.labels.get(POD_CLIQUE) or self.named.get(pod.name, "")

    def is_whole(self, pods: Collection[PodRecord]) -> bool:
        """Whether these pods are what it takes to start."""
        there = Counter(map(self.group_of, pods))
        return all(there[each.name] >= each.least for each in self.groups)

    def scope(self, pods: Collection[PodRecord]) -> Scope:
        """These pods in the groups that have to be together."""
        its = {
            each.name: Scope(
                each.name, each.level, tuple(pod for pod in pods if self.group_of(pod) == each.name)
            )
            for each in self.groups
        }
        inside: list[Scope] = []
        for name, members, level in self.together:
            parts = tuple(its.pop(member) for member in members)
            inside.append(Scope(name, level, tuple(p for part in parts for p in part.pods), parts))
        return Scope(self.name, self.level, tuple(pods), (*inside, *its.values()))

    @property
    def is_scheduled(self) -> str:
        """The status of its condition Scheduled; "": it has none."""
        return self.says("Scheduled")

    def says(self, condition: str) -> str:
        """The status of a condition; "": it has none."""
        return str(self.conditions.get(condition, {}).get("status", ""))


def pod_gang_of(body: Json) -> PodGang:
    """What the JSON of a PodGang says."""
    spec, status, metadata = body["spec"], body.get("status") or {}, body["metadata"]
    return PodGang(
        metadata["name"],
        metadata["uid"],
        (metadata.get("annotations") or {}).get(TOPOLOGY_NAME, ""),
        _required(spec),
        tuple(
            PodGroup(each["name"], each["minReplicas"], _required(each))
            for each in _pod_groups(spec)
        ),
        tuple(
            (each["name"], tuple(each["podGroupNames"]), _required(each))
            for each in spec.get("topologyConstraintGroupConfigs", ())
        ),
        status.get("phase", ""),
        {each["type"]: each for each in status.get("conditions") or ()},
        status.get("placementScore"),
        {
            reference["name"]: each["name"]
            for each in _pod_groups(spec)
            for reference in each.get("podReferences") or ()
        },
    )


def levels_of(body: Json | None) -> Levels:
    """The levels of a ClusterTopology, nodes always the last; none of one that is not there."""
    if body is None:
        return ()
    return list(dict.fromkeys((*(each["key"] for each in body["spec"]["levels"]), HOST)))


def domain_of(node: NodeRecord, level: str, levels: Levels) -> tuple[str, ...]:
    """The domain of a node, by the values of its labels down to the level; (): it is in none."""
    if any(key not in node.labels for key in levels):
        return ()  # it has just come
    return tuple(node.labels[key] for key in levels[: levels.index(level) + 1])


def _pod_groups(spec: Json) -> Iterable[Json]:
    return spec["podgroups"]  # type: ignore[no-any-return]


def _required(said: Json) -> str:
    pack = (said.get("topologyConstraint") or {}).get("packConstraint") or {}
    return str(pack.get("required", ""))
