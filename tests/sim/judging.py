"""An engine beside a judge of it, for tests of what the judge notices."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from app.kube.core.objects import NodeRecord, PodRecord, Record
from app.kube.watch.events import Kind
from tests.app.state.world import World
from tests.sim.life import Life
from tests.sim.vocabulary import VocabularyChecks


class Judging:
    """The judge has been told what the engine has, unless a test tells one of them alone."""

    checks: VocabularyChecks
    world: World
    life: Life
    corral: Any

    def judge(self, checks: VocabularyChecks, world: World, kinds: tuple[Kind, ...]) -> None:
        """Have the engine of this world judged, of which these kinds are watched."""
        streams: Any = {kind: SimpleNamespace(mirror={}, changed=0) for kind in kinds}
        self.checks, self.world = checks, world
        self.life = Life(world.engine, streams, 0.0, 0.0)
        self.corral = SimpleNamespace(name="corral-0", life=self.life, is_leading=True)

    def show(self, *records: Record) -> None:
        """The judge hears of these."""
        for each in records:
            kind = {NodeRecord: "Node", PodRecord: "Pod"}.get(type(each)) or each.kind
            stream: Any = self.life.streams[kind]
            stream.mirror[each.name] = each
            stream.changed += 1

    def come(self, *pods: PodRecord) -> None:
        """Pods that get a plan."""
        for each in pods:
            self.show(each)
            self.world.put(each)
        self.world.tick(1.0)

    def start(self, *pods: PodRecord) -> None:
        """kube-scheduler brings them to /bind; the judge sees what follows."""
        for each in pods:
            answer = self.world.filter(each)
            self.life.arrived[each.uid] = self.world.engine.books.held[each.uid]
            self.checks.decided(self.corral, self.world.bind(each, answer.node))
