"""One node at a time: for members that have a place beside others without a search."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from app.state.cache import room
from app.state.cache.books import ALL_NODES, Books, is_open
from app.state.cache.eligibility.one_node import may_stay
from app.state.cache.topology_books import TopologyBooks
from app.state.gang.families import Families
from app.state.gang.gang import Gang
from app.state.gang.members.member import Member
from app.state.gang.parts import DomainNodes
from app.state.plan.assignment import domain_of
from app.state.plan.question.pod_sets import are_together
from app.state.plan.siblings import nodes_beside
from app.state.pods.nominations import Nominations
from topology.model.levels import NODE_LEVEL


@dataclass(frozen=True, slots=True)
class SingleNodes:
    """Looks at nodes as the books are; changes nothing."""

    books: Books
    nominations: Nominations
    families: Families

    def domain_at(self, gang: Gang, member: Member, node: str) -> tuple[str, DomainNodes] | None:
        """The domain of a node that a member gets without a search; None if it is in none."""
        level = member.constraint.required or member.constraint.preferred
        name = gang.membership.topology_of(member.leaf)
        for topology in with_levels(self.books, {level} if level else set(), name):
            slot = topology.tree.slot_of.get(node)
            if slot is not None:
                depth = topology.levels.index(level or NODE_LEVEL)
                return domain_of(topology, depth, int(topology.tree.domain_of[depth][slot]))
        return None

    def is_beside(
        self,
        gang: Gang,
        member: Member,
        node: str,
        running: Callable[[], Iterable[tuple[Member, str]]],
    ) -> bool:
        """Whether required levels allow a member on a node, beside others and their nodes."""
        spec, level = gang.membership.spec, member.constraint.required
        family, name = self.families.shared(gang), gang.membership.topology_of(member.leaf)
        if family.constraint.required is not None and not self._shares_domain(
            name, family.constraint.required, node, family.nodes
        ):
            return False
        if level is not None:
            near = (on for other, on in running() if are_together(other, member))
            if not self._shares_domain(name, level, node, near):
                return False
        for group in () if spec is None else spec.path_to(member.leaf):
            if group.constraint.required is not None and spec is not None:
                near = (on for other, on in running() if group in spec.path_to(other.leaf))
                if not self._shares_domain(name, group.constraint.required, node, near):
                    return False
        return True

    def _shares_domain(
        self, name: str | None, level: str, node: str, others: Iterable[str]
    ) -> bool:
        """Whether a node is in a domain of a level with one of the others, if there is any."""
        is_alone = True
        topologies = with_levels(self.books, {level}, name)
        here = [
            (topology.tree.slot_of, domains, domains[slot])
            for topology in topologies
            if (slot := topology.tree.slot_of.get(node)) is not None
            for domains in (topology.tree.domain_of[topology.levels.index(level)],)
        ]
        for other in others:  # of a large gang: mostly the first one is enough
            is_alone = False
            for slot_of, domains, domain in here:
                there = slot_of.get(other)
                if there is not None and domains[there] == domain:
                    return True
        return is_alone

    def may_have(self, gang: Gang, member: Member, node: str) -> bool:
        """Whether a node takes a member now, by the books and the member's shape.

        A pod that was nominated for the node comes first: the member's place may have been freed
        for it.
        """
        record = self.books.nodes.get(node)
        return (
            record is not None
            and is_open(record)
            and may_stay(record, member.shape)
            and (member.allowed is None or node in member.allowed)
            and room.fits(
                self.books,
                node,
                member.pod.request,
                beside=self.nominations.on(
                    node, member.pod.priority, gang.members, self.books.held
                ),
            )
        )

    def beside(self, gang: Gang, member: Member, node: str, room: int) -> tuple[str, ...]:
        """The nodes of whole domains beside that in which a member has to be with others."""
        level = member.constraint.required
        if level is None or level == NODE_LEVEL:
            return ()
        found = with_levels(self.books, {level}, gang.membership.topology_of(member.leaf))
        return nodes_beside(found[0], level, node, room) if found else ()


def with_levels(
    books: Books, levels: set[str], name: str | None = None
) -> tuple[TopologyBooks, ...]:
    """The topologies that have all of these levels, or the one of this name if it has them.

    One that is joined serves those alone that name it.
    """
    topologies = books.topologies
    if name is not None:
        named = topologies.get(name)
        return (named,) if named is not None and levels <= set(named.levels) else ()
    if not levels:
        return (topologies[ALL_NODES],)
    return tuple(
        each for each in topologies.values() if levels <= set(each.levels) and not each.is_joined
    )
