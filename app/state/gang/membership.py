"""Who belongs to a gang: its pods as members, and the roll call that sorts them out.

    pod + claim ──member_of──▶ Member        members ──roll_call──▶ bound, joining, excess, strays

What the owning workload declares counts for more than what its pods say; of a gang that runs, the
members that run say how large it is. Whether anybody has a node planned is no concern of this file.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from app.dialects import corral
from app.dialects.membership import (
    ORDINARY_LIFE,
    Declared,
    Life,
    Membership,
    Mistake,
    Number,
    PodTemplate,
)
from app.kube.core.objects import PodRecord, Shape
from topology.model.request import Constraint, Slice

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


@dataclass(frozen=True, slots=True)
class MembershipStatus:
    """A gang's members sorted out, in order of seniority."""

    bound: tuple[Member, ...] = ()
    joining: tuple[Member, ...] = ()  # live, unbound, part of the gang
    unbound: tuple[Member, ...] = ()  # of those, the ones behind no foreign gate
    excess: tuple[Member, ...] = ()  # live beyond the declared size: never part of the gang
    mismatched: tuple[Member, ...] = ()  # live, but they declare another size than what runs
    members_live: int = 0  # bound, unbound and behind foreign gates
    vacant: int = 0  # members declared that no pod stands for
    declared: Declared | None = None
    life: Life = ORDINARY_LIFE
    is_over: bool = False  # nobody joins any more: a member that may not be retried has ended
    is_complete: bool = False
    priority: int = 0  # the highest among those that wait
    problem: str = ""  # why the gang as a whole can't be meant


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


def membership_status(members: Iterable[Member], from_job: Declared | None) -> MembershipStatus:
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
        return MembershipStatus(bound, members_live=len(live), problem=problem)
    life = _life(live)
    if declared.are_alike:
        life = replace(life, is_fast=True)
    candidates = [member for member in live if not member.pod.node and not member.mistake]
    is_own = declared is not from_job  # the pods say it, and no owner that knows better
    mismatched = tuple(
        each for each in candidates if bound and is_own and _declares_other(each, declared)
    )
    is_over = not bound and any(
        each.pod.is_finished and not each.life.is_retriable for each in everyone
    )
    places = 0 if is_over else _places(everyone, bound, declared, is_own=is_own)
    fit_to_join = [each for each in candidates if each not in mismatched]
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
    return MembershipStatus(
        bound,
        joining,
        unbound if not problem else (),
        # Nobody is one too many of a gang that cannot be meant.
        tuple(outside) if not problem else (),
        mismatched,
        members_live=len(live),
        vacant=places - len(joining),
        declared=declared,
        life=life,
        is_over=is_over,
        is_complete=not problem and len(unbound) >= needed > 0,
        priority=max((member.pod.priority for member in unbound), default=0),
        problem=problem,
    )


def _places(
    everyone: list[Member], bound: tuple[Member, ...], declared: Declared, *, is_own: bool
) -> int:
    """How many members may join those that run; `is_own`: it is the pods that declare it."""
    places = declared.members - len(bound)
    if is_own:  # a group's total counts the pods that have succeeded already
        places -= sum(member.is_done for member in everyone)
    return max(places, 0)


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
    said = first.declared.members if first and first.declared else 0
    roles: dict[tuple[object, ...], Member] = {}
    for member in live:
        if first and member.declared and member.declared.members != said:
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
