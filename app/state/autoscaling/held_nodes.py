"""Which nodes are annotated so that node autoscalers keep them until gangs have started there.

    a plan on a node              ──▶ ProtectNode: the annotations that keep it
    its last planned pod is bound
    or the plan is lost           ──a moment──▶ ProtectNode: those of them that are ours go
    a restart                     ──▶ the same for nodes with our note that no plan holds

The annotations are the state, read back from the watch: `corral.dev/protected` says which of them
are ours. Written is what the watch does not show, at a node's version, and again ever later. All of
this only with the setting `protect_held_nodes`.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from app.dialects import autoscalers
from app.dialects.spec import GangKey
from app.fair_queue import FairQueue
from app.kube.core.objects import NodeRecord
from app.state.cache.books import Books
from app.state.effects import ProtectNode
from app.state.gang.gang import Gang
from app.state.isolation import confined
from app.state.plan.planner import Planner
from app.state.queueing.outbox import Outbox
from app.state.settings import EngineSettings
from app.state.turns.later import Later

UNHELD_SECONDS = 5.0  # without a plan until it is taken back: another plan may follow at once
UNSEEN_SECONDS, MOST_UNSEEN_SECONDS = 2.0, 60.0  # until what does not show is sent again
MOST_WRITES = 256  # in one tick
MOST_LOOKED_AT = 1_024  # nodes in one tick


@dataclass(frozen=True, slots=True)
class SentProtection:
    """The last change of a node that was sent."""

    is_held: bool
    at: float
    again_after: float


@dataclass(slots=True)
class HeldNodes:
    """Annotates the nodes that gangs have places on; the namespaces of these gangs take turns.

    Invariant: `_held` is the sum of all plans, with the setting on.
    """

    settings: EngineSettings
    books: Books
    planner: Planner
    outbox: Outbox
    _held: dict[str, Counter[GangKey]] = field(default_factory=dict)
    """By node: for how many pods of which gangs."""
    _due: FairQueue[str, None] = field(default_factory=FairQueue)
    _later: Later[str] = field(default_factory=Later)
    _sent: dict[str, SentProtection] = field(default_factory=dict)
    _unheld_since: dict[str, float] = field(default_factory=dict)

    # -- what happens ----------------------------------------------------------------------------

    def hold(self, key: GangKey, nodes: Iterable[str]) -> None:
        """Count places of a gang, one for each pod."""
        if not self.settings.protect_held_nodes:
            return
        for node in nodes:
            held = self._held.setdefault(node, Counter())
            held[key] += 1
            if held[key] == 1:
                self._due.put(key.namespace, node, None)

    def release(self, key: GangKey, node: str) -> None:
        """Count a place of a gang less: its pod is bound, or has it no more."""
        held = self._held.get(node)
        if held is None:
            return
        held[key] -= 1
        if held[key] > 0:
            return
        del held[key]
        if not held:
            del self._held[node]
        self._due.put(key.namespace, node, None)

    def put(self, node: NodeRecord) -> None:
        """Take what the watch shows of a node."""
        if not self.settings.protect_held_nodes:
            return
        if node.name in self._held or autoscalers.PROTECTED in node.annotations:
            self._note(node.name)  # a restart, or a change by others

    def drop(self, name: str) -> None:
        """Forget what was sent of a node that is gone."""
        self._forget(name)
        self._later.drop(name)

    def _note(self, name: str) -> None:
        first = next(iter(self._held.get(name, ())), None)
        self._due.put("" if first is None else first.namespace, name, None)

    def _forget(self, name: str) -> None:
        self._sent.pop(name, None)
        self._unheld_since.pop(name, None)

    # -- time ------------------------------------------------------------------------------------

    def review(self, now: float) -> None:
        """Send the changes that are due."""
        for name in self._later.taken(now):
            self._note(name)
        if not self.planner.is_ready:
            return
        writes = MOST_WRITES
        for _ in range(min(len(self._due), MOST_LOOKED_AT)):
            if not writes:
                return
            _, name, _ = self._due.take()
            node = self.books.nodes.get(name)
            if node is None:
                continue
            with confined(self.planner.on_fault, "annotations of node {}", name):
                writes -= self._review(node, now)

    def _review(self, node: NodeRecord, now: float) -> bool:
        """Look at one node; whether a change of it was sent."""
        held: Counter[GangKey] = self._held.get(node.name, Counter())
        changes = autoscalers.node_changes(node.annotations, [str(key) for key in held])
        if held:
            self._unheld_since.pop(node.name, None)
        elif not changes:
            self._forget(node.name)
        if not changes:
            return False
        not_before = -math.inf if held else self._end_of_wait(node.name, now)
        last, again_after = self._sent.get(node.name), UNSEEN_SECONDS
        if last is not None and last.is_held == bool(held):
            not_before = max(not_before, last.at + last.again_after)
            again_after = min(2 * last.again_after, MOST_UNSEEN_SECONDS)
        if now < not_before:
            self._later.look(node.name, not_before)
            return False
        self._sent[node.name] = SentProtection(bool(held), now, again_after)
        self._later.look(node.name, now + again_after)
        self.outbox.add(
            ProtectNode(node.name, node.uid, node.version, bool(held), tuple(changes.items()))
        )
        return True

    def _end_of_wait(self, name: str, now: float) -> float:
        """From when on the annotations of a node that no plan holds are taken back."""
        return self._unheld_since.setdefault(name, now) + UNHELD_SECONDS

    # -- audit -----------------------------------------------------------------------------------

    def differences(self, gangs: Iterable[Gang]) -> Iterator[str]:
        """Where the count differs from the plans; nothing unless Corral has a bug."""
        counted = self._counted(gangs)
        for name in sorted(counted.keys() | self._held.keys()):
            if counted.get(name) != self._held.get(name):
                yield f"node {name} is held for other gangs than those that have places there"

    def recount(self, gangs: Iterable[Gang]) -> None:
        """Count again from the plans."""
        before, self._held = self._held, self._counted(gangs)
        for name in before.keys() | self._held.keys():
            if before.get(name) != self._held.get(name):
                self._note(name)

    def _counted(self, gangs: Iterable[Gang]) -> dict[str, Counter[GangKey]]:
        counted: dict[str, Counter[GangKey]] = {}
        if self.settings.protect_held_nodes:
            for gang in gangs:
                for node in gang.plan.nodes.values():
                    counted.setdefault(node, Counter())[gang.key] += 1
        return counted
