"""Topologies that gangs name together, each inside one domain of the one before it.

    zones: zone, block      a group requires a zone     ┐
    racks: room, rack       its members require racks   ┴▶ zone, room, rack

The levels of the first, down to the one that is required around the second, then those of the
second. A domain of the second is then its nodes inside the zone, as it has to be, and levels of the
first that are not required around it cut nothing. A node without all of these labels is in none.

Who may write such an object may name any topologies together, and each combination costs a tree:
there is room for a few, as for named levels.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace

from app.dialects.declared import Join, JoinKey, JoinPart, join_name
from app.dialects.spec import GangSpec
from app.state.domains.named_levels import MOST_NAMED, MOST_PER_NAMESPACE, NamedLevels
from topology.errors import InvalidTopology
from topology.model.levels import levels_of

MOST_REMEMBERED = 1_024  # combinations; then all are joined anew

Levels = tuple[str, ...]


@dataclass(slots=True)
class JoinedTopologies:
    """Which combinations are named by objects, and which of them are trees now."""

    _named: NamedLevels[JoinKey] = field(default_factory=NamedLevels)
    _declared: Mapping[str, Levels] = field(default_factory=dict)
    """The levels of the topologies that objects declare by labels, widest first."""
    _aliases: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """By topology: the level of each other name."""
    _remembered: dict[JoinKey, Levels | str] = field(default_factory=dict)
    """The levels of a combination, or why it has none; of those declared now."""

    def put(self, uid: str, kind: str, namespace: str, joins: Iterable[Join]) -> bool:
        """Learn what an object names now; True if that is something else than before."""
        return self._named.put(uid, kind, namespace, (each.key for each in joins))

    def drop(self, uid: str) -> bool:
        """Forget an object; True if it named a combination."""
        return self._named.drop(uid)

    def keep(self, kind: str, uids: Collection[str]) -> bool:
        """Forget the objects of a kind that are none of these; True if one named a combination."""
        return self._named.keep(kind, uids)

    def choose(
        self, declared: Mapping[str, Levels], aliases: Mapping[str, Mapping[str, str]]
    ) -> bool:
        """Choose which combinations are trees; True if these are others.

        One that cannot be joined takes no room.
        """
        if (self._declared, self._aliases) != (declared, aliases):
            self._declared, self._aliases = declared, aliases
            self._remembered.clear()
        return self._named.choose(_Unjoined(self))

    def used(self) -> dict[str, Levels]:
        """The levels of each tree, by its name."""
        found = ((key, self._joined(key)) for key in self._named.used)
        return {join_name(key): levels for key, levels in found if not isinstance(levels, str)}

    def resolved(self, spec: GangSpec, join: Join) -> tuple[GangSpec, Mapping[str, str]]:
        """The gang, with the flaw that keeps it from being placed so, and the key of each level."""
        keys: dict[str, str] = {}
        flaw = self._why_not(join, keys)
        return (replace(spec, flaw=f"{spec.where}: {flaw}") if flaw else spec), keys

    def _why_not(self, join: Join, keys: dict[str, str]) -> str:
        """Why a gang is not placed on a combination; "" if it is. Fills in the levels' keys."""
        joined = self._joined(join.key)
        if isinstance(joined, str):
            return joined
        for part in join.parts:
            for name in part.levels:
                key = self._key(part.topology, name)
                if why := self._why_no_level(part, name, key):
                    return why
                if keys.setdefault(name, key) != key:
                    return f"level {name} is {keys[name]} and, of {part.topology}, {key}"
        if join.key in self._named.used:
            return ""
        return (
            f"{_shown(join.key)} are not joined: there is room for {MOST_NAMED} combinations of"
            f" Topologies, {MOST_PER_NAMESPACE} of them for a namespace that is the first to name"
            " them"
        )

    def _why_no_level(self, part: JoinPart, name: str, key: str) -> str:
        levels = self._declared[part.topology]
        if key not in levels:
            return _no_level(part.topology, name, levels)
        ends_at = self._key(part.topology, part.ends_at)
        if part.ends_at and levels.index(key) > levels.index(ends_at):
            return (
                f"level {name} of {part.topology} is narrower than {part.ends_at}, inside of which"
                " its groups name another Topology"
            )
        return ""

    def _joined(self, key: JoinKey) -> Levels | str:
        found = self._remembered.get(key)
        if found is None:
            if len(self._remembered) >= MOST_REMEMBERED:
                self._remembered.clear()
            found = self._remembered[key] = self._join(key)
        return found

    def _join(self, key: JoinKey) -> Levels | str:
        """The levels of a combination, or why there is none."""
        found: list[str] = []
        for topology, ends_at in key:
            levels = self._declared.get(topology)
            if levels is None:
                return f"Topology {topology} does not exist, or its levels are not valid"
            last = self._key(topology, ends_at)
            if ends_at and last not in levels:
                return _no_level(topology, ends_at, levels)
            for at, level in enumerate(levels[: levels.index(last) + 1] if ends_at else levels):
                if level not in found:
                    found.append(level)
                elif not set(levels[:at]) <= set(found[: found.index(level)]):
                    # Another topology's domains of this level are wider: to be in one of those is
                    # not to be in one of these.
                    return f"{_shown(key)} are not joined: both have level {level}, inside others"
        try:
            return levels_of(found)
        except InvalidTopology as error:
            return f"{_shown(key)} are not joined: {error}"

    def _key(self, topology: str, name: str) -> str:
        return self._aliases.get(topology, {}).get(name, name)


@dataclass(frozen=True, slots=True)
class _Unjoined:
    """The combinations that cannot be joined."""

    topologies: JoinedTopologies

    def __contains__(self, key: object) -> bool:
        return isinstance(self.topologies._joined(key), str)  # type: ignore[arg-type]


def _shown(key: JoinKey) -> str:
    return f"Topologies {' and '.join(topology for topology, _ in key)}"


def _no_level(topology: str, name: str, levels: Levels) -> str:
    return f"Topology {topology} has no level {name}; its levels: {', '.join(levels)}"
