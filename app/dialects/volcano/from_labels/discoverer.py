"""Volcano's label discoverer: its configuration, and the HyperNodes it would make.

    networkTopologyTypes:
      a3: [{nodeLabel: block}, {nodeLabel: rack}, {nodeLabel: kubernetes.io/hostname}]
                  tier 2              tier 1             dropped, whatever it is

A node is followed from its narrowest label up, and stops at the first that it lacks. A HyperNode is
named hypernode-<type>-tier<N>-<five random characters>, and has the label of its own level; one
that is there with this label, source and beginning of its name keeps its name. Here the five
characters follow from the path, so that a second run names what the first has named.

Volcano knows a domain by its value alone: rack r1 of two blocks is one HyperNode with two parents,
and then no pod with a topology is placed. Here it is two HyperNodes, and a note says so.
Source: volcano pkg/controllers/hypernode/discovery/label/label.go, parseCfg, generateHyperNodeInfo,
buildHyperNodeName; pkg/controllers/hypernode/config/loader.go (v1.14).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from app.dialects.volcano.from_labels.domains import (
    LabelDomain,
    Labels,
    Path,
    Placed,
    domains_of,
    value_of,
)
from app.dialects.volcano.from_labels.manifests import Manifest, hyper_node, named_nodes
from app.dialects.volcano.from_labels.names import LONGEST, digest
from app.dialects.volcano.hyper_nodes import SOURCE
from app.errors import DecodeError
from app.labels import is_label_key, is_subdomain
from topology.model.levels import NODE_LEVEL

NAME = "label"  # of the discoverer, as `source`
CONFIG_KEY = "volcano-controller.conf"  # of the ConfigMap
LONGEST_TYPE = 20  # bytes of a type's name
SUFFIX_CHARACTERS = 5
PLACES_SHOWN = 3  # of a value, in a note
ALPHABET = "bcdfghjklmnpqrstvwxz2456789"  # of k8s.io/apimachinery/pkg/util/rand, String


@dataclass(frozen=True, slots=True)
class TopologyType:
    """One of networkTopologyTypes. `levels` are the widest first, without the last of the list."""

    name: str
    levels: tuple[str, ...]

    def beginning(self, tier: int) -> str:
        """What the names of its HyperNodes of a tier begin with."""
        return f"hypernode-{_cleaned(self.name)}-tier{tier}-"


@dataclass(frozen=True, slots=True)
class Discovered:
    """HyperNodes, the nodes that lack a label, by the label, and what else is worth saying."""

    hyper_nodes: tuple[Manifest, ...]
    lacking: Mapping[str, tuple[str, ...]]
    notes: tuple[str, ...]


# -- the configuration -------------------------------------------------------------------------


def types_in(config: object) -> tuple[list[TopologyType], list[str]]:
    """The types of a ConfigMap of Volcano's controller, as read from YAML, or of its content.

    Returns them by name, and a note for each that Volcano skips.
    Raises: DecodeError naming the field.
    """
    discovery = _field(config, "", "networkTopologyDiscovery", list)
    for at, entry in enumerate(discovery):
        where = f"networkTopologyDiscovery[{at}]"
        if not isinstance(entry, dict):
            raise DecodeError(f"{where}: a mapping is required, not {entry!r}")
        if entry.get("source") == NAME and entry.get("enabled") is True:
            inner = _field(entry, where, "config", dict)
            return _types(_field(inner, f"{where}.config", "networkTopologyTypes", dict), where)
    raise DecodeError(f"networkTopologyDiscovery: no entry has source: {NAME} and enabled: true")


def _field(outer: object, where: str, name: str, kind: type[Any]) -> Any:
    path = f"{where}.{name}".lstrip(".")
    found = outer.get(name) if isinstance(outer, dict) else None
    if not isinstance(found, kind):
        word = "a list" if kind is list else "a mapping"
        raise DecodeError(f"{path}: {word} is required, not {_cut(found)}")
    return found


def _types(written: Mapping[object, object], where: str) -> tuple[list[TopologyType], list[str]]:
    types, notes = list[TopologyType](), list[str]()
    for name in sorted(written, key=str):
        path = f"{where}.config.networkTopologyTypes.{name}"
        keys = list(_keys(written[name], path))
        if len(str(name).encode()) > LONGEST_TYPE:
            notes.append(f"{path}: Volcano skips it: its name has more than {LONGEST_TYPE} bytes")
        elif len(set(keys)) < len(keys):
            notes.append(f"{path}: Volcano skips it: a nodeLabel is there twice")
        else:
            if keys and keys[-1] != NODE_LEVEL:
                notes.append(f"{path}: the last nodeLabel, {keys[-1]}, is no level")
            types.append(_type(str(name), tuple(keys[:-1]), path))
    return types, notes


def _type(name: str, levels: tuple[str, ...], path: str) -> TopologyType:
    found = TopologyType(name, levels)
    if not is_subdomain(found.beginning(1) + "x"):
        raise DecodeError(f"{path}: no HyperNode can be named {found.beginning(1)}…")
    return found


def _keys(written: object, path: str) -> Iterator[str]:
    if not isinstance(written, list):
        raise DecodeError(f"{path}: a list is required, not {_cut(written)}")
    for at, entry in enumerate(written):
        key = entry.get("nodeLabel") if isinstance(entry, dict) else None
        if not isinstance(key, str) or not is_label_key(key):
            raise DecodeError(f"{path}[{at}].nodeLabel: {_cut(key)} is no label key")
        yield key


def _cut(value: object) -> str:
    return repr(value)[:100]


def _cleaned(name: str) -> str:
    """As Volcano's cleanString: what is no letter, digit, dot or hyphen is a hyphen."""
    return "".join(c.lower() if c.isalnum() or c in ".-" else "-" for c in name)


