"""Who waits for whom: the ledger of gangs, their members and the life of each.

    GATHERING ──complete──▶ WAITING ──plan──▶ PLACED ──all at /bind──▶ BINDING ──▶ RUNNING ──▶ DONE
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
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from app.dialects import corral
from app.dialects.membership import (
    ORDINARY_LIFE,
    Declared,
    GangKey,
    Life,
    Membership,
    Mistake,
    Number,
    PodTemplate,
)
from app.kube.objects import PodRecord, Shape
from topology.request import Constraint, Slice


class Phase(enum.Enum):
    """Where a gang stands in its life."""

    GATHERING = "gathering"  # members are missing, gated, or contradict each other
    WAITING = "waiting"  # complete, but no plan
    PLACED = "placed"  # every member has a node and holds its capacity; nothing is bound
    BINDING = "binding"  # the last member arrived at /bind: bindings are under way
    RUNNING = "running"  # every live member is bound
    REPAIRING = "repairing"  # some members are bound, some live one has no plan
    DONE = "done"  # no live member is left


ANY_SHAPE = Shape()


@dataclass(slots=True)
class Member:
    """One pod of a gang; `mistake` is what is wrong with its own claim, or ""."""

    pod: PodRecord
    constraint: Constraint
    declared: Declared | None
    number: Number | None = None
    mistake: str = ""
    slices: tuple[Slice, ...] = ()
    pod_set: str = ""
    pod_set_group: str = ""
    allowed: frozenset[str] | None = None  # nodes we narrowed the pod to when ungating it
    shape: Shape = ANY_SHAPE  # the pod's own, without what we narrowed
    life: Life = ORDINARY_LIFE

    @property
    def is_live(self) -> bool:
        """Whether the pod still runs or may still start."""
        return not self.pod.is_finished and not self.pod.is_terminating

    @property
    def is_done(self) -> bool:
        """Whether the pod has succeeded and nobody need take its place."""
        return self.pod.phase == "Succeeded" and not self.life.is_serving

    @property
    def is_gated(self) -> bool:
        """Whether our gate keeps kube-scheduler from asking for the pod."""
        return corral.GATE in self.pod.gates

    @property
    def is_ready(self) -> bool:
        """Whether no gate but ours is left: a foreign one says that the pod may not start yet."""
        return all(gate == corral.GATE for gate in self.pod.gates)

    @property
    def role(self) -> tuple[object, ...]:
        """Members of one role are identical to the placement."""
        return (self.pod_set, self.pod.request, self.shape)

    @property
    def seniority(self) -> tuple[bool, int, int, str, str]:
        """Order in which members join and get their nodes: as numbered, else by age."""
        part, index = (self.number.part, self.number.index) if self.number else (0, 0)
        return (self.number is None, part, index, self.pod.created, self.pod.name)


@dataclass(frozen=True, slots=True, eq=False)
class Spot:
    """The domain a member was placed in: its nodes in slot order, and the labels that name it.

    Members in the same domain of one plan share one object, so it is compared by identity.
    """

    nodes: tuple[str, ...]
    labels: tuple[tuple[str, str], ...]


@dataclass(slots=True)
class Absent:
    """A place kept for a pod that does not exist; see `absent.py`."""

    member: Member  # what that pod will be like; its uid is ours
    until: float  # infinite: as long as the gang wants it
    instead_of: str = ""  # uid of the member that was lost
    is_spare: bool = False  # beside the places of the members


@dataclass(frozen=True, slots=True)
class RollCall:
    """A gang's members sorted out, in order of seniority."""

    bound: tuple[Member, ...] = ()
    joining: tuple[Member, ...] = ()  # live, unbound, part of the gang
    unbound: tuple[Member, ...] = ()  # of those, the ones behind no foreign gate
    excess: tuple[Member, ...] = ()  # live beyond the declared size: never part of the gang
    strays: tuple[Member, ...] = ()  # live, but they declare another size than what runs
    members_live: int = 0  # bound, unbound and behind foreign gates
    vacant: int = 0  # members declared that no pod stands for
    declared: Declared | None = None
    life: Life = ORDINARY_LIFE
    is_over: bool = False  # nobody joins any more: a member that may not be retried has ended
    is_complete: bool = False
    problem: str = ""  # why the gang as a whole can't be meant


