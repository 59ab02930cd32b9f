"""How a gang's members stand to what the gang is to be.

    members + spec ──▶ bound, joining, excess, mismatched

What the owning workload declares counts for more than what its pods say; of a gang that runs, the
members that run say how large it is. Whether a member has a node planned is not this file's
concern.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from app.dialects.spec import GangSpec, LeafPods, LeafSpec, Said
from app.state.gang.members import minimum
from app.state.gang.members.contradictions import why_invalid

# Both may be imported from here as well.
from app.state.gang.members.member import Member

NONE_GONE: Mapping[str, int] = {}

SpecOf = Callable[[Sequence[Said], Sequence[Said], Mapping[str, LeafPods]], GangSpec | None]
"""What a gang is: of what its live pods say, what its failed pods said, and the pods of each leaf
that live or have succeeded."""

_Kind = TypeVar("_Kind", bound=Hashable)


@dataclass(frozen=True, slots=True)
class MembershipStatus:
    """A gang's members sorted out, in order of seniority."""

    bound: tuple[Member, ...] = ()
    joining: tuple[Member, ...] = ()  # live, unbound, part of the gang
    unbound: tuple[Member, ...] = ()  # of those, the ones that could get a node now
    apart: tuple[Member, ...] = ()  # the others but for those behind foreign gates: see `minimum`
    excess: tuple[Member, ...] = ()  # live beyond what is declared: never part of the gang
    mismatched: tuple[Member, ...] = ()  # live, but they declare another size than what runs
    members_live: int = 0  # bound, unbound and behind foreign gates
    vacant: int = 0  # members declared that no pod stands for
    lacking: Mapping[str, int] | None = None  # of these, by pod set; None: kinds are not counted
    gone: Mapping[str, int] = field(default_factory=dict)  # succeeded and deleted, by pod set
    spec: GangSpec | None = None
    to_come: tuple[LeafSpec, ...] = ()  # leaves whose pods places are reserved for beforehand
    is_over: bool = False  # no pod joins any more: a member that may not be retried has ended
    is_complete: bool = False
    settled: Mapping[str, int] = field(default_factory=dict)  # bound or done, by leaf
    priority: int = 0  # its own, or the highest among those that wait
    lowest_priority: int = 0  # the lowest among those that wait
    highest_priority: int = 0  # the highest among all that live
    problem: str = ""  # why the gang as a whole is invalid
    is_unread: bool = False  # a label that tells its pods apart has not been read yet

    @property
    def pods(self) -> int | None:
        """How many pods the gang has; None: not known yet."""
        return None if self.spec is None else self.spec.pods

    @property
    def topologies(self) -> frozenset[str]:
        """The Topologies that the gang names, if it does."""
        return frozenset() if self.spec is None else self.spec.topologies

    def topology_of(self, leaf: str) -> str | None:
        """The one that a leaf is placed on; None: the first that has its levels."""
        return None if self.spec is None else self.spec.topology_of(leaf)


def membership_status(
    members: Iterable[Member], spec_of: SpecOf, gone: Mapping[str, int] = NONE_GONE
) -> MembershipStatus:
    """Sort a gang's members out.

    `gone`: how many of each pod set have succeeded and were deleted since.
    `spec_of` tells what the gang is: the owning workload knows better than its pods. Of a gang that
    runs, the members that run say how large it is, and what the others say does not matter.
    """
    everyone = sorted(members, key=lambda member: member.seniority)
    live = [member for member in everyone if member.is_live]
    bound = tuple(member for member in live if member.pod.node)
    failed = [member for member in everyone if member.pod.phase == "Failed"]
    # Of a driver and its workers only the driver declares anything, and it may be the one lost.
    spec = spec_of(_said((*bound, *live)), _said(failed), _by_leaf(everyone))
    if spec is not None and not spec.is_said:
        _constrain(everyone, spec)
    elif spec is not None:
        _liken(everyone, spec)
        gone = _named_now(gone, everyone)
    if spec is not None and not spec.lifecycle.remembers_succeeded:
        _leave_deleted(everyone)
    highest_priority = max((member.pod.priority for member in live), default=0)
    if spec is None:
        return MembershipStatus(
            bound,
            members_live=len(live),
            highest_priority=highest_priority,
            problem=why_invalid(live, None, runs=bool(bound)),
        )
    if not spec.lifecycle.remembers_succeeded:
        gone = NONE_GONE
    candidates = [member for member in live if not member.pod.node and not member.flaw]
    mismatched = _mismatched(candidates, spec) if bound else ()
    is_over = not bound and _has_ended(everyone)
    places = 0 if is_over else _places(everyone, bound, spec, gone)
    fit_to_join = _without(candidates, mismatched)
    places_left = _places_left(spec, everyone, gone)
    outside = _outside(fit_to_join, places, places_left)
    joining = tuple(_without(fit_to_join, outside))
    ready = tuple(member for member in joining if member.is_ready)
    settled = minimum.by_leaf(spec, _settled(everyone, bound, spec, gone))
    has = settled + minimum.by_leaf(spec, (each.leaf for each in ready))
    may_be_apart = spec.is_elastic or (bool(bound) and spec.lifecycle.repairs_together)
    begun = minimum.begun(settled, runs=bool(bound))
    apart = _apart(spec, ready, has, begun) if may_be_apart else ()
    unbound = tuple(_without(ready, apart)) if apart else ready
    problem = why_invalid(live, spec, joining, runs=bool(bound))
    return MembershipStatus(
        bound,
        joining,
        unbound if not problem else (),
        apart if not problem else (),
        # No pod is one too many of a gang that is invalid.
        outside if not problem else (),
        mismatched,
        members_live=len(live),
        vacant=places - len(joining),
        lacking=_lacking(spec, places_left),
        gone=gone,
        spec=spec,
        to_come=_to_come(spec, live, failed if bound else ()),
        is_over=is_over,
        is_complete=not problem and _is_complete(spec, unbound, places, len(joining), has),
        settled=settled,
        priority=_priority(spec, unbound),
        lowest_priority=min((member.pod.priority for member in unbound), default=0),
        highest_priority=highest_priority,
        problem=problem,
    )


