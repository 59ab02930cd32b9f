"""A gang with groups inside groups, in levels of one tree: what `walk` places.

    Part ── members ──┬─ Part with a unit     a pod set, or a leader and its workers
                      └─ Part with members

A group that is one unit (see `unit`) is a leaf here as well. A pod set that names no level is
filled by the rule of the nearest group around it that does, as Kueue fills a group of one.

| constraint              | `levels`, in the order tried | then `may_spread`       |
|-------------------------|------------------------------|-------------------------|
| required R              | R                            | no                      |
| preferred P             | P, then each wider one       | yes: where its group is |
| preferred P, required R | P, then each wider one to R  | no                      |
| none                    | -                            | yes: where its group is |

Source: KAI-Scheduler pkg/scheduler/plugins/topology (v0.17), preferred and required levels.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator
from dataclasses import dataclass, replace

from topology.errors import InvalidRequest
from topology.fit.unit import Lead, Unit, asked_levels, units_of
from topology.model.levels import index_of
from topology.model.request import Constraint, Gang, Group, PodSet, Strategy
from topology.model.tree import Tree

Kind = tuple[tuple[int, ...], Hashable]
"""Request and shape: pods of one kind may swap places."""

Demand = tuple[tuple[Kind, int], ...]
"""Kinds of pods, and how many of each."""

DEPTH_MAX = 16  # groups inside one another; as many as levels there may be
SMALL = 16  # pods of a pod set of which every way over the nodes may be tried


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """A pod set or a group, and where to look for a place."""

    name: str
    levels: tuple[int, ...]
    """Levels at which one domain is tried, in that order."""
    may_spread: bool
    """All of the place of the group around it will do."""
    members: tuple[Part, ...]
    needed: int
    """Members that must have a place; 0 for a leaf."""
    unit: Unit | None
    """What a leaf places; None for a group."""
    floor: Unit | None
    """The same with as few pods as will do."""
    demand: Demand
    """At least so many pods of each kind are placed with it."""
    is_optional: bool
    """Nothing of it is needed: it counts as placed, wherever it is."""
    turn: int
    """The first of its pod sets'."""

    @property
    def is_elastic(self) -> bool:
        """It may be placed without some of its pods."""
        if self.unit is not None:
            return self.unit is not self.floor
        return self.needed < len(self.members) or any(part.is_elastic for part in self.members)

    @property
    def is_loose(self) -> bool:
        """Each of its members may be placed without the others, wherever the group may be."""
        return self.unit is None and not self.levels and self.needed <= 1

    @property
    def is_small(self) -> bool:
        """So few pods per pod set that every way over the nodes can be tried."""
        if self.unit is None:
            return all(part.is_small for part in self.members)
        return self.unit.workers.pods <= SMALL

    def leaves(self) -> Iterator[Part]:
        """Every part with a unit, in the order they are written."""
        if self.unit is not None:
            yield self
        for member in self.members:
            yield from member.leaves()

    def kinds(self) -> list[Kind]:
        """Every kind of its pods once, in the order they are written."""
        units = (leaf.unit for leaf in self.leaves() if leaf.unit is not None)
        return list(dict.fromkeys(kind_of(one) for unit in units for one in unit.pod_sets))


def kind_of(pods: PodSet | Lead) -> Kind:
    """The kind of the pods of a set, or of a leader."""
    return pods.request, pods.shape


def is_nested(gang: Gang) -> bool:
    """Whether it is more than a list of units, so that `search.find` refuses it."""
    root = gang.root
    if any(pod_set.needed not in (None, pod_set.pods) for pod_set in gang.pod_sets()):
        return True
    if root.needed not in (None, len(root.members)):
        return True
    if root.constraint != Constraint():
        return not _is_unit(root)
    return not all(
        isinstance(member, PodSet) or _is_unit(member) or _is_plain(member)
        for member in root.members
    )


def _is_plain(group: Group) -> bool:
    """Pod sets without any constraint, which are placed one by one."""
    return (
        group.constraint == Constraint()
        and group.needed in (None, len(group.members))
        and all(
            isinstance(member, PodSet) and member.constraint == Constraint()
            for member in group.members
        )
    )


def _is_unit(group: Group) -> bool:
    """One pod set, or one pod and its workers, to which the group's constraint applies."""
    pod_sets = [member for member in group.members if isinstance(member, PodSet)]
    if len(pod_sets) < len(group.members) or len(pod_sets) > 2:
        return False
    if group.needed not in (None, len(pod_sets)):
        return False
    if any(pod_set.constraint != Constraint() for pod_set in pod_sets):
        return False
    if len(pod_sets) == 1:
        return True
    is_whole = all(one.needed in (None, one.pods) and one.leader is None for one in pod_sets)
    return is_whole and min(one.pods for one in pod_sets) == 1


def root_of(tree: Tree, gang: Gang, unconstrained: Strategy) -> Part:
    """The gang as a part.

    Raises: InvalidRequest naming an unknown level, levels in an invalid order,
        or the first setting that is not enforced.
    """
    root = gang.root
    _check_depth(root)
    # An unconstrained root lists its members; it makes no leader of one of them.
    if root.constraint != Constraint() and _is_unit(root):
        return _leaf(tree, root, Constraint(), unconstrained)
    return _group(tree, root, Constraint(), unconstrained)


def _check_depth(root: Group) -> None:
    layer: list[Group] = [root]
    for _ in range(DEPTH_MAX):
        layer = [one for group in layer for one in group.members if isinstance(one, Group)]
    if layer:
        raise InvalidRequest(
            f"group {layer[0].name}: more than {DEPTH_MAX} groups around it are not enforced yet"
        )


