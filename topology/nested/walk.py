"""Groups inside groups: which domain each takes, and its members inside it.

    place(group, subtree):
        for each domain of its levels inside the subtree, best first:    `order.for_group`
            every member in turn inside that domain, as if the earlier ones were there already
            all that are needed have a place ──▶ done
            else take them back, next domain

A leaf is placed by `search.place`, as Kueue does, in the domain as a cluster of its own
(`subtree`). Four rounds, each with its share of a counted budget of places tried in vain:

WHOLE      all members and pods, also those that are not needed
FIRST      those that are needed, each at the first place found for it: so KAI and Volcano walk
BY_DEMAND  the same, members that need most first; one that finds no place sends the ones before
           it to their next domain; in a domain that has enough for it, but not as the others lie
           there, these are packed anew together with it (`repack`)
EVERY_WAY  members as they are written, each at every place there is for it

In the last two, pod sets that may be anywhere in their group's domain are packed together
(`packing`). What is placed is then filled up with what still fits, which never blocks (`surplus`).
NoFit is proven if some member has no place even with the cluster to itself, or if every way over
the nodes was tried.

Pods of the gang that are placed already may be given (`complete`): each part is then completed in
the domain they are in.
Source: KAI-Scheduler pkg/scheduler/plugins/topology (v0.17); volcano
pkg/scheduler/actions/allocate/allocate.go (v1.15).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field, replace

from topology.fit.unit import Unit
from topology.fit.view import AllowanceSpent, Options, View
from topology.model.answer import NoFit, Pairs, Placement, PodSetPlacement
from topology.model.capacity import Capacity
from topology.model.request import Gang
from topology.model.resources import Mask
from topology.model.tree import Tree
from topology.nested.parts import Part, is_nested, root_of, wanted
from topology.nested.repack import by_demand, movable, repacked
from topology.nested.state import Held, WalkState
from topology.nested.subtree import Subtree, subtrees_of, whole
from topology.nested.surplus import Surplus, Ways
from topology.nested.unplaced import has_kept
from topology.packing.pack import NoPacking, Packing
from topology.pod_set import search
from topology.pod_set.unplaced import Kept

_NO_OPTIONS = Options()

PACKINGS = 32  # of one walk
VISITS, VISITS_PER_LEAF, VISITS_PER_NODE = 600_000, 5_000, 4
"""Node visits that a walk may cost before it is ended: some fifty milliseconds, and more for
what is large, since each leaf has to be placed once."""
MOST_KEPT = 40_000_000
"""Kinds of pods times nodes: so many numbers are kept of what domains take, 320 MB. That is 400
kinds on 100,000 nodes; pods that were narrowed to different nodes are of different kinds."""

_Place = tuple[PodSetPlacement, ...] | NoFit | None


def find(
    tree: Tree,
    capacity: Capacity,
    gang: Gang,
    masks: Mapping[Hashable, Mask],
    options: Options = _NO_OPTIONS,
) -> Placement | NoFit:
    """A place for every pod of the gang that is needed, or why there is none.

    A gang without groups in groups is placed by `search.find`; it is walked only if its earlier
    pod sets left no place for a later one there. Of a gang that is walked, pods and members
    beyond what is needed are placed where they fit; a pod set that gets no place has one
    without domains and slots. A walk may have an allowance (`Options`); one that does not end
    within it says nothing but that.
    Order: pod sets as `Gang.names`.
    Raises: as `search.find`.
    """
    first: NoFit | None = None
    if options.order.is_kueues and not options.floor_only and not is_nested(gang):
        answer = search.find(tree, capacity, gang, masks, options.without_allowance)
        if isinstance(answer, Placement) or answer.is_proven or options.tries == 0:
            return answer
        first = answer
    search.check_generation(tree, capacity)
    try:
        root = root_of(tree, gang, options.unconstrained)
        if is_too_varied(tree, root):
            return not_tried(gang, first)
        with closing(Walk(View(tree, capacity, masks, options), root)) as walk:
            if walk.run():
                return walk.placement(gang)
            why = walk.no_fit()
    except AllowanceSpent:
        return unfinished(gang)
    if first is None:
        return why
    return replace(first, is_proven=why.is_proven, is_cut_short=why.is_cut_short)


def unfinished(gang: Gang) -> NoFit:
    """The answer of a search that has used up its allowance: whether the gang fits is not known."""
    pods = sum(pod_set.pods for pod_set in gang.pod_sets())
    return NoFit(
        next(gang.names()), "", pods, 0, is_proven=False, is_cut_short=True, is_unfinished=True
    )


def is_too_varied(tree: Tree, root: Part, numbers: int = 1) -> bool:
    """Whether there are too many kinds of pods to keep so many numbers of each for every node."""
    return numbers * len(root.kinds()) * len(tree.nodes) > MOST_KEPT


def not_tried(gang: Gang, first: NoFit | None) -> NoFit:
    """The answer where no walk is tried. `first`: why the pod sets had no place as they come."""
    found = first or unfinished(gang)
    return replace(found, is_proven=False, is_cut_short=True, is_unfinished=False)


@dataclass(frozen=True, slots=True)
class Round:
    """How a walk looks for places."""

    is_whole: bool = False
    """Nothing is left out."""
    goes_back: bool = False
    """A member may be sent to its next place, and members are packed together."""
    repacks: bool = False
    """Pod sets that are in a domain may be packed anew there; one place is tried in each."""

    @property
    def is_thorough(self) -> bool:
        """Every place is tried."""
        return self.goes_back and not self.repacks


WHOLE = Round(is_whole=True)
FIRST = Round()
BY_DEMAND = Round(goes_back=True, repacks=True)
EVERY_WAY = Round(goes_back=True)


@dataclass(slots=True, eq=False)
class Walk:
    """One search: what it has placed so far, and what it may still try."""

    view: View
    root: Part
    stay: Mapping[str, Kept] = field(default_factory=dict)
    """Pods of the gang that are on the books already and stay where they are."""
    state: WalkState = field(init=False)
    round: Round = WHOLE
    tries: int = 0
    """Places that may still be tried in vain; below 0 the round is over."""
    is_cut_short: bool = False
    """This round ended for want of tries."""
    failure: NoFit | None = None
    """Why the first leaf that found no place found none."""
    packings: int = PACKINGS
    """Packings that may still be tried."""
    last_visit: int = 0
    """When so many nodes were looked at, the round is over."""
    kept: list[Ways] = field(default_factory=list)
    """What takes places back when it is closed, so it lives as long as they are wanted.

    It refers to the walk, and the walk to it. If it were left to the garbage collector, it would
    look at nodes in the middle of another search, and that one would count them (`Visits`).
    """

    def __post_init__(self) -> None:
        self.state = WalkState(self.view, self.root, self.stay)

    def run(self) -> bool:
        """Places the root; whether all that is needed has a place."""
        options, rounds = self.view.options, [FIRST, BY_DEMAND, EVERY_WAY]
        if self.root.is_elastic and not (options.floor_first or options.floor_only):
            rounds.insert(0, WHOLE)
        left = options.tries
        end = self.view.options.visits.total + self._visits()
        needed = wanted(self.root) if self.root.is_optional else self.root
        for index, self.round in enumerate(rounds):
            self.tries = share = left // (len(rounds) - index)
            begin = self.view.options.visits.total
            self.last_visit = begin + max(0, end - begin) // (len(rounds) - index)
            self.is_cut_short = False
            if not self.round.goes_back:
                self.failure = None
            root = by_demand(self.state, needed) if self.round.repacks else needed
            ways = self._ways(root, whole(self.view.tree))
            if next(ways, False):
                self.kept.append(ways)
                if self.round is not WHOLE and not options.floor_only:
                    self._begin_anew()
                    surplus = Surplus(self.state, self._ways_of, self.kept)
                    surplus.fill_up(root, whole(self.view.tree))
                return True
            left -= share - max(0, self.tries)
        return self.root.is_optional

    def _visits(self) -> int:
        """Node visits that this walk may cost."""
        leaves = sum(1 for _ in self.root.leaves())
        nodes = len(self.view.tree.nodes)
        return VISITS + VISITS_PER_LEAF * leaves + VISITS_PER_NODE * nodes

    def _begin_anew(self) -> None:
        """Have as many tries and visits again as a walk has."""
        self.tries = self.view.options.tries
        self.last_visit = self.view.options.visits.total + self._visits()

    @property
    def _is_over(self) -> bool:
        """The round is to end, whether or not it has found a place."""
        return self.tries < 0 or self.view.options.visits.total > self.last_visit

    def close(self) -> None:
        """End the walk: what it assumed is not taken back, as it is not read any more."""
        self.state.is_over = True
        for ways in self.kept:
            ways.close()

    def placement(self, gang: Gang) -> Placement:
        """Where `run` has placed it; a pod set that got no place is where its kept pods are."""
        tree = self.view.tree
        placed = {one.pod_set: one for held in self.state.held.values() for one in held.placed}
        for name in gang.names():
            if name not in placed:
                stays = Pairs.of(sorted(self.stay.get(name, ())))
                placed[name] = PodSetPlacement(name, tree.node_level, stays, stays)
        return Placement(
            gang=gang.key,
            generation=tree.generation,
            pod_sets=tuple(placed[name] for name in gang.names()),
        )

    def no_fit(self) -> NoFit:
        """Why the root has no place. Called when nothing is assumed any more."""
        assert self.failure is not None, "a leaf found no place"
        was_cut_short, self.packings = self.is_cut_short, PACKINGS
        if self.root.is_small and not was_cut_short:
            return replace(self.failure, is_proven=True)
        self._begin_anew()
        is_proven = not self._may_fit(self.root, whole(self.view.tree))
        return replace(
            self.failure, is_proven=is_proven, is_cut_short=was_cut_short and not is_proven
        )

    # Ways: each yields when the part has a place, and takes it back when it is resumed or closed

    def _ways_of(self, part: Part, subtree: Subtree, is_whole: bool) -> Ways:
        """The first way of a part, with all of it or with what is needed, and no other."""
        self.round = WHOLE if is_whole else FIRST
        with closing(self._ways(part, subtree)) as ways:
            if next(ways, False):
                yield True

    def _ways(self, part: Part, subtree: Subtree) -> Ways:
        if part.unit is not None:
            yield from self._leaf_ways(part, subtree)
            return
        try:
            for domain in self._domains(part, subtree):
                self.state.subtrees[id(part)] = domain
                yield from self._member_ways(part, domain)
                if self._is_over:
                    self.is_cut_short = True
                    return
        finally:
            self.state.subtrees.pop(id(part), None)

    def _leaf_ways(self, part: Part, subtree: Subtree) -> Ways:
        unit = part.unit if self.round.is_whole else part.floor
        assert unit is not None, "a leaf has a unit"
        seen: set[tuple[PodSetPlacement, ...]] = set()
        for answer in self._leaf_places(part, unit, subtree):
            if isinstance(answer, NoFit):
                self.failure = self.failure or answer
            elif answer is not None and answer not in seen:
                seen.add(answer)
                self.state.hold(part, Held(unit, answer, subtree))
                try:
                    yield True
                finally:
                    self.state.drop(part)
            self.tries -= 1
            if self._is_over:
                self.is_cut_short = True
                return
        if self.round.repacks:
            for domain in self._domains_to_repack(part, subtree):
                yield from self._repacked_way((part,), domain, subtree)

    def _member_ways(self, part: Part, subtree: Subtree) -> Ways:
        """As many members as are needed, in order; a stack, since there may be thousands."""
        members = part.members
        needed = len(members)
        if not self.round.is_whole:
            members = tuple(member for member in part.members if not member.is_optional)
            needed = max(0, part.needed - len(part.members) + len(members))
        if self.round.goes_back and self._is_packable(part, subtree):
            self.packings -= 1
            packing = self.state.packing(part.members, subtree)
            if isinstance(packing, Packing):
                yield from self._packed_way(part, subtree, packing)
            else:
                if self.round.repacks:
                    yield from self._repacked_way(part.members, subtree, subtree)
                if packing.is_proven:
                    return
            if self.round.repacks:
                return  # another way of them here would be packed anew like this one
        spare, placed = len(members) - needed, 0
        # Of each member looked at: its ways, or None where it is left out.
        stack: list[Ways | None] = []
        is_forward = True
        try:
            while True:
                if is_forward and placed == needed:
                    yield True
                    is_forward = False
                elif is_forward:
                    ways = self._ways(members[len(stack)], subtree)
                    is_forward = next(ways, False) or len(stack) - placed < spare
                    if self.state.is_placed(members[len(stack)]):
                        stack.append(ways)
                        placed += 1
                    elif is_forward:
                        stack.append(None)
                elif not self.round.goes_back or self._is_over or not stack:
                    return
                else:
                    top = stack.pop()
                    if top is None:
                        continue  # to be left out was its last way
                    if next(top, False):
                        stack.append(top)
                        is_forward = True
                    else:
                        placed -= 1
                        if len(stack) - placed < spare:
                            stack.append(None)
                            is_forward = True
        finally:
            for last in reversed(stack):
                if last is not None:
                    last.close()

    # Pod sets of several shapes that may be anywhere in one domain: a packing

    def _is_packable(self, part: Part, subtree: Subtree) -> bool:
        return (
            self.packings > 0
            and 1 < len(part.members) == part.needed
            and not any(member.is_optional for member in part.members)
            and all(
                unit is not None
                and unit.leader is None
                and not unit.workers.slices
                and (unit.may_spread or unit.last <= subtree.level)
                for unit in (member.floor for member in part.members)
            )
        )

    def _packed_way(self, part: Part, subtree: Subtree, packing: Packing) -> Ways:
        for member, placed in self.state.packed(part.members, packing, subtree):
            assert member.floor is not None, "a packing is of leaves"
            self.state.hold(member, Held(member.floor, placed, subtree))
        try:
            yield True
        finally:
            for member in part.members:
                self.state.drop(member)

    def _repacked_way(self, parts: tuple[Part, ...], domain: Subtree, around: Subtree) -> Ways:
        """Parts in a domain, beside pod sets that are there already and move inside it."""
        if self.packings <= 0:
            return
        moved = movable(self.state, parts, domain, around)
        if not moved:
            return
        self.packings -= 1
        before = {id(part): self.state.held[id(part)] for part in moved}
        for part in moved:
            self.state.drop(part)
        after = repacked(self.state, (*parts, *moved), domain, around, before)
        for part, held in after:
            self.state.hold(part, held)
        try:
            if after:
                yield True
        finally:
            for part, _ in after:
                self.state.drop(part)
            for part in moved:
                self.state.hold(part, before[id(part)])

    # Domains to try

    def _domains(self, part: Part, subtree: Subtree) -> Iterator[Subtree]:
        """Where a part may be, best first: its levels inside the subtree, then all of it."""
        for level in part.levels:
            if level <= subtree.level:
                break  # all of the subtree is in one domain of it
            candidates = self.state.candidates(part, subtree, level, is_whole=self.round.is_whole)
            yield from subtrees_of(self.view.tree, level, candidates)
            if self.round.repacks:
                others = self.state.roomy(part, subtree, level, candidates)
                yield from subtrees_of(self.view.tree, level, others)
        is_all_allowed = part.may_spread or part.levels[-1] <= subtree.level
        if is_all_allowed and self.state.has_room(part, subtree):
            yield subtree
            return
        level = -1 if part.may_spread else part.levels[-1]
        self.failure = self.failure or self.state.shortage(part, subtree, level)

    def _leaf_domains(self, part: Part, subtree: Subtree) -> Iterator[Subtree]:
        """The same for a leaf, which finds its own domain; in EVERY_WAY narrower ones after it."""
        assert part.floor is not None, "a leaf has a unit"
        if has_kept(part, self.stay):
            yield subtree
            return
        if not self.view.options.order.is_kueues:
            yield from self._domains(part, subtree)
        elif self.round.repacks and not part.floor.may_spread and part.floor.last > subtree.level:
            candidates = self.state.candidates(part, subtree, part.floor.last)
            yield from subtrees_of(self.view.tree, part.floor.last, candidates)
        elif self.state.has_room(part, subtree):
            yield subtree
        else:
            level = -1 if part.floor.may_spread else part.floor.last
            self.failure = self.failure or self.state.shortage(part, subtree, level)
        if not self.round.is_thorough:
            return
        tree, first = self.view.tree, subtree.level + 1
        if not part.floor.may_spread:
            first = max(first, part.floor.last)
        for level in range(first, tree.node_level + 1):
            yield from subtrees_of(tree, level, self.state.candidates(part, subtree, level))

    def _domains_to_repack(self, part: Part, subtree: Subtree) -> Iterable[Subtree]:
        """Domains that a leaf may be in and that have as much free in all as it requests."""
        assert part.floor is not None, "a leaf has a unit"
        if part.floor.may_spread or part.floor.last <= subtree.level:
            return [subtree]
        found = self.state.roomy(part, subtree, part.floor.last, ())
        return subtrees_of(self.view.tree, part.floor.last, found)

    def _leaf_places(self, part: Part, unit: Unit, subtree: Subtree) -> Iterator[_Place]:
        """The place in each domain, and in EVERY_WAY each other way over the nodes, if few."""
        for domain in self._leaf_domains(part, subtree):
            yield self.state.put(part, unit, domain)
        if not self.round.is_thorough or not part.is_small:
            return
        domains: Iterable[Subtree] = [subtree]
        if not unit.may_spread and unit.last > subtree.level:
            candidates = self.state.candidates(part, subtree, unit.last)
            domains = subtrees_of(self.view.tree, unit.last, candidates)
        for domain in domains:
            yield from self.state.every_way(unit, domain)

    # Why not

    def _may_fit(self, part: Part, subtree: Subtree) -> bool:
        """Whether each member may have a place with the subtree to itself; False is certain."""
        if self._is_over:
            return True
        if part.floor is not None:
            self.tries -= 1
            return not isinstance(self.state.put(part, part.floor, subtree), NoFit)
        domains: Iterable[Subtree] = [subtree]
        if not part.may_spread and part.levels[-1] > subtree.level:
            candidates = self.state.candidates(part, subtree, part.levels[-1])
            domains = subtrees_of(self.view.tree, part.levels[-1], candidates)
        return any(
            self.state.has_room(part, domain)
            and not self._is_refuted(part, domain)
            and sum(one.is_optional or self._may_fit(one, domain) for one in part.members)
            >= part.needed
            for domain in domains
        )

    def _is_refuted(self, part: Part, subtree: Subtree) -> bool:
        """Whether the members certainly do not fit into a domain together."""
        if not self._is_packable(part, subtree):
            return False
        self.packings -= 1
        packing = self.state.packing(part.members, subtree)
        return isinstance(packing, NoPacking) and packing.is_proven