def _mismatched(candidates: Iterable[Member], spec: GangSpec) -> tuple[Member, ...]:
    """The newcomers that declare another size than the members that run."""
    return tuple(
        each for each in candidates if spec.is_said and each.said.pods not in (None, spec.pods)
    )


def _has_ended(members: Iterable[Member]) -> bool:
    """Whether a member has ended that may not be retried: then no other pod joins."""
    return any(each.pod.is_finished and not each.said.is_retriable for each in members)


def _priority(spec: GangSpec, unbound: Iterable[Member]) -> int:
    """What orders the gang among others."""
    if spec.priority is not None:
        return spec.priority
    return max((member.pod.priority for member in unbound), default=0)


def _leave_deleted(members: Iterable[Member]) -> None:
    """Have pods that are deleted count no more, also where they succeeded before that.

    They are soon gone, and then nothing tells what they did: so it is known from now on.
    """
    for each in members:
        each.was_stopped = each.has_succeeded and each.pod.is_terminating


def _by_leaf(members: Iterable[Member]) -> Mapping[str, LeafPods]:
    """Those of each leaf that live or have succeeded."""
    priorities: dict[str, list[int]] = {}
    for each in members:
        if each.is_live or (each.has_succeeded and not each.pod.is_terminating):
            priorities.setdefault(each.leaf, []).append(each.pod.priority)
    return {leaf: LeafPods(len(its), max(its)) for leaf, its in priorities.items()}


def _without(members: Iterable[Member], others: Iterable[Member]) -> list[Member]:
    """The members that are none of the others: the same pod is the same member."""
    left_out = {each.pod.uid for each in others}
    return [each for each in members if each.pod.uid not in left_out]


def _constrain(members: Iterable[Member], spec: GangSpec) -> None:
    """Give members the constraints that objects declare of their leaves."""
    declared = {leaf.name: leaf for leaf in spec.leaves() if leaf.constraint is not None}
    for member in members if declared else ():
        leaf = declared.get(member.leaf)
        if leaf is not None and leaf.constraint is not None:
            member.constraint, member.slices = leaf.constraint, leaf.slices


def leaf_by_kind(spec: GangSpec, named: Iterable[tuple[_Kind, str]]) -> Mapping[_Kind, str]:
    """The leaf of a group's pods that name none, by their kind: that of those which name one.

    The webhook names one on each pod; pods that were created without it are the same pods. "" where
    it may be one of several leaves: nothing tells which.
    `named`: kind and leaf of the pods, "" for those without one.
    """
    leaves: dict[_Kind, str] = {}
    if not spec.is_said or any(leaf.name for leaf in spec.leaves()):
        return leaves  # of the leaves that a driver declares, pods say themselves of which they are
    for kind, name in named:
        if name and leaves.setdefault(kind, name) != name:
            leaves[kind] = ""
    return leaves


def _liken(members: Sequence[Member], spec: GangSpec) -> None:
    """Give members of a group that name no leaf that of those of their kind."""
    if all(member.leaf for member in members):
        return
    leaves = leaf_by_kind(spec, ((member.kind, member.named_leaf) for member in members))
    if not leaves or _started_with_others(members):
        return
    for member in members:
        member.like = member.like or leaves.get(member.kind, "")


def _started_with_others(members: Iterable[Member]) -> bool:
    """Whether the gang started with pods of a set of which none is left."""
    started = next((each.started_with for each in members if each.started_with), ())
    there = {name for each in members for name in (each.pod_set, each.digest)} if started else ()
    return any(name not in there for name, _ in started)


def _named_now(pods: Mapping[str, int], members: Iterable[Member]) -> Mapping[str, int]:
    """Pods by pod set, for those that had no name when they were counted and have one now."""
    names = {member.digest: member.pod_set for member in members if member.like}
    if not names:
        return pods
    found: Counter[str] = Counter()
    for name, count in pods.items():
        found[names.get(name, name)] += count
    return found


