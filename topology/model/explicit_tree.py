"""Trees of domains that name their members, where some branches are deeper than others.

    tier 3   |-------------- spine --------------|
    tier 2   |------ leaf-a ------|-- leaf-b ----|      leaf-b has no domain of tier 1 inside:
    tier 1   |-- r1 --|--- r2 ----| n5 | n6 | n7 |      there each of its nodes is one by itself

Each tier that occurs is one level, and "in one domain of tier k" means in one domain of tier k or
less. So a domain without a wider one around it stands for itself on the levels above, and a node
without a narrower one stands for itself on the levels below: no level says that nodes are closer
together than their domains do. A node in no domain is alone on every level.

What cannot be is left out and said, never guessed: a member claimed twice stays with the first
that claims it, in the order of names, a node with that of the smallest tier. All follows from what
is there, in whatever order it came; one change looks at what is inside the domains it touches.
Source: volcano pkg/scheduler/api/hyper_node_info.go (v1.15), HyperNode and its members.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from topology.model.levels import NODE_LEVEL
from topology.model.resources import Mask
from topology.model.tree import Tree, build

ALONE = "node/"  # before the name of a node that stands for itself; no domain's name has a slash


@dataclass(frozen=True, slots=True)
class Domain:
    """One domain and the domains that it names as its members."""

    name: str
    tier: int
    """Smaller is closer together; a member has a smaller one."""
    inner: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class DomainFlaw:
    """What is wrong with a domain: a reason as conditions have it, and a sentence."""

    reason: str
    text: str


@dataclass(slots=True)
class Forest:
    """Domains and the nodes in them, kept as both come, change and go.

    Invariants: `_path[node]` are the domains around a node, the narrowest first, each the parent of
    the one before; `_within` is the inverse; `_outer[name]` are the domains that name one, whether
    or not it is there.
    """

    domains: dict[str, Domain] = field(default_factory=dict)
    _outer: dict[str, dict[str, None]] = field(default_factory=dict)
    _claims: dict[str, tuple[str, ...]] = field(default_factory=dict)  # node -> domains naming it
    _direct: dict[str, dict[str, None]] = field(default_factory=dict)  # its inverse
    _path: dict[str, tuple[str, ...]] = field(default_factory=dict)
    _within: dict[str, dict[str, None]] = field(default_factory=dict)
    _tiers: dict[int, int] = field(default_factory=dict)  # tier -> how many domains have it
    _touched: dict[str, None] = field(default_factory=dict)

    # -- what changes --------------------------------------------------------------------------

    def put(self, domain: Domain) -> list[str]:
        """Add a domain or replace it; returns the nodes that are in other domains of a tier now."""
        before = self.domains.get(domain.name)
        if before == domain:
            return []
        nodes = self._around(domain.name, (before, domain))
        self._forget(before)
        self.domains[domain.name] = domain
        self._touch((domain.name,))
        self._tiers[domain.tier] = self._tiers.get(domain.tier, 0) + 1
        for inner in domain.inner:
            self._outer.setdefault(inner, {})[domain.name] = None
        moved = self._moved(nodes)
        if before is not None and before.tier != domain.tier:
            # What is inside is in the same domains, and in another one at some tier.
            moved = list(dict.fromkeys((*moved, *self._within.get(domain.name, ()))))
        return moved

    def drop(self, name: str) -> list[str]:
        """Forget a domain; returns the nodes that are in other domains now."""
        before = self.domains.get(name)
        if before is None:
            return []
        nodes = self._around(name, (before,))
        self._forget(before)
        del self.domains[name]
        moved = self._moved(nodes)
        self._touched.pop(name, None)
        return moved

    def _forget(self, domain: Domain | None) -> None:
        if domain is None:
            return
        self._tiers[domain.tier] -= 1
        if not self._tiers[domain.tier]:
            del self._tiers[domain.tier]
        for inner in dict.fromkeys(domain.inner):
            _discard(self._outer, inner, domain.name)

    def _around(self, name: str, versions: Iterable[Domain | None]) -> list[str]:
        """The nodes that a change of a domain may move; notes which domains it concerns."""
        inner = dict.fromkeys(each for one in versions if one is not None for each in one.inner)
        nodes: dict[str, None] = {**self._direct.get(name, {}), **self._within.get(name, {})}
        self._touch((name, *self._outer.get(name, ())))
        for each in inner:
            nodes.update(self._within.get(each, {}))
            self._touch((each, *self._outer.get(each, ())))
        return list(nodes)

    def place(self, node: str, claims: Collection[str]) -> bool:
        """Note which domains name a node as their member; True if it is in other domains now.

        Names of domains that are not there may be among them: they count once those come.
        """
        named = tuple(sorted(claims))
        before = self._claims.get(node)
        if before == named:
            return False
        self._leave(node)
        self._claims[node] = named
        for each in named:
            self._direct.setdefault(each, {})[node] = None
        self._touch((*(before or ()), *named))
        return bool(self._moved([node])) or before is None

    def remove(self, node: str) -> None:
        """Forget a node."""
        if node in self._claims:
            self._touch(self._claims[node])
            self._leave(node)
            del self._claims[node]
            self._move(node, ())
            del self._path[node]

    def _leave(self, node: str) -> None:
        for each in self._claims.get(node, ()):
            _discard(self._direct, each, node)

    # -- what follows --------------------------------------------------------------------------

    def _moved(self, nodes: Iterable[str]) -> list[str]:
        return [node for node in nodes if self._move(node, tuple(self._domains_around(node)))]

    def _move(self, node: str, path: tuple[str, ...]) -> bool:
        before = self._path.get(node, ())
        self._path[node] = path
        if before == path:
            return False
        for name in before:
            _discard(self._within, name, node)
        for name in path:
            self._within.setdefault(name, {})[node] = None
        self._touch((*before, *path, *self._claims.get(node, ())))
        return True

    def _domains_around(self, node: str) -> Iterator[str]:
        here = [self.domains[each] for each in self._claims[node] if each in self.domains]
        at = min(here, key=lambda one: (one.tier, one.name)).name if here else None
        while at is not None:
            yield at
            at = self.parent(at)

    def parent(self, name: str) -> str | None:
        """The domain around one, if there is any. Tiers grow outwards, so there is no cycle."""
        tier = self.domains[name].tier
        wider = (each for each in self._outer.get(name, ()) if self.domains[each].tier > tier)
        return min(wider, default=None)

    def _touch(self, names: Iterable[str]) -> None:
        self._touched.update((name, None) for name in names if name in self.domains)

    # -- what is asked -------------------------------------------------------------------------

    def taken_touched(self) -> list[str]:
        """Domains whose nodes or flaws may have changed since this was asked last."""
        touched, self._touched = self._touched, {}
        return [name for name in touched if name in self.domains]

    @property
    def tiers(self) -> tuple[int, ...]:
        """Every tier that occurs, the widest first."""
        return tuple(sorted(self._tiers, reverse=True))

    @property
    def nodes(self) -> Collection[str]:
        """Every node, also those in no domain."""
        return self._path.keys()

    def path(self, node: str) -> tuple[str, ...]:
        """The domains around a node, the narrowest first."""
        return self._path.get(node, ())

    def claims(self, node: str) -> tuple[str, ...]:
        """The domains that name a node as their member, also those that are not there."""
        return self._claims.get(node, ())

    def named_by(self, name: str) -> Collection[str]:
        """The nodes that a domain names as its members."""
        return self._direct.get(name, {}).keys()

    def values(self, node: str, tiers: Sequence[int]) -> tuple[str, ...]:
        """The node's domain at each of these tiers, which are the widest first."""
        around = self.path(node)
        found = []
        for tier in tiers:
            inside = (name for name in reversed(around) if self.domains[name].tier <= tier)
            found.append(next(inside, f"{ALONE}{node}"))
        return tuple(found)

    def size(self, name: str) -> int:
        """How many nodes are in a domain, at any depth."""
        return len(self._within.get(name, ()))

    def flaws(self, name: str) -> Iterator[DomainFlaw]:
        """What is wrong with the members of a domain, in their order; nodes by name."""
        domain, seen = self.domains[name], set[str]()
        for each in domain.inner:
            inner = self.domains.get(each)
            if each in seen:
                yield DomainFlaw("DuplicateMember", f"{each} is named twice")
            elif inner is None:
                yield DomainFlaw("MemberNotFound", f"there is no {each}")
            elif inner.tier >= domain.tier:
                text = f"{each} is of tier {inner.tier}, which is not below {domain.tier}"
                yield DomainFlaw("TierNotLower", text)
            elif (parent := self.parent(each)) != name:
                yield DomainFlaw("MemberTaken", f"{each} is a member of {parent} already")
            seen.add(each)
        for node in sorted(self._direct.get(name, ())):
            around = self._path[node]
            if name not in around:
                yield DomainFlaw("NodeTaken", f"node {node} is in {around[0]} already")

    def tree(self, level_of_tier: Mapping[int, str], generation: int) -> Tree:
        """The tree over all nodes, a level for each tier that occurs.

        Raises: InvalidTopology if there are more tiers than levels may be.
        """
        tiers = self.tiers
        levels = [*(level_of_tier[tier] for tier in tiers), NODE_LEVEL]
        return build(
            levels, {node: (*self.values(node, tiers), node) for node in self._path}, generation
        )


def has_tier(tree: Tree, level: int) -> Mask:
    """Which domains of a level have its tier.

    False: a node, or a narrower domain, that stands for itself there.
    Shapes: (D,), of a level above the nodes.
    """
    names, inner = tree.names[level], level + 1
    if inner == tree.node_level:
        return np.array([not name.startswith(ALONE) for name in names], dtype=np.bool_)
    first = tree.domain_of[inner][tree.starts[level]].tolist()
    return np.array(
        [
            not name.startswith(ALONE) and name != tree.names[inner][within]
            for name, within in zip(names, first, strict=True)
        ],
        dtype=np.bool_,
    )


def _discard(sets: dict[str, dict[str, None]], name: str, member: str) -> None:
    """Take a member out of one of these sets, which goes with its last one."""
    members = sets.get(name)
    if members is not None:
        members.pop(member, None)
        if not members:
            del sets[name]
