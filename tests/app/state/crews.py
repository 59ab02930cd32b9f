"""A vocabulary for tests whose gangs are whatever spec the test gives."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import ClassVar

from app.dialects.dialect import Dialect
from app.dialects.registry import Dialects
from app.dialects.spec import (
    NO_PODS,
    Claim,
    GangKey,
    GangSpec,
    GroupSpec,
    Index,
    LeafPods,
    Lifecycle,
    Said,
)
from app.kube.core.objects import NodeRecord, ObjectRecord, PodRecord
from app.state.engine import Engine
from tests.app.state.world import World
from tests.records import pod

CREW, PART, NUMBER = "crew", "part", "number"


class Crews(Dialect):
    """Pods say by labels which gang they belong to, which leaf of it, and which number there."""

    sources: ClassVar[frozenset[str]] = frozenset((CREW,))

    def __init__(self, roots: Mapping[str, GroupSpec]) -> None:
        self.roots = roots

    def claim(self, pod: PodRecord, objects: Collection[ObjectRecord] = ()) -> Claim | None:
        name, number = pod.labels.get(CREW), pod.labels.get(NUMBER)
        if name is None:
            return None
        index = None if number is None else Index(int(number))
        return Claim(GangKey(pod.namespace, name, CREW), pod.labels[PART], index)

    def spec(
        self,
        key: GangKey,
        objects: Collection[ObjectRecord],
        said: Sequence[Said],
        ended: Sequence[Said],
        pods: Mapping[str, LeafPods] = NO_PODS,
    ) -> GangSpec | None:
        root = self.roots.get(key.name)
        return root and GangSpec(key, root, f"the crew {key.name}", lifecycle=Lifecycle())


class CrewWorld(World):
    """A world in which the gang of each of these names is this tree of groups and leaves."""

    def __init__(
        self,
        roots: Mapping[str, GroupSpec],
        nodes: Iterable[NodeRecord],
        pods: Iterable[PodRecord] = (),
        **settings: object,
    ) -> None:
        self._dialects = Dialects((Crews(roots),))
        super().__init__(nodes, pods, **settings)

    def built(self) -> Engine:
        return Engine(self.settings, dialects=self._dialects)


def hands(
    crew: str, part: str, count: int, first: int = 0, *, is_numbered: bool = False, **more
) -> list[PodRecord]:
    """Pods of one leaf of a gang."""
    made = []
    for at in range(first, first + count):
        number = {NUMBER: str(at)} if is_numbered else {}
        labels = {CREW: crew, PART: part, **number}
        made.append(pod(f"{crew}-{part}-{at}", labels=labels, **more))
    return made


def placed(world: World, part: str = "") -> dict[str, str]:
    """The nodes of the pods that are bound, by name."""
    return {
        each.name: each.node
        for each in world.pods.values()
        if each.node and part in ("", each.labels.get(PART))
    }
