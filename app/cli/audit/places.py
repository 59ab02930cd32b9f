"""In which domain of a level a node is, and if that is not known, why.

    labels of the node ─┐
    HyperNodes ─────────┴─▶ block b1 / rack r2, down to the level asked for

A domain is named with those around it, as far as a topology has levels around it: rack r1 of block
b1 is another one than rack r1 of block b2. A level of no topology is its label alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from app.dialects.nvlink import level_value
from app.kube.core.objects import NodeRecord
from app.state.cache.topology_books import TopologyBooks
from topology.model.explicit_tree import ALONE
from topology.model.levels import NODE_LEVEL

Domain = tuple[str, ...]
"""Its name at each level, the widest first."""


@dataclass(frozen=True, slots=True)
class NotKnown:
    """Why it is not known in which domain a node is."""

    why: str


@dataclass(slots=True)
class Places:
    """The domains of nodes, over one topology; None: of levels that no topology has."""

    nodes: Mapping[str, NodeRecord]
    topology: TopologyBooks | None
    nodes_unread: str = ""
    """Why no node could be read."""
    _known: dict[tuple[str, str], Domain | NotKnown] = field(default_factory=dict)

    def has(self, level: str) -> bool:
        """Whether the level is one of the topology; without a topology every key is a level."""
        return self.topology is None or level in self.topology.levels

    def of(self, node: str, level: str) -> Domain | NotKnown:
        """The domain of a node at a level that there is."""
        found = self._known.get((node, level))
        if found is None:
            found = self._known[node, level] = self._read(node, level)
        return found

    def _read(self, node: str, level: str) -> Domain | NotKnown:
        if level == NODE_LEVEL:
            return (node,)
        if self.nodes_unread:
            return NotKnown(f"nodes could not be read: {self.nodes_unread}")
        record = self.nodes.get(node)
        if record is None:
            return NotKnown(f"node {node} is not there")
        topology = self.topology
        levels = (level,) if topology is None else topology.levels
        levels = levels[: levels.index(level) + 1]
        if topology is not None and topology.values is not None:
            return topology.values(node)[: len(levels)]
        values = [level_value(record.labels, each) for each in levels]
        lacking = next((each for each, value in zip(levels, values, strict=True) if not value), "")
        return NotKnown(f"node {node} has no label {lacking}") if lacking else tuple(values)


def shown(domain: Domain, beside: Domain = ()) -> str:
    """A domain in words; with those around it if the one beside it has its name."""
    if domain[-1].startswith(ALONE):
        return f"no domain but node {domain[-1].removeprefix(ALONE)}"
    return "/".join(domain) if beside[-1:] == domain[-1:] else domain[-1]
