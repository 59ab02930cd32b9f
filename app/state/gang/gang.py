"""The record of one gang, and the phases of its life.

    GATHERING ──complete──▶ WAITING ──plan──▶ PLACED ──all arrived──▶ BINDING ──▶ RUNNING ──▶ DONE
        ▲                      ▲  ▲             │                         │           │
        └──member lost─────────┘  └──plan lost──┘        member lost      ▼           │
                                                     REPAIRING ◀──────────┴───────────┘

A gang's phase is derived from what is known of it (`phase_of`), so that after a restart the same
pods give the same phase. The picture shows the usual order. The phase is derived again only after
several events may have come, so any phase may follow any other.

Members are known from the watch and keyed by pod UID. A gang is complete when as many live,
ungated members exist as its dialect declares that it needs (`minimum.py`). Until the first member
is bound, the gang starts with all of these or not at all. Once one is bound, the others follow one
by one, inside the domain of those that run; of a gang that may run without some of its pods, or is
repaired together, a part of which none runs follows as a whole.
"""

from __future__ import annotations

import enum
import math
from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from itertools import islice

from app.dialects import corral
from app.dialects.spec import FailureLimit, GangKey, GangSpec, Lifecycle, Suspension
from app.state.gang.members import minimum
from app.state.gang.members.member import Member
from app.state.gang.members.membership import MembershipStatus
from app.state.gang.members.succeeded import SucceededPods
from app.state.gang.parts import (
    Absent,
    BackOff,
    Binding,
    Birth,
    FailedNode,
    HeldPlan,
    Milestones,
    NodeAsk,
    NodeNeed,
    Placeholder,
    Rejections,
    Reporting,
    Searched,
    ToldFirst,
    Ungating,
    Version,
)


class Phase(enum.Enum):
    """Where a gang stands in its life."""

    GATHERING = "gathering"  # members are missing, gated, or contradict each other
    WAITING = "waiting"  # complete, but no plan
    PLACED = "placed"  # every needed member has a node and holds its capacity; nothing is bound
    BINDING = "binding"  # every member arrived at /bind once: bindings are under way
    RUNNING = "running"  # every live member is bound
    REPAIRING = "repairing"  # some members are bound, some live one has no plan
    DONE = "done"  # no live member is left


PLANNABLE = (Phase.WAITING, Phase.REPAIRING)


