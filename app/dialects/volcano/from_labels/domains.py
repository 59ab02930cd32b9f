"""Domains of nodes as their labels say, each known by its path from the widest level down.

    n1  block=b1 rack=r1  ─▶  tier 2: b1       tier 1: b1/r1, b2/r1
    n2  block=b2 rack=r1  ─▶          b2
    n3  block=b1          ─▶          b1, whose member it is itself: its rack is not known

No node is in a domain that its labels do not name. What a node lacks is in `lacking`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from app.dialects.nvlink import level_value
from app.errors import DecodeError
from app.labels import is_label_value

Path = tuple[tuple[str, str], ...]
"""(level key, value) of each level, the widest first."""
Labels = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class LabelDomain:
    """One domain. Its tier is 1 at the narrowest level."""

    tier: int
    path: Path
    nodes: tuple[str, ...]
    """Those in it that are in no domain inside it, by name."""
    inner: tuple[Path, ...]
    """The domains of the next smaller tier that are in it, in order."""

    @property
    def level(self) -> str:
        """The key of its level."""
        return self.path[-1][0]

    @property
    def value(self) -> str:
        """What its nodes have at its level."""
        return self.path[-1][1]


@dataclass(frozen=True, slots=True)
class Placed:
    """Where each node is. `paths` has the nodes that are in some domain."""

    paths: Mapping[str, Path]
    lacking: Mapping[str, tuple[str, ...]]
    """Level key -> the nodes that lack it, by name; of each node only the first that counts."""


def placed_from_widest(nodes: Mapping[str, Labels], levels: Sequence[str]) -> Placed:
    """Follow each node from the widest level down, as far as it has labels without a gap.

    Raises: DecodeError naming the node, the label and its value.
    """
    paths, lacking = dict[str, Path](), defaultdict[str, list[str]](list)
    for node in sorted(nodes):
        values = [value_of(node, nodes[node], level) for level in levels]
        known = values.index("") if "" in values else len(levels)
        if known < len(levels):
            lacking[levels[known]].append(node)
        if known:
            paths[node] = tuple(zip(levels[:known], values, strict=False))
    return Placed(paths, {level: tuple(lacking[level]) for level in levels if level in lacking})


def value_of(node: str, labels: Labels, level: str) -> str:
    """The node's value at a level; "" if it has none, or an empty one, as everywhere in Corral.

    Raises: DecodeError for what the API server takes for no label.
    """
    value = level_value(labels, level)
    if not is_label_value(value):
        raise DecodeError(f"Node {node}: metadata.labels[{level}]: {value!r} is no label value")
    return value


def domains_of(placed: Iterable[tuple[Placed, Sequence[str]]]) -> list[LabelDomain]:
    """The domains of nodes that are placed by lists of levels; equal paths of a tier are one.

    Order: by tier, then by path: members before what they are members of.
    """
    nodes = defaultdict[tuple[int, Path], list[str]](list)
    inner = defaultdict[tuple[int, Path], dict[Path, None]](dict)
    for where, levels in placed:
        tier_of = {level: len(levels) - at for at, level in enumerate(levels)}
        for node, path in where.paths.items():
            tier = tier_of[path[-1][0]]
            nodes[tier, path].append(node)
            for depth in range(len(path) - 1, 0, -1):
                tier += 1
                inner[tier, path[:depth]][path[: depth + 1]] = None
    return [
        LabelDomain(tier, path, tuple(sorted(nodes[tier, path])), tuple(sorted(inner[tier, path])))
        for tier, path in sorted({*nodes, *inner})
    ]
