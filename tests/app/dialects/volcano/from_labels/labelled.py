"""Nodes with labels as text, and what Corral makes of the HyperNodes that come of them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from app.dialects.volcano.hyper_nodes import decode_hyper_node
from app.kube.core.objects import NodeRecord
from app.state.domains.explicit import ExplicitTopology

BLOCK, RACK = "example.com/block", "example.com/rack"
LEVELS = (BLOCK, RACK)


def nodes_of(text: str) -> dict[str, dict[str, str]]:
    """`n1 b1/r1` on each line; `-` for a label that the node lacks."""
    found = {}
    for line in text.strip().splitlines():
        name, path = line.split()
        values = zip(LEVELS, path.split("/"), strict=True)
        found[name] = {key: value for key, value in values if value != "-"}
    return found


def topology_of(
    manifests: Iterable[Mapping[str, Any]], nodes: Mapping[str, Mapping[str, str]]
) -> ExplicitTopology:
    """The HyperNodes as Corral's own dialect reads them."""
    topology = ExplicitTopology()
    records = [decode_hyper_node(msgspec.json.encode(each)) for each in manifests]
    topology.put_all(
        [record.domain for record in records],
        {name: NodeRecord(name, "", at, (), True, False, (), "") for name, at in nodes.items()},
    )
    return topology


def together(topology: ExplicitTopology, nodes: Iterable[str]) -> list[set[frozenset[str]]]:
    """At each tier, the widest first: which nodes are in one domain."""
    found: list[dict[str, set[str]]] = [defaultdict(set) for _ in topology.levels]
    for node in nodes:
        for groups, value in zip(found, topology.values(node), strict=True):
            groups[value].add(node)
    return [{frozenset(group) for group in groups.values()} for groups in found]


def flaws(topology: ExplicitTopology) -> list[tuple[str, str]]:
    return [(name, each.reason) for name in topology.specs for each in topology.view(name).flaws]
