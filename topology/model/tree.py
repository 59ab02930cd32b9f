"""The immutable shape of a cluster: nodes as slots, domains as ranges of slots.

    level 0   |------- b1 -------|-- b2 --|      starts[0] = [0, 4]
    level 1   |-- r1 --|-- r2 ---|-- r1 --|      starts[1] = [0, 2, 4]     parents[1] = [0, 0, 1]
    level 2   | n1 | n2 | n3 | n4 | n5 | n6 |    starts[2] = [0, 1, 2, 3, 4, 5]
    slot        0    1    2    3    4    5

Slots are sorted by their path, then by node name, so every domain of every level is
one contiguous range: sums are `np.add.reduceat`, "which nodes" is a slice, and the
order of domain indices is the lexicographic order of their paths, which is what ties
are broken by. "b1/r1" and "b2/r1" are two domains that happen to share a name.

A domain always owns at least one slot (reduceat returns an element, not zero, for an
empty range). At the node level every node is a domain of its own, also when two nodes
carry the same value there.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from topology.errors import InvalidTopology
from topology.model.levels import levels_of
from topology.model.resources import Rows


@dataclass(frozen=True, slots=True, eq=False)
class Tree:
    """One topology over the nodes that carry all its levels; never changed once built."""

    generation: int
    """Grows with every rebuild; the Capacity over this tree carries the same number."""
    levels: tuple[str, ...]
    """Level keys, widest first; the last is the node level."""
    nodes: tuple[str, ...]
    """Node names in slot order, unique."""
    starts: tuple[Rows, ...]
    """Per level (D,): first slot of each domain, strictly increasing, starting at 0."""
    ends: tuple[Rows, ...]
    """Per level (D,): one past the last slot of each domain, where the next one starts."""
    parents: tuple[Rows, ...]
    """Per level (D,): domain index one level wider; zeros at level 0."""
    slot_of: Mapping[str, int]
    """Node name -> slot, the inverse of `nodes`."""
    names: tuple[tuple[str, ...], ...]
    """Per level: the value of each domain at that level."""
    domain_of: tuple[Rows, ...]
    """Per level (N,): the domain each slot lies in."""

    @property
    def node_level(self) -> int:
        """Index of the narrowest level, whose domains are single nodes."""
        return len(self.levels) - 1

    def path(self, level: int, domain: int) -> tuple[str, ...]:
        """Values from the widest level down to this domain."""
        values: list[str] = []
        for above in range(level, -1, -1):
            values.append(self.names[above][domain])
            domain = int(self.parents[above][domain])
        return tuple(reversed(values))

    def slots(self, level: int, domain: int) -> slice:
        """The range of slots a domain owns."""
        return slice(int(self.starts[level][domain]), int(self.ends[level][domain]))

    def slots_of(self, level: int, domains: Rows) -> Rows:
        """Slots of several domains, in the order given; ascending if the domains are."""
        return _ranges(self.starts[level][domains], self.ends[level][domains])

    def first_children(self, level: int) -> Rows:
        """The first domain one level narrower of each domain. Shapes: (D,)."""
        if level + 1 == self.node_level:
            return self.starts[level]
        return self.starts[level + 1].searchsorted(self.starts[level])

    def children(self, level: int, domains: Rows) -> Rows:
        """Domains one level narrower inside these; ascending if the domains are."""
        if level + 1 == self.node_level:
            return self.slots_of(level, domains)
        inner = self.starts[level + 1]
        first = inner.searchsorted(self.starts[level][domains])
        end = inner.searchsorted(self.ends[level][domains])
        return _ranges(first, end)


def _ranges(first: Rows, end: Rows) -> Rows:
    """Concatenates non-empty ranges first[i]..end[i] without a loop over them."""
    if first.size == 1:
        return np.arange(first[0], end[0], dtype=np.intp)
    lengths = end - first
    if lengths.size == 0:
        return np.zeros(0, dtype=np.intp)
    offsets = lengths.cumsum() - lengths
    return np.repeat(first - offsets, lengths) + np.arange(offsets[-1] + lengths[-1])


def build(levels: Sequence[str], nodes: Mapping[str, Sequence[str]], generation: int) -> Tree:
    """A tree over the nodes; equal for equal nodes, whatever order they come in.

    `nodes` maps a node's name to its value at each level; the last is its value at the
    node level, normally the name again.
    Order: slots by path, then by node name.
    Raises: InvalidTopology if the levels are no level list or a node does not have
        exactly one value per level.
    Source: kueue pkg/cache/scheduler/tas_flavor_snapshot.go (v0.16), the tree of domains;
        unlike there, nodes with the same values stay nodes of their own.
    """
    levels = levels_of(levels)
    for name, values in nodes.items():
        if len(values) != len(levels):
            raise InvalidTopology(f"node {name}: {len(values)} values for {len(levels)} levels")
    ordered = sorted((tuple(values), name) for name, values in nodes.items())
    paths = [values for values, _ in ordered]
    starts = [
        _starts(paths, level, is_node_level=level == len(levels) - 1)
        for level in range(len(levels))
    ]
    names = tuple(tuple(paths[slot][level] for slot in start) for level, start in enumerate(starts))
    return tree_of(generation, levels, tuple(name for _, name in ordered), starts[:-1], names)


def tree_of(
    generation: int,
    levels: tuple[str, ...],
    nodes: tuple[str, ...],
    starts_above: Sequence[Rows],
    names: tuple[tuple[str, ...], ...],
) -> Tree:
    """The tree over nodes in slot order; what is said twice in it follows from these.

    `starts_above`: of the levels above the nodes, each (D,). `names`: of every level.
    """
    starts = [*starts_above, np.arange(len(nodes), dtype=np.intp)]
    ends = [np.append(start, len(nodes))[1:] for start in starts]
    domain_of = [
        np.repeat(np.arange(start.size, dtype=np.intp), end - start)
        for start, end in zip(starts, ends, strict=True)
    ]
    parents = [np.zeros_like(starts[0])]
    parents += [above[start] for above, start in zip(domain_of, starts[1:], strict=False)]
    return Tree(
        generation=generation,
        levels=levels,
        nodes=nodes,
        starts=tuple(starts),
        ends=tuple(ends),
        parents=tuple(parents),
        slot_of=dict(zip(nodes, range(len(nodes)), strict=True)),
        names=names,
        domain_of=tuple(domain_of),
    )


def _starts(paths: Sequence[tuple[str, ...]], level: int, *, is_node_level: bool) -> Rows:
    """First slot of each domain of one level: where the path down to it changes."""
    if is_node_level or not paths:
        return np.arange(len(paths), dtype=np.intp)
    prefixes = [path[: level + 1] for path in paths]
    changes = [slot for slot, (before, here) in enumerate(pairwise(prefixes), 1) if before != here]
    return np.array([0, *changes], dtype=np.intp)


@dataclass(frozen=True, slots=True)
class SplitValue:
    """One value of one level that occurs under several parents: several domains, never one."""

    level: str
    value: str
    paths: tuple[tuple[str, ...], ...]


def levels_that_do_not_nest(tree: Tree) -> tuple[SplitValue, ...]:
    """Values seen under two parents, each with the full paths that tell them apart.

    Order: by level, widest first, then by value.
    """
    split: list[SplitValue] = []
    for level in range(1, len(tree.levels)):
        if len(set(tree.names[level])) == len(tree.names[level]):
            continue  # as of the names of nodes, which are many
        domains_of_value: defaultdict[str, list[int]] = defaultdict(list)
        for domain, value in enumerate(tree.names[level]):
            domains_of_value[value].append(domain)
        for value, domains in sorted(domains_of_value.items()):
            if len({int(tree.parents[level][domain]) for domain in domains}) > 1:
                paths = dict.fromkeys(tree.path(level, domain) for domain in domains)
                split.append(SplitValue(tree.levels[level], value, tuple(paths)))
    return tuple(split)
