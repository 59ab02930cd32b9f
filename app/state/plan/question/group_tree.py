"""A gang's groups and pod sets, as one request has them.

    groups of the spec ─┐
    units of pod sets ──┴─▶ root: Group ── members ──┬─ PodSet
                                                     └─ Group ── members ...

Members that have a node already are not in it: the masks keep the rest beside them, and beside the
other gangs of the family. Of a gang that may start without some of its pods (`members/minimum.py`),
each group and pod set says what it needs beside those. Once such a gang runs, nothing is needed of
a group that runs, and its further pods are placed as they fit; but of a gang that is repaired
together all that a leaf lacks is, or none is placed. What has less than it needs comes before more
of what has enough, and of either the leaves in their turns.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from app.dialects.spec import ANYWHERE, GangSpec, GroupSpec, LeafSpec
from app.state.cache.books import Books
from app.state.cache.topology_books import TopologyBooks
from app.state.gang.gang import Gang
from app.state.gang.members import minimum
from app.state.plan.question.pins import is_held
from app.state.plan.question.pod_sets import PodSetMembers, Unit
from topology.model.request import Constraint, Group, Leader, PodSet
from topology.nested.complete import Kept

UNIT = "unit "  # what begins the names of groups that no user has named


@dataclass(frozen=True, slots=True)
class GroupTree:
    """Builds the root of one request, for one topology."""

    books: Books
    topology: TopologyBooks
    gang: Gang
    pod_sets: tuple[PodSetMembers, ...]
    units: tuple[Unit, ...]
    kept: Mapping[str, Kept]
    """(slot, pods) of settled members that fill slices, by pod set."""
    shared: Constraint
    """Of all gangs of its family."""
    is_balanced: bool

    def root(self) -> Group:
        """The gang as the placement core takes it.

        Raises: topology.errors.InvalidRequest.
        """
        spec = self.gang.elastic_spec
        if spec is not None:
            root = _something_of(_ElasticTree.of(self, spec).root())
        else:
            root = Group("gang", tuple(self._members(self.units, 0)))
        if self.is_pinned(self.units, self.shared):
            return root
        return replace(root, constraint=self.shared)

    @property
    def is_needed(self) -> bool:
        """Whether the gang needs something of it, beside what has a node already."""
        spec = self.gang.elastic_spec
        return spec is None or not _is_optional(_ElasticTree.of(self, spec).root())

    def _members(self, units: Sequence[Unit], depth: int) -> list[Group | PodSet]:
        """The units inside the groups from this depth on, in their order."""
        members: list[Group | PodSet] = []
        # By identity: two groups may have one name, inside different ones and beside each other.
        inside: dict[int, tuple[GroupSpec, list[Unit]]] = {}
        for unit in units:
            groups = self.pod_sets[unit.pod_sets[0]].groups
            if depth >= len(groups):
                members += self.of_unit(unit)
            else:
                group = groups[depth]
                inside.setdefault(id(group), (group, []))[1].append(unit)
        for group, of_group in inside.values():
            below = self._members(of_group, depth + 1)
            if self.is_pinned(of_group, group.constraint):
                members += below  # the masks keep them together
            else:
                name = f"group {depth} {group.name}"
                members.append(Group(name, tuple(below), group.constraint))
        return members

    def of_unit(self, unit: Unit) -> list[Group | PodSet]:
        """The pod sets of a unit, inside their common constraint if they have one."""
        constraint = self.pod_sets[unit.pod_sets[0]].constraint
        pod_sets = [
            self.pod_set(index, unit.leader if not place else None)
            for place, index in enumerate(unit.pod_sets)
        ]
        if len(pod_sets) == 1 or constraint == ANYWHERE or self._is_settled(unit):
            # Where members are settled already, the masks keep the rest together.
            return [*pod_sets]
        together = tuple(replace(each, constraint=ANYWHERE) for each in pod_sets)
        return [Group(f"{UNIT}{unit.pod_sets[0]}", together, constraint)]

    def _is_settled(self, unit: Unit) -> bool:
        constraint = self.pod_sets[unit.pod_sets[0]].constraint
        return self.is_pinned([unit], constraint)

    def is_pinned(self, units: Sequence[Unit], constraint: Constraint) -> bool:
        """Whether settled members share this constraint with one of the units."""
        return any(
            around.constraint == constraint and is_held(around, self.topology, self.books.nodes)
            for unit in units
            for index in unit.pod_sets
            for around in self.pod_sets[index].around
        )

    def pod_set(self, index: int, leader: int | None) -> PodSet:
        """One pod set. Where it has slices, the settled members count too: they fill slices."""
        pod_set = self.pod_sets[index]
        unplanned = len(pod_set.unplanned)
        pods = unplanned + sum(pods for _, pods in self.kept.get(str(index), ()))
        return PodSet(
            name=str(index),
            pods=pods,
            request=self._vector(pod_set),
            shape=str(index),
            constraint=self._constraint(pod_set, pods),
            needed=None if pod_set.needed is None else pod_set.needed + pods - unplanned,
            slices=pod_set.slices,
            leader=None if leader is None else self._leader(leader),
            # Of a gang that runs, members may have ended: its last slice is what is left. Of one
            # narrowed to several domains it is not known which slices those were.
            partial_last_slice=self.gang.has_started or pod_set.is_split,
            lacking=self._lacking(pod_set),
        )

    def _constraint(self, pod_set: PodSetMembers, pods: int) -> Constraint:
        """The pod set's own, balanced where that is set and has an effect.

        It has with a preferred level alone, and not for pods that leave a smaller last slice.
        Source: kueue pkg/cache/scheduler/tas_flavor_snapshot.go, TASBalancedPlacement.
        """
        levels = pod_set.constraint
        is_whole = not pod_set.slices or pods % pod_set.slices[0].pods == 0
        if self.is_balanced and levels.preferred and not levels.required and is_whole:
            return replace(levels, balanced=True)
        return levels

    def _leader(self, index: int) -> Leader:
        pod_set = self.pod_sets[index]
        name = shape = str(index)
        return Leader(name, self._vector(pod_set), shape, self._lacking(pod_set))

    def _vector(self, pod_set: PodSetMembers) -> tuple[int, ...]:
        return self.books.vector(pod_set.unplanned[0].pod.request)

    def _lacking(self, pod_set: PodSetMembers) -> str:
        return self.books.axis.lacking(pod_set.unplanned[0].pod.request)


@dataclass(frozen=True, slots=True)
class _ElasticTree:
    """The same for a gang that may start without some of its pods."""

    tree: GroupTree
    spec: GangSpec
    pod_sets: Mapping[str, Sequence[int]]
    """By leaf."""
    enough: Mapping[int, bool]
    """Of each part of the spec, by `id`: whether all that it needs has a node already."""
    begun: Mapping[int, bool]
    """Whether pods of this part have a node already."""
    turns: int
    """More than any leaf's turn."""

    @classmethod
    def of(cls, tree: GroupTree, spec: GangSpec) -> _ElasticTree:
        """The groups of this spec around the pod sets of the question."""
        gang, names = tree.gang, minimum.names_of(spec)
        pod_sets: dict[str, list[int]] = {}
        for index, pod_set in enumerate(tree.pod_sets):
            leaf = minimum.leaf_of(names, pod_set.unplanned[0].leaf)
            pod_sets.setdefault(leaf, []).append(index)
        settled = gang.settled_by_leaf()
        begun = minimum.any_of(spec.root, settled)
        turns = max((leaf.turn for leaf in spec.leaves()), default=0) + 1
        return cls(tree, spec, pod_sets, minimum.enough(spec.root, settled), begun, turns)

    def root(self) -> Group:
        """The groups of the spec, and beside them pods of leaves that the spec does not have."""
        root = self._group(self.spec.root, 0)
        strays = () if "" in minimum.names_of(self.spec) else self.pod_sets.get("", ())
        members: list[Group | PodSet] = [
            replace(self.tree.pod_set(index, None), needed=0) for index in strays
        ]
        return Group("gang", tuple(members if root is None else (*members, root)))

    def _group(self, spec: GroupSpec, depth: int) -> Group | None:
        """A group, if pods of it are to be placed."""
        built: list[tuple[bool, int, Group | PodSet]] = []
        needed = spec.least
        for each in spec.members:
            member = (
                self._leaf(each) if isinstance(each, LeafSpec) else self._group(each, depth + 1)
            )
            if member is not None:
                built.append((self._is_ready(each), _first_turn(member), member))
            elif self.enough[id(each)]:
                needed -= 1
        if not built:
            return None
        members = [member for *_, member in sorted(built, key=lambda each: each[:2])]
        if self.tree.gang.has_started and self.begun[id(spec)]:
            needed = 0
        return Group(
            f"group {depth} {spec.name}",
            tuple(members),
            ANYWHERE if self._is_pinned(members, spec.constraint) else spec.constraint,
            needed=min(max(needed, 0), len(members)),
        )

    def _leaf(self, spec: LeafSpec) -> Group | PodSet | None:
        """A leaf's pods: several pod sets where they are not alike, or were narrowed apart."""
        indices = self.pod_sets.get(spec.name, ())
        if not indices:
            return None
        turn = spec.turn + self.turns * self._is_ready(spec)
        members = [_at(turn, each) for each in self.tree.of_unit(Unit(tuple(indices)))]
        return members[0] if len(members) == 1 else Group(f"leaf {spec.name}", tuple(members))

    def _is_ready(self, spec: GroupSpec | LeafSpec) -> bool:
        """Whether the part has begun, and needs nothing more."""
        return self.enough[id(spec)] and self.begun[id(spec)]

    def _is_pinned(self, members: Sequence[Group | PodSet], constraint: Constraint) -> bool:
        indices = [index for member in members for index in _indices(member)]
        return self.tree.is_pinned([Unit(tuple(indices))], constraint)


