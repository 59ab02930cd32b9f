"""A gang's unplanned members by what they are to the placement, and what must lie together.

    members ──roles_of──▶ roles ──blocks_of──▶ blocks

A role is members that are identical to the search: same pod set, request and shape, and narrowed
to the same nodes. A block is roles that one constraint is meant for: a pod set alone, a leader and
its workers, or a pod set whose pods were narrowed to different nodes.

Members that run or have a node already are settled: never in a role, but the rest has to be where
they are.
Source: kueue.md 1.3 (pod set groups) and 2.2 (leader and workers).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from app.state.cache.books import TopologyBooks
from app.state.cache.node_refusals import Shaped
from app.state.gang.gang import Gang
from app.state.gang.membership import Member
from topology.model.request import Constraint, Slice

Settled = tuple[Member, str]  # a member that no plan may move, and its node
SetKey = tuple[object, ...]  # names a pod set: `Member.role`


@dataclass(frozen=True, slots=True)
class Role:
    """Members that are identical to the placement, the unplanned and the settled ones apart."""

    unplanned: tuple[Member, ...]
    settled: tuple[Settled, ...] = ()
    """Of the same pod set."""
    kept: tuple[str, ...] = ()
    """Nodes of those settled members that fill slices of this role, sorted."""
    around: tuple[str, ...] = ()
    """Nodes of settled members of the same block, sorted: the constraint is theirs as well."""
    allowed: frozenset[str] | None = None
    """Nodes these members were narrowed to; None: they were not."""
    is_split: bool = False
    """Another role has pods of the same pod set, narrowed to other nodes."""

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
    def group(self) -> str:
        return self.unplanned[0].pod_set_group

    @property
    def pods(self) -> int:
        """Pods of the whole pod set, as far as this role knows of them."""
        return len(self.unplanned) + len(self.settled)

    @property
    def levels(self) -> Iterator[str]:
        """Every level key the role names."""
        for level in (self.constraint.required, self.constraint.preferred):
            if level:
                yield level
        for part in self.slices:
            yield part.level


@dataclass(frozen=True, slots=True)
class Block:
    """Roles, by index, that one constraint is meant for."""

    roles: tuple[int, ...]
    leader: int | None = None
    """The role, not among `roles`, that is one pod and sits with them."""


def roles_of(gang: Gang, unplanned: tuple[Member, ...]) -> tuple[Role, ...]:
    """Members of the gang that are to be placed by role, the most demanding role first."""
    settled: dict[SetKey, list[Settled]] = {}
    for member in gang.membership.bound:
        settled.setdefault(member.role, []).append((member, member.pod.node))
    for member in gang.planned():
        settled.setdefault(member.role, []).append((member, gang.plan[member.pod.uid]))
    common = _common(unplanned)
    found: dict[tuple[SetKey, frozenset[str] | None], list[Member]] = {}
    for member in unplanned:
        found.setdefault((member.role, common.get(member.role, member.allowed)), []).append(member)
    roles = [Role(tuple(members), allowed=allowed) for (_, allowed), members in found.items()]
    variants = Counter(role.key for role in roles)
    beside = _nodes_by_group(settled)
    free = {key: [node for _, node in members] for key, members in settled.items()}
    for index, role in enumerate(roles):
        of_set = settled.get(role.key, [])
        roles[index] = replace(
            role,
            settled=tuple(of_set),
            kept=_kept(role, free.get(role.key, []), is_split=variants[role.key] > 1),
            around=tuple(sorted(beside.get(role.group) or [node for _, node in of_set])),
            is_split=variants[role.key] > 1,
        )
    return tuple(sorted(roles, key=_demand, reverse=True))


def _common(unplanned: tuple[Member, ...]) -> dict[SetKey, frozenset[str] | None]:
    """Where all pods of a pod set with slices may go, if there is anything: a slice is one."""
    common: dict[SetKey, frozenset[str] | None] = {}
    for member in unplanned:
        if member.slices:
            known = common.setdefault(member.role, member.allowed)
            if known is None or member.allowed is None:
                common[member.role] = known or member.allowed
            else:
                common[member.role] = known & member.allowed
    return {key: nodes for key, nodes in common.items() if nodes is None or nodes}


def _nodes_by_group(settled: dict[SetKey, list[Settled]]) -> dict[str, list[str]]:
    nodes: dict[str, list[str]] = {}
    for members in settled.values():
        for member, node in members:
            if member.pod_set_group:
                nodes.setdefault(member.pod_set_group, []).append(node)
    return nodes


def _kept(role: Role, free: list[str], *, is_split: bool) -> tuple[str, ...]:
    """Takes the nodes where pods of this role's slices run; each counts for one role only."""
    if not role.slices:
        return ()
    taken, allowed = list(free), role.allowed
    if is_split and allowed is not None:
        taken = [node for node in free if node in allowed]
        free[:] = [node for node in free if node not in allowed]
    else:
        free.clear()
    return tuple(sorted(taken))


