"""A search on a copy of the books, for a thread, and what its answer holds for later.

    SearchRequests ──copied──▶ LongSearch ──thread──▶ PlaceAnswer ──▶ Answered ──place──▶ Placement
                                                                        └─ None: it is over by now

The answer names nodes, and outlasts changes of other nodes. The place is still there as long as
the nodes that it names are in the same domains, open to these pods, and have room for all of them.
Of a gang on several topologies each search is for one part, and the answer names parts beside pod
sets: "1/0" is the first pod set of the second part.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from app.kube.core.turns import turn
from app.state.effects import PlaceAnswer
from app.state.plan.question.parts import PartRequests, Placed, Unplaced, beside
from app.state.plan.question.request import SearchRequest, search
from topology.errors import InvalidRequest
from topology.fit.view import Visits
from topology.model.answer import Pairs, Placement, PodSetPlacement
from topology.model.tree import Tree
from topology.nested.recheck import fits_still

Signature = tuple[object, ...]


class _InTurns(Visits):
    """Counts visits in a thread, and lets the loop go on between them."""

    def add(self, visits: int) -> None:
        turn()
        self.total += visits


@dataclass(frozen=True, slots=True)
class LongSearch:
    """One gang's search on every topology that may serve it, on books of its own."""

    searches: tuple[tuple[str, SearchRequest], ...]
    number: int
    parts: PartRequests | None = None
    """Of one that is placed on all of these at once, with these searches."""

    def answer(self) -> PlaceAnswer:
        """Where it has a place: on the first topology that has one.

        Raises: InvalidRequest, where it is invalid on all of them.
        """
        if self.parts is not None:
            return self._of_parts(self.parts.mapped(at_length).answer())
        first: PlaceAnswer | None = None
        invalid = InvalidRequest("there is no topology for it")
        for name, request in self.searches:
            try:
                found = search(at_length(request))
            except InvalidRequest as error:
                invalid = error
                continue
            if isinstance(found, Placement):
                return PlaceAnswer(name, _places(request.tree, found), number=self.number)
            first = first or PlaceAnswer(name, why=found, number=self.number)
        if first is None:
            raise invalid
        return first

    def _of_parts(self, found: Placed | Unplaced) -> PlaceAnswer:
        if isinstance(found, Unplaced):
            name = self.searches[found.part][0] if found.is_alone else None
            why = replace(found.why, pod_set=f"{found.part}/{found.why.pod_set}")
            return PlaceAnswer(name, why=why, number=self.number)
        places = (
            (f"{part}/{pod_set}", level, nodes)
            for part, placement in sorted(found.items())
            for pod_set, level, nodes in _places(self.searches[part][1].tree, placement)
        )
        return PlaceAnswer(None, tuple(places), number=self.number)


def at_length(request: SearchRequest) -> SearchRequest:
    """The same with all the time that it takes."""
    return replace(request, options=replace(request.options, visits=_InTurns(), allowance=None))


def _places(
    tree: Tree, found: Placement
) -> tuple[tuple[str, int, tuple[tuple[str, int], ...]], ...]:
    return tuple(
        (each.pod_set, each.level, tuple((tree.nodes[slot], pods) for slot, pods in each.slots))
        for each in found.pod_sets
    )


@dataclass(frozen=True, slots=True)
class Answered:
    """An answer that the gang has not been planned with yet."""

    signature: Signature
    answer: PlaceAnswer | None
    """None: the search has failed."""
    levels: tuple[tuple[str, ...], ...]
    """Of the topology of each part."""
    paths: Mapping[tuple[int, str], tuple[str, ...] | None]
    """Of the nodes that it names for a part: the domains they were in, from the widest level on."""
    asked_at: int
    """How often something had gained room (`unfit.py`)."""

    @classmethod
    def of(
        cls,
        signature: Signature,
        answer: PlaceAnswer | None,
        trees: Mapping[str, Tree],
        asked_at: int,
    ) -> Answered:
        """The answer, with all that it holds for; `trees`: by topology, as it was searched on."""
        levels: tuple[tuple[str, ...], ...] = ()
        paths: dict[tuple[int, str], tuple[str, ...] | None] = {}
        if answer is not None and answer.places:
            its = trees.values() if answer.topology is None else (trees[answer.topology],)
            searched = tuple(its)
            levels = tuple(tree.levels for tree in searched)
            for name, _, nodes in answer.places:
                part, _ = part_of(name)
                paths.update({(part, node): _path(searched[part], node) for node, _ in nodes})
        return cls(signature, answer, levels, paths, asked_at)

    def place(self, request: SearchRequest) -> Placement | None:
        """What was found, where all of it is still as it was on the books of this request."""
        return self._placed(0, request)

    def place_parts(self, parts: PartRequests) -> Placed | None:
        """The same of all parts at once."""
        if self.answer is None or len(parts.requests) != len(self.levels):
            return None
        placed: Placed = {}
        for part in dict.fromkeys(part_of(name)[0] for name, *_ in self.answer.places):
            found = self._placed(part, beside(part, parts, placed))
            if found is None:
                return None
            placed[part] = found
        is_whole = all(part in placed for part, needed in enumerate(parts.needed) if needed)
        return placed if is_whole else None

    def _placed(self, part: int, request: SearchRequest) -> Placement | None:
        tree = request.tree
        if self.answer is None or part >= len(self.levels) or tree.levels != self.levels[part]:
            return None
        its = ((node, path) for (of, node), path in self.paths.items() if of == part)
        if any(_path(tree, node) != path for node, path in its):
            return None
        found = _placement(part, self.answer, request.gang.key, tree)
        for masks in request.attempts:
            known = (masks, request.kept, request.options, found)
            if fits_still(request.capacity, request.gang, *known):
                return found
        return None


def part_of(pod_set: str) -> tuple[int, str]:
    """The part of a pod set that an answer names, and its name there."""
    part, _, name = pod_set.rpartition("/")
    return int(part or 0), name


def _path(tree: Tree, node: str) -> tuple[str, ...] | None:
    """The domains that a node is in, with itself; None if it is not in the tree."""
    slot = tree.slot_of.get(node)
    return None if slot is None else tree.path(tree.node_level, slot)


def _placement(part: int, answer: PlaceAnswer, gang: str, tree: Tree) -> Placement:
    """The answer for a part as the placement core gives it."""
    placed = []
    for named, level, nodes in answer.places:
        of, pod_set = part_of(named)
        if of != part:
            continue
        slots = Pairs.of([(tree.slot_of[node], pods) for node, pods in nodes])
        domains: dict[int, int] = {}
        for slot, pods in slots:
            domain = int(tree.domain_of[level][slot])
            domains[domain] = domains.get(domain, 0) + pods
        placed.append(PodSetPlacement(pod_set, level, Pairs.of(sorted(domains.items())), slots))
    return Placement(gang, tree.generation, tuple(placed))
