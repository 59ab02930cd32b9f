"""Who waits for whom: what is known of one gang, and the life it leads.

    GATHERING ──complete──▶ WAITING ──plan──▶ PLACED ──all arrived──▶ BINDING ──▶ RUNNING ──▶ DONE
        ▲                      ▲  ▲             │                         │           │
        └──member lost─────────┘  └──plan lost──┘        member lost      ▼           │
                                                     REPAIRING ◀──────────┴───────────┘

A gang's phase is not a variable that events push about: it is derived from what is known
(`phase_of`), so that a restart, which knows the same pods, lands in the same phase. The picture
shows the usual way; many events may be heard between two looks, so any phase may follow any other.

Members are known from the watch and keyed by pod UID. A gang is complete when as many live,
ungated members exist as its dialect declares. Until the first member is bound it starts whole or
not at all; once one is bound, the rest follow one by one, inside the domain of those that run.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Iterator
from dataclasses import dataclass, field

from app.dialects.spec import GangKey
from app.state.gang.membership import Member, MembershipStatus


class Phase(enum.Enum):
    """Where a gang stands in its life."""

    GATHERING = "gathering"  # members are missing, gated, or contradict each other
    WAITING = "waiting"  # complete, but no plan
    PLACED = "placed"  # every member has a node and holds its capacity; nothing is bound
    BINDING = "binding"  # every member arrived at /bind once: bindings are under way
    RUNNING = "running"  # every live member is bound
    REPAIRING = "repairing"  # some members are bound, some live one has no plan
    DONE = "done"  # no live member is left


PLANNABLE = (Phase.WAITING, Phase.REPAIRING)


@dataclass(frozen=True, slots=True, eq=False)
class DomainNodes:
    """The domain a member was placed in: its nodes in slot order, and the labels that name it.

    Members in the same domain of one plan share one object, so it is compared by identity.
    """

    nodes: tuple[str, ...]
    labels: tuple[tuple[str, str], ...]


@dataclass(slots=True)
class Placeholder:
    """A place kept for a pod that does not exist; see `lifecycle/placeholders.py`."""

    member: Member  # what that pod will be like; its uid is ours
    until: float  # infinite: as long as the gang wants it
    instead_of: str = ""  # uid of the member that was lost
    is_spare: bool = False  # beside the places of the members


@dataclass(slots=True)
class Gang:
    """One gang's memory. Sets and dicts hold pod uids.

    Invariants: `plan` covers unbound live members and absent ones only, each held on its planned
    node; `arrived` and `posted` are parts of `plan`, `at_bind` is a part of `arrived` that does not
    overlap with `posted`; `misinformed` is a part of `rejected`; `ungating` are members whose gate
    the watch still shows; `unheard` are members.
    """

    key: GangKey
    members: dict[str, Member] = field(default_factory=dict)
    membership: MembershipStatus = field(default_factory=MembershipStatus)
    running: set[str] = field(default_factory=set)  # live members that have a node
    phase: Phase = Phase.GATHERING
    placeholders: dict[str, Placeholder] = field(default_factory=dict)  # by a uid of ours
    placeholders_made: int = 0
    plan: dict[str, str] = field(default_factory=dict)  # uid -> node
    domains: dict[str, str] = field(default_factory=dict)  # uid -> where, for people
    domain_nodes: dict[str, DomainNodes] = field(
        default_factory=dict
    )  # uid -> the same, to narrow the pod to
    ungating: dict[str, float] = field(default_factory=dict)  # uid -> when its Ungate was sent
    unnarrowed: set[str] = field(default_factory=set)  # the API server refused to narrow them
    answered: set[str] = field(default_factory=set)  # pinned in /filter
    arrived: set[str] = field(default_factory=set)  # came to /bind once with this plan
    at_bind: dict[str, float] = field(default_factory=dict)  # held there now, longest first: since
    posted: set[str] = field(default_factory=set)  # their Bind is under way or confirmed
    unheard: set[str] = field(default_factory=set)  # planned in vain: nobody asked for them
    rejected: dict[str, str] = field(default_factory=dict)  # uid -> what /filter told, "": unknown
    misinformed: dict[str, None] = field(default_factory=dict)  # told what holds no longer
    asked: tuple[object, ...] | None = None  # what was searched for last; None: it may differ now
    verdict: str = ""  # the kind of the last verdict: without numbers that follow the cluster
    sentence: str = ""  # what waiting members are told
    sentence_at: float | None = None  # when its verdict's numbers were last brought up to date
    started_with: str | None = None  # pods per pod set when it started, as its pods remember it
    told: str = ""  # the last problem reported to the owner, "" when there is none
    told_once: set[str] = field(default_factory=set)  # reasons of reports that are not repeated
    told_pods: set[str] = field(default_factory=set)  # single pods that were reported
    complete_at: float = 0.0  # when it last became complete
    reviewed_at: float = -math.inf  # when its members were last sorted out
    moved_at: float = 0.0  # when the plan was made or last made progress
    again_at: float = 0.0  # when a member last came to /bind that had arrived before
    pushed_at: float = 0.0  # when it was last looked at for gates that should be gone
    given_up_at: float = -math.inf  # when it was last sent for eviction
    woken_at: float = 0.0  # when its rejected members were last woken
    not_before: float = 0.0  # no new plan before this
    plans_lost: int = 0  # in a row, for the back-off

    @property
    def has_started(self) -> bool:
        """Whether some member runs or is being bound: the gang can no longer start as a whole."""
        return bool(self.membership.bound or self.posted)

    @property
    def priority(self) -> int:
        """The highest priority among the members that wait."""
        return self.membership.priority

    @property
    def has_parts(self) -> bool:
        """Whether members belong together in slices or as a leader and its workers."""
        return any(member.slices or member.pod_set_group for member in self.members.values())

    @property
    def names_levels(self) -> bool:
        """Whether it matters to some member which domain it is in."""
        return any(
            member.constraint.required or member.constraint.preferred or member.slices
            for member in self.members.values()
        )

    def unplanned(self) -> tuple[Member, ...]:
        """Members that could be placed now and are not, absent ones but no spares included."""
        # Since the last roll call a pod may have been narrowed to some nodes.
        found = [
            self.members.get(member.pod.uid, member)
            for member in self.membership.unbound
            if member.pod.uid not in self.plan
        ]
        for uid, each in self.placeholders.items():
            if not each.is_spare and uid not in self.plan:
                found.append(each.member)
        return tuple(found)

    def planned(self) -> tuple[Member, ...]:
        """Members that have a node they are not bound to yet, absent ones included."""
        absent = (each.member for each in self.placeholders.values())
        return tuple(
            member for member in (*self.membership.unbound, *absent) if member.pod.uid in self.plan
        )

    def settled(self) -> Iterator[tuple[Member, str]]:
        """Members that no search may move, each with its node: those that run or have a plan."""
        for member in self.membership.bound:
            yield member, member.pod.node
        for member in self.planned():
            yield member, self.plan[member.pod.uid]

    def has(self, uid: str) -> bool:
        """Whether a member, present or absent, has this uid."""
        return uid in self.members or uid in self.placeholders

    def member(self, uid: str) -> Member:
        """The member, present or absent, of this uid."""
        return self.members[uid] if uid in self.members else self.placeholders[uid].member

    def may_be_planned(self) -> set[str]:
        """Who the plan may cover: those that wait, placeholders, and whose Bind is under way."""
        waiting = {member.pod.uid for member in self.membership.unbound}
        return waiting | self.placeholders.keys() | self._under_way()

    def _under_way(self) -> set[str]:
        """Members whose Bind is at the API server: their hold stays, whatever is declared now."""
        return {
            uid
            for uid in self.posted
            if uid in self.members and self.members[uid].is_live and not self.members[uid].pod.node
        }

    @property
    def has_arrived(self) -> bool:
        """Whether every planned pod came to /bind once, and nobody who could be planned is not."""
        if len(self.arrived) < len(self.plan) - len(self.placeholders):
            return False  # not worth a look at all of them, which each arrival would take
        return self.arrived >= self.plan.keys() - self.placeholders.keys() and not self.unplanned()

    def forget_plan_of(self, uid: str) -> None:
        """Drop one member's part of the plan; the caller ends its hold."""
        self.asked = None
        self.plan.pop(uid, None)
        self.domains.pop(uid, None)
        self.domain_nodes.pop(uid, None)
        self.at_bind.pop(uid, None)
        for some in (self.answered, self.arrived, self.posted):
            some.discard(uid)


def phase_of(gang: Gang) -> Phase:
    """The phase that follows from the roll call and the plan."""
    membership = gang.membership
    if not membership.members_live:
        return Phase.DONE
    if gang.unplanned():
        if gang.has_started:
            return Phase.REPAIRING
        return Phase.WAITING if membership.is_complete else Phase.GATHERING
    if not membership.unbound and membership.bound:
        return Phase.RUNNING
    if not gang.plan:
        return Phase.GATHERING
    return Phase.BINDING if gang.has_started else Phase.PLACED
