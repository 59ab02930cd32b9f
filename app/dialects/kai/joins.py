"""Constraints of one PodGroup on different Topologies: inside one another, or beside each other.

    PodGroup or sub-group, requires a zone of `zones` ─┬─ sub-group, a rack of `racks`
                                                       └─ sub-group, a rack of `racks`

    PodGroup, requires nothing ─┬─ sub-group, a rack of `racks`       a part
                                └─ sub-group, a clique of `nvlink`    another part

KAI's scheduler takes each constraint on its own Topology, among the nodes that those around it have
left. Where one tree serves all of a PodGroup it is placed there: what is on the inner Topology is
inside a domain of the outer one anyway, so its domains are cut by the level required there, and by
no other, as a narrower one that is named beside it would. Else it is divided into its sub-groups,
and those into theirs: parts with a tree each, all in one domain of what is required around them.
What is around parts is on one Topology, which each of them has outermost; a PodGroup is refused
that would need more, and so is one with a Topology inside another of which no level is required.
Parts with the same Topologies are one, and so are those without any. All parts start together, so
what needs some of its members alone may not have these in several parts.
Source: KAI-Scheduler pkg/scheduler/plugins/topology/job_filtering.go, subSetNodesFn (v0.12).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from app.dialects.declared import Join, JoinPart, TreePart
from app.dialects.flaw import Flaw
from app.dialects.kai.constraints import TopologyConstraint
from app.dialects.kai.sub_groups import LONGEST_SUB_GROUP, MOST_DEPTH, WireSubGroup
from app.dialects.kai.topology import topology_name
from app.dialects.rules import invalid, too_many

MOST_PARTS = 8  # each is searched a place for beside the others
_ONE_TREE = (
    "a Topology is inside a required domain of another, and those beside each other are inside one"
    " at most"
)


@dataclass(frozen=True, slots=True, eq=False)
class _Named:
    """A constraint that names a Topology."""

    of: WireSubGroup | None
    """None: of the PodGroup itself."""
    whose: str
    where: str
    topology: str
    required: str
    preferred: str

    @property
    def shown(self) -> str:
        return f"{self.whose} on {self.topology[:LONGEST_SUB_GROUP]}"


_Path = tuple[_Named, ...]
"""The constraints around one another, the outermost first."""


@dataclass(slots=True)
class _Chain:
    """The Topologies of what is in one tree, the outermost first, as far as they are looked at."""

    named: list[_Named] = field(default_factory=list)
    """The first constraint on each."""
    ends: list[tuple[str, _Named]] = field(default_factory=list)
    """Of each but the last: the level required around the next, and by what."""
    levels: dict[str, set[str]] = field(default_factory=dict)
    """By Topology: what constraints name of it."""
    flaws: list[tuple[_Named, str]] = field(default_factory=list)
    cuts: bool = False
    """A level inside the domain that the next one is in is named beside that: narrower, if any."""

    @classmethod
    def of(cls, paths: Sequence[_Path]) -> _Chain:
        """Those of these constraints."""
        chain = cls()
        for path in paths:
            text = _flaw_on(path, chain)
            if text:
                chain.flaws.append((path[-1], text))
            named = filter(None, (path[-1].required, path[-1].preferred))
            chain.levels.setdefault(path[-1].topology, set()).update(named)
        chain.cuts = any(map(chain._is_cut_by, paths))
        return chain

    def _is_cut_by(self, path: _Path) -> bool:
        """Whether the last constraint is inside a domain that is to be whole, on its Topology."""
        *outer, last = path
        ends = zip(self.named, (level for level, _ in self.ends), strict=False)
        ends_at = next((level for each, level in ends if each.topology == last.topology), None)
        around = {each.required for each in outer if each.topology == last.topology}
        return ends_at in around and not {last.required, last.preferred} <= {"", ends_at}

    @property
    def key(self) -> tuple[tuple[str, str], ...]:
        """Equal for those of one tree."""
        ends = [*(level for level, _ in self.ends), ""]
        return tuple((each.topology, end) for each, end in zip(self.named, ends, strict=True))

    @property
    def topology(self) -> str:
        """The name of the outermost, or of the only one."""
        return topology_name(self.named[0].topology)

    @property
    def join(self) -> Join | None:
        """How they are inside one another; None: it is one."""
        if len(self.named) < 2:
            return None
        parts = (
            JoinPart(topology_name(topology), tuple(sorted(self.levels[topology])), ends_at)
            for topology, ends_at in self.key
        )
        return Join(tuple(parts))


_Tree = tuple[str | None, Join | None]
"""The topology of a part; None: it has no constraint."""


@dataclass(slots=True)
class Trees:
    """The Topologies of a PodGroup, as far as it can be placed on them."""

    said: Sequence[WireSubGroup]
    chains: list[_Chain] = field(default_factory=list)
    """One: all of it is in one tree, or has no constraint."""
    _chain_of: dict[str, _Chain] = field(default_factory=dict)
    """By sub-group: that of its part; those without constraints are not in it."""
    _reached: list[tuple[int, WireSubGroup]] = field(default_factory=list)
    """The sub-groups by their numbers, outer ones first."""

    @classmethod
    def of(cls, root: TopologyConstraint | None, said: Sequence[WireSubGroup]) -> Trees:
        """What these constraints name."""
        walked = list(_walked(root, said))
        paths = [path for _, each, path in walked if path and path[-1].of is each]
        whole, trees = _Chain.of(paths), cls(said)
        trees._reached = [(at, each) for at, each, _ in walked if each is not None]
        if not (whole.flaws or whole.cuts):
            trees.chains = [whole]
            return trees
        trees._divide([(each, path) for _, each, path in walked if each and path], 0)
        _share_levels(trees.chains)
        return trees

    def _divide(self, walked: Sequence[tuple[WireSubGroup, _Path]], depth: int) -> None:
        """Find the tree of each part of these sub-groups, which share so many constraints."""
        inside: dict[int, list[tuple[WireSubGroup, _Path]]] = {}
        for each, path in walked:
            if len(path) > depth:
                inside.setdefault(id(path[depth]), []).append((each, path))
        outside = [each for each in walked if len(each[1]) == depth]
        for its in ([outside] if outside else []) + list(inside.values()):
            prefixes = {path[:end]: None for _, path in its for end in range(1, len(path) + 1)}
            chain = _Chain.of(sorted(prefixes, key=len))
            around = its[0][1][: depth + 1]
            is_one = not (chain.flaws or chain.cuts)
            if not is_one and _may_be_shared(around) and len(around) > depth:
                self._divide(its, depth + 1)
                continue
            self.chains.append(chain)
            self._chain_of.update({each.name or "": chain for each, _ in its})

    @property
    def outermost(self) -> str:
        """The name of the first Topology that is around no other's domains; "": there is none."""
        return next((each.named[0].topology for each in self.chains if each.named), "")

    @property
    def join(self) -> Join | None:
        """How several are inside one another, where all of it is in one tree."""
        return self.chains[0].join if len(self.chains) == 1 else None

    @property
    def parts(self) -> tuple[TreePart, ...]:
        """The leaves on each, where it is not in one tree."""
        found: dict[_Tree, set[str]] = {}
        for at, leaf in self._parts() if len(self.chains) > 1 else ():
            found.setdefault(at, set()).add(leaf)
        return tuple(
            TreePart(frozenset(leaves), topology if join is None else join.name, join)
            for (topology, join), leaves in found.items()
        )

    def _parts(self) -> Iterator[tuple[_Tree, str]]:
        parents = {(each.parent or "").lower() for each in self.said}
        for _, each in self._reached:
            if each.name not in parents:
                yield self._part_of(each.name or ""), each.name or ""

    def _part_of(self, name: str) -> _Tree:
        chain = self._chain_of.get(name)
        return (None, None) if chain is None else (chain.topology, chain.join)

    def flaws(self, least: int | None) -> Iterator[Flaw]:
        """Each constraint that is in no domain of the one before it, and what parts may not say.

        `least`: the PodGroup's minSubGroup.
        """
        flaws = [each for chain in self.chains for each in chain.flaws]
        for last, text in flaws:
            yield invalid(f"{last.where}.topology", last.topology, text)
        if flaws or len(self.chains) < 2:
            return
        parts = len({part for part, _ in self._parts()})
        if parts > MOST_PARTS:
            what = "parts on different Topologies, those without constraints counted as one"
            yield too_many("subGroups", parts, MOST_PARTS, what)
        yield from self._least_flaws(least)

    def _least_flaws(self, least: int | None) -> Iterator[Flaw]:
        """One flaw for each minSubGroup that lets members in several parts wait."""
        inside: dict[str, list[WireSubGroup]] = {}
        for _, each in self._reached:
            inside.setdefault((each.parent or "").lower(), []).append(each)
        parts: dict[str, set[_Tree]] = {}
        for name in [*reversed([each.name or "" for _, each in self._reached]), ""]:
            members = inside.get(name, ())
            parts[name] = set().union(*(parts.get(each.name or "", set()) for each in members))
            if not members:
                parts[name] = {self._part_of(name)}
        said = [("", "minSubGroup", least)]
        said += [
            (e.name or "", f"subGroups[{at}].minSubGroup", e.min_sub_group)
            for at, e in self._reached
        ]
        for name, where, number in said:
            members = inside.get(name, ())
            if number is not None and number < len(members) and len(parts[name]) > 1:
                text = (
                    f"its {len(members)} sub-groups are on different Topologies, of which neither"
                    " is inside the other: these start all together"
                )
                yield invalid(where, number, text)