def _indices(member: Group | PodSet) -> list[int]:
    """The pod sets at or below a member."""
    if isinstance(member, PodSet):
        return [int(member.name)]
    return [index for each in member.members for index in _indices(each)]


def _at(turn: int, member: Group | PodSet) -> Group | PodSet:
    """A member whose pod sets have this turn."""
    if isinstance(member, PodSet):
        return replace(member, turn=turn)
    return replace(member, members=tuple(_at(turn, each) for each in member.members))


def _first_turn(member: Group | PodSet) -> int:
    """The turn of the pod set at or below a member that comes first."""
    if isinstance(member, PodSet):
        return member.turn
    return min(map(_first_turn, member.members))


def _something_of(member: Group) -> Group:
    """The same if anything of it is needed, else so that some of it is: an empty plan is none."""
    if not _is_optional(member):
        return member
    return replace(member, members=tuple(map(_wanted, member.members)), needed=1)


def _wanted(member: Group | PodSet) -> Group | PodSet:
    """An optional member as one of which something is needed; any other stays."""
    if isinstance(member, Group):
        return _something_of(member)
    return replace(member, needed=1) if member.needed == 0 else member


def _is_optional(member: Group | PodSet) -> bool:
    """Whether nothing of it is needed, as the placement core counts."""
    if isinstance(member, PodSet):
        return member.needed == 0
    needed = len(member.members) if member.needed is None else member.needed
    return needed <= sum(map(_is_optional, member.members))
