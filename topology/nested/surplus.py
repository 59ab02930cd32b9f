"""What of a gang is not needed: placed after all that is, where it still fits.

First the least of each member without a place, where all of it fits if it does somewhere; then
more pods of what has a place. Both in turn (`PodSet.turn`), and of equal turns the widest groups
first. Nothing that has a place is taken back for it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Generator
from contextlib import closing
from dataclasses import dataclass, field, replace
from heapq import heappop, heappush

from topology.fit.unit import part_of
from topology.model.answer import NoFit
from topology.nested.parts import Part, grown, wanted
from topology.nested.state import Held, WalkState, over_nodes
from topology.nested.subtree import Subtree, subtree_of

Ways = Generator[bool, None, None]
"""Yields when a part has a place, and takes it back when it is resumed or closed."""


@dataclass(slots=True, eq=False)
class _Rest:
    """What of a gang has no place beside what is needed: parts, each with its group's domain."""

    placed: list[tuple[Part, Subtree]] = field(default_factory=list)
    """Leaves, which may have more pods."""
    _missing: list[tuple[int, int, Part, Subtree]] = field(default_factory=list)
    """A heap: by turn, then in the order in which they were pushed."""
    _pushed: int = 0

    def push(self, part: Part, around: Subtree) -> None:
        """Note a part that has no place, and whose group has one."""
        self._pushed += 1
        heappush(self._missing, (part.turn, self._pushed, part, around))

    def next(self) -> tuple[Part, Subtree] | None:
        """The part whose turn it is; None if all had theirs."""
        return heappop(self._missing)[2:] if self._missing else None


@dataclass(slots=True, eq=False)
class Surplus:
    """Fills up what a walk has placed."""

    state: WalkState
    ways: Callable[[Part, Subtree, bool], Ways]
    """The first way of a part inside a subtree; whether with all of it, or with what is needed."""
    kept: list[Ways]
    """Where the ways of what gets a place are put, to be closed at the end of the walk."""

    def fill_up(self, root: Part, around: Subtree) -> None:
        """Adds the least of each part that has no place, then pods of all parts, where they fit."""
        rest = _Rest()
        self._sort_out(root, around, rest)
        while (found := rest.next()) is not None:
            part, subtree = found
            added = self._add(part, subtree)
            if added is not None:
                self._sort_out(added, subtree, rest)
        for leaf, subtree in sorted(rest.placed, key=lambda placed: placed[0].turn):
            self._grow(leaf, subtree)

    def _sort_out(self, part: Part, around: Subtree, rest: _Rest) -> None:
        """What at and below a part has a place, and what has none."""
        layer = [(part, around)]
        while layer:
            inner = list[tuple[Part, Subtree]]()
            for each, its in layer:
                if self.state.is_placed(each) and each.unit is not None:
                    rest.placed.append((each, its))
                elif self.state.is_placed(each):
                    inside = self.state.subtrees[id(each)]
                    inner += [(member, inside) for member in each.members]
                elif each.is_loose:
                    inner += [(member, its) for member in each.members]
                else:
                    rest.push(each, its)
            layer = inner

    def _add(self, part: Part, subtree: Subtree) -> Part | None:
        """Adds the least of a member that is not needed; the part that was placed, if one was."""
        aim = subtree if self.state.view.options.floor_first else self._aim(part, subtree)
        part = wanted(part) if part.is_optional else part
        for domain in dict.fromkeys((aim, subtree)):
            ways = self.ways(part, domain, False)
            if next(ways, False):
                self.kept.append(ways)
                return part
        return None

    def _aim(self, group: Part, subtree: Subtree) -> Subtree:
        """The domain in a subtree where all of a group fits, else the subtree.

        A leaf finds it while it grows.
        """
        if group.unit is not None or not (
            group.is_elastic or any(leaf.is_optional for leaf in group.leaves())
        ):
            return subtree
        with closing(self.ways(group, subtree, True)) as ways:
            return self.state.subtrees[id(group)] if next(ways, False) else subtree

    def _grow(self, part: Part, subtree: Subtree) -> None:
        """Gives a leaf a place with as many of its pods as fit where its group is."""
        held, unit = self.state.held[id(part)], part.unit
        assert unit is not None, "a leaf has a unit"
        if held.unit.workers.pods == unit.workers.pods:
            return
        if self.state.view.options.floor_first:
            self._add_beside(part, held, subtree)
            return
        self.state.drop(part)
        size = unit.layers.size
        fits, too_many = held.unit.workers.pods // size, unit.workers.pods // size + 1
        whole_answer = self.state.put(part, unit, subtree)
        if not isinstance(whole_answer, NoFit):
            held, fits = replace(held, unit=unit, placed=whole_answer), too_many
        while too_many - fits > 1:
            slices = (fits + too_many) // 2
            more = grown(unit, slices * size)
            answer = self.state.put(part, more, subtree)
            if isinstance(answer, NoFit):
                too_many = slices
            else:
                held, fits = replace(held, unit=more, placed=answer), slices
        self.state.hold(part, held)

    def _add_beside(self, part: Part, held: Held, subtree: Subtree) -> None:
        """Adds pods slice by slice as long as one more fits where the others must be."""
        unit = part.unit
        assert unit is not None, "a leaf has a unit"
        tree, size = self.state.view.tree, unit.layers.size
        if not unit.may_spread and unit.last > subtree.level:
            slot = held.placed[0].slots[0][0]
            subtree = subtree_of(tree, unit.last, int(tree.domain_of[unit.last][slot]))
        names = [placed.pod_set for placed in held.placed]
        while held.unit.workers.pods < unit.workers.pods:
            pods = min(size, unit.workers.pods - held.unit.workers.pods)
            answer = self.state.place(part_of(tree, unit, pods, unit.workers.slices, None), subtree)
            if isinstance(answer, NoFit):
                return
            self.state.drop(part)
            way, leader = Counter[int](), None
            for placed in (*held.placed, *answer):
                if placed.pod_set == unit.workers.name:
                    way.update(dict(placed.slots))
                else:
                    leader = placed.slots[0][0]
            more = grown(unit, held.unit.workers.pods + pods)
            together = over_nodes(tree, more, sorted(way.items()), leader)
            assert [placed.pod_set for placed in together] == names, "the same pod sets"
            held = replace(held, unit=more, placed=together)
            self.state.hold(part, held)
