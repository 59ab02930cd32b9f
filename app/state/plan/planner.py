"""Whom to place next, and where: from a gang's members to nodes, one search per gang.

    members ──roles──▶ query ──placing──▶ placement ──seating──▶ nodes

Order: gangs that already run in part first, then priority, then the time of becoming complete.
A gang that does not fit does not block smaller ones behind it. Within one pass capacity only
shrinks, so a request that did not fit is not searched again for the next gang that asks the same.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field

from app.dialects.spec import GangKey
from app.state.cache.books import ALL_NODES, Books, TopologyBooks, is_open
from app.state.cache.eligibility import Eligibility, may_stay
from app.state.cache.node_refusals import Offer, Refusals
from app.state.gang.gang import Gang, Spot
from app.state.gang.membership import Member
from app.state.isolation import OnFault, reraise
from app.state.plan.assignment import Plan, place, plan_of
from app.state.plan.pod_sets import Role, blocks_of, mistake_in_groups, roles_of
from app.state.plan.request import Placing, Query, Signature, closed_in
from topology.errors import InvalidRequest
from topology.fit.view import Options
from topology.model.answer import Placement
from topology.model.levels import NODE_LEVEL
from topology.model.resources import Counts

OPTIONS = Options(tries=32)
# ^ places tried in vain for a gang of several roles; few, for this runs in the loop that answers
# kube-scheduler. Three roles that ask for more than 5,000 nodes have: 18 ms until the answer is no.

FAULT = "the search failed for an error of Corral's own"

Rank = tuple[bool, int, float, str]


@dataclass(frozen=True, slots=True)
class NoPlan:
    """Why there is none now. `is_mistake`: no cluster state would help."""

    sentence: str
    is_mistake: bool = False
    kind: str = ""
    """The same for verdicts that differ in numbers and reasons only: those follow the cluster."""
    is_fault: bool = False
    """Our search failed; nothing is known of the cluster."""


@dataclass(slots=True)
class Planner:
    """Places gangs on the books as they are; changes nothing but what a gang has `asked` for."""

    books: Books
    eligibility: Eligibility
    honours_preferred: bool = True  # preferred node affinity decides before capacity does
    is_ready: bool = False  # false until every list is in: no plan from half a picture
    refusals: Refusals = field(default_factory=Refusals)
    on_fault: OnFault = reraise
    earmarked: dict[GangKey, tuple[frozenset[str], Rank]] = field(default_factory=dict)
    """Nodes kept for a gang from those that come after it (`earmarks.py`)."""
    _unfit: dict[Signature, NoPlan] = field(default_factory=dict)

    def begin_pass(self) -> None:
        """Capacity may have grown since: what did not fit is worth a search again."""
        self._unfit.clear()

    def view(self, gang: Gang) -> tuple[tuple[Role, ...], TopologyBooks] | None:
        """The roles of what is to be placed and the topology it is placed on, if there is one."""
        roles = roles_of(gang, gang.unplanned())
        topology = self._topology_for({level for role in roles for level in role.levels})
        return (roles, topology) if roles and topology is not None else None

    def place(self, member: Member, node: str) -> tuple[str, Spot] | None:
        """The domain of a node that a member is to have without a search; None if it has none."""
        level = member.constraint.required or member.constraint.preferred
        topology = self._topology_for({level} if level else set())
        slot = topology.tree.slot_of.get(node) if topology else None
        if topology is None or slot is None:
            return None
        depth = topology.levels.index(level or NODE_LEVEL)
        return place(topology, depth, int(topology.tree.domain_of[depth][slot]))

    def is_beside(self, member: Member, node: str, running: Iterable[str]) -> bool:
        """Whether a node is in the domain that a member's required level asks for."""
        level = member.constraint.required
        topology = self._topology_for({level}) if level else None
        if level is None or topology is None:
            return True
        domains = topology.tree.domain_of[topology.levels.index(level)]
        slots = [topology.tree.slot_of.get(name) for name in (node, *running)]
        first, *others = [None if slot is None else int(domains[slot]) for slot in slots]
        return not others or (first is not None and first in others)

    def may_have(self, member: Member, node: str) -> bool:
        """Whether a node takes a member now, as the books and its own shape say."""
        record = self.books.nodes.get(node)
        return (
            record is not None
            and is_open(record)
            and may_stay(record, member.shape)
            and (member.allowed is None or node in member.allowed)
            and self.books.fits(node, self.books.vector(member.pod.request))
        )

    def plan(
        self, gang: Gang, offer: Offer | None = None, who: tuple[Member, ...] | None = None
    ) -> Plan | NoPlan:
        """A node for every member that is not planned yet, or for those named, or why not."""
        try:
            return self._searched(gang, offer, who)
        except Exception as error:
            self.on_fault(f"search for gang {gang.key}", error)
            return NoPlan(f"{FAULT}, {type(error).__name__}", is_fault=True)

    def _searched(
        self, gang: Gang, offer: Offer | None, who: tuple[Member, ...] | None
    ) -> Plan | NoPlan:
        if mistake := mistake_in_groups(gang):
            return NoPlan(mistake, is_mistake=True)
        roles = roles_of(gang, gang.unplanned() if who is None else who)
        levels = {level for role in roles for level in role.levels}
        topology = self._topology_for(levels)
        if topology is None:
            unknown = ", ".join(sorted(levels - set(self.books.known_levels()))) or "together"
            known = ", ".join(self.books.known_levels())
            return NoPlan(
                f"topology level not known: {unknown}; known levels: {known}", is_mistake=True
            )
        query = Query(gang, roles, blocks_of(roles), topology, self._closed_to(gang), offer)
        signature = query.signature
        if offer is None and who is None:
            gang.asked = signature
        if offer is None and signature in self._unfit:
            return self._unfit[signature]
        options = dataclasses.replace(OPTIONS, scores=self._scores(roles, topology))
        placing = Placing(self.books, self.eligibility, self.refusals, options, query)
        try:
            answer = placing.run()
        except InvalidRequest as error:
            # Pods that were narrowed to different domains are no mistake of whoever made them.
            return NoPlan(str(error), is_mistake=not any(role.is_split for role in roles))
        if isinstance(answer, Placement):
            return plan_of(gang, answer, roles, topology)
        verdict = NoPlan(str(answer), kind=f"{answer.level} {answer.unit}")
        if offer is None:
            self._unfit[signature] = verdict
        return verdict

    def _scores(self, roles: tuple[Role, ...], topology: TopologyBooks) -> dict[Hashable, Counts]:
        """What preferred node affinity says, of the roles that have any."""
        if not self.honours_preferred:
            return {}
        return {
            str(index): self.eligibility.scores(role.shaped[1], topology.tree, self.books.nodes)
            for index, role in enumerate(roles)
            if role.shaped[1].preferred
        }

    def is_unfit(self, gang: Gang) -> bool:
        """Whether what this gang asked for last, and asks for still, has no place in this pass."""
        asked = gang.asked
        return (
            asked is not None and closed_in(asked) == self._closed_to(gang) and asked in self._unfit
        )

    def _closed_to(self, gang: Gang) -> frozenset[str]:
        """Nodes that are kept for gangs which come before this one."""
        if not self.earmarked:
            return frozenset()
        rank = rank_in_queue(gang)
        others = (
            nodes for key, (nodes, its) in self.earmarked.items() if key != gang.key and its < rank
        )
        return frozenset().union(*others)

    def _topology_for(self, levels: set[str]) -> TopologyBooks | None:
        if not levels:
            return self.books.topologies[ALL_NODES]
        return self.books.topology_with(levels)


def in_order(gangs: Iterable[Gang]) -> list[Gang]:
    """Whom to try next."""
    return sorted(gangs, key=rank_in_queue)


def rank_in_queue(gang: Gang) -> Rank:
    """Gangs that run in part come first, then the important ones, then the old ones."""
    return (not gang.has_started, -gang.priority, gang.complete_at, str(gang.key))
