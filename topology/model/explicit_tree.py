"""A tree from domains that name their members, where some branches are deeper than others.

    tier 3   |-------------- spine --------------|
    tier 2   |------ leaf-a ------|-- leaf-b ----|      leaf-b has no domain of tier 1 inside,
    tier 1   |-- r1 --|--- r2 ----|-- leaf-b ----|      so there it stands for itself

Each tier that occurs is one level. A domain without a narrower one inside repeats itself on the
levels below, one without a wider one around it on those above: no level asks its nodes to be
closer than its members were said to be, and "in one domain" means the same on every branch.

What cannot be is left out and said, never guessed: a member claimed twice stays with the first
that claims it, in the order of names. Nodes that no domain claims are not in the tree.
Source: volcano pkg/scheduler/api/hyper_node_info.go (v1.15), HyperNode and its members.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from topology.model.levels import NODE_LEVEL
from topology.model.tree import Tree, build

Operator = Literal["In", "NotIn", "Exists", "DoesNotExist"]
Label = tuple[str, Operator, tuple[str, ...]]
"""(key, operator, values); all labels of a member must hold."""


@dataclass(frozen=True, slots=True)
class Member:
    """Who belongs to a domain: by exact name, by pattern or by labels; one of the three."""

    is_node: bool
    """Else a domain, which goes by exact name only."""
    name: str = ""
    pattern: str = ""
    """Found anywhere in the name."""
    labels: tuple[Label, ...] = ()
    """Of a node."""


@dataclass(frozen=True, slots=True)
class Domain:
    """One domain and its direct members."""

    name: str
    tier: int
    """Smaller is closer together; a member domain has a smaller one."""
    members: tuple[Member, ...]


@dataclass(frozen=True, slots=True, eq=False)
class ExplicitTree:
    """The tree, and what was left out of it."""

    tree: Tree
    level_of_tier: Mapping[int, str]
    """Level keys."""
    outside: tuple[str, ...]
    """Nodes no domain claims, in name order."""
    problems: tuple[str, ...]
    """One sentence each."""


def build_explicit(
    domains: Sequence[Domain],
    nodes: Mapping[str, Mapping[str, str]],
    generation: int,
    level_of_tier: Mapping[int, str] | None = None,
) -> ExplicitTree:
    """A tree over the nodes that domains claim; equal for equal inputs in any order.

    `nodes` maps a node's name to its labels. Tiers without a level key are called "tier-<n>".
    Raises: InvalidTopology if there are more tiers than levels may be.
    """
    by_name = {domain.name: domain for domain in sorted(domains, key=lambda one: one.name)}
    problems: list[str] = []
    parents = _parents(by_name, problems)
    homes: dict[str, str] = {}
    for domain in sorted(by_name.values(), key=lambda one: (one.tier, one.name)):
        for node in _nodes(domain, nodes, problems):
            home = homes.setdefault(node, domain.name)
            if home != domain.name and not _is_around(domain.name, home, parents):
                problems.append(f"node {node}: claimed by {home} and by {domain.name}")
    tiers = sorted({domain.tier for domain in by_name.values()}, reverse=True)
    keys = {tier: (level_of_tier or {}).get(tier, f"tier-{tier}") for tier in tiers}
    paths = {node: [*_path(home, tiers, by_name, parents), node] for node, home in homes.items()}
    return ExplicitTree(
        tree=build([*keys.values(), NODE_LEVEL], paths, generation),
        level_of_tier=keys,
        outside=tuple(sorted(set(nodes) - set(homes))),
        problems=tuple(problems),
    )


def _parents(by_name: Mapping[str, Domain], problems: list[str]) -> dict[str, str]:
    """The domain around each one that has one. Tiers shrink inwards, so there is no cycle."""
    parents: dict[str, str] = {}
    for domain in by_name.values():
        for member in domain.members:
            inner = by_name.get(member.name)
            if member.is_node:
                continue
            if not member.name:
                problems.append(f"domain {domain.name}: member domains go by exact name only")
            elif inner is None:
                problems.append(f"domain {domain.name}: there is no domain {member.name}")
            elif inner.tier >= domain.tier:
                problems.append(
                    f"domain {domain.name} of tier {domain.tier}: member {inner.name} is of tier "
                    f"{inner.tier}, which is not smaller"
                )
            elif parents.setdefault(inner.name, domain.name) != domain.name:
                problems.append(
                    f"domain {inner.name}: claimed by {parents[inner.name]} and by {domain.name}"
                )
    return parents


def _nodes(
    domain: Domain, nodes: Mapping[str, Mapping[str, str]], problems: list[str]
) -> list[str]:
    """Nodes that are direct members, in name order."""
    found: set[str] = set()
    for member in domain.members:
        if not member.is_node:
            continue
        if member.name:
            found.update({member.name} & nodes.keys())
        elif member.pattern:
            try:
                pattern = re.compile(member.pattern)
            except re.error as error:
                problems.append(f"domain {domain.name}: pattern {member.pattern!r}: {error}")
                continue
            found.update(name for name in nodes if pattern.search(name))
        elif member.labels:
            found.update(
                name
                for name, labels in nodes.items()
                if all(_holds(label, labels) for label in member.labels)
            )
    return sorted(found)


def _holds(label: Label, labels: Mapping[str, str]) -> bool:
    key, operator, values = label
    match operator:
        case "In":
            return labels.get(key) in values
        case "NotIn":
            return labels.get(key) not in values
        case "Exists":
            return key in labels
        case "DoesNotExist":
            return key not in labels


def _is_around(name: str, inner: str, parents: Mapping[str, str]) -> bool:
    """Whether a domain is the other one or around it."""
    at: str | None = inner
    while at is not None and at != name:
        at = parents.get(at)
    return at is not None


def _path(
    home: str, tiers: Sequence[int], by_name: Mapping[str, Domain], parents: Mapping[str, str]
) -> list[str]:
    """Per tier, widest first, the domain a node of `home` is in."""
    of_tier: dict[int, str] = {}
    at: str | None = home
    while at is not None:
        of_tier[by_name[at].tier] = widest = at
        at = parents.get(at)
    path: list[str] = []
    for tier in tiers:
        widest = of_tier.get(tier, widest)
        path.append(widest)
    return path
