"""Constraints of one PodGroup on different Topologies: one inside a domain of the other.

    PodGroup or sub-group, requires a zone of `zones` ─┬─ sub-group, a rack of `racks`
                                                       └─ sub-group, a rack of `racks`

KAI's scheduler takes each constraint on its own Topology, among the nodes that those around it have
left. A gang here is placed in one tree, and so are these: what is on the inner Topology is inside a
domain of the outer one anyway, so its domains are cut by the level required there, and by no other.
Constraints of which neither is around the other would need two trees: such a PodGroup is refused,
and so is one where the outer Topology is preferred only, or required at different levels.
Source: KAI-Scheduler pkg/scheduler/plugins/topology/job_filtering.go, subSetNodesFn (v0.12).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from app.dialects.declared import Join, JoinPart
from app.dialects.flaw import Flaw
from app.dialects.kai.constraints import TopologyConstraint
from app.dialects.kai.sub_groups import LONGEST_SUB_GROUP, MOST_DEPTH, WireSubGroup
from app.dialects.kai.topology import topology_name
from app.dialects.rules import invalid

_ONE_TREE = "a gang is placed on one Topology, or on one inside a required domain of another"


@dataclass(frozen=True, slots=True)
class _Named:
    """A constraint that names a Topology."""

    whose: str
    where: str
    topology: str
    required: str
    preferred: str

    @property
    def shown(self) -> str:
        return f"{self.whose} on {self.topology[:LONGEST_SUB_GROUP]}"


@dataclass(slots=True)
class _Chain:
    """The Topologies of a PodGroup, the outermost first, as far as they have been looked at."""

    named: list[_Named] = field(default_factory=list)
    """The first constraint on each."""
    ends: list[tuple[str, _Named]] = field(default_factory=list)
    """Of each but the last: the level required around the next, and by what."""


def join_of(root: TopologyConstraint | None, said: Sequence[WireSubGroup]) -> Join | None:
    """How the Topologies are inside one another, where none has a flaw; None: one or none is."""
    paths = list(_paths(root, said))
    chain = _Chain()
    for path in paths:
        _flaw_on(path, chain)
    if len(chain.named) < 2:
        return None
    levels: dict[str, set[str]] = {}
    for *_, last in paths:
        named = filter(None, (last.required, last.preferred))
        levels.setdefault(last.topology, set()).update(named)
    ends = [*(level for level, _ in chain.ends), ""]
    parts = (
        JoinPart(topology_name(each.topology), tuple(sorted(levels[each.topology])), ends_at)
        for each, ends_at in zip(chain.named, ends, strict=True)
    )
    return Join(tuple(parts))


def outermost(root: TopologyConstraint | None, said: Sequence[WireSubGroup]) -> str:
    """The name of the Topology around all others, or of the only one; "": there is none."""
    return next((last.topology for *_, last in _paths(root, said)), "")


def flaws_of(root: TopologyConstraint | None, said: Sequence[WireSubGroup]) -> Iterator[Flaw]:
    """One flaw for each constraint on a Topology that is in no domain of the one before it."""
    chain = _Chain()
    for path in _paths(root, said):
        text = _flaw_on(path, chain)
        if text:
            yield invalid(f"{path[-1].where}.topology", path[-1].topology, text)


def _paths(
    root: TopologyConstraint | None, said: Sequence[WireSubGroup]
) -> Iterator[tuple[_Named, ...]]:
    """Of each constraint that names a Topology: those around it, the outermost first, and itself.

    Outer ones come before inner ones.
    """
    of_root = _named("the PodGroup itself", "topologyConstraint", root)
    top = () if of_root is None else (of_root,)
    if top:
        yield top
    inside: dict[str, list[tuple[int, WireSubGroup]]] = {}
    for at, each in enumerate(said):
        inside.setdefault((each.parent or "").lower(), []).append((at, each))
    layer: list[tuple[str, tuple[_Named, ...]]] = [("", top)]
    depth = 0
    while layer and depth <= MOST_DEPTH:
        below: list[tuple[str, tuple[_Named, ...]]] = []
        for parent, around in layer:
            for at, each in inside.pop(parent, ()):  # of a name that is there twice, the first
                name = each.name or ""
                where = f"subGroups[{at}].topologyConstraint"
                own = _named(
                    f"sub-group {name[:LONGEST_SUB_GROUP]}", where, each.topology_constraint
                )
                path = around if own is None else (*around, own)
                if own is not None:
                    yield path
                if name:
                    below.append((name, path))
        layer, depth = below, depth + 1


def _named(whose: str, where: str, said: TopologyConstraint | None) -> _Named | None:
    if said is None or not said.topology:
        return None
    levels = said.required_topology_level or "", said.preferred_topology_level or ""
    return _Named(whose, where, said.topology, *levels)


def _flaw_on(path: tuple[_Named, ...], chain: _Chain) -> str:
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
