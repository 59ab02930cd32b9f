"""HyperNode objects for domains of labels, as `kubectl apply` takes them.

The narrowest level is tier 1, and each object names the level's key as its `tierName`. Members are
nodes by name, as Volcano's discoverer has them, or by their labels: then nodes that come later are
members without another run.
Source: volcano pkg/controllers/hypernode/discovery/label/label.go, buildHyperNodes (v1.14).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

from app.dialects import nvlink
from app.dialects.volcano.from_labels.domains import LabelDomain
from app.dialects.volcano.from_labels.names import PREFIX, path_name
from app.dialects.volcano.hyper_nodes import API_VERSION, KIND, OURS, SOURCE

Members = Literal["names", "labels"]
Manifest = dict[str, Any]


def manifests(
    domains: Sequence[LabelDomain],
    levels: Sequence[str],
    members: Members = "names",
    prefix: str = PREFIX,
) -> Iterator[Manifest]:
    """A HyperNode for each domain of these levels, labelled with its whole path."""
    names = {domain.path: path_name(domain.path, prefix) for domain in domains}
    for domain in domains:
        # The NVLink domain is no label of its nodes, so that no selector finds them.
        if members == "labels" and domain.nodes and nvlink.DOMAIN not in dict(domain.path):
            of_nodes = [_by_labels(domain, levels)]
        else:
            of_nodes = named_nodes(domain)
        inner = [names[path] for path in domain.inner]
        yield hyper_node(names[domain.path], domain, OURS, dict(domain.path), of_nodes, inner)


def hyper_node(
    name: str,
    domain: LabelDomain,
    source: str,
    labels: Mapping[str, str],
    of_nodes: Sequence[Manifest],
    inner: Sequence[str],
) -> Manifest:
    """One HyperNode. `of_nodes`: its members that are nodes; `inner`: names of the others."""
    return {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "metadata": {"name": name, "labels": {**labels, SOURCE: source}},
        "spec": {
            "tier": domain.tier,
            "tierName": domain.level,
            "members": [*of_nodes, *(_exact(KIND, each) for each in sorted(inner))],
        },
    }


def named_nodes(domain: LabelDomain) -> list[Manifest]:
    """The members of a domain that are nodes, by name."""
    return [_exact("Node", node) for node in domain.nodes]


def _exact(kind: str, name: str) -> Manifest:
    return {"type": kind, "selector": {"exactMatch": {"name": name}}}


def _by_labels(domain: LabelDomain, levels: Sequence[str]) -> Manifest:
    """The nodes of a domain that are in none inside it: those without a label of the next level.

    A node that has that label with an empty value is not selected, and so in no domain.
    """
    selector: Manifest = {"matchLabels": dict(domain.path)}
    if domain.tier > 1:
        level = levels[len(domain.path)]
        selector["matchExpressions"] = [{"key": level, "operator": "DoesNotExist"}]
    return {"type": "Node", "selector": {"labelMatch": selector}}
