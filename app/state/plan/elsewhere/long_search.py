"""A search on a copy of the books, for a thread, and what its answer holds for later.

    SearchRequests ──copied──▶ LongSearch ──thread──▶ PlaceAnswer ──▶ Answered ──place──▶ Placement
                                                                        └─ None: it is over by now

The answer names nodes, and outlasts changes of other nodes. The place is still there as long as
the nodes that it names are in the same domains, open to these pods, and have room for all of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from app.kube.core.turns import turn
from app.state.effects import PlaceAnswer
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

    def answer(self) -> PlaceAnswer:
        """Where it has a place: on the first topology that has one.

        Raises: InvalidRequest, where it is invalid on all of them.
        """
        first: PlaceAnswer | None = None
        invalid = InvalidRequest("there is no topology for it")
        for name, request in self.searches:
            options = replace(request.options, visits=_InTurns(), allowance=None)
            try:
                found = search(replace(request, options=options))
            except InvalidRequest as error:
                invalid = error
                continue
            if isinstance(found, Placement):
                return PlaceAnswer(name, _places(request.tree, found), number=self.number)
            first = first or PlaceAnswer(name, why=found, number=self.number)
        if first is None:
            raise invalid
        return first


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
    levels: tuple[str, ...]
    paths: Mapping[str, tuple[str, ...] | None]
    """Of the nodes that it names: the domains that they were in, from the widest level on."""
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
        levels: tuple[str, ...] = ()
        paths: dict[str, tuple[str, ...] | None] = {}
        if answer is not None and answer.places:
            tree = trees[answer.topology]
            levels = tree.levels
            paths = {node: _path(tree, node) for *_, nodes in answer.places for node, _ in nodes}
        return cls(signature, answer, levels, paths, asked_at)

    def place(self, request: SearchRequest) -> Placement | None:
        """What was found, where all of it is still as it was on the books of this request."""
        tree, answer = request.tree, self.answer
        if answer is None or tree.levels != self.levels:
            return None
        if any(_path(tree, node) != path for node, path in self.paths.items()):
            return None
        found = _placement(answer, request.gang.key, tree)
        for masks in request.attempts:
            known = (masks, request.kept, request.options, found)
            if fits_still(request.capacity, request.gang, *known):
                return found
        return None


def _path(tree: Tree, node: str) -> tuple[str, ...] | None:
    """The domains that a node is in, with itself; None if it is not in the tree."""
    slot = tree.slot_of.get(node)
    return None if slot is None else tree.path(tree.node_level, slot)


def _placement(answer: PlaceAnswer, gang: str, tree: Tree) -> Placement:
    """The answer as the placement core gives it."""
    placed = []
    for pod_set, level, nodes in answer.places:
        slots = Pairs.of([(tree.slot_of[node], pods) for node, pods in nodes])
        domains: dict[int, int] = {}
        for slot, pods in slots:
            domain = int(tree.domain_of[level][slot])
            domains[domain] = domains.get(domain, 0) + pods
        placed.append(PodSetPlacement(pod_set, level, Pairs.of(sorted(domains.items())), slots))
    return Placement(gang, tree.generation, tuple(placed))