def _may_be_shared(around: _Path) -> bool:
    """Whether parts may be inside these constraints together: in one domain, by any tree."""
    return len({each.topology for each in around}) == 1 and bool(around[-1].required)


def _share_levels(chains: Iterable[_Chain]) -> None:
    """Have those of one tree name each level that any of them names."""
    of_tree: dict[tuple[tuple[str, str], ...], dict[str, set[str]]] = {}
    for each in chains:
        known = of_tree.setdefault(each.key, {})
        for topology, levels in each.levels.items():
            known.setdefault(topology, set()).update(levels)
        each.levels = known


def _walked(
    root: TopologyConstraint | None, said: Sequence[WireSubGroup]
) -> Iterator[tuple[int, WireSubGroup | None, _Path]]:
    """Each sub-group with its number and the constraints that name a Topology, its own the last.

    Outer ones come before inner ones; the first is the PodGroup itself.
    """
    of_root = _named(None, "the PodGroup itself", "topologyConstraint", root)
    top = () if of_root is None else (of_root,)
    yield -1, None, top
    inside: dict[str, list[tuple[int, WireSubGroup]]] = {}
    for at, each in enumerate(said):
        inside.setdefault((each.parent or "").lower(), []).append((at, each))
    layer: list[tuple[str, _Path]] = [("", top)]
    depth = 0
    while layer and depth <= MOST_DEPTH:
        below: list[tuple[str, _Path]] = []
        for parent, around in layer:
            for at, each in inside.pop(parent, ()):  # of a name that is there twice, the first
                name = each.name or ""
                where = f"subGroups[{at}].topologyConstraint"
                own = _named(
                    each, f"sub-group {name[:LONGEST_SUB_GROUP]}", where, each.topology_constraint
                )
                path = around if own is None else (*around, own)
                yield at, each, path
                if name:
                    below.append((name, path))
        layer, depth = below, depth + 1


