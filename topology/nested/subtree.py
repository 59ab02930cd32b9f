"""One domain as a cluster of its own, so that a search inside it costs what it holds.

    tree    |------- b1 -------|-- b2 --|        cut to b1/r2:    |-- b1 --|
            |-- r1 --|-- r2 ---|-- r1 --|                         |-- r2 --|
            | n1 | n2 | n3 | n4 | n5 | n6 |                       | n3 | n4 |

A cut keeps the level keys, so that levels mean the same inside; those at or above the domain's
own have one domain each. The amounts are views of the books: nothing is copied but sums.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from topology.fit.view import Options, View
from topology.model.answer import PodSetPlacement
from topology.model.tree import Tree


@dataclass(frozen=True, slots=True)
class Subtree:
    """A domain, or all nodes: `level` -1, which is wider than any level."""

    level: int
    domain: int
    slots: tuple[int, int]
    """First slot, and one past the last."""


def whole(tree: Tree) -> Subtree:
    """All nodes."""
    return Subtree(-1, 0, (0, len(tree.nodes)))


def subtree_of(tree: Tree, level: int, domain: int) -> Subtree:
    """One domain."""
    slots = tree.slots(level, domain)
    return Subtree(level, domain, (slots.start, slots.stop))


def subtrees_of(tree: Tree, level: int, domains: Iterable[int]) -> Iterator[Subtree]:
    """Domains of one level, each made when it is asked for."""
    return (subtree_of(tree, level, domain) for domain in domains)


def domains_in(tree: Tree, subtree: Subtree, level: int) -> tuple[int, int]:
    """First domain of a level inside a subtree, or around it, and one past the last."""
    start, end = subtree.slots
    if start == end:
        return 0, 0
    domain_of = tree.domain_of[level]
    return int(domain_of[start]), int(domain_of[end - 1]) + 1


@dataclass(frozen=True, slots=True, eq=False)
class Cut:
    """The view inside one subtree, and how its indices become those of the whole tree."""

    view: View
    start: int
    """Slot 0 of the cut."""
    first_domains: tuple[int, ...]
    """Per level: domain 0 of the cut."""

    def widened(self, placed: PodSetPlacement) -> PodSetPlacement:
        """The same place in indices of the whole tree."""
        first = self.first_domains[placed.level]
        return replace(
            placed,
            domains=placed.domains.moved(first),
            slots=placed.slots.moved(self.start),
        )


def cut(view: View, subtree: Subtree) -> Cut:
    """What is inside a subtree; what the view assumes is seen there, also what it assumes later.

    Only resources the view has assumed something of, or nothing of all of them, are seen:
    `View.expect` before.
    """
    if subtree.level < 0:
        return Cut(view, 0, (0,) * len(view.tree.levels))
    start, end = subtree.slots
    ranges = [domains_in(view.tree, subtree, level) for level in range(len(view.tree.levels))]
    tree = _tree(view.tree, start, end, ranges)
    here = slice(start, end)
    inside = View(
        tree,
        view.capacity.part(tree, here),
        {shape: mask[here] for shape, mask in view.masks.items()},
        _options(view.options, here),
    )
    inside.share(view, here)
    return Cut(inside, start, tuple(first for first, _ in ranges))


def _tree(tree: Tree, start: int, end: int, ranges: list[tuple[int, int]]) -> Tree:
    nodes = tree.nodes[start:end]
    parents = [np.zeros(ranges[0][1] - ranges[0][0], dtype=np.intp)]
    for level, (first, stop) in enumerate(ranges[1:], 1):
        parents.append(tree.parents[level][first:stop] - ranges[level - 1][0])
    return Tree(
        generation=tree.generation,
        levels=tree.levels,
        nodes=nodes,
        # A domain around the subtree begins before it and ends behind it.
        starts=tuple(
            np.maximum(starts[first:stop] - start, 0)
            for starts, (first, stop) in zip(tree.starts, ranges, strict=True)
        ),
        ends=tuple(
            np.minimum(ends[first:stop] - start, end - start)
            for ends, (first, stop) in zip(tree.ends, ranges, strict=True)
        ),
        parents=tuple(parents),
        slot_of={name: slot for slot, name in enumerate(nodes)},
        names=tuple(
            names[first:stop] for names, (first, stop) in zip(tree.names, ranges, strict=True)
        ),
        domain_of=tuple(
            domain_of[start:end] - first
            for domain_of, (first, _) in zip(tree.domain_of, ranges, strict=True)
        ),
    )


def _options(options: Options, here: slice) -> Options:
    return replace(
        options,
        arriving=(),  # the view around the subtree has assumed them
        scores={shape: scores[here] for shape, scores in options.scores.items()},
        reasons={shape: reasons[here] for shape, reasons in options.reasons.items()},
    )
