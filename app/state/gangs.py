"""Who waits for whom: the ledger of gangs, their members and the life of each.

    GATHERING ──complete──▶ WAITING ──plan──▶ PLACED ──all at /bind──▶ BINDING ──▶ RUNNING ──▶ DONE
        ▲                      ▲  ▲             │                         │           │
        └──member lost─────────┘  └──plan lost──┘        member lost      ▼           │
                                                     REPAIRING ◀──────────┴───────────┘

A gang's phase is not a variable that events push about: it is derived from what is known
(`phase_of`), so that a restart, which knows the same pods, lands in the same phase. `NEXT` lists
which changes may follow each other; anything else is our bug.

Members are known from the watch and keyed by pod UID. A gang is complete when as many live,
ungated members exist as its dialect declares. Until the first member is bound it starts whole or
not at all; once one is bound, the rest follow one by one, inside the domain of those that run.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable
from dataclasses import dataclass, field

from app.dialects import corral
from app.dialects.membership import Declared, GangKey, Membership, Mistake, Number
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


_ANY_START = frozenset((Phase.GATHERING, Phase.WAITING, Phase.REPAIRING, Phase.RUNNING, Phase.DONE))
NEXT: dict[Phase, frozenset[Phase]] = {
    Phase.GATHERING: _ANY_START,
    Phase.WAITING: _ANY_START | {Phase.PLACED},
    Phase.PLACED: _ANY_START | {Phase.BINDING},
    Phase.BINDING: _ANY_START | {Phase.PLACED},
    Phase.RUNNING: _ANY_START,
    Phase.REPAIRING: _ANY_START | {Phase.BINDING},
    Phase.DONE: _ANY_START,
}


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

    @property
    def is_live(self) -> bool:
        """Whether the pod still runs or may still start."""
        return not self.pod.is_finished and not self.pod.is_terminating

    @property
    def role(self) -> tuple[object, ...]:
        """Members of one role are identical to the placement."""
        return (self.pod_set, self.pod.request, self.shape)

    @property
    def seniority(self) -> tuple[bool, int, int, str, str]:
        """Order in which members join and get their nodes: as numbered, else by age."""
        part, index = (self.number.part, self.number.index) if self.number else (0, 0)
        return (self.number is None, part, index, self.pod.created, self.pod.name)


@dataclass(frozen=True, slots=True)
class RollCall:
    """A gang's members sorted out, in order of seniority."""

    bound: tuple[Member, ...] = ()
    unbound: tuple[Member, ...] = ()  # live, ungated, part of the gang
    excess: tuple[Member, ...] = ()  # live beyond the declared size: never part of the gang
    members_live: int = 0  # bound, unbound and gated
    declared: Declared | None = None
    is_complete: bool = False
    problem: str = ""  # why the gang as a whole can't be meant


@dataclass(slots=True)
class Gang:
    """One gang's memory. Sets and dicts hold pod uids.

    Invariants: `plan` covers unbound live members only and each of them is held on its planned
    node; `arrived` and `posted` are parts of `plan` and do not overlap; `misinformed` is a part of
    `rejected`.
    """

    key: GangKey
    members: dict[str, Member] = field(default_factory=dict)
    roll: RollCall = RollCall()
    phase: Phase = Phase.GATHERING
    plan: dict[str, str] = field(default_factory=dict)  # uid -> node
    domains: dict[str, str] = field(default_factory=dict)  # uid -> where, for people
    answered: set[str] = field(default_factory=set)  # pinned in /filter
    arrived: set[str] = field(default_factory=set)  # held at /bind
    posted: set[str] = field(default_factory=set)  # their Bind is under way or confirmed
    rejected: dict[str, str] = field(default_factory=dict)  # uid -> what /filter told, "": unknown
    misinformed: dict[str, None] = field(default_factory=dict)  # told what holds no longer
    sentence: str = ""  # what waiting members are told
    sentence_at: float | None = None  # when its verdict's numbers were last brought up to date
    told: str = ""  # the last problem reported to the owner, "" when there is none
    told_pods: set[str] = field(default_factory=set)  # single pods that were reported
    complete_at: float = 0.0  # when it last became complete
    moved_at: float = 0.0  # when the plan was made or last made progress
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

    def unplanned(self) -> tuple[Member, ...]:
        """Members that could be placed now and are not."""
        return tuple(member for member in self.roll.unbound if member.pod.uid not in self.plan)

    def move_to(self, phase: Phase) -> bool:
        """Enter the phase; True if that is a change."""
        if phase is self.phase:
            return False
        if phase not in NEXT[self.phase]:
            raise AssertionError(f"gang {self.key}: {self.phase} cannot become {phase}")
        self.phase = phase
        return True

    def forget_plan_of(self, uid: str) -> None:
        """Drop one member's part of the plan; the caller ends its hold."""
        self.plan.pop(uid, None)
        self.domains.pop(uid, None)
        for some in (self.answered, self.arrived, self.posted):
            some.discard(uid)


def phase_of(gang: Gang) -> Phase:
    """The phase that follows from the roll call and the plan."""
    roll = gang.roll
    if not roll.members_live:
        return Phase.DONE
    if not roll.unbound and roll.bound:
        return Phase.RUNNING
    if gang.unplanned():
        if gang.has_started:
            return Phase.REPAIRING
        return Phase.WAITING if roll.is_complete else Phase.GATHERING
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
    )


def roll_call(members: Iterable[Member], from_job: Declared | None) -> RollCall:
    """Sort a gang's members out.

    `from_job` is what the owning Job declares now, for gangs whose pods declare nothing.
    """
    everyone = sorted(members, key=lambda member: member.seniority)
    live = [member for member in everyone if member.is_live]
    bound = tuple(member for member in live if member.pod.node)
    fit_to_join = [member for member in live if not member.pod.node and not member.mistake]
    declared = next((member.declared for member in live if member.declared), from_job)
    problem = _problem(live) if not bound else ""
    if declared is None:
        return RollCall(bound, members_live=len(live), problem=problem)
    places = declared.members - len(bound)
    if declared is not from_job:  # a group's total counts the pods that have succeeded already
        places -= sum(member.pod.phase == "Succeeded" for member in everyone)
    places = max(places, 0)
    joining, excess = fit_to_join[:places], tuple(fit_to_join[places:])
    unbound = tuple(member for member in joining if not member.pod.gates)
    return RollCall(
        bound,
        unbound if not problem else (),
        excess if not problem else (),  # nobody is one too many of a gang that cannot be meant
        members_live=len(live),
        declared=declared,
        is_complete=not problem and len(unbound) >= places > 0,
        problem=problem,
    )


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
