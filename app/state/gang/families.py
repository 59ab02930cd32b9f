"""Gangs that are to be in one domain together, though each is placed on its own.

    leader, its root requires a level ──▶ the level
    its own pods with nodes, else the leader's, else others' ──▶ the domain of a gang

Grove makes a PodGang of what a replica of a PodCliqueSet takes to start, and one more of each
replica of a scaling group beyond that: the level that the PodCliqueSet requires is on the first.
The leader tries domains first that have room for those that follow it, by what these request in
all: whether they fit there as they should is found out when their turn comes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import chain, islice

from app.dialects.spec import ANYWHERE, GangKey
from app.kube.core.objects import Amounts
from app.state.gang.gang import Gang
from topology.model.request import Constraint

# Looked at in each search for a gang of a family, and for each that waits on every tick:
MOST_LOOKED_AT = 64  # gangs …
MOST_NODES = 64  # … and pods of one of these, which are all in the domain

FamilyKey = tuple[str, str, str]  # namespace, source of its gangs, name


@dataclass(frozen=True, slots=True)
class Shared:
    """What the gangs of a family have in common."""

    constraint: Constraint = ANYWHERE
    """The level that they are in one domain of."""
    nodes: tuple[str, ...] = ()
    """In that domain: where some of their pods are, sorted. (): none has a node."""
    name: str = ""
    """What the family is called, for messages."""


NOTHING = Shared()


@dataclass(slots=True)
class _Family:
    """Its gangs, in the order in which they became known; `leaders` are among `gangs`."""

    gangs: dict[GangKey, Gang] = field(default_factory=dict)
    leaders: dict[GangKey, Gang] = field(default_factory=dict)


@dataclass(slots=True)
class Families:
    """All families; a gang is in one at most, and none is without gangs."""

    _by_key: dict[FamilyKey, _Family] = field(default_factory=dict)
    _key_of: dict[GangKey, FamilyKey] = field(default_factory=dict)

    def review(self, gang: Gang) -> None:
        """Have the gang in the family that its spec names."""
        spec = gang.membership.spec
        said = None if spec is None else spec.family
        key = None if said is None else (gang.key.namespace, gang.key.source, said.name)
        if key != self._key_of.get(gang.key):
            self.leave(gang.key)
        if key is None or said is None:
            return
        self._key_of[gang.key] = key
        family = self._by_key.setdefault(key, _Family())
        family.gangs[gang.key] = gang
        if said.is_leader:
            family.leaders[gang.key] = gang
        else:
            family.leaders.pop(gang.key, None)

    def leave(self, key: GangKey) -> None:
        """Take a gang out of its family, if it is in one."""
        its = self._key_of.pop(key, None)
        if its is None:
            return
        family = self._by_key[its]
        del family.gangs[key]
        family.leaders.pop(key, None)
        if not family.gangs:
            del self._by_key[its]

    def shared(self, gang: Gang) -> Shared:
        """What holds for a gang because of its family; NOTHING: it is alone, or no level does."""
        key = self._key_of.get(gang.key)
        family = None if key is None else self._by_key[key]
        if key is None or family is None or len(family.gangs) == 1:
            return NOTHING
        level = _level(islice(family.leaders.values(), MOST_LOOKED_AT))
        if level is None:
            return NOTHING
        leaders, others = (
            islice(each.values(), MOST_LOOKED_AT) for each in (family.leaders, family.gangs)
        )
        # Of a gang that runs elsewhere, as before they were a family, the rest stays beside it.
        nodes = _nodes(chain((gang,), leaders, others))
        return Shared(Constraint(required=level), nodes, key[2])

    def to_follow(self, gang: Gang) -> tuple[tuple[Amounts, int], ...]:
        """(request, pods) of the pods that have no node in gangs that follow this leader."""
        key = self._key_of.get(gang.key)
        family = None if key is None else self._by_key[key]
        if family is None or gang.key not in family.leaders:
            return ()
        found = Counter[Amounts]()
        for each in islice(family.gangs.values(), MOST_LOOKED_AT):
            if each is not gang:
                found.update(
                    member.pod.request
                    for uid, member in each.members.items()
                    if member.is_live and not member.pod.node and uid not in each.plan.nodes
                )
        return tuple(sorted(found.items()))


def _level(leaders: Iterable[Gang]) -> str | None:
    """The level that the first of them which requires one requires as a whole."""
    for each in leaders:
        spec = each.membership.spec
        if spec is not None and spec.root.constraint.required:
            return spec.root.constraint.required
    return None


def _nodes(gangs: Iterable[Gang]) -> tuple[str, ...]:
    """Where pods of the first of them are that has any with a node, running or planned."""
    for each in gangs:
        running = (member.pod.node for member in each.membership.bound)
        nodes = tuple(sorted(islice(chain(running, each.plan.nodes.values()), MOST_NODES)))
        if nodes:
            return nodes
    return ()