@dataclass(slots=True)
class Gang:
    """One gang's record: its members, its phase, and parts that one file writes each.

    number, members, running, phase         written by `gang/gangs.py`
    complete_at                             by `gang/gangs.py`
    membership, roll_calls, reviewed_at     by `lifecycle/roll_call.py`
    succeeded                               by `gang/members/succeeded.py`
    placeholders, placeholders_made         by `reserve/placeholders.py`
    failed_nodes                            by `reserve/replacements.py`
    preempted, is_preempted_unseen, ending  by `lifecycle/disruption.py`
    evicted_at                              by `report/evictions.py`
    last_search                             by `plan/planner.py`
    birth                                   by `born/births.py`
    the other parts                         as `gang/parts.py` says
    """

    key: GangKey
    members: dict[str, Member] = field(default_factory=dict)  # by uid
    membership: MembershipStatus = field(default_factory=MembershipStatus)
    succeeded: SucceededPods = field(default_factory=SucceededPods)
    running: set[str] = field(default_factory=set)  # live members that have a node
    phase: Phase = Phase.GATHERING
    complete_at: float = 0.0  # when it last became complete
    number: int = 0  # from 1; no other gang of this engine ever has it
    roll_calls: int = 0  # how often its members were sorted out
    reviewed_at: float = -math.inf  # when they last were
    placeholders: dict[str, Placeholder] = field(default_factory=dict)  # by a uid of ours
    placeholders_made: int = 0
    absent: Absent = field(default_factory=Absent)
    failed_nodes: dict[str, FailedNode] = field(default_factory=dict)
    """By name those that failed under its members, until it has all its pods again."""
    preempted: Member | None = None  # the last that ended for another pod since the roll call …
    is_preempted_unseen: bool = False  # … and nothing was known of it before
    ending: str = ""  # why its running pods are evicted, until the last of them ends
    evicted_at: float = -math.inf  # when its running pods were last sent for eviction
    last_search: Searched | None = None
    birth: Birth | None = None  # while places are held for the rest of its pods, from the first on
    plan: HeldPlan = field(default_factory=HeldPlan)
    binding: Binding = field(default_factory=Binding)
    ungating: Ungating = field(default_factory=Ungating)
    need: NodeNeed = field(default_factory=NodeNeed)
    ask: NodeAsk = field(default_factory=NodeAsk)
    rejections: Rejections = field(default_factory=Rejections)
    told_first: ToldFirst = field(default_factory=ToldFirst)
    reporting: Reporting = field(default_factory=Reporting)
    milestones: Milestones = field(default_factory=Milestones)
    back_off: BackOff = field(default_factory=BackOff)

    @property
    def version(self) -> Version:
        """Equal to what it was before as long as a search for the gang would be the same one.

        A search depends on the members as last sorted out, the nodes they are narrowed to, the
        plan, and whether the gang has started.
        """
        return (self.roll_calls, self.ungating.version, self.plan.version, self.has_started)

    @property
    def is_plannable(self) -> bool:
        """Whether some member needs a node."""
        return self.phase in PLANNABLE

    @property
    def has_started(self) -> bool:
        """Whether some member runs or is being bound: the gang can no longer start as a whole."""
        return bool(self.membership.bound or self.binding.posted)

    @property
    def is_settled(self) -> bool:
        """Whether it runs, or has pods that are narrowed to nodes for good."""
        return self.has_started or any(each.is_narrowed for each in self.members.values())

    @property
    def priority(self) -> int:
        """What orders it among others: its own, or the highest among the members that wait."""
        return self.membership.priority

    @property
    def highest_priority(self) -> int:
        """The highest priority among its live pods, whether they wait or run."""
        return self.membership.highest_priority

    @property
    def guarded_priority(self) -> int:
        """No pod of it is evicted for gangs of this priority or of a lower one."""
        spec, of_pods = self.membership.spec, self.highest_priority
        own = None if spec is None else spec.priority
        return of_pods if own is None else max(own, of_pods)

    def priority_of(self, uid: str) -> int:
        """The priority of a member, or of the pod that a placeholder stands for.

        A pod to come has the gang's: its template names a class, and no number.
        """
        if uid in self.members:
            return self.members[uid].pod.priority
        place = self.placeholders[uid]
        return place.member.pod.priority if place.instead_of else self.highest_priority

    @property
    def has_parts(self) -> bool:
        """Whether members belong together in slices or as a leader and its workers."""
        return any(member.slices or member.pod_set_group for member in self.members.values())

    @property
    def levels(self) -> frozenset[str]:
        """The levels whose domains matter to some member, or to a group of them."""
        spec = self.membership.spec
        shared = () if spec is None else spec.constraints()
        own = (member.constraint for member in self.members.values())
        named = {
            level
            for each in (*shared, *own)
            for level in (each.required, each.preferred)
            if level is not None
        }
        named.update(each.level for member in self.members.values() for each in member.slices)
        return frozenset(named)

    @property
    def has_claims(self) -> bool:
        """Whether some member that waits has claims of dynamic resource allocation."""
        return any(member.pod.has_claims for member in self.membership.unbound)

    def unplanned(self) -> tuple[Member, ...]:
        """Members and placeholders, without spares, that have no node and could get one now."""
        # Since the last roll call a pod may have been narrowed to some nodes.
        found = [
            self.members.get(member.pod.uid, member)
            for member in self.membership.unbound
            if member.pod.uid not in self.plan.nodes
        ]
        for uid, each in self.placeholders.items():
            if not each.is_spare and uid not in self.plan.nodes:
                found.append(each.member)
        return tuple(found)

    def planned(self) -> tuple[Member, ...]:
        """Members that have a node and are not bound to it yet, placeholders included."""
        absent = (each.member for each in self.placeholders.values())
        return tuple(
            member
            for member in (*self.membership.unbound, *absent)
            if member.pod.uid in self.plan.nodes
        )

    def settled(self) -> Iterator[tuple[Member, str]]:
        """Members that no search may move, each with its node: they run or are planned."""
        for member in self.membership.bound:
            yield member, member.pod.node
        for member in self.planned():
            yield member, self.plan.nodes[member.pod.uid]

    def has(self, uid: str) -> bool:
        """Whether a member or a placeholder has this uid."""
        return uid in self.members or uid in self.placeholders

    def member(self, uid: str) -> Member:
        """The member, or the placeholder's, of this uid."""
        return self.members[uid] if uid in self.members else self.placeholders[uid].member

    def may_be_planned(self) -> set[str]:
        """The uids a plan may cover: members that wait or are being bound, and placeholders."""
        waiting = {member.pod.uid for member in self.membership.unbound}
        return waiting | self.placeholders.keys() | self._under_way()

    def _under_way(self) -> set[str]:
        """Members that are being bound: their hold stays, whatever is declared now."""
        return {
            uid
            for uid in self.binding.posted
            if uid in self.members and self.members[uid].is_live and not self.members[uid].pod.node
        }

    @property
    def is_binding(self) -> bool:
        """Whether some of its pods are being bound."""
        return bool(self._under_way())

    @property
    def is_being_born(self) -> bool:
        """Whether it has places for pods that are created in them, and needs every one of these."""
        birth = self.birth
        return birth is not None and birth.starts_whole and bool(self.placeholders)

    @property
    def has_arrived(self) -> bool:
        """Whether every planned pod came to /bind once, and no other is needed.

        Where none is needed each starts as it comes, or with its part of the gang.
        """
        arrived, planned = self.binding.arrived, self.plan.nodes
        if self.is_being_born:
            return False  # as any gang whose pods are not all there
        if self.needs_nothing:
            return bool(arrived)
        if len(arrived) < len(planned) - len(self.placeholders):
            return False  # a look at all of them at each arrival would take too long
        return arrived >= planned.keys() - self.placeholders.keys() and not self.is_short

    @property
    def elastic_spec(self) -> GangSpec | None:
        """What the gang is if it may start without some of its pods, or be repaired part by part.

        None: it needs them all, and those that are lost get nodes one by one.
        """
        spec = self.membership.spec
        if spec is None:
            return None
        is_repaired = self.has_started and spec.lifecycle.repairs_together
        return spec if is_repaired or spec.is_elastic else None

    @property
    def needs_nothing(self) -> bool:
        """Whether it starts with any of its pods, or with any part of itself."""
        spec = self.elastic_spec
        return spec is not None and minimum.least_pods(spec) == 0

    @property
    def is_short(self) -> bool:
        """Whether members that the gang needs have no node and could get one now."""
        if not self.unplanned():
            return False
        spec = self.elastic_spec
        has_begun = bool(self.plan.nodes or self.membership.bound)
        if spec is None or not has_begun:
            return True
        return not minimum.has_enough(spec, self.settled_by_leaf())

    def may_start_without(self, uids: Collection[str]) -> bool:
        """Whether the other members that have a node are all that the gang needs."""
        spec = self.elastic_spec
        rest = [uid for uid in self.plan.nodes if uid in self.members and uid not in uids]
        if spec is None or len(self._in_part(rest)) == len(rest):
            return False
        lacking = minimum.by_leaf(spec, (self.member(uid).leaf for uid in uids))
        return minimum.has_enough(spec, Counter(self.settled_by_leaf()) - lacking)

    def needs(self, uids: Collection[str]) -> bool:
        """Whether it has too few other members that have a node or could get one."""
        spec = self.elastic_spec
        if spec is None:
            return True
        others = (each.leaf for each in self.membership.unbound if each.pod.uid not in uids)
        has = minimum.by_leaf(spec, others) + Counter(self.membership.settled)
        return not minimum.has_enough(spec, has)

    def planned_in_part(self) -> list[str]:
        """The planned members, by uid, that the gang may not start without more of them.

        Their part of it has not begun, and fewer of it have a node than it needs.
        """
        if self.elastic_spec is None:
            return []
        planned = (each.pod.uid for each in self.membership.unbound)
        return self._in_part([uid for uid in planned if uid in self.plan.nodes])

    def arrived_in_part(self) -> list[str]:
        """The members at /bind, by uid, that wait there for more of their part of the gang.

        It has not begun, and fewer of it have come there than it needs.
        """
        spec, held = self.elastic_spec, self.binding.at_bind
        if spec is None or not held:
            return []
        begun = minimum.begun(self.membership.settled, runs=self.has_started)
        leaves = {self.members[uid].leaf for uid in held}
        leaves.difference_update(begun)
        if not leaves - {self.members[uid].leaf for uid in islice(self.binding.posted, 64)}:
            return []  # as of most: a look at all its pods at each arrival would take too long
        members = ((uid, self.members.get(uid)) for uid in self.binding.arrived)
        in_part = self._in_part([uid for uid, each in members if each and each.leaf not in begun])
        return [uid for uid in in_part if uid in held]

    def is_first_of_more(self, uid: str) -> bool:
        """Whether fewer of a member's leaf have come to /bind than it takes to begin that.

        A quick look: without it many parts that begin at a time would all be counted each time.
        """
        spec, its = self.elastic_spec, self.members[uid].leaf
        leaves = () if spec is None else spec.leaves()
        leaf = next((each for each in leaves if each.name == its), None)
        settled = self.membership.settled.get(its, 0)
        if leaf is None or leaf.least <= 1 or (settled and self.has_started):
            return False
        come = (self.members.get(each) for each in self.binding.arrived)
        return settled + sum(each is not None and each.leaf == its for each in come) < leaf.least

    def _in_part(self, uids: Collection[str]) -> list[str]:
        """Those of these members, not being bound, of whose part more are needed to begin it."""
        spec = self.elastic_spec
        if spec is None or not uids:
            return []
        leaf_of = {uid: self.members[uid].leaf for uid in uids}
        waiting = [uid for uid in uids if uid not in self.binding.posted]
        posted = (leaf for uid, leaf in leaf_of.items() if uid in self.binding.posted)
        settled = minimum.by_leaf(spec, posted) + Counter(self.membership.settled)
        has = settled + minimum.by_leaf(spec, (leaf_of[uid] for uid in waiting))
        begun = minimum.begun(settled, runs=self.has_started)
        left_out, names = minimum.left_out(spec, has, begun), minimum.names_of(spec)
        return [uid for uid in waiting if minimum.leaf_of(names, leaf_of[uid]) in left_out]

    @property
    def _lifecycle(self) -> Lifecycle:
        spec = self.membership.spec
        return Lifecycle() if spec is None else spec.lifecycle

    def ends_together(self, disruption: str) -> bool:
        """Whether all its pods are evicted when kube-scheduler ends one for another pod.

        `disruption`: what is set for gangs that say nothing.
        """
        said = self._lifecycle.ends_together
        return disruption == corral.ALL if said is None else said

    @property
    def pods_there(self) -> int:
        """How many of its pods are there and live: none before the first of them has come."""
        if self.birth is not None and not self.members:
            return 0
        return self.membership.members_live

    @property
    def restarts_together(self) -> bool:
        """Whether its owner makes all its pods anew when one is lost."""
        return self._lifecycle.restarts_together

    @property
    def failures(self) -> FailureLimit | None:
        """When its owner gives up for good; None: never, or it does not say."""
        return self._lifecycle.failures

    @property
    def suspension(self) -> Suspension | None:
        """What makes all its pods anew when it is suspended and goes on; None: nothing."""
        return self._lifecycle.suspension

    def ends_if_lost(self, pods: int) -> bool:
        """Whether its owner would give up for good if so many more of its pods were evicted.

        Lost pods that are still there count, but for as many as the owner has counted already.
        What controls pods that its owner did not make is not asked: see `Owners`.
        """
        if self.failures is None:
            return False
        others = 0
        if len(self.members) > len(self.running):  # else all of them run
            others = sum(each.is_lost for each in self.members.values())
        return pods > self.failures.beside(others)

    def settled_by_leaf(self) -> minimum.Pods:
        """How many pods of each leaf have a node, or have ended and count; see `minimum`."""
        spec = self.membership.spec
        if spec is None:
            return {}
        planned = minimum.by_leaf(spec, (member.leaf for member in self.planned()))
        return planned + Counter(self.membership.settled)


def phase_of(gang: Gang) -> Phase:
    """The phase that follows from the roll call and the plan."""
    membership = gang.membership
    if not membership.members_live:
        return Phase.DONE
    if gang.has_started and gang.unplanned():
        return Phase.REPAIRING
    if not gang.has_started and gang.is_short:
        return Phase.WAITING if membership.is_complete else Phase.GATHERING
    if not membership.unbound and membership.bound:
        return Phase.RUNNING
    if not gang.plan.nodes:
        return Phase.GATHERING
    return Phase.BINDING if gang.has_started else Phase.PLACED