def _demand(role: Role) -> list[tuple[str, int]]:
    # Devices before cpu and memory before the pod itself: scarce resources decide first.
    amounts = dict(role.shaped[0])
    return sorted(amounts.items(), key=lambda row: ("/" in row[0], row[0], row[1]), reverse=True)


def blocks_of(roles: tuple[Role, ...]) -> tuple[Block, ...]:
    """The roles, each in one block, in the order of the first role of each."""
    found: dict[object, list[int]] = {}
    for index, role in enumerate(roles):
        found.setdefault(role.group or role.key, []).append(index)
    return tuple(_block(roles, indices) for indices in found.values())


def _block(roles: tuple[Role, ...], indices: list[int]) -> Block:
    if len({roles[index].key for index in indices}) < 2:
        return Block(tuple(indices))
    # Of two single pods the second is the leader (kueue.md 2.2).
    leader = min(reversed(indices), key=lambda index: roles[index].pods)
    return Block(tuple(index for index in indices if index != leader), leader)


def mistake_in_groups(gang: Gang) -> str:
    """What cannot be meant about the gang's pod set groups; "" if all can.

    Once members run or have succeeded, nothing can be said of the pod sets any more.
    Source: kueue.md 1.3.
    """
    has_begun = gang.has_started or any(member.is_done for member in gang.members.values())
    groups: dict[str, dict[SetKey, list[Member]]] = {}
    for member in () if has_begun else (*gang.unplanned(), *gang.planned()):
        if member.pod_set_group:
            sets = groups.setdefault(member.pod_set_group, {})
            sets.setdefault(member.role, []).append(member)
    return next((mistake for name, sets in groups.items() if (mistake := _mistake(name, sets))), "")


def _mistake(name: str, sets: dict[SetKey, list[Member]]) -> str:
    if len(sets) != 2:
        return f"pod set group {name} must have exactly 2 pod sets, a leader and its workers," + (
            f" got {len(sets)}"
        )
    one, other = sets.values()
    if min(len(one), len(other)) != 1:
        return (
            f"pod set group {name} must have one pod set of 1 pod, got {len(one)} and {len(other)}"
        )
    if one[0].constraint != other[0].constraint:
        return (
            f"pod set group {name}: pods {one[0].pod.name} and {other[0].pod.name} ask for"
            " different topologies"
        )
    return ""


def pins(roles: tuple[Role, ...], topology: TopologyBooks) -> Iterator[tuple[slice | None, ...]]:
    """The slot ranges each role may use, narrowest first; None is everywhere."""
    ranges = [_ranges(role, topology) for role in roles]
    for attempt in range(max(map(len, ranges))):
        yield tuple(of_role[min(attempt, len(of_role) - 1)] for of_role in ranges)


def _ranges(role: Role, topology: TopologyBooks) -> list[slice | None]:
    tree, constraint = topology.tree, role.constraint
    slots = [slot for node in role.around if (slot := tree.slot_of.get(node)) is not None]
    if not slots or not (constraint.required or constraint.preferred):
        return [None]
    narrowest = topology.levels.index(constraint.preferred or constraint.required or "")
    widest = topology.levels.index(constraint.required) if constraint.required else 0
    ranges: list[slice | None] = []
    for level in range(narrowest, widest - 1, -1):
        # Where members run in several domains, the one with most of them; ties: the first.
        domain = int(np.bincount(tree.domain_of[level][slots]).argmax())
        ranges.append(tree.slots(level, domain))
    return ranges if constraint.required else [*ranges, None]


def kept_slots(role: Role, topology: TopologyBooks) -> tuple[tuple[int, int], ...]:
    """(slot, pods) of the members that fill the role's slices, if they are in this topology."""
    slot_of = topology.tree.slot_of
    slots = Counter(slot_of[node] for node in role.kept if node in slot_of)
    return tuple(sorted(slots.items()))
