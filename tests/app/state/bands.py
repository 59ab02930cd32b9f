"""Bands of `tests.app.dialects.toy` for engine tests: a world that reads them, and its records."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from app.dialects import kueue
from app.dialects.registry import Dialects
from app.kube.core.objects import NodeRecord, PodRecord
from app.kube.watch.events import Listed
from app.state.engine import Engine
from tests.app.dialects import toy
from tests.app.state.world import LISTED, World
from tests.records import BLOCK, RACK, pod

DIALECTS = Dialects((kueue.DIALECT, toy.DIALECT))


class BandWorld(World):
    """A world whose Corral reads bands as well; they are listed last."""

    def __init__(
        self,
        nodes: Iterable[NodeRecord] = (),
        pods: Iterable[PodRecord] = (),
        bands: Iterable[toy.Band] = (),
        **settings: object,
    ) -> None:
        super().__init__(nodes, pods, kinds=(*LISTED, "Band"), **settings)
        self.apply(Listed("Band", tuple(bands)))
        self.tick()

    def built(self) -> Engine:
        return Engine(self.settings, dialects=DIALECTS)

    def section_of(self) -> dict[str, str]:
        """The members of every gang by name: "band/section"."""
        return {
            member.pod.name: f"{gang.key.name}/{member.leaf}"
            for gang in self.engine.gangs.by_key.values()
            for member in gang.members.values()
        }


def band(
    name: str,
    sections: Mapping[str, int],
    named: Mapping[str, str] | None = None,
    *,
    namespace: str = "default",
    uid: str = "",
    version: str = "1",
    **more: object,
) -> toy.Band:
    """A band of these sections, each of so many players; the pods that it names, as what."""
    players = tuple(toy.Player(each, section) for each, section in (named or {}).items())
    made = tuple(toy.Section(each, number, RACK) for each, number in sections.items())
    spec = toy.Spec(BLOCK, made, players, **more)
    return toy.Band("Band", namespace, name, uid or f"uid-band-{name}", version, spec)


def player(name: str, section: str = "", **more: object) -> PodRecord:
    """A pod that says nothing of its band."""
    labels = {toy.MANAGED: "true"} | ({toy.SECTION: section} if section else {})
    return pod(name, labels=labels, **more)
