"""The domains that objects make of nodes, tier by tier, for who judges a journal.

No part of the engine is asked. Where objects contradict each other, such as two that name one node,
each of them counts: then more groups are found to be together, and none is found torn that is not.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

from app.dialects.declared import DomainSpec
from app.dialects.spec import Within
from app.kube.core.objects import NodeRecord, ObjectRecord
from app.state.domains.node_claims import NodeClaims


@dataclass(slots=True)
class TieredDomains:
    """What the objects say now."""

    _said: dict[str, tuple[DomainSpec, ...]] = field(default_factory=dict)
    """By the uid of an object."""
    _kind_of: dict[str, str] = field(default_factory=dict)
    _claims: NodeClaims = field(default_factory=NodeClaims)
    _outer: dict[str, set[str]] = field(default_factory=dict)
    """The domains that name a domain as their member."""
    _tier_of: dict[str, int] = field(default_factory=dict)
    _is_read: bool = True

    def put(self, record: ObjectRecord, specs: Iterable[DomainSpec]) -> None:
        """An object says this now."""
        said = tuple(specs)
        if said != self._said.get(record.uid, ()):
            self._said[record.uid], self._kind_of[record.uid] = said, record.kind
            self._is_read = False

    def drop(self, uid: str) -> None:
        """It is gone."""
        if self._said.pop(uid, None) is not None:
            self._is_read = False
            del self._kind_of[uid]

    def keep(self, kind: str, uids: Collection[str]) -> None:
        """Of a kind these are there, and no others."""
        for uid in [uid for uid, its in self._kind_of.items() if its == kind and uid not in uids]:
            self.drop(uid)

    def around(self, node: NodeRecord) -> frozenset[str]:
        """The domains that a node is in, at any depth."""
        self._read()
        found, waiting = set[str](), [*self._claims.of(node.name, node.labels)]
        while waiting:
            domain = waiting.pop()
            if domain not in found:
                found.add(domain)
                waiting.extend(self._outer.get(domain, ()))
        return frozenset(found)

    def widest(self, within: Within) -> int | None:
        """The tier up to which one domain has to take all; None: the whole cluster may.

        Raises: KeyError where no domain calls its tier so.
        """
        self._read()
        tier = within.tier
        if tier is None:
            named = [
                each.tier
                for said in self._said.values()
                for each in said
                if each.tier_name == within.name
            ]
            if not named:
                raise KeyError(within.name)
            tier = min(named)
        return None if tier > max(self._tier_of.values(), default=0) else tier

    def are_together(self, around: Collection[frozenset[str]], tier: int) -> bool:
        """Whether one domain of this tier, or of a narrower one, has all of these nodes."""
        shared = frozenset.intersection(*around)
        return any(self._tier_of.get(domain, tier + 1) <= tier for domain in shared)

    def _read(self) -> None:
        if self._is_read:
            return
        self._claims, self._outer, self._tier_of = NodeClaims(), {}, {}
        for said in self._said.values():
            for each in said:
                self._claims.put(each.name, each.nodes)
                self._tier_of[each.name] = each.tier
                for inner in each.inner:
                    self._outer.setdefault(inner, set()).add(each.name)
        self._is_read = True
