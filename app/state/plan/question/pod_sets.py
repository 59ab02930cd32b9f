"""A gang's unplanned members as pod sets, and which of these must lie together.

    members ──pod_sets_of──▶ pod sets ──units_of──▶ units, inside the groups of the gang's spec

A pod set is members that are identical to the search: same leaf, request and shape, and narrowed
to the same nodes. A unit is pod sets that share one constraint: a pod set alone, a leader and its
workers, or a leaf whose pods are not alike or were narrowed to different nodes.

Members that run or have a node already are settled: never in a pod set, but the rest has to be
where they are, by the constraint of the unit and by those of the groups around it; and where the
other gangs of its family are, by theirs.
Source: kueue pkg/cache/scheduler/tas_flavor_snapshot.go (v0.16), leader and workers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from app.dialects import pod_set_groups
from app.dialects.spec import ANYWHERE, GangSpec, GroupSpec
from app.state.cache.eligibility.node_refusals import Shaped
from app.state.gang.families import NOTHING, Shared
from app.state.gang.gang import Gang
from app.state.gang.members import minimum
from app.state.gang.members.member import Member
from topology.model.request import Constraint, Slice

Settled = tuple[Member, str]  # a member that no plan may move, and its node
SetKey = tuple[object, ...]  # names a pod set: `Member.role`


@dataclass(frozen=True, slots=True)
class Around:
    """A constraint that settled members share with those that are to be placed."""

    constraint: Constraint
    nodes: tuple[str, ...]
    """Of the settled members, sorted."""
    family: str = ""
    """What shares it with other gangs; the nodes may be theirs. "": the gang alone."""
    is_across: bool = False
    """Members on other topologies share it, whose nodes may lack labels of this one."""


@dataclass(frozen=True, slots=True)
class PodSetMembers:
    """Members that are one pod set to the search, the unplanned and the settled ones apart."""

    unplanned: tuple[Member, ...]
    settled: tuple[Settled, ...] = ()
    """Of the same leaf, request and shape."""
    kept: tuple[str, ...] = ()
    """Nodes of those settled members that fill slices of this pod set, sorted."""
    around: tuple[Around, ...] = ()
    """Where settled members are: of the same unit, then of each group around it."""
    groups: tuple[GroupSpec, ...] = ()
    """The groups of the gang's spec around it that have a constraint, widest first."""
    allowed: frozenset[str] | None = None
    """Nodes these members were narrowed to; None: they were not."""
    is_split: bool = False
    """Another pod set has pods of the same leaf, request and shape, narrowed to other nodes."""
    needed: int | None = None
    """How many of the unplanned ones have to be placed; None: all of them."""

    @property
    def constraint(self) -> Constraint:
        return self.unplanned[0].constraint

    @property
    def slices(self) -> tuple[Slice, ...]:
        return self.unplanned[0].slices

    @property
    def shaped(self) -> Shaped:
        return (self.unplanned[0].pod.request, self.unplanned[0].shape)

    @property
    def key(self) -> SetKey:
        return self.unplanned[0].role

    @property
    def unit(self) -> str:
        """The name that a leader and its workers share, "" where there is none."""
        return self.unplanned[0].pod_set_group

    @property
    def together(self) -> object:
        """Equal for pod sets with one constraint between them.

        The pods of a leaf that has a name are one pod set to its owner, whatever webhooks have made
        of some of them.
        """
        return self.unit or _together(self.unplanned[0])

    @property
    def pods(self) -> int:
        """Pods of the whole pod set, as far as is known here."""
        return len(self.unplanned) + len(self.settled)

    @property
    def levels(self) -> Iterator[str]:
        """Every level key that a constraint on it names."""
        for constraint in (self.constraint, *(group.constraint for group in self.groups)):
            yield from levels_of(constraint)
        for part in self.slices:
            yield part.level

    @property
    def required(self) -> Iterator[str]:
        """The level keys that it must have in common, its groups' included."""
        for constraint in (self.constraint, *(group.constraint for group in self.groups)):
            if constraint.required:
                yield constraint.required


@dataclass(frozen=True, slots=True)
class Unit:
    """Pod sets, by index, that share one constraint."""

    pod_sets: tuple[int, ...]
    leader: int | None = None
    """The pod set, not among `pod_sets`, that is one pod and sits with them."""


def levels_of(constraint: Constraint) -> Iterator[str]:
    """Every level key that a constraint names."""
    for level in (constraint.required, constraint.preferred):
        if level:
            yield level


