"""A world whose engine's inputs are written to a journal."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from app.kube.core.objects import NodeRecord
from app.state.engine import Engine
from app.state.journal.record import Recorder
from tests.app.state.world import World, four_racks, members


class RecordedWorld(World):
    """`write` takes each line."""

    def __init__(
        self, nodes: Iterable[NodeRecord], write: Callable[[bytes], Any], **settings: object
    ) -> None:
        self._write = write
        super().__init__(nodes, **settings)

    def built(self) -> Engine:
        engine = Engine(self.settings)
        self.recorder = Recorder(engine, self.settings, self._write)
        return engine


def with_a_gang_that_runs(write: Callable[[bytes], Any]) -> RecordedWorld:
    """Four racks, and a gang of three that was placed and bound."""
    world = RecordedWorld(four_racks(), write)
    pods = members("g", 3)
    world.put(*pods)
    world.tick()
    assert len(world.schedule(*pods)) == 3
    return world