def _part(tree: Tree, member: Group | PodSet, around: Constraint, unconstrained: Strategy) -> Part:
    if isinstance(member, PodSet) or _is_unit(member):
        return _leaf(tree, member, around, unconstrained)
    return _group(tree, member, around, unconstrained)


def _group(tree: Tree, member: Group, around: Constraint, unconstrained: Strategy) -> Part:
    constraint = member.constraint
    if constraint.balanced:
        raise InvalidRequest(
            f"group {member.name}: balanced placement of more than one pod set is not enforced yet"
        )
    levels, may_spread = _levels(tree, f"group {member.name}", constraint)
    inherited = around if constraint == Constraint() else constraint
    members = tuple(_part(tree, one, inherited, unconstrained) for one in member.members)
    needed = len(members) if member.needed is None else member.needed
    return Part(
        is_optional=needed <= sum(part.is_optional for part in members),
        name=member.name,
        levels=levels,
        may_spread=may_spread,
        members=members,
        needed=needed,
        unit=None,
        floor=None,
        demand=least(members, needed),
        turn=min(part.turn for part in members),
    )


def least(members: tuple[Part, ...], needed: int) -> Demand:
    """Pods of each kind that are placed whichever members are: those that need least."""
    found: dict[Kind, list[int]] = {kind: [] for part in members for kind, _ in part.demand}
    for part in members:
        for kind, pods in () if part.is_optional else part.demand:
            found[kind].append(pods)
    # Members that need none of a kind come first; they are not listed, for there may be thousands.
    spare = len(members) - needed
    least = [
        (kind, sum(sorted(counts)[: max(0, len(counts) - spare)])) for kind, counts in found.items()
    ]
    return tuple((kind, pods) for kind, pods in least if pods)


def wanted(part: Part) -> Part:
    """An optional part as one that is not: the least of it that is of any use."""
    if part.unit is not None:
        return replace(part, is_optional=False)
    members = tuple(wanted(one) if one.is_optional else one for one in part.members)
    needed = max(1, part.needed)
    return replace(
        part,
        members=members,
        needed=needed,
        demand=least(members, needed),
        is_optional=False,
    )


def _levels(tree: Tree, owner: str, constraint: Constraint) -> tuple[tuple[int, ...], bool]:
    """The table above."""
    required, preferred = asked_levels(tree, owner, constraint)
    if preferred is None:
        return ((), True) if required is None else ((required,), False)
    widest = 0 if required is None else required
    return tuple(range(preferred, widest - 1, -1)), required is None


def _leaf(tree: Tree, member: Group | PodSet, around: Constraint, unconstrained: Strategy) -> Part:
    levels, may_spread = _levels(tree, f"pod set {member.name}", member.constraint)
    if member.constraint == Constraint():
        member = _inheriting(tree, member, around)
    unit = _unit(tree, _with_pods(member, is_floor=False), unconstrained)
    least = _with_pods(member, is_floor=True)
    floor = unit if _pods(least) == unit.workers.pods else _unit(tree, least, unconstrained)
    demand: Counter[Kind] = Counter()
    demand[kind_of(floor.workers)] += floor.workers.pods
    if floor.leader is not None:
        demand[kind_of(floor.leader)] += 1
    return Part(
        name=member.name,
        levels=levels,
        may_spread=may_spread,
        members=(),
        needed=0,
        unit=unit,
        floor=floor,
        demand=tuple(demand.items()),
        is_optional=_needs_none(member),
        turn=min(pod_set.turn for pod_set in _pod_sets(member)),
    )


def _inheriting(tree: Tree, member: Group | PodSet, around: Constraint) -> Group | PodSet:
    """With the constraint of the group around it, unless its slices are wider than that."""
    narrowest = around.preferred or around.required
    for pod_set in _pod_sets(member):
        if pod_set.slices and narrowest is not None:
            level = index_of(tree.levels, pod_set.slices[0].level, f"pod set {pod_set.name}")
            if level < tree.levels.index(narrowest):
                return member
    return replace(member, constraint=replace(around, balanced=False))


def _pod_sets(member: Group | PodSet) -> Iterator[PodSet]:
    """Those of a unit."""
    for pod_set in member.members if isinstance(member, Group) else (member,):
        assert isinstance(pod_set, PodSet), "a unit has no groups inside"
        yield pod_set


def _with_pods(member: Group | PodSet, *, is_floor: bool) -> Group | PodSet:
    """All its pods, or the fewest whole slices that are enough, and at least one."""
    if isinstance(member, Group):
        return replace(
            member, members=tuple(_with_pods(one, is_floor=is_floor) for one in member.members)
        )
    pods = member.pods
    if is_floor and member.needed is not None:
        size = member.slices[0].pods if member.slices else 1
        pods = min(pods, -(-max(1, member.needed) // size) * size)
    return replace(member, pods=pods, needed=None)


def _needs_none(member: Group | PodSet) -> bool:
    if isinstance(member, Group):
        return all(_needs_none(one) for one in member.members)
    return member.needed == 0


def _pods(member: Group | PodSet) -> int:
    if isinstance(member, Group):
        return max(_pods(one) for one in member.members)
    return member.pods


def _unit(tree: Tree, member: Group | PodSet, unconstrained: Strategy) -> Unit:
    """As `unit` makes it of a gang that has nothing else."""
    [unit] = units_of(tree, Gang("part", Group(member.name, (member,))), unconstrained)
    return unit


def grown(unit: Unit, pods: int) -> Unit:
    """The unit with more of its pods: whole slices, or all of them."""
    layers = replace(unit.layers, remainder=pods % unit.layers.size)
    return replace(unit, workers=replace(unit.workers, pods=pods), layers=layers)
