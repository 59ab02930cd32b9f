"""Tiers of a topology that is made of domains, as levels: what `Within` means on it now.

    at most tier 2, tiers 1, 3, 4 exist ──▶ required: the level of tier 1
    at most tier 5, the widest is 4     ──▶ the whole cluster, the narrowest level preferred
    soft                                ──▶ the same
    at most tier 0                      ──▶ a level that there is not: the gang waits, and says so

Source: volcano pkg/scheduler/framework/session.go, `addClusterTopHyperNode` (v1.14): the whole
cluster is a tier of its own, one above the widest.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace

from app.dialects.spec import ANYWHERE, GangSpec, GroupSpec, LeafSpec, Within
from topology.model.request import Constraint


@dataclass(slots=True)
class Tiers:
    """The tiers that domains have, and what they call them."""

    levels: dict[int, str] = field(default_factory=dict)
    """The key of each tier's level, the narrowest tier first."""
    is_changed: bool = False
    """Whether other tiers or names are there than when this was last set to False."""
    _named: dict[str, Counter[int]] = field(default_factory=dict)
    """By name: how many domains of each tier have it."""

    def set_levels(self, levels: dict[int, str]) -> None:
        """These tiers are there now."""
        self.is_changed |= levels != self.levels
        self.levels = levels

    def add(self, name: str, tier: int) -> None:
        """A domain calls its tier so."""
        if name:
            of_name = self._named.setdefault(name, Counter())
            self.is_changed |= not of_name[tier]
            of_name[tier] += 1

    def drop(self, name: str, tier: int) -> None:
        """It does so no more."""
        if name:
            of_name = self._named[name]
            of_name[tier] -= 1
            if not of_name[tier]:
                self.is_changed = True
                del of_name[tier]
            if not of_name:
                del self._named[name]

    def constraint(self, within: Within) -> Constraint:
        """What a group asks for, as levels. Of two tiers with one name it is the narrower."""
        narrowest = next(iter(self.levels.values()), None)
        if within.is_soft:
            return Constraint(preferred=narrowest)
        tier = within.tier
        if tier is None:
            named = self._named.get(within.name)
            if named is None:
                return Constraint(required=f"tierName {within.name}")
            tier = min(named)
        if tier > max(self.levels, default=0):
            return Constraint(preferred=narrowest)
        level = next((key for its, key in reversed(self.levels.items()) if its <= tier), None)
        if level is None:
            return Constraint(required=f"tier {tier}")
        return Constraint(required=level, preferred=None if level == narrowest else narrowest)

    def resolved(self, spec: GangSpec) -> GangSpec:
        """The spec with levels in place of tiers; on no topology if nothing is asked of it."""
        found = replace(spec, root=self._resolved(spec.root))
        is_placed = bool(self.levels) or any(each != ANYWHERE for each in found.constraints())
        return found if is_placed else replace(found, topology=None)

    def _resolved(self, group: GroupSpec) -> GroupSpec:
        members = tuple(
            each if isinstance(each, LeafSpec) else self._resolved(each) for each in group.members
        )
        if group.within is None:
            return replace(group, members=members)
        return replace(
            group, members=members, constraint=self.constraint(group.within), within=None
        )
