"""One named topology over the cluster's nodes: its tree, and what outdates it.

A tree is rebuilt when nodes came, went or moved. Few of them are put into the tree there is; for
more it is built from all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from dataclasses import dataclass, field

from app.dialects.declared import JOINED
from app.dialects.nvlink import DOMAIN, level_value
from app.kube.core.objects import NodeRecord
from topology.model import tree as trees
from topology.model.capacity import Capacity
from topology.model.changed.tree import changed
from topology.model.levels import NODE_LEVEL
from topology.model.resources import Rows
from topology.model.tree import Tree

MOST_CHANGED = 64  # nodes that are put into a tree one by one; for more it is built from all
MOST_SPLIT_VALUES = 8  # reported per topology: the first few show what is wrong with the labels

Values = Callable[[str], tuple[str, ...]]
NO_VALUES: Mapping[str, Values] = {}


@dataclass(frozen=True, slots=True)
class Rebuilt:
    """A topology's tree as nodes are now."""

    tree: Tree
    slots_before: Rows | None
    """See `ChangedTree`; None: it was built from all nodes."""
    added: Set[str]
    """Nodes that were not in the tree before."""


@dataclass(slots=True)
class TopologyBooks:
    """One named topology over the cluster's nodes."""

    name: str
    levels: tuple[str, ...]  # widest first, NODE_LEVEL last
    tree: Tree
    capacity: Capacity
    values: Values | None = None
    """The domains of a node by its name, one for each level above it; None: labels say them."""
    changed: set[str] = field(default_factory=set)
    """Nodes that came, went or moved since; what `is_outdated` says is not among them."""
    is_outdated: bool = True
    """Any node may have moved since: the tree is built from all of them."""
    split_values: tuple[str, ...] = ()
    """Values of labels that stand under several parents, in sentences for the operator."""

    @property
    def is_stale(self) -> bool:
        """Whether nodes or domains have changed since the tree was built."""
        return self.is_outdated or bool(self.changed)

    def outdate(self, node: str | None = None) -> None:
        """Have the tree rebuilt, as this node, or any, has come, gone or moved."""
        if node is None or self.values is not None:
            self.is_outdated = True
        else:
            self.changed.add(node)

    def path_of(self, node: NodeRecord) -> tuple[str, ...] | None:
        """The node's value at every level, or None where it lacks one's label."""
        if self.values is not None:
            return (*self.values(node.name), node.name)
        above = [level_value(node.labels, level) for level in self.levels[:-1]]
        return (*above, node.name) if all(above) else None

    def labels_of(self, path: Iterable[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
        """Those of a domain's levels and values that its nodes have as labels."""
        if self.values is not None:
            return ()
        return tuple(each for each in path if each[0] not in (NODE_LEVEL, DOMAIN))

    def rebuilt(self, nodes: Mapping[str, NodeRecord], generation: int) -> Rebuilt:
        """The tree of these nodes, by name; it does not take the place of the one there is."""
        known = self.tree.slot_of
        if self.is_outdated or len(self.changed) > MOST_CHANGED:
            paths = self._paths(nodes.values())
            tree = trees.build(self.levels, paths, generation=generation)
            return Rebuilt(tree, None, paths.keys() - known.keys())
        paths = self._paths(nodes[name] for name in sorted(self.changed & nodes.keys()))
        gone = self.changed & known.keys()
        made = changed(self.tree, gone, paths, generation)
        return Rebuilt(made.tree, made.slots_before, paths.keys() - known.keys())

    def replace(self, tree: Tree, capacity: Capacity) -> None:
        """Take a tree in place of the one there is, with the capacity of its nodes."""
        self.tree, self.capacity = tree, capacity
        self.is_outdated, self.changed = False, set()
        self.split_values = tuple(self._split_values())

    def _paths(self, nodes: Iterable[NodeRecord]) -> dict[str, tuple[str, ...]]:
        """The paths of those of these nodes that are in the topology."""
        paths = ((node.name, self.path_of(node)) for node in nodes)
        return {name: path for name, path in paths if path is not None}

    @property
    def is_joined(self) -> bool:
        """Whether it serves only gangs that name it, as several topologies together."""
        return self.name.startswith(JOINED)

    def _split_values(self) -> Iterator[str]:
        # In one that is joined, domains of the inner topology are cut on purpose.
        if self.values is None and not self.is_joined:
            for split in trees.levels_that_do_not_nest(self.tree)[:MOST_SPLIT_VALUES]:
                yield (
                    f"topology {self.name}: {split.level}={split.value} stands under several"
                    f" parents and is several domains: {_shown(split)}"
                )


def _shown(split: trees.SplitValue) -> str:
    shown = ["/".join(path) for path in split.paths[:4]]
    return ", ".join(shown + (["…"] if len(split.paths) > 4 else []))
