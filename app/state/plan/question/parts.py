"""A gang on several topologies: a place for each part of it, one beside the other.

    part on `racks`  ──search──▶ placed ─┐ its pods count as being there
    part on `nvlink` ──search────────────┴─▶ placed ─┐
    part anywhere    ──search────────────────────────┴─▶ placed, or this part comes first

Each part is searched on its own tree, so its constraints hold on its own topology; what the parts
share is the nodes, and the domains that are required around several: the part that is placed first
chooses these, and the others are inside. Rounds, with one counted number of searches for all:

GREEDY    the parts as they come; one that finds no place beside the others comes before them
INSIDE    the rounds anew inside each domain that parts share, where one that found no place fits
BESIDE    for each place of a part that found none: the others beside it
APART     the others first, outside the domains of that place, or there only where they have to be

What a gang does not need to start comes after all that it needs: first parts of which nothing is
needed, then what else of a part still fits. A part that has no place alone has none beside others,
which may be proven. Otherwise no place was found, and not everything was tried.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np

from app.state.plan.question.pins import slots_of
from app.state.plan.question.request import SearchRequest, inside, search
from topology.model.answer import NoFit, Pairs, Placement
from topology.model.changed.capacity import arrived
from topology.model.request import Gang, Group, Leader, PodSet
from topology.model.resources import Mask
from topology.pod_set.unplaced import added

MOST_SEARCHES = 48  # for one gang; a few are enough where its parts are not in each other's way
SEARCHES_PER_DOMAIN = 8  # of these, inside one domain that parts share

Placed = dict[int, Placement]
"""By part."""
_Change = Callable[[SearchRequest], SearchRequest]


@dataclass(frozen=True, slots=True)
class Unplaced:
    """The part that found no place, and why."""

    part: int
    why: NoFit
    request: SearchRequest
    """With the pods of other parts that count as being there."""
    is_alone: bool
    """There are none."""

    @property
    def as_if_there(self) -> SearchRequest:
        """The same on books that have these pods."""
        request, arriving = self.request, self.request.options.arriving
        books = arrived(request.capacity, arriving)
        return replace(request, capacity=books, options=replace(request.options, arriving=()))


@dataclass(frozen=True, slots=True)
class Across:
    """A level that is required of several parts at once: they are in one domain of it.

    Whatever is below, this level and those above it are the same in the trees of all these parts.
    """

    level: str
    pod_sets: Mapping[int, frozenset[str]]
    """Which of each part, by name."""


@dataclass(frozen=True, slots=True)
class PartRequests:
    """The search for each part, the most demanding first."""

    requests: tuple[SearchRequest, ...]
    needed: tuple[bool, ...]
    """Of each part, whether the gang needs something of it."""
    across: tuple[Across, ...] = ()
    """What is required around several of them, outer ones first."""

    def mapped(self, change: _Change) -> PartRequests:
        """The same with other searches."""
        return replace(self, requests=tuple(map(change, self.requests)))

    def answer(self, most: int = MOST_SEARCHES) -> Placed | Unplaced:
        """A place for each part of which something is needed, and for others where they fit.

        `most`: so many searches for what is needed, one for each part at least.
        Raises: topology.errors.InvalidRequest.
        """
        return _Search(self, most).answer()


def beside(part: int, parts: PartRequests, placed: Placed) -> SearchRequest:
    """The search for a part, with the pods of the others that are placed."""
    requests = parts.requests
    request = _in_domains(requests[part], part, parts, placed)
    slot_of, arriving = request.tree.slot_of, [*request.options.arriving]
    for other, placement in placed.items():
        if other == part:
            continue
        kept, nodes = requests[other].kept, requests[other].tree.nodes
        asked = _vectors(requests[other].gang)
        for one in placement.pod_sets:
            new = ((nodes[slot], pods) for slot, pods in added(one, kept))
            here = [(slot_of[node], pods) for node, pods in new if node in slot_of]
            if here:
                arriving.append((asked[one.pod_set], Pairs.of(here)))
    return replace(request, options=replace(request.options, arriving=arriving))


def _in_domains(
    request: SearchRequest, part: int, parts: PartRequests, placed: Placed
) -> SearchRequest:
    """The search for a part in the domains that it shares with others, as far as one is placed."""
    for each in parts.across:
        if part in each.pod_sets:
            request = _in_domain(request, each, part, parts, placed)
    return request


def _in_domain(
    request: SearchRequest, across: Across, part: int, parts: PartRequests, placed: Placed
) -> SearchRequest:
    """The search for a part in the domain that another one is in, if one is placed."""
    for other, placement in placed.items():
        names, tree = across.pod_sets.get(other, frozenset()), parts.requests[other].tree
        slots = (one.slots.indices for one in placement.pod_sets if one.pod_set in names)
        first = next((int(its[0]) for its in slots if its.size), None)
        if other != part and first is not None:
            depth = tree.levels.index(across.level)
            here = slots_of(request.tree, tree.path(depth, int(tree.domain_of[depth][first])))
            own = across.pod_sets[part]
            mask = np.zeros(len(request.tree.nodes), dtype=np.bool_)
            mask[here] = True
            attempts = tuple(
                {name: each & mask if name in own else each for name, each in masks.items()}
                for masks in request.attempts
            )
            return replace(request, attempts=attempts, roomy=None)
    return request


@dataclass(slots=True)
class _Search:
    """One search for all parts."""

    parts: PartRequests
    left: int
    failure: Unplaced | None = None
    """The first, or the one that ends the search."""
    failed: dict[int, None] = field(default_factory=dict)
    """Parts that found no place beside others, in that order."""
    is_over: bool = False
    """There is no place, or no time to find one."""

    def answer(self) -> Placed | Unplaced:
        found = self._needed([part for part, needed in enumerate(self.parts.needed) if needed])
        if found is None:
            assert self.failure is not None, "a part found no place"
            return self.failure
        for part, is_needed in enumerate(self.parts.needed):
            if not is_needed:
                self._add((part,), found)
        if not found:
            assert self.failure is not None, "no part found a place"
            return self.failure
        self._fill_up(found)
        return found

    def _needed(self, parts: Sequence[int], *, is_inside: bool = False) -> Placed | None:
        """A place for each of these parts, with what is needed of it.

        `is_inside`: one domain of what is required of several of them has been chosen.
        """
        found = self._greedy(parts)
        if found is not None or self.is_over:
            return found
        if self.parts.across and not is_inside:
            return self._in_each_domain(parts)
        most = self.left // len(self.failed)
        for first in tuple(self.failed):
            others = [part for part in parts if part != first]
            found = self._around(first, others, most)
            if found is not None or self.is_over:
                return found
        return None

    def _greedy(self, parts: Sequence[int]) -> Placed | None:
        order, tried = [*parts], set[tuple[int, ...]]()
        while tuple(order) not in tried:
            tried.add(tuple(order))
            found: Placed = {}
            failed = self._add(order, found)
            if failed is None:
                return found
            if self.is_over:
                return None
            order.remove(failed)
            order.insert(0, failed)
        return None

    def _in_each_domain(self, parts: Sequence[int]) -> Placed | None:
        """The same inside each domain that they share in turn: those where one of them fits."""
        first = next(iter(self.failed))
        for answer, home in self._places(first, self.left, is_wide=True):
            requests = [
                _in_domains(request, part, self.parts, {first: answer})
                for part, request in enumerate(self.parts.requests)
            ]
            requests[first] = inside(requests[first], home)
            most = min(self.left, SEARCHES_PER_DOMAIN)
            there = _Search(replace(self.parts, requests=tuple(requests)), most)
            found = there._needed(parts, is_inside=True)
            self.left -= most - there.left
            if found is not None:
                return found
            if there.failure is not None and there.failure.why.is_unfinished:
                self.failure, self.is_over = there.failure, True
                return None
        return None

    def _add(
        self, order: Sequence[int], found: Placed, change: _Change | None = None
    ) -> int | None:
        """Place these parts one after the other; the first that finds no place, None: all do."""
        for part in order:
            request = beside(part, self.parts, found)
            answer = self._answer(part, request if change is None else change(request))
            if isinstance(answer, Placement):
                found[part] = answer
                continue
            if answer is not None and change is None:
                self._note(Unplaced(part, answer, request, is_alone=not found))
            return part
        return None

    def _answer(self, part: int, request: SearchRequest) -> Placement | NoFit | None:
        """The answer for what is needed of a part; None: too much has been searched."""
        if self.left <= 0:
            self.is_over = True
            return None
        self.left -= 1
        answer = search(replace(request, options=replace(request.options, floor_only=True)))
        if isinstance(answer, NoFit) and answer.is_unfinished:
            self.failure = Unplaced(part, answer, request, is_alone=False)
            self.is_over = True
        return answer

    def _note(self, found: Unplaced) -> None:
        if found.why.is_unfinished:
            return
        if found.is_alone:
            self.failure, self.is_over = found, True
            return
        self.failed[found.part] = None
        if self.failure is None:
            why = replace(found.why, is_proven=False, is_cut_short=True)
            self.failure = replace(found, why=why)

    def _around(self, first: int, others: Sequence[int], most: int) -> Placed | None:
        """The others around each place of a part in turn."""
        for answer, home in self._places(first, most, is_wide=False):
            found: Placed = {first: answer}
            if self._add(others, found, _as_it_is) is None:
                return found
            tree = self.parts.requests[first].tree
            nodes = [tree.nodes[slot] for slot in np.flatnonzero(home)]
            for leave in (_outside, _rather_outside):
                found = {}
                if self._add(others, found, leave(nodes)) is not None:
                    continue
                if self._add((first,), found, partial(inside, nodes=home)) is None:
                    return found
        return None

    def _places(self, part: int, most: int, *, is_wide: bool) -> Iterator[tuple[Placement, Mask]]:
        """Places of a part, each with its domains, outside those of the ones before."""
        own, last = self.parts.requests[part], self.left - most
        closed: Mask = np.zeros(len(own.tree.nodes), dtype=np.bool_)
        while self.left > last:
            answer = self._answer(part, inside(own, ~closed))
            if not isinstance(answer, Placement):
                return
            home = _home(own, answer, is_wide=is_wide)
            if not home.any():
                return
            yield answer, home
            closed |= home

    def _fill_up(self, found: Placed) -> None:
        """Place what is not needed of parts that have a place, where it fits beside the others."""
        for part in sorted(found):
            if any(_has_more(self.parts.requests[part].gang.root)):
                answer = search(beside(part, self.parts, found))
                if isinstance(answer, Placement):
                    found[part] = answer


def _as_it_is(request: SearchRequest) -> SearchRequest:
    return request


def _outside(nodes: Collection[str]) -> _Change:
    """A search outside these nodes."""
    return lambda request: inside(request, ~_mask(request, nodes))


def _rather_outside(nodes: Collection[str]) -> _Change:
    """A search that takes these nodes last in the domain that it chooses."""

    def changed(request: SearchRequest) -> SearchRequest:
        outside = (~_mask(request, nodes)).astype(np.int64)
        known, shapes = request.options.scores, {each.shape for each in _pods(request.gang)}
        scores = {
            shape: outside * (int(known[shape].max(initial=0)) + 1) + known[shape]
            if shape in known
            else outside
            for shape in shapes
        }
        return replace(request, options=replace(request.options, scores=scores))

    return changed


def _mask(request: SearchRequest, nodes: Collection[str]) -> Mask:
    slot_of = request.tree.slot_of
    found = np.zeros(len(request.tree.nodes), dtype=np.bool_)
    found[[slot_of[node] for node in nodes if node in slot_of]] = True
    return found


def _home(request: SearchRequest, placement: Placement, *, is_wide: bool) -> Mask:
    """The domains that its pods are in, of the narrowest or widest level that each requires."""
    tree, level_of = request.tree, dict(_levels(request.gang.root, None, is_wide=is_wide))
    home = np.zeros(len(tree.nodes), dtype=np.bool_)
    for one in placement.pod_sets:
        slots, level = one.slots.indices, level_of.get(one.pod_set)
        domain_of = tree.domain_of[tree.node_level if level is None else tree.levels.index(level)]
        home |= np.isin(domain_of, domain_of[slots])
    return home


def _levels(
    member: Group | PodSet, around: str | None, *, is_wide: bool
) -> Iterator[tuple[str, str | None]]:
    own = member.constraint.required
    level = around or own if is_wide else own or around
    if isinstance(member, PodSet):
        yield member.name, level
        return
    for each in member.members:
        yield from _levels(each, level, is_wide=is_wide)


def _has_more(member: Group | PodSet) -> Iterator[bool]:
    """Whether something of each group and pod set is not needed."""
    if isinstance(member, PodSet):
        yield member.needed is not None and member.needed < member.pods
        return
    yield member.needed is not None and member.needed < len(member.members)
    for each in member.members:
        yield from _has_more(each)


def _vectors(gang: Gang) -> Mapping[str, tuple[int, ...]]:
    return {each.name: each.request for each in _pods(gang)}


def _pods(gang: Gang) -> Iterator[PodSet | Leader]:
    for each in gang.pod_sets():
        yield each
        if each.leader is not None:
            yield each.leader