def pod_sets_of(
    gang: Gang, unplanned: tuple[Member, ...], shared: Shared = NOTHING
) -> tuple[PodSetMembers, ...]:
    """Members of the gang that are to be placed by pod set, the most demanding one first.

    shared: what holds for them because of other gangs.
    """
    found_settled: dict[SetKey, list[Settled]] = {}
    for member, node in gang.settled():
        found_settled.setdefault(member.role, []).append((member, node))
    settled = {key: tuple(members) for key, members in found_settled.items()}
    common = _common(unplanned)
    found: dict[tuple[SetKey, frozenset[str] | None], list[Member]] = {}
    for member in unplanned:
        found.setdefault((member.role, common.get(member.role, member.allowed)), []).append(member)
    pod_sets = [
        PodSetMembers(tuple(members), allowed=allowed) for (_, allowed), members in found.items()
    ]
    needed = _needed(gang, unplanned)
    variants = Counter(pod_set.key for pod_set in pod_sets)
    context = _Context(gang.membership.spec, settled, shared)
    free = {key: Counter(node for _, node in members) for key, members in settled.items()}
    for index, pod_set in enumerate(pod_sets):
        is_split = variants[pod_set.key] > 1
        groups = context.groups(pod_set.unplanned[0].leaf)
        pod_sets[index] = replace(
            pod_set,
            settled=settled.get(pod_set.key, ()),
            kept=_kept(pod_set, free.get(pod_set.key, Counter()), is_split=is_split),
            around=context.around(pod_set, groups),
            groups=groups,
            is_split=is_split,
            needed=None
            if needed is None
            else sum(each.pod.uid in needed for each in pod_set.unplanned),
        )
    return tuple(sorted(pod_sets, key=_demand, reverse=True))


def _needed(gang: Gang, unplanned: Iterable[Member]) -> set[str] | None:
    """The uids of those that the gang needs beside its settled members; None: all of them.

    Of each leaf the first ones by seniority, pods that exist before placeholders. Nothing more is
    needed of a leaf that runs, unless the gang is repaired together.
    """
    spec = gang.elastic_spec
    if spec is None:
        return None
    settled, names = gang.settled_by_leaf(), minimum.names_of(spec)
    is_repaired_singly = gang.has_started and not spec.lifecycle.repairs_together
    left = {
        leaf.name: leaf.least - settled.get(leaf.name, 0)
        for leaf in spec.leaves()
        if not (is_repaired_singly and settled.get(leaf.name, 0))
    }
    needed: set[str] = set()
    for member in in_turn(gang, unplanned):
        leaf = minimum.leaf_of(names, member.leaf)
        if left.get(leaf, 0) > 0:
            left[leaf] -= 1
            needed.add(member.pod.uid)
    return needed


def in_turn(gang: Gang, members: Iterable[Member]) -> list[Member]:
    """The members in the order in which they get places where there are too few of them."""
    return sorted(members, key=lambda each: (each.pod.uid in gang.placeholders, each.seniority))


@dataclass(frozen=True, slots=True)
class _Context:
    """What surrounds a pod set: the groups of the spec, and where settled members are."""

    spec: GangSpec | None
    settled: Mapping[SetKey, Sequence[Settled]]
    shared: Shared
    _around: dict[tuple[object, ...], tuple[Around, ...]] = field(default_factory=dict)
    """By kind of pods: where each was narrowed to a node of its own, one has thousands of sets."""

    def groups(self, leaf: str) -> tuple[GroupSpec, ...]:
        """The groups around a leaf that have a constraint, widest first."""
        path = () if self.spec is None else self.spec.path_to(leaf)
        return tuple(group for group in path if group.constraint != ANYWHERE)

    def around(self, pod_set: PodSetMembers, groups: Iterable[GroupSpec]) -> tuple[Around, ...]:
        """The constraints that settled members, or other gangs, share with it."""
        kind = (pod_set.key, pod_set.unplanned[0].leaf, pod_set.constraint)
        if kind not in self._around:
            self._around[kind] = tuple(self._found(pod_set, groups))
        return self._around[kind]

    def _found(self, pod_set: PodSetMembers, groups: Iterable[GroupSpec]) -> Iterator[Around]:
        nodes = self._of_unit(pod_set)
        if nodes:
            yield Around(pod_set.constraint, nodes)
        for group in groups:
            nodes = tuple(
                sorted(
                    node
                    for key, members in self.settled.items()
                    if group in self.groups(str(key[0]))
                    for _, node in members
                )
            )
            if nodes:
                is_across = self.spec is not None and self.spec.is_across(group)
                yield Around(group.constraint, nodes, is_across=is_across)
        if self.shared.nodes:
            yield Around(self.shared.constraint, self.shared.nodes, self.shared.name)

    def _of_unit(self, pod_set: PodSetMembers) -> tuple[str, ...]:
        beside = [
            node
            for members in self.settled.values()
            for member, node in members
            if pod_set.unit and member.pod_set_group == pod_set.unit
        ]
        together = pod_set.together
        alike = (
            node
            for members in self.settled.values()
            if _together(members[0][0]) == together
            for _, node in members
        )
        return tuple(sorted(beside or alike))


