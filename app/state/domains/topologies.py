"""Which named topologies are in use: those that objects declare, else the levels set.

an object ──▶ keys of node labels ───────────────▶ a topology of these levels
objects ────▶ domains, one each ──▶ explicit.py ─▶ a topology with a level for each tier
objects ────▶ keys that they name ▶ named_levels.py ▶ a topology of one level, where no other has it
objects ────▶ topologies, named together ▶ joined.py ▶ a topology of the levels of both
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from operator import attrgetter
from types import MappingProxyType
from typing import NamedTuple

from app.dialects.declared import DomainSpec, DomainView, TopologySpec
from app.dialects.nvlink import level_value
from app.dialects.registry import Dialects
from app.dialects.spec import GangSpec, GroupSpec, LeafSpec
from app.kube.core.objects import NodeRecord, ObjectRecord, Record
from app.state.cache.books import Books
from app.state.domains.explicit import ExplicitTopology
from app.state.domains.joined import JoinedTopologies
from app.state.domains.named_levels import NamedLevels
from app.state.domains.split_levels import SplitLevels
from app.state.domains.tiers import Tiers
from app.state.settings import EngineSettings
from topology.errors import InvalidTopology
from topology.model.levels import NODE_LEVEL, levels_of
from topology.model.request import Constraint

DEFAULT = "default"  # the name of the topology that the settings' levels make
NAMED = "~"  # begins the name of one that is made of a key: behind all others in their order

Specs = tuple[TopologySpec, ...]


class Change(NamedTuple):
    """What an object has changed."""

    is_any: bool = False
    moved: Collection[str] = ()
    """Nodes that are in other domains now …"""
    levels: frozenset[str] = frozenset()
    """… of one of these levels."""
    is_retiered: bool = False
    """Tiers, levels or their names are others: what gangs request may be another level."""
    split: Mapping[str, frozenset[str]] = MappingProxyType({})
    """By topology: levels one domain of which may be several since plans were made by it."""

    def __bool__(self) -> bool:
        return self.is_any


NO_CHANGE = Change()


@dataclass(slots=True)
class Topologies:
    """The topologies that objects declare, and why some of them are not used."""

    settings: EngineSettings
    books: Books
    dialects: Dialects
    problem: str = ""  # "" if all are used
    _by_labels: dict[str, dict[str, Specs]] = field(default_factory=dict)
    # ^ by the kind and the uid of the object
    _domains: dict[str, dict[str, Specs]] = field(default_factory=dict)  # the same
    _explicit: dict[str, ExplicitTopology] = field(default_factory=dict)
    _object_of: dict[tuple[str, str], str] = field(default_factory=dict)
    # ^ (topology, domain) -> the uid of the object that declares it
    _tiers_gone: bool = False  # a topology has lost its last domain
    _aliases: dict[str, dict[str, str]] = field(default_factory=dict)
    # ^ by topology: the level of each other name
    _declared_levels: dict[str, tuple[str, ...]] = field(default_factory=dict)
    # ^ of the topologies that objects declare by labels, and that are used; widest first
    _named_levels: NamedLevels[str] = field(default_factory=NamedLevels)
    _joined: JoinedTopologies = field(default_factory=JoinedTopologies)
    _split: SplitLevels = field(default_factory=SplitLevels)
    _known: frozenset[str] = frozenset()  # the levels of topologies in use, but for named ones

    def __post_init__(self) -> None:
        self._use()

    # -- objects -------------------------------------------------------------------------------

    def replace(self, kind: str, records: Collection[Record]) -> Change:
        """Use what all objects of a kind declare, at once."""
        declared = {
            record.uid: specs
            for record in records
            if isinstance(record, ObjectRecord) and (specs := self._specs(record))
        }
        before = {**self._by_labels.get(kind, {}), **self._domains.get(kind, {})}
        listed = {record.uid for record in records}
        is_unnamed = self._named_levels.keep(kind, listed) | self._joined.keep(kind, listed)
        if not declared and not before:
            return self._renamed() if is_unnamed else NO_CHANGE
        levels, moved = self._levels(), dict[str, None]()
        self._by_labels[kind] = {uid: each for uid, each in declared.items() if _has_levels(each)}
        self._domains[kind] = {uid: each for uid, each in declared.items() if _has_domains(each)}
        for uid, specs in before.items():
            if uid not in declared:
                moved.update(self._drop_domains(uid, specs))
        domains: dict[str, list[DomainSpec]] = {}
        for uid, specs in self._domains[kind].items():
            for name, domain in _domains(specs):
                self._own(uid, name, domain)
                domains.setdefault(name, []).append(domain)
        for name, its in domains.items():
            moved.update(self._of(name).put_all(its, self.books.nodes))
        return self._changed(moved, levels)

    def put(self, record: ObjectRecord) -> Change:
        """Use what an object declares now."""
        specs, uid = self._specs(record), record.uid
        keys = self.dialects.levels_named(record)
        is_named = self._named_levels.put(uid, record.kind, record.namespace, keys)
        joins = self.dialects.joins(record)
        is_named |= self._joined.put(uid, record.kind, record.namespace, joins)
        declared = self._domains if _has_domains(specs) else self._by_labels
        of_kind = declared.setdefault(record.kind, {})
        if of_kind.get(uid, ()) == specs:
            return self._renamed() if is_named else NO_CHANGE
        of_kind[uid] = specs
        levels, moved = self._levels(), dict[str, None]()
        for name, domain in _domains(specs):
            self._own(uid, name, domain)
            moved.update(self._of(name).put(domain, self.books.nodes))
        return self._changed(moved, levels)

    def drop(self, uid: str) -> Change:
        """Forget an object."""
        declared = (*self._by_labels.values(), *self._domains.values())
        dropped = [of_kind.pop(uid) for of_kind in declared if uid in of_kind]
        is_unnamed = self._named_levels.drop(uid) | self._joined.drop(uid)
        if not any(dropped):
            return self._renamed() if is_unnamed else NO_CHANGE
        levels, moved = self._levels(), dict[str, None]()
        for specs in dropped:
            moved.update(self._drop_domains(uid, specs))
        return self._changed(moved, levels)

    def _own(self, uid: str, name: str, domain: DomainSpec) -> None:
        """Note which object declares a domain; one made anew under its name has another status."""
        if self._object_of.get((name, domain.name)) != uid:
            self._object_of[name, domain.name] = uid
            self._of(name).touch(domain.name)

    def _drop_domains(self, uid: str, specs: Specs) -> dict[str, None]:
        """Forget the domains of an object that is gone; another one may have their names."""
        moved = dict[str, None]()
        for name, domain in _domains(specs):
            if self._object_of.get((name, domain.name)) != uid:
                continue
            del self._object_of[name, domain.name]
            moved.update(self._explicit[name].drop(domain.name))
            for other, its in self._named(name, domain.name):
                self._own(other, name, its)
                moved.update(self._of(name).put(its, self.books.nodes))
            if not self._explicit[name].specs:
                del self._explicit[name]
                self._tiers_gone = True
        return moved

    def _named(self, name: str, domain: str) -> list[tuple[str, DomainSpec]]:
        """The objects that declare a domain of this name, as one that is made anew does."""
        return [
            (uid, each)
            for of_kind in self._domains.values()
            for uid, specs in of_kind.items()
            for topology, each in _domains(specs)
            if (topology, each.name) == (name, domain)
        ]

    def _of(self, name: str) -> ExplicitTopology:
        """The topology of domains that has this name."""
        found = self._explicit.get(name)
        if found is None:
            found = self._explicit[name] = ExplicitTopology()
            for node in self.books.nodes.values():
                found.place(node)
        return found

    def _specs(self, record: ObjectRecord) -> Specs:
        return tuple(self.dialects.topologies(record))

    def _levels(self) -> frozenset[str]:
        return frozenset(level for each in self._explicit.values() for level in each.levels)

    def _changed(self, moved: Collection[str], before: frozenset[str]) -> Change:
        aliases, declared = self._aliases, self._declared_levels
        split = self._use()
        if moved:
            self.books.outdate(only_explicit=True)
        is_retiered = self._tiers_gone or self._aliases != aliases
        is_retiered |= self._declared_levels != declared
        for each in self._explicit.values():
            is_retiered |= each.tiers.is_changed
            each.tiers.is_changed = False
        self._tiers_gone = False
        return Change(True, moved, before | self._levels(), is_retiered, split)

    def _renamed(self) -> Change:
        """Use the keys, and the topologies together, that objects name now."""
        is_rejoined = self._joined.choose(self._declared_levels, self._aliases)
        if not (self._named_levels.choose(self._known) or is_rejoined):
            return NO_CHANGE
        return Change(True, is_retiered=is_rejoined, split=self._use())

    # -- gangs ---------------------------------------------------------------------------------

    def resolved(self, spec: GangSpec) -> GangSpec:
        """What a gang is, with the levels that the tiers and aliases it names are now."""
        if spec.parts:
            return self._resolved_parts(spec)
        name = spec.topology
        if name is None:
            return spec
        aliases: Mapping[str, str] | None = self._aliases.get(name)
        if spec.join is not None:
            spec, aliases = self._joined.resolved(spec, spec.join)
        if aliases:
            spec = replace(spec, root=_with(spec.root, partial(_without_aliases, aliases)))
        if spec.drops_wider_preferred:
            levels = self._declared_levels.get(name, ())
            spec = replace(spec, root=_with(spec.root, partial(_without_wider, levels)))
        if not spec.has_tiers:
            return spec
        explicit = self._explicit.get(name)
        return (Tiers() if explicit is None else explicit.tiers).resolved(spec)

    def _resolved_parts(self, spec: GangSpec) -> GangSpec:
        """The same of a gang on several topologies, each of which has its own names for levels."""
        keys: dict[str, Mapping[str, str]] = {}
        for part in spec.parts:
            its: Mapping[str, str] = self._aliases.get(part.topology or "", {})
            if part.join is not None:
                spec, its = self._joined.resolved(spec, part.join)
            keys.update(dict.fromkeys(part.leaves, its))
        return replace(spec, root=_with_keys(spec.root, keys))

    def is_declared(self, name: str) -> bool:
        """Whether a topology is one that the operator has made, not a key that some gang names."""
        return not name.startswith(NAMED)

    def declared(self, name: str) -> TopologySpec | None:
        """The topology of a name, as an object declares it by labels, used or not."""
        found = (spec for spec in self._declared() if spec.name == name)
        return next(found, None)

    def tiers(self, name: str) -> Mapping[int, str]:
        """The level of each tier, the narrowest first, of a topology made of domains; else none."""
        explicit = self._explicit.get(name)
        return {} if explicit is None else explicit.tiers.levels

    def _use(self) -> dict[str, frozenset[str]]:
        """Use the topologies that there are now; `Change.split`."""
        used: dict[str, tuple[str, ...]] = {}
        problems: list[str] = []
        explicit, declared = self._levels(), self._declared()
        for spec in declared:
            if spec.replaces_settings:
                self._try(spec.name, spec.levels, explicit, used, problems)
        if not used and self.settings.levels:
            self._try(DEFAULT, self.settings.levels, explicit, used, problems)
        for spec in declared:
            if not spec.replaces_settings:
                self._try(spec.name, spec.levels, explicit, used, problems)
        self._aliases = {
            spec.name: dict(spec.aliases) for spec in declared if spec.aliases and spec.name in used
        }
        self._declared_levels = {
            each.name: used[each.name] for each in declared if each.name in used
        }
        self._joined.choose(self._declared_levels, self._aliases)
        for name, topology in self._explicit.items():
            self._try(name, topology.levels, frozenset(), used, problems)
        self._known = frozenset((NODE_LEVEL, *(key for each in used.values() for key in each)))
        self._named_levels.choose(self._known)
        for key in self._named_levels.used:
            self._try(NAMED + key, (key,), explicit, used, problems)
        for name, levels in self._joined.used().items():
            self._try(name, levels, explicit, used, problems)
        values = {name: each.values for name, each in self._explicit.items() if name in used}
        self.problem = "; ".join(problems)
        self.books.set_topologies(used, values)
        joined = self._joined.used()
        labelled = {name: levels for name, levels in used.items() if name not in values}
        return self._split.follow(labelled, [name for name in labelled if name not in joined])

    def _declared(self) -> list[TopologySpec]:
        """What objects declare by the keys of labels; of one name the last counts.

        In whatever order they came: by their kinds and names, as after a restart.
        """
        of_kinds = (self._by_labels[kind] for kind in sorted(self._by_labels))
        every = ((spec for specs in each.values() for spec in specs) for each in of_kinds)
        return [spec for specs in every for spec in sorted(specs, key=attrgetter("name"))]

    def _try(
        self,
        name: str,
        levels: tuple[str, ...],
        taken: frozenset[str],
        used: dict[str, tuple[str, ...]],
        problems: list[str],
    ) -> None:
        """Use a topology of these levels, or say why not; `taken`: levels that are no labels."""
        try:
            valid = levels_of(levels)
        except InvalidTopology as error:
            problems.append(f"Topology {name}: {error}")
            return
        if clash := [level for level in valid if level in taken and level != NODE_LEVEL]:
            problems.append(f"Topology {name}: {clash[0]} is a tier of objects, not a label")
            return
        used[name] = tuple(valid)

    # -- nodes ---------------------------------------------------------------------------------

    def place(self, node: NodeRecord) -> Collection[str]:
        """Put a node into the domains that name it; the topologies where these are others now."""
        return [name for name, explicit in self._explicit.items() if explicit.place(node)]

    def moved_unseen(self, before: NodeRecord, node: NodeRecord) -> Collection[str]:
        """Topologies in which a node is in another domain, by levels that are gone for now."""
        return [
            name
            for name, levels in self._split.gone.items()
            if any(level_value(before.labels, at) != level_value(node.labels, at) for at in levels)
        ]

    def remove(self, node: str) -> None:
        """Forget a node."""
        for explicit in self._explicit.values():
            explicit.remove(node)

    # -- domains -------------------------------------------------------------------------------

    def taken_touched(self) -> Iterator[str]:
        """The uids of objects whose domain has another view than when this was asked last."""
        for name, explicit in self._explicit.items():
            yield from (self._object_of[name, domain] for domain in explicit.taken_touched())

    def has_domain(self, uid: str) -> bool:
        """Whether an object declares a domain."""
        return any(uid in of_kind for of_kind in self._domains.values())

    def view(self, uid: str) -> DomainView | None:
        """What there is to say of the domain that an object declares; None if that is another's."""
        for of_kind in self._domains.values():
            for name, domain in _domains(of_kind.get(uid, ())):
                if self._object_of.get((name, domain.name)) == uid:
                    return self._explicit[name].view(domain.name)
        return None


