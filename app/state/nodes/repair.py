"""Nodes that fail under running members: since when they have, and what is held instead.

    replace_failed_nodes  …on_pod_termination  a node with running members is not ready
    off                   any                   nothing is held before the replacement exists
    on                    off                   after `node_failure_seconds` another node is held
    on                    on                    as soon as the pod there ends; a running one stays

A deleted node has failed at once. With `fail_fast` a gang with a failed node is evicted when the
first search finds no other one; else searches go on. A running pod is never moved. Any number of
nodes may fail at a time.
Source: kueue pkg/controller/tas/node_controller.go (v0.16).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from app.kube.core.objects import NodeRecord
from app.state.cache.books import Books
from app.state.gang.gang import Gang
from app.state.gang.gangs import Gangs
from app.state.lifecycle.roll_call import RollCalls
from app.state.reserve import placeholders
from app.state.reserve.replacements import Replacements
from app.state.settings import EngineSettings

MOST_FAILED = 10_000  # deleted nodes that are remembered; an autoscaler makes new names for ever


@dataclass(slots=True)
class Failures:
    """Nodes that are not ready, in the order in which they became it."""

    settings: EngineSettings
    _since: dict[str, float] = field(default_factory=dict)
    _failed: dict[str, None] = field(default_factory=dict)  # nodes that repairs have begun for

    def put_node(self, node: NodeRecord, now: float) -> bool:
        """Note whether a node is ready; True if it had failed and is ready again."""
        if not node.is_ready:
            self._since.setdefault(node.name, now)
            return False
        self._since.pop(node.name, None)
        was_failed = node.name in self._failed
        self._failed.pop(node.name, None)
        return was_failed

    def drop_node(self, name: str) -> None:
        """Note that a node is gone, and so has failed."""
        self._since.pop(name, None)
        self._failed[name] = None
        if len(self._failed) > MOST_FAILED:
            del self._failed[next(iter(self._failed))]

    def due(self, now: float) -> list[str]:
        """The nodes that count as failed from now on, though the API server shows pods there."""
        if not self.settings.replace_failed_nodes or self.settings.replace_on_pod_termination:
            return []
        limit = now - self.settings.node_failure_seconds
        found = [
            name
            for name, since in self._since.items()
            if since <= limit and name not in self._failed
        ]
        self._failed.update(dict.fromkeys(found))
        return found


@dataclass(frozen=True, slots=True)
class Repairs:
    """Finds other nodes for members on nodes that have failed."""

    books: Books
    gangs: Gangs
    replacements: Replacements
    roll_calls: RollCalls

    def lose_ending(self, node: str, now: float) -> None:
        """Count terminating members on a closed node as lost: they may never be deleted."""
        for uid in self.books.bound_on.get(node, {}):
            gang = self.gangs.of_pod(uid)
            if gang is not None and self.replacements.is_stranded(gang.members[uid]):
                self.replacements.keep(gang, gang.members[uid], now)
                self.gangs.owe_review(gang)

    def lose_node(self, node: str, now: float) -> None:
        """Hold other nodes for the members on a failed node, which the API server still shows."""
        for gang in self._gangs_on(node, now):
            self.replacements.note_failure(gang, node)
            for member in gang.membership.bound:
                known = any(
                    each.instead_of == member.pod.uid for each in gang.placeholders.values()
                )
                if member.pod.node == node and not known and len(gang.membership.bound) > 1:
                    uid = placeholders.keep_place(gang, member, math.inf)
                    self.replacements.use_spare(gang, uid)
            self.roll_calls.review(gang, now)

    def return_node(self, node: str, now: float) -> None:
        """End what is held for members on a node that is back: they are not lost."""
        for gang in self._gangs_on(node, now):
            self.replacements.end_failure(gang, node)
            for uid, place in list(gang.placeholders.items()):
                lost = gang.members.get(place.instead_of)
                if lost is not None and lost.is_live and lost.pod.node == node:
                    placeholders.forget(gang, uid)
            self.roll_calls.review(gang, now)

    def _gangs_on(self, node: str, now: float) -> list[Gang]:
        """The gangs of which a member runs on a node, or was lost there and is not replaced."""
        gangs = self.gangs.by_key
        keys = self.gangs.keys_of(self.books.bound_on.get(node, {}))
        for key in self.gangs.with_placeholders:
            if any(each.lost_on == node for each in gangs[key].placeholders.values()):
                keys[key] = None
        for key in keys:
            self.roll_calls.review_now(gangs[key], now)
        return [gangs[key] for key in keys if key in gangs]