def _named(
    of: WireSubGroup | None, whose: str, where: str, said: TopologyConstraint | None
) -> _Named | None:
    if said is None or not said.topology:
        return None
    levels = said.required_topology_level or "", said.preferred_topology_level or ""
    return _Named(of, whose, where, said.topology, *levels)


def _flaw_on(path: _Path, chain: _Chain) -> str:
    """Why the last constraint of a path is not where the chain has it; "" if it is, or is added."""
    *outer, last = path
    around = list(dict.fromkeys(each.topology for each in outer))
    if around != [each.topology for each in chain.named[: len(around)]]:
        return ""  # that is told of one around it
    if around and last.topology in around:
        is_again = last.topology != outer[-1].topology
        text = f"{last.whose} is on this Topology, inside {outer[-1].shown}: {_ONE_TREE}"
        return text if is_again else ""
    at, ends_at = len(around), ""
    if outer:
        required = [each.required for each in outer if each.topology == around[-1]]
        ends_at = next(filter(None, reversed(required)), "")
        if not ends_at:
            return (
                f"{last.whose} is on this Topology, inside {outer[-1].shown}, where no level is"
                f" required: {_ONE_TREE}"
            )
    if at == len(chain.named):
        chain.named.append(last)
        chain.ends += [(ends_at, last)] * bool(outer)
        return ""
    other = chain.named[at]
    if other.topology != last.topology:
        return (
            f"{last.whose} is on this Topology and {other.shown}, and neither is inside the other:"
            f" {_ONE_TREE}"
        )
    if not outer or chain.ends[at - 1][0] == ends_at:
        return ""
    known, first = chain.ends[at - 1]
    return (
        f"{last.whose} is on this Topology inside level {ends_at[:LONGEST_SUB_GROUP]} of"
        f" {around[-1][:LONGEST_SUB_GROUP]}, and {first.whose} inside level"
        f" {known[:LONGEST_SUB_GROUP]}: {_ONE_TREE}"
    )