def _with(group: GroupSpec, change: Callable[[Constraint], Constraint]) -> GroupSpec:
    """The group with other constraints, its own and those inside it."""
    return replace(
        group,
        constraint=change(group.constraint),
        members=tuple(
            _with(each, change)
            if isinstance(each, GroupSpec)
            else replace(each, constraint=each.constraint and change(each.constraint))
            for each in group.members
        ),
    )


def _without_aliases(aliases: Mapping[str, str], constraint: Constraint) -> Constraint:
    """The constraint with the levels that it names by other names."""
    required, preferred = (
        name if name is None else aliases.get(name, name)
        for name in (constraint.required, constraint.preferred)
    )
    return replace(constraint, required=required, preferred=preferred)


def _with_keys(group: GroupSpec, keys: Mapping[str, Mapping[str, str]]) -> GroupSpec:
    """The group with the keys of levels, its own and those inside it; `keys`: by leaf, by name."""
    leaf: GroupSpec | LeafSpec = group
    while isinstance(leaf, GroupSpec):
        leaf = leaf.members[0]
    own = _without_aliases(keys.get(leaf.name, {}), group.constraint)
    inside = (
        _with_keys(each, keys) if isinstance(each, GroupSpec) else each for each in group.members
    )
    return replace(group, constraint=own, members=tuple(inside))


def _without_wider(levels: tuple[str, ...], constraint: Constraint) -> Constraint:
    """The constraint without a preferred level that is wider than the one it requires."""
    asked = constraint.required, constraint.preferred
    if not all(level in levels for level in asked):
        return constraint
    required, preferred = (levels.index(level or "") for level in asked)
    return replace(constraint, preferred=None) if preferred < required else constraint


def _domains(specs: Specs) -> Iterator[tuple[str, DomainSpec]]:
    return ((spec.name, spec.domain) for spec in specs if spec.domain is not None)


def _has_domains(specs: Specs) -> bool:
    return any(spec.domain is not None for spec in specs)


def _has_levels(specs: Specs) -> bool:
    return any(spec.domain is None for spec in specs)