# -- what is made of it --------------------------------------------------------------------------


def discovered(
    nodes: Mapping[str, Labels], types: Sequence[TopologyType], existing: Mapping[str, Labels]
) -> Discovered:
    """The HyperNodes that Volcano would make; `existing`: the labels of those there are, by name.

    Raises: DecodeError naming a node with a label value that is none.
    """
    notes = list[str]()
    where = {each.name: _placed_from_narrowest(nodes, each, notes) for each in types}
    placed = [(where[each.name], each.levels) for each in types]
    type_of: dict[tuple[int, Path], TopologyType] = {}
    for each, one in zip(types, placed, strict=True):
        for domain in domains_of([one]):
            type_of.setdefault((domain.tier, domain.path), each)
    domains = domains_of(placed)
    names_of = _names(domains, type_of, existing)
    notes += (*_of_no_type(nodes, where), *_of_two_types(where), *_ambiguous(domains))
    made = tuple(
        hyper_node(
            names_of[domain.tier, domain.path],
            domain,
            NAME,
            {domain.level: domain.value},
            named_nodes(domain),
            [names_of[domain.tier - 1, path] for path in domain.inner],
        )
        for domain in domains
    )
    return Discovered(made, _lacking(where), tuple(notes))


def _lacking(where: Mapping[str, Placed]) -> dict[str, tuple[str, ...]]:
    """Level key -> nodes that lack it; not those that are of another type, and in a domain of it.

    `where`: the nodes of each type.
    """
    found = defaultdict[str, dict[str, None]](dict)
    for name, placed in where.items():
        others = [each.paths for other, each in where.items() if other != name]
        for level, nodes in placed.lacking.items():
            for node in nodes:
                if not any(node in paths for paths in others):
                    found[level][node] = None
    return {level: tuple(sorted(nodes)) for level, nodes in found.items()}


def _of_no_type(nodes: Iterable[str], where: Mapping[str, Placed]) -> Iterator[str]:
    """A note for the nodes that have no label of any type."""
    known = {node for each in where.values() for node in each.paths}
    known |= {node for each in where.values() for some in each.lacking.values() for node in some}
    if without := sorted({*nodes} - known):
        yield f"without a label of any type, and in no HyperNode: {', '.join(without)}"


def _of_two_types(where: Mapping[str, Placed]) -> Iterator[str]:
    """A note for each two types that have nodes in common, in different domains of tier 1."""
    for (one, here), (other, there) in combinations(where.items(), 2):
        both = [
            node
            for node in here.paths
            if there.paths.get(node, here.paths[node]) != here.paths[node]
        ]
        if both:
            yield f"of types {one} and {other}, and can only be in one HyperNode: {', '.join(both)}"