def _said(members: Iterable[Member]) -> tuple[Said, ...]:
    """What members say, each thing once, in their order."""
    return tuple({id(each.said): each.said for each in members}.values())


def _places(
    everyone: list[Member], bound: tuple[Member, ...], spec: GangSpec, gone: Mapping[str, int]
) -> int:
    """How many members may join those that run."""
    places = spec.pods - len(bound)
    if spec.lifecycle.counts_succeeded:
        places -= sum(member.is_done for member in everyone)
    places -= sum(gone.values())
    return max(places, 0)


def _places_left(
    spec: GangSpec, everyone: Sequence[Member], gone: Mapping[str, int]
) -> Counter[str]:
    """How many more pods each pod set may have; a pod set that is not in it, any number.

    Declared by leaf; of a gang whose pods tell no leaves apart, what it started with says.
    """
    pods = Counter({leaf.name: leaf.pods for leaf in spec.leaves() if leaf.name})
    if not pods:
        # Once nothing of it runs it starts anew, with whatever pods come then: those that have
        # failed may be of an earlier start.
        counted = (each.started_with for each in everyone if _counts(each, spec))
        started = dict(next(filter(None, counted), ()))
        if sum(started.values()) != spec.pods:
            return Counter()  # it does not run, or its size has changed since it started
        pods.update(_named_now(started, everyone))
    for member in everyone:
        if member.pod_set in pods and _counts(member, spec):
            pods[member.pod_set] -= 1
    for pod_set in gone.keys() & pods.keys():
        pods[pod_set] -= gone[pod_set]
    return pods


def _counts(member: Member, spec: GangSpec) -> bool:
    """Whether no other pod may take the member's part: it runs, or has done its work."""
    is_done = spec.lifecycle.counts_succeeded and member.is_done
    return is_done or (member.is_live and bool(member.pod.node))


def _outside(
    candidates: Sequence[Member], places: int, places_left: Counter[str]
) -> tuple[Member, ...]:
    """The candidates that are one too many, of all or of their pod set; the others take a place.

    The ungated stay, then the older: KEP-976 "Retrying Failed Pods", highest creationTimestamp.
    """
    by_age = sorted(candidates, key=lambda each: (each.is_gated, each.pod.created, each.pod.name))
    outside: list[Member] = []
    for member in by_age:
        name = member.pod_set if places_left else ""
        if places <= 0 or (name in places_left and places_left[name] <= 0):
            outside.append(member)
        else:
            places -= 1
            if name in places_left:
                places_left[name] -= 1
    return tuple(outside)


def _lacking(spec: GangSpec, places_left: Counter[str]) -> Mapping[str, int] | None:
    """How many pods of each set are missing in a gang that remembers what it started with."""
    if not places_left or any(leaf.name for leaf in spec.leaves()):
        return None
    return {pod_set: max(pods, 0) for pod_set, pods in places_left.items()}


def _settled(
    everyone: Iterable[Member],
    bound: Iterable[Member],
    spec: GangSpec,
    gone: Mapping[str, int],
) -> Iterator[str]:
    """The leaf of each pod that runs, or has succeeded and still counts."""
    yield from (member.leaf for member in bound)
    if spec.lifecycle.counts_succeeded:
        yield from (member.leaf for member in everyone if member.is_done)
        yield from (name for name, pods in gone.items() for _ in range(pods))


def _apart(
    spec: GangSpec, ready: Sequence[Member], there: minimum.Pods, begun: minimum.Pods
) -> tuple[Member, ...]:
    """The members whose part of the gang is not needed, and not whole yet."""
    left_out = minimum.left_out(spec, there, begun)
    if not left_out:
        return ()
    names = minimum.names_of(spec)
    return tuple(each for each in ready if minimum.leaf_of(names, each.leaf) in left_out)


def _is_complete(
    spec: GangSpec, unbound: Sequence[Member], places: int, joining: int, there: minimum.Pods
) -> bool:
    """Whether there are as many unbound members as it takes to start."""
    if spec.starts_with is None and not spec.reserves_all and spec.is_elastic:
        return bool(unbound) and minimum.has_enough(spec, there)
    needed = joining if spec.reserves_all or spec.starts_with == 0 else places
    return len(unbound) >= (min(needed, spec.starts_with) if spec.starts_with else needed) > 0


def _to_come(
    spec: GangSpec, live: Sequence[Member], failed: Sequence[Member]
) -> tuple[LeafSpec, ...]:
    """The leaves whose pods are like what is declared of them.

    Of a driver that has failed, but for its own: a new driver goes on with the others.
    """
    if not spec.is_said or any(each.said.leaves for each in live):
        return tuple(leaf for leaf in spec.leaves() if leaf.like is not None)
    for driver in failed:
        if driver.said.leaves:
            return tuple(leaf for leaf in driver.said.leaves if leaf.name != driver.leaf)
    return ()