@dataclass(slots=True)
class Gang:
    """One gang's memory. Sets and dicts hold pod uids.

    Invariants: `plan` covers unbound live members and absent ones only, each held on its planned
    node; `arrived` and `posted` are parts of `plan` and do not overlap; `misinformed` is a part of
    `rejected`; `ungating` are members whose gate the watch still shows.
    """

    key: GangKey
    members: dict[str, Member] = field(default_factory=dict)
    roll: RollCall = RollCall()
    phase: Phase = Phase.GATHERING
    absent: dict[str, Absent] = field(default_factory=dict)  # by a uid of ours
    absents_made: int = 0
    plan: dict[str, str] = field(default_factory=dict)  # uid -> node
    domains: dict[str, str] = field(default_factory=dict)  # uid -> where, for people
    spots: dict[str, Spot] = field(default_factory=dict)  # uid -> the same, to narrow the pod to
    ungating: dict[str, float] = field(default_factory=dict)  # uid -> when its Ungate was sent
    unnarrowed: set[str] = field(default_factory=set)  # the API server refused to narrow them
    answered: set[str] = field(default_factory=set)  # pinned in /filter
    arrived: set[str] = field(default_factory=set)  # held at /bind
    posted: set[str] = field(default_factory=set)  # their Bind is under way or confirmed
    rejected: dict[str, str] = field(default_factory=dict)  # uid -> what /filter told, "": unknown
    misinformed: dict[str, None] = field(default_factory=dict)  # told what holds no longer
    asked: tuple[object, ...] | None = (
        None  # what the planner was asked for last; None: it may differ now
    )
    verdict: str = ""  # the kind of the last verdict: without numbers that follow the cluster
    sentence: str = ""  # what waiting members are told
    sentence_at: float | None = None  # when its verdict's numbers were last brought up to date
    told: str = ""  # the last problem reported to the owner, "" when there is none
    told_once: set[str] = field(default_factory=set)  # reasons of reports that are not repeated
    told_pods: set[str] = field(default_factory=set)  # single pods that were reported
    complete_at: float = 0.0  # when it last became complete
    moved_at: float = 0.0  # when the plan was made or last made progress
    pushed_at: float = 0.0  # when it was last looked at for gates that should be gone
    given_up_at: float = -math.inf  # when it was last sent for eviction
    woken_at: float = 0.0  # when its rejected members were last woken
    bind_deadline: float | None = None  # until when arrived members wait for the others
    not_before: float = 0.0  # no new plan before this
    plans_lost: int = 0  # in a row, for the back-off

    @property
    def has_started(self) -> bool:
        """Whether some member runs or is being bound: the gang can no longer start as a whole."""
        return bool(self.roll.bound or self.posted)

    @property
    def priority(self) -> int:
        """The highest priority among the live members."""
        return max((member.pod.priority for member in self.roll.unbound), default=0)

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
        expected = (each.member for each in self.absent.values() if not each.is_spare)
        return tuple(
            member for member in (*self.roll.unbound, *expected) if member.pod.uid not in self.plan
        )

    def planned(self) -> tuple[Member, ...]:
        """Members that have a node they are not bound to yet, absent ones included."""
        absent = (each.member for each in self.absent.values())
        return tuple(
            member for member in (*self.roll.unbound, *absent) if member.pod.uid in self.plan
        )

    def member(self, uid: str) -> Member:
        """The member, present or absent, of this uid."""
        return self.members[uid] if uid in self.members else self.absent[uid].member

    @property
    def awaited(self) -> int:
        """Planned pods that can arrive at /bind, and so open the way for all."""
        return sum(uid in self.members for uid in self.plan)

    def move_to(self, phase: Phase) -> bool:
        """Enter the phase; True if that is a change."""
        if phase is self.phase:
            return False
        self.phase = phase
        return True

    def forget_plan_of(self, uid: str) -> None:
        """Drop one member's part of the plan; the caller ends its hold."""
        self.asked = None
        self.plan.pop(uid, None)
        self.domains.pop(uid, None)
        self.spots.pop(uid, None)
        for some in (self.answered, self.arrived, self.posted):
            some.discard(uid)


def phase_of(gang: Gang) -> Phase:
    """The phase that follows from the roll call and the plan."""
    roll = gang.roll
    if not roll.members_live:
        return Phase.DONE
    if gang.unplanned():
        if gang.has_started:
            return Phase.REPAIRING
        return Phase.WAITING if roll.is_complete else Phase.GATHERING
    if not roll.unbound and roll.bound:
        return Phase.RUNNING
    if not gang.plan:
        return Phase.GATHERING
    return Phase.BINDING if gang.has_started else Phase.PLACED


def member_of(pod: PodRecord, claim: Membership | Mistake) -> Member:
    """The ledger's record of a pod that claims to belong to a gang."""
    shape, allowed = corral.own_shape(pod)
    if isinstance(claim, Mistake):
        return Member(pod, Constraint(), None, mistake=claim.sentence, shape=shape)
    return Member(
        pod,
        claim.constraint,
        claim.declared,
        claim.number,
        slices=claim.slices,
        pod_set=claim.pod_set,
        pod_set_group=claim.pod_set_group,
        allowed=allowed,
        shape=shape,
        life=claim.life,
    )


