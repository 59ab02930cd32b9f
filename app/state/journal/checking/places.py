"""Where pods are, by what a journal says, and in which domains that was when they came there.

A node may move to another domain while pods run on it, which is no fault of who bound them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from app.dialects.nvlink import level_value
from app.kube.core.objects import NodeRecord, PodRecord
from app.state.journal.checking.tiers import TieredDomains
from topology.model.levels import NODE_LEVEL


@dataclass(slots=True)
class Places:
    """Nodes, the pods on them, and the domains that nodes are in."""

    own_levels: tuple[str, ...]
    """Those that the settings name."""
    nodes: dict[str, NodeRecord] = field(default_factory=dict)
    records: dict[str, PodRecord] = field(default_factory=dict)
    """Of pods that are there, by uid."""
    on: dict[str, dict[str, int]] = field(default_factory=dict)
    """By node: the uids on it, and in which line that was first known."""
    bound: dict[str, str] = field(default_factory=dict)
    """By uid: where Corral has bound a pod."""
    place_of: dict[str, str] = field(default_factory=dict)
    """By uid: where a pod is."""
    path_at: dict[str, Mapping[str, str]] = field(default_factory=dict)
    """By uid: the labels of its node, as they were when it came there."""
    levels: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """By uid of an object: the levels of a topology."""
    tiered: TieredDomains = field(default_factory=TieredDomains)
    around: dict[str, frozenset[str]] = field(default_factory=dict)
    """By uid: the domains of objects that its node was in when it came there."""

    def come(self, uid: str, node: str, line: int) -> None:
        """A pod is on a node, which this line is the first to say."""
        if self.place_of.get(uid) == node:
            return
        self.leave(uid)
        self.place_of[uid] = node
        self.on.setdefault(node, {})[uid] = line
        if node in self.nodes:
            self.path_at[uid] = self.nodes[node].labels
            self.around[uid] = self.tiered.around(self.nodes[node])

    def leave(self, uid: str) -> None:
        """It is on none any more."""
        node = self.place_of.pop(uid, None)
        if node is not None:
            self.on[node].pop(uid, None)

    def forget(self, uid: str) -> None:
        """A pod is gone."""
        self.leave(uid)
        self.bound.pop(uid, None)
        self.path_at.pop(uid, None)
        self.around.pop(uid, None)

    def path(self, uid: str, level: str, labels: Mapping[str, str]) -> tuple[str, ...] | None:
        """The domain of the node that a pod is on, by these labels of it."""
        if level == NODE_LEVEL:
            return (self.place_of[uid],)
        every = (self.own_levels, *self.levels.values())
        levels = next((each for each in every if level in each), (level,))
        above = levels[: levels.index(level) + 1]
        path = tuple(level_value(labels, each) for each in above)
        return path if path[-1] else None