def _placed_from_narrowest(
    nodes: Mapping[str, Labels], of: TopologyType, notes: list[str]
) -> Placed:
    """Follow each node from its narrowest level up. A node without any of the labels is left alone.

    A node that lacks a wide label is where others with its narrow ones are, as in Volcano, if
    that is one place; if they are in several, it is left out.
    """
    paths, lacking = dict[str, Path](), defaultdict[str, list[str]](list)
    for node in sorted(nodes):
        values = [value_of(node, nodes[node], level) for level in of.levels]
        if not any(values):
            continue
        first = next((at for at in range(len(values), 0, -1) if not values[at - 1]), 0)
        if first:
            lacking[of.levels[first - 1]].append(node)
        if first < len(values):
            paths[node] = tuple(zip(of.levels[first:], values[first:], strict=True))
    longest = _longest({*paths.values()})
    for node, path in list(paths.items()):
        fitting = longest[path]
        if len(fitting) == 1:
            paths[node] = fitting[0]
        else:
            del paths[node]
            level, value = path[-1]
            notes.append(f"node {node}: {level}={value} is in several domains; it is left out")
    return Placed(paths, {level: tuple(lacking[level]) for level in of.levels if level in lacking})


def _longest(paths: Collection[Path]) -> dict[Path, list[Path]]:
    """For each path those that end like it and are the end of no other: often itself alone."""
    is_end = {path[cut:] for path in paths for cut in range(1, len(path))}
    found = defaultdict[Path, list[Path]](list)
    for path in sorted(paths):
        if path not in is_end:
            for cut in range(len(path)):
                found[path[cut:]].append(path)
    return found


def _names(
    domains: Iterable[LabelDomain],
    type_of: Mapping[tuple[int, Path], TopologyType],
    existing: Mapping[str, Labels],
) -> dict[tuple[int, Path], str]:
    """A name for each domain: the one it has, or a new one that no HyperNode has."""
    found: dict[tuple[int, Path], str] = {}
    of_label = defaultdict[tuple[str, str], list[str]](list)
    for name in sorted(existing):
        if existing[name].get(SOURCE) == NAME:
            for label in existing[name].items():
                of_label[label].append(name)
    waiting, used = list[tuple[LabelDomain, str]](), set[str]()
    for domain in domains:
        key = domain.tier, domain.path
        beginning = type_of[key].beginning(domain.tier)
        name = _generated(beginning, domain.path, 0)
        if name in of_label[domain.path[-1]] and name not in used:
            found[key] = name
            used.add(name)
        else:
            waiting.append((domain, beginning))
    for domain, beginning in waiting:
        there = (each for each in of_label[domain.path[-1]] if each.startswith(beginning))
        reused = next((each for each in there if each not in used), None)
        name = reused or _unused(beginning, domain.path, {*existing, *used})
        found[domain.tier, domain.path] = name
        used.add(name)
    return found


def _unused(beginning: str, path: Path, taken: set[str]) -> str:
    attempt = 0
    while (name := _generated(beginning, path, attempt)) in taken:
        attempt += 1
    return name


def _generated(beginning: str, path: Path, attempt: int) -> str:
    number = int(digest([str(attempt), *(text for label in path for text in label)]), 16)
    suffix = ""
    for _ in range(SUFFIX_CHARACTERS):
        number, at = divmod(number, len(ALPHABET))
        suffix += ALPHABET[at]
    assert len(beginning) + SUFFIX_CHARACTERS <= LONGEST
    return beginning + suffix


def _ambiguous(domains: Iterable[LabelDomain]) -> Iterator[str]:
    """A note for each value that several domains have."""
    parents = defaultdict[tuple[str, str], list[str]](list)
    for domain in domains:
        outer = ",".join(f"{key}={value}" for key, value in domain.path[:-1])
        parents[domain.path[-1]].append(outer or "no wider domain")
    for (key, value), places in parents.items():
        if len(places) > 1:
            shown = [*places[:PLACES_SHOWN]]
            if more := len(places) - len(shown):
                shown.append(f"{more} more")
            yield (
                f"{key}={value} is in {' and '.join(shown)}: a HyperNode for each, "
                "where Volcano makes one with several parents"
            )
