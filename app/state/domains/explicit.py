"""A topology whose domains name their members, over the nodes that there are.

domains of objects ─▶ NodeClaims ─┐
nodes ────────────────────────────┴─▶ Forest ─▶ values of each node, a level for each tier
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from app.dialects.declared import DomainSpec, DomainView
from app.kube.core.objects import NodeRecord
from app.state.domains.node_claims import NodeClaims
from app.state.domains.tiers import Tiers
from topology.model.explicit_tree import Domain, DomainFlaw, Forest

Nodes = Mapping[str, NodeRecord]


@dataclass(slots=True)
class ExplicitTopology:
    """The domains of one topology, and where each node is."""

    specs: dict[str, DomainSpec] = field(default_factory=dict)
    tiers: Tiers = field(default_factory=Tiers)
    _forest: Forest = field(default_factory=Forest)
    _claims: NodeClaims = field(default_factory=NodeClaims)
    _level_of: dict[int, str] = field(default_factory=dict)  # of each tier that ever occurred
    _touched: dict[str, None] = field(default_factory=dict)  # domains that say something else
    _tiers: tuple[int, ...] = ()  # the widest first
    _values: dict[str, tuple[str, ...]] = field(default_factory=dict)  # of nodes, at these tiers

    def put(self, spec: DomainSpec, nodes: Nodes) -> dict[str, None]:
        """Add a domain or replace it; returns the nodes that are in other domains now."""
        before, name = self.specs.get(spec.name), spec.name
        if before == spec:
            return {}
        moved = self._put_domain(spec)
        if before is None or before.nodes != spec.nodes:
            concerned = dict.fromkeys(self._forest.named_by(name))
            self._claims.put(name, spec.nodes)
            concerned.update((node, None) for node in self._claims.names(name) if node in nodes)
            moved.update((each, None) for each in concerned if self.place(nodes[each]))
            others = [each for each in nodes.values() if each.name not in concerned]
            for node in dict.fromkeys(self._claims.named(name, others)):
                if self._forest.place(node, {*self._forest.claims(node), name}):
                    moved[node] = None
            self._forget_values(moved)
        return moved

    def put_all(self, specs: Iterable[DomainSpec], nodes: Nodes) -> dict[str, None]:
        """Add or replace many domains at once; returns the nodes that are in other ones now."""
        moved = dict[str, None]()
        for spec in specs:
            if self.specs.get(spec.name) != spec:
                moved.update(self._put_domain(spec))
                self._claims.put(spec.name, spec.nodes)
        moved.update((node.name, None) for node in nodes.values() if self.place(node))
        return moved

    def _put_domain(self, spec: DomainSpec) -> dict[str, None]:
        before = self.specs.get(spec.name)
        self.tiers.add(spec.tier_name, spec.tier)
        if before is not None:
            self.tiers.drop(before.tier_name, before.tier)
        self.specs[spec.name] = spec
        self._level_of[spec.tier] = spec.level
        self._touched[spec.name] = None
        moved = dict.fromkeys(self._forest.put(Domain(spec.name, spec.tier, spec.inner)))
        self._forget_values(moved)
        return moved

    def touch(self, name: str) -> None:
        """Have a domain looked at, though nothing changes for its nodes."""
        self._touched[name] = None

    def drop(self, name: str) -> dict[str, None]:
        """Forget a domain; returns the nodes that are in other ones now."""
        spec = self.specs.pop(name, None)
        if spec is None:
            return {}
        self.tiers.drop(spec.tier_name, spec.tier)
        self._claims.drop(name)
        named = list(self._forest.named_by(name))
        moved = dict.fromkeys(self._forest.drop(name))
        for node in named:
            self._forest.place(node, {*self._forest.claims(node)} - {name})
        self._forget_values(moved)
        return moved

    def place(self, node: NodeRecord) -> bool:
        """Put a node into the domains that name it; True if these are others than before."""
        self._values.pop(node.name, None)
        return self._forest.place(node.name, self._claims.of(node.name, node.labels))

    def remove(self, node: str) -> None:
        """Forget a node."""
        self._values.pop(node, None)
        self._forest.remove(node)

    # -- what is asked -------------------------------------------------------------------------

    @property
    def levels(self) -> tuple[str, ...]:
        """The keys of its levels, the widest first."""
        return tuple(self._level_of[tier] for tier in self._tiers)

    def values(self, node: str) -> tuple[str, ...]:
        """A node's domain at each level."""
        found = self._values.get(node)
        if found is None:
            found = self._values[node] = self._forest.values(node, self._tiers)
        return found

    def _forget_values(self, nodes: Iterable[str]) -> None:
        """What these nodes were in is not so any more; of all, if there are other tiers now."""
        if self._tiers != self._forest.tiers:
            self._tiers = self._forest.tiers
            self.tiers.set_levels({tier: self._level_of[tier] for tier in reversed(self._tiers)})
            self._values.clear()
        for node in nodes:
            self._values.pop(node, None)

    def taken_touched(self) -> Iterator[str]:
        """The domains of which a view may be another than when this was asked last."""
        touched, self._touched = self._touched, {}
        touched.update(dict.fromkeys(self._forest.taken_touched()))
        return (name for name in touched if name in self.specs)

    def parent(self, name: str) -> str | None:
        """The domain around one, if there is any."""
        return self._forest.parent(name)

    def is_placed(self, node: str) -> bool:
        """Whether a node is in any domain."""
        return bool(self._forest.path(node))

    def view(self, name: str) -> DomainView:
        """What there is to say of a domain."""
        return DomainView(self._forest.size(name), tuple(self._flaws(name)))

    def _flaws(self, name: str) -> Iterator[DomainFlaw]:
        yield from self.specs[name].flaws
        yield from self._forest.flaws(name)
        for node in self._claims.names(name):
            if node not in self._forest.nodes:
                yield DomainFlaw("NodeNotFound", f"there is no node {node}")
