"""What is placed in one go: a pod set, with its leader if it has one, in levels of one tree.

A gang is a list of units, placed in the order they are written, each as if the earlier ones
were there already:

| written as                                        | unit                                  |
|---------------------------------------------------|---------------------------------------|
| pod set in an unconstrained root                  | the pod set                           |
| pod set with a leader                             | the pod set and its leader            |
| group (or constrained root) of one pod set        | the pod set with the group's levels   |
| group of two pod sets, one of them of one pod     | workers and leader, the group's levels|
| unconstrained group of any other pod sets         | each on its own                       |

| constraint              | one domain is tried at           | several domains at  |
|-------------------------|----------------------------------|---------------------|
| required R              | R                                | never               |
| preferred P             | P, then each wider level up to 0 | level 0             |
| preferred P, required R | P, then each wider level up to R | never               |
| none                    | the node level                   | the node level      |
| none, with slices       | level 0                          | level 0             |

Anything else is placed by `walk`; here it raises InvalidRequest, "is not enforced yet".
Source: KEP-2724 "User-facing API"; kueue pkg/cache/scheduler/tas_flavor_snapshot.go (v0.16).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass, replace

from topology.errors import InvalidRequest
from topology.model.levels import index_of
from topology.model.request import Constraint, Gang, Group, Leader, PodSet, Slice, Strategy
from topology.model.tree import Tree


@dataclass(frozen=True, slots=True)
class Layers:
    """The slices of a pod set, in levels of one tree."""

    size: int
    """Pods in one slice of the outermost layer; 1 if there are no slices."""
    level: int
    """Level at which such a slice lies in one domain; the node level if there are none."""
    inner: tuple[int, ...]
    """Per level: a domain of it takes pods in multiples of this; 1 outside of inner layers."""
    named: tuple[tuple[int, int], ...] = ()
    """(level, pods in one slice) of every layer, outermost first."""
    remainder: int = 0
    """Pods in one more, smaller slice, which comes last."""

    @property
    def are_pods(self) -> bool:
        """There are no slices: each pod is one, on its node."""
        return self.size == 1 and self.level == len(self.inner) - 1

    def without_inner(self) -> Layers:
        """The outermost layer alone."""
        return replace(self, inner=(1,) * len(self.inner), named=self.named[:1])


@dataclass(frozen=True, slots=True)
class Lead:
    """The single pod that sits with the workers."""

    name: str
    request: tuple[int, ...]
    shape: Hashable
    lacking: str = ""

    @property
    def pods(self) -> int:
        """One, as `PodSet.pods` has it of the workers."""
        return 1


@dataclass(frozen=True, slots=True)
class Unit:
    """Workers and perhaps their leader, and the levels at which to look for a place."""

    workers: PodSet
    leader: Lead | None
    is_leader_first: bool
    """Which of the two the gang names first."""
    first: int
    """Level at which one domain is tried first."""
    last: int
    """Widest level at which one domain is tried."""
    may_spread: bool
    """Several domains of `last` will do if no single one does."""
    strategy: Strategy
    is_free: bool
    """It has neither a required nor a preferred level."""
    is_balanced: bool
    """The same many in every domain, if that can be had."""
    layers: Layers

    def check_remainder(self) -> None:
        """Refuses a smaller last slice beside what is counted in the same way.

        What a domain takes is counted without and with the one thing that exists once: the leader,
        or the smaller last slice (`fit`). Both at once, or a last slice whose inner slices are
        smaller as well, would need a count for each way to combine them; and balanced placement
        gives every domain the same whole slices. Such a pod set can be written as a group of two:
        the whole slices, and the rest with a required level.
        Raises: InvalidRequest.
        """
        if not self.layers.remainder:
            return
        beside = [f"leader {self.leader.name}"] if self.leader is not None else []
        beside += [f"slices of {layer.pods} in {layer.level}" for layer in self.workers.slices[1:]]
        beside += ["balanced placement"] if self.is_balanced else []
        if beside:
            raise InvalidRequest(
                f"pod set {self.workers.name}: partial_last_slice leaves a slice of "
                f"{self.layers.remainder} of {self.layers.size} pods, which beside "
                f"{' and '.join(beside)} is not enforced yet"
            )

    @property
    def pod_sets(self) -> tuple[PodSet | Lead, ...]:
        """The workers, and the leader if there is one."""
        return (self.workers,) if self.leader is None else (self.workers, self.leader)

    @property
    def slices(self) -> int:
        """Slices of the outermost layer to place; pods if there are none."""
        return self.workers.pods // self.layers.size


def units_of(tree: Tree, gang: Gang, unconstrained: Strategy) -> list[Unit]:
    """The units of a gang in the order they are placed.

    Raises: InvalidRequest naming an unknown level, levels in an invalid order,
        or the first setting that is not enforced.
    """
    return [
        _unit(tree, workers, leader, constraint, unconstrained)
        for workers, leader, constraint in _parts(gang)
    ]


_Part = tuple[PodSet, tuple[Lead, bool] | None, Constraint]


def _parts(gang: Gang) -> Iterator[_Part]:
    """Workers, their leader and whether it comes first, and the constraint of both."""
    root = gang.root
    _check_needed(root)
    if root.constraint != Constraint():
        yield from _group_parts(root)
        return
    for member in root.members:
        if isinstance(member, Group):
            _check_needed(member)
            yield from _group_parts(member)
        else:
            yield _single(member, member.constraint)


def _check_needed(group: Group) -> None:
    if group.needed not in (None, len(group.members)):
        raise InvalidRequest(f"group {group.name}: needed {group.needed} is not enforced yet")


def _single(pod_set: PodSet, constraint: Constraint) -> _Part:
    owner, leader = f"pod set {pod_set.name}", pod_set.leader
    if pod_set.needed not in (None, pod_set.pods):
        raise InvalidRequest(f"{owner}: needed {pod_set.needed} is not enforced yet")
    if leader is None:
        return pod_set, None, constraint
    return pod_set, (_lead(leader), False), constraint


def _lead(pod: Leader | PodSet) -> Lead:
    return Lead(pod.name, pod.request, pod.shape, pod.lacking)


def _group_parts(group: Group) -> Iterator[_Part]:
    members: list[PodSet] = []
    for member in group.members:
        if isinstance(member, Group):
            raise InvalidRequest(f"group {member.name}: a group in a group is not enforced yet")
        if member.constraint != Constraint():
            raise InvalidRequest(
                f"pod set {member.name}: a constraint of its own inside group {group.name} "
                "is not enforced yet"
            )
        members.append(member)
    if len(members) == 1:
        yield _single(members[0], group.constraint)
    elif len(members) == 2 and any(one.pods == 1 for one in members) and not _has_leaders(members):
        yield _led(group, members[0], members[1])
    elif group.constraint == Constraint():
        for member in members:
            yield _single(member, member.constraint)
    else:
        raise InvalidRequest(
            f"group {group.name}: a constraint over {len(members)} pod sets that are not "
            "one leader and its workers is not enforced yet"
        )


def _has_leaders(members: list[PodSet]) -> bool:
    """Whether one has a leader of its own, so that none is the leader of the other."""
    return any(member.leader is not None for member in members)


def _led(group: Group, first: PodSet, second: PodSet) -> _Part:
    """The smaller of two is the leader, the second of two equal ones."""
    is_leader_first = first.pods < second.pods
    leader, workers = (first, second) if is_leader_first else (second, first)
    _single(leader, group.constraint)
    lead = _lead(leader)
    return _single(workers, group.constraint)[0], (lead, is_leader_first), group.constraint


def _unit(
    tree: Tree,
    workers: PodSet,
    leader: tuple[Lead, bool] | None,
    constraint: Constraint,
    unconstrained: Strategy,
) -> Unit:
    first, last, may_spread = _steps(tree, workers, constraint)
    layers = _layers(tree, workers)
    if first > layers.level:
        raise InvalidRequest(
            f"pod set {workers.name}: slices at level {tree.levels[layers.level]} are wider than "
            f"the level {tree.levels[first]} of the pod set"
        )
    is_free = constraint.required is None and constraint.preferred is None
    if constraint.balanced and (constraint.required is not None or is_free):
        raise InvalidRequest(
            f"pod set {workers.name}: balanced placement without a preferred level alone is not "
            "enforced yet"
        )
    return Unit(
        workers=workers,
        leader=None if leader is None else leader[0],
        is_leader_first=leader is not None and leader[1],
        first=first,
        last=last,
        may_spread=may_spread,
        strategy=unconstrained if is_free else Strategy.BEST_FIT,
        is_free=is_free,
        is_balanced=constraint.balanced,
        layers=layers,
    )


def asked_levels(tree: Tree, owner: str, constraint: Constraint) -> tuple[int | None, int | None]:
    """Where in `tree.levels` the required and the preferred level are; None: not asked for.

    Raises: InvalidRequest naming `owner` for an unknown level, or a preferred one that is wider.
    """
    required = preferred = None
    if constraint.required is not None:
        required = index_of(tree.levels, constraint.required, f"{owner}, required")
    if constraint.preferred is not None:
        preferred = index_of(tree.levels, constraint.preferred, f"{owner}, preferred")
    if required is not None and preferred is not None and preferred < required:
        raise InvalidRequest(
            f"{owner}: preferred level {constraint.preferred} is wider than "
            f"required level {constraint.required}"
        )
    return required, preferred


def _steps(tree: Tree, workers: PodSet, constraint: Constraint) -> tuple[int, int, bool]:
    """First and last level of the table above, and whether several domains will do.

    Source: kueue pkg/cache/scheduler/tas_flavor_snapshot.go (v0.16), the requested level
        and those above it.
    """
    required, preferred = asked_levels(tree, f"pod set {workers.name}", constraint)
    if required is None and preferred is None:
        level = 0 if workers.slices else tree.node_level
        return level, level, True
    if required is None:
        assert preferred is not None
        return preferred, 0, True
    if preferred is None:
        return required, required, False
    return preferred, required, False


def _layers(tree: Tree, workers: PodSet) -> Layers:
    """Layers from the second on hold at every level down to their own."""
    if not workers.slices:
        return Layers(1, tree.node_level, (1,) * len(tree.levels))
    inner = [1] * len(tree.levels)
    named: list[tuple[int, int]] = []
    for layer in workers.slices:
        level = index_of(tree.levels, layer.level, f"pod set {workers.name}, slices")
        if named:
            above = named[-1][0]
            if level <= above:
                raise InvalidRequest(
                    f"pod set {workers.name}: slices of {layer.pods} at level {layer.level} lie in "
                    f"slices at level {tree.levels[above]}, which is not wider"
                )
            inner[above + 1 : level + 1] = [layer.pods] * (level - above)
        named.append((level, layer.pods))
    level, pods = named[0]
    return Layers(pods, level, tuple(inner), tuple(named), workers.pods % pods)


def part_of(
    tree: Tree, unit: Unit, pods: int, slices: tuple[Slice, ...], leader: Lead | None
) -> Unit:
    """The unit for some of its pods, with slices of their own: for those that have no place."""
    workers = replace(unit.workers, pods=pods, slices=slices, needed=None, partial_last_slice=True)
    first, last = unit.first, unit.last
    if unit.workers.slices and not slices and unit.is_free:
        first = last = tree.node_level
    return replace(
        unit,
        workers=workers,
        leader=leader,
        first=first,
        last=last,
        layers=_layers(tree, workers),
    )