def roll_call(members: Iterable[Member], from_job: Declared | None) -> RollCall:
    """Sort a gang's members out.

    `from_job` is what the owning workload declares now; it knows better than its pods. Of a gang
    that runs, the members that run say how large it is, and what the others say does not matter.
    """
    everyone = sorted(members, key=lambda member: member.seniority)
    live = [member for member in everyone if member.is_live]
    bound = tuple(member for member in live if member.pod.node)
    # Of a driver and its workers only the driver declares anything, and it may be the one lost.
    heard = (*bound, *live, *(each for each in everyone if each.pod.phase == "Failed"))
    declared = from_job or next((each.declared for each in heard if each.declared), None)
    problem = _problem(live) if not bound else ""
    if declared is None:
        return RollCall(bound, members_live=len(live), problem=problem)
    life = _life(live)
    if declared.are_alike:
        life = replace(life, is_fast=True)
    candidates = [member for member in live if not member.pod.node and not member.mistake]
    is_own = declared is not from_job  # the pods say it, and no owner that knows better
    strays = tuple(
        each for each in candidates if bound and is_own and _declares_other(each, declared)
    )
    places = declared.members - len(bound)
    if is_own:  # a group's total counts the pods that have succeeded already
        places -= sum(member.is_done for member in everyone)
    is_over = not bound and any(
        each.pod.is_finished and not each.life.is_retriable for each in everyone
    )
    places = 0 if is_over else max(places, 0)
    fit_to_join = [each for each in candidates if each not in strays]
    # Whoever was ungated stays, then whoever is older (kueue.md 5.5).
    outside = sorted(fit_to_join, key=lambda each: each.is_gated)[places:]
    left_out = {each.pod.uid for each in outside}
    joining = tuple(each for each in fit_to_join if each.pod.uid not in left_out)
    unbound = tuple(member for member in joining if member.is_ready)
    needed = len(joining) if life.is_fast or life.templates else places
    if declared.needed is not None:
        needed = min(needed, declared.needed)
    if bound and not life.templates and (left := _left_by_a_driver(everyone)):
        life = replace(life, templates=left)
    return RollCall(
        bound,
        joining,
        unbound if not problem else (),
        # Nobody is one too many of a gang that cannot be meant.
        tuple(outside) if not problem else (),
        strays,
        members_live=len(live),
        vacant=places - len(joining),
        declared=declared,
        life=life,
        is_over=is_over,
        is_complete=not problem and len(unbound) >= needed > 0,
        problem=problem,
    )


def _life(live: list[Member]) -> Life:
    """What the members say of the gang's life, taken together."""
    if all(member.life is ORDINARY_LIFE for member in live):
        return ORDINARY_LIFE
    lives = [member.life for member in live]
    return Life(
        is_serving=any(life.is_serving for life in lives),
        is_fast=any(life.is_fast for life in lives),
        spares=max(life.spares for life in lives),
        templates=next((life.templates for life in lives if life.templates), ()),
    )


def _left_by_a_driver(everyone: list[Member]) -> tuple[PodTemplate, ...]:
    """The pod sets of a driver that has failed, but for its own: a new driver goes on with them."""
    for driver in everyone:
        if driver.pod.phase == "Failed" and driver.life.templates:
            return tuple(each for each in driver.life.templates if each.pod_set != driver.pod_set)
    return ()


def _declares_other(member: Member, declared: Declared) -> bool:
    return member.declared is not None and member.declared.members != declared.members


def _problem(live: list[Member]) -> str:
    """The first contradiction among members, as a sentence; "" if they agree."""
    for member in live:
        if member.mistake:
            return member.mistake
    first = next((member for member in live if member.declared), None)
    roles: dict[tuple[object, ...], Member] = {}
    for member in live:
        if first and member.declared and member.declared.members != first.declared.members:  # type: ignore[union-attr]
            return _disagree(first, member, member.declared.where, "declared")
        like = roles.setdefault(member.role, member)
        if (like.constraint, like.slices) != (member.constraint, member.slices):
            return _disagree(like, member, "the topology annotations", "constraint")
    return ""


def _disagree(one: Member, other: Member, where: str, what: str) -> str:
    said = [
        f"pod {member.pod.name} says {_said(member, what)}"
        for member in sorted((one, other), key=lambda member: member.pod.name)
    ]
    return f"members disagree on {where}: {', '.join(said)}"


def _said(member: Member, what: str) -> str:
    if what == "declared" and member.declared:
        return str(member.declared.members)
    constraint = member.constraint
    slices = "".join(f", slices of {part.pods} in {part.level}" for part in member.slices)
    if constraint.required:
        return f"required {constraint.required}{slices}"
    return (f"preferred {constraint.preferred}" if constraint.preferred else "anywhere") + slices
