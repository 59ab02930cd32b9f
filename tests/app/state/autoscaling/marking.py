"""A world whose API server writes marks, and the gangs that the tests of this folder are about."""

from __future__ import annotations

import msgspec

from app.kube.core.objects import PodRecord
from app.state.effects import Effect, Mark
from tests.app.state.world import World, members

OURS = ("corral.dev/gang",)
MOST_TICKS = 60  # of one wait: the books are checked in each


class Marking(World):
    """Writes the marks that are sent; `first` are those of the first tick.

    `is_away`: its API server does not answer.
    """

    is_away = False

    def __init__(self, *args: object, **settings: object) -> None:
        super().__init__(*args, **settings)  # type: ignore[arg-type]
        self.first = self.written(list(self.effects))

    def written(self, effects: list[Effect]) -> list[Mark]:
        """Write the marks among these effects, and show them in the watch."""
        marks = [each for each in effects if isinstance(each, Mark)]
        for mark in () if self.is_away else marks:
            pod = self.pods.get(mark.uid)
            if pod is not None and pod.uid == mark.uid and pod.version == mark.version:
                self.show(pod, is_marked=bool(mark.sentence))
        return marks

    def show(self, pod: PodRecord, *, is_marked: bool) -> None:
        """The watch shows this condition of a pod."""
        version = str(int(pod.version or "0") + 1)
        self.put(msgspec.structs.replace(pod, is_marked=is_marked, version=version))

    def wait(self, seconds: float) -> list[Mark]:
        """Ticks for so long; the marks that were sent."""
        marks, step = list[Mark](), max(1.0, seconds / MOST_TICKS)
        for _ in range(round(seconds / step)):
            marks += self.written(self.tick(step))
        return marks

    @property
    def marked(self) -> list[str]:
        """The pods whose condition says that no node takes them."""
        return sorted(each.name for each in self.pods.values() if each.is_marked)


def gated(name: str, total: int, **more: object) -> list[PodRecord]:
    """The members of a gang behind our gate; one node each, in one rack."""
    return members(name, total, gates=OURS, **more)
