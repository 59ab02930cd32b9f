"""What of a gang is to be placed, and which topologies may serve it.

    members ──▶ pod sets ──by the topology that they name──▶ parts, each with its topologies

A gang that names none is served by any topology that has its levels; one that is on several at
once has a part for each.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from app.dialects.spec import GangSpec
from app.state.cache.books import Books
from app.state.cache.eligibility.node_table import NodeTable
from app.state.cache.topology_books import TopologyBooks
from app.state.gang.families import Families
from app.state.gang.gang import Gang
from app.state.gang.members.member import Member
from app.state.plan.in_parts import PodSets, parts_of
from app.state.plan.nearness import everywhere, nearness, pods_by_leaf
from app.state.plan.question.pod_sets import PodSetMembers, levels_of, pod_sets_of
from app.state.plan.single_nodes import with_levels
from app.state.plan.verdict import UnknownTopology

Served = tuple[tuple[PodSets, tuple[TopologyBooks, ...]], ...]
"""Each part, with the topologies that may serve it, those tried first in front."""


@dataclass(frozen=True, slots=True)
class Serving:
    """Looks at the books as they are; changes nothing."""

    books: Books
    node_table: NodeTable
    families: Families

    def pod_sets(self, gang: Gang, members: tuple[Member, ...] | None = None) -> PodSets:
        """What is to be placed: these members; None: all that have no node."""
        unplanned = gang.unplanned() if members is None else members
        unplanned = tuple(
            replace(member, allowed=self.node_table.bearing(member.narrowed_by))
            if member.narrowed_by
            else member
            for member in unplanned
        )
        return pod_sets_of(gang, unplanned, self.families.shared(gang))

    def served(self, gang: Gang, pod_sets: PodSets) -> Served:
        """The parts of what is to be placed, each with the topologies that may serve it."""
        parts = parts_of(gang, pod_sets)
        return tuple((its, self._topologies_for(gang, its)) for its in parts)

    def view(self, gang: Gang) -> tuple[PodSets, TopologyBooks] | None:
        """What is to be placed, and the topology that is tried first; None if there is none.

        Nor is there one of a gang that is to be placed on several.
        """
        pod_sets = self.pod_sets(gang)
        if len(parts_of(gang, pod_sets)) > 1:
            return None
        topologies = self._topologies_for(gang, pod_sets)
        return (pod_sets, topologies[0]) if pod_sets and topologies else None

    def is_in_parts(self, gang: Gang) -> bool:
        """Whether what is to be placed is on several topologies."""
        spec = gang.membership.spec
        is_one = spec is None or not spec.parts
        return not is_one and len(parts_of(gang, self.pod_sets(gang))) > 1

    def _topologies_for(self, gang: Gang, pod_sets: PodSets) -> tuple[TopologyBooks, ...]:
        """The topologies that may serve these pod sets, those tried first in front.

        Where members are settled, only one that has their nodes serves the rest.
        """
        found = with_levels(self.books, self._levels(gang, pod_sets), _named(gang, pod_sets))
        settled = [node for _, node in gang.settled()] if len(found) > 1 else []
        around = tuple(
            topology
            for topology in found
            if settled and all(node in topology.tree.slot_of for node in settled)
        )
        return around or found

    def _levels(self, gang: Gang, pod_sets: Iterable[PodSetMembers]) -> set[str]:
        """Every level key that a constraint on these pod sets names."""
        levels = {level for pod_set in pod_sets for level in pod_set.levels}
        return levels.union(levels_of(self.families.shared(gang).constraint))

    # -- what it is told ---------------------------------------------------------------------------

    def why_none(self, gang: Gang, pod_sets: PodSets) -> UnknownTopology:
        """Why no topology serves these pod sets, which are one part."""
        return self.unknown(self._levels(gang, pod_sets), _named(gang, pod_sets))

    def unknown(self, levels: Iterable[str], name: str | None = None) -> UnknownTopology:
        """Why there is none of `with_levels`."""
        named = tuple(sorted(levels))
        if name is None:
            return UnknownTopology(named, self.books.known_levels())
        there = self.books.topologies.get(name)
        return UnknownTopology(named, () if there is None else there.levels, name)

    def nearness(self, gang: Gang) -> float | None:
        """How near the pods of a gang that runs are to what it prefers (`nearness.py`)."""
        spec = gang.membership.spec
        if spec is None:
            return None
        self.books.refresh()
        nodes = pods_by_leaf(spec, gang.membership.bound)
        if spec.parts:
            of = {leaf: self._topology_of(spec, leaf) for leaf in nodes}
            there = {leaf: each for leaf, each in of.items() if each is not None}
            return nearness(spec, nodes, there.__getitem__) if len(there) == len(of) else None
        levels = {level for constraint in spec.constraints() for level in levels_of(constraint)}
        topologies = with_levels(self.books, levels, spec.topology) if levels else ()
        near = (nearness(spec, nodes, everywhere(each)) for each in topologies)
        return max(near, default=None)

    def _topology_of(self, spec: GangSpec, leaf: str) -> TopologyBooks | None:
        """The topology that a leaf's pods are on, if it has the levels that these name."""
        groups = spec.path_to(leaf)
        levels = {level for each in groups for level in levels_of(each.constraint)}
        return next(iter(with_levels(self.books, levels, spec.topology_of(leaf))), None)


def _named(gang: Gang, pod_sets: Sequence[PodSetMembers]) -> str | None:
    """The topology that these pod sets, which are on one, are placed on; None: it is not named."""
    leaves = (each.unplanned[0].leaf for each in pod_sets)
    return gang.membership.topology_of(next(leaves, ""))