def are_together(one: Member, other: Member) -> bool:
    """Whether two members have one constraint between them, but for a leader and its workers."""
    return _together(one) == _together(other)


def _together(member: Member) -> object:
    """Equal for members with one constraint between them, but for a leader and its workers."""
    name = member.named_leaf
    return (name, member.constraint) if name else member.role


def _common(unplanned: tuple[Member, ...]) -> dict[SetKey, frozenset[str] | None]:
    """The nodes that all pods of a pod set with slices may use, as a slice may not be split."""
    common: dict[SetKey, frozenset[str] | None] = {}
    for member in unplanned:
        if member.slices:
            known = common.setdefault(member.role, member.allowed)
            if known is None:
                common[member.role] = member.allowed
            elif member.allowed is not None:
                common[member.role] = known & member.allowed
    return {key: nodes for key, nodes in common.items() if nodes is None or nodes}


def are_narrowed_apart(pod_sets: Iterable[PodSetMembers]) -> bool:
    """Whether pods that are alike were narrowed to nodes of which none serves them all."""
    common: dict[SetKey, frozenset[str]] = {}
    for each in pod_sets:
        if each.is_split and each.allowed is not None:
            known = common.get(each.key)
            common[each.key] = each.allowed if known is None else known & each.allowed
    return not all(common.values())


def _kept(pod_set: PodSetMembers, free: Counter[str], *, is_split: bool) -> tuple[str, ...]:
    """Take out of `free` the nodes where pods of this pod set's slices run."""
    if not pod_set.slices:
        return ()
    here: Iterable[str] = free
    if is_split and pod_set.allowed is not None:
        here = pod_set.allowed & free.keys()
    return tuple(node for node in sorted(here) for _ in range(free.pop(node)))


def _demand(pod_set: PodSetMembers) -> list[tuple[str, int]]:
    # Devices before cpu and memory before the pod itself: scarce resources decide first.
    amounts = dict(pod_set.shaped[0])
    return sorted(amounts.items(), key=lambda row: ("/" in row[0], row[0], row[1]), reverse=True)


def units_of(pod_sets: tuple[PodSetMembers, ...]) -> tuple[Unit, ...]:
    """The pod sets, each in one unit, in the order of the first pod set of each."""
    found: dict[object, list[int]] = {}
    for index, pod_set in enumerate(pod_sets):
        found.setdefault(pod_set.together, []).append(index)
    return tuple(_unit(pod_sets, indices) for indices in found.values())


def _unit(pod_sets: tuple[PodSetMembers, ...], indices: list[int]) -> Unit:
    has_leader = pod_sets[indices[0]].unit and len({pod_sets[each].key for each in indices}) > 1
    if not has_leader:
        return Unit(tuple(indices))
    # Of two single pods the second is the leader, as in Kueue.
    leader = min(reversed(indices), key=lambda index: pod_sets[index].pods)
    return Unit(tuple(index for index in indices if index != leader), leader)


def flaw_in_units(gang: Gang) -> str:
    """What is invalid about the gang's leaders and workers; "" if nothing is.

    Once members run or have succeeded, the pod sets are not complete and are not checked.
    """
    if gang.elastic_spec is not None:
        group = next((m.pod_set_group for m in gang.members.values() if m.pod_set_group), "")
        if group:
            return (
                f"pod set group {group}: a leader and its workers are not placed in a gang that"
                " may start without some of its pods"
            )
    has_ended = gang.membership.gone or any(member.is_done for member in gang.members.values())
    has_begun = gang.has_started or has_ended
    units: dict[str, dict[SetKey, list[Member]]] = {}
    for member in () if has_begun else (*gang.unplanned(), *gang.planned()):
        if member.pod_set_group:
            sets = units.setdefault(member.pod_set_group, {})
            sets.setdefault(member.role, []).append(member)
    return next((flaw for name, sets in units.items() if (flaw := _flaw(name, sets))), "")


def _flaw(name: str, sets: dict[SetKey, list[Member]]) -> str:
    firsts = [members[0] for members in sets.values()]
    parts = [
        pod_set_groups.Part(
            len(members),
            first.constraint.required,
            first.constraint.preferred,
            f"'metadata.annotations' of {_named(first)}",
        )
        for first, members in zip(firsts, sets.values(), strict=True)
    ]
    found = pod_set_groups.flaws(name, parts)
    return next((f"{_named(firsts[at])}: {flaw}" for at, flaw in found), "")


def _named(member: Member) -> str:
    return f"pod {member.pod.namespace}/{member.pod.name}"
