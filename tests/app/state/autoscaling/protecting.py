"""A world whose API server annotates nodes, and what is there to be seen."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from app.kube.core.objects import NodeRecord
from app.state.effects import Bind, Effect, ProtectNode
from tests.app.state.world import World
from tests.app.state.world import four_racks as racks

CA, KARPENTER = (
    "cluster-autoscaler.kubernetes.io/scale-down-disabled",
    "karpenter.sh/do-not-disrupt",
)
NOTE = "corral.dev/protected"


class Crash(Exception):
    """Corral ends before its next write."""


class Protecting(World):
    """Writes what is sent for nodes, at the version that was meant alone.

    `is_away`: its API server takes no such write. `writes_left`: then Corral crashes.
    """

    is_away = False
    writes_left = -1

    def __init__(self, *args: object, **settings: object) -> None:
        on = {"protect_held_nodes": True, **settings}
        super().__init__(*args, **on)  # type: ignore[arg-type]
        self.first = self.written(list(self.effects))

    def written(self, effects: Iterable[Effect]) -> list[ProtectNode]:
        """Write the changes of nodes among these effects, and show them in the watch."""
        sent = [each for each in effects if isinstance(each, ProtectNode)]
        for each in () if self.is_away else sent:
            node = self.engine.books.nodes.get(each.node)
            if node is not None and (node.uid, node.version) == (each.uid, each.version):
                self._count_write()
                self.annotate(each.node, dict(each.annotations))
        return sent

    def confirm(self, effects: Iterable[Effect]) -> None:
        for effect in effects:
            if isinstance(effect, Bind):
                self._count_write()
            super().confirm([effect])

    def _count_write(self) -> None:
        if self.writes_left == 0:
            raise Crash
        self.writes_left -= 1

    def annotate(self, name: str, changes: Mapping[str, str | None]) -> None:
        """Somebody changes annotations of a node; the watch shows it."""
        node = self.engine.books.nodes[name]
        said = {**node.annotations, **changes}
        said = {key: value for key, value in said.items() if value is not None}
        self.put(with_annotations(node, said))

    def wait(self, seconds: float) -> list[ProtectNode]:
        """Ticks for so long; what was sent for nodes."""
        sent = list[ProtectNode]()
        for _ in range(round(seconds)):
            sent += self.written(self.tick(1.0))
        return sent

    def said(self, name: str) -> Mapping[str, str]:
        """The annotations of a node."""
        return self.engine.books.nodes[name].annotations

    @property
    def annotated(self) -> dict[str, Mapping[str, str]]:
        """The nodes that have any, with theirs."""
        nodes = self.engine.books.nodes.values()
        return {each.name: each.annotations for each in nodes if each.annotations}


def with_annotations(node: NodeRecord, said: Mapping[str, str]) -> NodeRecord:
    """The next version of a node, with these annotations."""
    version = str(int(node.version) + 1)
    return msgspec.structs.replace(node, annotations=said, version=version)


def four_racks(**said: Mapping[str, str]) -> list[NodeRecord]:
    """Four racks of four nodes; by name, the annotations that somebody gave a node."""
    nodes = racks()
    return [
        with_annotations(each, said[each.name]) if each.name in said else each for each in nodes
    ]
